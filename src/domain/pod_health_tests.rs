//! Tables for [`super`]: pods as the API server sends them, and what is said of them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const STARTED: &str = "2026-01-01T00:00:01Z";
const LATER: &str = "2026-01-01T00:00:09Z";

fn pod(name: &str, status: &Value) -> PodFact {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": name, "uid": name, "annotations": {"sites.ecmwf.int/operator_bound": "true"},
            "labels": {"sites.ecmwf.int/id": "a"}},
        "status": status,
    }))
    .unwrap();
    PodFact::from(&pod)
}

/// All steps true at [`STARTED`], but for the given ones, which are false at [`LATER`].
fn conditions(failed: &[&str]) -> Value {
    let condition = |type_: &&str| {
        let bad = failed.contains(type_);
        json!({"type": type_, "status": if bad { "False" } else { "True" }, "lastTransitionTime": if bad { LATER } else { STARTED }})
    };
    ["PodScheduled", "Initialized", "ContainersReady", "Ready"].iter().map(condition).collect()
}

fn container(name: &str, ready: bool, state: &Value) -> Value {
    json!({"name": name, "ready": ready, "state": state, "image": "i", "imageID": "i", "restartCount": 0})
}

fn waiting(reason: &str) -> Value {
    json!({"waiting": {"reason": reason, "message": "m"}})
}

fn running() -> Value {
    json!({"running": {"startedAt": STARTED}})
}

fn terminated(code: i32) -> Value {
    json!({"terminated": {"exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" }}})
}

fn healthy(name: &str) -> PodFact {
    pod(
        name,
        &json!({"phase": "Running", "conditions": conditions(&[]),
            "initContainerStatuses": [container("site-initializer", true, &terminated(0))],
            "containerStatuses": [container("site-proxy", true, &running())]}),
    )
}

fn words(report: &PodReport) -> Vec<String> {
    report
        .container_problems
        .iter()
        .map(|problem| format!("{} {} {}", problem.name, problem.kind, problem.reason))
        .collect()
}

#[test]
#[allow(clippy::too_many_lines, reason = "one table")]
fn life_10_one_pod() {
    let not_ready = conditions(&["ContainersReady", "Ready"]);
    let all_running = json!([container("site-proxy", true, &running())]);
    let table: Vec<(&str, Value, Phase, bool, &[&str])> = vec![
        (
            "running",
            json!({"phase": "Running", "conditions": conditions(&[]), "containerStatuses": all_running}),
            Phase::Running,
            true,
            &[],
        ),
        ("nothing known", json!({}), Phase::Pending, false, &[]),
        ("running without conditions", json!({"phase": "Running"}), Phase::Running, false, &[]),
        (
            "b16 a: unschedulable",
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}]}),
            Phase::Pending,
            false,
            &["a-0 scheduling Unschedulable"],
        ),
        (
            "b16 b: init container crash loops",
            json!({"phase": "Pending", "conditions": conditions(&["Initialized", "ContainersReady", "Ready"]),
                "initContainerStatuses": [container("site-initializer", false, &waiting("CrashLoopBackOff"))],
                "containerStatuses": [container("site-proxy", false, &waiting("PodInitializing"))]}),
            Phase::Pending,
            false,
            &["site-initializer waiting CrashLoopBackOff"],
        ),
        (
            "b16 c: the second container is not ready",
            json!({"phase": "Running", "conditions": not_ready, "containerStatuses":
                [container("site-proxy", true, &running()), container("site-custom", false, &running())]}),
            Phase::Pending,
            false,
            &["site-custom running NotReady"],
        ),
        (
            "b16 d: running while a container crash loops",
            json!({"phase": "Running", "conditions": not_ready, "containerStatuses":
                [container("site-proxy", true, &running()), container("site-custom", false, &waiting("CrashLoopBackOff"))]}),
            Phase::Pending,
            false,
            &["site-custom waiting CrashLoopBackOff"],
        ),
        (
            "the containers know before the conditions do",
            json!({"phase": "Running", "conditions": conditions(&[]), "containerStatuses": [container("site-api", false, &terminated(1))]}),
            Phase::Pending,
            false,
            &["site-api terminated Error"],
        ),
        (
            "initializing: the init container is at work",
            json!({"phase": "Pending", "conditions": conditions(&["Initialized", "ContainersReady", "Ready"]),
                "initContainerStatuses": [container("site-initializer", false, &running())],
                "containerStatuses": [container("site-proxy", false, &waiting("PodInitializing"))]}),
            Phase::Pending,
            false,
            &["site-proxy waiting PodInitializing"],
        ),
        (
            "completed",
            json!({"phase": "Succeeded", "conditions": not_ready, "containerStatuses": [container("site-proxy", false, &terminated(0))]}),
            Phase::Succeeded,
            false,
            &[],
        ),
        ("evicted", json!({"phase": "Failed", "reason": "Evicted"}), Phase::Failed, false, &[]),
        (
            "not ready for another reason",
            json!({"phase": "Running", "containerStatuses": all_running, "conditions": [
                {"type": "ContainersReady", "status": "True"},
                {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady"}]}),
            Phase::Running,
            false,
            &[],
        ),
        (
            "about to be disrupted",
            json!({"phase": "Running", "containerStatuses": all_running, "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": LATER},
                {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": STARTED}]}),
            Phase::Running,
            false,
            &[],
        ),
        (
            "conditions that are no steps",
            json!({"phase": "Running", "containerStatuses": all_running, "conditions": [
                {"type": "Ready", "status": "True"}, {"type": "DisruptionTarget", "status": "False"},
                {"type": "PodReadyToStartContainers", "status": "False"}, {"type": "example.org/gate", "status": "False"}]}),
            Phase::Running,
            true,
            &[],
        ),
        (
            "node lost: condition",
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "Unknown"}], "containerStatuses": all_running}),
            Phase::Unknown,
            false,
            &[],
        ),
        (
            "node lost: its controller overrules the kubelet",
            json!({"phase": "Running", "conditions": conditions(&["Ready"]), "containerStatuses": all_running}),
            Phase::Unknown,
            false,
            &[],
        ),
        (
            "node lost: pod reason",
            json!({"phase": "Running", "reason": "NodeLost", "conditions": conditions(&["Ready"]), "containerStatuses": all_running}),
            Phase::Unknown,
            false,
            &[],
        ),
        ("node lost: phase", json!({"phase": "Unknown"}), Phase::Unknown, false, &[]),
    ];
    for (case, status, phase, started, problems) in table {
        let report = report(true, &[pod("a-0", &status)]);
        assert_eq!((report.phase, report.all_steps_started), (phase, started), "{case}");
        assert_eq!(words(&report), problems, "{case}");
    }
}

#[test]
fn several_pods() {
    let ready = healthy("a-0");
    let stuck = pod(
        "a-1",
        &json!({"phase": "Pending", "containerStatuses": [container("x", false, &waiting("ImagePullBackOff"))]}),
    );
    let mut leaving = stuck.clone();
    leaving.terminating = true;
    assert_eq!(report(true, &[]).phase, Phase::Pending);
    assert!(report(true, std::slice::from_ref(&ready)).all_steps_started);
    assert_eq!(report(true, &[ready.clone(), stuck.clone()]).phase, Phase::Pending);
    assert!(report(true, &[leaving.clone(), ready.clone()]).all_steps_started);
    assert_eq!(words(&report(true, &[leaving])), ["x waiting ImagePullBackOff"]);
    assert_eq!(report(false, &[ready, stuck]), PodReport { phase: Phase::Disabled, ..PodReport::default() });
    assert_eq!(report(false, &[]).phase, Phase::Disabled);
}

#[test]
fn the_first_failed_condition_is_selected_else_the_last() {
    let condition = |type_: &str, status: &str, second: i64| StepCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        last_transition: Timestamp::from_second(second).ok(),
        ..StepCondition::default()
    };
    let fine = [condition("Ready", "True", 3), condition("PodScheduled", "True", 1)];
    assert_eq!(selected(&fine).unwrap().type_, "Ready");
    let failed =
        [condition("Ready", "False", 3), condition("Initialized", "False", 2), condition("PodScheduled", "True", 1)];
    assert_eq!(selected(&failed).unwrap().type_, "Initialized");
    assert!(selected(&[]).is_none());
}

#[test]
fn facts_of_a_pod() {
    let fact = healthy("a-0");
    assert!(fact.running_and_ready() && fact.bound && !fact.terminating);
    assert_eq!((fact.site_id.as_deref(), fact.stamp), (Some("a"), None));
    assert_eq!(fact.conditions.len(), 4);
}

proptest! {
    #[test]
    fn the_order_of_pods_has_no_meaning(order in Just((0..6_usize).collect::<Vec<_>>()).prop_shuffle()) {
        let mut pods: Vec<PodFact> = vec![
            healthy("a-0"),
            healthy("a-1"),
            pod("a-2", &json!({"phase": "Pending"})),
            pod("a-3", &json!({"phase": "Running", "containerStatuses": [container("x", false, &running())]})),
            pod("a-4", &json!({"phase": "Running", "containerStatuses": [container("y", false, &running())]})),
            healthy("a-5"),
        ];
        pods[5].terminating = true;
        let shuffled: Vec<PodFact> = order.into_iter().map(|index| pods[index].clone()).collect();
        prop_assert_eq!(words(&report(true, &shuffled)), ["x running NotReady"]);
    }
}
