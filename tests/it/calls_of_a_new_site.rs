//! The budget of calls: what a new Site, a change and an edit that changes nothing cost the API server.

use serde_json::{Value, json};

use crate::support::audit::{Calls, Mark};
use crate::support::belongings::gateway_mode;
use crate::support::{Lab, Operator, SOON, Start, World, eventually};

/// Verb, resource and subresource of each call, sorted.
fn kinds(calls: &Calls) -> Vec<String> {
    let mut all: Vec<String> = calls
        .0
        .iter()
        .map(|call| match call.subresource.as_str() {
            "" => format!("{} {}", call.verb, call.resource),
            subresource => format!("{} {}/{subresource}", call.verb, call.resource),
        })
        .collect();
    all.sort();
    all
}

async fn cost(world: &World, operator: &Operator, mark: Mark) -> Calls {
    world.audit_is_complete().await;
    world.calls(mark).by_agent(&operator.agent()).of_passes()
}

async fn new_site(settings: Value, route: &[&str]) {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("calls_of_a_new_site") else { return };
    let mut world = World::new("calls-new").await;
    // As it is outside of tests: the states of a pod that comes up are told together.
    world.settings["operator"]["status_min_interval"] = "1s".into();
    let operator = world.start_operator_with(Start { settings, ..Start::default() }).await;
    let mut expected: Vec<String> =
        ["secrets", "secrets", "configmaps", "configmaps", "persistentvolumeclaims", "statefulsets", "services"]
            .iter()
            .chain(route)
            .map(|resource| format!("create {resource}"))
            .chain(["patch persistentvolumes".to_owned()])
            .collect();
    expected.sort();
    // A pod that is slow to come up has more to say (that it is not scheduled yet): on a busy machine several Sites
    // may be needed until one comes up undisturbed.
    for attempt in 1..=5 {
        let id = format!("plain-{attempt}");
        let mark = audit.mark();
        world.site(&id, json!({})).await;
        world.running(&operator, &id).await;
        let calls = cost(&world, &operator, mark).await;
        let (statuses, objects): (Vec<_>, Vec<_>) =
            kinds(&calls).into_iter().partition(|call| call == "patch sites/status");
        assert_eq!(objects, expected, "{}", calls.describe());
        if statuses.len() <= 2 {
            assert!(calls.count() <= 10 + route.len(), "the budget:\n{}", calls.describe());
            world.end().await;
            return;
        }
    }
    panic!("no Site kept the budget");
}

#[tokio::test]
async fn calls_of_a_new_site_in_ingress_mode_are_eleven() {
    new_site(json!({}), &["ingresses"]).await;
}

#[tokio::test]
async fn calls_of_a_new_site_in_gateway_mode_are_one_more_per_policy() {
    new_site(gateway_mode(), &["httproutes", "backendtrafficpolicies"]).await;
}

/// A qualifying change that touches one child beside the StatefulSet, and an edit that touches none.
#[tokio::test]
async fn calls_of_a_change_are_five_and_of_an_idle_edit_one() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("calls_of_a_change") else { return };
    let mut world = World::new("calls-change").await;
    // An archived Site: no pod comes and goes, so the status writes are those of the change.
    world.settings["operator"]["status_min_interval"] = "1s".into();
    let operator = world.start_operator().await;
    world.site("plain", json!({"configuration": {"enabled": false}})).await;
    world.wait_phase("plain", "Disabled").await;
    eventually("the volume is labelled", SOON, || async {
        (world.volume("plain").await?["metadata"]["labels"]["sites.ecmwf.int/id"] == "plain").then_some(())
    })
    .await;
    world.settled(&operator, "plain").await;

    let mark = audit.mark();
    world.edit_site("plain", json!({"spec": {"configuration": {"headers": {"X-Lab": "1"}}}})).await;
    world.settled(&operator, "plain").await;
    let calls = cost(&world, &operator, mark).await;
    // The files ConfigMap has the header, the StatefulSet the stamp; the six others are as they were.
    let expected =
        ["get configmaps", "get statefulsets", "patch sites/status", "update configmaps", "update statefulsets"];
    assert_eq!(kinds(&calls), expected, "{}", calls.describe());

    let mark = audit.mark();
    world.edit_site("plain", json!({"spec": {"configuration": {"description": "about"}}})).await;
    world.settled(&operator, "plain").await;
    let calls = cost(&world, &operator, mark).await;
    assert_eq!(kinds(&calls), ["patch sites/status"], "{}", calls.describe());
    world.end().await;
}
