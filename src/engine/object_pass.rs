//! The pass half of an object's actor: starts a pass with the permit that has come, takes its end, and stops it
//! when leadership ends. The rest is [`super::object`]; what follows an end is decided by [`super::machine`].

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use kube::Resource as _;
use tracing::{Instrument, error, info, info_span, warn};

use super::machine::{Effect, Patience, Phase, Retry};
use super::messages::{ObjectMessage, Permit};
use super::object::{InFlight, LastPass, Myself, ObjectState};
use super::reconciler::{Failure, Moment, Pass, Reconciler, Settled};
use super::slots::Class;

/// So many passes in a row that end well and leave the same work behind are a defect: they are slowed down.
const MOST_FRUITLESS: u32 = 3;

impl<R: Reconciler> ObjectState<R> {
    pub(super) fn start(&mut self, myself: &Myself<R>, permit: Permit<R>, class: Class, since: Instant) {
        let moment = Moment::take();
        let wanted = self.snapshot().and_then(|(object, state)| {
            let (_, work) = self.context.reconciler.look(&object, &state, &moment).work?;
            Some((object, state, work))
        });
        let Some((object, state, work)) = wanted.filter(|_| self.context.open() && self.broken.is_none()) else {
            // It came true while it waited.
            self.machine.looked(None, &self.trigger);
            return;
        };
        if self.machine.granted() != [Effect::Start] {
            return;
        }
        self.context.metrics.slot_wait(class.word(), since.elapsed());
        self.passes += 1;
        let number = self.passes;
        let in_flight = InFlight { object: object.clone(), work: work.clone(), trigger: self.trigger.clone() };
        let context = self.context.clone();
        let reply = myself.clone();
        let span = info_span!(
            parent: None,
            "pass",
            model = context.reconciler.model(),
            key = %self.key,
            class = class.word(),
            pass = number
        );
        let pass =
            Pass { object, state, work, trigger: self.trigger.clone(), cluster: context.cluster.clone(), moment };
        let task = tokio::spawn(
            async move {
                let started = Instant::now();
                let outcome = std::panic::AssertUnwindSafe(context.reconciler.reconcile(pass))
                    .catch_unwind()
                    .await
                    .unwrap_or_else(|payload| Err(Failure::of_panic(payload.as_ref())));
                // An actor that has ended does not wait for it.
                let _ = reply.cast(ObjectMessage::Finished { pass: number, outcome, took: started.elapsed(), permit });
            }
            .instrument(span),
        );
        self.pass = Some((number, task.abort_handle(), in_flight));
    }

    pub(super) fn finish(
        &mut self,
        myself: &Myself<R>,
        number: u64,
        outcome: Result<R::Done, Failure>,
        took: Duration,
    ) {
        let Some((_, _, in_flight)) = self.pass.take_if(|(running, _, _)| *running == number) else { return };
        if outcome.is_err() && !self.context.open() {
            // Its writes were held back because leadership ended: that says nothing about the object.
            self.machine.stopped();
            return;
        }
        let moment = Moment::take();
        let model = self.context.reconciler.model();
        self.context.metrics.reconciled(model, if outcome.is_ok() { "ok" } else { "error" }, took);
        let limits = self.context.options.retry_limits();
        let mut effects = Vec::new();
        match outcome {
            Ok(done) => {
                self.last = Some(LastPass { at: moment.wall, took, outcome: "ok".to_owned() });
                self.said.clear();
                self.settle(&in_flight, Settled::Done(done), &moment);
                self.machine.succeeded();
                self.fruitless += 1;
                if self.fruitless > MOST_FRUITLESS {
                    warn!(key = %self.key, work = ?in_flight.work, "passes end well and leave the same work behind");
                    let retry = Retry::Backoff { capped: false };
                    effects = self.machine.failed(&in_flight.trigger, &retry, limits, moment.random);
                }
            }
            Err(failure) => {
                effects = self.machine.failed(&in_flight.trigger, &failure.retry, limits, moment.random);
                let exhausted = self.machine.phase() == Phase::Waiting(Patience::Exhausted);
                self.say(&in_flight, &failure, exhausted);
                self.last = Some(LastPass { at: moment.wall, took, outcome: failure.to_string() });
                self.settle(&in_flight, Settled::Failed { failure: &failure, exhausted }, &moment);
            }
        }
        self.run(myself, effects);
        self.look(myself);
    }

    /// A failure is an error once; while the same goes on it is a warning, however long.
    fn say(&mut self, in_flight: &InFlight<R>, failure: &Failure, exhausted: bool) {
        let (key, reason, message) = (&self.key, failure.reason, &failure.message);
        let attempts = self.machine.attempts();
        let text = format!("{} {failure}", in_flight.trigger);
        if failure.expected {
            info!(%key, reason, attempts, error = %message, "pass will be tried again");
            return;
        }
        let uid = in_flight.object.meta().uid.as_deref().unwrap_or_default();
        self.context.warn_about(&self.key, uid, reason, message);
        if self.said == text {
            warn!(%key, reason, attempts, exhausted, error = %message, "pass failed again");
        } else {
            error!(%key, reason, attempts, exhausted, error = %message, "pass failed");
            self.said = text;
        }
    }

    /// Leadership has ended: another replica may work on the object from now on. What the pass has done it has
    /// done; the next leader, or this one when it leads again, finds the rest by looking.
    pub(super) fn stop_pass(&mut self) {
        if self.abort_pass() {
            info!(key = %self.key, "the pass is stopped: this process no longer leads");
            self.machine.stopped();
        }
    }

    /// Returns whether there was one.
    pub(super) fn abort_pass(&mut self) -> bool {
        self.pass.take().inspect(|(_, task, _)| task.abort()).is_some()
    }

    fn settle(&self, in_flight: &InFlight<R>, outcome: Settled<'_, R::Done>, moment: &Moment) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let state = Arc::make_mut(&mut kept.state);
        self.context.reconciler.settle(state, &in_flight.object, &in_flight.work, outcome, moment);
    }
}
