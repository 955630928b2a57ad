//! The actor of one object, for its whole life: the thin shell around the pure machine.
//!
//! It owns the newest copy of the object, the state folded from facts, the timers and the pass in flight. It
//! never awaits IO in its handler: passes and status writes run as tasks and come back as messages. What must
//! outlive a death of the actor (object and state) is [`Kept`] by the registry.

use kube::Resource as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::context::Context;
use super::key::ObjectKey;
use super::machine::{Effect, Machine};
use super::messages::{ObjectMessage, RegistryMessage, Snapshot};
use super::outstanding::Outstanding;
use super::reconciler::{Broken, Look, Moment, Reconciler};
use super::slots::Class;
use super::status_lane::StatusLane;
use super::timer::Timer;
use super::version::{asks_differently, is_newer};

/// What outlives the actor.
pub struct Kept<R: Reconciler> {
    /// The newest copy.
    pub object: Option<Arc<R::Object>>,
    /// What the facts said.
    pub state: Arc<R::State>,
}

impl<R: Reconciler> Default for Kept<R> {
    fn default() -> Self {
        Self { object: None, state: Arc::default() }
    }
}

/// Shared between the registry and the present incarnation of the actor; never locked across an await.
pub type SharedKept<R> = Arc<Mutex<Kept<R>>>;

/// The actor's type.
pub struct ObjectActor<R>(std::marker::PhantomData<fn() -> R>);

impl<R> Default for ObjectActor<R> {
    fn default() -> Self {
        Self(std::marker::PhantomData)
    }
}

/// What an actor is born with.
pub struct Birth<R: Reconciler> {
    /// Its key.
    pub key: ObjectKey,
    /// What is shared.
    pub context: Arc<Context<R>>,
    /// Its supervisor.
    pub registry: ActorRef<RegistryMessage<R>>,
    /// What an earlier incarnation left.
    pub kept: SharedKept<R>,
    /// Set when earlier incarnations died too often: it does nothing but say so until the object changes.
    pub degraded: Option<String>,
}

pub(super) struct LastPass {
    pub(super) at: jiff::Timestamp,
    pub(super) took: Duration,
    pub(super) outcome: String,
}

/// The actor's memory.
pub struct ObjectState<R: Reconciler> {
    pub(super) key: ObjectKey,
    pub(super) context: Arc<Context<R>>,
    pub(super) registry: ActorRef<RegistryMessage<R>>,
    pub(super) kept: SharedKept<R>,
    pub(super) degraded: Option<String>,
    pub(super) broken: Option<Broken>,
    /// The status patch that was last written for a broken object: it cannot be read back.
    pub(super) broken_written: Option<Value>,
    pub(super) trigger: Arc<str>,
    /// Not looked at since it came with a list.
    pub(super) listed: bool,
    pub(super) machine: Machine,
    pub(super) lane: StatusLane,
    pub(super) outstanding: Outstanding,
    pub(super) pass: Option<(u64, AbortHandle, InFlight<R>)>,
    pub(super) passes: u64,
    pub(super) fruitless: u32,
    /// Messages of the registry, for the farewell.
    pub(super) received: u64,
    pub(super) last: Option<LastPass>,
    /// The failure that was last logged as an error; empty after a success.
    pub(super) said: String,
    pub(super) retry_at: Option<jiff::Timestamp>,
    pub(super) retry_timer: Timer,
    pub(super) wake_timer: Timer,
    pub(super) wake_epoch: u64,
    pub(super) status_timer: Timer,
}

/// What the pass in flight was started with.
pub(super) struct InFlight<R: Reconciler> {
    pub(super) object: Arc<R::Object>,
    pub(super) work: R::Work,
    pub(super) trigger: Arc<str>,
}

impl<R: Reconciler> Drop for ObjectState<R> {
    fn drop(&mut self) {
        if let Some((_, task, _)) = self.pass.take() {
            task.abort();
        }
    }
}

impl<R: Reconciler> Actor for ObjectActor<R> {
    type Msg = ObjectMessage<R>;
    type State = ObjectState<R>;
    type Arguments = Birth<R>;

    async fn pre_start(&self, _: ActorRef<Self::Msg>, birth: Birth<R>) -> Result<Self::State, ActorProcessingErr> {
        let trigger = {
            let kept = birth.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.object.as_ref().map_or_else(String::new, |object| birth.context.reconciler.trigger(object))
        };
        Ok(ObjectState {
            outstanding: Outstanding::new(birth.context.outstanding.clone()),
            key: birth.key,
            context: birth.context,
            registry: birth.registry,
            kept: birth.kept,
            degraded: birth.degraded,
            broken: None,
            broken_written: None,
            trigger: trigger.into(),
            listed: false,
            machine: Machine::default(),
            lane: StatusLane::default(),
            pass: None,
            passes: 0,
            fruitless: 0,
            received: 0,
            last: None,
            said: String::new(),
            retry_at: None,
            retry_timer: Timer::default(),
            wake_timer: Timer::default(),
            wake_epoch: 0,
            status_timer: Timer::default(),
        })
    }

    async fn post_start(&self, myself: ActorRef<Self::Msg>, state: &mut Self::State) -> Result<(), ActorProcessingErr> {
        // An incarnation after the first finds object and facts waiting.
        state.look(&myself);
        Ok(())
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        state.handle(&myself, message);
        Ok(())
    }
}

pub(super) type Myself<R> = ActorRef<ObjectMessage<R>>;

impl<R: Reconciler> ObjectState<R> {
    fn handle(&mut self, myself: &Myself<R>, message: ObjectMessage<R>) {
        match message {
            ObjectMessage::Object { object, listed } => {
                self.received += 1;
                self.accept(object, listed);
                self.look(myself);
            }
            ObjectMessage::Broken(broken) => {
                self.received += 1;
                let effects = self.machine.gone();
                self.run(myself, effects);
                self.abort_pass();
                if self.broken.as_ref() != Some(&broken) {
                    self.broken_written = None;
                }
                self.broken = Some(broken);
                self.pump_status(myself);
            }
            ObjectMessage::Gone => {
                self.received += 1;
                self.forget_object(myself);
            }
            ObjectMessage::Fact(fact) => {
                self.received += 1;
                if self.fold(*fact) {
                    self.fruitless = 0;
                    self.look(myself);
                }
                self.offer_farewell();
            }
            ObjectMessage::Opened => {
                self.received += 1;
                self.look(myself);
            }
            ObjectMessage::Closed => {
                self.received += 1;
                self.stop_pass();
            }
            ObjectMessage::Resync => {
                self.received += 1;
                let effects = self.machine.resynced();
                self.run(myself, effects);
                {
                    let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                    self.context.reconciler.resynced(Arc::make_mut(&mut kept.state));
                }
                self.listed = true;
                self.look(myself);
                self.offer_farewell();
            }
            ObjectMessage::Nudge => {
                self.received += 1;
                let effects = self.machine.nudged();
                self.run(myself, effects);
                self.look(myself);
            }
            ObjectMessage::Granted { permit, class, since } => {
                self.received += 1;
                self.start(myself, permit, class, since);
            }
            ObjectMessage::Finished { pass, outcome, took, permit } => {
                self.finish(myself, pass, outcome, took);
                drop(permit);
            }
            ObjectMessage::Lane(place) => self.write_status(myself, place),
            ObjectMessage::Written { before, outcome } => self.status_written(myself, before, outcome),
            ObjectMessage::Due { epoch } => {
                self.retry_at = None;
                let effects = self.machine.due(epoch);
                self.run(myself, effects);
            }
            ObjectMessage::Wake { epoch } => {
                if epoch == self.wake_epoch {
                    self.look(myself);
                }
            }
            ObjectMessage::StatusDue => {
                self.lane.due();
                self.pump_status(myself);
            }
            ObjectMessage::Describe(reply) => {
                // The asker may have gone.
                let _ = reply.send(self.describe());
            }
        }
    }

    /// Takes a copy that is newer than the one at hand.
    pub(super) fn accept(&mut self, object: Arc<R::Object>, listed: bool) {
        let moment = Moment::take();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let same = kept.object.as_ref().is_some_and(|old| old.meta().uid == object.meta().uid);
        if same && kept.object.as_ref().is_some_and(|old| !is_newer(old.meta(), object.meta())) {
            return;
        }
        if !same {
            // Another object under the old name: nothing of the last one's passes counts.
            if let Some((_, task, _)) = self.pass.take() {
                task.abort();
            }
            if kept.object.is_some() {
                self.context.reconciler.gone(Arc::make_mut(&mut kept.state));
            }
            self.machine.gone();
            self.lane = StatusLane::default();
        }
        self.broken = None;
        self.broken_written = None;
        self.fruitless = 0;
        let old = if same { kept.object.clone() } else { None };
        self.context.reconciler.seen(Arc::make_mut(&mut kept.state), old.as_deref(), &object, &moment);
        if old.as_ref().is_none_or(|old| asks_differently(old.meta(), object.meta())) {
            self.trigger = self.context.reconciler.trigger(&object).into();
        }
        kept.object = Some(object);
        if listed && old.is_none() {
            self.listed = true;
        }
    }

    fn forget_object(&mut self, myself: &Myself<R>) {
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.object = None;
            self.context.reconciler.gone(Arc::make_mut(&mut kept.state));
        }
        self.broken = None;
        self.broken_written = None;
        self.abort_pass();
        let effects = self.machine.gone();
        self.run(myself, effects);
        self.retry_timer.clear();
        self.wake_timer.clear();
        self.status_timer.clear();
        self.lane = StatusLane::default();
        self.outstanding.set(false);
        self.offer_farewell();
    }

    fn fold(&mut self, fact: R::Fact) -> bool {
        let moment = Moment::take();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        self.context.reconciler.fold(Arc::make_mut(&mut kept.state), fact, &moment)
    }

    /// Without object and facts there is nothing to live for; the registry decides, since it may have sent more.
    fn offer_farewell(&self) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.object.is_none() && self.broken.is_none() && self.context.reconciler.forgettable(&kept.state) {
            // A registry that has ended takes its children with it.
            let _ = self.registry.cast(RegistryMessage::Forgettable { key: self.key.clone(), received: self.received });
        }
    }

    pub(super) fn snapshot(&self) -> Option<Snapshot<R>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.object.clone().map(|object| (object, kept.state.clone()))
    }

    /// Compares what is observed with what was handled, and acts on the difference.
    pub(super) fn look(&mut self, myself: &Myself<R>) {
        if !self.context.open() {
            return;
        }
        if self.degraded.is_none()
            && self.broken.is_none()
            && let Some((object, state)) = self.snapshot()
        {
            let look = self.context.reconciler.look(&object, &state, &Moment::take());
            self.act_on(myself, &look);
        }
        self.pump_status(myself);
    }

    fn act_on(&mut self, myself: &Myself<R>, look: &Look<R::Work>) {
        let mut class = look.work.as_ref().map(|(class, _)| *class);
        if self.listed {
            // The first list and resyncs come after everything that somebody waits for.
            class = class.map(|class| class.max(Class::Resync));
        }
        self.listed = false;
        let effects = self.machine.looked(class, &self.trigger);
        self.run(myself, effects);
        self.wake_epoch += 1;
        match look.wake {
            Some(after) => self.wake_timer.set(after, myself, ObjectMessage::Wake { epoch: self.wake_epoch }),
            None => self.wake_timer.clear(),
        }
    }

    pub(super) fn run(&mut self, myself: &Myself<R>, effects: Vec<Effect>) {
        for effect in effects {
            let message = match effect {
                Effect::Enqueue(class) => {
                    self.retry_at = None;
                    RegistryMessage::Want { key: self.key.clone(), class }
                }
                Effect::Withdraw => RegistryMessage::Withdraw { key: self.key.clone() },
                Effect::Arm { after, epoch } => {
                    self.retry_at = jiff::SignedDuration::try_from(after)
                        .ok()
                        .and_then(|after| jiff::Timestamp::now().checked_add(after).ok());
                    self.retry_timer.set(after, myself, ObjectMessage::Due { epoch });
                    continue;
                }
                // Starting and declining happen where the permit is at hand.
                Effect::Start | Effect::Decline => continue,
            };
            // A registry that has ended grants nothing.
            let _ = self.registry.cast(message);
        }
    }

    fn describe(&self) -> Value {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let meta = kept.object.as_ref().map(|object| object.meta());
        json!({
            "key": self.key.to_string(),
            "uid": meta.and_then(|meta| meta.uid.clone()),
            "generation": meta.and_then(|meta| meta.generation),
            "resource_version": meta.and_then(|meta| meta.resource_version.clone()),
            "trigger": &*self.trigger,
            "phase": format!("{:?}", self.machine.phase()),
            "attempts": self.machine.attempts(),
            "next_retry": self.retry_at.map(|at| at.to_string()),
            "passes": self.passes,
            "last_pass": self.last.as_ref().map(|last| json!({
                "at": last.at.to_string(), "seconds": last.took.as_secs_f64(), "outcome": last.outcome,
            })),
            "status_outstanding": self.lane.outstanding(),
            "undecodable": self.broken.as_ref().map(|broken| broken.error.clone()),
            "degraded": self.degraded,
            "knows": self.context.reconciler.describe(kept.object.as_deref(), &kept.state),
        })
    }
}
