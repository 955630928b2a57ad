//! `sites hub`: puts the parts together, answers until it is told to stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use secrecy::ExposeSecret;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use super::auth::Auth;
use super::catalog::Catalog;
use super::health::Health;
use super::limits::Limits;
use super::notify::Notifier;
use super::platform::Switch;
use super::pod_http::Pods;
use super::reports::{Reports, Sources};
use super::router;
use super::runs::{Runs, images};
use super::site_api::SiteApi;
use super::state::Hub;
use crate::cache::Cache;
use crate::engine::connect;
use crate::settings::Settings;
use crate::settings::types::LogFormat;
use crate::telemetry::logging::{self, LogOptions};

const NAME: &str = "sites-hub";
/// Longest time a single API call may take: a person waits for it.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Most API calls a second.
const CALLS_PER_SECOND: u32 = 500;
/// Time that requests in flight get to finish on stop.
const GRACE: Duration = Duration::from_secs(20);

/// Arguments of the role.
#[derive(clap::Args, Debug)]
pub struct HubArgs {
    /// The platform's settings.
    #[arg(long, env = "SITES_CONFIG", default_value = "/etc/sites/config.yaml")]
    config: PathBuf,
    /// Namespace of the platform and its Sites. Default: that of the credentials.
    #[arg(long, env = "NAMESPACE")]
    namespace: Option<String>,
}

/// Runs the Hub until SIGTERM or SIGINT.
pub async fn run(args: HubArgs) -> anyhow::Result<()> {
    let settings = Arc::new(Settings::load(&args.config, std::env::vars())?);
    let hub = &settings.hub;
    logging::init(&LogOptions {
        json: hub.log_format == LogFormat::Json,
        level: hub.log_level.clone(),
        dependency_level: hub.dependency_log_level.clone(),
    })?;
    let agent = format!("{NAME}/{}", env!("CARGO_PKG_VERSION"));
    let connected = connect(&agent, CALL_TIMEOUT, CALLS_PER_SECOND).await?;
    let cluster = connected.cluster;
    // Every replica of the Hub writes: what must not happen twice has a lock of its own.
    cluster.leadership().always();
    let namespace = args.namespace.unwrap_or_else(|| cluster.namespace().to_owned());
    let cache = settings.redis.as_ref().map_or_else(
        || {
            info!("redis.url is not set: bulk runs, reports, sign-out everywhere and cached copies are off");
            Ok(Cache::none())
        },
        |redis| Cache::redis(redis.url.expose_secret()),
    )?;
    let (catalog, catalog_ended) = Catalog::start(&cluster, &namespace, settings.host(), &connected.metrics).await?;
    let namespace: Arc<str> = namespace.into();
    let pods = Pods::new(&hub.site_address, &namespace)?;
    let images = Arc::new(images(&settings)?);
    let (runs, runs_ended) = Runs::start(
        &settings,
        images.clone(),
        (cluster.clone(), namespace.clone()),
        catalog.clone(),
        cache.clone(),
        &connected.metrics,
    )
    .await?;
    let (health, health_ended) =
        Health::start(pods.clone(), namespace.clone(), catalog.clone(), cache.clone(), &connected.metrics).await?;
    let sources = Sources {
        cluster: cluster.clone(),
        namespace: namespace.clone(),
        catalog: catalog.clone(),
        cache: cache.clone(),
        health: health.clone(),
        pods: pods.clone(),
    };
    let (reports, reports_ended) = Reports::start(sources, &connected.metrics).await?;
    let actors = [catalog_ended, runs_ended, health_ended, reports_ended];
    let state = Hub {
        auth: Auth::new(&settings, &namespace, &cache)?,
        limits: Limits::new(hub),
        settings: settings.clone(),
        cluster,
        namespace,
        catalog,
        cache,
        images,
        runs,
        reports,
        health,
        switch: Switch::default(),
        site_api: SiteApi::new(pods, hub.site_api_timeout.get()),
        notifier: Notifier::new(&settings)?,
    };
    if settings.shares_host() {
        warn!(
            "sites share the Hub's host, and with it a browser's session: set routing.hub_host; until then master \
               tokens, deletion and bulk actions ask people for a fresh login"
        );
    }
    let listener =
        TcpListener::bind(hub.address).await.with_context(|| format!("hub.address {} cannot be used", hub.address))?;
    info!(
        version = env!("CARGO_PKG_VERSION"),
        address = %listener.local_addr()?,
        public = settings.hub_url().as_deref().unwrap_or("none: routing.host is not set"),
        "sites hub starts"
    );
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (told, mut stop) = tokio::sync::watch::channel(());
    let serving = axum::serve(listener, router::router(&state).into_make_service_with_connect_info::<SocketAddr>())
        .with_graceful_shutdown(async move {
            tokio::select! { _ = terminate.recv() => (), _ = interrupt.recv() => () }
            info!("stopping: requests in flight may finish");
            told.send_replace(());
        });
    let late = async {
        // The sender is gone only when the server is, and then the other branch has ended.
        if stop.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = async { serving.await } => served?,
        (actor, ..) = futures::future::select_all(actors) => bail!("the {actor} actor has ended, the Hub cannot go on"),
        () = late => info!("requests that did not finish in time are cut"),
    }
    Ok(())
}
