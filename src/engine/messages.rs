//! What the engine's actors say to each other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ractor::{ActorRef, RpcReplyPort};
use serde_json::Value;

use super::key::ObjectKey;
use super::reconciler::{Broken, Failure, Reconciler};
use super::slots::Class;
use crate::cluster::{CallError, WatchEvent};

/// To the registry.
pub enum RegistryMessage<R: Reconciler> {
    /// From the watch of the resource itself.
    Watched(WatchEvent<R::Object>),
    /// From a related watch.
    Source(SourceEvent<R::Fact>),
    /// An object asks for a permit.
    Want {
        /// Of which object.
        key: ObjectKey,
        /// How urgently.
        class: Class,
    },
    /// An object takes its request back.
    Withdraw {
        /// Of which object.
        key: ObjectKey,
    },
    /// A permit was dropped.
    Returned {
        /// Of which object.
        key: ObjectKey,
    },
    /// A permit of a bulk run has rested after its pass.
    Rested,
    /// An actor has neither object nor facts, after so many messages of the registry.
    Forgettable {
        /// Of which object.
        key: ObjectKey,
        /// Messages of the registry that the actor has seen.
        received: u64,
    },
    /// What a fixed wait of this object waited for may have come true.
    Nudge {
        /// Of which object.
        key: ObjectKey,
    },
    /// Leadership was won or lost.
    Leading(bool),
    /// One slice of the resync period has passed.
    ResyncTick,
    /// A dead actor is due to be started again.
    Respawn {
        /// Of which object.
        key: ObjectKey,
    },
    /// No new permits; answered when all are back.
    Drain(RpcReplyPort<()>),
    /// All keys with one line each.
    List(RpcReplyPort<Vec<Value>>),
    /// The actor of a key.
    Find(ObjectKey, RpcReplyPort<Option<ActorRef<ObjectMessage<R>>>>),
}

/// From a related watch, already mapped to the object it concerns.
pub enum SourceEvent<F> {
    /// Something about one object. `spawn` starts an actor if there is none: the fact outlives its object.
    Fact {
        /// Of which object.
        key: ObjectKey,
        /// What was seen.
        fact: F,
        /// Start an actor if there is none: the fact outlives its object.
        spawn: bool,
    },
    /// Something about every object, such as the end of a new list.
    Everyone(F),
    /// The first list is complete.
    Synced,
}

/// Object and state at one moment.
pub type Snapshot<R> = (Arc<<R as Reconciler>::Object>, Arc<<R as Reconciler>::State>);

/// To an object's actor.
pub enum ObjectMessage<R: Reconciler> {
    /// A copy of the object. `listed` when it is part of a list.
    Object {
        /// The copy.
        object: Arc<R::Object>,
        /// Part of a list.
        listed: bool,
    },
    /// The object cannot be decoded.
    Broken(Broken),
    /// The object is gone.
    Gone,
    /// Something around it changed. Boxed: each actor has room for a few messages of the largest kind.
    Fact(Box<R::Fact>),
    /// The gate has opened: lists are complete and this replica leads.
    Opened,
    /// Leadership has ended: the pass in flight is stopped.
    Closed,
    /// A permit.
    Granted {
        /// The permit; dropping it gives it back.
        permit: Permit<R>,
        /// How urgently.
        class: Class,
        /// Since when the object waited.
        since: Instant,
    },
    /// The pass has ended.
    Finished {
        /// Number of the pass.
        pass: u64,
        /// How it ended.
        outcome: Result<R::Done, Failure>,
        /// How long it took.
        took: Duration,
        /// Its permit, given back when the actor has seen how it ended: a stop that waits for all permits then
        /// knows of every status that is still to be written.
        permit: Permit<R>,
    },
    /// A place in the status lane.
    Lane(tokio::sync::OwnedSemaphorePermit),
    /// The status write has ended.
    Written {
        /// What it was made of: the watch may have brought its result by now.
        before: Option<Snapshot<R>>,
        /// The answer.
        outcome: Result<Box<R::Object>, CallError>,
    },
    /// A timer of the machine.
    Due {
        /// Of which arming; an old one is ignored.
        epoch: u64,
    },
    /// A timer of the last look.
    Wake {
        /// Of which arming; an old one is ignored.
        epoch: u64,
    },
    /// The status may be written again.
    StatusDue,
    /// A resync: compare again.
    Resync,
    /// See [`RegistryMessage::Nudge`].
    Nudge,
    /// What the actor knows.
    Describe(RpcReplyPort<Value>),
}

/// The right to do work. Dropping it, by a panic too, gives it back.
pub struct Permit<R: Reconciler> {
    key: ObjectKey,
    registry: ActorRef<RegistryMessage<R>>,
}

impl<R: Reconciler> Permit<R> {
    /// A permit of the registry for this key.
    #[must_use]
    pub const fn new(key: ObjectKey, registry: ActorRef<RegistryMessage<R>>) -> Self {
        Self { key, registry }
    }
}

impl<R: Reconciler> Drop for Permit<R> {
    fn drop(&mut self) {
        // A registry that has ended needs no permit back.
        let _ = self.registry.cast(RegistryMessage::Returned { key: self.key.clone() });
    }
}
