//! Starts an engine: the registry, the pumps of its watches, the resync ticks; and stops it in order.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::BoxStream;
use ractor::{Actor, ActorRef, SpawnErr};
use serde_json::Value;
use tokio::task::{JoinHandle, JoinSet};
use tracing::{info, warn};

use super::context::Context;
use super::key::ObjectKey;
use super::messages::{ObjectMessage, RegistryMessage, SourceEvent};
use super::reconciler::Reconciler;
use super::registry::{RESYNC_SLICES, Registry, RegistryBirth};
use crate::cluster::WatchEvent;

/// Longest wait for an answer to the debug page.
const DEBUG_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait for a registry that is killed.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a stop looks whether the last status is written.
const DRAIN_POLL: Duration = Duration::from_millis(20);

/// The watches that feed an engine.
pub struct Feeds<R: Reconciler> {
    /// The resource itself.
    pub objects: BoxStream<'static, WatchEvent<R::Object>>,
    /// Everything around it, mapped to keys. No work is done before each has sent `Synced` once; a source of a kind that
    /// is absent from the cluster sends it at once.
    pub related: Vec<BoxStream<'static, SourceEvent<R::Fact>>>,
}

/// A running engine.
pub struct Engine<R: Reconciler> {
    registry: ActorRef<RegistryMessage<R>>,
    context: Arc<Context<R>>,
    pumps: JoinSet<()>,
    ended: JoinHandle<()>,
}

impl<R: Reconciler> Engine<R> {
    /// Starts everything. Work begins when every first list is complete and this replica leads.
    pub async fn start(context: Arc<Context<R>>, feeds: Feeds<R>) -> Result<Self, SpawnErr> {
        let birth = RegistryBirth { context: context.clone(), sources: feeds.related.len() };
        let (registry, ended) = Actor::spawn(None, Registry::default(), birth).await?;
        let mut pumps = JoinSet::new();
        pump(&mut pumps, &registry, feeds.objects, RegistryMessage::Watched);
        for source in feeds.related {
            pump(&mut pumps, &registry, first_synced(source), RegistryMessage::Source);
        }
        pumps.spawn(follow_leadership(context.clone(), registry.clone()));
        let period = context.options.resync_period;
        if !period.is_zero() {
            pumps.spawn(tick(registry.clone(), period / u32::try_from(RESYNC_SLICES).unwrap_or(1)));
        }
        Ok(Self { registry, context, pumps, ended })
    }

    /// Returns when the registry has ended by itself: nothing is looked after any more, and only a new process helps.
    pub async fn ended(&mut self) {
        // A panic is an end too.
        let _ = (&mut self.ended).await;
    }

    /// What every actor shares.
    #[must_use]
    pub const fn context(&self) -> &Arc<Context<R>> {
        &self.context
    }

    /// The registry, for what wakes objects from outside the watches.
    #[must_use]
    pub const fn registry(&self) -> &ActorRef<RegistryMessage<R>> {
        &self.registry
    }

    /// A handle for the debug page.
    #[must_use]
    pub fn inspector(&self) -> Inspector<R> {
        Inspector { registry: self.registry.clone() }
    }

    /// No new permits; passes in flight and the status they lead to get until `grace` has passed; then the
    /// actors end. The caller releases the Lease after this.
    pub async fn stop(mut self, grace: Duration) {
        let deadline = Instant::now() + grace;
        let drained = ractor::call_t!(self.registry, RegistryMessage::Drain, millis(grace));
        if drained.is_err() {
            warn!("passes were still in flight after the grace period");
        }
        while self.context.outstanding.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
            tokio::time::sleep(DRAIN_POLL).await;
        }
        self.context.set_open(false);
        self.pumps.shutdown().await;
        let left = deadline.saturating_duration_since(Instant::now()).max(DRAIN_POLL);
        if self.registry.stop_and_wait(None, Some(left)).await.is_err() {
            warn!("the registry did not end in time");
        }
        info!(model = self.context.reconciler.model(), "engine stopped");
    }

    /// Ends everything at once, passes in flight too: for an engine that has lost what it cannot work without. The
    /// caller releases the Lease after this.
    pub async fn abort(mut self) {
        self.context.set_open(false);
        self.pumps.shutdown().await;
        // It may have ended already, and its children with it.
        let _ = self.registry.kill_and_wait(Some(ABORT_TIMEOUT)).await;
    }
}

/// Reads the actors' minds, for the admin port.
pub struct Inspector<R: Reconciler> {
    registry: ActorRef<RegistryMessage<R>>,
}

impl<R: Reconciler> Inspector<R> {
    /// All keys, a line each.
    pub async fn list(&self) -> Option<Vec<Value>> {
        ractor::call_t!(self.registry, RegistryMessage::List, millis(DEBUG_TIMEOUT)).ok()
    }

    /// What the actor of one key knows, waits for and did last.
    pub async fn describe(&self, key: ObjectKey) -> Option<Value> {
        let actor = ractor::call_t!(self.registry, RegistryMessage::Find, millis(DEBUG_TIMEOUT), key).ok()??;
        ractor::call_t!(actor, ObjectMessage::Describe, millis(DEBUG_TIMEOUT)).ok()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn pump<R: Reconciler, E: Send + 'static>(
    pumps: &mut JoinSet<()>,
    registry: &ActorRef<RegistryMessage<R>>,
    mut events: BoxStream<'static, E>,
    wrap: fn(E) -> RegistryMessage<R>,
) {
    let registry = registry.clone();
    pumps.spawn(async move {
        while let Some(event) = events.next().await {
            if registry.cast(wrap(event)).is_err() {
                return;
            }
        }
    });
}

/// Only the end of a source's first list is counted: a watch that lists afresh while another one still lists for
/// the first time must not stand for it.
fn first_synced<F: Send + 'static>(source: BoxStream<'static, SourceEvent<F>>) -> BoxStream<'static, SourceEvent<F>> {
    let mut synced = false;
    let first = source.filter(move |event| {
        let again = matches!(event, SourceEvent::Synced) && std::mem::replace(&mut synced, true);
        futures::future::ready(!again)
    });
    first.boxed()
}

/// Tells the registry of each gain and loss of leadership, a loss by time at the moment when it happens.
async fn follow_leadership<R: Reconciler>(context: Arc<Context<R>>, registry: ActorRef<RegistryMessage<R>>) {
    let leadership = context.cluster.leadership();
    let mut told = leadership.changes();
    loop {
        let leading = *told.borrow_and_update() && leadership.valid();
        context.metrics.leader(leading);
        if registry.cast(RegistryMessage::Leading(leading)).is_err() {
            return;
        }
        tokio::select! {
            changed = told.changed() => if changed.is_err() { return },
            () = leadership.lapsed(), if leading => {}
        }
    }
}

async fn tick<R: Reconciler>(registry: ActorRef<RegistryMessage<R>>, period: Duration) {
    let mut interval = tokio::time::interval(period.max(Duration::from_millis(1)));
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    interval.tick().await;
    loop {
        interval.tick().await;
        if registry.cast(RegistryMessage::ResyncTick).is_err() {
            return;
        }
    }
}
