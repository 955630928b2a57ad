//! `sites operator`: wires the engine to the Sites.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, RwLock};
use std::time::Duration;

use ractor::ActorRef;
use secrecy::ExposeSecret;
use tokio::sync::mpsc;
use tracing::{debug, info};

use super::routes;
use super::sites::SiteReconciler;
use super::sources::feeds;
use super::volumes::VolumeIndex;
use crate::cache::Cache;
use crate::cluster::Cluster;
use crate::engine::process::Election;
use crate::engine::{ObjectKey, Options, ProcessOptions, RegistryMessage, connect, run as run_engine};
use crate::settings::Settings;
use crate::settings::types::LogFormat;
use crate::telemetry::logging::{self, LogOptions};

const NAME: &str = "sites-operator";
/// Time for the last cached copies to be cleared on stop.
const LAST_CLEARING: Duration = Duration::from_secs(2);

/// Arguments of the role.
#[derive(clap::Args, Debug)]
pub struct OperatorArgs {
    /// The platform's settings.
    #[arg(long, env = "SITES_CONFIG", default_value = "/etc/sites/config.yaml")]
    config: PathBuf,
    /// Namespace of the platform and its Sites. Default: that of the credentials.
    #[arg(long, env = "NAMESPACE")]
    namespace: Option<String>,
}

/// Runs the operator until SIGTERM or SIGINT.
pub async fn run(args: OperatorArgs) -> anyhow::Result<()> {
    let settings = Arc::new(Settings::load(&args.config, std::env::vars())?);
    let operator = &settings.operator;
    logging::init(&LogOptions {
        json: operator.log_format == LogFormat::Json,
        level: operator.log_level.clone(),
        dependency_level: operator.dependency_log_level.clone(),
    })?;
    let agent = format!("{NAME}/{}", env!("CARGO_PKG_VERSION"));
    let connected = connect(&agent, operator.call_timeout.get(), operator.calls_per_second).await?;
    let cluster = connected.cluster.clone();
    let namespace = args.namespace.unwrap_or_else(|| cluster.namespace().to_owned());
    say_start(&settings, &cluster, &namespace, &connected.instance).await;

    let cache = cache(&settings)?;
    let (stale, mut stale_keys) = mpsc::unbounded_channel::<ObjectKey>();
    let clearing = tokio::spawn(async move {
        while let Some(key) = stale_keys.recv().await {
            cache.clear_site(key.namespace(), key.name()).await;
        }
    });
    let volumes = Arc::new(RwLock::new(VolumeIndex::default()));
    let registry = Arc::new(OnceLock::<ActorRef<RegistryMessage<SiteReconciler>>>::new());
    let waker = registry.clone();
    let wake = move |key: ObjectKey| {
        if let Some(registry) = waker.get() {
            // A registry that has ended wakes nobody.
            let _ = registry.cast(RegistryMessage::Nudge { key });
        }
    };
    let (routes, routes_ended) = routes::start(Box::new(wake)).await?;
    let reconciler = Arc::new(SiteReconciler {
        settings: settings.clone(),
        volumes: volumes.clone(),
        routes: routes.clone(),
        stale,
    });
    let feeds = feeds(&cluster, &settings, &namespace, &volumes);
    let options = process_options(&settings, namespace);
    run_engine(connected, reconciler, feeds, options, routes_ended, move |engine| {
        // Set once, before anybody can be woken: the first pass waits for the lists.
        let _ = registry.set(engine.registry().clone());
    })
    .await?;
    routes.stop(None);
    // Every sender is gone with the engine: the last keys are cleared, then the task ends.
    if tokio::time::timeout(LAST_CLEARING, clearing).await.is_err() {
        info!("cached copies may be out of date: the cache did not answer in time");
    }
    Ok(())
}

/// How the process runs, by the settings.
#[must_use]
pub fn process_options(settings: &Settings, namespace: String) -> ProcessOptions {
    let operator = &settings.operator;
    let lease = &operator.lease;
    ProcessOptions {
        name: NAME.to_owned(),
        namespace,
        election: lease.enabled.then(|| Election {
            name: lease.name.clone(),
            namespace: lease.namespace.clone(),
            duration: lease.duration.get(),
            renew_period: lease.renew_period.get(),
        }),
        admin_address: operator.admin_address,
        grace: operator.grace_period.get(),
        engine: Options {
            concurrency: operator.worker_limit,
            retries: operator.retries,
            max_backoff: operator.max_backoff.get(),
            resync_period: operator.resync_period.get(),
            status_min_interval: operator.status_min_interval.get(),
            max_retries: operator.max_retries,
        },
    }
}

fn cache(settings: &Settings) -> anyhow::Result<Cache> {
    if let Some(redis) = &settings.redis {
        return Ok(Cache::redis(redis.url.expose_secret())?);
    }
    info!("redis.url is not set: no cached copies are cleared");
    Ok(Cache::none())
}

async fn say_start(settings: &Settings, cluster: &Cluster, namespace: &str, instance: &str) {
    let server = cluster.version().await.unwrap_or_else(|error| format!("unknown ({error})"));
    info!(
        version = env!("CARGO_PKG_VERSION"),
        rust = env!("CARGO_PKG_RUST_VERSION"),
        kubernetes = server,
        instance,
        namespace,
        routing = ?settings.routing.mode,
        worker_limit = settings.operator.worker_limit,
        "sites operator starts"
    );
    debug!(packages = env!("SITES_PACKAGES"), "built from");
}
