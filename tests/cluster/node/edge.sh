#!/bin/sh
# Runs a program that wants its certificates in `/certs`, which only a pod's own root folder can have: gives it a root
# of its own, of this machine's folders and that one. To be run in a mount namespace of its own.
# Usage: edge.sh CERTIFICATES PROGRAM ARGUMENT...
set -eu
certificates=$1
shift
root=/run/edge-root
mkdir "$root"
mount -t tmpfs -o mode=755 tmpfs "$root"
for entry in /*; do
  if [ -L "$entry" ]; then
    cp -P "$entry" "$root/"
  elif [ -d "$entry" ]; then
    mkdir "$root$entry"
    mount --rbind "$entry" "$root$entry"
  fi
done
mkdir -p "$root/certs"
mount --bind "$certificates" "$root/certs"
exec chroot "$root" "$@"
