//! `sites hub`: binds the port, answers until it is told to stop.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

use super::router;
use crate::settings::Settings;
use crate::settings::types::LogFormat;
use crate::telemetry::logging::{self, LogOptions};

/// Time that requests in flight get to finish on stop.
const GRACE: Duration = Duration::from_secs(20);

/// Arguments of the role.
#[derive(clap::Args, Debug)]
pub struct HubArgs {
    /// The platform's settings.
    #[arg(long, env = "SITES_CONFIG", default_value = "/etc/sites/config.yaml")]
    config: PathBuf,
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
    let serving = axum::serve(listener, router::router(settings.clone())).with_graceful_shutdown(async move {
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
        () = late => info!("requests that did not finish in time are cut"),
    }
    Ok(())
}
