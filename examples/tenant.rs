//! Another resource on the engine: a `Tenant` gets a namespace of its own, which goes with it.
//!
//! `tenant crd` prints the resource, `tenant rbac` what the operator may do, `tenant` runs it; what the engine can be
//! told comes from the environment (see `Configuration`). Its own part is `impl Reconcile for Namespaces`.

use std::str::FromStr;
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
use sites::engine::{Feeds, Options, Plain, PlainOptions, ProcessOptions, Reconcile, Reconciled, connect, rights, run};
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

struct Namespaces {
    requeue_after: Option<Duration>,
}

impl Reconcile for Namespaces {
    type Object = Tenant;

    const MODEL: &'static str = "tenants";

    async fn reconcile(&self, tenant: &Tenant, cluster: &Cluster) -> Result<Reconciled, CallError> {
        let name = namespace_of(tenant);
        let annotations = json!({"myapp.example.com/tenant": tenant.spec.name});
        let wanted = json!({"metadata": {"name": name, "annotations": annotations}});
        if cluster.read::<Namespace>(None, &name).await?.is_some() {
            cluster.merge_patch::<Namespace>(None, &name, &wanted).await?;
        } else {
            cluster.create_value(&Kind::new("", "v1", "Namespace", "namespaces", false), None, &wanted).await?;
        }
        let status = json!({"ready": true}).as_object().cloned().unwrap_or_default();
        Ok(Reconciled { status, requeue_after: self.requeue_after })
    }

    async fn finalize(&self, tenant: &Tenant, cluster: &Cluster) -> Result<(), CallError> {
        cluster.delete::<Namespace>(None, &namespace_of(tenant), &Precondition::default(), None).await?;
        Ok(())
    }
}

fn namespace_of(tenant: &Tenant) -> String {
    format!("tenant-{}", tenant.metadata.uid.as_deref().unwrap_or_default())
}

fn main() -> anyhow::Result<()> {
    let kind = Kind::of::<Tenant>();
    match std::env::args().nth(1).as_deref() {
        Some("crd") => print!("{}", serde_saphyr::to_string(&Tenant::crd())?),
        Some("rbac") => {
            let rules = [rights::of_resource(&kind, true), rights::of_process()].concat();
            print!("{}", serde_saphyr::to_string(&rules)?);
        }
        _ => tokio::runtime::Runtime::new()?.block_on(operate(&Configuration::from_environment()?))?,
    }
    Ok(())
}

/// What the environment says; every default but the finalizer's and the requeue time's is the engine's own.
struct Configuration {
    namespace: Option<String>,
    finalizer: Option<String>,
    requeue_after: Option<Duration>,
    admin: std::net::SocketAddr,
    election: Option<Election>,
    engine: Options,
}

impl Configuration {
    fn from_environment() -> anyhow::Result<Self> {
        let millis = |name, default| anyhow::Ok(variable(name)?.map_or(default, Duration::from_millis));
        let (engine, election) = (Options::default(), Election::of("tenant"));
        let finalizer = variable("FINALIZER")?.unwrap_or_else(|| "myapp.example.com/finalizer".to_owned());
        anyhow::Ok(Self {
            namespace: variable("NAMESPACE")?,
            finalizer: Some(finalizer).filter(|name| !name.is_empty()),
            requeue_after: Some(millis("REQUEUE_MS", Duration::from_secs(60))?).filter(|after| !after.is_zero()),
            admin: variable("ADMIN")?.unwrap_or_else(|| ([127, 0, 0, 1], 0).into()),
            election: variable("LEADER_ELECTION")?.unwrap_or(true).then_some(Election {
                name: variable("LEASE_NAME")?.unwrap_or(election.name),
                namespace: variable("LEASE_NAMESPACE")?.or(election.namespace),
                duration: millis("LEASE_DURATION_MS", election.duration)?,
                renew_period: millis("LEASE_RETRY_PERIOD_MS", election.renew_period)?,
            }),
            engine: Options {
                concurrency: variable("CONCURRENCY")?.unwrap_or(engine.concurrency),
                resync_period: millis("RESYNC_PERIOD_MS", engine.resync_period)?,
                max_backoff: millis("MAX_BACKOFF_MS", engine.max_backoff)?,
                max_retries: variable("MAX_RETRIES")?.unwrap_or(engine.max_retries),
                ..engine
            },
        })
    }
}

fn variable<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(name: &str) -> anyhow::Result<Option<T>> {
    let text = std::env::var(name).ok();
    text.map(|text| text.parse().map_err(|error| anyhow::Error::new(error).context(name.to_owned()))).transpose()
}

async fn operate(configuration: &Configuration) -> anyhow::Result<()> {
    logging::init(&LogOptions { json: true, level: "INFO".to_owned(), dependency_level: "INFO".to_owned() })?;
    let connected = connect("tenant-operator/1", Duration::from_secs(30), 100).await?;
    let namespace = configuration.namespace.clone().unwrap_or_else(|| connected.cluster.namespace().to_owned());
    let spec = WatchSpec { ns: Some(namespace.clone()), ..WatchSpec::default() };
    let objects = watch::<Tenant>(&connected.cluster, spec, |_| {}).boxed();
    let around =
        PlainOptions { finalizer: configuration.finalizer.clone(), max_retries: configuration.engine.max_retries };
    let options = ProcessOptions {
        name: "tenant-operator".to_owned(),
        namespace,
        election: configuration.election.clone(),
        admin_address: configuration.admin,
        grace: Duration::from_secs(20),
        engine: configuration.engine.clone(),
    };
    let feeds = Feeds { objects, related: Vec::new() };
    let resource = Plain::new(Namespaces { requeue_after: configuration.requeue_after }, around);
    run(connected, Arc::new(resource), feeds, options, std::future::pending(), |_| {}).await?;
    Ok(())
}
