//! B02: a Site that cannot be decoded, or that makes the renderer panic, stops nobody but itself.

use serde_json::{Value, json};

use crate::support::api::condition;
use crate::support::{FaultProxy, Lab, Match, Operator, Options, SOON, Start, Upset, World, eventually};

/// A later edit of this Site is applied: the pods' template changes.
async fn edit_applies(world: &World, id: &str, owner: &str) {
    let before = world.stateful_set(id).await["metadata"]["generation"].as_i64();
    world.edit_site(id, json!({"spec": {"owner": owner}})).await;
    world.wait_ready(id).await;
    assert!(world.stateful_set(id).await["metadata"]["generation"].as_i64() > before);
}

/// The ERROR lines that name a Site.
fn errors(operator: &Operator, world: &World, id: &str) -> Vec<Value> {
    let key = format!("{}/{id}", world.namespace);
    let mut lines = operator.logs();
    lines.retain(|line| line["level"] == "ERROR" && line.to_string().contains(&key));
    lines
}

/// In a control plane of its own: the definition there checks nothing, so that such a Site can be stored.
#[tokio::test]
async fn b02_a_site_that_cannot_be_decoded_stops_nobody_else() {
    if std::env::var_os("SITES_TEST_KUBECONFIG").is_some() {
        eprintln!("b02_a_site_that_cannot_be_decoded: skipped, it loosens the definition of the Site");
        return;
    }
    let lab = Lab::own(Options::default()).await;
    let world = World::on(&lab, "b02-decode").await;
    let mut definition = world.api.get("CustomResourceDefinition", "", "sites.sites.ecmwf.int").await.unwrap();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    world.api.replace("", &definition).await.expect("a looser definition");
    let bad = json!({"configuration": {"quota": "ten"}});
    eventually("the server takes the bad Site", SOON, || async { world.try_site("bad", bad.clone()).await }).await;

    let proxy = FaultProxy::start(&lab).await;
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    let operator = world.start_operator_with(Start { kubeconfig, ..Start::default() }).await;
    world.site("a", json!({})).await;
    world.site("z", json!({})).await;
    world.wait_phase("a", "Running").await;
    world.wait_phase("z", "Running").await;
    let told = world.wait_condition("bad", "Ready", "False").await;
    let ready = condition(&told, "Ready").unwrap();
    assert_eq!(ready["reason"], "Invalid");
    assert!(ready["message"].as_str().unwrap().contains("quota"), "{ready}");
    assert!(world.objects_of("bad").await.is_empty());
    let knows = operator.get("/debug/sites/bad").await;
    assert!(knows["undecodable"].as_str().unwrap().contains("quota"), "{knows}");

    // A new list, an event of the bad Site and one of its own status each bring it again.
    assert_eq!(proxy.upset(&Match::on("watch", "sites"), Upset::Expire), 1);
    world.edit_site("bad", json!({"metadata": {"labels": {"x": "y"}}})).await;
    edit_applies(&world, "a", "grace@example.test").await;
    edit_applies(&world, "z", "grace@example.test").await;
    let errors = errors(&operator, &world, "bad");
    assert_eq!(errors.len(), 1, "{errors:#?}");

    // Another mistake is told, in the status too, and the end of both is the end of the matter.
    world.edit_site("bad", json!({"spec": {"configuration": {"quota": 1}, "type": "secret"}})).await;
    let told = world.wait_condition("bad", "Ready", "False").await;
    assert!(condition(&told, "Ready").unwrap()["message"].as_str().unwrap().contains("type"), "{}", told["status"]);
    world.edit_site("bad", json!({"spec": {"type": "public"}})).await;
    world.wait_ready("bad").await;
    world.wait_phase("bad", "Running").await;
    assert!(operator.ended().is_none());
    world.end().await;
}

/// Only a development build's renderer knows the header: see `render::PANIC_HEADER`.
#[tokio::test]
async fn b02_a_renderer_that_panics_stops_nobody_else() {
    let world = World::new("b02-panic").await;
    // More attempts than the test has time for: it is about what each of them does.
    let settings = json!({"operator": {"retries": 1000}});
    let operator = world.start_operator_with(Start { settings, ..Start::default() }).await;
    let header = |value: Value| json!({"configuration": {"headers": {"X-Sites-Test-Renderer-Panic": value}}});
    world.site("a", json!({})).await;
    world.site("bad", header("yes".into())).await;
    world.site("z", json!({})).await;
    world.wait_phase("a", "Running").await;
    world.wait_phase("z", "Running").await;
    let told = world.wait_condition("bad", "Ready", "False").await;
    let ready = condition(&told, "Ready").unwrap();
    assert_eq!(ready["reason"], "ReconcileError");
    assert!(ready["message"].as_str().unwrap().contains("a defect of the operator"), "{ready}");
    eventually("it is tried again", SOON, || async {
        operator.metric("reconcile_total", &["result=\"error\""]).await >= 3.0
    })
    .await;
    edit_applies(&world, "a", "grace@example.test").await;
    edit_applies(&world, "z", "grace@example.test").await;
    let errors = errors(&operator, &world, "bad");
    assert_eq!(errors.len(), 1, "one line, not one for each attempt: {errors:#?}");

    world.edit_site("bad", json!({"spec": header(Value::Null)})).await;
    world.wait_phase("bad", "Running").await;
    world.wait_ready("bad").await;
    assert!(operator.metric("actor_restarts_total", &[]).await < 0.5, "no actor died");
    operator.stop().await;
    world.end().await;
}
