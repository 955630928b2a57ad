//! LIFE-15: a pod that never becomes ready does not stop the rollout of the change that would mend it; no other pod
//! is touched.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::api::{condition, name_of};
use crate::support::audit::Mark;
use crate::support::{Act, Calls, FaultProxy, Lab, Match, SOON, Start, Times, World, eventually};

fn share(user: &str) -> Value {
    json!({"spec": {"configuration": {"share": {"view_users": [user]}}}})
}

/// Creates a Site and makes its running pod crash; the pod that replaces it would be well.
async fn crashed(world: &World, id: &str) -> String {
    world.site(id, json!({})).await;
    world.wait_phase(id, "Running").await;
    world.show(id, "crash").await;
    world.wait_phase(id, "Pending").await;
    world.pod_uids(id).await.remove(0)
}

async fn wait_replaced(world: &World, id: &str, old: &str) {
    eventually(&format!("the pod of {id} is another one"), SOON, || async {
        let uids = world.pod_uids(id).await;
        if uids.len() == 1 && uids[0] != old { Ok(()) } else { Err(format!("{uids:?}, it was {old}")) }
    })
    .await;
    world.wait_phase(id, "Running").await;
}

/// The deletions of pods that the operator asked for.
fn deletions(world: &World) -> Calls {
    world.calls(Mark::START).of("pods").filter(|call| call.verb == "delete")
}

async fn wait_deletions(world: &World, count: usize) -> Calls {
    eventually(&format!("{count} deletions are in the log"), SOON, || async {
        let calls = deletions(world);
        if calls.count() >= count { Ok(calls) } else { Err(calls.describe()) }
    })
    .await
}

#[tokio::test]
async fn life_15_a_crashing_pod_is_replaced_and_no_other() {
    let lab = Lab::get().await;
    if lab.audit_or_skip("life_15_a_crashing_pod_is_replaced_and_no_other").is_none() {
        return;
    }
    let world = World::on(lab, "life-15-crash").await;
    let _operator = world.start_operator().await;
    let edited = crashed(&world, "edited").await;
    let other = crashed(&world, "other").await;
    world.site("well", json!({})).await;
    world.wait_phase("well", "Running").await;
    let well = world.pod_uids("well").await.remove(0);

    world.edit_site("edited", share("bo")).await;
    world.edit_site("well", share("bo")).await;
    wait_replaced(&world, "edited", &edited).await;
    wait_replaced(&world, "well", &well).await;
    for id in ["edited", "well"] {
        world.wait_ready(id).await;
    }
    assert_eq!(world.pod_uids("other").await, [other], "another Site's pod is not ours to delete");
    let calls = wait_deletions(&world, 1).await;
    assert_eq!(calls.count(), 1, "once, and a ready pod is its controller's to replace: {}", calls.describe());
    assert_eq!((calls.0[0].name.as_str(), calls.0[0].code), ("edited-0", 200));
    world.end().await;
}

#[tokio::test]
async fn life_15_a_pod_that_is_being_deleted_is_not_deleted_again() {
    let lab = Lab::get().await;
    if lab.audit_or_skip("life_15_a_pod_that_is_being_deleted_is_not_deleted_again").is_none() {
        return;
    }
    let world = World::on(lab, "life-15-ending").await;
    let _operator = world.start_operator().await;
    let old = crashed(&world, "ending").await;
    let hold = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    world.api.merge("Pod", &world.namespace, "ending-0", "", &hold(json!(["sites.test/hold"]))).await.unwrap();
    assert!(world.api.delete("Pod", &world.namespace, "ending-0").await);
    world.edit_site("ending", share("bo")).await;
    world.wait_ready("ending").await;
    eventually("the controller works from the new template", SOON, || async {
        let set = world.stateful_set("ending").await;
        set["metadata"]["generation"] == 2 && set["status"]["observedGeneration"] == 2
    })
    .await;
    world.api.merge("Pod", &world.namespace, "ending-0", "", &hold(Value::Null)).await.unwrap();
    wait_replaced(&world, "ending", &old).await;
    // A deletion after all this is in the log shows that none came before it.
    let crash = world.pod_uids("ending").await.remove(0);
    world.show("ending", "crash").await;
    world.wait_phase("ending", "Pending").await;
    world.edit_site("ending", share("cy")).await;
    wait_replaced(&world, "ending", &crash).await;
    let calls = wait_deletions(&world, 1).await;
    assert_eq!(calls.count(), 1, "{}", calls.describe());
    world.end().await;
}

/// The pod becomes well between the look and the deletion: the deletion speaks of the pod as it was, and is refused.
#[tokio::test]
async fn life_15_a_pod_that_changed_meanwhile_is_not_deleted() {
    let lab = Lab::get().await;
    if lab.audit_or_skip("life_15_a_pod_that_changed_meanwhile_is_not_deleted").is_none() {
        return;
    }
    let world = World::on(lab, "life-15-guard").await;
    let proxy = FaultProxy::start(lab).await;
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    let operator = world.start_operator_with(Start { kubeconfig, ..Start::default() }).await;
    crashed(&world, "guard").await;
    let held = proxy.fault(Match::on("delete", "pods"), Act::Delay(Duration::from_secs(3)), Times::Count(1));
    world.edit_site("guard", share("bo")).await;
    eventually("the deletion is on its way", SOON, || async { proxy.hits(held) == 1 }).await;
    let mark = json!({"metadata": {"annotations": {"example.test/touched": "yes"}}});
    world.api.merge("Pod", &world.namespace, "guard-0", "", &mark).await.unwrap();
    let calls = wait_deletions(&world, 1).await;
    assert_eq!(calls.0[0].code, 409, "{}", calls.describe());
    // It is still the old one and not ready: it is looked at again as it is now.
    let calls = wait_deletions(&world, 2).await;
    assert_eq!(calls.0[1].code, 200, "{}", calls.describe());
    world.wait_phase("guard", "Running").await;
    world.wait_ready("guard").await;
    assert!(operator.logs().iter().all(|line| line["level"] != "ERROR"), "a pod that changed is no error");
    world.end().await;
}

#[tokio::test]
async fn life_15_a_missing_right_is_an_error_and_the_update_is_finished() {
    let lab = Lab::get().await;
    if lab.audit_or_skip("life_15_a_missing_right_is_an_error_and_the_update_is_finished").is_none() {
        return;
    }
    let world = World::on(lab, "life-15-right").await;
    let mut role = world.must("Role", "sites-application").await;
    role["kind"] = "Role".into();
    for rule in role["rules"].as_array_mut().unwrap() {
        if rule["resources"] == json!(["pods"]) {
            rule["verbs"] = json!(["list", "watch"]);
        }
    }
    role["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
    world.api.replace(&world.namespace, &role).await.unwrap();
    let operator = world.start_operator().await;
    let old = crashed(&world, "stuck").await;
    world.edit_site("stuck", share("bo")).await;
    let told = eventually("the refusal is told", SOON, || async {
        operator.logs_with("lacks the right to delete pods").into_iter().next()
    })
    .await;
    assert_eq!(told["level"], "ERROR");
    let site = world.wait_ready("stuck").await;
    assert!(site["status"]["handled"]["digest"].is_string());
    assert_eq!(world.stateful_set("stuck").await["metadata"]["generation"], 2);
    assert_eq!(world.pod_uids("stuck").await, [old]);
    // Later changes are applied all the same, and the refusal is not repeated for the same pod.
    world.edit_site("stuck", json!({"spec": {"configuration": {"headers": {"X-A": "b"}}}})).await;
    world.wait_ready("stuck").await;
    let calls = wait_deletions(&world, 1).await;
    assert!(calls.count() <= 2 && calls.0.iter().all(|call| call.code == 403), "{}", calls.describe());
    world.end().await;
}

/// Any other failure to delete is tried again.
#[tokio::test]
async fn life_15_a_failed_deletion_is_tried_again() {
    let lab = Lab::get().await;
    let world = World::on(lab, "life-15-again").await;
    let proxy = FaultProxy::start(lab).await;
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    let _operator = world.start_operator_with(Start { kubeconfig, ..Start::default() }).await;
    let old = crashed(&world, "again").await;
    let failing = proxy.fault(Match::on("delete", "pods"), Act::status(500), Times::Count(1));
    world.edit_site("again", share("bo")).await;
    wait_replaced(&world, "again", &old).await;
    let site = world.wait_ready("again").await;
    assert_eq!(condition(&site, "Ready").unwrap()["reason"], "Reconciled");
    assert_eq!(proxy.hits(failing), 1);
    assert_eq!(name_of(&world.pods("again").await[0]), "again-0");
    world.end().await;
}

/// Of two pods the controller replaces one and waits for it; the other one is of the old template and well.
#[tokio::test]
async fn life_15_a_ready_pod_is_left_to_its_controller() {
    let lab = Lab::get().await;
    if lab.audit_or_skip("life_15_a_ready_pod_is_left_to_its_controller").is_none() {
        return;
    }
    let world = World::on(lab, "life-15-two").await;
    let settings = json!({"site": {"replicas": 2}});
    let _operator = world.start_operator_with(Start { settings, ..Start::default() }).await;
    // Its pods become ready only when they are told to.
    world.site("unready-two", json!({})).await;
    eventually("both pods are ready", SOON, || async {
        world.show("unready-two", "ok").await;
        let pods = world.pods("unready-two").await;
        pods.len() == 2 && pods.iter().all(|pod| condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True"))
    })
    .await;
    world.wait_phase("unready-two", "Running").await;
    let uid = |pod: &Value| pod["metadata"]["uid"].clone();
    let (well, other) =
        (uid(&world.must("Pod", "unready-two-0").await), uid(&world.must("Pod", "unready-two-1").await));
    world.edit_site("unready-two", share("bo")).await;
    eventually("the controller has replaced one, which is not ready", SOON, || async {
        let pod = world.get("Pod", "unready-two-1").await?;
        (uid(&pod) != other && condition(&pod, "Ready")?["status"] == "False").then_some(())
    })
    .await;
    world.wait_phase("unready-two", "Pending").await;
    world.edit_site("unready-two", json!({"spec": {"configuration": {"description": "look again"}}})).await;
    world.wait_ready("unready-two").await;
    assert_eq!(uid(&world.must("Pod", "unready-two-0").await), well);
    eventually("the controller replaces the other one too", SOON, || async {
        world.show("unready-two", "ok").await;
        world.get("Pod", "unready-two-0").await.is_some_and(|pod| uid(&pod) != well)
    })
    .await;
    let calls = deletions(&world);
    assert_eq!(calls.count(), 0, "{}", calls.describe());
    world.end().await;
}
