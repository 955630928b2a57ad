//! `sites runtime init`: makes a volume ready before the site's servers start. Run again it changes nothing.
//!
//! Owns the first page and the upgrade of what older platforms left.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use super::config::SiteConfig;
use super::content::{Condition, Content, SitePath, WriteOptions};
use crate::telemetry::logging;

/// Form of the volume that this release makes.
const LAYOUT: u32 = 1;
/// Mode of the content root: nginx and a custom application only read or belong to its group.
const ROOT_MODE: u32 = 0o775;
/// The page of a new site.
const FIRST_PAGE: &str = include_str!("first_page.html");

/// What is remembered of earlier runs.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
struct Layout {
    version: u32,
    /// When the volume was first made ready. From then on an empty site is somebody's wish.
    since: Option<Timestamp>,
}

/// Makes the volume ready.
pub fn run() -> anyhow::Result<()> {
    let config = SiteConfig::load(&|name: &str| std::env::var(name).ok())?;
    logging::init(&config.log)?;
    let dir = &config.content_dir;
    let metadata = std::fs::metadata(dir).with_context(|| format!("SITE_CONTENT_DIR: {}", dir.display()))?;
    anyhow::ensure!(metadata.is_dir(), "SITE_CONTENT_DIR: {} is no folder", dir.display());
    if metadata.permissions().mode() & 0o777 != ROOT_MODE {
        // The root of a fresh volume belongs to root; its group is ours then, and that suffices.
        if let Err(error) = std::fs::set_permissions(dir, std::fs::Permissions::from_mode(ROOT_MODE)) {
            info!(%error, "the content root keeps its mode");
        }
    }
    let content = Arc::new(
        Content::open(dir, config.quota)
            .context("the content volume cannot be used: its root must be writable for the pod's user or group")?,
    );
    content.clean()?;
    let layout = content.state_file::<Layout>("layout.json")?;
    let known = layout.read()?;
    if known.version > LAYOUT {
        // A newer release was here: what it made it can read, and so can we, or we would have another number.
        warn!(found = known.version, ours = LAYOUT, "the volume was made ready by a newer release");
        return Ok(());
    }
    if known.since.is_none() && content.is_empty()? {
        first_page(&content, &config)?;
    }
    if known.version < LAYOUT {
        let upgraded = content.upgrade_links(&[dir.clone(), PathBuf::from("/data")])?;
        info!(links = upgraded.links, closed = upgraded.closed, "the volume has this release's layout");
        layout.update(|layout| {
            layout.version = LAYOUT;
            layout.since.get_or_insert_with(Timestamp::now);
            anyhow::Ok(())
        })?;
    }
    content.recount()?;
    info!(used = content.usage()?.used, "the volume is ready");
    Ok(())
}

fn first_page(content: &Arc<Content>, config: &SiteConfig) -> anyhow::Result<()> {
    // Letters, digits, '.', '_' and '-' only: nothing to escape.
    let name = if config.prefix.is_empty() { &config.id } else { config.prefix.trim_start_matches('/') };
    let page = FIRST_PAGE.replace("{{ name }}", name);
    let mut upload = content.write(SitePath::from_text("index.html")?, Some(page.len() as u64))?;
    upload.append(page.as_bytes())?;
    upload.finish(&WriteOptions { condition: Condition::Absent, ..WriteOptions::default() })?;
    info!("the first page is there");
    Ok(())
}
