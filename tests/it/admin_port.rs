//! The admin port: alive, ready, numbers, and what each Site's actor knows.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Act, FaultProxy, Lab, Match, Operator, SOON, Start, Times, World, eventually};

const TOKEN: &str = "master-token-of-this-test";

async fn says(operator: &Operator, path: &str) -> u16 {
    operator.request(path).await.unwrap_or_else(|reason| panic!("{path}: {reason}")).0
}

#[tokio::test]
async fn admin_port_is_ready_after_the_first_lists_and_writes_nothing_before() {
    let lab = Lab::get().await;
    let world = World::on(lab, "admin-ready").await;
    let proxy = FaultProxy::start(lab).await;
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    let late = proxy.fault(Match::on("list|watch", "pods"), Act::Delay(Duration::from_secs(5)), Times::Count(1));
    world.site("early", json!({})).await;
    let operator = world.start_operator_with(Start { kubeconfig, do_not_wait: true, ..Start::default() }).await;
    eventually("the list is late and the port answers", SOON, || async {
        proxy.hits(late) == 1 && operator.request("/healthz").await.is_ok()
    })
    .await;
    assert_eq!(says(&operator, "/healthz").await, 200);
    assert_eq!(says(&operator, "/readyz").await, 503);
    // It leads already, and knows the Site.
    eventually("it leads and knows the Site", SOON, || async {
        let sites = operator.get("/debug/sites").await;
        operator.metric("leader", &[]).await > 0.5 && !sites["objects"].as_array().unwrap().is_empty()
    })
    .await;
    assert_eq!(says(&operator, "/readyz").await, 503);
    operator.wait_ready().await;
    world.wait_ready("early").await;
    let log = proxy.log();
    let listed = log.iter().find(|passed| passed.fault.is_some()).unwrap().at;
    let writes = ["create", "update", "patch", "delete"];
    let first = log
        .iter()
        .find(|passed| writes.contains(&passed.asked.verb.as_str()) && passed.asked.resource != "leases")
        .unwrap();
    let apart = first.at.duration_since(listed);
    assert!(apart.as_secs() >= 5, "no write before the list: {apart:?} {:?}", first.asked);

    // A standby is ready too.
    let standby = world.start_operator().await;
    assert_eq!(says(&standby, "/readyz").await, 200);
    assert!(standby.metric("leader", &[]).await < 0.5);
    assert_eq!(standby.get("/debug/sites").await["working"], false);
    world.end().await;
}

#[tokio::test]
async fn admin_port_shows_the_documented_numbers() {
    let world = World::new("admin-numbers").await;
    let operator = world.start_operator().await;
    world.site("one", json!({})).await;
    world.wait_phase("one", "Running").await;
    let metrics = operator.metrics().await;
    for series in [
        "reconcile_total{model=\"sites\",result=\"ok\"}",
        "reconcile_duration_seconds_bucket{model=\"sites\",",
        "queue_depth{model=\"sites\"}",
        "slot_wait_seconds_bucket{class=\"change\",",
        "slots_in_use ",
        "kube_call_duration_seconds_bucket{code=\"201\",kind=\"Secret\",verb=\"create\",",
        "watch_restarts_total{kind=\"Pod\"}",
        "actor_restarts_total{actor=\"object\"}",
        "status_lag_seconds_bucket{",
        "leader 1",
    ] {
        assert!(metrics.lines().any(|line| line.starts_with(series)), "{series} is not in\n{metrics}");
    }
    assert!(!metrics.contains("\"one\"") && !metrics.contains(&world.namespace), "no Site is a label");
    assert!(operator.metric("reconcile_total", &["result=\"ok\""]).await >= 1.0);
    eventually("no pass runs", SOON, || async { operator.metric("slots_in_use", &[]).await < 0.5 }).await;
    world.end().await;
}

#[tokio::test]
async fn admin_port_tells_what_an_actor_knows_and_waits_for() {
    let lab = Lab::get().await;
    let world = World::on(lab, "admin-debug").await;
    let proxy = FaultProxy::start(lab).await;
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    let operator = world.start_operator_with(Start { kubeconfig, ..Start::default() }).await;
    world.site("one", json!({"configuration": {"tokens": {"master": TOKEN}}})).await;
    let site = world.wait_phase("one", "Running").await;

    let list = operator.get("/debug/sites").await;
    assert_eq!((&list["synced"], &list["working"]), (&json!(true), &json!(true)));
    let line = &list["objects"][0];
    assert_eq!((line["key"].as_str().unwrap(), &line["exists"]), (&*format!("{}/one", world.namespace), &json!(true)));

    // A pass for the volume's label may still run.
    let knows = eventually("it is idle", SOON, || async {
        let knows = operator.get("/debug/sites/one").await;
        if knows["phase"] == "Idle" { Ok(knows) } else { Err(knows.to_string()) }
    })
    .await;
    assert_eq!((&knows["uid"], &knows["attempts"]), (&site["metadata"]["uid"], &json!(0)));
    assert_eq!((&knows["last_pass"]["outcome"], &knows["next_retry"]), (&json!("ok"), &Value::Null));
    let children = knows["knows"]["children"].as_object().unwrap();
    assert!(children.contains_key("StatefulSet/one") && children.contains_key("Secret/one"), "{children:?}");
    assert_eq!(knows["knows"]["pods"][0]["name"], "one-0");
    assert_eq!(knows["knows"]["pods"][0]["ready"], true);
    assert_eq!(says(&operator, "/debug/sites/nobody").await, 404);

    proxy.fault(Match::on("get", "statefulsets"), Act::status(500), Times::Always);
    world.edit_site("one", json!({"spec": {"configuration": {"headers": {"X-A": "b"}}}})).await;
    world.wait_condition("one", "Ready", "False").await;
    let waits = eventually("it waits for its next attempt", SOON, || async {
        let knows = operator.get("/debug/sites/one").await;
        if knows["next_retry"].is_string() { Ok(knows) } else { Err(knows.to_string()) }
    })
    .await;
    assert_eq!(waits["phase"], "Waiting(Backoff)");
    assert!(waits["attempts"].as_u64().unwrap() >= 1);
    assert!(waits["last_pass"]["outcome"].as_str().unwrap().contains("500"), "{}", waits["last_pass"]);
    assert!(waits["knows"]["wanted"].as_str().unwrap().contains("Full"), "{}", waits["knows"]["wanted"]);
    assert!(waits["next_retry"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    for text in [list.to_string(), knows.to_string(), waits.to_string(), operator.metrics().await] {
        for secret in [TOKEN, "test-session-key-0123456789", "not-a-secret"] {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
    }
    world.end().await;
}
