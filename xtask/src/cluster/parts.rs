//! The command line of each part of the control plane. Starts nothing.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::build::Binaries;
use super::ground::Ground;
use super::pki::Pki;

/// The ports of one control plane; those of etcd are on 127.0.0.1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) api: u16,
    pub(super) etcd: u16,
    pub(super) etcd_peer: u16,
}

pub(super) fn etcd(ground: &Ground, binaries: &Binaries, dir: &Path, ports: Ports) -> Command {
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    let mut command = ground.command(binaries.kubernetes.join("etcd"));
    command
        .arg(flag("data-dir", dir.join("etcd").display()))
        .arg(flag("listen-client-urls", &client))
        .arg(flag("advertise-client-urls", &client))
        .arg(flag("listen-peer-urls", &peer))
        .arg(flag("initial-advertise-peer-urls", &peer))
        .arg(flag("initial-cluster", format!("default={peer}")))
        // The data lives as long as the cluster: nothing has to survive a power cut.
        .args(["--unsafe-no-fsync", "--log-level=warn", "--quota-backend-bytes=8589934592"]);
    command
}

pub(super) fn apiserver(
    ground: &Ground,
    binaries: &Binaries,
    pki: &Pki,
    ports: Ports,
    audit: Option<(&Path, &Path)>,
) -> Command {
    let mut command = ground.command(binaries.kubernetes.join("kube-apiserver"));
    command
        .arg(flag("etcd-servers", format!("http://127.0.0.1:{}", ports.etcd)))
        .arg(flag("secure-port", ports.api))
        .arg(flag("tls-cert-file", pki.certificate("server").display()))
        .arg(flag("tls-private-key-file", pki.key("server").display()))
        .arg(flag("token-auth-file", pki.tokens().display()))
        .args(["--authorization-mode=RBAC,Node", "--service-cluster-ip-range=10.0.0.0/14", "--allow-privileged"])
        .arg(flag("service-account-key-file", pki.service_account_public_key().display()))
        .arg(flag("service-account-signing-key-file", pki.service_account_key().display()))
        .arg("--service-account-issuer=https://kubernetes.default.svc")
        // Load tests must meet the limits of the product, not the defaults of a server for one small machine.
        .args(["--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000", "--profiling=false"]);
    if let Some((policy, log)) = audit {
        command
            .arg(flag("audit-policy-file", policy.display()))
            .arg(flag("audit-log-path", log.display()))
            // An event is written when its request is done, not some seconds later in a batch.
            .arg("--audit-log-mode=blocking")
            // In megabytes; the default turns the file over at 100 and a reader would lose its place.
            .arg("--audit-log-maxsize=100000");
    }
    command
}

pub(super) fn controller_manager(ground: &Ground, binaries: &Binaries, pki: &Pki, node_grace: Duration) -> Command {
    let config = pki.kubeconfig("controller-manager");
    let mut command = ground.command(binaries.kubernetes.join("kube-controller-manager"));
    command
        .arg(flag("kubeconfig", config.display()))
        .arg(flag("service-account-private-key-file", pki.service_account_key().display()))
        .arg(flag("root-ca-file", pki.ca().display()))
        .args(["--use-service-account-credentials=true", "--kube-api-qps=500", "--kube-api-burst=1000"])
        .args(["--leader-elect=false", "--secure-port=0", "--profiling=false"])
        // Claims and volumes are compared again this often; the default of 15 s is longer than a test's patience.
        .args(["--pvclaimbinder-sync-period=3s", "--node-monitor-period=2s"])
        .arg(flag("node-monitor-grace-period", format!("{}s", node_grace.as_secs())))
        .args(["--concurrent-statefulset-syncs=20", "--concurrent-gc-syncs=40", "--concurrent-namespace-syncs=10"]);
    command
}

pub(super) fn scheduler(ground: &Ground, binaries: &Binaries, pki: &Pki) -> Command {
    let mut command = ground.command(binaries.kubernetes.join("kube-scheduler"));
    command
        .arg(flag("kubeconfig", pki.kubeconfig("scheduler").display()))
        .args(["--kube-api-qps=500", "--kube-api-burst=1000"])
        .args(["--leader-elect=false", "--secure-port=0", "--profiling=false"]);
    command
}

pub(super) fn kwok(binaries: &Path, dir: &Path, pki: &Pki, stages: &[std::path::PathBuf]) -> Command {
    let mut command = Ground::Machine.command(binaries.join("kwok"));
    command
        .arg(flag("kubeconfig", pki.kubeconfig("kwok").display()))
        .arg("--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake")
        // Addresses of pods: room for every pod of a load test.
        .args(["--cidr=10.64.0.1/10", "--node-ip=10.4.0.1"])
        // kwok would also read ~/.kwok/kwok.yaml.
        .env("HOME", dir);
    for stage in stages {
        command.arg(flag("config", stage.display()));
    }
    command
}

pub(super) fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}
