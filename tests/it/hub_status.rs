//! How a Site does, as its administrators see it: what the operator reported, its pods, and which logs may be asked for.
//! The logs themselves need a kubelet: see `real_site_hub_status`.

use serde_json::{Value, json};

use crate::support::{HubProcess, OpenId, SOON, Start, World, eventually};

fn path(id: &str, what: &str) -> String {
    format!("/hub/api/v2/sites/-/{id}/{what}")
}

/// The status as the Hub shows it, once it is as wanted.
async fn status_is(hub: &HubProcess, token: &str, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    eventually(&format!("{id}: {what}"), SOON, || async {
        let told = hub.get(&path(id, "status/"), token).await;
        if told.status == 200 && wanted(&told.json()) { Ok(told.json()) } else { Err(told.text()) }
    })
    .await
}

fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    status["conditions"].as_array().unwrap().iter().find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

async fn pods(hub: &HubProcess, token: &str, id: &str) -> Vec<Value> {
    let told = hub.get(&path(id, "pods/"), token).await;
    assert_eq!(told.status, 200, "{}", told.text());
    told.json()["pods"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_status_says_what_the_operator_and_the_pods_say() {
    let world = World::new("hub-status").await;
    let operator = world.start_operator().await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let alice = openid.token("alice");
    let mine = json!({"owner": "alice", "configuration": {"tokens": {"master": "marker-of-a-master-token"}}});
    world.site("well", mine.clone()).await;
    world.running(&operator, "well").await;

    let status = status_is(&hub, &alice, "well", "Running", |status| status["phase"] == "Running").await;
    let ready = condition(&status, "Ready");
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("True"), &json!("Reconciled")), "{status}");
    assert!(ready["since"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{ready}");
    assert_eq!(
        (&status["all_steps_started"], &status["problems"], &status["handled"]),
        (&json!(true), &json!([]), &json!(true))
    );
    assert_eq!(status["generation"], status["observed_generation"]);

    // The pod with its containers, the first ones first, and nothing of what it is made of.
    let told = hub.get(&path("well", "pods/"), &alice).await.text();
    for secret in ["annotations", "env", "marker-of", "image", "uid"] {
        assert!(!told.contains(secret), "{secret}: {told}");
    }
    let all = pods(&hub, &alice, "well").await;
    let [pod] = &all[..] else { panic!("{all:?}") };
    assert_eq!(
        (&pod["name"], &pod["phase"], &pod["ready"], &pod["terminating"], &pod["problems"]),
        (&json!("well-0"), &json!("Running"), &json!(true), &json!(false), &json!([]))
    );
    let spec = world.must("Pod", "well-0").await["spec"].clone();
    let names = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let mut expected = names(&spec["initContainers"]);
    let first = expected.len();
    expected.extend(names(&spec["containers"]));
    let mut seen = names(&pod["containers"]);
    let inits: Vec<bool> = pod["containers"].as_array().unwrap().iter().map(|one| one["init"] == true).collect();
    assert!(first > 0 && inits.iter().take(first).all(|init| *init) && !inits[first..].contains(&true), "{pod}");
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);

    // A container that ends again and again.
    world.show("well", "crash").await;
    let status = status_is(&hub, &alice, "well", "a problem", |status| status["problems"] != json!([])).await;
    assert_eq!((&status["phase"], &status["all_steps_started"]), (&json!("Pending"), &json!(false)), "{status}");
    let problem = &status["problems"][0];
    assert_eq!((&problem["kind"], &problem["reason"]), (&json!("waiting"), &json!("CrashLoopBackOff")), "{status}");
    let all = pods(&hub, &alice, "well").await;
    let crashed = all[0]["containers"].as_array().unwrap().iter().find(|one| one["name"] == problem["name"]).unwrap();
    assert_eq!(
        (&all[0]["ready"], &crashed["state"], &crashed["reason"]),
        (&json!(false), &json!("waiting"), &json!("CrashLoopBackOff"))
    );
    world.show("well", "ok").await;
    status_is(&hub, &alice, "well", "Running again", |status| status["phase"] == "Running").await;

    // Archived; and an edit that nobody has carried out yet.
    world.edit_site("well", json!({"spec": {"configuration": {"enabled": false}}})).await;
    let status = status_is(&hub, &alice, "well", "Disabled", |status| {
        status["phase"] == "Disabled" && status["handled"] == true
    })
    .await;
    assert_eq!(condition(&status, "Ready")["status"], "True");
    eventually("no pods", SOON, || async { pods(&hub, &alice, "well").await.is_empty() }).await;
    operator.kill();
    world.edit_site("well", json!({"spec": {"configuration": {"quota": 3}}})).await;
    let status = hub.get(&path("well", "status/"), &alice).await.json();
    assert_eq!(status["handled"], false, "{status}");
    assert!(status["generation"].as_i64() > status["observed_generation"].as_i64(), "{status}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_status_of_what_cannot_run() {
    let mut world = World::new("hub-status-bad").await;
    world.settings["kubernetes"]["storage_class"] = json!(format!("nobody-{}", world.namespace));
    let _operator = world.start_operator().await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let alice = openid.token("alice");
    world.site("place", json!({"owner": "alice"})).await;
    let status = status_is(&hub, &alice, "place", "unschedulable", |status| status["problems"] != json!([])).await;
    let problem = &status["problems"][0];
    assert_eq!((&status["phase"], &problem["kind"]), (&json!("Pending"), &json!("scheduling")), "{status}");
    assert_eq!((&problem["name"], &problem["reason"]), (&json!("place-0"), &json!("Unschedulable")));
    assert!(!problem["message"].as_str().unwrap().is_empty(), "{status}");
    let all = pods(&hub, &alice, "place").await;
    assert_eq!((&all[0]["phase"], &all[0]["problems"]), (&json!("Pending"), &json!(["Unschedulable"])), "{all:?}");

    // A path that another Site has: the condition says so, and who.
    world.site("taker", json!({"owner": "alice", "name": "place"})).await;
    let status =
        status_is(&hub, &alice, "taker", "no path", |status| !condition(status, "RouteConflict").is_null()).await;
    assert_eq!(condition(&status, "RouteConflict")["status"], "True", "{status}");
    assert_eq!(condition(&status, "Ready")["status"], "False", "{status}");
    assert!(condition(&status, "RouteConflict")["message"].as_str().unwrap().contains("place"), "{status}");
    assert!(pods(&hub, &alice, "taker").await.is_empty());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_status_a_log_is_of_a_pod_and_a_container_of_the_site() {
    let world = World::new("hub-status-logs").await;
    let operator = world.start_operator().await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process_with(openid, Start::default()).await;
    let alice = openid.token("alice");
    for (id, owner) in [("mine", "alice"), ("theirs", "bob")] {
        world.site(id, json!({"owner": owner})).await;
        world.running(&operator, id).await;
    }
    let log = async |query: &str| hub.get(&path("mine", &format!("logs/{query}")), &alice).await;
    for (query, field) in [
        ("?tail=0", "tail"),
        ("?tail=2001", "tail"),
        ("?tail=ten", "tail"),
        ("?tail=-1", "tail"),
        ("?tail=1&tail=2", "tail"),
        ("?previous=perhaps", "previous"),
        ("?follow=true", "follow"),
        ("?limitBytes=99999999", "limitBytes"),
        ("", "container"),
        ("?container=no-such", "container"),
        ("?container=..%2F..%2Fsecrets", "container"),
        ("?container=site-api%26follow%3Dtrue", "container"),
    ] {
        let told = log(query).await;
        assert_eq!(told.status, 400, "{query}: {}", told.text());
        let error = told.json()["errors"][0].as_str().unwrap().to_owned();
        assert!(error.starts_with(&format!("[{field}] ")), "{query}: {error}");
        assert!(field != "container" || error.contains("site-api") && error.contains("site-initializer"), "{error}");
    }
    for pod in ["theirs-0", "no-such-0", "..%2Ftheirs-0"] {
        let told = log(&format!("?container=site-api&pod={pod}")).await;
        assert_eq!(told.status, 404, "{pod}: {}", told.text());
    }
    // This node has no kubelet: what may be asked for is asked for, with its bounds, and the cluster does not answer.
    let Some(audit) = world.lab().audit_or_skip("hub_status_a_log_is_of_a_pod_and_a_container_of_the_site") else {
        return;
    };
    let mark = audit.mark();
    assert!(log("?container=site-api&pod=mine-0&tail=7&previous=true").await.status >= 404);
    world.audit_is_complete().await;
    let calls = world.hub_calls(mark).filter(|call| call.subresource == "log");
    assert!(calls.count() >= 1 && calls.0.iter().all(|call| call.name == "mine-0"), "{}", calls.describe());
    world.end().await;
}
