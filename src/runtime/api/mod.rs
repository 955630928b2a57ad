//! `sites runtime api`: the Site API and nginx's questions, on loopback.
//!
//! Owns the wire: paths, options, bodies, answers. Decisions are [`super::access`]'s, files are [`super::content`]'s.

#![allow(unused_qualifications, reason = "written by utoipa's macros")]

mod answer;
mod asked;
mod download;
mod error;
mod files;
mod front;
mod private;
mod router;
mod site;
mod symlinks;
mod tokens;
mod transfer;
mod upload;
mod urls;

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::access::Access;
use super::config::{self, SiteConfig};
use super::content::Content;
use super::serve::serve;
use crate::telemetry::logging;

pub(super) use download::content_type;
pub use router::document;

/// Time between two counts of what the site uses.
const RECOUNT_PERIOD: Duration = Duration::from_secs(600);

/// What handlers share.
#[derive(Clone)]
pub struct Api {
    content: Arc<Content>,
    access: Arc<Access>,
    config: Arc<SiteConfig>,
}

/// Serves until it is told to stop.
pub async fn run() -> anyhow::Result<()> {
    let environment = |name: &str| std::env::var(name).ok();
    let config = SiteConfig::load(&environment)?;
    let address = config::listen(&environment, "SITE_API_LISTEN")?;
    logging::init(&config.log)?;
    let content = Arc::new(Content::open(&config.content_dir, config.quota)?);
    let access = Arc::new(Access::open(&config, &content)?);
    tokio::spawn(upkeep(content.clone()));
    let front = router::front(&Api { content, access, config: Arc::new(config) });
    let broken = || error::plain(StatusCode::INTERNAL_SERVER_ERROR, "the site's server failed; its log says why");
    serve(address, "api", move |request| front.clone().answer(request), broken).await
}

/// Removes what others left half-done and counts what they changed.
async fn upkeep(content: Arc<Content>) {
    let mut ticks = tokio::time::interval(RECOUNT_PERIOD);
    loop {
        ticks.tick().await;
        let content = content.clone();
        match tokio::task::spawn_blocking(move || content.clean().and_then(|()| content.recount())).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the content could not be counted"),
            Err(error) => tracing::error!(%error, "counting failed"),
        }
    }
}
