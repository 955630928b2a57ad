//! Each field of a Site that rendering reads makes a pass when it changes, or is on the list of exceptions.

use serde_json::{Value, json};

use crate::support::{SOON, World, calls_about, eventually};

fn stamp(set: &Value) -> Value {
    set["spec"]["template"]["metadata"]["annotations"]["sites.ecmwf.int/stamped-for"].clone()
}

#[tokio::test]
async fn mutation_of_each_field_makes_a_pass() {
    let world = World::new("mutation").await;
    let _operator = world.start_operator().await;
    world.site("alpha", json!({"configuration": {"applications": [{"name": "site-s3"}]}})).await;
    world.wait_ready("alpha").await;
    let configuration = |patch: Value| json!({"spec": {"configuration": patch}});
    let settings = |patch: Value| configuration(json!({"settings": patch}));
    let share = |list: &str| configuration(json!({"share": {list: ["bo"]}}));
    let custom = |image: &str| json!({"applications": [{"name": "site-custom", "image": image}]});
    for patch in [
        json!({"spec": {"name": "other"}}),
        json!({"spec": {"owner": "bo"}}),
        json!({"spec": {"type": "public"}}),
        configuration(json!({"space": "elsewhere"})),
        configuration(custom("registry.example.org/team/app:1")),
        configuration(custom("registry.example.org/team/app:2")),
        configuration(json!({"headers": {"X-A": "1"}})),
        configuration(json!({"quota": 2})),
        configuration(json!({"retention_date": "2031-01-01"})),
        share("administrator_users"),
        share("administrator_groups"),
        share("view_users"),
        share("view_groups"),
        settings(json!({"resource_limits": {"cpu": "2"}})),
        settings(json!({"resource_limits": {"memory": "1Gi"}})),
        settings(json!({"error_handling": {"directory_listing": false}})),
        settings(json!({"error_handling": {"not_found_page": "/404.html"}})),
        configuration(json!({"tokens": {"master": "another"}})),
        configuration(json!({"enabled": false})),
        configuration(json!({"enabled": true})),
    ] {
        let before = world.stateful_set("alpha").await;
        world.edit_site("alpha", patch.clone()).await;
        let site = world.wait_ready("alpha").await;
        let after = world.stateful_set("alpha").await;
        assert_ne!(stamp(&before), stamp(&after), "{patch} made no pass");
        let digest = site["status"]["handled"]["digest"].as_str().unwrap();
        assert!(stamp(&after).as_str().unwrap().starts_with(digest), "{patch}");
    }
    world.end().await;
}

#[tokio::test]
async fn mutation_of_an_exception_waits_for_the_next_change() {
    let world = World::new("exception").await;
    let Some(audit) = world.lab().audit_or_skip("mutation_of_an_exception_waits_for_the_next_change") else { return };
    let _operator = world.start_operator().await;
    world.site("alpha", json!({})).await;
    world.wait_ready("alpha").await;
    eventually("the volume is labelled", SOON, || async {
        world.of_site("PersistentVolume", "alpha").await.len() == 1
    })
    .await;
    let priority = |set: &Value| set["spec"]["template"]["spec"]["priorityClassName"].clone();
    let before = world.stateful_set("alpha").await;
    let mark = audit.mark();
    for patch in [
        json!({"settings": {"monitored": true}}),
        json!({"description": "text"}),
        json!({"registered_by": "ana", "updated_by": "bo"}),
        json!({"registered_date": "2020-01-01", "updated_date": "2026-01-01"}),
        json!({"a_later_field": {"x": 1}}),
    ] {
        world.edit_site("alpha", json!({"spec": {"configuration": patch}})).await;
        world.wait_ready("alpha").await;
    }
    let writes = calls_about(&world, mark, "alpha").await.writes();
    assert!(writes.0.iter().all(|call| call.subresource == "status"), "{}", writes.describe());
    assert_eq!(world.stateful_set("alpha").await["metadata"]["generation"], before["metadata"]["generation"]);
    assert_eq!(priority(&before), "low-priority");
    world.edit_site("alpha", json!({"spec": {"owner": "bo"}})).await;
    world.wait_ready("alpha").await;
    assert_eq!(priority(&world.stateful_set("alpha").await), "medium-priority");
    world.end().await;
}
