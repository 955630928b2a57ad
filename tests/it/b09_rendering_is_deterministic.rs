//! B09: rendering gives the same bytes in every process, so that no restart of the operator looks like a change.

use serde_json::{Value, json};

use crate::support::api::{kind_of, name_of};
use crate::support::{World, assert_left_alone, calls_about};

fn busy() -> Value {
    let headers: serde_json::Map<String, Value> =
        (0..10).map(|number| (format!("X-Header-{number}"), json!(format!("value {number}")))).collect();
    json!({
        "owner": "Zoë", "type": "private",
        "configuration": {
            "headers": headers,
            "applications": [
                {"name": "site-custom", "image": "registry.example.org/team/app:1"}, {"name": "site-s3"},
                {"name": "site-webdav"}, {"name": "site-admin"}, {"name": "site-mirror"}, {"name": "site-api"},
                {"name": "site-proxy"}, {"name": "site-oauth2"},
            ],
            "share": {
                "administrator_users": ["d", "c", "b", "a"], "view_users": ["z", "y", "x"],
                "view_groups": ["g2", "g1"], "administrator_groups": ["h2", "h1"],
            },
            "settings": {"resource_limits": {"cpu": "1500m", "memory": "0.5Gi"}},
        },
    })
}

/// Kind, name and version of everything but the pods.
async fn versions(world: &World) -> Vec<String> {
    let mut objects = world.objects_of("busy").await;
    objects.retain(|object| !matches!(kind_of(object), "Pod" | "PersistentVolume"));
    let line =
        |object: &Value| format!("{}/{} {}", kind_of(object), name_of(object), object["metadata"]["resourceVersion"]);
    objects.iter().map(line).collect()
}

/// Without its record, a process renders everything and compares it with what the first process wrote.
#[tokio::test]
async fn b09_every_process_renders_the_same() {
    let world = World::new("b09").await;
    let Some(audit) = world.lab().audit_or_skip("b09_every_process_renders_the_same") else { return };
    world.site("busy", busy()).await;
    let operator = world.start_operator().await;
    world.wait_ready("busy").await;
    world.wait_phase("busy", "Running").await;
    operator.stop().await;
    let pods = world.pod_uids("busy").await;
    for _ in 0..4 {
        let forget = json!({"status": {"handled": null}});
        world.api.merge("Site", &world.namespace, "busy", "status", &forget).await.unwrap();
        let (before, mark) = (versions(&world).await, audit.mark());
        let operator = world.start_operator().await;
        let recorded = |site: &Value| site["status"]["handled"]["digest"].is_string();
        world.wait_site("busy", "it is recorded", recorded).await;
        operator.stop().await;
        let calls = world.calls(mark).of_passes().filter(|call| !call.name.starts_with("pvc-"));
        let reads = calls.clone().filter(|call| call.verb == "get").count();
        assert!(reads >= 8, "everything was compared:\n{}", calls.describe());
        let writes = calls.writes().filter(|call| call.subresource != "status");
        assert_eq!(writes.count(), 0, "{}", writes.describe());
        assert_eq!(versions(&world).await, before);
    }
    assert_eq!(world.pod_uids("busy").await, pods);
    world.end().await;
}

#[tokio::test]
async fn b09_a_restart_without_edits_reads_and_writes_nothing() {
    let world = World::new("b09-restart").await;
    let Some(audit) = world.lab().audit_or_skip("b09_a_restart_without_edits_reads_and_writes_nothing") else { return };
    world.site("busy", busy()).await;
    let operator = world.start_operator().await;
    world.wait_ready("busy").await;
    world.wait_phase("busy", "Running").await;
    crate::support::eventually("the volume is labelled", crate::support::SOON, || async {
        world.of_site("PersistentVolume", "busy").await.len() == 1
    })
    .await;
    operator.stop().await;
    let mark = audit.mark();
    let operator = world.start_operator().await;
    assert_left_alone(&world, mark, "busy").await;

    // Another order of the applications is no change; another application is.
    let mut turned = busy()["configuration"]["applications"].as_array().unwrap().clone();
    turned.reverse();
    let mark = audit.mark();
    world.edit_site("busy", json!({"spec": {"configuration": {"applications": turned}}})).await;
    let writes = calls_about(&world, mark, "busy").await.writes();
    assert!(writes.0.iter().all(|call| call.subresource == "status"), "{}", writes.describe());
    operator.stop().await;
    world.end().await;
}
