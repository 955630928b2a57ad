//! B16: the status comes from every container of the pod, init containers and the scheduler included, and a Site is
//! never said to be started when it is not.

use futures::{AsyncBufReadExt, StreamExt};
use serde_json::{Value, json};

use crate::support::api::{condition, name_of};
use crate::support::{SOON, World, eventually};

fn problems(site: &Value) -> Vec<String> {
    let all = site["status"]["container_problems"].as_array().cloned().unwrap_or_default();
    let text = |problem: &Value, key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    all.iter().map(|one| ["name", "kind", "reason"].map(|key| text(one, key)).join(" ")).collect()
}

async fn wait_pending(world: &World, id: &str, wanted: &[&str]) -> Value {
    world
        .wait_site(id, &format!("Pending with {wanted:?}"), |site| {
            site["status"]["phase"] == "Pending" && problems(site) == wanted
        })
        .await
}

/// Every status that the Site had since `version`, read from the server's own history.
async fn never_started(world: &World, id: &str, version: &Value) {
    let path = format!(
        "/apis/sites.ecmwf.int/v1/namespaces/{}/sites?watch=true&timeoutSeconds=1&fieldSelector=metadata.name={id}&resourceVersion={}",
        world.namespace,
        version.as_str().unwrap()
    );
    let lines = world.client.request_stream(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap().lines();
    let events: Vec<Value> = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect::<Vec<_>>().await;
    assert!(!events.is_empty(), "there is a history");
    for event in events {
        assert_ne!(event["object"]["status"]["all_steps_started"], true, "{event}");
    }
}

#[tokio::test]
async fn b16_a_an_unschedulable_pod_without_container_statuses() {
    let mut world = World::new("b16-a").await;
    world.settings["kubernetes"]["storage_class"] = json!(format!("nobody-{}", world.namespace));
    let _operator = world.start_operator().await;
    let born = world.site("place", json!({})).await;
    let site = wait_pending(&world, "place", &["place-0 scheduling Unschedulable"]).await;
    let pod = world.must("Pod", "place-0").await;
    assert!(pod["status"]["containerStatuses"].is_null());
    let message = &site["status"]["container_problems"][0]["message"];
    assert_eq!(*message, condition(&pod, "PodScheduled").unwrap()["message"]);
    never_started(&world, "place", &born["metadata"]["resourceVersion"]).await;
    world.end().await;
}

#[tokio::test]
async fn b16_b_a_crashing_init_container() {
    let world = World::new("b16-b").await;
    let _operator = world.start_operator().await;
    let born = world.site("initcrash-x", json!({})).await;
    wait_pending(&world, "initcrash-x", &["site-initializer waiting CrashLoopBackOff"]).await;
    never_started(&world, "initcrash-x", &born["metadata"]["resourceVersion"]).await;
    world.end().await;
}

#[tokio::test]
async fn b16_c_a_later_container_that_is_not_ready() {
    let world = World::new("b16-c").await;
    let _operator = world.start_operator().await;
    let applications = json!([{"name": "site-admin"}, {"name": "site-custom", "image": "registry.example.test/app:1"}]);
    let born = world.site("unready-x", json!({"configuration": {"applications": applications}})).await;
    let pod = eventually("the pod shows its containers", SOON, || async {
        let pod = world.get("Pod", "unready-x-0").await?;
        pod["status"]["containerStatuses"].is_array().then_some(pod)
    })
    .await;
    let mut statuses = pod["status"]["containerStatuses"].clone();
    for status in statuses.as_array_mut().unwrap() {
        status["ready"] = (status["name"] != "site-custom").into();
    }
    assert_ne!(statuses[0]["name"], "site-custom", "it is not the first");
    let patch = json!({"status": {"containerStatuses": statuses}});
    world.api.merge("Pod", &world.namespace, name_of(&pod), "status", &patch).await.unwrap();
    wait_pending(&world, "unready-x", &["site-custom running NotReady"]).await;
    never_started(&world, "unready-x", &born["metadata"]["resourceVersion"]).await;
    world.end().await;
}

#[tokio::test]
async fn b16_d_phase_running_while_a_container_crashes() {
    let world = World::new("b16-d").await;
    let _operator = world.start_operator().await;
    let born = world.site("crash-x", json!({})).await;
    let site = world
        .wait_site("crash-x", "the crash is seen", |site| problems(site).concat().contains("CrashLoopBackOff"))
        .await;
    assert_eq!(site["status"]["phase"], "Pending");
    assert_eq!(world.must("Pod", "crash-x-0").await["status"]["phase"], "Running");
    never_started(&world, "crash-x", &born["metadata"]["resourceVersion"]).await;
    world.end().await;
}
