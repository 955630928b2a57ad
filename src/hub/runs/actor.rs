//! The actor of bulk runs, one for each kind: it sees to it that every run has a worker.
//!
//! A worker is a task with an end. A run whose worker died, here or in another process, has no lease: the actor that
//! finds it goes on with it.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef, SpawnErr};
use tracing::{info, warn};

use super::super::actor::{Ended, started};
use super::work::{Parts, WorkError, work};
use crate::cache::CacheError;
use crate::cache::runs::{HeldRun, RunKind, RunState};
use crate::telemetry::Metrics;

/// Runs that are looked at: older ones have ended.
const RECENT: usize = 20;

/// Messages.
pub enum RunMessage {
    /// A run that this process holds.
    Begun(Box<HeldRun>),
    /// Is there a run that nobody works on?
    Look,
    /// The worker, or the look, has come to its end.
    Ended,
}

/// The actor's type.
pub struct RunActor;

/// The actor's memory.
pub struct RunActorState {
    kind: RunKind,
    parts: Arc<Parts>,
    /// A worker or a look is under way.
    busy: bool,
    /// Runs that wait for the worker's end.
    waiting: Vec<HeldRun>,
}

impl RunActor {
    /// Starts one.
    pub async fn start(
        kind: RunKind,
        parts: Arc<Parts>,
        metrics: &Metrics,
    ) -> Result<(ActorRef<RunMessage>, Ended), SpawnErr> {
        let name = match kind {
            RunKind::Upgrade => "bulk-upgrade",
            RunKind::Restart => "bulk-restart",
        };
        let look = parts.times.lease / 2;
        let on = parts.cache.is_on();
        let (actor, ended) = started(name, Self, (kind, parts), metrics).await?;
        if on {
            actor.send_interval(look, || RunMessage::Look);
        }
        Ok((actor, ended))
    }
}

impl Actor for RunActor {
    type Msg = RunMessage;
    type State = RunActorState;
    type Arguments = (RunKind, Arc<Parts>);

    async fn pre_start(
        &self,
        _: ActorRef<RunMessage>,
        (kind, parts): (RunKind, Arc<Parts>),
    ) -> Result<RunActorState, ActorProcessingErr> {
        Ok(RunActorState { kind, parts, busy: false, waiting: Vec::new() })
    }

    async fn handle(
        &self,
        myself: ActorRef<RunMessage>,
        message: RunMessage,
        state: &mut RunActorState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            RunMessage::Begun(run) if state.busy => state.waiting.push(*run),
            RunMessage::Begun(run) => state.work(&myself, *run),
            RunMessage::Look if state.busy => {}
            RunMessage::Look => state.look(&myself),
            RunMessage::Ended => {
                state.busy = false;
                if let Some(run) = state.waiting.pop() {
                    state.work(&myself, run);
                }
            }
        }
        Ok(())
    }
}

impl RunActorState {
    fn work(&mut self, myself: &ActorRef<RunMessage>, run: HeldRun) {
        self.busy = true;
        let id = run.record.id;
        let worker = tokio::spawn(work(self.parts.clone(), run));
        let myself = myself.clone();
        tokio::spawn(async move {
            match worker.await {
                Ok(Ok(())) => {}
                Ok(Err(error @ WorkError::Lost)) => warn!(run = %id, %error, "left to others"),
                Ok(Err(error)) => warn!(run = %id, %error, "a bulk run is interrupted: it goes on when Redis is back"),
                Err(error) => tracing::error!(run = %id, %error, "the worker of a bulk run died: another goes on"),
            }
            // Without the actor the process ends.
            let _ = myself.cast(RunMessage::Ended);
        });
    }

    fn look(&mut self, myself: &ActorRef<RunMessage>) {
        // A run may not go on from a list of Sites that is not complete: all would look deleted.
        if !self.parts.catalog.synced() {
            return;
        }
        self.busy = true;
        let (kind, parts, myself) = (self.kind, self.parts.clone(), myself.clone());
        tokio::spawn(async move {
            // That Redis is down was said already.
            let found = orphan(kind, &parts).await.unwrap_or_default();
            let _ = myself.cast(RunMessage::Ended);
            if let Some(run) = found {
                info!(run = %run.record.id, "going on with a bulk run that nobody works on");
                let _ = myself.cast(RunMessage::Begun(Box::new(run)));
            }
        });
    }
}

/// A run of this kind that nobody works on, with its locks.
async fn orphan(kind: RunKind, parts: &Parts) -> Result<Option<HeldRun>, CacheError> {
    let Parts { cache, namespace, times, .. } = parts;
    for id in cache.runs(namespace, RECENT).await? {
        let Some(run) = cache.run_record(namespace, &id).await? else { continue };
        if run.record.kind != kind || run.record.state != RunState::Running {
            continue;
        }
        if let Some(run) = cache.adopt_run(namespace, &run.record, *times).await? {
            return Ok(Some(run));
        }
    }
    Ok(None)
}
