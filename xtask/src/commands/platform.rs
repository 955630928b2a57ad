//! The platform's own parts as pods of a real node: the operator and the Hub. The chart does this for users; here
//! it is as little as the demo needs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;
use xtask::paths;
use xtask::progress::Step;

use super::cluster;
use super::demo::NAMESPACE;
use super::kubectl::Kubectl;

/// Runs this binary with these settings, and waits until its pods are ready.
pub fn deploy(kubectl: &Kubectl, sites: &Path, settings: &Path) -> Result<()> {
    let text = fs::read_to_string(settings).with_context(|| format!("reading {}", settings.display()))?;
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sites-config", "namespace": NAMESPACE},
        "data": {"settings.yaml": text},
    });
    kubectl.apply(&config.to_string())?;
    let parts = [("platform.yaml", "sites-operator"), ("hub.yaml", "sites-hub")];
    let manifests = paths::cluster_sources().join("manifests");
    for (file, _) in &parts {
        kubectl.apply(&fs::read_to_string(manifests.join(file))?)?;
    }
    // A cluster that was up before has the binary and the settings of then.
    if cluster::refresh_product(sites)? {
        for (_, name) in &parts {
            kubectl.read(&["rollout", "restart", "-n", NAMESPACE, &format!("deployment/{name}")])?;
        }
    }
    for (_, name) in &parts {
        let step = Step::begin("platform", &format!("{name}: waiting until it is ready"));
        let deployment = format!("deployment/{name}");
        let ready = kubectl.read(&["rollout", "status", "-n", NAMESPACE, &deployment, "--timeout=120s"]);
        if let Err(error) = ready {
            let log = kubectl.read(&["logs", "-n", NAMESPACE, &deployment, "--tail=20"]).unwrap_or_default();
            return Err(error.context(log));
        }
        step.done(&format!("{name} is ready"));
    }
    Ok(())
}
