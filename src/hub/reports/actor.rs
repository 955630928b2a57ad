//! The actor of the reports: first in, first out, one at a time on the whole platform.
//!
//! The queue and its lock are Redis's, so a report whose maker died is made by another. A report leaves the queue when
//! it has ended, not before.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ractor::{Actor, ActorProcessingErr, ActorRef, SpawnErr};
use tracing::{info, warn};

use super::super::actor::{Ended, started};
use super::super::catalog::Catalog;
use super::super::catalog::query::{Query, Viewer};
use super::super::health::Health;
use super::super::health::probe::BOUNDS;
use super::super::pod_http::{Pods, Question};
use super::super::sites::master_token;
use super::rows::{self, Table, Usage};
use super::{RETENTION, Report, ReportKind, ReportState};
use crate::cache::{Cache, CacheError, key_space};
use crate::cluster::Cluster;
use crate::domain::site::Site;
use crate::telemetry::Metrics;

/// Name of the actor in metrics.
const ACTOR: &str = "report";
/// Name of the lock.
const LOCK: &str = "sites-report";
/// End of the lock without a renewal.
const LOCK_TTL: Duration = Duration::from_secs(30);
/// Time between two looks at a queue that nobody here added to.
const LOOK: Duration = Duration::from_secs(10);
/// Sites that are asked for their usage at the same time.
const AT_ONCE: usize = 16;

/// Messages.
#[derive(Debug)]
pub enum ReportMessage {
    /// Is a report asked for?
    Look,
    /// The look has come to its end.
    Ended,
}

/// Where the rows come from; cheap to clone.
#[derive(Clone)]
pub struct Sources {
    /// The way to the API server.
    pub cluster: Cluster,
    /// Namespace of the platform.
    pub namespace: Arc<str>,
    /// The Sites.
    pub catalog: Catalog,
    /// The queue and the reports.
    pub cache: Cache,
    /// The watched Sites.
    pub health: Health,
    /// The way to the Sites' pods.
    pub pods: Pods,
}

/// The actor's type.
pub struct Reporter;

/// The actor's memory.
pub struct ReporterState {
    sources: Sources,
    /// A look is under way.
    busy: bool,
    /// A report was asked for meanwhile.
    again: bool,
}

impl Reporter {
    /// Starts it.
    pub async fn start(sources: Sources, metrics: &Metrics) -> Result<(ActorRef<ReportMessage>, Ended), SpawnErr> {
        let on = sources.cache.is_on();
        let (actor, ended) = started(ACTOR, Self, sources, metrics).await?;
        if on {
            actor.send_interval(LOOK, || ReportMessage::Look);
        }
        Ok((actor, ended))
    }
}

impl Actor for Reporter {
    type Msg = ReportMessage;
    type State = ReporterState;
    type Arguments = Sources;

    async fn pre_start(
        &self,
        _: ActorRef<ReportMessage>,
        sources: Sources,
    ) -> Result<ReporterState, ActorProcessingErr> {
        Ok(ReporterState { sources, busy: false, again: false })
    }

    async fn handle(
        &self,
        myself: ActorRef<ReportMessage>,
        message: ReportMessage,
        state: &mut ReporterState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ReportMessage::Look if state.busy => state.again = true,
            ReportMessage::Look => state.look(myself),
            ReportMessage::Ended => {
                state.busy = false;
                if std::mem::take(&mut state.again) {
                    state.look(myself);
                }
            }
        }
        Ok(())
    }
}

impl ReporterState {
    fn look(&mut self, myself: ActorRef<ReportMessage>) {
        // A report of a list that is not complete would be wrong.
        if !self.sources.catalog.synced() {
            return;
        }
        self.busy = true;
        let sources = self.sources.clone();
        tokio::spawn(async move {
            // That Redis is down was said already; the next look finds the queue as it is.
            if let Err(error) = queue(&sources).await {
                tracing::debug!(%error, "the queue of reports was left");
            }
            let _ = myself.cast(ReportMessage::Ended);
        });
    }
}

/// Makes the reports that wait, if no other replica does.
async fn queue(sources: &Sources) -> Result<(), CacheError> {
    let Sources { cache, namespace, .. } = sources;
    if cache.next_report(namespace).await?.is_none() {
        return Ok(());
    }
    let Some(lock) = cache.lock(key_space::lock(namespace, LOCK), LOCK_TTL).await? else { return Ok(()) };
    while let Some(id) = cache.next_report(namespace).await? {
        if !lock.held() {
            return Ok(());
        }
        if let Some(report) = cache.report::<Report>(namespace, &id).await? {
            make(sources, &id, report).await?;
        }
        cache.end_report(namespace, &id).await?;
    }
    lock.release().await
}

async fn make(sources: &Sources, id: &str, report: Report) -> Result<(), CacheError> {
    let Sources { cache, namespace, .. } = sources;
    let report = Report { state: ReportState::Working, ..report };
    cache.keep_report::<_, Table>(namespace, id, &report, None, RETENTION).await?;
    // In a task of its own: a panic is the failure of one report.
    let (kind, from) = (report.kind, sources.clone());
    let table = tokio::spawn(async move { table(&from, kind).await }).await;
    let ended_at = Some(Timestamp::now());
    let Ok(table) = table else {
        warn!(report = id, ?kind, "a report could not be made");
        let report = Report { state: ReportState::Failed, ended_at, ..report };
        return cache.keep_report::<_, Table>(namespace, id, &report, None, RETENTION).await;
    };
    let report = Report { state: ReportState::Done, ended_at, count: table.rows.len(), ..report };
    cache.keep_report(namespace, id, &report, Some(&table), RETENTION).await?;
    info!(report = id, ?kind, rows = table.rows.len(), by = report.by, "a report is made");
    Ok(())
}

async fn table(sources: &Sources, kind: ReportKind) -> Table {
    let all = sources.catalog.read().find(&Viewer::Everything, &Query::default());
    let sites = all.iter().map(|entry| &entry.site);
    match kind {
        ReportKind::Inventory => rows::inventory(sites),
        ReportKind::Retention => rows::retention(sites, Timestamp::now().to_zoned(TimeZone::UTC).date()),
        ReportKind::Health => rows::health(&sources.health.report().await),
        ReportKind::Usage => {
            let asked = futures::stream::iter(all.to_vec()).map(|entry| {
                let sources = sources.clone();
                async move { usage(&sources, &entry.site).await }
            });
            let usages: Vec<Option<Usage>> = asked.buffered(AT_ONCE).collect().await;
            rows::usage(sites.zip(usages))
        }
    }
}

/// What a Site's own API says. The master token is read for this one question: the list of Sites has none.
async fn usage(sources: &Sources, site: &Site) -> Option<Usage> {
    #[derive(serde::Deserialize)]
    struct Answer {
        used: u64,
        quota: Option<u64>,
    }
    if !site.enabled() {
        return None;
    }
    let full = sources.cluster.read::<Site>(Some(&*sources.namespace), &site.spec.id).await.ok()??;
    let question = Question::get("/s/api/v2/usage", Some(master_token::of(&full)?));
    let (status, body) = sources.pods.ask(&full, question, BOUNDS).await.ok()?;
    let answer: Answer = (status == 200).then(|| serde_json::from_slice(&body).ok())??;
    Some(Usage { used: answer.used, limit: answer.quota })
}
