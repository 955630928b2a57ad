//! The status half of an object's actor: asks for a place in the lane, writes the newest desired status, hears
//! how it went. The pass half is [`super::object`]; when a write is due is decided by [`super::status_lane`].

use std::sync::Arc;
use std::time::Instant;

use kube::Resource as _;
use serde_json::{Value, json};
use tracing::warn;

use super::messages::{ObjectMessage, Snapshot};
use super::object::{Myself, ObjectState};
use super::reconciler::{Moment, Reconciler};
use super::status_lane::{StatusLane, Step};
use crate::cluster::CallError;

impl<R: Reconciler> ObjectState<R> {
    /// The patch that makes the status true, if it is not, with the version it is meant for.
    fn desired_status(&self) -> Option<(Value, Option<String>)> {
        let moment = Moment::take();
        if let Some(broken) = &self.broken {
            let patch = self.context.reconciler.broken_status(broken, &moment);
            return Some((patch, None)).filter(|_| self.broken_written.is_none());
        }
        let (object, state) = self.snapshot()?;
        let version = object.meta().resource_version.clone();
        let patch = match &self.degraded {
            Some(message) => Some(self.context.reconciler.degraded_status(&object, message, &moment))
                .filter(|_| self.broken_written.is_none()),
            None => self.context.reconciler.status(&object, &state, &moment),
        };
        patch.map(|patch| (patch, version))
    }

    pub(super) fn pump_status(&mut self, myself: &Myself<R>) {
        if !self.context.open() {
            return;
        }
        let desired = self.desired_status();
        let version = desired.as_ref().and_then(|(_, version)| version.as_deref());
        match self.lane.wanted(desired.is_some(), version, Instant::now()) {
            Step::Rest => {}
            Step::AskLane => {
                let lane = self.context.lane.clone();
                let reply = myself.clone();
                tokio::spawn(async move {
                    if let Ok(place) = lane.acquire_owned().await {
                        // An actor that has ended writes no status.
                        let _ = reply.cast(ObjectMessage::Lane(place));
                    }
                });
            }
            Step::Arm(after) => self.status_timer.set(after, myself, ObjectMessage::StatusDue),
        }
        self.outstanding.set(self.lane.outstanding());
    }

    pub(super) fn write_status(&mut self, myself: &Myself<R>, place: tokio::sync::OwnedSemaphorePermit) {
        let desired = self.desired_status().filter(|_| self.context.open());
        if !self.lane.entered(desired.is_some()) {
            self.pump_status(myself);
            return;
        }
        let Some((patch, version)) = desired else { return };
        if self.broken.is_some() || self.degraded.is_some() {
            self.broken_written = Some(patch.clone());
        }
        let mut body = json!({ "status": patch });
        if let Some(version) = version {
            body["metadata"] = json!({ "resourceVersion": version });
        }
        let cluster = self.context.cluster.clone();
        let key = self.key.clone();
        let reply = myself.clone();
        let before = self.snapshot();
        tokio::spawn(async move {
            let _place = place;
            let outcome = cluster.patch_status::<R::Object>(key.scope(), key.name(), &body).await.map(Box::new);
            // An actor that has ended does not wait for it.
            let _ = reply.cast(ObjectMessage::Written { before, outcome });
        });
    }

    pub(super) fn status_written(
        &mut self,
        myself: &Myself<R>,
        before: Option<Snapshot<R>>,
        outcome: Result<Box<R::Object>, CallError>,
    ) {
        let now = Instant::now();
        match outcome {
            Ok(object) => {
                let lag = self.lane.written(self.context.options.status_min_interval, now);
                self.context.metrics.status_lag(lag);
                if let Some((old, state)) = before {
                    self.context.reconciler.status_written(&self.key, &old, &object, &state);
                }
                self.accept(Arc::new(*object), false);
                self.look(myself);
            }
            // A broken object cannot be read back: that its status was written is all that counts.
            Err(CallError::Decode { .. }) if self.broken.is_some() => {
                self.lane.written(self.context.options.status_min_interval, now);
                self.pump_status(myself);
            }
            // What the object holds keeps the API server from taking any status (an expression of its definition
            // meets a value of another type): nothing but a change of the object can help. An Event says it instead.
            Err(error @ CallError::Invalid { .. }) if self.broken.is_some() => {
                self.lane.written(self.context.options.status_min_interval, now);
                warn!(key = %self.key, %error, "status not written, and not before the object changes");
                if let Some(broken) = &self.broken {
                    self.context.warn_about(&self.key, &broken.uid, "Invalid", &broken.error);
                }
                self.pump_status(myself);
            }
            Err(CallError::NotFound { .. }) => {
                // The watch will say so.
                self.lane = StatusLane::default();
                self.outstanding.set(false);
            }
            Err(error) => {
                self.broken_written = None;
                if error.may_have_happened() {
                    self.context.reconciler.status_perhaps_written(&self.key);
                }
                let version = self.snapshot().and_then(|(object, _)| object.meta().resource_version.clone());
                let conflict = matches!(error, CallError::Conflict { .. }).then_some(version).flatten();
                let options = &self.context.options;
                let tried_again = self.lane.failed(conflict.as_deref(), options.max_retries, options.max_backoff, now);
                if conflict.is_none() || !tried_again {
                    warn!(key = %self.key, %error, "status not written");
                }
                self.pump_status(myself);
            }
        }
    }
}
