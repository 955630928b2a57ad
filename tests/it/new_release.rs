//! A release or a setting that renders a Site differently restarts nothing and writes nothing by itself: what is new
//! reaches a Site with its next change, which restarts it once.

use serde_json::{Value, json};

use crate::support::api::{merge_into, name_of};
use crate::support::belongings::{generation, uid};
use crate::support::{SOON, World, assert_left_alone, eventually};

const API: &str = "registry.example.test/next/site-api:9";

/// Settings whose render differs in the template, in the files and in the route.
fn next_release() -> Value {
    json!({
        "site": {
            "images": {"site-api": API}, "custom_limits": {"cpu": "750m", "memory": "1Gi"},
            "brand": "The next release", "termination_grace_seconds": 45,
        },
        "routing": {"ingress": {"proxy_timeout": "900s"}},
    })
}

fn with_a_custom_application() -> Value {
    json!({"configuration": {"applications": [{"name": "site-custom", "image": "registry.example.test/team/app:1"}]}})
}

/// Whether a set's template is of the next release.
fn is_next(set: &Value) -> bool {
    let template = set["spec"]["template"].to_string();
    let parts =
        [template.contains(API), template.contains("750m"), template.contains("\"terminationGracePeriodSeconds\":45")];
    assert!(parts.iter().all(|part| *part == parts[0]), "half of it: {template}");
    parts[0]
}

#[tokio::test]
async fn new_release_writes_nothing_by_itself_and_the_next_change_rolls_once() {
    let mut world = World::new("release").await;
    let Some(audit) = world.lab().audit_or_skip("new_release_writes_nothing_by_itself") else { return };
    let operator = world.start_operator().await;
    world.site("plain", with_a_custom_application()).await;
    world.site("archived", json!({"configuration": {"enabled": false}})).await;
    world.running(&operator, "plain").await;
    world.wait_phase("archived", "Disabled").await;
    eventually("the volume is labelled", SOON, || async {
        world.of_site("PersistentVolume", "archived").await.len() == 1
    })
    .await;
    world.settled(&operator, "archived").await;
    let (set, pods) = (world.stateful_set("plain").await, world.pod_uids("plain").await);
    let route = world.must("Ingress", name_of(&world.ingresses("plain").await[0])).await;
    assert!(!is_next(&set));
    operator.stop().await;

    merge_into(&mut world.settings, &next_release());
    let mark = audit.mark();
    let operator = world.start_operator().await;
    for id in ["plain", "archived"] {
        world.settled(&operator, id).await;
        assert_left_alone(&world, mark, id).await;
    }

    // A repair does not bring it in either: the set is mended, its template stays; what has to be made anew is made as
    // it is rendered now.
    let hand = json!({"metadata": {"labels": {"sites.ecmwf.int/owner": "eve"}}, "spec": {"replicas": 2}});
    world.api.merge("StatefulSet", &world.namespace, "plain", "", &hand).await.unwrap();
    eventually("the set is mended", SOON, || async {
        let now = world.stateful_set("plain").await;
        now["metadata"]["labels"] == set["metadata"]["labels"] && now["spec"]["replicas"] == 1
    })
    .await;
    assert!(world.api.delete("Service", &world.namespace, "plain").await);
    eventually("the Service is back", SOON, || async { world.get("Service", "plain").await.is_some() }).await;
    world.settled(&operator, "plain").await;
    let mended = world.stateful_set("plain").await;
    assert_eq!(mended["spec"], set["spec"], "the template is the old one");
    assert_eq!(generation(&mended), generation(&set) + 2, "the edit and its undoing");
    eventually("one pod is left", SOON, || async { world.pods("plain").await.len() == 1 }).await;
    assert_eq!(world.pod_uids("plain").await, pods);
    assert_eq!(world.must("Ingress", name_of(&route)).await, route);

    for id in ["plain", "archived"] {
        let before = world.stateful_set(id).await;
        world.edit_site(id, json!({"spec": {"configuration": {"share": {"view_users": ["bob"]}}}})).await;
        world.wait_ready(id).await;
        world.settled(&operator, id).await;
        let after = world.stateful_set(id).await;
        assert_eq!((uid(&after), generation(&after)), (uid(&before), generation(&before) + 1), "{id} rolls once");
        assert!(after["spec"]["template"].to_string().contains(API), "{id}");
        let route = world.ingresses(id).await.remove(0);
        assert!(route["metadata"]["annotations"].to_string().contains("900s"), "{route}");
        let files = world.config_map(&format!("{id}-files")).await["data"].to_string();
        assert!(files.contains("The next release"), "{files}");
    }
    assert!(is_next(&world.stateful_set("plain").await));
    eventually("the pod is of the next release", SOON, || async {
        let pods = world.pods("plain").await;
        pods.len() == 1 && pods[0]["spec"].to_string().contains(API)
    })
    .await;
    world.running(&operator, "plain").await;

    // And nothing is left to do.
    let set = world.stateful_set("plain").await;
    operator.stop().await;
    let mark = audit.mark();
    let operator = world.start_operator().await;
    world.settled(&operator, "plain").await;
    assert_left_alone(&world, mark, "plain").await;
    assert_eq!(world.stateful_set("plain").await["metadata"]["generation"], set["metadata"]["generation"]);
    world.end().await;
}
