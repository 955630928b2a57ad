//! The budget of calls of a qualifying change: a read and a replace of each child that changes, one status write, the
//! volume's label where it changes, and the deletion of stuck pods. (`calls_of_a_new_site` has the smallest change.)

use serde_json::{Value, json};

use crate::support::audit::{Calls, Mark};
use crate::support::belongings::gateway_mode;
use crate::support::{Lab, Operator, Start, World};

/// How often each verb was asked of each resource.
fn tally(calls: &Calls) -> Vec<String> {
    let mut all: Vec<String> = calls.0.iter().map(|call| format!("{} {}", call.verb, call.resource)).collect();
    all.sort();
    all
}

/// A read and a replace of each of these, and what else there is, sorted.
fn budget(changed: &[&str], more: &[&str]) -> Vec<String> {
    let mut all: Vec<String> =
        changed.iter().flat_map(|resource| [format!("get {resource}"), format!("update {resource}")]).collect();
    all.extend(more.iter().map(|call| (*call).to_owned()));
    all.sort();
    all
}

const CHILDREN: [&str; 7] =
    ["secrets", "secrets", "configmaps", "configmaps", "persistentvolumeclaims", "statefulsets", "services"];

async fn cost(world: &World, operator: &Operator, mark: Mark, id: &str) -> Calls {
    world.settled(operator, id).await;
    world.audit_is_complete().await;
    world.calls(mark).of_passes()
}

/// A change of a label that every child carries.
async fn every_child(settings: Value, route: &[&str]) {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("calls_of_a_change") else { return };
    let mut world = World::new("calls-all").await;
    world.settings["operator"]["status_min_interval"] = "1s".into();
    let operator = world.start_operator_with(Start { settings, ..Start::default() }).await;
    // Archived: no pod comes and goes, so the status writes are those of the change.
    world.site("plain", json!({"configuration": {"enabled": false}})).await;
    world.wait_phase("plain", "Disabled").await;
    crate::support::eventually("the volume is labelled", crate::support::SOON, || async {
        (world.volume("plain").await?["metadata"]["labels"]["sites.ecmwf.int/id"] == "plain").then_some(())
    })
    .await;
    world.settled(&operator, "plain").await;

    let mark = audit.mark();
    world.edit_site("plain", json!({"spec": {"owner": "bob"}})).await;
    let calls = cost(&world, &operator, mark, "plain").await;
    let changed: Vec<&str> = CHILDREN.iter().chain(route).copied().collect();
    let expected = budget(&changed, &["patch persistentvolumes", "patch sites"]);
    assert_eq!(tally(&calls), expected, "{}", calls.describe());

    // Another path: a route of another name is made, after a look whether the Site is still there, and the old one
    // deleted as it was seen; its policies keep their names.
    let mark = audit.mark();
    world.edit_site("plain", json!({"spec": {"name": "moved"}})).await;
    let calls = cost(&world, &operator, mark, "plain").await;
    let (route, policies) = route.split_first().unwrap();
    let changed: Vec<&str> = CHILDREN.iter().chain(policies).copied().collect();
    let (made, deleted) = (format!("create {route}"), format!("delete {route}"));
    let more = ["get sites", &made, &deleted, "patch persistentvolumes", "patch sites"];
    assert_eq!(tally(&calls), budget(&changed, &more), "{}", calls.describe());

    // An audit field is no change.
    let mark = audit.mark();
    world.edit_site("plain", json!({"spec": {"configuration": {"updated_by": "eve"}}})).await;
    let calls = cost(&world, &operator, mark, "plain").await;
    assert_eq!(tally(&calls), ["patch sites"], "{}", calls.describe());
    world.end().await;
}

#[tokio::test]
async fn calls_of_a_change_of_every_child_in_ingress_mode() {
    every_child(json!({}), &["ingresses"]).await;
}

#[tokio::test]
async fn calls_of_a_change_of_every_child_in_gateway_mode() {
    every_child(gateway_mode(), &["httproutes", "backendtrafficpolicies"]).await;
}

#[tokio::test]
async fn calls_of_a_change_with_a_stuck_pod_are_one_deletion_more() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("calls_of_a_change_with_a_stuck_pod") else { return };
    let mut world = World::new("calls-stuck").await;
    world.settings["operator"]["status_min_interval"] = "1s".into();
    let operator = world.start_operator().await;
    world.site("stuck", json!({})).await;
    world.running(&operator, "stuck").await;
    world.show("stuck", "crash").await;
    world.wait_phase("stuck", "Pending").await;
    world.settled(&operator, "stuck").await;

    let mark = audit.mark();
    world.edit_site("stuck", json!({"spec": {"configuration": {"headers": {"X-Lab": "1"}}}})).await;
    world.running(&operator, "stuck").await;
    let calls = cost(&world, &operator, mark, "stuck").await;
    let status = |call: &crate::support::audit::Call| call.subresource == "status";
    // What the pods say besides is theirs to say: gone, coming, running.
    let told = calls.clone().filter(status).count();
    assert!((1..=4).contains(&told), "{}", calls.describe());
    let others = calls.clone().filter(|call| !status(call));
    assert_eq!(tally(&others), budget(&["configmaps", "statefulsets"], &["delete pods"]), "{}", calls.describe());
    world.end().await;
}
