//! `Site` on the engine: the one implementation of its seam, made of the pure rooms beside it.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use ractor::ActorRef;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tracing::{debug, error, info};

use super::attach;
use super::error::PassError;
use super::facts::{self, Fact, label_hash};
use super::look::{self, OldPod, Work};
use super::pass::{Applied, How, SitePass};
use super::routes::{Claim, RouteMessage};
use super::state::{Outcome, SiteState};
use super::status;
use super::volumes::VolumeIndex;
use crate::cluster::{CallError, Cluster, Precondition};
use crate::domain::change::{self, changed_paths};
use crate::domain::conditions::{self, Reason, Status};
use crate::domain::site::{Handled, Site, SiteStatus};
use crate::domain::{labels, rules};
use crate::engine::{Broken, Failure, Look, Moment, ObjectKey, Pass, Reconciler, Settled, asks_differently};
use crate::settings::Settings;

/// Everything that the operator needs beyond one Site.
pub struct SiteReconciler {
    /// The settings.
    pub settings: Arc<Settings>,
    /// The volumes of the cluster.
    pub volumes: Arc<RwLock<VolumeIndex>>,
    /// Who claims which path.
    pub routes: ActorRef<RouteMessage>,
    /// Sites (namespace, id) whose cached copies are out of date.
    pub stale: mpsc::UnboundedSender<ObjectKey>,
}

/// What a pass that ended well found out.
#[derive(Debug)]
pub enum Done {
    /// Objects were written or taken over.
    Applied(Box<Applied>),
    /// These pods (uid, and the version it was skipped at, empty if it was deleted).
    Pods(Vec<(String, String)>),
    /// The volume was labelled, or may not be.
    Volume(Option<String>),
}

impl Reconciler for SiteReconciler {
    type Object = Site;
    type State = SiteState;
    type Fact = Fact;
    type Work = Work;
    type Done = Done;

    fn model(&self) -> &'static str {
        "sites"
    }

    fn trigger(&self, site: &Site) -> String {
        change::stamp(&change::trigger(site))
    }

    fn indexed(&self, key: &ObjectKey, new: Option<&Site>) {
        // An index that has ended decides nothing any more.
        let _ = self.routes.cast(RouteMessage::Site(key.clone(), new.map(Claim::of)));
    }

    fn seen(&self, state: &mut SiteState, old: Option<&Site>, new: &Site, moment: &Moment) {
        if let Some(old) = old {
            log_changes(old, new);
        } else {
            // The label is due again after a restart, spread as after a create.
            state.volume_due = Some(moment.now + self.label_delay(true, moment.random));
        }
        let recorded = new.status.as_ref().and_then(|status| status.handled.as_ref());
        state.take_record(recorded, |recorded| in_present_form(new, recorded));
        if old.is_some_and(|old| !asks_differently(&old.metadata, &new.metadata)) {
            return;
        }
        let before = std::mem::replace(&mut state.trigger, change::trigger(new));
        if old.is_none() || before != state.trigger {
            state.bulk = look::of_bulk_run(old, new);
        }
        state.labels = label_hash(&labels::site_labels(new));
        state.violations = as_text(&rules::violations(new));
        state.violations_of_new = if recorded.is_some() { None } else { as_text(&rules::violations_of_new(new)) };
    }

    fn gone(&self, state: &mut SiteState) {
        state.forget_object();
    }

    fn forgettable(&self, state: &SiteState) -> bool {
        state.children.is_empty() && state.pods.is_empty()
    }

    fn fold(&self, state: &mut SiteState, fact: Fact, _: &Moment) -> bool {
        state.fold(fact)
    }

    fn resynced(&self, state: &mut SiteState) {
        // What was refused has another chance: a right may have been given meanwhile.
        state.volume_problem = None;
        state.replaced.clear();
    }

    fn look(&self, site: &Site, state: &SiteState, moment: &Moment) -> Look<Work> {
        let volumes = self.volumes.read().unwrap_or_else(PoisonError::into_inner);
        let expansion = self.settings.kubernetes.storage_expansion_supported;
        look::look(site, state, &volumes, expansion, moment.now)
    }

    async fn reconcile(&self, pass: Pass<Self>) -> Result<Done, Failure> {
        let site_pass = SitePass {
            cluster: &pass.cluster,
            settings: &self.settings,
            site: &pass.object,
            state: &pass.state,
            volumes: &self.volumes,
            routes: &self.routes,
            wall: pass.moment.wall,
        };
        let outcome = match &pass.work {
            Work::Full => site_pass.full().await.map(|applied| Done::Applied(Box::new(applied))),
            Work::Repair(keys) => site_pass.repair(keys).await.map(|applied| Done::Applied(Box::new(applied))),
            Work::ReplacePods(pods) => replace_pods(&pass.cluster, &pass.object, pods).await.map(Done::Pods),
            Work::LabelVolume(volume) => self.label_volume(&pass, volume).await,
        };
        let update = pass.state.handled.is_some();
        outcome.map_err(|error| error.failure(update, &self.settings.operator))
    }

    fn settle(&self, state: &mut SiteState, _: &Site, work: &Work, outcome: Settled<'_, Done>, moment: &Moment) {
        match outcome {
            Settled::Done(Done::Applied(applied)) => {
                if matches!(applied.how, How::Created | How::Updated) {
                    let delay = self.label_delay(applied.how == How::Created, moment.random);
                    state.volume_due = Some(moment.now + delay);
                }
                if let Work::Repair(keys) = work {
                    for key in keys {
                        state.note_repair(key, moment.now);
                    }
                }
                state.learned(&applied.facts);
                state.handled = Some(Arc::new(applied.handled));
                state.unsaved = true;
                state.outcome = Outcome::Done;
            }
            Settled::Done(Done::Pods(pods)) => {
                state.replaced.extend(pods);
                state.outcome = Outcome::Done;
            }
            Settled::Done(Done::Volume(problem)) => {
                state.volume_problem = problem;
                state.outcome = Outcome::Done;
            }
            Settled::Failed { failure, exhausted } => {
                debug!(?work, "pass failed");
                state.outcome = Outcome::Failed {
                    reason: failure.reason,
                    message: failure.message.clone(),
                    exhausted,
                    trigger: state.trigger.clone(),
                };
            }
        }
        state.buried.clear();
    }

    fn status(&self, site: &Site, state: &SiteState, moment: &Moment) -> Option<Value> {
        status::patch(site, state, moment.wall)
    }

    fn status_written(&self, key: &ObjectKey, old: &Site, new: &Site, state: &SiteState) {
        // A cache task that has ended clears nothing any more.
        let _ = self.stale.send(key.clone());
        let (old, new) = (old.status.clone().unwrap_or_default(), new.status.clone().unwrap_or_default());
        let told = |status: &SiteStatus| {
            conditions::find(&status.conditions, conditions::READY).map(|ready| ready.message.clone())
        };
        if let Some(violations) = state.refusal().filter(|_| told(&old) != told(&new)) {
            error!(site = key.name(), violations, "Site breaks a rule");
        }
        let of_pods = |status: &SiteStatus| (status.phase, status.all_steps_started, status.container_problems.clone());
        if of_pods(&old) != of_pods(&new) {
            let event = state.last_pod.clone().unwrap_or_default();
            info!(
                site = key.name(),
                pod = event.pod,
                field = event.field,
                phase = ?new.phase.unwrap_or_default(),
                problems = %serde_json::to_string(&new.container_problems).unwrap_or_default(),
                "pod status written"
            );
        }
    }

    fn status_perhaps_written(&self, key: &ObjectKey) {
        // As after a write: the watch tells what became of it, and nothing is written again then.
        let _ = self.stale.send(key.clone());
    }

    fn broken_status(&self, broken: &Broken, moment: &Moment) -> Value {
        status::problem_patch(
            None,
            conditions::READY,
            Status::False,
            Reason::Invalid,
            &broken.error,
            broken.generation,
            moment.wall,
        )
    }

    fn degraded_status(&self, site: &Site, message: &str, moment: &Moment) -> Value {
        let generation = site.metadata.generation;
        status::problem_patch(
            Some(site),
            conditions::DEGRADED,
            Status::True,
            Reason::ActorFailed,
            message,
            generation,
            moment.wall,
        )
    }

    fn describe(&self, site: Option<&Site>, state: &SiteState) -> Value {
        let children: serde_json::Map<String, Value> =
            state.children.iter().map(|(key, fact)| (key.to_string(), facts::describe(fact))).collect();
        let wanted = site.map(|site| self.look(site, state, &Moment::take()));
        json!({
            "wanted": wanted.as_ref().and_then(|look| look.work.as_ref()).map(|(class, work)| format!("{work:?} ({})", class.word())),
            "looks_again_in_seconds": wanted.and_then(|look| look.wake).map(|wake| wake.as_secs_f64()),
            "trigger": {"digest": state.trigger.digest, "upgrade_request": state.trigger.upgrade_request},
            "handled": state.handled.as_deref(),
            "outcome": format!("{:?}", state.outcome),
            "violations": state.refusal(),
            "children": children,
            "claim": state.claim.as_ref().map(|claim| json!({"bound": claim.bound, "volume": claim.volume, "request": claim.request})),
            "stateful_set": state.stateful_set.as_ref().map(|set| json!({
                "generation": set.generation, "observed_generation": set.observed_generation, "stamp": set.stamp,
            })),
            "pods": state.pods.iter().map(|(pod, _)| json!({
                "name": pod.name, "uid": pod.uid, "phase": pod.phase, "ready": pod.ready, "terminating": pod.terminating, "stamp": pod.stamp,
            })).collect::<Vec<_>>(),
            "volume_problem": state.volume_problem,
        })
    }
}

impl SiteReconciler {
    fn label_delay(&self, create: bool, random: u64) -> Duration {
        let label = &self.settings.operator.volume_label;
        if !create {
            return label.update.get();
        }
        let span = label.create_max.get().saturating_sub(label.create_min.get());
        let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        label.create_min.get() + Duration::from_millis(random % millis)
    }

    async fn label_volume(&self, pass: &Pass<Self>, name: &str) -> Result<Done, PassError> {
        let volume = self.volumes.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let Some(volume) = volume else { return Ok(Done::Volume(None)) };
        match attach::label(&pass.cluster, &pass.object, &volume).await {
            Ok(()) => {
                let mut volumes = self.volumes.write().unwrap_or_else(PoisonError::into_inner);
                volumes.relabelled(name, pass.state.labels);
                info!(site = pass.object.spec.id, volume = name, "volume labelled");
                Ok(Done::Volume(None))
            }
            // The volume has changed or gone meanwhile: the watch tells, and the look decides again.
            Err(CallError::NotFound { .. } | CallError::Conflict { .. }) => Ok(Done::Volume(None)),
            // A right that is missing is not cured by trying: it is said, and tried again at the next news.
            Err(error @ CallError::Forbidden { .. }) => {
                error!(site = pass.object.spec.id, volume = name, %error, "volume not labelled");
                Ok(Done::Volume(Some(error.to_string())))
            }
            Err(source) => Err(PassError::call("volume label")(source)),
        }
    }
}

/// Deletes pods exactly as they were seen. A pod that changed or went is skipped quietly; a refusal is said and
/// does not stop the Site.
async fn replace_pods(cluster: &Cluster, site: &Site, pods: &[OldPod]) -> Result<Vec<(String, String)>, PassError> {
    let namespace = site.metadata.namespace.as_deref();
    let mut done = Vec::new();
    for pod in pods {
        let guard = Precondition { uid: Some(pod.uid.clone()), resource_version: Some(pod.resource_version.clone()) };
        match cluster.delete::<Pod>(namespace, &pod.name, &guard, None).await {
            Ok(_) => {
                info!(site = site.spec.id, pod = pod.name, "pod with an old template that is not ready was deleted");
                done.push((pod.uid.clone(), String::new()));
            }
            Err(CallError::Conflict { .. }) => done.push((pod.uid.clone(), pod.resource_version.clone())),
            Err(error @ CallError::Forbidden { .. }) => {
                error!(site = site.spec.id, pod = pod.name, %error, "pod not deleted: the operator lacks the right to delete pods");
                done.push((pod.uid.clone(), String::new()));
            }
            Err(source) => return Err(PassError::call("pods")(source)),
        }
    }
    Ok(done)
}

/// Changed paths at info, old and new values masked and cut at debug.
fn log_changes(old: &Site, new: &Site) {
    if old.metadata.generation == new.metadata.generation && old.metadata.annotations == new.metadata.annotations {
        return;
    }
    let changes = changed_paths(old, new);
    if changes.is_empty() {
        return;
    }
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    let qualifies = change::trigger(new).due(&change::trigger(old));
    info!(site = new.spec.id, paths = paths.join(", "), qualifies, "Site changed");
    for change in &changes {
        debug!(site = new.spec.id, path = change.path, old = change.old, new = change.new, "changed value");
    }
}

/// Broken rules in one line.
fn as_text(violations: &[rules::Violation]) -> Option<String> {
    let all: Vec<String> = violations.iter().map(rules::Violation::to_string).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// A record in the digest form of an older release, whose Site has not changed, is carried over.
fn in_present_form(site: &Site, recorded: &Arc<Handled>) -> Arc<Handled> {
    let may_be_older = !change::in_present_form(&recorded.digest);
    if may_be_older && change::recorded(site, &recorded.digest) == change::Recorded::OlderForm {
        return Arc::new(Handled { digest: change::digest(site), ..Handled::clone(recorded) });
    }
    recorded.clone()
}
