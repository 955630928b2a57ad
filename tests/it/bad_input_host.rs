//! While the public host is not set, Sites wait and say so; nothing is made for them, and what runs is left alone.

use serde_json::{Value, json};

use crate::support::api::condition;
use crate::support::{Start, World};

#[tokio::test]
async fn bad_input_without_a_host_makes_sites_wait() {
    let world = World::new("no-host").await;
    let operator = world.start_operator().await;
    world.site("older", json!({})).await;
    world.wait_ready("older").await;
    world.wait_phase("older", "Running").await;
    let pods = world.pod_uids("older").await;
    let route = world.ingresses("older").await;
    operator.stop().await;

    let settings = json!({"routing": {"host": Value::Null}, "operator": {"route_conflict_delay": "500ms"}});
    let operator = world.start_operator_with(Start { settings, ..Start::default() }).await;
    world.site("newer", json!({})).await;
    let site = world.wait_condition("newer", "Ready", "False").await;
    let ready = condition(&site, "Ready").unwrap();
    assert_eq!(ready["reason"], "HostMissing");
    let message = ready["message"].as_str().unwrap();
    assert!(message.contains("routing.host") && message.contains("set the public host name"), "{message}");
    assert!(world.objects_of("newer").await.is_empty());

    // The one that runs is not touched, by an edit neither, which waits too.
    world.edit_site("older", json!({"spec": {"owner": "bo@example.test"}})).await;
    let site = world.wait_condition("older", "Ready", "False").await;
    assert_eq!(condition(&site, "Ready").unwrap()["reason"], "HostMissing");
    assert_eq!(site["status"]["phase"], "Running");
    assert_eq!(world.pod_uids("older").await, pods);
    assert_eq!(world.ingresses("older").await[0]["metadata"]["uid"], route[0]["metadata"]["uid"]);
    operator.stop().await;

    let operator = world.start_operator().await;
    for id in ["newer", "older"] {
        world.wait_ready(id).await;
        world.wait_phase(id, "Running").await;
    }
    operator.stop().await;
    world.end().await;
}
