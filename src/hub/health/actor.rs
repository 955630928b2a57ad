//! The actor of the probes: one round at a time, the questions of a round bounded.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use ractor::{Actor, ActorProcessingErr, ActorRef, SpawnErr};
use tracing::{info, warn};

use super::super::actor::{Ended, started};
use super::super::pod_http::Pods;
use super::RETENTION;
use super::probe::{Probe, probe};
use crate::cache::Cache;
use crate::cache::locks::Lock;
use crate::domain::site::Site;
use crate::telemetry::Metrics;

/// Name of the actor in metrics.
const ACTOR: &str = "health";
/// Sites that are asked at the same time.
const AT_ONCE: usize = 16;

/// Messages.
#[derive(Debug)]
pub enum HealthMessage {
    /// Ask these Sites; the lock belongs to the round.
    Probe {
        /// Monitored and enabled ones.
        sites: Vec<Site>,
        /// Given back at the end.
        lock: Lock,
    },
}

/// The actor's type.
pub struct Prober;

/// The actor's memory.
pub struct ProberState {
    pods: Pods,
    namespace: Arc<str>,
    cache: Cache,
}

impl Prober {
    /// Starts it.
    pub async fn start(
        pods: Pods,
        namespace: Arc<str>,
        cache: Cache,
        metrics: &Metrics,
    ) -> Result<(ActorRef<HealthMessage>, Ended), SpawnErr> {
        started(ACTOR, Self, (pods, namespace, cache), metrics).await
    }
}

impl Actor for Prober {
    type Msg = HealthMessage;
    type State = ProberState;
    type Arguments = (Pods, Arc<str>, Cache);

    async fn pre_start(
        &self,
        _: ActorRef<HealthMessage>,
        (pods, namespace, cache): (Pods, Arc<str>, Cache),
    ) -> Result<ProberState, ActorProcessingErr> {
        Ok(ProberState { pods, namespace, cache })
    }

    async fn handle(
        &self,
        _: ActorRef<HealthMessage>,
        HealthMessage::Probe { sites, lock }: HealthMessage,
        state: &mut ProberState,
    ) -> Result<(), ActorProcessingErr> {
        // The lock keeps a second round away, here and in every replica; a panic gives it back.
        tokio::spawn(round(state.pods.clone(), state.namespace.clone(), state.cache.clone(), sites, lock));
        Ok(())
    }
}

async fn round(pods: Pods, namespace: Arc<str>, cache: Cache, sites: Vec<Site>, lock: Lock) {
    let asked = futures::stream::iter(sites).map(|site| {
        let pods = &pods;
        async move { (site.spec.id.clone(), probe(pods, &site).await) }
    });
    let probes: BTreeMap<String, Probe> = asked.buffer_unordered(AT_ONCE).collect().await;
    let failed = probes.values().filter(|probe| !probe.ok).count();
    match cache.keep_probes(&namespace, &probes, RETENTION).await {
        Ok(()) => info!(sites = probes.len(), failed, "the watched Sites were probed"),
        Err(error) => warn!(%error, "what the probes said is lost"),
    }
    // Without Redis it ends by itself.
    let _ = lock.release().await;
}
