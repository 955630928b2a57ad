//! An operator as a process: connect, start the engine, take part in the election, run until a signal, stop in
//! order. The same for every resource.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ractor::SpawnErr;
use thiserror::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::admin;
use super::context::{Context, Options};
use super::reconciler::Reconciler;
use super::runtime::{Engine, Feeds};
use crate::cluster::{Cluster, ClusterOptions, ConnectError, Elector, Events, LeaseOptions};
use crate::telemetry::{Metrics, MetricsError};

/// Leadership of a process.
#[derive(Clone, Debug)]
pub struct Election {
    /// Name of the Lease: `<operator>-operator`.
    pub name: String,
    /// Namespace of the Lease; `None` is the watched one.
    pub namespace: Option<String>,
    /// Validity after a renewal.
    pub duration: Duration,
    /// Time between two renewals.
    pub renew_period: Duration,
}

impl Election {
    /// The defaults of an operator of this name: 15 s, renewed each 5 s, in the watched namespace.
    #[must_use]
    pub fn of(operator: &str) -> Self {
        Self {
            name: format!("{operator}-operator"),
            namespace: None,
            duration: Duration::from_secs(15),
            renew_period: Duration::from_secs(5),
        }
    }
}

/// How a process runs.
#[derive(Clone, Debug)]
pub struct ProcessOptions {
    /// Name of the operator: user agent, Events.
    pub name: String,
    /// Namespace that is watched.
    pub namespace: String,
    /// Leader election; `None` switches it off.
    pub election: Option<Election>,
    /// Where `/healthz`, `/readyz`, `/metrics` and `/debug` answer.
    pub admin_address: SocketAddr,
    /// Time that passes in flight get on stop.
    pub grace: Duration,
    /// The engine's behaviour.
    pub engine: Options,
}

/// Why a process could not run.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// No metrics.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// No client.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Signals cannot be received.
    #[error("signals cannot be received: {0}")]
    Signal(#[source] io::Error),
    /// No registry.
    #[error("the registry cannot start: {0}")]
    Spawn(#[from] SpawnErr),
    /// An actor that the operator cannot do without ended by itself, by a defect of ours: its name.
    #[error("the {0} has ended by a defect: nothing is looked after any more, the process must be started again")]
    Ended(&'static str),
    /// The admin port is taken, or not ours.
    #[error("admin address {address} cannot be bound: {source}")]
    Admin {
        /// The address.
        address: SocketAddr,
        /// The failure.
        source: io::Error,
    },
}

/// A connected process, before its engine starts.
pub struct Connected {
    /// The client.
    pub cluster: Cluster,
    /// Numbers.
    pub metrics: Metrics,
    /// This start of the process: the second half of the user agent, the Lease's holder.
    pub instance: String,
}

/// Connects. `agent` is `<program>/<version>`.
pub async fn connect(agent: &str, call_timeout: Duration, calls_per_second: u32) -> Result<Connected, ProcessError> {
    let instance = uuid::Uuid::now_v7().simple().to_string();
    let metrics = Metrics::new()?;
    let cluster = Cluster::connect(ClusterOptions {
        instance: instance.clone(),
        agent: agent.to_owned(),
        call_timeout,
        calls_per_second,
        metrics: metrics.clone(),
    })
    .await?;
    Ok(Connected { cluster, metrics, instance })
}

/// Runs an engine until SIGTERM or SIGINT, or until an actor that it cannot do without has ended: its registry, or
/// the one that `vital` names by returning. The Lease is released either way. `started` hears of the engine before
/// any pass runs.
pub async fn run<R: Reconciler>(
    connected: Connected,
    reconciler: Arc<R>,
    feeds: Feeds<R>,
    options: ProcessOptions,
    vital: impl Future<Output = &'static str>,
    started: impl FnOnce(&Engine<R>),
) -> Result<(), ProcessError> {
    let Connected { cluster, metrics, instance } = connected;
    let mut signals = Signals::new().map_err(ProcessError::Signal)?;
    let events = Events::start(&cluster, &options.name, &instance);
    let context = Arc::new(Context::new(reconciler, cluster.clone(), options.engine.clone(), metrics, events));
    let mut engine = Engine::start(context.clone(), feeds).await?;
    started(&engine);
    let end = CancellationToken::new();
    let address = options.admin_address;
    let admin = admin::serve(address, context, engine.inspector(), options.namespace.clone(), end.clone())
        .await
        .map_err(|source| ProcessError::Admin { address, source })?;
    let resign = CancellationToken::new();
    let election = lead(&cluster, &options, &instance, resign.clone());
    let lost = tokio::select! {
        () = signals.next() => None,
        () = engine.ended() => Some("registry"),
        name = vital => Some(name),
    };
    let orderly = async {
        if lost.is_some() {
            engine.abort().await;
        } else {
            info!("stopping");
            engine.stop(options.grace).await;
        }
        resign.cancel();
        if let Some(election) = election
            && election.await.is_err()
        {
            warn!("the Lease may not have been released");
        }
        end.cancel();
        // A panic of the admin port is no reason to stop less orderly.
        let _ = admin.await;
    };
    tokio::select! {
        () = orderly => info!("stopped"),
        () = signals.next() => warn!("stopped at once by a second signal"),
    }
    lost.map_or(Ok(()), |name| Err(ProcessError::Ended(name)))
}

/// Takes part in the election, or leads for good when it is off.
fn lead(
    cluster: &Cluster,
    options: &ProcessOptions,
    instance: &str,
    resign: CancellationToken,
) -> Option<tokio::task::JoinHandle<()>> {
    let Some(election) = &options.election else {
        cluster.leadership().always();
        return None;
    };
    let lease = LeaseOptions {
        namespace: election.namespace.clone().unwrap_or_else(|| options.namespace.clone()),
        name: election.name.clone(),
        identity: instance.to_owned(),
        duration: election.duration,
        renew_period: election.renew_period,
    };
    Some(tokio::spawn(Elector::new(cluster.clone(), lease).run(resign)))
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
