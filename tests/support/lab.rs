//! The control plane of the test process: one for all tests that live in their own namespace, and separate ones for
//! tests that change what belongs to everybody. Knows nothing of Sites but their definition.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use xtask::cluster::{Cluster, Options};

use super::api::{ApiServer, condition, documents, name_of};
use super::audit::Audit;
use super::wait::{SOON, eventually};

/// The variable that names the kubeconfig of a real cluster to use instead of a local one.
const EXTERNAL: &str = "SITES_TEST_KUBECONFIG";

/// A control plane. A clone is the same one; the last clone of a separate one ends it.
#[derive(Clone)]
pub struct Lab {
    inner: Arc<Inner>,
}

struct Inner {
    kubeconfig: PathBuf,
    audit_log: Option<PathBuf>,
    definition: tokio::sync::OnceCell<()>,
    /// Kept to be dropped: that ends it. None for a cluster that is not ours.
    cluster: Option<Cluster>,
}

impl Lab {
    /// The control plane of this test process, started by the first test that asks.
    ///
    /// It is never dropped: its processes end with this one and its folder is swept then. A runner with one process
    /// per test would start one each time; set `SITES_TEST_KUBECONFIG` to the one of `cargo xtask cluster up` there.
    pub async fn get() -> &'static Lab {
        static LAB: OnceLock<Lab> = OnceLock::new();
        let started = tokio::task::spawn_blocking(|| LAB.get_or_init(|| Lab::start(&Options::default())));
        started.await.expect("the control plane starts")
    }

    /// A control plane for one test alone.
    pub async fn own(options: Options) -> Lab {
        assert!(std::env::var_os(EXTERNAL).is_none(), "this test needs a control plane of its own: unset {EXTERNAL}");
        tokio::task::spawn_blocking(move || Lab::start(&options)).await.expect("the control plane starts")
    }

    fn start(options: &Options) -> Lab {
        let Some(kubeconfig) = std::env::var_os(EXTERNAL).filter(|value| !value.is_empty()) else {
            return Self::start_local(options);
        };
        let definition = tokio::sync::OnceCell::new();
        Self::of(Inner { kubeconfig: kubeconfig.into(), audit_log: None, definition, cluster: None })
    }

    pub(super) fn start_local(options: &Options) -> Lab {
        let cluster = xtask::cluster::start(options).expect("the local cluster starts");
        Self::of(Inner {
            kubeconfig: cluster.kubeconfig(),
            audit_log: cluster.audit_log().map(Path::to_owned),
            definition: tokio::sync::OnceCell::new(),
            cluster: Some(cluster),
        })
    }

    fn of(inner: Inner) -> Lab {
        // Nobody else may have chosen one; if somebody has, it is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Lab { inner: Arc::new(inner) }
    }

    /// The local cluster; none if it is not ours.
    pub(super) fn cluster(&self) -> Option<&Cluster> {
        self.inner.cluster.as_ref()
    }

    /// The `kubectl` of the local cluster's release.
    pub async fn kubectl() -> PathBuf {
        let built = tokio::task::spawn_blocking(|| xtask::cluster::build(xtask::cluster::Profile::Kwok));
        built.await.expect("no panic").expect("the cluster's binaries").kubectl()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.inner.kubeconfig
    }

    /// A client of the administrator for the calling test's runtime (a client dies with the runtime it was made in).
    pub async fn client(&self) -> kube::Client {
        client(&self.inner.kubeconfig).await
    }

    /// The API server as its administrator sees it.
    pub async fn api(&self) -> ApiServer {
        ApiServer::new(self.client().await)
    }

    /// What was asked of the API server; none with a cluster that is not ours, or with audit off.
    pub fn audit(&self) -> Option<Audit> {
        self.inner.audit_log.clone().map(Audit::new)
    }

    /// As [`Lab::audit`], saying why a test that needs it does nothing.
    pub fn audit_or_skip(&self, test: &str) -> Option<Audit> {
        let audit = self.audit();
        if audit.is_none() {
            eprintln!("{test}: skipped, the cluster of {EXTERNAL} gives no audit log");
        }
        audit
    }

    /// Installs the definition of the Site once.
    pub async fn install_definition(&self) {
        self.inner
            .definition
            .get_or_init(|| async {
                let api = self.api().await;
                let documents = documents(&sites(&["crd"]).await);
                assert!(!documents.is_empty(), "`sites crd` printed nothing");
                for document in documents {
                    api.apply("", &document).await.expect("the API server takes the definition");
                    let name = name_of(&document).to_owned();
                    eventually("the definition is established", SOON, || async {
                        let found = api.get("CustomResourceDefinition", "", &name).await?;
                        (condition(&found, "Established")?["status"] == "True").then_some(())
                    })
                    .await;
                }
            })
            .await;
    }

    /// A kubeconfig like the administrator's for another address, authority and token; none keeps what is there.
    pub fn kubeconfig_for(&self, server: Option<&str>, ca: Option<&Path>, token: &str) -> String {
        self.kubeconfig_of(server, ca, &json!({"token": token}))
    }

    /// As [`Lab::kubeconfig_for`] with any user entry, such as `{"tokenFile": …}`.
    pub fn kubeconfig_of(&self, server: Option<&str>, ca: Option<&Path>, user: &Value) -> String {
        let config = Kubeconfig::read_from(&self.inner.kubeconfig).expect("a kubeconfig");
        let cluster = config.clusters.into_iter().next().and_then(|named| named.cluster).expect("a cluster");
        let mut cluster = serde_json::to_value(cluster).unwrap();
        if let Some(server) = server {
            cluster["server"] = server.into();
        }
        if let Some(ca) = ca {
            cluster["certificate-authority"] = json!(ca);
            cluster.as_object_mut().unwrap().remove("certificate-authority-data");
        }
        let config: Value = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "c", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        });
        config.to_string()
    }
}

/// A client for a kubeconfig file.
pub async fn client(kubeconfig: &Path) -> kube::Client {
    let mut config = config(kubeconfig).await;
    // The audit log tells the tests from the product by this; the client would send none.
    config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static("sites-tests")));
    kube::Client::try_from(config).expect("a client")
}

/// The client settings of a kubeconfig file.
pub async fn config(kubeconfig: &Path) -> kube::Config {
    let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.expect("a usable kubeconfig")
}

/// Runs the product's binary and gives what it prints.
pub async fn sites(arguments: &[&str]) -> String {
    let out = tokio::process::Command::new(env!("CARGO_BIN_EXE_sites")).args(arguments).output().await.unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "`sites {}` failed: {stdout}{stderr}", arguments.join(" "));
    stdout.into_owned()
}
