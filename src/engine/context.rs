//! What every actor of one engine shares: the reconciler, the client, the options and the gate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::key::ObjectKey;
use super::machine::RetryLimits;
use super::reconciler::Reconciler;
use super::status_lane::LANE_LIMIT;
use crate::cluster::{Cluster, EventKind, Events, Kind, Regarding};
use crate::telemetry::Metrics;

/// The engine's behaviour; the defaults are those of a resource that asks for nothing.
#[derive(Clone, Debug)]
pub struct Options {
    /// Objects worked on at the same time.
    pub concurrency: usize,
    /// Capped failures before an object waits for a change or the next resync.
    pub retries: u32,
    /// Longest backoff.
    pub max_backoff: Duration,
    /// Time between two resyncs of one object; zero switches them off.
    pub resync_period: Duration,
    /// Shortest time between two status writes of one object.
    pub status_min_interval: Duration,
    /// Attempts of a status write on conflicts.
    pub max_retries: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 1,
            retries: 5,
            max_backoff: Duration::from_secs(300),
            resync_period: Duration::from_secs(300),
            status_min_interval: Duration::from_secs(1),
            max_retries: 5,
        }
    }
}

impl Options {
    pub(super) const fn retry_limits(&self) -> RetryLimits {
        RetryLimits { attempts: self.retries, max_backoff: self.max_backoff }
    }
}

/// Shared by all actors of one engine.
pub struct Context<R: Reconciler> {
    /// The resource.
    pub reconciler: Arc<R>,
    /// The client.
    pub cluster: Cluster,
    /// The behaviour.
    pub options: Options,
    /// Numbers.
    pub metrics: Metrics,
    /// Events about failures.
    pub events: Events,
    /// Places for status writes.
    pub lane: Arc<Semaphore>,
    /// Objects whose status is still to be written.
    pub outstanding: Arc<AtomicUsize>,
    gate: AtomicBool,
    synced: AtomicBool,
}

impl<R: Reconciler> Context<R> {
    /// A closed gate and free lanes.
    #[must_use]
    pub fn new(reconciler: Arc<R>, cluster: Cluster, options: Options, metrics: Metrics, events: Events) -> Self {
        Self {
            reconciler,
            cluster,
            options,
            metrics,
            events,
            lane: Arc::new(Semaphore::new(LANE_LIMIT)),
            outstanding: Arc::default(),
            gate: AtomicBool::new(false),
            synced: AtomicBool::new(false),
        }
    }

    /// Publishes a Warning about an object; a failure to do so fails nothing.
    pub(super) fn warn_about(&self, key: &ObjectKey, uid: &str, reason: &str, message: &str) {
        let regarding = Regarding {
            kind: Kind::of::<R::Object>(),
            namespace: key.scope().map(str::to_owned),
            name: key.name().to_owned(),
            uid: uid.to_owned(),
        };
        self.events.publish(&regarding, EventKind::Warning, reason, "Reconcile", message);
    }

    /// Whether work may be done: every first list is complete and this replica leads, at this very moment.
    #[must_use]
    pub fn open(&self) -> bool {
        self.gate.load(Ordering::Acquire) && self.cluster.leadership().valid()
    }

    /// Whether every first list is complete: what readiness says, of a standby too.
    #[must_use]
    pub fn synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }

    pub(super) fn set_synced(&self) {
        self.synced.store(true, Ordering::Release);
    }

    pub(super) fn set_open(&self, open: bool) {
        self.gate.store(open, Ordering::Release);
    }
}
