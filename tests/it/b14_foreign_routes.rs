//! B14: a route that has the right name and another owner is never written and never deleted; a second Site that claims
//! a path is told whose it is.

use serde_json::{Value, json};

use crate::support::api::condition;
use crate::support::belongings::{gateway_mode, owner_reference_to, uid};
use crate::support::{Lab, SOON, Start, World, eventually};

/// An Ingress of an administrator, with nothing that marks it as a Site's.
fn administrators(name: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": name, "labels": {"example.test/team": "web"}},
        "spec": {"rules": [{"host": "admin.example.test", "http": {"paths": [{
            "path": "/", "pathType": "Prefix", "backend": {"service": {"name": "admin", "port": {"number": 80}}},
        }]}}]},
    })
}

/// Puts the administrator's Ingress in the place of a Site's route while no operator runs, and gives it.
async fn usurp(world: &World, id: &str) -> Value {
    let name = sites::domain::names::route("lab", id);
    assert!(world.api.delete("Ingress", &world.namespace, &name).await, "the Site had its route");
    world.api.create(&world.namespace, &administrators(&name)).await.unwrap()
}

async fn assert_untouched(world: &World, foreign: &Value) {
    let name = foreign["metadata"]["name"].as_str().unwrap();
    assert_eq!(world.must("Ingress", name).await, *foreign, "not a byte has changed");
}

#[tokio::test]
async fn b14_a_foreign_ingress_is_left_alone_by_updates() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("b14_a_foreign_ingress_is_left_alone_by_updates") else { return };
    let mut world = World::new("b14").await;
    // Waiting for a path is no failed attempt: it goes on longer than this.
    world.settings["operator"]["retries"] = 1.into();
    let operator = world.start_operator().await;
    for id in ["updated", "pathless"] {
        world.site(id, json!({})).await;
        world.running(&operator, id).await;
    }
    operator.stop().await;
    let (updated, pathless) = (usurp(&world, "updated").await, usurp(&world, "pathless").await);
    let operator = world.start_operator().await;

    // (a) An update does all but the route, says why, and tries again after the delay.
    let mark = audit.mark();
    world.edit_site("updated", json!({"spec": {"owner": "bob"}})).await;
    let site = world.wait_condition("updated", "RouteConflict", "True").await;
    let message = condition(&site, "RouteConflict").unwrap()["message"].as_str().unwrap();
    assert!(message.contains(updated["metadata"]["name"].as_str().unwrap()), "{message}");
    for (kind, name) in crate::support::belongings::before_the_route("updated") {
        // The missing route alone was said to be in conflict before the edit.
        eventually(&format!("{kind}/{name} has the new owner"), SOON, || async {
            world.must(kind, &name).await["metadata"]["labels"]["sites.ecmwf.int/owner"] == "bob"
        })
        .await;
    }
    // The missing route was tried before the edit, and the edit does not wait for that attempt's delay.
    let after = audit.mark();
    let attempts = || {
        world
            .calls(after)
            .of("ingresses")
            .filter(|call| call.verb == "create" && Some(call.name.as_str()) == updated["metadata"]["name"].as_str())
    };
    eventually("it was tried again and again", SOON, || async { attempts().count() >= 3 }).await;
    for pair in attempts().0.windows(2) {
        assert!(pair[0].at.duration_until(pair[1].at).as_millis() >= 1900, "{}", attempts().describe());
    }
    let told = operator.logs_with("pass failed");
    assert!(told.iter().any(|line| line["reason"] == "RouteConflict"), "it is logged");
    assert_untouched(&world, &updated).await;

    // (b) Without a public path there is nothing to wait for.
    world.edit_site("pathless", json!({"spec": {"configuration": {"space": null}}})).await;
    world.running(&operator, "pathless").await;
    assert_untouched(&world, &pathless).await;
    world.audit_is_complete().await;
    let of_ingresses = world.calls(mark).of("ingresses").writes().accepted();
    assert_eq!(of_ingresses.count(), 0, "{}", of_ingresses.describe());
    world.end().await;
}

#[tokio::test]
async fn b14_a_foreign_ingress_is_left_alone_in_gateway_mode() {
    let world = World::new("b14-gateway").await;
    let operator = world.start_operator().await;
    world.site("plain", json!({})).await;
    world.running(&operator, "plain").await;
    operator.stop().await;
    let foreign = usurp(&world, "plain").await;

    // (c) The other mode's route is made; what bears the old one's name is not ours to delete.
    let operator = world.start_operator_with(Start { settings: gateway_mode(), ..Start::default() }).await;
    world.edit_site("plain", json!({"spec": {"owner": "bob"}})).await;
    let site = world.running(&operator, "plain").await;
    let routes = world.http_routes("plain").await;
    assert_eq!(routes.len(), 1);
    owner_reference_to(&routes[0], &site).unwrap();
    assert_untouched(&world, &foreign).await;
    world.end().await;
}

#[tokio::test]
async fn b14_the_second_claimant_is_told_of_the_first() {
    let world = World::new("b14-second").await;
    let operator = world.start_operator().await;
    world.site("first", json!({"name": "shared"})).await;
    world.running(&operator, "first").await;
    let route = world.ingresses("first").await.remove(0);
    world.site("second", json!({"name": "shared"})).await;
    let site = world.wait_condition("second", "RouteConflict", "True").await;
    let message = condition(&site, "RouteConflict").unwrap()["message"].as_str().unwrap();
    assert!(message.contains("first"), "{message}");
    assert!(world.ingresses("second").await.is_empty());
    let now = world.ingresses("first").await.remove(0);
    assert_eq!((uid(&now), &now["spec"]), (uid(&route), &route["spec"]));
    world.end().await;
}
