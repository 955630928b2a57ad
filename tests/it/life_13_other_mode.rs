//! LIFE-13: after a switch of the routing mode a Site's next change makes the route of the new mode and deletes the
//! one of the old mode, if it is the Site's own.

use serde_json::{Value, json};

use crate::support::api::{condition, name_of};
use crate::support::{Act, FaultProxy, Lab, Match, Operator, SOON, Start, Times, World, eventually};

fn gateway() -> Value {
    json!({"routing": {"mode": "gateway", "gateway": {"provider": "envoy-gateway"}}})
}

async fn start(world: &World, settings: Value) -> Operator {
    world.start_operator_with(Start { settings, ..Start::default() }).await
}

fn share(user: &str) -> Value {
    json!({"spec": {"configuration": {"share": {"view_users": [user]}}}})
}

/// The Site's own routes and policies, as (ingresses, HTTP routes, policies).
async fn routes(world: &World, id: &str) -> (usize, usize, usize) {
    let ours = |objects: Vec<Value>| {
        objects.iter().filter(|object| object["metadata"]["ownerReferences"][0]["kind"] == "Site").count()
    };
    (
        ours(world.ingresses(id).await),
        ours(world.http_routes(id).await),
        ours(world.of_site("BackendTrafficPolicy", id).await),
    )
}

const INGRESS: (usize, usize, usize) = (1, 0, 0);
const GATEWAY: (usize, usize, usize) = (0, 1, 1);

/// Ingresses that are not the Site's: one without its label, one with it that belongs to something else.
async fn foreign(world: &World) -> Vec<Value> {
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}});
    let owner = world.api.create(&world.namespace, &owner).await.unwrap();
    let ingress = |name: &str, labels: Value, owners: Value| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": name, "labels": labels, "ownerReferences": owners},
            "spec": {"defaultBackend": {"service": {"name": "other", "port": {"number": 80}}}},
        })
    };
    let reference =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": owner["metadata"]["uid"]}]);
    let label = json!({"sites.ecmwf.int/id": "a"});
    let mut made = Vec::new();
    for object in [ingress("plain", json!({}), json!([])), ingress("labelled", label, reference)] {
        made.push(world.api.create(&world.namespace, &object).await.unwrap());
    }
    made
}

#[tokio::test]
async fn life_13_the_next_change_moves_the_route_there_and_back() {
    let world = World::new("life-13-move").await;
    let operator = start(&world, Value::Null).await;
    world.site("a", json!({})).await;
    world.site("b", json!({})).await;
    for id in ["a", "b"] {
        world.wait_ready(id).await;
        world.wait_phase(id, "Running").await;
        assert_eq!(routes(&world, id).await, INGRESS);
    }
    let foreign = foreign(&world).await;
    operator.stop().await;

    let operator = start(&world, gateway()).await;
    world.edit_site("a", share("bo")).await;
    world.wait_ready("a").await;
    assert_eq!(routes(&world, "a").await, GATEWAY);
    assert_eq!(routes(&world, "b").await, INGRESS, "a mode alone changes nothing");
    for object in &foreign {
        assert_eq!(world.must("Ingress", name_of(object)).await, *object);
    }
    let route = &world.http_routes("a").await[0];
    assert!(route["spec"].to_string().contains("/lab/a"), "{route}");
    let policy = &world.of_site("BackendTrafficPolicy", "a").await[0];
    assert_eq!(policy["spec"]["targetRefs"][0]["name"], route["metadata"]["name"]);
    operator.stop().await;

    let _operator = start(&world, Value::Null).await;
    world.edit_site("a", share("cy")).await;
    world.wait_ready("a").await;
    assert_eq!(routes(&world, "a").await, INGRESS);
    assert_eq!(world.stateful_set("a").await["metadata"]["generation"], 3, "one restart an edit");
    world.end().await;
}

/// A Site is never without a route: before a route of the old mode goes away, the other one is there.
#[tokio::test]
async fn life_13_a_repair_leaves_no_site_without_a_route() {
    let world = World::new("life-13-repair").await;
    let operator = start(&world, Value::Null).await;
    for id in ["edited", "deleted"] {
        world.site(id, json!({"configuration": {"enabled": false}})).await;
        world.wait_ready(id).await;
    }
    operator.stop().await;
    let _operator = start(&world, gateway()).await;
    let ingress = world.ingresses("edited").await.remove(0);
    let edit = json!({"spec": {"ingressClassName": "somebody-else"}});
    world.api.merge("Ingress", &world.namespace, name_of(&ingress), "", &edit).await.unwrap();
    let ingress = world.ingresses("deleted").await.remove(0);
    world.api.delete("Ingress", &world.namespace, name_of(&ingress)).await;
    for id in ["edited", "deleted"] {
        eventually("the route is one of the present mode", SOON, || async {
            let is = routes(&world, id).await;
            if is == GATEWAY { Ok(()) } else { Err(format!("{id}: {is:?}")) }
        })
        .await;
        world.wait_ready(id).await;
    }
    world.end().await;
}

/// A conflict is no proof that another object has the name.
#[tokio::test]
async fn life_13_a_deletion_that_conflicts_is_not_taken_for_done() {
    let lab = Lab::get().await;
    let world = World::on(lab, "life-13-conflict").await;
    let proxy = FaultProxy::start(lab).await;
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    let _operator = world.start_operator_with(Start { kubeconfig, ..Start::default() }).await;
    world.site("a", json!({"configuration": {"enabled": false}})).await;
    world.wait_ready("a").await;
    let failing = proxy.fault(Match::on("delete", "ingresses"), Act::status(409).reason("Conflict"), Times::Always);
    world.edit_site("a", json!({"spec": {"name": null}})).await;
    eventually("it is tried again", SOON, || async { proxy.hits(failing) >= 2 }).await;
    assert_eq!(routes(&world, "a").await, INGRESS);
    proxy.heal();
    eventually("the route is gone", SOON, || async { routes(&world, "a").await == (0, 0, 0) }).await;
    world.wait_ready("a").await;
    world.end().await;
}

/// The routes of the mode that is off are among the first lists: one whose list is late is not taken for gone.
#[tokio::test]
async fn life_13_a_late_list_of_the_old_routes_moves_nobody() {
    let lab = Lab::get().await;
    let world = World::on(lab, "life-13-late").await;
    let operator = start(&world, Value::Null).await;
    world.site("a", json!({"configuration": {"enabled": false}})).await;
    world.wait_ready("a").await;
    operator.stop().await;
    let proxy = FaultProxy::start(lab).await;
    let late = proxy.fault(Match::first_list("ingresses"), Act::Hold, Times::Always);
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    let late_start = Start { kubeconfig, settings: gateway(), do_not_wait: true, ..Start::default() };
    let operator = world.start_operator_with(late_start).await;
    eventually("every other list has come", SOON, || async {
        let kinds = ["sites", "pods", "secrets", "configmaps", "services", "statefulsets", "httproutes"];
        let came = kinds.iter().all(|kind| proxy.seen("watch|list", kind).iter().any(|one| one.code == Some(200)));
        came && proxy.hits(late) >= 1 && operator.request("/healthz").await.is_ok()
    })
    .await;
    eventually("it leads and knows the Site", SOON, || async {
        let sites = operator.get("/debug/sites").await;
        operator.metric("leader", &[]).await > 0.5 && !sites["objects"].as_array().unwrap().is_empty()
    })
    .await;
    assert_eq!(operator.request("/readyz").await.unwrap().0, 503);
    proxy.lift(late);
    operator.wait_ready().await;
    world.settled(&operator, "a").await;
    assert_eq!(routes(&world, "a").await, INGRESS, "a mode alone changes nothing");
    operator.stop().await;
    world.end().await;
}

#[tokio::test]
async fn life_13_a_failed_deletion_is_retried_and_stops_nobody() {
    let lab = Lab::get().await;
    let world = World::on(lab, "life-13-retry").await;
    let proxy = FaultProxy::start(lab).await;
    let operator = start(&world, Value::Null).await;
    for id in ["a", "b"] {
        world.site(id, json!({"configuration": {"enabled": false}})).await;
        world.wait_ready(id).await;
    }
    operator.stop().await;

    let ingress = world.ingresses("a").await.remove(0);
    let failing =
        proxy.fault(Match::on("delete", "ingresses").named(name_of(&ingress)), Act::status(500), Times::Always);
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    let _operator = world.start_operator_with(Start { kubeconfig, settings: gateway(), ..Start::default() }).await;
    world.edit_site("a", share("bo")).await;
    let site = world.wait_condition("a", "Ready", "False").await;
    let ready = condition(&site, "Ready").unwrap();
    assert_eq!(ready["reason"], "OtherModeRoute", "{ready}");
    assert_eq!(routes(&world, "a").await, (1, 1, 1), "the new route is there, the old one too");
    world.edit_site("b", share("bo")).await;
    world.wait_ready("b").await;
    assert_eq!(routes(&world, "b").await, GATEWAY);
    assert_eq!(routes(&world, "a").await, (1, 1, 1), "another Site does not wait for it");
    eventually("it is tried again", SOON, || async { proxy.hits(failing) >= 3 }).await;
    proxy.heal();

    world.wait_ready("a").await;
    assert_eq!(routes(&world, "a").await, GATEWAY);
    let mut tries = proxy.seen("delete", "ingresses");
    tries.retain(|passed| passed.asked.name == name_of(&ingress));
    assert!(tries.len() >= 4);
    for pair in tries.windows(2) {
        let apart = pair[1].at.duration_since(pair[0].at);
        assert!(apart.as_millis() >= 1000, "operator.other_mode_delay is kept: {apart:?}");
    }
    assert_eq!(world.stateful_set("a").await["metadata"]["generation"], 2, "one restart for one change");
    world.end().await;
}
