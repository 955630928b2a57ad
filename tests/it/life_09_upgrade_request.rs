//! LIFE-09: a new upgrade request on a Site is enough for a full render and a restart of its pods, once per request;
//! and a bulk run of requests stands behind what people do.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Act, FaultProxy, Match, SOON, Start, Times, World, eventually};

const REQUEST: &str = "sites.ecmwf.int/upgrade-request";
const CLASS: &str = "sites.ecmwf.int/work-class";

fn request(value: impl Into<Value>) -> Value {
    json!({"metadata": {"annotations": {REQUEST: value.into()}}})
}

/// What a restart changes: the generation of the StatefulSet and the uids of the pods.
async fn incarnation(world: &World, id: &str) -> (i64, Vec<String>) {
    (world.stateful_set(id).await["metadata"]["generation"].as_i64().unwrap(), world.pod_uids(id).await)
}

/// Waits until the pods are other ones than before and run, one rollout later.
async fn wait_restarted(world: &World, id: &str, before: &(i64, Vec<String>)) -> (i64, Vec<String>) {
    eventually("the pods are new ones of the new template", SOON, || async {
        let set = world.stateful_set(id).await;
        let stamp = |annotations: &Value| annotations["sites.ecmwf.int/stamped-for"].clone();
        let wanted = stamp(&set["spec"]["template"]["metadata"]["annotations"]);
        let pods = world.pods(id).await;
        let new = pods.len() == 1
            && stamp(&pods[0]["metadata"]["annotations"]) == wanted
            && !before.1.contains(&pods[0]["metadata"]["uid"].as_str().unwrap().to_owned());
        new.then_some(())
    })
    .await;
    world.wait_phase(id, "Running").await;
    let after = incarnation(world, id).await;
    assert_eq!(after.0, before.0 + 1, "one write of the StatefulSet for one change");
    after
}

async fn wait_handled(world: &World, id: &str, uuid: &str) -> Value {
    world.wait_site(id, "the request is handled", |site| site["status"]["handled"]["upgrade_request"] == uuid).await
}

#[tokio::test]
async fn life_09_a_request_alone_renders_everything_and_restarts_once() {
    let mut world = World::new("life-09-once").await;
    let operator = world.start_operator().await;
    world.site("up", json!({})).await;
    world.wait_phase("up", "Running").await;
    let born = incarnation(&world, "up").await;
    let files = world.config_map("up-files").await;
    operator.stop().await;

    // Another release and other settings write nothing by themselves: the request does it all.
    world.settings["site"] = json!({"version": "1.1.0", "brand": "Other Brand"});
    let operator = world.start_operator().await;
    world.edit_site("up", request("first")).await;
    wait_handled(&world, "up", "first").await;
    let first = wait_restarted(&world, "up", &born).await;
    let set = world.stateful_set("up").await;
    let containers = &set["spec"]["template"]["spec"]["containers"];
    assert!(containers.to_string().contains(":1.1.0"), "the template is rendered anew: {containers}");
    assert_ne!(world.config_map("up-files").await["data"], files["data"], "and so are the files");

    // A later edit restarts for itself only, and a removed request for nothing.
    world.edit_site("up", json!({"spec": {"configuration": {"share": {"view_users": ["bo"]}}}})).await;
    let edited = wait_restarted(&world, "up", &first).await;
    world.edit_site("up", request(Value::Null)).await;
    world.edit_site("up", json!({"spec": {"configuration": {"description": "no reason to restart"}}})).await;
    world.wait_ready("up").await;
    assert_eq!(incarnation(&world, "up").await, edited);
    // Nor does a restart of the operator repeat one that is still there.
    world.edit_site("up", request("second")).await;
    let second = wait_restarted(&world, "up", &edited).await;
    operator.stop().await;
    let _operator = world.start_operator().await;
    world.edit_site("up", json!({"spec": {"configuration": {"description": "still none"}}})).await;
    world.wait_ready("up").await;
    assert_eq!(incarnation(&world, "up").await, second);
    world.end().await;
}

#[tokio::test]
async fn life_09_an_archived_site_is_rendered_and_stays_at_zero() {
    let world = World::new("life-09-zero").await;
    let _operator = world.start_operator().await;
    world.site("old", json!({"configuration": {"enabled": false}})).await;
    world.wait_phase("old", "Disabled").await;
    world.wait_ready("old").await;
    world.edit_site("old", request("a")).await;
    wait_handled(&world, "old", "a").await;
    let set = world.stateful_set("old").await;
    assert_eq!(set["spec"]["replicas"], 0);
    let stamp = &set["spec"]["template"]["metadata"]["annotations"]["sites.ecmwf.int/stamped-for"];
    assert!(stamp.as_str().unwrap().ends_with("/a"), "{stamp}");
    assert!(world.pods("old").await.is_empty());
    world.wait_phase("old", "Disabled").await;
    world.end().await;
}

/// The Sites of the bulk run that are still to be done, by number.
async fn waiting(world: &World) -> Vec<usize> {
    let sites = world.api.list("Site", &world.namespace, "").await;
    let bulk = sites.iter().filter(|site| site["metadata"]["annotations"][REQUEST] == "run-1");
    let waiting = bulk.filter(|site| site["status"]["handled"]["upgrade_request"] != "run-1");
    let number = |site: &Value| site["metadata"]["name"].as_str().unwrap()[2..].parse().unwrap();
    let mut waiting: Vec<usize> = waiting.map(number).collect();
    waiting.sort_unstable();
    waiting
}

#[tokio::test]
async fn life_09_a_bulk_run_stands_behind_what_people_do() {
    const SITES: usize = 50;
    let world = World::new("life-09-bulk").await;
    let proxy = FaultProxy::start(world.lab()).await;
    let start = Start {
        kubeconfig: Some(proxy.kubeconfig(&world).await),
        settings: json!({"operator": {"worker_limit": 1}}),
        ..Start::default()
    };
    let _operator = world.start_operator_with(start).await;
    let ids: Vec<String> = (0..SITES).map(|number| format!("s-{number}")).collect();
    for id in &ids {
        // Archived: a bulk run includes them, and their pods cost nothing here.
        world.site(id, json!({"configuration": {"enabled": false}})).await;
    }
    for id in &ids {
        world.wait_ready(id).await;
    }
    // Every pass of the run takes a while, so that there is a queue.
    proxy.fault(Match::on("update", "statefulsets"), Act::Delay(Duration::from_millis(200)), Times::Always);
    // All at once: written one by one on a busy machine, the run would be half done before the person comes.
    let annotations = json!({"metadata": {"annotations": {REQUEST: "run-1", CLASS: "bulk"}}});
    futures::future::join_all(ids.iter().map(|id| world.edit_site(id, annotations.clone()))).await;
    world.site("person", json!({})).await;
    world.wait_ready("person").await;
    assert!(waiting(&world).await.len() > SITES / 3, "a new Site overtakes the run");

    // So does an edit, even of a Site that stands in the run's queue.
    let queued = format!("s-{}", waiting(&world).await.pop().unwrap());
    world.edit_site(&queued, json!({"spec": {"configuration": {"share": {"view_users": ["bo"]}}}})).await;
    world.wait_ready(&queued).await;
    let left = waiting(&world).await.len();
    assert!(left > 5, "an edit overtakes the run, of which {left} are left");
    // A run rests as long as its passes take: on a busy machine that is long.
    eventually("the run ends", 4 * SOON, || async { waiting(&world).await.is_empty() }).await;
    for id in &ids {
        assert_eq!(world.stateful_set(id).await["metadata"]["generation"], 2, "{id}: one restart");
    }
    world.end().await;
}
