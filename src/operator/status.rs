//! The status a Site should have: a pure function of the Site, the facts and the ends of its passes.

use serde_json::{Map, Value};

use super::state::{Outcome, SiteState};
use crate::domain::change;
use crate::domain::conditions::{self, Reason, Status};
use crate::domain::pod_health;
use crate::domain::site::{Phase, Site, SiteStatus};

/// The merge patch that makes the status true, or nothing if it is.
#[must_use]
pub fn patch(site: &Site, state: &SiteState, wall: jiff::Timestamp) -> Option<Value> {
    // A new Site says nothing before its first pass has ended or its pods have something to say: the first
    // write then carries both.
    let silent = site.status.is_none() && state.outcome == Outcome::Unknown && state.refusal().is_none();
    if silent && state.pods.is_empty() && site.enabled() {
        return None;
    }
    let desired = desired(site, state, wall);
    let says_nothing = desired.phase == Some(Phase::Pending) && desired.container_problems.is_empty();
    let none = SiteStatus::default();
    let present = site.status.as_ref().unwrap_or(&none);
    if *present == desired || (silent && says_nothing) {
        return None;
    }
    // A status without a record of ours may hold what cannot be read: all of it is written.
    let old = present.handled.is_some().then(|| serde_json::to_value(present)).transpose().ok()?;
    let old = old.unwrap_or_else(|| Value::Object(Map::new()));
    let new = serde_json::to_value(&desired).ok()?;
    merge_patch(&old, &new)
}

/// The whole status.
#[must_use]
pub fn desired(site: &Site, state: &SiteState, wall: jiff::Timestamp) -> SiteStatus {
    let report = pod_health::report(site.enabled(), &state.pod_facts());
    let present = site.status.clone().unwrap_or_default();
    let mut status = SiteStatus {
        phase: Some(report.phase),
        all_steps_started: report.all_steps_started,
        container_problems: report.container_problems,
        handled: state.handled.clone(),
        observed_generation: present.observed_generation,
        conditions: present.conditions,
    };
    if let Some(verdict) = verdict(state) {
        status.observed_generation = site.metadata.generation;
        apply_verdict(&mut status, &verdict, site.metadata.generation, wall);
    }
    match &state.volume_problem {
        Some(message) => {
            let generation = status.observed_generation;
            conditions::set(
                &mut status.conditions,
                conditions::VOLUME_LABELLED,
                false,
                Reason::Waiting,
                message,
                generation,
                wall,
            );
        }
        None => {
            conditions::clear(&mut status.conditions, conditions::VOLUME_LABELLED);
        }
    }
    conditions::clear(&mut status.conditions, conditions::DEGRADED);
    status
}

/// What is known about the present generation; nothing while its pass is still to come or to end.
struct Verdict<'a> {
    ready: bool,
    reason: Reason,
    message: &'a str,
}

fn verdict(state: &SiteState) -> Option<Verdict<'_>> {
    if let Some(violations) = state.refusal() {
        return Some(Verdict { ready: false, reason: Reason::Invalid, message: violations });
    }
    if let Outcome::Failed { reason, message, exhausted, trigger } = &state.outcome
        && *trigger == state.trigger
    {
        let reason = if *exhausted { Reason::RetriesExhausted } else { reason_of(reason) };
        return Some(Verdict { ready: false, reason, message });
    }
    let handled = state.handled.as_deref()?;
    if state.trigger.due(&change::handled_trigger(handled)) {
        return None;
    }
    Some(Verdict { ready: true, reason: Reason::Reconciled, message: "" })
}

fn apply_verdict(status: &mut SiteStatus, verdict: &Verdict<'_>, generation: Option<i64>, wall: jiff::Timestamp) {
    let Verdict { ready, reason, message } = *verdict;
    conditions::set(&mut status.conditions, conditions::READY, ready, reason, message, generation, wall);
    if reason == Reason::RouteConflict {
        conditions::set(&mut status.conditions, conditions::ROUTE_CONFLICT, true, reason, message, generation, wall);
    } else {
        conditions::clear(&mut status.conditions, conditions::ROUTE_CONFLICT);
    }
}

fn reason_of(word: &str) -> Reason {
    [
        Reason::Invalid,
        Reason::RouteConflict,
        Reason::VolumeAmbiguous,
        Reason::HostMissing,
        Reason::OtherModeRoute,
        Reason::ForeignObject,
    ]
    .into_iter()
    .find(|reason| reason.as_str() == word)
    .unwrap_or(Reason::ReconcileError)
}

/// The status patch of a Site whose actor or content cannot be worked with.
#[must_use]
pub fn problem_patch(
    site: Option<&Site>,
    type_: &str,
    ready: Status,
    reason: Reason,
    message: &str,
    generation: Option<i64>,
    wall: jiff::Timestamp,
) -> Value {
    let mut conditions = site.and_then(|site| site.status.clone()).unwrap_or_default().conditions;
    conditions::set(&mut conditions, type_, ready, reason, message, generation, wall);
    serde_json::json!({ "conditions": conditions, "observedGeneration": generation })
}

/// The JSON merge patch (RFC 7396) from one value to another; `None` if they are equal.
fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let mut patch = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in new {
        let change = match old.get(name) {
            Some(before) => merge_patch(before, value),
            None => Some(value.clone()),
        };
        if let Some(change) = change {
            patch.insert(name.clone(), change);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_patch_names_only_what_changes_and_removes_what_is_gone() {
        let old = json!({"a": 1, "b": {"x": 1, "y": 2}, "c": [1]});
        let new = json!({"a": 1, "b": {"x": 1, "z": 3}, "c": [2]});
        assert_eq!(merge_patch(&old, &new), Some(json!({"b": {"y": null, "z": 3}, "c": [2]})));
        assert_eq!(merge_patch(&old, &old), None);
    }
}
