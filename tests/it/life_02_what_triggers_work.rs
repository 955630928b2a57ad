//! LIFE-02: each triggering property makes a pass that restarts the pods; every other edit makes none.

use serde_json::{Value, json};

use crate::support::api::name_of;
use crate::support::belongings::{generation, stamp};
use crate::support::{Lab, SOON, World, eventually};

/// The prefixes of the rule, each with a change somewhere below it, and the tokens and the forced upgrade.
fn triggering() -> Vec<(&'static str, Value)> {
    let configuration = |change: Value| json!({"spec": {"configuration": change}});
    vec![
        ("name", json!({"spec": {"name": "renamed"}})),
        ("owner", json!({"spec": {"owner": "bob"}})),
        ("type", json!({"spec": {"type": "public"}})),
        ("applications", configuration(json!({"applications": [{"name": "site-admin"}]}))),
        (
            "image",
            configuration(json!({"applications": [
                {"name": "site-admin", "image": "registry.example.test/mine:1"}, {"name": "site-webdav"},
            ]})),
        ),
        ("enabled", configuration(json!({"enabled": false}))),
        ("headers", configuration(json!({"headers": {"X-Lab": "1"}}))),
        ("quota", configuration(json!({"quota": 2}))),
        ("retention", configuration(json!({"retention_date": "2031-01-01"}))),
        ("share", configuration(json!({"share": {"view_groups": ["all"]}}))),
        ("limits", configuration(json!({"settings": {"resource_limits": {"cpu": "750m"}}}))),
        ("errors", configuration(json!({"settings": {"error_handling": {"directory_listing": false}}}))),
        ("space", configuration(json!({"space": "elsewhere"}))),
        ("tokens", configuration(json!({"tokens": {"master": "a-new-master-token-0123456789"}}))),
        ("upgrade", json!({"metadata": {"annotations": {"sites.ecmwf.int/upgrade-request": "first"}}})),
    ]
}

#[tokio::test]
async fn life_02_each_property_of_the_rule_makes_one_pass() {
    let world = World::new("life-02").await;
    let operator = world.start_operator().await;
    for (id, _) in triggering() {
        world.site(id, json!({})).await;
    }
    let mut before = Vec::new();
    for (id, _) in triggering() {
        world.running(&operator, id).await;
        before.push((world.stateful_set(id).await, world.pod_uids(id).await));
    }
    for (id, change) in triggering() {
        world.edit_site(id, change).await;
    }
    for ((id, _), (set, pods)) in triggering().into_iter().zip(before) {
        eventually(&format!("the change of {id} is in the template"), SOON, || async {
            stamp(&world.stateful_set(id).await) != stamp(&set)
        })
        .await;
        eventually(&format!("the pods of {id} are others"), SOON, || async {
            let now = world.pod_uids(id).await;
            if id == "enabled" { now.is_empty() } else { now.len() == 1 && now != pods }
        })
        .await;
        world.settled(&operator, id).await;
        assert_eq!(generation(&world.stateful_set(id).await), generation(&set) + 1, "one write for the change of {id}");
    }
    world.end().await;
}

/// Edits that must not make a pass. Those of the spec cost the status write that says they were seen.
fn idle() -> Vec<(&'static str, Value)> {
    let configuration = |change: Value| json!({"spec": {"configuration": change}});
    let annotation = |name: &str, value: Value| json!({"metadata": {"annotations": {name: value}}});
    vec![
        (
            "applications in another order",
            configuration(json!({"applications": [{"name": "site-webdav"}, {"name": "site-admin"}]})),
        ),
        ("description", configuration(json!({"description": "about"}))),
        ("updated_by", configuration(json!({"updated_by": "bob"}))),
        ("updated_date", configuration(json!({"updated_date": "2030-05-05"}))),
        ("registered_by", configuration(json!({"registered_by": "ada"}))),
        ("registered_date", configuration(json!({"registered_date": "2030-01-01"}))),
        ("monitored, which waits for the next change", configuration(json!({"settings": {"monitored": true}}))),
        ("a field of another platform", configuration(json!({"mystery": {"a": 1}}))),
        ("what is absent, said", configuration(json!({"headers": {}, "share": {"view_users": []}}))),
        ("a foreign annotation", annotation("example.test/note", json!("1"))),
        (
            "a trace",
            annotation("sites.ecmwf.int/traceparent", json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")),
        ),
        ("a class of work", annotation("sites.ecmwf.int/work-class", json!("bulk"))),
        ("a label", json!({"metadata": {"labels": {"example.test/label": "1"}}})),
        ("a removed upgrade request", annotation("sites.ecmwf.int/upgrade-request", Value::Null)),
        ("an empty upgrade request", annotation("sites.ecmwf.int/upgrade-request", json!(""))),
    ]
}

#[tokio::test]
async fn life_02_other_edits_make_no_pass() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("life_02_other_edits_make_no_pass") else { return };
    let world = World::new("life-02-idle").await;
    let operator = world.start_operator().await;
    world.site("plain", json!({})).await;
    world.running(&operator, "plain").await;
    // The request whose removal is one of the edits.
    let request = json!({"metadata": {"annotations": {"sites.ecmwf.int/upgrade-request": "first"}}});
    let pods = world.pod_uids("plain").await;
    world.edit_site("plain", request).await;
    eventually("the forced upgrade is done", SOON, || async {
        let now = world.pod_uids("plain").await;
        now.len() == 1 && now != pods
    })
    .await;
    world.running(&operator, "plain").await;
    let (set, pods) = (world.stateful_set("plain").await, world.pod_uids("plain").await);
    let passes = operator.get("/debug/sites/plain").await["passes"].clone();

    for (what, edit) in idle() {
        let mark = audit.mark();
        world.edit_site("plain", edit.clone()).await;
        let site = world.settled(&operator, "plain").await;
        assert_eq!(site["status"]["observedGeneration"], site["metadata"]["generation"], "{what}");
        world.audit_is_complete().await;
        let calls = world.calls(mark).of_passes();
        let status_writes = usize::from(edit.get("spec").is_some());
        assert_eq!(calls.count(), status_writes, "{what} costs\n{}", calls.describe());
        let of_status = |call: &crate::support::audit::Call| call.resource == "sites" && call.subresource == "status";
        assert!(calls.0.iter().all(of_status), "{what} costs\n{}", calls.describe());
    }
    assert_eq!(operator.get("/debug/sites/plain").await["passes"], passes, "no pass ran");
    let after = world.stateful_set("plain").await;
    assert_eq!((generation(&after), name_of(&after)), (generation(&set), "plain"));
    assert_eq!(world.pod_uids("plain").await, pods);
    world.end().await;
}
