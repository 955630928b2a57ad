//! The configuration files of a node's parts. Starts nothing.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::images::{BUSYBOX, image};
use super::{ADDRESS, NODE, PODS, hosts};
use crate::cluster::build::NodeBinaries;
use crate::cluster::pki::Pki;

/// Writes all files into `dir/conf`.
pub(super) fn write(
    dir: &Path,
    pki: &Pki,
    binaries: &NodeBinaries,
    control_group: &str,
    version_1: bool,
) -> Result<()> {
    let conf = dir.join("conf");
    fs::create_dir_all(conf.join("cni"))?;
    let text = |name: &str, value: &Value| fs::write(conf.join(name), format!("{value:#}\n"));
    // JSON is YAML, and no value needs thought about quoting.
    text("kubelet.yaml", &kubelet(dir, pki, control_group, version_1))?;
    text("kube-proxy.yaml", &kube_proxy(pki))?;
    text("cni/10-pods.conflist", &network())?;
    text("provisioner.json", &provisioner())?;
    text("helper-pod.yaml", &helper_pod())?;
    fs::write(conf.join("containerd.toml"), containerd(&conf, binaries))?;
    fs::write(conf.join("Corefile"), corefile(pki))?;
    fs::write(conf.join("resolv.conf"), format!("nameserver {ADDRESS}\nsearch svc.cluster.local cluster.local\n"))?;
    let known = hosts().join(" ");
    fs::write(conf.join("hosts"), format!("127.0.0.1 localhost\n{ADDRESS} {NODE} {known}\n"))?;
    Ok(())
}

fn kubelet(dir: &Path, pki: &Pki, control_group: &str, version_1: bool) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "address": ADDRESS, "port": 10250, "readOnlyPort": 0, "healthzBindAddress": "127.0.0.1",
        "authentication": {
            "anonymous": {"enabled": false}, "webhook": {"enabled": true}, "x509": {"clientCAFile": pki.ca()},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": pki.certificate("kubelet"), "tlsPrivateKeyFile": pki.key("kubelet"),
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "cgroupfs", "cgroupRoot": format!("/{control_group}"), "failCgroupV1": !version_1,
        "clusterDNS": [ADDRESS], "clusterDomain": "cluster.local", "resolvConf": dir.join("conf/resolv.conf"),
        // The machine is not the box's alone: what its memory, disk and swap are like is no reason to stop pods.
        "failSwapOn": false, "localStorageCapacityIsolation": false, "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
            "imagefs.available": "0%", "imagefs.inodesFree": "0%",
        },
        "makeIPTablesUtilChains": false,
        "kubeAPIQPS": 200, "kubeAPIBurst": 400, "maxPods": 200,
        // The default of a minute hides a crash loop from whoever waits for it.
        "syncFrequency": "2s",
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
    })
}

fn kube_proxy(pki: &Pki) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "mode": "nftables", "bindAddress": ADDRESS, "hostnameOverride": NODE, "clusterCIDR": PODS,
        "healthzBindAddress": "127.0.0.1:10256", "metricsBindAddress": "127.0.0.1:10249",
        "clientConnection": {"kubeconfig": pki.kubeconfig("kube-proxy")},
        // These limits belong to the whole machine.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "nftables": {"minSyncPeriod": "100ms", "syncPeriod": "30s"},
    })
}

/// Each pod has its own cable to the node. (On a common bridge the answer of a service's pod would take a short cut
/// past the address translation, unless the kernel has `br_netfilter`.)
fn network() -> Value {
    json!({
        "cniVersion": "1.0.0", "name": "pods",
        "plugins": [{
            "type": "ptp", "ipMasq": false,
            "ipam": {
                "type": "host-local", "dataDir": "/run/cni-addresses",
                "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}],
            },
        }],
    })
}

fn provisioner() -> Value {
    json!({
        "nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": ["/var/lib/volumes"]}],
        "cmdTimeoutSeconds": 120,
    })
}

/// Makes and removes the folder of a volume.
fn helper_pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "helper-pod"},
        "spec": {
            "priorityClassName": "system-node-critical", "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "helper-pod", "image": image(BUSYBOX), "imagePullPolicy": "IfNotPresent",
                "securityContext": {"runAsUser": 0},
            }],
        },
    })
}

fn containerd(conf: &Path, binaries: &NodeBinaries) -> String {
    let (programs, network, sandbox) = (binaries.containerd.display(), conf.join("cni"), image(BUSYBOX));
    let network = network.display();
    format!(
        "version = 3
root = '/var/lib/containerd'
state = '/run/containerd'
imports = []
disabled_plugins = [
  'io.containerd.nri.v1.nri', 'io.containerd.internal.v1.opt', 'io.containerd.snapshotter.v1.erofs',
  'io.containerd.snapshotter.v1.blockfile', 'io.containerd.snapshotter.v1.native', 'io.containerd.differ.v1.erofs',
  'io.containerd.internal.v1.tracing', 'io.containerd.tracing.processor.v1.otlp',
  'io.containerd.image-verifier.v1.bindir', 'io.containerd.mount-handler.v1.erofs',
]
[grpc]
  address = '/run/containerd/containerd.sock'
# Its data ends with the box: nothing has to survive a power cut.
[plugins.'io.containerd.metadata.v1.bolt']
  no_sync = true
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '{sandbox}'
[plugins.'io.containerd.cri.v1.runtime']
  disable_apparmor = true
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = 'runc'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = 'io.containerd.runc.v2'
      runtime_path = '{programs}/containerd-shim-runc-v2'
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['{programs}']
    conf_dir = '{network}'
    use_internal_loopback = true
"
    )
}

fn corefile(pki: &Pki) -> String {
    let names = hosts().map(|host| format!("{host}:53")).join(" ");
    let known = hosts().join(" ");
    format!(
        "cluster.local:53 in-addr.arpa:53 {{
  bind {ADDRESS}
  errors
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {}
    ttl 1
  }}
}}
{names} {{
  bind {ADDRESS}
  errors
  hosts {{
    {ADDRESS} {known}
    ttl 5
  }}
}}
# There is no way out of the box: any other name does not exist, at once.
.:53 {{
  bind {ADDRESS}
  errors
  template ANY ANY {{
    rcode NXDOMAIN
  }}
}}
",
        pki.kubeconfig("coredns").display()
    )
}
