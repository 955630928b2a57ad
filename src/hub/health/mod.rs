//! Whether the Sites that the platform team watches are well: what their status says, and what a probe says.
//!
//! | module | owns |
//! |---|---|
//! | [`probe`] | one question to a Site's own pod, bounded in every way |
//! | `actor` | a round of probes at a time |

mod actor;
pub mod probe;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorRef, SpawnErr};
use serde::Serialize;
use utoipa::ToSchema;

pub use self::actor::HealthMessage;
use self::actor::Prober;
use self::probe::Probe;
use super::actor::Ended;
use super::catalog::Catalog;
use super::catalog::query::{Query, Viewer};
use super::error::ApiError;
use super::pod_http::Pods;
use crate::cache::{Cache, key_space};
use crate::domain::conditions;
use crate::domain::site::{Phase, Site};
use crate::telemetry::Metrics;

/// Name of the lock: one round at a time.
const LOCK: &str = "sites-health-probe";
/// End of the lock without a renewal.
const LOCK_TTL: Duration = Duration::from_secs(30);
/// How long the answers are kept.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

/// The health of the watched Sites; cheap to clone.
#[derive(Clone, Debug)]
pub struct Health {
    namespace: Arc<str>,
    catalog: Catalog,
    cache: Cache,
    actor: ActorRef<HealthMessage>,
}

/// One Site of the report.
#[derive(Serialize, ToSchema, Clone, Debug)]
pub struct SiteHealth {
    /// Id of the Site.
    pub id: String,
    /// First segment of its path.
    pub space: Option<String>,
    /// Second segment of its path.
    pub name: Option<String>,
    /// Who owns it.
    pub owner: String,
    /// Running, answering if it was asked, and reconciled.
    pub healthy: bool,
    /// The pods' state in one word.
    #[schema(value_type = String)]
    pub phase: Phase,
    /// Whether every step has started.
    pub all_steps_started: bool,
    /// What is wrong, in words; empty for a healthy Site.
    pub problems: Vec<String>,
    /// What the last probe said; none if the Site was not probed in the last seven days.
    pub probe: Option<Probe>,
}

/// The health report.
#[derive(Serialize, ToSchema, Clone, Debug)]
pub struct HealthReport {
    /// Monitored and enabled Sites.
    pub count: usize,
    /// How many of them are healthy.
    pub healthy: usize,
    /// Whether probes could be read; without Redis there are none.
    pub probes_known: bool,
    /// Those with problems first, then by id.
    pub sites: Vec<SiteHealth>,
}

impl Health {
    /// Starts the actor.
    pub async fn start(
        pods: Pods,
        namespace: Arc<str>,
        catalog: Catalog,
        cache: Cache,
        metrics: &Metrics,
    ) -> Result<(Self, Ended), SpawnErr> {
        let (actor, ended) = Prober::start(pods, namespace.clone(), cache.clone(), metrics).await?;
        Ok((Self { namespace, catalog, cache, actor }, ended))
    }

    /// The report as it is now. Without Redis it has no probes.
    pub async fn report(&self) -> HealthReport {
        let probes = self.cache.probes::<Probe>(&self.namespace).await;
        let probes_known = probes.is_ok();
        let mut probes: BTreeMap<String, Probe> = probes.unwrap_or_default();
        let mut sites: Vec<SiteHealth> =
            self.watched().iter().map(|site| health(site, probes.remove(&site.spec.id))).collect();
        sites.sort_by(|a, b| (a.healthy, &a.id).cmp(&(b.healthy, &b.id)));
        let healthy = sites.iter().filter(|site| site.healthy).count();
        HealthReport { count: sites.len(), healthy, probes_known, sites }
    }

    /// Probes the watched Sites in the background; the number of them.
    pub async fn probe(&self) -> Result<usize, ApiError> {
        let Some(lock) = self.cache.lock(key_space::lock(&self.namespace, LOCK), LOCK_TTL).await? else {
            return Err(ApiError::conflict("the Sites are being probed already: ask for the report in a moment"));
        };
        let sites = self.watched();
        let count = sites.len();
        // Without the actor the process ends, and the lock with it.
        let _ = self.actor.cast(HealthMessage::Probe { sites, lock });
        Ok(count)
    }

    /// Monitored and enabled Sites.
    fn watched(&self) -> Vec<Site> {
        let all = self.catalog.read().find(&Viewer::Everything, &Query { enabled_only: true, ..Query::default() });
        all.iter().filter(|entry| entry.site.monitored()).map(|entry| entry.site.clone()).collect()
    }
}

fn health(site: &Site, probe: Option<Probe>) -> SiteHealth {
    let status = site.status.clone().unwrap_or_default();
    let phase = status.phase.unwrap_or_default();
    let mut problems: Vec<String> = Vec::new();
    if phase != Phase::Running {
        problems.push(format!("the pods are {}", format!("{phase:?}").to_lowercase()));
    } else if !status.all_steps_started {
        problems.push("not every step has started".to_owned());
    }
    problems.extend(status.container_problems.iter().map(|problem| {
        let message = if problem.message.is_empty() { String::new() } else { format!(": {}", problem.message) };
        format!("{} is {}: {}{message}", problem.name, problem.kind, problem.reason)
    }));
    let ready = conditions::find(&status.conditions, conditions::READY);
    problems.extend(
        ready
            .filter(|ready| ready.status == conditions::Status::False.as_str())
            .map(|ready| format!("not reconciled: {}: {}", ready.reason, ready.message)),
    );
    if let Some(failed) = probe.as_ref().filter(|probe| !probe.ok) {
        problems.push(format!("the probe failed: {}", failed.outcome));
    }
    SiteHealth {
        id: site.spec.id.clone(),
        space: site.spec.configuration.space.clone(),
        name: site.spec.name.clone(),
        owner: site.spec.owner.clone(),
        healthy: problems.is_empty(),
        phase,
        all_steps_started: status.all_steps_started,
        problems,
        probe,
    }
}
