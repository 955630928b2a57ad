//! What is built from Go modules: a group for each `go.mod` in `tests/cluster`. Builds nothing.

/// The release of Kubernetes that `k8s/go.mod` pins, as its binaries report it.
pub(super) const KUBERNETES_VERSION: &str = "v1.36.3";

/// One `go.mod` whose tools are built together. Groups are separate so that a change of one version rebuilds little.
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) packages: &'static [&'static str],
    /// Go names a binary after its package's folder; these get the name people know.
    pub(super) renames: &'static [(&'static str, &'static str)],
    pub(super) tags: &'static str,
    pub(super) stamped: bool,
    /// How long a first build takes on two idle cores, in seconds.
    pub(super) seconds: u32,
}

/// What most groups share.
pub(super) const PLAIN: Group = Group { name: "", packages: &[], renames: &[], tags: "", stamped: false, seconds: 60 };

pub(super) const KUBERNETES: Group = Group {
    name: "k8s",
    packages: &[
        "go.etcd.io/etcd/server/v3",
        "k8s.io/kubernetes/cmd/kube-apiserver",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
        "k8s.io/kubernetes/cmd/kube-scheduler",
        "k8s.io/kubernetes/cmd/kubectl",
    ],
    renames: &[("server", "etcd")],
    stamped: true,
    seconds: 310,
    ..PLAIN
};

pub(super) const KWOK: Group = Group { name: "kwok", packages: &["sigs.k8s.io/kwok/cmd/kwok"], seconds: 50, ..PLAIN };

/// Not part of [`KUBERNETES`], whose binaries would then be built again for those who need no kubelet.
pub(super) const KUBELET: Group = Group {
    name: "kubelet",
    packages: &["k8s.io/kubernetes/cmd/kubelet", "k8s.io/kubernetes/cmd/kube-proxy"],
    stamped: true,
    seconds: 90,
    ..PLAIN
};

pub(super) const CONTAINERD: Group = Group {
    name: "containerd",
    packages: &[
        "github.com/containerd/containerd/v2/cmd/containerd",
        "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
        "github.com/containerd/containerd/v2/cmd/ctr",
        "github.com/containernetworking/plugins/plugins/main/ptp",
        "github.com/containernetworking/plugins/plugins/main/loopback",
        "github.com/containernetworking/plugins/plugins/ipam/host-local",
    ],
    tags: "no_btrfs,no_zfs,no_devmapper",
    seconds: 50,
    ..PLAIN
};

pub(super) const COREDNS: Group =
    Group { name: "coredns", packages: &["github.com/coredns/coredns"], seconds: 80, ..PLAIN };

pub(super) const PROVISIONER: Group =
    Group { name: "local-path", packages: &["github.com/rancher/local-path-provisioner"], seconds: 40, ..PLAIN };

pub(super) const OAUTH2_PROXY: Group =
    Group { name: "oauth2-proxy", packages: &["github.com/oauth2-proxy/oauth2-proxy/v7"], seconds: 140, ..PLAIN };

pub(super) const ENVOY_GATEWAY: Group = Group {
    name: "envoy-gateway",
    packages: &["github.com/envoyproxy/gateway/cmd/envoy-gateway"],
    seconds: 240,
    ..PLAIN
};

/// Only for tests of ingress mode.
pub(super) const CONTOUR: Group =
    Group { name: "contour", packages: &["github.com/projectcontour/contour/cmd/contour"], seconds: 300, ..PLAIN };

/// What a real node needs beside [`KUBERNETES`], in the order in which it is needed.
pub(super) const NODE: [&Group; 6] = [&KUBELET, &CONTAINERD, &COREDNS, &PROVISIONER, &OAUTH2_PROXY, &ENVOY_GATEWAY];
