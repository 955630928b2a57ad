//! A plain resource on the engine: `reconcile`, `requeue_after` and `finalize`, and nothing else to say.
//!
//! Reconciled are an added object, a changed generation, a resync, what asked for it, and what failed
//! (exponentially, from one second). The status gets `observedGeneration`, a `Ready` condition and the fields
//! that a pass reports; writing them reconciles nothing. What was reconciled well at its generation is not
//! reconciled again after a restart until the next resync. Resources with more to observe implement
//! [`Reconciler`] themselves.

use std::borrow::Cow;
use std::future::Future;
use std::time::{Duration, Instant};

use kube::Resource as _;
use serde_json::{Map, Value, json};

use super::machine::Retry;
use super::reconciler::{Broken, Failure, Look, Moment, Object, Pass, Reconciler, Settled};
use super::slots::Class;
use crate::cluster::{CallError, Cluster};

/// What a pass that ended well says.
#[derive(Clone, Debug, Default)]
pub struct Reconciled {
    /// Fields of the status, beside `observedGeneration` and `conditions`.
    pub status: Map<String, Value>,
    /// Reconcile again after this time.
    pub requeue_after: Option<Duration>,
}

/// A resource.
pub trait Reconcile: Send + Sync + 'static {
    /// Its Rust type.
    type Object: Object;

    /// Word for metrics, logs and the debug path.
    const MODEL: &'static str;

    /// Makes the world as the object says. An error's text becomes the message of `Ready`.
    fn reconcile(
        &self,
        object: &Self::Object,
        cluster: &Cluster,
    ) -> impl Future<Output = Result<Reconciled, CallError>> + Send;

    /// Cleans up before the object goes; runs only with a finalizer.
    fn finalize(
        &self,
        _object: &Self::Object,
        _cluster: &Cluster,
    ) -> impl Future<Output = Result<(), CallError>> + Send {
        async { Ok(()) }
    }
}

/// [`Reconcile`] as the engine takes it.
pub struct Plain<R> {
    inner: R,
    options: PlainOptions,
}

/// What [`Plain`] does around a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainOptions {
    /// Finalizer that is added to the objects: [`Reconcile::finalize`] runs before they go.
    pub finalizer: Option<String>,
    /// Attempts of a finalizer write on conflicts.
    pub max_retries: u32,
}

impl Default for PlainOptions {
    fn default() -> Self {
        Self { finalizer: None, max_retries: 5 }
    }
}

impl<R: Reconcile> Plain<R> {
    /// A resource on the engine.
    #[must_use]
    pub const fn new(inner: R, options: PlainOptions) -> Self {
        Self { inner, options }
    }

    fn has_finalizer(&self, object: &R::Object) -> bool {
        let all = object.meta().finalizers.as_deref().unwrap_or_default();
        self.options.finalizer.as_ref().is_some_and(|finalizer| all.contains(finalizer))
    }
}

/// What is remembered of one object.
#[derive(Clone, Debug, Default)]
pub struct PlainState {
    /// Generation that was reconciled well.
    reconciled: Option<i64>,
    /// A resync or the object itself asks for a pass.
    due: bool,
    requeue_at: Option<Instant>,
    fields: Map<String, Value>,
    /// Generation and message of the last failure.
    failed: Option<(Option<i64>, String)>,
    finalized: bool,
}

/// What one pass is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainWork {
    /// `reconcile`, after the finalizer is in place.
    Reconcile,
    /// `finalize`, then take the finalizer away.
    Finalize,
}

impl<R: Reconcile> Reconciler for Plain<R> {
    type Object = R::Object;
    type State = PlainState;
    type Fact = ();
    type Work = PlainWork;
    type Done = Option<Reconciled>;

    fn model(&self) -> &'static str {
        R::MODEL
    }

    fn seen(&self, state: &mut PlainState, old: Option<&R::Object>, new: &R::Object, _: &Moment) {
        // The status is also how a replica that follows learns what the one that leads has done.
        let Some(told) = reconciled_at(new) else { return };
        state.reconciled = state.reconciled.max(Some(told));
        let news = old.and_then(reconciled_at) != Some(told);
        state.failed = state.failed.take().filter(|(failed, _)| !(news && *failed <= Some(told)));
    }

    fn gone(&self, state: &mut PlainState) {
        *state = PlainState::default();
    }

    fn fold(&self, _: &mut PlainState, (): (), _: &Moment) -> bool {
        false
    }

    fn resynced(&self, state: &mut PlainState) {
        state.due = true;
    }

    fn look(&self, object: &R::Object, state: &PlainState, moment: &Moment) -> Look<PlainWork> {
        let meta = object.meta();
        if meta.deletion_timestamp.is_some() {
            let ours = self.has_finalizer(object) && !state.finalized;
            return if ours { Look::work(Class::Change, PlainWork::Finalize) } else { Look::nothing() };
        }
        if state.reconciled != meta.generation {
            return Look::work(Class::Change, PlainWork::Reconcile);
        }
        if state.due {
            return Look::work(Class::Resync, PlainWork::Reconcile);
        }
        match state.requeue_at.map(|at| at.saturating_duration_since(moment.now)) {
            Some(Duration::ZERO) => Look::work(Class::Retry, PlainWork::Reconcile),
            wake => Look { work: None, wake },
        }
    }

    async fn reconcile(&self, pass: Pass<Self>) -> Result<Option<Reconciled>, Failure> {
        let failed = |error: CallError| Failure {
            reason: "ReconcileError",
            message: error.to_string(),
            retry: Retry::Backoff { capped: false },
            expected: matches!(error, CallError::NotLeader { .. }),
        };
        match pass.work {
            PlainWork::Finalize => {
                self.inner.finalize(&pass.object, &pass.cluster).await.map_err(failed)?;
                self.set_finalizer(&pass.object, &pass.cluster, false).await.map_err(failed)?;
                Ok(None)
            }
            PlainWork::Reconcile => {
                if self.options.finalizer.is_some() && !self.has_finalizer(&pass.object) {
                    self.set_finalizer(&pass.object, &pass.cluster, true).await.map_err(failed)?;
                }
                self.inner.reconcile(&pass.object, &pass.cluster).await.map(Some).map_err(failed)
            }
        }
    }

    fn settle(
        &self,
        state: &mut PlainState,
        object: &R::Object,
        _: &PlainWork,
        outcome: Settled<'_, Option<Reconciled>>,
        moment: &Moment,
    ) {
        let generation = object.meta().generation;
        match outcome {
            Settled::Done(Some(reconciled)) => {
                state.reconciled = generation;
                state.due = false;
                state.requeue_at = reconciled.requeue_after.map(|after| moment.now + after);
                state.fields = reconciled.status;
                state.failed = None;
            }
            Settled::Done(None) => state.finalized = true,
            Settled::Failed { failure, .. } => state.failed = Some((generation, failure.message.clone())),
        }
    }

    fn status(&self, object: &R::Object, state: &PlainState, moment: &Moment) -> Option<Value> {
        let present = status_of(object);
        let generation = object.meta().generation;
        let (ready, reason, message) = match &state.failed {
            Some((failed, message)) if *failed == generation => ("False", "ReconcileError", message.as_str()),
            _ if state.reconciled == generation => ("True", "Reconciled", ""),
            _ => return None,
        };
        let condition = condition(&present, ready, reason, message, generation, moment.wall);
        let others = present["conditions"].as_array().cloned().unwrap_or_default();
        let mut conditions: Vec<Value> = others.into_iter().filter(|one| one["type"] != "Ready").collect();
        conditions.push(condition);
        let mut desired = state.fields.clone();
        desired.insert("observedGeneration".to_owned(), json!(generation));
        desired.insert("conditions".to_owned(), Value::Array(conditions));
        desired.retain(|name, value| present[name.as_str()] != *value);
        (!desired.is_empty()).then_some(Value::Object(desired))
    }

    fn broken_status(&self, broken: &Broken, moment: &Moment) -> Value {
        let ready = condition(&Value::Null, "False", "Invalid", &broken.error, broken.generation, moment.wall);
        json!({"observedGeneration": broken.generation, "conditions": [ready]})
    }

    fn degraded_status(&self, object: &R::Object, message: &str, moment: &Moment) -> Value {
        let generation = object.meta().generation;
        let ready = condition(&status_of(object), "False", "ActorFailed", message, generation, moment.wall);
        json!({"observedGeneration": generation, "conditions": [ready]})
    }

    fn describe(&self, _: Option<&R::Object>, state: &PlainState) -> Value {
        json!({
            "reconciled_generation": state.reconciled,
            "due": state.due,
            "requeue_in_seconds": state.requeue_at.map(|at| at.saturating_duration_since(Instant::now()).as_secs_f64()),
            "failed": state.failed.as_ref().map(|(_, message)| message),
        })
    }
}

impl<R: Reconcile> Plain<R> {
    /// Adds or takes away the finalizer, on whatever version the object has by now.
    async fn set_finalizer(&self, object: &R::Object, cluster: &Cluster, add: bool) -> Result<(), CallError> {
        let Some(finalizer) = &self.options.finalizer else { return Ok(()) };
        let (namespace, name) = (object.meta().namespace.as_deref(), object.meta().name.as_deref().unwrap_or_default());
        let mut live = Cow::Borrowed(object);
        let mut attempts = 0;
        loop {
            let mut all = live.meta().finalizers.clone().unwrap_or_default();
            all.retain(|one| one != finalizer);
            if add {
                all.push(finalizer.clone());
            }
            let patch = json!({"metadata": {"resourceVersion": live.meta().resource_version, "finalizers": all}});
            attempts += 1;
            match cluster.merge_patch::<R::Object>(namespace, name, &patch).await {
                Ok(_) | Err(CallError::NotFound { .. }) => return Ok(()),
                Err(CallError::Conflict { .. }) if attempts < self.options.max_retries => {
                    match cluster.read::<R::Object>(namespace, name).await? {
                        Some(newer) if newer.meta().uid == object.meta().uid => live = Cow::Owned(newer),
                        _ => return Ok(()),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// The generation that the status says was reconciled well.
fn reconciled_at<K: Object>(object: &K) -> Option<i64> {
    let status = status_of(object);
    let ready = status["conditions"].as_array()?.iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
    status["observedGeneration"].as_i64().filter(|_| ready)
}

fn status_of<K: Object>(object: &K) -> Value {
    serde_json::to_value(object).map(|mut object| object["status"].take()).unwrap_or_default()
}

/// The `Ready` condition; its transition time moves with its status only.
fn condition(
    present: &Value,
    status: &str,
    reason: &str,
    message: &str,
    generation: Option<i64>,
    wall: jiff::Timestamp,
) -> Value {
    let known = present["conditions"].as_array().and_then(|all| all.iter().find(|one| one["type"] == "Ready"));
    let since = known
        .filter(|one| one["status"] == status)
        .and_then(|one| one["lastTransitionTime"].as_str().map(str::to_owned))
        .unwrap_or_else(|| wall.round(jiff::Unit::Second).unwrap_or(wall).to_string());
    json!({
        "type": "Ready", "status": status, "reason": reason, "message": message,
        "observedGeneration": generation, "lastTransitionTime": since,
    })
}
