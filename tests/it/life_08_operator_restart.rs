//! LIFE-08: an operator that starts again finds out where things stand: it writes nothing where nothing is to be done,
//! and finishes what was begun.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::api::name_of;
use crate::support::belongings::{before_the_route, generation, uid};
use crate::support::{Act, FaultProxy, Lab, Match, SOON, Start, Times, World, eventually};

/// Sites of every sort: a start, after a stop as after a kill, costs not one read and not one write.
#[tokio::test]
async fn life_08_a_restart_costs_nothing_whatever_the_sites_are_like() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("life_08_a_restart_costs_nothing") else { return };
    let mut world = World::new("life-08").await;
    world.settings["operator"]["lease"]["duration"] = "3s".into();
    let operator = world.start_operator().await;
    world.site("plain", json!({})).await;
    world.site("open", json!({"type": "public", "configuration": {"headers": {"X-A": "1"}, "quota": 3}})).await;
    world.site("pathless", json!({"name": null})).await;
    world.site("archived", json!({"configuration": {"enabled": false}})).await;
    world.site("hang-1", json!({})).await;
    world.site("crash-1", json!({})).await;
    world.running(&operator, "plain").await;
    world.site("rival", json!({"name": "plain"})).await;
    let request = json!({"metadata": {"annotations": {"sites.ecmwf.int/upgrade-request": "first"}}});
    world.edit_site("open", request).await;
    let sites = ["plain", "open", "pathless", "archived", "hang-1", "crash-1"];
    world.wait_condition("rival", "RouteConflict", "True").await;
    world.wait_phase("archived", "Disabled").await;
    world.wait_site("open", "handled", |site| site["status"]["handled"]["upgrade_request"] == "first").await;
    // The old pod runs for a moment still.
    eventually("the operator has seen the pod of the upgrade run", SOON, || async {
        let knows = operator.get("/debug/sites/open").await["knows"].clone();
        let new = knows["pods"][0]["stamp"].as_str().is_some_and(|stamp| stamp.ends_with("/first"));
        (new && knows["pods"][0]["ready"] == true && knows["pods"][1].is_null()).then_some(()).ok_or(knows.to_string())
    })
    .await;
    for id in ["plain", "open", "pathless"] {
        world.wait_phase(id, "Running").await;
    }
    for id in ["hang-1", "crash-1"] {
        let told = |site: &Value| site["status"]["container_problems"].as_array().is_some_and(|told| !told.is_empty());
        world.wait_site(id, "its problem is told", told).await;
    }
    for id in sites {
        eventually(&format!("the volume of {id} is labelled"), SOON, || async {
            (world.volume(id).await?["metadata"]["labels"]["sites.ecmwf.int/id"] == id).then_some(())
        })
        .await;
        world.settled(&operator, id).await;
    }
    let before = world.workloads().await;

    operator.stop().await;
    let mark = audit.mark();
    let operator = world.start_operator().await;
    for id in sites {
        world.settled(&operator, id).await;
    }
    world.assert_costs_nothing(mark, "a start after a stop").await;

    operator.kill();
    let mark = audit.mark();
    let operator = world.start_operator().await;
    eventually("the rival has been passed", SOON, || async {
        operator.get("/debug/sites/rival").await["passes"].as_u64() >= Some(1)
    })
    .await;
    for id in sites {
        world.settled(&operator, id).await;
    }
    world.assert_costs_nothing(mark, "a start after a kill").await;
    assert_eq!(world.workloads().await, before);
    world.end().await;
}

/// Where the operator is killed while it makes a Site: before a call arrives, or when it is done and unanswered.
fn deaths() -> Vec<(&'static str, Match, Act)> {
    let never = || Act::Delay(Duration::from_secs(600));
    let post = |resource: &str| Match::on("create", resource);
    vec![
        ("before the Secret", post("secrets"), never()),
        ("after the Secret", post("secrets"), Act::Silence),
        ("after the ConfigMap", post("configmaps"), Act::Silence),
        ("after the claim", post("persistentvolumeclaims"), Act::Silence),
        ("before the StatefulSet", post("statefulsets"), never()),
        ("after the StatefulSet", post("statefulsets"), Act::Silence),
        ("after the Service", post("services"), Act::Silence),
        ("after the route", post("ingresses"), Act::Silence),
        ("before the status", Match::on("patch", "sites").subresource("status"), never()),
        ("before the volume's label", Match::on("patch", "persistentvolumes"), never()),
    ]
}

#[tokio::test]
async fn life_08_a_create_is_finished_after_a_kill() {
    let lab = Lab::get().await;
    let mut world = World::new("life-08-kill").await;
    // The next operator need not wait for the killed one's Lease; leadership has tests of its own.
    world.settings["operator"]["lease"]["enabled"] = false.into();
    let proxy = FaultProxy::start(lab).await;
    let start = Start { kubeconfig: Some(proxy.kubeconfig(&world).await), ..Start::default() };
    let mut operator = world.start_operator_with(start.clone()).await;
    for (number, (what, calls, act)) in deaths().into_iter().enumerate() {
        let id = format!("site{number}");
        let rule = proxy.fault(calls, act, Times::Count(1));
        world.site(&id, json!({})).await;
        eventually(&format!("{id} is killed {what}"), SOON, || async { proxy.hits(rule) == 1 }).await;
        let silent = what.starts_with("after");
        if silent {
            // The server has done it: the object is there though nobody heard.
            eventually(&format!("{id}: {what}"), SOON, || async { !made(&world, &id).await.is_empty() }).await;
        }
        operator.kill();
        let before = made(&world, &id).await;
        operator = world.start_operator_with(start.clone()).await;
        let site = world.wait_ready(&id).await;
        let after = made(&world, &id).await;
        assert_eq!(after.len(), 8, "killed {what}: {after:?}");
        for (object, uid) in &before {
            assert_eq!(after.get(object), Some(uid), "killed {what}: {object} is the one that was made first");
        }
        assert_eq!(generation(&world.stateful_set(&id).await), 1, "killed {what}: one template");
        let children = site["status"]["handled"]["children"].as_object().unwrap();
        assert_eq!(children.len(), 7, "killed {what}: all but the claim are on record: {children:?}");
    }
    for number in 0..deaths().len() {
        let id = format!("site{number}");
        world.running(&operator, &id).await;
        assert_eq!(generation(&world.stateful_set(&id).await), 1);
    }
    world.end().await;
}

/// Kind, name and uid of a Site's objects.
async fn made(world: &World, id: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (kind, name) in before_the_route(id) {
        if let Some(object) = world.get(kind, &name).await {
            all.insert(format!("{kind}/{name}"), uid(&object).to_owned());
        }
    }
    for route in world.ingresses(id).await {
        all.insert(format!("Ingress/{}", name_of(&route)), uid(&route).to_owned());
    }
    all
}

/// Sites that came, changed and went while no operator ran.
#[tokio::test]
async fn life_08_what_happened_while_no_operator_ran_is_done() {
    let world = World::new("life-08-away").await;
    let operator = world.start_operator().await;
    world.site("changed", json!({})).await;
    world.site("gone", json!({})).await;
    world.running(&operator, "changed").await;
    world.running(&operator, "gone").await;
    let pods = world.pod_uids("changed").await;
    operator.stop().await;

    world.site("new", json!({})).await;
    world.edit_site("changed", json!({"spec": {"owner": "bob"}})).await;
    world.delete_site("gone").await;
    assert!(world.api.delete("Service", &world.namespace, "changed").await, "there was a Service");

    let operator = world.start_operator().await;
    world.running(&operator, "new").await;
    world.running(&operator, "changed").await;
    assert_ne!(world.pod_uids("changed").await, pods);
    assert_eq!(world.service("changed").await["metadata"]["labels"]["sites.ecmwf.int/owner"], "bob");
    let set = world.stateful_set("changed").await;
    assert_eq!((generation(&set), &set["metadata"]["labels"]["sites.ecmwf.int/owner"]), (2, &Value::from("bob")));
    world.wait_gone("gone").await;
    world.end().await;
}
