//! The seam between the engine and a resource: what an operator has to say, and nothing else.
//!
//! Everything the actor calls between passes is synchronous and pure (`seen`, `fold`, `look`, `settle`,
//! `status`); only [`Reconciler::reconcile`] does IO, in a task of its own, with a permit.

use kube::Resource as _;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::core::NamespaceResourceScope;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::key::ObjectKey;
use super::machine::Retry;
use super::slots::Class;
use crate::cluster::Cluster;

/// What the engine needs of a resource's Rust type.
pub trait Object:
    kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + fmt::Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<T> Object for T where
    T: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + fmt::Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// Time and randomness of one step: pure code takes them as an argument.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Monotonic.
    pub now: Instant,
    /// For people: condition times, restart stamps.
    pub wall: jiff::Timestamp,
    /// Uniform over all values.
    pub random: u64,
}

impl Moment {
    /// Reads the clocks and the generator.
    #[must_use]
    pub fn take() -> Self {
        Self { now: Instant::now(), wall: jiff::Timestamp::now(), random: rand::random() }
    }
}

/// The outcome of a look: what is wanted now.
#[derive(Clone, Debug)]
pub struct Look<W> {
    /// The pass that is wanted, and how urgently.
    pub work: Option<(Class, W)>,
    /// Look again after this time even if nothing changes.
    pub wake: Option<Duration>,
}

impl<W> Look<W> {
    /// Nothing is wanted.
    #[must_use]
    pub const fn nothing() -> Self {
        Self { work: None, wake: None }
    }

    /// This pass is wanted.
    #[must_use]
    pub const fn work(class: Class, work: W) -> Self {
        Self { work: Some((class, work)), wake: None }
    }
}

/// Why a pass failed: a value, never a panic.
#[derive(Clone, Debug)]
pub struct Failure {
    /// One word in the field's style, such as `RouteConflict`: condition reason, Event reason, log field.
    pub reason: &'static str,
    /// For people; no secret.
    pub message: String,
    /// When it is tried again.
    pub retry: Retry,
}

impl Failure {
    /// The end of a pass that panicked: a defect of ours, whose place the panic's own message has named.
    #[must_use]
    pub fn of_panic(payload: &(dyn std::any::Any + Send)) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        tracing::info!(panic = text, "a pass panicked");
        Self {
            reason: "Panic",
            message: "a defect of the operator stopped this pass; its log names the place".to_owned(),
            retry: Retry::Backoff { capped: true },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

/// How a pass ended, as [`Reconciler::settle`] hears of it.
pub enum Settled<'a, D> {
    /// Well.
    Done(D),
    /// Badly.
    Failed {
        /// Why.
        failure: &'a Failure,
        /// The attempts are used up.
        exhausted: bool,
    },
}

/// What a pass is given: a consistent copy of everything its look saw.
pub struct Pass<R: Reconciler> {
    /// The object as it is rendered. What is recorded as handled is exactly this.
    pub object: Arc<R::Object>,
    /// What the actor knew.
    pub state: Arc<R::State>,
    /// What the look asked for.
    pub work: R::Work,
    /// The trigger of `object`.
    pub trigger: Arc<str>,
    /// The client.
    pub cluster: Cluster,
    /// The start of the pass.
    pub moment: Moment,
}

/// An object that cannot be decoded, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: Option<i64>,
    /// Names the field and what is wrong with it.
    pub error: String,
}

/// A resource on the engine.
pub trait Reconciler: Sized + Send + Sync + 'static {
    /// The custom resource.
    type Object: Object;
    /// What the actor remembers of one object between passes; in memory only, rebuilt from the watches.
    type State: Default + Clone + Send + Sync + 'static;
    /// Something a related watch has seen; folded into the state.
    type Fact: Clone + Send + 'static;
    /// What one pass is to do.
    type Work: Clone + fmt::Debug + Send + Sync + 'static;
    /// What a pass that ended well found out.
    type Done: Send + 'static;

    /// Word for metrics, logs and the debug path: the plural of the resource.
    fn model(&self) -> &'static str;

    /// What counts as a change. Default: the generation.
    fn trigger(&self, object: &Self::Object) -> String {
        object.meta().generation.unwrap_or_default().to_string()
    }

    /// An object came, changed or went, told by the registry in the order of the watch: for indexes over all objects.
    fn indexed(&self, _key: &ObjectKey, _new: Option<&Self::Object>) {}

    /// The actor has a newer copy of its object; `old` is of the same uid.
    fn seen(&self, _state: &mut Self::State, _old: Option<&Self::Object>, _new: &Self::Object, _moment: &Moment) {}

    /// The object is gone; facts stay as long as what they speak of.
    fn gone(&self, _state: &mut Self::State) {}

    /// Whether nothing is left to remember: an actor without object and facts ends.
    fn forgettable(&self, _state: &Self::State) -> bool {
        true
    }

    /// Folds a fact into the state. Returns whether it says anything new.
    fn fold(&self, state: &mut Self::State, fact: Self::Fact, moment: &Moment) -> bool;

    /// Compares what is observed with what was handled. Memory work: called often, takes no permit.
    fn look(&self, object: &Self::Object, state: &Self::State, moment: &Moment) -> Look<Self::Work>;

    /// One pass.
    fn reconcile(&self, pass: Pass<Self>) -> impl Future<Output = Result<Self::Done, Failure>> + Send;

    /// Takes the end of a pass into the state. `object` is the pass's, not the newest.
    fn settle(
        &self,
        state: &mut Self::State,
        object: &Self::Object,
        work: &Self::Work,
        outcome: Settled<'_, Self::Done>,
        moment: &Moment,
    );

    /// The merge patch of `status` (without the `status` key) that makes it true, or nothing if it is.
    fn status(&self, object: &Self::Object, state: &Self::State, moment: &Moment) -> Option<Value>;

    /// A status patch has been written: `old` is the object as it was known, `new` as the server answered.
    fn status_written(&self, _key: &ObjectKey, _old: &Self::Object, _new: &Self::Object, _state: &Self::State) {}

    /// The status patch of an object that cannot be decoded.
    fn broken_status(&self, broken: &Broken, moment: &Moment) -> Value;

    /// The status patch of an object whose actor died too often.
    fn degraded_status(&self, object: &Self::Object, message: &str, moment: &Moment) -> Value;

    /// What the debug page shows of one object. No secrets.
    fn describe(&self, object: Option<&Self::Object>, state: &Self::State) -> Value;
}
