#!/bin/sh
# Process 1 of the box: furnishes its namespaces, says so, and collects the dead until it is killed.
# Usage: box.sh DIR ADDRESS SERVICES NODE
set -eu
dir=$1 address=$2 services=$3 node=$4

mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/netns /run/lock "$dir/sysctl"
for place in lib log; do
  mkdir -p "$dir/var/$place"
  mount --bind "$dir/var/$place" "/var/$place"
done
# Programs in the box know the names that pods know.
for file in hosts resolv.conf; do
  [ ! -e "/etc/$file" ] || mount --bind "$dir/conf/$file" "/etc/$file"
done
hostname "$node"

# The kubelet writes these, and they belong to the whole machine: it gets files that look alike.
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  path=/proc/sys/${setting%=*}
  [ -e "$path" ] || continue
  file=$dir/sysctl/$(echo "${setting%=*}" | tr / .)
  echo "${setting#*=}" > "$file"
  mount --bind "$file" "$path"
done
mount --make-rshared /

# The node's address: on a pair of devices that both stay in the box.
ip link set lo up
ip link add eth0 type veth peer name eth0-peer
ip link set eth0-peer up
ip addr add "$address/30" dev eth0
ip link set eth0 up
# So that processes of the node reach services too: the packet filter picks these up before they would be sent.
ip route add "$services" dev eth0
echo 1 > /proc/sys/net/ipv4/ip_forward

touch "$dir/box.ready"
while :; do sleep 1; done
