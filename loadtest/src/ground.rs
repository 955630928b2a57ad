//! What one run stands on: a fresh etcd and API server, a namespace, the Site's definition, the operator's rights.
//! Everything ends with it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sites::settings::Settings;
use xtask::cluster::node::{Node, OPENID_HOST, SITES_HOST, image};
use xtask::cluster::{Cluster, Options, Profile, kubeconfig};

use crate::operator::program;
use crate::server::Server;

/// The namespace of every run.
pub const NAMESPACE: &str = "load";
const OPERATOR_KUBECONFIG: &str = "operator.kubeconfig";
const HUB_KUBECONFIG: &str = "hub.kubeconfig";

/// Which parts of a cluster run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// etcd and the API server: only the operator is measured.
    Alone,
    /// With controllers, scheduler and kwok: pods become Running.
    Whole,
    /// With a real node and an entrance: pods run.
    Node,
}

impl Parts {
    /// As the rows spell it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Whole => "whole",
            Self::Node => "node",
        }
    }
}

/// How a run stands.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// Which parts run.
    pub parts: Parts,
    /// Whether the server logs each request: only in runs that count.
    pub audit: bool,
    /// Server on core 0, operator and observer on core 1.
    pub pinned: bool,
}

/// A running ground.
pub struct Ground {
    /// How it stands.
    pub standing: Standing,
    /// The API server, as its administrator.
    pub admin: Server,
    /// The API server, as the operator's service account: what the comparators use.
    pub account: Server,
    /// The settings that the operator runs with and that everything is rendered with.
    pub settings: Arc<Settings>,
    document: Value,
    dir: tempfile::TempDir,
    cluster: Cluster,
}

impl Ground {
    /// Starts one. `settings` are written over the load test's own as a merge patch.
    pub async fn start(standing: Standing, settings: &Value) -> Result<Self> {
        let mut options =
            Options { alone: standing.parts == Parts::Alone, audit: standing.audit, ..Options::default() };
        let mut document = base_settings();
        if standing.parts == Parts::Node {
            options = Options { profile: Profile::Node, product: Some(program()?), ..options };
            merge(&mut document, &node_settings());
        }
        let cluster = tokio::task::spawn_blocking(move || xtask::cluster::start(&options)).await??;
        let dir = tempfile::tempdir()?;
        if standing.pinned {
            for (_, pid) in cluster.parts() {
                pin(pid, "0")?;
            }
            pin(std::process::id(), "1")?;
        }
        let kubectl = Kubectl { program: cluster.binaries().kubectl(), kubeconfig: cluster.kubeconfig() };
        kubectl.run(&["create", "namespace", NAMESPACE])?;
        kubectl.create(&dir.path().join("definition.yaml"), &sites::domain::crd::yaml())?;
        kubectl.run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "sites.sites.ecmwf.int"])?;
        let mut rights = sites::operator::rights::manifests(NAMESPACE);
        rights.extend(sites::hub::rights::manifests(NAMESPACE));
        let rights = sites::engine::rights::yaml(&rights)?;
        kubectl.create(&dir.path().join("rights.yaml"), &rights)?;
        if standing.parts == Parts::Alone {
            // No controller makes it, and no pod is admitted without it.
            kubectl.run(&["create", "serviceaccount", "default", "--namespace", NAMESPACE])?;
        }
        for (account, file) in [
            (sites::operator::rights::SERVICE_ACCOUNT, OPERATOR_KUBECONFIG),
            (sites::hub::rights::SERVICE_ACCOUNT, HUB_KUBECONFIG),
        ] {
            let token = kubectl.run(&["create", "token", account, "--namespace", NAMESPACE, "--duration=8h"])?;
            std::fs::write(dir.path().join(file), kubeconfig(cluster.server(), &cluster.ca(), token.trim()))?;
        }
        merge(&mut document, settings);
        let parsed = Settings::parse(&document.to_string(), std::iter::empty())?;
        Ok(Self {
            standing,
            admin: Server::connect(&cluster.kubeconfig(), "sites-loadtest-observer").await?,
            account: Server::connect(&dir.path().join(OPERATOR_KUBECONFIG), "sites-loadtest-bare").await?,
            settings: Arc::new(parsed),
            document,
            dir,
            cluster,
        })
    }

    /// The folder for files of this run.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The kubeconfig of the operator.
    #[must_use]
    pub fn operator_kubeconfig(&self) -> PathBuf {
        self.dir.path().join(OPERATOR_KUBECONFIG)
    }

    /// The kubeconfig of the Hub.
    #[must_use]
    pub fn hub_kubeconfig(&self) -> PathBuf {
        self.dir.path().join(HUB_KUBECONFIG)
    }

    /// The operator's settings as a document, to be changed for one process.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.document
    }

    /// The real node, where there is one.
    pub fn node(&self) -> Result<&Node> {
        self.cluster.node().context("this run has no real node")
    }

    /// The authority that signed the certificate of the real node's entrance.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.cluster.ca()
    }

    /// The audit log of a counting run.
    pub fn audit_log(&self) -> Result<&Path> {
        self.cluster.audit_log().context("this run has no audit log")
    }

    /// Process ids of etcd and the API server.
    #[must_use]
    pub fn server_pids(&self) -> Vec<u32> {
        let server = |name: &str| matches!(name, "etcd" | "kube-apiserver");
        self.cluster.parts().filter(|(name, _)| server(name)).map(|(_, pid)| pid).collect()
    }
}

/// Binds all threads of a process, and those it starts later, to a core.
pub fn pin(pid: u32, core: &str) -> Result<()> {
    let pid = pid.to_string();
    let out = Command::new("taskset").args(["--all-tasks", "--cpu-list", "--pid", core, &pid]).output()?;
    ensure!(out.status.success(), "taskset: {}", String::from_utf8_lossy(&out.stderr));
    Ok(())
}

struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    fn run(&self, arguments: &[&str]) -> Result<String> {
        let out = Command::new(&self.program)
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.kubeconfig.with_file_name("kubectl-cache"))
            .stdin(Stdio::null())
            .output()?;
        ensure!(out.status.success(), "kubectl {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }

    fn create(&self, file: &Path, text: &str) -> Result<()> {
        std::fs::write(file, text)?;
        self.run(&["create", "--validate=false", "-f", &file.display().to_string()]).map(|_| ())
    }
}

/// The settings of a load test. What is not here has its default; what differs from the default is said in the report.
#[must_use]
pub fn base_settings() -> Value {
    json!({
        "operator": {
            "worker_limit": 32,
            // No limit of its own holds it back.
            "calls_per_second": 100_000,
            "admin_address": "127.0.0.1:0",
            // A lease that is handed over is taken at once, and a paused operator does not lose it.
            "lease": {"duration": "60s", "renew_period": "1s"},
        },
        "kubernetes": {"storage_class": "kwok-volume"},
        "routing": {"mode": "ingress", "host": "sites.example.test"},
        "session": {"secret_key": "load-test-session-key-0123456789"},
        "oidc": {
            "issuer": "https://id.example.test",
            "client_id": "sites",
            "client_secret": "not-a-secret",
            "login_url": "https://id.example.test/auth",
            "redeem_url": "https://id.example.test/token",
            "jwks_url": "https://id.example.test/jwks",
        },
    })
}

/// What is different where pods run: images that are there, the entrance's Gateway, the provider in the cluster.
fn node_settings() -> Value {
    let own = image("sites");
    json!({
        "kubernetes": {"storage_class": "local-path"},
        "routing": {
            "mode": "gateway", "host": SITES_HOST,
            "gateway": {"name": "sites-gateway", "namespace": "envoy-gateway-system", "provider": "envoy-gateway"},
        },
        "site": {"images": {
            "site-proxy": image("nginx"), "site-oauth2": image("oauth2-proxy"), "site-api": own, "site-admin": own,
            "site-webdav": own, "site-s3": own, "site-initializer": own, "site-mirror": own,
        }},
        "oidc": {
            "issuer": format!("https://{OPENID_HOST}"), "client_secret": "demo-not-a-secret",
            "login_url": format!("https://{OPENID_HOST}/auth"),
            "redeem_url": "http://openid.sites-services.svc/token",
            "jwks_url": "http://openid.sites-services.svc/jwks",
        },
    })
}

/// RFC 7396 without removals.
pub fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}
