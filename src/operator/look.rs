//! The look: compares what is observed of a Site with what was handled, and names the pass that is wanted.
//! Pure, called at every event; it takes no permit and costs no call.

use std::str::FromStr;
use std::time::{Duration, Instant};

use super::facts::{ChildFact, Ownership};
use super::state::{Outcome, SiteState};
use super::volumes::VolumeIndex;
use crate::domain::change;
use crate::domain::child::{ChildKey, ChildKind};
use crate::domain::labels;
use crate::domain::site::{Child, ChildState, Handled, Site};
use crate::engine::{Class, Look};

/// What one pass is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Observe, validate, render, apply everything: a new Site, a take-over, or a qualifying change.
    Full,
    /// These children are missing or differ from what was last known to equal their render.
    Repair(Vec<ChildKey>),
    /// These pods carry an old stamp and are not Running and Ready.
    ReplacePods(Vec<OldPod>),
    /// The bound volume lacks the labels.
    LabelVolume(String),
}

/// A pod to replace, exactly as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldPod {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Resource version.
    pub resource_version: String,
}

/// What is wanted now.
#[must_use]
pub fn look(site: &Site, state: &SiteState, volumes: &VolumeIndex, expansion: bool, now: Instant) -> Look<Work> {
    if site.metadata.deletion_timestamp.is_some() || state.refusal().is_some() {
        return Look::nothing();
    }
    let Some(handled) = state.handled.as_deref() else {
        return Look::work(class_of_change(state), Work::Full);
    };
    if state.trigger.due(&change::handled_trigger(handled)) {
        return Look::work(class_of_change(state), Work::Full);
    }
    let broken = to_repair(site, state, handled, expansion);
    if lost_beside_adopted(state, handled, &broken) {
        return Look::work(Class::Fact, Work::Full);
    }
    let (now_due, later): (Vec<ChildKey>, Vec<ChildKey>) =
        broken.into_iter().partition(|key| state.repair_wait(key, now).is_zero());
    if !now_due.is_empty() {
        return Look::work(Class::Fact, Work::Repair(now_due));
    }
    if let Some(wait) = later.iter().map(|key| state.repair_wait(key, now)).min() {
        return Look { work: None, wake: Some(wait) };
    }
    let old = old_pods(site, state, handled);
    if !old.is_empty() {
        return Look::work(Class::Fact, Work::ReplacePods(old));
    }
    volume_label(state, volumes, now)
}

/// A change of a bulk run queues behind people's edits.
const fn class_of_change(state: &SiteState) -> Class {
    if state.bulk { Class::Bulk } else { Class::Change }
}

/// Whether an event is one of a bulk run. The annotation describes one change: it counts only for the event that
/// wrote it (or, as it carries the run's id, the run's upgrade request), so that it holds back no later edit of the
/// same Site. Of a Site that is seen for the first time, what is not handled yet is taken for that event.
#[must_use]
pub fn of_bulk_run(old: Option<&Site>, new: &Site) -> bool {
    fn annotation<'a>(site: &'a Site, name: &str) -> Option<&'a String> {
        site.metadata.annotations.as_ref()?.get(name)
    }
    let Some(class) = annotation(new, labels::WORK_CLASS) else { return false };
    let (word, run) = class.split_once('/').unwrap_or((class, ""));
    let request = annotation(new, labels::UPGRADE_REQUEST);
    let of_run = request.is_some_and(|request| run.is_empty() || request == run);
    let written = match old {
        Some(old) => {
            annotation(old, labels::WORK_CLASS) != Some(class)
                || (of_run && annotation(old, labels::UPGRADE_REQUEST) != request)
        }
        None => match new.status.as_ref().and_then(|status| status.handled.as_ref()) {
            Some(handled) => of_run && request != handled.upgrade_request.as_ref(),
            None => true,
        },
    };
    word == "bulk" && written
}

/// Children that are missing, belong to a dead owner, lost a label, or have another version than handled.
fn to_repair(site: &Site, state: &SiteState, handled: &Handled, expansion: bool) -> Vec<ChildKey> {
    let uid = site.metadata.uid.as_deref().unwrap_or_default();
    let mut keys: Vec<ChildKey> = handled
        .children
        .iter()
        .filter_map(|(text, child)| Some((ChildKey::from_str(text).ok()?, child)))
        .filter(|(key, child)| match state.children.get(key) {
            None => true,
            // What is being deleted is looked at again when it is gone.
            Some(fact) if fact.terminating => false,
            Some(fact) => meta_differs(fact, uid, state.labels) || content_differs(fact, child),
        })
        .map(|(key, _)| key)
        .collect();
    let claim = ChildKey::new(ChildKind::PersistentVolumeClaim, site.spec.id.clone());
    match state.children.get(&claim) {
        // A Site that was taken over may still mount a claim of an older name: it gets its own with its first change.
        None if !pods_are_ours(site, handled) => {}
        None => keys.push(claim),
        Some(fact) if fact.terminating => {}
        Some(fact) => {
            let grows = expansion
                && !matches!(state.outcome, Outcome::Failed { .. })
                && super::merge::request_grows(
                    state.claim.as_ref().and_then(|claim| claim.request.as_deref()),
                    site.spec.configuration.quota,
                );
            if meta_differs(fact, uid, state.labels) || grows {
                keys.push(claim);
            }
        }
    }
    keys.extend(stray_routes(state, handled, uid));
    keys
}

/// Whether the pods' set was written by us.
fn pods_are_ours(site: &Site, handled: &Handled) -> bool {
    let set = ChildKey::new(ChildKind::StatefulSet, site.spec.id.clone()).to_string();
    handled.children.get(&set).is_none_or(|child| child.state == ChildState::Applied)
}

/// An object is missing among ones that were taken over as they were: ours alone would not fit theirs (other ports,
/// volumes, files), so everything is rendered.
fn lost_beside_adopted(state: &SiteState, handled: &Handled, broken: &[ChildKey]) -> bool {
    let lost = |key: &ChildKey| key.kind != ChildKind::PersistentVolumeClaim && !state.children.contains_key(key);
    broken.iter().any(lost) && handled.children.values().any(|child| child.state == ChildState::Adopted)
}

fn content_differs(fact: &ChildFact, child: &Child) -> bool {
    child.state == ChildState::Applied && fact.version() != child.version
}

fn meta_differs(fact: &ChildFact, uid: &str, labels: u64) -> bool {
    fact.labels != labels || !matches!(&fact.owner, Ownership::Site(owner) if owner == uid)
}

/// Routes of this Site that are not among the handled ones: left over by a pass that ended before it deleted them.
fn stray_routes(state: &SiteState, handled: &Handled, uid: &str) -> Vec<ChildKey> {
    state
        .children
        .iter()
        .filter(|(key, _)| is_route(&key.kind))
        .filter(|(_, fact)| !fact.terminating && matches!(&fact.owner, Ownership::Site(owner) if owner == uid))
        .filter(|(key, _)| !handled.children.contains_key(&key.to_string()))
        .map(|(key, _)| key.clone())
        .collect()
}

/// Whether the kind belongs to a route.
#[must_use]
pub const fn is_route(kind: &ChildKind) -> bool {
    matches!(kind, ChildKind::Ingress | ChildKind::HttpRoute | ChildKind::Policy { .. })
}

/// LIFE-15, once the controller works from the new template: before that it may bring the old pod back.
fn old_pods(site: &Site, state: &SiteState, handled: &Handled) -> Vec<OldPod> {
    let Some(set) = state.stateful_set.as_ref().filter(|_| site.enabled()) else { return Vec::new() };
    let stamp = change::stamp(&change::handled_trigger(handled));
    if set.stamp.as_deref() != Some(&stamp) || set.observed_generation < set.generation {
        return Vec::new();
    }
    state
        .pods
        .iter()
        .map(|(pod, _)| pod)
        .filter(|pod| !pod.terminating && !pod.running_and_ready() && pod.stamp != set.stamp)
        .filter(|pod| {
            state.replaced.get(&pod.uid).is_none_or(|version| !version.is_empty() && *version != pod.resource_version)
        })
        .map(|pod| OldPod {
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            resource_version: pod.resource_version.clone(),
        })
        .collect()
}

fn volume_label(state: &SiteState, volumes: &VolumeIndex, now: Instant) -> Look<Work> {
    let Some(volume) = state.claim.as_ref().filter(|claim| claim.bound).and_then(|claim| claim.volume.as_deref())
    else {
        return Look::nothing();
    };
    if volumes.labelled(volume, state.labels) != Some(false) || state.volume_problem.is_some() {
        return Look::nothing();
    }
    let wait = state.volume_due.map_or(Duration::ZERO, |due| due.saturating_duration_since(now));
    if wait.is_zero() {
        Look::work(Class::Fact, Work::LabelVolume(volume.to_owned()))
    } else {
        Look { work: None, wake: Some(wait) }
    }
}
