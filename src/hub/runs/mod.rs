//! Bulk runs: one action on many Sites, paced, followed to its end, and finished by another replica if this one dies.
//!
//! | module | owns |
//! |---|---|
//! | [`plan`] | which Sites a run is about. Pure |
//! | [`judge`] | what became of a Site, and how far behind the operator is. Pure |
//! | `step` | what a run does to one Site |
//! | `work` | one run from its first Site to its last |
//! | `actor` | that each run has a worker, and no more than one of a kind works here |
//!
//! What must not happen twice is guarded by [`crate::cache::runs`].

mod actor;
pub mod judge;
pub mod plan;
mod step;
mod work;

use std::sync::Arc;

use futures::FutureExt;
use jiff::Timestamp;
use ractor::{ActorRef, SpawnErr};
use uuid::Uuid;

use self::actor::RunActor;
pub use self::actor::RunMessage;
use self::work::Parts;
use super::actor::Ended;
use super::catalog::Catalog;
use super::catalog::query::{Query, Viewer};
use super::error::ApiError;
use crate::cache::runs::{RunKind, RunRecord, RunState, RunTimes, SiteState};
use crate::cache::{Cache, key_space};
use crate::cluster::Cluster;
use crate::domain::application::{Builtin, Catalog as Images};
use crate::settings::Settings;
use crate::telemetry::Metrics;

/// Begins runs; cheap to clone.
#[derive(Clone, Debug)]
pub struct Runs {
    parts: Arc<Parts>,
    upgrade: ActorRef<RunMessage>,
    restart: ActorRef<RunMessage>,
}

/// A run that has begun.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    /// The run.
    pub run: Uuid,
    /// Sites whose turn will come.
    pub queued: usize,
    /// Sites with nothing to do.
    pub skipped: usize,
}

/// The platform's images, as the operator renders them.
pub fn images(settings: &Settings) -> anyhow::Result<Images> {
    let configured = Builtin::ALL.into_iter().filter(|builtin| *builtin != Builtin::Custom);
    let configured = configured.map(|builtin| (builtin, settings.image(builtin.name())));
    Images::new(configured, &settings.site.legacy_image_patterns)
        .map_err(|error| anyhow::anyhow!("site.legacy_image_patterns is not a list of regular expressions: {error}"))
}

impl Runs {
    /// Starts the two actors. The future ends with the first of them and names it.
    pub async fn start(
        settings: &Settings,
        images: Arc<Images>,
        (cluster, namespace): (Cluster, Arc<str>),
        catalog: Catalog,
        cache: Cache,
        metrics: &Metrics,
    ) -> Result<(Self, Ended), SpawnErr> {
        let bulk = settings.hub.bulk.clone();
        let times = RunTimes { lock: bulk.lock_ttl.get(), lease: bulk.lease.get() };
        let parts = Arc::new(Parts { cluster, namespace, catalog, cache, bulk, times, images });
        let (upgrade, first) = RunActor::start(RunKind::Upgrade, parts.clone(), metrics).await?;
        let (restart, second) = RunActor::start(RunKind::Restart, parts.clone(), metrics).await?;
        let ended = futures::future::select(first, second).map(|either| either.factor_first().0);
        Ok((Self { parts, upgrade, restart }, ended.boxed()))
    }

    /// Begins a run over every Site, if none of its kind is under way. Writes no Site itself.
    pub async fn begin(&self, kind: RunKind, force: bool, by: &str) -> Result<Begun, ApiError> {
        let Parts { namespace, catalog, cache, images, times, .. } = &*self.parts;
        if !catalog.synced() {
            return Err(ApiError::Unavailable(
                "the list of Sites is not complete yet: try again in a minute".to_owned(),
            ));
        }
        let now = Timestamp::now();
        let all = catalog.read().find(&Viewer::Everything, &Query::default());
        let sites = plan::planned(all.iter().map(|entry| &entry.site), kind, force, images, now);
        let record = RunRecord {
            id: Uuid::new_v4(),
            kind,
            force,
            by: by.to_owned(),
            started_at: now,
            ended_at: None,
            state: RunState::Running,
            message: None,
        };
        let Some(run) = cache.begin_run(namespace, &record, &sites, *times).await? else {
            let holder = cache.holder(&key_space::lock(namespace, kind.lock())).await.ok().flatten();
            let which = holder.map(|run| format!(" ({run})")).unwrap_or_default();
            let word = kind.word();
            return Err(ApiError::conflict(format!(
                "a bulk {word} is under way{which}: wait for its end, or cancel it"
            )));
        };
        let actor = match kind {
            RunKind::Upgrade => &self.upgrade,
            RunKind::Restart => &self.restart,
        };
        // Without the actor the process ends, and another goes on with the run.
        let _ = actor.cast(RunMessage::Begun(Box::new(run)));
        let queued = sites.values().filter(|site| site.state == SiteState::Queued).count();
        tracing::info!(run = %record.id, kind = kind.word(), force, by, queued, "a bulk run begins");
        Ok(Begun { run: record.id, queued, skipped: sites.len() - queued })
    }
}
