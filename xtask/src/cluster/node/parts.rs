//! The command line of each part of a real node. Starts nothing.

use std::path::Path;
use std::process::Command;

use super::images::{BUSYBOX, image};
use super::{ADDRESS, NODE};
use crate::cluster::build::NodeBinaries;
use crate::cluster::ground::Ground;
use crate::cluster::parts::flag;
use crate::cluster::pki::Pki;

/// What the API server gets on top of what every profile gives it. (Of a flag given twice the last one counts.)
pub(super) fn more_for_apiserver(command: &mut Command, pki: &Pki) {
    command
        .arg(flag("bind-address", ADDRESS))
        .arg(flag("advertise-address", ADDRESS))
        // Pods reach it by the service `kubernetes`.
        .arg("--endpoint-reconciler-type=master-count")
        .arg("--enable-admission-plugins=NodeRestriction")
        .arg(flag("client-ca-file", pki.ca().display()))
        .arg(flag("kubelet-certificate-authority", pki.ca().display()))
        .arg(flag("kubelet-client-certificate", pki.certificate("kubelet-client").display()))
        .arg(flag("kubelet-client-key", pki.key("kubelet-client").display()))
        .arg("--kubelet-preferred-address-types=InternalIP");
}

pub(super) fn containerd(ground: &Ground, binaries: &NodeBinaries, dir: &Path) -> Command {
    let mut command = ground.command(binaries.containerd.join("containerd"));
    command.arg(flag("config", dir.join("conf/containerd.toml").display()));
    command
}

/// Loads an image archive; containerd must answer.
pub(super) fn import(ground: &Ground, binaries: &NodeBinaries, archive: &Path) -> Command {
    let mut command = ctr(ground, binaries);
    command.args(["images", "import", "--local"]).arg(archive);
    command
}

/// `ctr` for the images of pods.
pub(super) fn ctr(ground: &Ground, binaries: &NodeBinaries) -> Command {
    let mut command = ground.command(binaries.containerd.join("ctr"));
    command.arg("--namespace=k8s.io");
    command
}

pub(super) fn kubelet(ground: &Ground, binaries: &NodeBinaries, dir: &Path, pki: &Pki) -> Command {
    let mut command = ground.command(binaries.kubelet.join("kubelet"));
    command
        .arg(flag("config", dir.join("conf/kubelet.yaml").display()))
        .arg(flag("kubeconfig", pki.kubeconfig("kubelet").display()))
        .arg(flag("hostname-override", NODE))
        .arg(flag("node-ip", ADDRESS))
        .args(["--root-dir=/var/lib/kubelet", "--cert-dir=/var/lib/kubelet/pki"]);
    command
}

pub(super) fn kube_proxy(ground: &Ground, binaries: &NodeBinaries, dir: &Path) -> Command {
    let mut command = ground.command(binaries.kubelet.join("kube-proxy"));
    command.arg(flag("config", dir.join("conf/kube-proxy.yaml").display()));
    command
}

pub(super) fn coredns(ground: &Ground, binaries: &NodeBinaries, dir: &Path) -> Command {
    let mut command = ground.command(binaries.coredns.join("coredns"));
    command.arg("-conf").arg(dir.join("conf/Corefile"));
    command
}

/// Makes a folder on the node for each claim of the class `local-path`.
pub(super) fn provisioner(ground: &Ground, binaries: &NodeBinaries, dir: &Path, pki: &Pki) -> Command {
    let mut command = ground.command(binaries.provisioner.join("local-path-provisioner"));
    command
        .args(["start", "--namespace", "local-path-storage", "--service-account-name", "default"])
        .arg("--kubeconfig")
        .arg(pki.kubeconfig("provisioner"))
        .arg("--config")
        .arg(dir.join("conf/provisioner.json"))
        .arg("--helper-pod-file")
        .arg(dir.join("conf/helper-pod.yaml"))
        .args(["--helper-image", &image(BUSYBOX)]);
    command
}
