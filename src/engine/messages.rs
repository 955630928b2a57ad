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
    Want { key: ObjectKey, class: Class },
    /// An object takes its request back.
    Withdraw { key: ObjectKey },
    /// A permit was dropped.
    Returned { key: ObjectKey },
    /// An actor has neither object nor facts, after so many messages of the registry.
    Forgettable { key: ObjectKey, received: u64 },
    /// What a fixed wait of this object waited for may have come true.
    Nudge { key: ObjectKey },
    /// Leadership was won or lost.
    Leading(bool),
    /// One slice of the resync period has passed.
    ResyncTick,
    /// A dead actor is due to be started again.
    Respawn { key: ObjectKey },
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
    Fact { key: ObjectKey, fact: F, spawn: bool },
    /// Something about every object, such as the end of a new list.
    Everyone(F),
    /// The first list is complete.
    Synced,
}

/// To an object's actor.
pub enum ObjectMessage<R: Reconciler> {
    /// A copy of the object. `listed` when it is part of a list.
    Object { object: Arc<R::Object>, listed: bool },
    /// The object cannot be decoded.
    Broken(Broken),
    /// The object is gone.
    Gone,
    /// Something around it changed.
    Fact(R::Fact),
    /// The gate has opened: lists are complete and this replica leads.
    Opened,
    /// A permit.
    Granted { permit: Permit<R>, class: Class, since: Instant },
    /// The pass has ended.
    Finished { pass: u64, outcome: Result<R::Done, Failure>, took: Duration },
    /// A place in the status lane.
    Lane(tokio::sync::OwnedSemaphorePermit),
    /// The status write has ended.
    Written(Result<Box<R::Object>, CallError>),
    /// A timer of the machine.
    Due { epoch: u64 },
    /// A timer of the last look.
    Wake { epoch: u64 },
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
