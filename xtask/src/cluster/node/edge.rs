//! The public entrance: Envoy Gateway, which keeps an Envoy inside the box true to the cluster's Gateway API objects.
//! Envoy listens on port 443 of the node's address, with a certificate of the cluster's own authority.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::json;

use super::{ADDRESS, hosts};
use crate::cluster::build::{ENVOY_VERSION, NodeBinaries};
use crate::cluster::fetched;
use crate::cluster::ground::Ground;
use crate::cluster::parts::flag;
use crate::cluster::pki::{Pki, Usage};
use crate::paths;

/// Lays out the folder `edge`: certificates, Envoy, the configuration.
pub(super) fn prepare(dir: &Path, pki: &Pki, binaries: &NodeBinaries) -> Result<()> {
    let home = dir.join("edge");
    // It would download this release of Envoy into this place if it were not there.
    let envoy = home.join("data/envoy-versions").join(ENVOY_VERSION).join("bin");
    fs::create_dir_all(&envoy)?;
    symlink(&binaries.envoy, envoy.join("envoy"))?;
    fetched::run(
        Command::new(binaries.envoy_gateway.join("envoy-gateway"))
            .args(["certgen", "--local", "--config-home"])
            .arg(&home),
    )?;
    pki.issue("edge", (hosts()[0], ""), &hosts(), &[ADDRESS.into()], Usage::Server)?;
    let config = json!({
        "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "EnvoyGateway",
        "gateway": {"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"},
        "provider": {
            "type": "Custom",
            "custom": {
                "resource": {"type": "Kubernetes", "kubernetes": {"leaderElection": {"disable": true}}},
                "infrastructure": {
                    "type": "Host",
                    "host": {
                        "configHome": home, "dataHome": home.join("data"), "stateHome": home.join("state"),
                        "runtimeDir": home.join("run"),
                    },
                },
            },
        },
        "logging": {"level": {"default": "warn"}},
    });
    fs::write(home.join("envoy-gateway.yaml"), format!("{config:#}\n"))?;
    Ok(())
}

/// Secrets that the manifests refer to, as a manifest.
pub(super) fn secrets(dir: &Path, pki: &Pki) -> Result<String> {
    let certs = dir.join("edge/certs");
    let read = |path: std::path::PathBuf| fs::read_to_string(path);
    let secret = |namespace: &str, name: &str, kind: &str, data: serde_json::Value| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": kind,
            "metadata": {"name": name, "namespace": namespace}, "stringData": data,
        })
    };
    let edge = json!({"tls.crt": read(pki.certificate("edge"))?, "tls.key": read(pki.key("edge"))?});
    let envoy = certs.join("envoy");
    let internal = json!({
        "tls.crt": read(envoy.join("tls.crt"))?, "tls.key": read(envoy.join("tls.key"))?,
        "ca.crt": read(envoy.join("ca.crt"))?,
    });
    let hmac = json!({"hmac-secret": read(certs.join("envoy-oidc-hmac/hmac-secret")).unwrap_or_default()});
    let items = [
        secret("envoy-gateway-system", "edge", "kubernetes.io/tls", edge),
        secret("envoy-gateway-system", "envoy", "kubernetes.io/tls", internal),
        secret("envoy-gateway-system", "envoy-oidc-hmac", "Opaque", hmac),
    ];
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())
}

/// Envoy Gateway, which starts Envoy.
pub(super) fn gateway(ground: &Ground, binaries: &NodeBinaries, dir: &Path, pki: &Pki) -> Command {
    let home = dir.join("edge");
    let mut command = ground.command("unshare");
    command
        .args(["--mount", "--propagation", "private", "sh"])
        .arg(paths::cluster_sources().join("node/edge.sh"))
        .arg(home.join("certs/envoy-gateway"))
        .arg(binaries.envoy_gateway.join("envoy-gateway"))
        .arg("server")
        .arg(flag("config-path", home.join("envoy-gateway.yaml").display()))
        .env("KUBECONFIG", pki.kubeconfig("edge"));
    command
}
