//! Bulk runs: each Site once, exact counts, cancelled, followed, and only for platform administrators.

use serde_json::{Value, json};

use crate::support::belongings::uid;
use crate::support::runs::{Administrator, RESTART, UPGRADE, by_name, count};
use crate::support::{LONG, OpenId, Redis, SOON, Start, World, eventually};

fn settings(bulk: &Value) -> Start {
    Start { settings: json!({"hub": {"bulk": bulk}}), ..Start::default() }
}

/// Keeps the pod of a Site from going away, or lets it go.
async fn hold(world: &World, id: &str, finalizers: &Value) {
    let name = world.pods(id).await[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let patch = json!({"metadata": {"finalizers": finalizers}});
    world.api.merge("Pod", &world.namespace, &name, "", &patch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_runs_an_upgrade_tells_what_became_of_each_site() {
    let mut world = World::new("hub-runs").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let operator = world.start_operator().await;
    let applications = json!([
        {"name": "site-webdav", "image": "sites:0.9"},
        {"name": "site-custom", "image": "example.test/mine:7"},
    ]);
    world.site("old", json!({"configuration": {"applications": applications}})).await;
    world.site("archived", json!({"configuration": {"enabled": false}})).await;
    for id in ["old", "archived"] {
        world.settled(&operator, id).await;
    }
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let admin = Administrator::of(&hub, openid);

    // Who is no platform administrator, and what is no question.
    for (token, status) in [(String::new(), 401), (openid.token("alice"), 403)] {
        for (method, path) in [("POST", UPGRADE), ("POST", RESTART), ("GET", "/hub/api/v2/runs/")] {
            let told = hub.json(method, path, &token, &Value::Null).await;
            assert_eq!(told.status, status, "{method} {path}: {}", told.text());
        }
    }
    for query in ["?force=1", "?force=", "?force=true&force=false"] {
        let told = admin.post(&format!("{UPGRADE}{query}"), &Value::Null).await;
        assert_eq!(told.status, 400, "{query}: {}", told.text());
        assert!(told.json()["errors"][0].as_str().unwrap().starts_with("[force] "), "{}", told.text());
    }
    for id in ["nothing", "00000000-0000-4000-8000-000000000000", "%2e%2e"] {
        assert_eq!(admin.get(&format!("/hub/api/v2/runs/{id}/")).await.status, 404, "{id}");
    }

    let run = admin.ended(&admin.begin(UPGRADE).await, LONG).await;
    assert_eq!((&run["state"], &run["by"]), (&json!("done"), &json!("carol-admin")), "{run}");
    assert_eq!(run["sites"]["old"]["state"], "done", "{run}");
    assert_eq!(run["sites"]["archived"]["state"], "skipped", "{run}");
    assert_eq!(run["sites"]["archived"]["reason"], "it is archived");
    let site = world.must("Site", "old").await;
    let annotation = |name: &str| site["metadata"]["annotations"][format!("sites.ecmwf.int/{name}")].clone();
    assert_eq!(annotation("upgrade-request"), run["id"]);
    assert_eq!(annotation("work-class"), format!("bulk/{}", run["id"].as_str().unwrap()));
    assert!(annotation("traceparent").as_str().unwrap().contains(&run["id"].as_str().unwrap().replace('-', "")));
    assert_eq!(site["status"]["handled"]["upgrade_request"], run["id"], "done means that the operator has done it");
    let images: Vec<&Value> =
        site["spec"]["configuration"]["applications"].as_array().unwrap().iter().map(|one| &one["image"]).collect();
    assert_eq!(images[..2], [&json!("sites:1.0.0"), &json!("example.test/mine:7")], "a custom image stays");

    // Again: up to date. By force: everything, and what is archived stays so.
    let again = admin.ended(&admin.begin(UPGRADE).await, LONG).await;
    assert_eq!(again["sites"]["old"]["reason"], "it is up to date", "{again}");
    let forced = admin.ended(&admin.begin(&format!("{UPGRADE}?force=true")).await, LONG).await;
    assert_eq!(count(&forced, &["done"]), 2, "{forced}");
    assert_eq!(world.must("Site", "archived").await["spec"]["configuration"]["enabled"], false);

    // The list, one state, and the whole story.
    let listed = admin.get("/hub/api/v2/runs/").await.json();
    let ids: Vec<&Value> = listed["runs"].as_array().unwrap().iter().map(|run| &run["id"]).collect();
    assert_eq!(ids, [&forced["id"], &again["id"], &run["id"]], "newest first");
    let path = format!("/hub/api/v2/runs/{}/", run["id"].as_str().unwrap());
    let done = admin.get(&format!("{path}?state=done")).await.json();
    assert_eq!(done["sites"].as_object().unwrap().keys().collect::<Vec<_>>(), ["old"]);
    assert_eq!(admin.get(&format!("{path}?state=well")).await.status, 400);
    let told = admin.get(&format!("{path}events/")).await;
    assert!(told.header("content-type").starts_with("text/event-stream"), "{}", told.header("content-type"));
    let story = told.text();
    let data: Vec<Value> =
        story.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
    let states: Vec<&str> = data.iter().map(|event| event["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["running", "working", "done", "done"], "{story}");
    assert_eq!((&data[1]["site"], &data[3]["id"]), (&json!("old"), &run["id"]));
    let told = admin.post(&format!("{path}cancel/"), &Value::Null).await;
    assert_eq!(told.status, 409, "{}", told.text());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_runs_a_cancelled_run_begins_no_further_site() {
    let mut world = World::new("hub-cancel").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let operator = world.start_operator().await;
    let ids: Vec<String> = (0..8).map(|number| format!("s{number}")).collect();
    for id in &ids {
        world.site(id, json!({"configuration": {"enabled": false}})).await;
        world.settled(&operator, id).await;
    }
    // The operator is held, and two Sites behind is as far as a run goes: what it has begun stays unfinished.
    operator.pause();
    let openid = OpenId::get().await;
    let hub = world.start_hub_process_with(openid, settings(&json!({"backlog": 2, "unavailable_percent": 100}))).await;
    let admin = Administrator::of(&hub, openid);
    let run = admin.begin(&format!("{UPGRADE}?force=true")).await;
    admin.run_is(&run, "two Sites are begun", LONG, |run| count(run, &["working"]) == 2).await;
    let told = admin.post(&format!("/hub/api/v2/runs/{run}/cancel/"), &Value::Null).await;
    assert_eq!((told.status, &told.json()["cancelling"]), (202, &json!(true)), "{}", told.text());
    let seen = admin.run_is(&run, "the others are cancelled", LONG, |run| count(run, &["cancelled"]) == 6).await;
    assert_eq!(seen["state"], "running", "what is written is followed");
    operator.resume();
    let run = admin.ended(&run, LONG).await;
    assert_eq!((&run["state"], count(&run, &["done"])), (&json!("cancelled"), 2), "{run}");
    let asked = ids.iter().map(async |id| {
        let site = world.must("Site", id).await;
        site["metadata"]["annotations"]["sites.ecmwf.int/upgrade-request"] == run["id"]
    });
    let asked = futures::future::join_all(asked).await;
    assert_eq!(asked.into_iter().filter(|asked| *asked).count(), 2);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_runs_a_restart_deletes_the_pods_from_before_it_and_no_other() {
    let mut world = World::new("hub-restart").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let operator = world.start_operator().await;
    let ids = world.crowd(&operator, 3).await;
    let openid = OpenId::get().await;
    // Of three Sites one at a time, and the first one's pod is held: the others wait.
    let hub = world.start_hub_process(openid).await;
    let admin = Administrator::of(&hub, openid);
    let [first, second, third] = [&ids[0], &ids[1], &ids[2]];
    let old = [first, second, third].map(async |id| uid(&world.pods(id).await[0]).to_owned());
    let old = futures::future::join_all(old).await;
    hold(&world, first, &json!(["sites.test/kept"])).await;
    let run = admin.begin(RESTART).await;
    admin.run_is(&run, "the first Site is begun", LONG, |run| run["sites"][first]["state"] == "working").await;
    let told = admin.post(RESTART, &Value::Null).await;
    assert_eq!(told.status, 409, "{}", told.text());
    // Meanwhile somebody restarts the third: its pod is younger than the run.
    let pod = world.pods(third).await[0]["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(world.api.delete("Pod", &world.namespace, &pod).await);
    let young = eventually("the third Site has a new pod", SOON, || async {
        let pods = world.pods(third).await;
        let new = pods.iter().find(|pod| uid(pod) != old[2] && pod["status"]["phase"] == "Running");
        new.map(|pod| uid(pod).to_owned())
    })
    .await;
    hold(&world, first, &Value::Null).await;
    let run = admin.ended(&run, LONG).await;
    assert_eq!((&run["state"], count(&run, &["done"])), (&json!("done"), 2), "{run}");
    for (id, old) in [first, second].into_iter().zip(&old) {
        assert_eq!(run["sites"][id]["pods"], Value::Null, "what is done needs no pods any more: {run}");
        let pods = world.pods(id).await;
        assert!(pods.len() == 1 && uid(&pods[0]) != old, "{pods:?}");
        assert_eq!(pods[0]["status"]["phase"], "Running", "done means that the new pod runs");
    }
    assert_eq!(run["sites"][third]["reason"], "it has no pod from before the run", "{run}");
    assert_eq!(world.pod_uids(third).await, [young]);
    // The StatefulSets are as they were: the operator had nothing to do.
    for id in &ids {
        assert_eq!(world.stateful_set(id).await["metadata"]["generation"], 1);
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_runs_a_restart_does_not_wait_for_who_is_archived_meanwhile() {
    let mut world = World::new("hub-meanwhile").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let operator = world.start_operator().await;
    let ids = world.crowd(&operator, 2).await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let admin = Administrator::of(&hub, openid);
    hold(&world, &ids[0], &json!(["sites.test/kept"])).await;
    let run = admin.begin(RESTART).await;
    admin.run_is(&run, "the first Site is begun", LONG, |run| run["sites"][&ids[0]]["state"] == "working").await;
    world.edit_site(&ids[0], json!({"spec": {"configuration": {"enabled": false}}})).await;
    hold(&world, &ids[0], &Value::Null).await;
    let run = admin.ended(&run, LONG).await;
    assert_eq!(run["sites"][&ids[0]]["reason"], "it was archived meanwhile", "{run}");
    assert_eq!((&run["state"], &run["sites"][&ids[1]]["state"]), (&json!("done"), &json!("done")), "{run}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_runs_an_upgrade_takes_few_sites_away_at_a_time() {
    let mut world = World::new("hub-few").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let operator = world.start_operator().await;
    let ids = world.crowd(&operator, 4).await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let admin = Administrator::of(&hub, openid);
    let old = world.pod_uids(&ids[0]).await;
    // A quarter is more than a percent, and one Site is the least: the pod of the first is held, the others wait.
    hold(&world, &ids[0], &json!(["sites.test/kept"])).await;
    let run = admin.begin(UPGRADE).await;
    eventually("the operator has upgraded the first", SOON, || async {
        world.must("Site", &ids[0]).await["status"]["handled"]["upgrade_request"] == run.as_str()
    })
    .await;
    // While another Site comes to run, the run had several looks and would have begun the next.
    world.site("canary", json!({})).await;
    world.wait_phase("canary", "Running").await;
    let seen = admin.run(&run).await;
    assert_eq!((count(&seen, &["working"]), count(&seen, &["queued"])), (1, 3), "{seen}");
    assert_eq!(seen["sites"][&ids[0]]["state"], "working", "{seen}");
    hold(&world, &ids[0], &Value::Null).await;
    let done = admin.ended(&run, LONG).await;
    assert_eq!((&done["state"], count(&done, &["done"])), (&json!("done"), 4), "{done}");
    assert!(done["sites"].as_object().unwrap().values().all(|site| site["ran"].is_null()), "{done}");
    let new = world.pods(&ids[0]).await;
    assert!(new.len() == 1 && !old.contains(&uid(&new[0]).to_owned()), "done means that the new pod is there");
    assert_eq!(new[0]["status"]["phase"], "Running", "and runs");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_runs_an_upgrade_that_no_site_survives_ends_with_the_first() {
    let mut world = World::new("hub-harm").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let operator = world.start_operator().await;
    let ids = world.crowd(&operator, 3).await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process_with(openid, settings(&json!({"answer_timeout": "20s"}))).await;
    let admin = Administrator::of(&hub, openid);
    // No new pod may be made: what a release with a missing image comes to.
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-pods"},
        "spec": {"hard": {"pods": "0"}}});
    world.api.create(&world.namespace, &quota).await.unwrap();
    eventually("the quota is in force", SOON, || async {
        world.must("ResourceQuota", "no-pods").await["status"]["hard"]["pods"] == "0"
    })
    .await;
    let run = admin.ended(&admin.begin(UPGRADE).await, LONG).await;
    assert_eq!((&run["state"], count(&run, &["failed"])), (&json!("failed"), 3), "{run}");
    assert!(run["message"].as_str().unwrap().starts_with("given up: "), "{run}");
    let reason = |id: &str| run["sites"][id]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason(&ids[0]).starts_with("no new pod ran in time: Pending"), "{run}");
    for id in &ids[1..] {
        assert_eq!(json!(reason(id)), run["message"]);
        let site = world.must("Site", id).await;
        assert!(site["metadata"]["annotations"]["sites.ecmwf.int/upgrade-request"].is_null(), "{id} was not touched");
        assert_eq!(site["status"]["phase"], "Running");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_runs_a_run_whose_hub_died_is_finished_by_another() {
    const SITES: u64 = 12;
    let mut world = World::new("hub-runs-died").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let _operator = world.start_operator().await;
    let applications = json!([{"name": "site-webdav", "image": "sites:0.9"}]);
    for number in 0..SITES {
        world.site(&format!("s{number:02}"), json!({"configuration": {"applications": applications}})).await;
    }
    let openid = OpenId::get().await;
    let bulk = json!({"rate": 2, "unavailable_percent": 100, "lease": "2s"});
    let first = world.start_hub_process_with(openid, settings(&bulk)).await;
    let other = world.start_hub_process_with(openid, settings(&bulk)).await;
    let mark = world.lab().audit().map(|audit| audit.mark());
    let run = Administrator::of(&first, openid).begin(UPGRADE).await;
    let admin = Administrator::of(&other, openid);
    let begun = admin.run_is(&run, "Sites are begun", LONG, |run| count(run, &["queued"]) < SITES).await;
    assert!(begun["state"] == "running" && count(&begun, &["queued"]) > 0, "{begun}");
    first.process.kill();
    let ended = admin.ended(&run, LONG).await;
    assert_eq!((&ended["state"], count(&ended, &["done"])), (&json!("done"), SITES), "{ended}");
    assert_eq!(other.process.logs_with("going on with a bulk run that nobody works on").len(), 1);
    if let Some(mark) = mark {
        let writes = world.hub_writes(mark).await.accepted();
        assert!(by_name(&writes).values().all(|times| *times == 1), "{}", writes.describe());
    }
    world.end().await;
}
