//! `sites operator`: wires the process, runs it until a signal, stops it in order.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use anyhow::Context as _;
use ractor::Actor;
use secrecy::ExposeSecret;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::routes::RouteOwner;
use super::sites::SiteReconciler;
use super::sources::feeds;
use super::volumes::VolumeIndex;
use crate::cache::Cache;
use crate::cluster::{Cluster, ClusterOptions, Elector, Events, LeaseOptions};
use crate::engine::{Context, Engine, ObjectKey, Options, RegistryMessage, admin};
use crate::settings::Settings;
use crate::settings::types::LogFormat;
use crate::telemetry::Metrics;
use crate::telemetry::logging::{self, LogOptions};

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
    let instance = uuid::Uuid::now_v7().simple().to_string();
    let metrics = Metrics::new()?;
    let agent = format!("sites-operator/{}", env!("CARGO_PKG_VERSION"));
    let cluster = Cluster::connect(ClusterOptions {
        instance: instance.clone(),
        agent,
        call_timeout: operator.call_timeout.get(),
        calls_per_second: operator.calls_per_second,
        metrics: metrics.clone(),
    })
    .await?;
    let namespace = args.namespace.unwrap_or_else(|| cluster.namespace().to_owned());
    say_start(&settings, &cluster, &namespace, &instance).await;

    let stop_asked = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be received")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be received")?;

    let cache = cache(&settings)?;
    let (stale, mut stale_keys) = mpsc::unbounded_channel::<ObjectKey>();
    let cache_task = tokio::spawn(async move {
        while let Some(key) = stale_keys.recv().await {
            cache.clear_site(key.namespace(), key.name()).await;
        }
    });

    let volumes = Arc::new(RwLock::new(VolumeIndex::default()));
    let registry = Arc::new(std::sync::OnceLock::<ractor::ActorRef<RegistryMessage<SiteReconciler>>>::new());
    let waker = registry.clone();
    let wake = move |key: ObjectKey| {
        if let Some(registry) = waker.get() {
            // A registry that has ended wakes nobody.
            let _ = registry.cast(RegistryMessage::Nudge { key });
        }
    };
    let (routes, _) = Actor::spawn(None, RouteOwner, Box::new(wake)).await?;
    let reconciler = Arc::new(SiteReconciler {
        settings: settings.clone(),
        volumes: volumes.clone(),
        routes: routes.clone(),
        stale,
    });
    let events = Events::start(&cluster, "sites-operator", &instance);
    let context = Arc::new(Context::new(reconciler, cluster.clone(), options(&settings), metrics, events));
    let engine = Engine::start(context.clone(), feeds(&cluster, &settings, &namespace, &volumes)).await?;
    // Nobody is woken before: the first pass waits for the lists.
    let _ = registry.set(engine.registry().clone());
    let admin =
        admin::serve(operator.admin_address, context, engine.inspector(), namespace.clone(), stop_asked.clone())
            .await
            .with_context(|| format!("operator.admin_address {} cannot be bound", operator.admin_address))?;

    let election_stop = CancellationToken::new();
    let election = lead(&cluster, &settings, &namespace, &instance, election_stop.clone());
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    info!("stopping");
    let forced = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let orderly = async {
        engine.stop(operator.grace_period.get()).await;
        election_stop.cancel();
        if let Some(election) = election
            && election.await.is_err()
        {
            warn!("the Lease may not have been released");
        }
        routes.stop(None);
        stop_asked.cancel();
        let _ = admin.await;
        // Every sender is gone with the engine: the last keys are cleared, then the task ends.
        let _ = tokio::time::timeout(std::time::Duration::from_secs(2), cache_task).await;
    };
    tokio::select! {
        () = orderly => info!("stopped"),
        () = forced => warn!("stopped at once by a second signal"),
    }
    Ok(())
}

fn options(settings: &Settings) -> Options {
    let operator = &settings.operator;
    Options {
        concurrency: operator.worker_limit,
        retries: operator.retries,
        max_backoff: operator.max_backoff.get(),
        resync_period: operator.resync_period.get(),
        status_min_interval: operator.status_min_interval.get(),
        max_retries: operator.max_retries,
    }
}

fn cache(settings: &Settings) -> anyhow::Result<Cache> {
    if let Some(redis) = &settings.redis {
        return Ok(Cache::redis(redis.url.expose_secret())?);
    }
    info!("redis.url is not set: no cached copies are cleared");
    Ok(Cache::none())
}

/// Takes part in the election, or leads for good when it is off.
fn lead(
    cluster: &Cluster,
    settings: &Settings,
    namespace: &str,
    instance: &str,
    stop: CancellationToken,
) -> Option<tokio::task::JoinHandle<()>> {
    let lease = &settings.operator.lease;
    if !lease.enabled {
        cluster.leadership().always();
        return None;
    }
    let elector = Elector::new(
        cluster.clone(),
        LeaseOptions {
            namespace: lease.namespace.clone().unwrap_or_else(|| namespace.to_owned()),
            name: lease.name.clone(),
            identity: instance.to_owned(),
            duration: lease.duration.get(),
            renew_period: lease.renew_period.get(),
        },
    );
    Some(tokio::spawn(elector.run(stop)))
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
    tracing::debug!(packages = env!("SITES_PACKAGES"), "built from");
}
