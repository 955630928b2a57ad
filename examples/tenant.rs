//! Another resource on the engine: a `Tenant` gets a namespace of its own, which goes with it.
//!
//! `tenant crd` prints the resource, `tenant rbac` what the operator may do, `tenant` runs it
//! (`NAMESPACE`, `ADMIN`, `KUBECONFIG` from the environment). Its own part is `impl Reconcile for Namespaces`.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sites::cluster::{CallError, Cluster, Kind, Precondition, WatchSpec, watch};
use sites::engine::process::Election;
use sites::engine::{Feeds, Options, Plain, ProcessOptions, Reconcile, Reconciled, connect, rights, run};
use sites::telemetry::logging::{self, LogOptions};

/// Who gets a namespace.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "myapp.example.com", version = "v1", kind = "Tenant", namespaced, status = "TenantStatus")]
pub struct TenantSpec {
    /// Shown on the namespace.
    pub name: String,
}

/// Whether it is there.
#[derive(Serialize, Deserialize, Clone, Debug, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantStatus {
    ready: Option<bool>,
    observed_generation: Option<i64>,
    #[serde(default)]
    conditions: Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition>,
}

struct Namespaces;

impl Namespaces {
    fn name(tenant: &Tenant) -> String {
        format!("tenant-{}", tenant.metadata.uid.as_deref().unwrap_or_default())
    }
}

impl Reconcile for Namespaces {
    type Object = Tenant;

    const MODEL: &'static str = "tenants";
    const FINALIZER: Option<&'static str> = Some("myapp.example.com/finalizer");

    async fn reconcile(&self, tenant: &Tenant, cluster: &Cluster) -> Result<Reconciled, CallError> {
        let annotations = json!({"myapp.example.com/tenant": tenant.spec.name});
        let wanted = json!({"metadata": {"name": Self::name(tenant), "annotations": annotations}});
        if cluster.read::<Namespace>(None, &Self::name(tenant)).await?.is_some() {
            cluster.merge_patch::<Namespace>(None, &Self::name(tenant), &wanted).await?;
        } else {
            cluster.create_value(&Kind::new("", "v1", "Namespace", "namespaces", false), None, &wanted).await?;
        }
        let status = json!({"ready": true}).as_object().cloned().unwrap_or_default();
        Ok(Reconciled { status, requeue_after: Some(Duration::from_secs(60)) })
    }

    async fn finalize(&self, tenant: &Tenant, cluster: &Cluster) -> Result<(), CallError> {
        cluster.delete::<Namespace>(None, &Self::name(tenant), &Precondition::default(), None).await?;
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    let kind = Kind::of::<Tenant>();
    match std::env::args().nth(1).as_deref() {
        Some("crd") => print!("{}", serde_saphyr::to_string(&Tenant::crd())?),
        Some("rbac") => {
            let rules = [rights::of_resource(&kind, true), rights::of_process()].concat();
            print!("{}", serde_saphyr::to_string(&rules)?);
        }
        _ => {
            anyhow::ensure!(rustls::crypto::ring::default_provider().install_default().is_ok(), "TLS");
            tokio::runtime::Runtime::new()?.block_on(operate())?;
        }
    }
    Ok(())
}

async fn operate() -> anyhow::Result<()> {
    logging::init(&LogOptions { json: true, level: "INFO".to_owned(), dependency_level: "INFO".to_owned() })?;
    let period = |name: &str, default: u64| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse().ok())
            .map_or(Duration::from_millis(default), Duration::from_millis)
    };
    let connected = connect("tenant-operator/1", Duration::from_secs(30), 100).await?;
    let namespace = std::env::var("NAMESPACE").unwrap_or_else(|_| connected.cluster.namespace().to_owned());
    let spec = WatchSpec { ns: Some(namespace.clone()), ..WatchSpec::default() };
    let objects = watch::<Tenant>(&connected.cluster, spec, |_| {}).boxed();
    let options = ProcessOptions {
        name: "tenant-operator".to_owned(),
        namespace,
        election: Some(Election::of("tenant")),
        admin_address: std::env::var("ADMIN").unwrap_or_else(|_| "127.0.0.1:0".to_owned()).parse()?,
        grace: Duration::from_secs(20),
        engine: Options {
            resync_period: period("RESYNC_MS", 300_000),
            max_backoff: period("MAX_BACKOFF_MS", 300_000),
            ..Options::default()
        },
    };
    let feeds = Feeds { objects, related: Vec::new(), optional: Vec::new() };
    run(connected, Arc::new(Plain::new(Namespaces, 5)), feeds, options, |_| {}).await?;
    Ok(())
}
