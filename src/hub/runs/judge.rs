//! What became of a Site, and how far behind the operator is: read from the Sites alone.

use jiff::Timestamp;

use crate::cache::runs::{SiteResult, SiteState};
use crate::domain::change;
use crate::domain::conditions::{self, Reason, Status};
use crate::domain::labels;
use crate::domain::pod_health::PodFact;
use crate::domain::site::{Handled, Phase, Site};

/// How a Site's work for an upgrade ended; nothing while it is under way.
///
/// A condition that was there before the Site was written says nothing about the writing, except that the Site breaks
/// a rule: the operator never works on such a one.
#[must_use]
pub fn upgraded(site: Option<&Site>, run: &str, written: Timestamp) -> Option<(SiteState, Option<String>)> {
    let Some(site) = site.filter(|site| site.metadata.deletion_timestamp.is_none()) else {
        return Some((SiteState::Skipped, Some("it was deleted meanwhile".to_owned())));
    };
    let served = served(site);
    if served == Some(run) && !behind(site) {
        return Some((SiteState::Done, None));
    }
    let asked = request(site);
    if asked != Some(run) {
        // Not seen yet as we wrote it, or somebody asked again since: then theirs counts.
        let at = handled(site).and_then(|handled| handled.at.as_deref()?.parse::<Timestamp>().ok());
        let later = asked.is_some() && asked == served && at.is_some_and(|at| at > written);
        return later.then(|| (SiteState::Done, Some("a later upgrade request took its place".to_owned())));
    }
    let problem = problem(site)?;
    let since = problem.since.is_some_and(|since| since >= written.as_second());
    let final_word = problem.reason == Reason::Invalid.as_str() || (problem.settled && since);
    final_word.then(|| (SiteState::Failed, Some(problem.text())))
}

/// Whether a Site's pods are those of the change that was handled last, and run. An archived one has none.
#[must_use]
pub fn runs_again(site: &Site, pods: &[PodFact]) -> bool {
    let stamp = handled(site).map(|handled| change::stamp(&change::handled_trigger(handled)));
    let new = |pod: &PodFact| pod.running_and_ready() && pod.stamp == stamp;
    !site.enabled() || (!pods.is_empty() && pods.iter().all(new))
}

/// Whether the status says that a Site's pods run.
#[must_use]
pub fn runs(site: &Site) -> bool {
    site.status.as_ref().is_some_and(|status| status.phase == Some(Phase::Running))
}

/// Why no answer came in time.
#[must_use]
pub fn overdue(site: Option<&Site>) -> String {
    if let Some(problem) = site.and_then(problem) {
        return format!("no success in time: {}", problem.text());
    }
    let done = site.filter(|site| !behind(site) && !unserved(site));
    let Some(status) = done.and_then(|site| site.status.as_ref()) else { return "no answer in time".to_owned() };
    let problems = status.container_problems.iter().map(|one| format!("; {}: {}", one.name, one.reason));
    format!("no new pod ran in time: {:?}{}", status.phase.unwrap_or_default(), problems.collect::<String>())
}

/// Whether the operator still has to work on a Site. One that it cannot work on is not behind.
#[must_use]
pub fn lags(site: &Site) -> bool {
    site.metadata.deletion_timestamp.is_none()
        && (behind(site) || unserved(site))
        && problem(site).is_none_or(|problem| !problem.settled)
}

/// Whether a result may be asked for anew: nothing was heard for too long.
#[must_use]
pub fn is_overdue(result: &SiteResult, now: Timestamp, patience: std::time::Duration) -> bool {
    now.duration_since(result.at) > jiff::SignedDuration::try_from(patience).unwrap_or(jiff::SignedDuration::MAX)
}

fn behind(site: &Site) -> bool {
    site.status.as_ref().and_then(|status| status.observed_generation) < site.metadata.generation
}

fn unserved(site: &Site) -> bool {
    request(site).is_some_and(|request| served(site) != Some(request))
}

fn handled(site: &Site) -> Option<&Handled> {
    site.status.as_ref()?.handled.as_deref()
}

/// The upgrade request that was served last.
fn served(site: &Site) -> Option<&str> {
    handled(site)?.upgrade_request.as_deref()
}

fn request(site: &Site) -> Option<&str> {
    let annotations = site.metadata.annotations.as_ref()?;
    annotations.get(labels::UPGRADE_REQUEST).map(String::as_str).filter(|request| !request.is_empty())
}

/// What keeps the operator from a Site.
struct Problem<'a> {
    reason: &'a str,
    message: &'a str,
    since: Option<i64>,
    /// It waits for a change: no attempt is under way.
    settled: bool,
}

impl Problem<'_> {
    fn text(&self) -> String {
        if self.message.is_empty() { self.reason.to_owned() } else { format!("{}: {}", self.reason, self.message) }
    }
}

fn problem(site: &Site) -> Option<Problem<'_>> {
    let conditions = &site.status.as_ref()?.conditions;
    let degraded = conditions::find(conditions, conditions::DEGRADED)
        .filter(|condition| condition.status == Status::True.as_str());
    let refused =
        conditions::find(conditions, conditions::READY).filter(|condition| condition.status == Status::False.as_str());
    let condition = degraded.or(refused)?;
    let current = condition.observed_generation.unwrap_or_default() >= site.metadata.generation.unwrap_or_default();
    Some(Problem {
        reason: &condition.reason,
        message: &condition.message,
        since: Some(condition.last_transition_time.0.as_second()),
        settled: current && condition.reason != Reason::ReconcileError.as_str(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::super::catalog::index::tests::site;
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn seen(request: &str, status: &Value) -> Site {
        let mut site = site("a", "s", "a", "o", "public");
        site.metadata.generation = Some(2);
        site.metadata.annotations = Some([(labels::UPGRADE_REQUEST.to_owned(), request.to_owned())].into());
        site.status = serde_json::from_value(status.clone()).unwrap();
        site
    }

    fn refused(reason: &str, generation: i64, since: &str) -> Value {
        json!({"observedGeneration": generation, "handled": {"digest": "d", "upgrade_request": "old"}, "conditions": [{
            "type": "Ready", "status": "False", "reason": reason, "message": "m", "observedGeneration": generation,
            "lastTransitionTime": since}]})
    }

    #[test]
    fn a_site_has_ended_when_the_operator_has_said_so_about_this_run() {
        let handled = |request: &str, generation: i64| {
            json!({"observedGeneration": generation,
                "handled": {"digest": "d", "upgrade_request": request, "at": "1970-01-01T00:01:40Z"}})
        };
        let state = |site: &Site| upgraded(Some(site), "run", at(50)).map(|(state, _)| state);
        assert_eq!(state(&seen("run", &handled("run", 2))), Some(SiteState::Done));
        assert_eq!(state(&seen("run", &handled("run", 1))), None, "an edit is still to come");
        assert_eq!(state(&seen("run", &handled("old", 2))), None);
        assert_eq!(state(&seen("old", &handled("old", 2))), Some(SiteState::Done), "a later request was served");
        assert_eq!(upgraded(Some(&seen("old", &handled("old", 2))), "run", at(100)), None, "ours is not seen yet");
        assert_eq!(upgraded(None, "run", at(0)).unwrap().0, SiteState::Skipped);
    }

    #[test]
    fn a_problem_counts_when_it_came_after_the_write_or_lasts_for_ever() {
        let (before, after) = ("1970-01-01T00:00:10Z", "1970-01-01T00:01:00Z");
        let state = |status: &Value| upgraded(Some(&seen("run", status)), "run", at(50)).map(|(state, _)| state);
        assert_eq!(state(&refused("RetriesExhausted", 2, after)), Some(SiteState::Failed));
        assert_eq!(state(&refused("RetriesExhausted", 2, before)), None);
        assert_eq!(state(&refused("RetriesExhausted", 1, after)), None, "it speaks of an older Site");
        assert_eq!(state(&refused("ReconcileError", 2, after)), None, "it will be tried again");
        assert_eq!(state(&refused("Invalid", 2, before)), Some(SiteState::Failed));
        assert_eq!(
            overdue(Some(&seen("run", &refused("RouteConflict", 2, before)))),
            "no success in time: RouteConflict: m"
        );
    }

    #[test]
    fn a_site_runs_again_with_the_pods_of_what_was_handled_last() {
        let site = seen("run", &json!({"handled": {"digest": "v1:d", "upgrade_request": "run"}}));
        let pod = |stamp: Option<&str>, ready| PodFact {
            stamp: stamp.map(str::to_owned),
            phase: Some("Running".to_owned()),
            ready,
            ..PodFact::default()
        };
        let (new, old) = (pod(Some("v1:d/run"), true), pod(Some("v1:d/"), true));
        assert!(runs_again(&site, std::slice::from_ref(&new)));
        let foreign = pod(None, true);
        for pods in [vec![], vec![old.clone()], vec![old, new], vec![foreign], vec![pod(Some("v1:d/run"), false)]] {
            assert!(!runs_again(&site, &pods), "{pods:?}");
        }
        let mut archived = site;
        archived.spec.configuration.enabled = Some(false);
        assert!(runs_again(&archived, &[]));
    }

    #[test]
    fn what_did_not_come_in_time_is_said() {
        let told = |status: &Value| overdue(Some(&seen("run", status)));
        let handled = json!({"digest": "d", "upgrade_request": "run"});
        assert_eq!(told(&json!({"observedGeneration": 1, "handled": handled})), "no answer in time");
        assert_eq!(told(&json!({"observedGeneration": 2, "handled": {"digest": "d"}})), "no answer in time");
        let problems = json!([{"name": "site-proxy", "kind": "waiting", "reason": "ImagePullBackOff", "message": "m"}]);
        let status = json!({"observedGeneration": 2, "handled": handled, "phase": "Pending",
            "container_problems": problems});
        assert_eq!(told(&status), "no new pod ran in time: Pending; site-proxy: ImagePullBackOff");
    }

    #[test]
    fn the_backlog_is_what_the_operator_will_still_do() {
        assert!(lags(&seen("run", &Value::Null)));
        assert!(lags(&seen("run", &json!({"observedGeneration": 2, "handled": {"digest": "d"}}))));
        assert!(!lags(&seen("", &json!({"observedGeneration": 2}))));
        assert!(!lags(&seen("run", &refused("RouteConflict", 2, "1970-01-01T00:00:10Z"))));
        assert!(lags(&seen("run", &refused("ReconcileError", 2, "1970-01-01T00:00:10Z"))));
    }
}
