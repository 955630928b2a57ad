//! The registry actor: which objects there are, who looks after each, and who may work now.
//!
//! It takes the raw watch events, keeps one actor per key, supervises them (default supervision would end
//! the operator with the first actor that dies) and owns the slot queue and the gate. It does no IO.

use kube::Resource as _;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use serde_json::{Value, json};
use tracing::{error, info, warn};

use super::context::Context;
use super::key::ObjectKey;
use super::messages::{ObjectMessage, Permit, RegistryMessage, SourceEvent};
use super::object::{Birth, ObjectActor, SharedKept};
use super::reconciler::{Broken, Reconciler};
use super::slots::SlotQueue;
use super::supervision::{History, Verdict};
use super::timer::Timer;
use crate::cluster::WatchEvent;

/// The resync period is cut into so many slices; a key's slice is drawn once per process.
pub const RESYNC_SLICES: u64 = 64;

/// Name of the objects' actors in metrics.
const ACTOR: &str = "object";

/// The actor's type.
pub struct Registry<R>(std::marker::PhantomData<fn() -> R>);

impl<R> Default for Registry<R> {
    fn default() -> Self {
        Self(std::marker::PhantomData)
    }
}

/// One key.
struct Entry<R: Reconciler> {
    actor: Option<ActorRef<ObjectMessage<R>>>,
    kept: SharedKept<R>,
    /// Whether the object exists, as far as the watch has told.
    exists: bool,
    /// Why it cannot be decoded.
    broken: Option<String>,
    /// The list that last had it.
    list: u64,
    /// Messages sent to the present actor.
    sent: u64,
    deaths: History,
    given_up: bool,
    respawn: Timer,
}

/// The actor's memory.
pub struct RegistryState<R: Reconciler> {
    context: Arc<Context<R>>,
    entries: HashMap<ObjectKey, Entry<R>>,
    actors: HashMap<ActorId, ObjectKey>,
    queue: SlotQueue,
    list: u64,
    /// Sources, the resource's own watch included, whose first list is not complete.
    unsynced: usize,
    own_synced: bool,
    leading: bool,
    draining: Option<RpcReplyPort<()>>,
    drained: bool,
    resync_salt: u64,
    resync_slice: u64,
}

/// What the registry is born with.
pub struct RegistryBirth<R: Reconciler> {
    /// What is shared.
    pub context: Arc<Context<R>>,
    /// Related watches.
    pub sources: usize,
}

impl<R: Reconciler> Actor for Registry<R> {
    type Msg = RegistryMessage<R>;
    type State = RegistryState<R>;
    type Arguments = RegistryBirth<R>;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        birth: RegistryBirth<R>,
    ) -> Result<Self::State, ActorProcessingErr> {
        birth.context.metrics.actors(ACTOR);
        Ok(RegistryState {
            queue: SlotQueue::new(birth.context.options.concurrency),
            context: birth.context,
            entries: HashMap::new(),
            actors: HashMap::new(),
            list: 0,
            unsynced: birth.sources + 1,
            own_synced: false,
            leading: false,
            draining: None,
            drained: false,
            resync_salt: rand::random(),
            resync_slice: 0,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            RegistryMessage::Watched(event) => state.watched(&myself, event).await,
            RegistryMessage::Source(SourceEvent::Fact { key, fact, spawn }) => {
                if spawn || state.entries.contains_key(&key) {
                    state.tell(&myself, &key, ObjectMessage::Fact(Box::new(fact))).await;
                }
            }
            RegistryMessage::Source(SourceEvent::Everyone(fact)) => {
                for key in state.keys() {
                    state.tell(&myself, &key, ObjectMessage::Fact(Box::new(fact.clone()))).await;
                }
            }
            RegistryMessage::Source(SourceEvent::Synced) => state.synced(&myself).await,
            RegistryMessage::Want { key, class } => {
                state.queue.push(&key, class, Instant::now());
                state.grant(&myself).await;
            }
            RegistryMessage::Withdraw { key } => {
                state.queue.withdraw(&key);
                state.measure();
            }
            RegistryMessage::Returned { key } => {
                if let Some(rest) = state.queue.release(&key, Instant::now()) {
                    myself.send_after(rest, || RegistryMessage::Rested);
                }
                state.grant(&myself).await;
            }
            RegistryMessage::Rested => {
                state.queue.rested();
                state.grant(&myself).await;
            }
            RegistryMessage::Forgettable { key, received } => state.farewell(&key, received),
            RegistryMessage::Nudge { key } => {
                if state.entries.contains_key(&key) {
                    state.tell(&myself, &key, ObjectMessage::Nudge).await;
                }
            }
            RegistryMessage::Leading(leading) => {
                state.leading = leading;
                if !leading {
                    state.close(&myself).await;
                }
                state.update_gate(&myself).await;
            }
            RegistryMessage::ResyncTick => state.resync(&myself).await,
            RegistryMessage::Respawn { key } => state.respawn(&myself, &key).await,
            RegistryMessage::Drain(reply) => {
                state.drained = true;
                state.draining = Some(reply);
                state.answer_drain();
            }
            RegistryMessage::List(reply) => {
                // The asker may have gone.
                let _ = reply.send(state.lines());
            }
            RegistryMessage::Find(key, reply) => {
                let actor = state.entries.get(&key).and_then(|entry| entry.actor.clone());
                // The asker may have gone.
                let _ = reply.send(actor);
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(cell, reason) => {
                if let Some(key) = state.actors.remove(&cell.get_id()) {
                    state.died(&myself, &key, &reason.to_string());
                }
            }
            SupervisionEvent::ActorTerminated(cell, _, _) => {
                state.actors.remove(&cell.get_id());
            }
            _ => {}
        }
        Ok(())
    }
}

type Myself<R> = ActorRef<RegistryMessage<R>>;

impl<R: Reconciler> RegistryState<R> {
    fn keys(&self) -> Vec<ObjectKey> {
        self.entries.keys().cloned().collect()
    }

    async fn watched(&mut self, myself: &Myself<R>, event: WatchEvent<R::Object>) {
        match event {
            WatchEvent::Relist => self.list += 1,
            WatchEvent::Seen { object, listed } => {
                let Some(key) = key_of(&object) else { return };
                let object = Arc::new(object);
                self.context.reconciler.indexed(&key, Some(&object));
                self.revive(&key, object.meta().generation);
                self.mark(&key, true, None);
                self.tell(myself, &key, ObjectMessage::Object { object, listed }).await;
            }
            WatchEvent::Broken { namespace, name, uid, generation, error, .. } => {
                let key = ObjectKey::new(namespace.as_deref().unwrap_or_default(), &name);
                self.context.reconciler.indexed(&key, None);
                if self.entry(&key).broken.as_ref() != Some(&error) {
                    error!(key = %key, %error, "object cannot be decoded");
                }
                self.mark(&key, true, Some(error.clone()));
                self.tell(myself, &key, ObjectMessage::Broken(Broken { uid, generation, error })).await;
            }
            WatchEvent::Gone { namespace, name, .. } => {
                let key = ObjectKey::new(namespace.as_deref().unwrap_or_default(), &name);
                self.vanished(myself, &key).await;
            }
            WatchEvent::Synced => {
                // What a complete list does not have went away while the watch was broken.
                let list = self.list;
                let gone: Vec<ObjectKey> = self
                    .entries
                    .iter()
                    .filter(|(_, entry)| entry.exists && entry.list != list)
                    .map(|(key, _)| key.clone())
                    .collect();
                for key in gone {
                    self.vanished(myself, &key).await;
                }
                if !self.own_synced {
                    self.own_synced = true;
                    self.synced(myself).await;
                }
            }
        }
        self.context.metrics.objects(self.context.reconciler.model(), self.entries.len());
    }

    fn mark(&mut self, key: &ObjectKey, exists: bool, broken: Option<String>) {
        let list = self.list;
        let entry = self.entry(key);
        entry.list = list;
        entry.exists = exists;
        entry.broken = broken;
    }

    fn entry(&mut self, key: &ObjectKey) -> &mut Entry<R> {
        self.entries.entry(key.clone()).or_insert_with(|| Entry {
            actor: None,
            kept: SharedKept::default(),
            exists: false,
            broken: None,
            list: 0,
            sent: 0,
            deaths: History::default(),
            given_up: false,
            respawn: Timer::default(),
        })
    }

    async fn vanished(&mut self, myself: &Myself<R>, key: &ObjectKey) {
        if !self.entries.contains_key(key) {
            return;
        }
        self.context.reconciler.indexed(key, None);
        self.mark(key, false, None);
        self.queue.withdraw(key);
        self.tell(myself, key, ObjectMessage::Gone).await;
    }

    /// Sends to the key's actor, which is started if there is none.
    async fn tell(&mut self, myself: &Myself<R>, key: &ObjectKey, message: ObjectMessage<R>) {
        if self.entries.get(key).is_none_or(|entry| entry.actor.is_none()) && !self.spawn(myself, key, None).await {
            return;
        }
        let entry = self.entry(key);
        entry.sent += 1;
        if let Some(actor) = &entry.actor {
            // An actor that has just died is started again with what it kept, and lists heal the rest.
            let _ = actor.cast(message);
        }
    }

    async fn spawn(&mut self, myself: &Myself<R>, key: &ObjectKey, degraded: Option<String>) -> bool {
        let context = self.context.clone();
        let entry = self.entry(key);
        let birth = Birth { key: key.clone(), context, registry: myself.clone(), kept: entry.kept.clone(), degraded };
        match Actor::spawn_linked(None, ObjectActor::default(), birth, myself.get_cell()).await {
            Ok((actor, _)) => {
                let id = actor.get_id();
                entry.sent = 0;
                entry.actor = Some(actor);
                self.actors.insert(id, key.clone());
                true
            }
            Err(error) => {
                error!(key = %key, %error, "actor not started");
                false
            }
        }
    }

    /// A child died: log, count, decide.
    fn died(&mut self, myself: &Myself<R>, key: &ObjectKey, reason: &str) {
        self.queue.withdraw(key);
        self.context.metrics.actor_restart(ACTOR);
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.actor = None;
        let verdict = entry.deaths.decide(Instant::now());
        error!(key = %key, reason, ?verdict, "actor died");
        let after = match verdict {
            Verdict::Respawn(after) => after,
            Verdict::GiveUp => {
                entry.given_up = true;
                Duration::ZERO
            }
        };
        entry.respawn.set(after, myself, RegistryMessage::Respawn { key: key.clone() });
    }

    async fn respawn(&mut self, myself: &Myself<R>, key: &ObjectKey) {
        let Some(entry) = self.entries.get(key) else { return };
        if entry.actor.is_some() {
            return;
        }
        let degraded =
            entry.given_up.then(|| "the operator's actor died too often; it waits for the next change".to_owned());
        self.spawn(myself, key, degraded).await;
    }

    /// A change of an object that was given up starts it afresh.
    fn revive(&mut self, key: &ObjectKey, generation: Option<i64>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let before = entry
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .object
            .as_ref()
            .and_then(|old| old.meta().generation);
        if entry.given_up && before != generation {
            entry.given_up = false;
            entry.deaths.clear();
            if let Some(actor) = entry.actor.take() {
                self.actors.remove(&actor.get_id());
                actor.stop(None);
            }
        }
    }

    /// An actor offers to end. It may, unless something is on its way to it.
    fn farewell(&mut self, key: &ObjectKey, received: u64) {
        let Some(entry) = self.entries.get(key) else { return };
        if entry.exists || entry.sent != received {
            return;
        }
        if let Some(entry) = self.entries.remove(key)
            && let Some(actor) = entry.actor
        {
            self.actors.remove(&actor.get_id());
            actor.stop(None);
        }
        self.queue.withdraw(key);
        self.context.metrics.objects(self.context.reconciler.model(), self.entries.len());
    }

    async fn synced(&mut self, myself: &Myself<R>) {
        self.unsynced = self.unsynced.saturating_sub(1);
        if self.unsynced == 0 {
            self.context.set_synced();
            info!(
                model = self.context.reconciler.model(),
                objects = self.entries.len(),
                "every first list is complete"
            );
            self.update_gate(myself).await;
        }
    }

    /// Lists are complete, or leadership came, came back after a lapse, or went. Everybody looks again, also if
    /// the gate was open before: during a lapse nobody did.
    async fn update_gate(&mut self, myself: &Myself<R>) {
        let open = self.unsynced == 0 && self.leading;
        self.context.set_open(open);
        if open {
            for key in self.keys() {
                self.tell(myself, &key, ObjectMessage::Opened).await;
            }
        }
        self.grant(myself).await;
    }

    async fn close(&mut self, myself: &Myself<R>) {
        self.context.set_open(false);
        for key in self.keys() {
            if self.queue.runs(&key) {
                self.tell(myself, &key, ObjectMessage::Closed).await;
            }
        }
    }

    async fn grant(&mut self, myself: &Myself<R>) {
        while self.context.open() && !self.drained {
            let Some(grant) = self.queue.grant(Instant::now()) else { break };
            let permit = Permit::new(grant.key.clone(), myself.clone());
            if self.entries.get(&grant.key).is_some_and(|entry| entry.actor.is_some()) {
                let message = ObjectMessage::Granted { permit, class: grant.class, since: grant.since };
                self.tell(myself, &grant.key, message).await;
            }
        }
        self.measure();
        self.answer_drain();
    }

    fn measure(&self) {
        self.context.metrics.queue_depth(self.context.reconciler.model(), self.queue.depth());
        self.context.metrics.slots_in_use(self.queue.in_use());
    }

    fn answer_drain(&mut self) {
        if self.drained
            && self.queue.in_use() == 0
            && let Some(reply) = self.draining.take()
        {
            // The asker may have run out of patience.
            let _ = reply.send(());
        }
    }

    /// Every tick resyncs the keys of one slice; over a period each key has its turn, the first at a random moment.
    async fn resync(&mut self, myself: &Myself<R>) {
        self.resync_slice = (self.resync_slice + 1) % RESYNC_SLICES;
        if !self.context.open() || self.drained {
            return;
        }
        let (salt, slice) = (self.resync_salt, self.resync_slice);
        let due: Vec<ObjectKey> = self.entries.keys().filter(|key| slice_of(key, salt) == slice).cloned().collect();
        for key in due {
            self.tell(myself, &key, ObjectMessage::Resync).await;
        }
        if self.queue.depth() > 10_000 {
            warn!(depth = self.queue.depth(), "long queue: raise the worker limit or look at the API server");
        }
    }

    fn lines(&self) -> Vec<Value> {
        let mut keys = self.keys();
        keys.sort();
        keys.iter()
            .map(|key| {
                let entry = self.entries.get(key);
                json!({
                    "key": key.to_string(),
                    "exists": entry.is_some_and(|entry| entry.exists),
                    "undecodable": entry.is_some_and(|entry| entry.broken.is_some()),
                    "given_up": entry.is_some_and(|entry| entry.given_up),
                    "queued": self.queue.waiting(key).map(super::slots::Class::word),
                })
            })
            .collect()
    }
}

fn key_of<K: kube::Resource>(object: &K) -> Option<ObjectKey> {
    let meta = object.meta();
    Some(ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref()?))
}

fn slice_of(key: &ObjectKey, salt: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (salt, key).hash(&mut hasher);
    hasher.finish() % RESYNC_SLICES
}
