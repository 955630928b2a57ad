//! LIFE-07: a public path has one owner. Who comes later waits, is told whom for, delays nobody, and goes on as soon as
//! the path is free; a route that is not the platform's is never touched and looked at again after the delay.

use serde_json::{Value, json};

use crate::support::api::{condition, name_of};
use crate::support::belongings::{generation, owner_reference_to, uid};
use crate::support::{Lab, SOON, World, eventually};

/// So long that no test waits for it: what happens, happens for another reason.
const NEVER: &str = "3600s";

fn path(space: &str, name: &str) -> Value {
    json!({"name": name, "configuration": {"space": space}})
}

/// Waits until a Site says that it waits for its path, and gives the message.
async fn wait_conflict(world: &World, id: &str) -> String {
    let site = world.wait_condition(id, "RouteConflict", "True").await;
    let ready = condition(&site, "Ready").unwrap();
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("RouteConflict")), "{site}");
    condition(&site, "RouteConflict").unwrap()["message"].as_str().unwrap().to_owned()
}

/// Waits until the path's one route is this Site's, and gives it.
async fn wait_route(world: &World, id: &str, path: &str) -> Value {
    let site = world.get("Site", id).await.unwrap();
    eventually(&format!("{path} is the path of {id}"), SOON, || async {
        let routes = world.api.list("Ingress", &world.namespace, "").await;
        let mut on_path: Vec<_> = routes
            .into_iter()
            .filter(|route| {
                let told = route["spec"]["rules"][0]["http"]["paths"][0]["path"].as_str().unwrap_or_default();
                told.trim_end_matches('/') == path
            })
            .collect();
        match (on_path.pop(), on_path.is_empty()) {
            (Some(route), true) => owner_reference_to(&route, &site).map(|_| route.clone()),
            (one, _) => Err(format!("{one:?} {on_path:?}")),
        }
    })
    .await
}

#[tokio::test]
async fn life_07_the_later_claimant_waits_and_nobody_else_does() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("life_07_the_later_claimant_waits") else { return };
    let mut world = World::new("life-07").await;
    world.settings["operator"]["route_conflict_delay"] = NEVER.into();
    // One slot: a waiting Site that held it would stop all others.
    world.settings["operator"]["worker_limit"] = 1.into();
    let operator = world.start_operator().await;
    world.site("first", path("lab", "shared")).await;
    world.running(&operator, "first").await;
    let route = wait_route(&world, "first", "/lab/shared").await;

    let mark = audit.mark();
    for number in 0..6 {
        world.site(&format!("late{number}"), path("lab", "shared")).await;
    }
    world.site("other", json!({})).await;
    world.running(&operator, "other").await;
    for number in 0..6 {
        let id = format!("late{number}");
        let message = wait_conflict(&world, &id).await;
        assert!(message.contains("/lab/shared") && message.contains("Site first"), "{message}");
        assert!(world.objects_of(&id).await.is_empty(), "nothing is started for a Site that nobody could reach");
    }
    world.audit_is_complete().await;
    let calls = world.calls(mark).of_passes().filter(|call| call.name.starts_with("late"));
    let of_status = calls.0.iter().filter(|call| call.subresource == "status").count();
    assert_eq!((calls.count(), of_status), (6, 6), "each says that it waits:\n{}", calls.describe());
    assert_eq!(wait_route(&world, "first", "/lab/shared").await, route, "the first one's route is as it was");

    // A Site that runs and asks for a taken path keeps the one it has, older or not.
    world.edit_site("other", json!({"spec": {"name": "shared", "owner": "bob"}})).await;
    assert!(wait_conflict(&world, "other").await.contains("Site first"));
    wait_route(&world, "other", "/lab/other").await;
    assert_eq!(world.stateful_set("other").await["metadata"]["labels"]["sites.ecmwf.int/owner"], "bob");
    world.end().await;
}

#[tokio::test]
async fn life_07_a_freed_path_wakes_the_next_claimant() {
    let mut world = World::new("life-07-freed").await;
    world.settings["operator"]["route_conflict_delay"] = NEVER.into();
    world.cascade_works().await;
    let operator = world.start_operator().await;
    world.site("first", path("lab", "shared")).await;
    world.running(&operator, "first").await;
    world.site("second", path("lab", "shared")).await;
    wait_conflict(&world, "second").await;

    // By deletion.
    world.delete_site("first").await;
    wait_route(&world, "second", "/lab/shared").await;
    world.wait_gone("first").await;
    let site = world.running(&operator, "second").await;
    assert!(condition(&site, "RouteConflict").is_none(), "what is over is not said any more: {site}");

    // By moving away.
    world.site("third", path("lab", "shared")).await;
    assert!(wait_conflict(&world, "third").await.contains("Site second"));
    world.edit_site("second", json!({"spec": {"name": "moved"}})).await;
    wait_route(&world, "third", "/lab/shared").await;
    wait_route(&world, "second", "/lab/moved").await;

    // By giving up the path altogether.
    world.site("fourth", path("lab", "moved")).await;
    assert!(wait_conflict(&world, "fourth").await.contains("Site second"));
    world.edit_site("second", json!({"spec": {"name": null}})).await;
    wait_route(&world, "fourth", "/lab/moved").await;
    world.running(&operator, "second").await;
    assert!(world.ingresses("second").await.is_empty());

    // The one who waits may choose another path instead.
    world.site("fifth", path("lab", "moved")).await;
    wait_conflict(&world, "fifth").await;
    world.edit_site("fifth", json!({"spec": {"name": "free"}})).await;
    wait_route(&world, "fifth", "/lab/free").await;
    world.running(&operator, "fifth").await;
    world.end().await;
}

/// The route of a deleted Site that somebody still holds: the next claimant waits for its end, not for the delay.
#[tokio::test]
async fn life_07_what_is_left_of_a_route_is_waited_for() {
    let mut world = World::new("life-07-left").await;
    world.settings["operator"]["route_conflict_delay"] = NEVER.into();
    world.settings["operator"]["max_backoff"] = "1s".into();
    world.cascade_works().await;
    let operator = world.start_operator().await;
    world.site("first", path("lab", "shared")).await;
    world.running(&operator, "first").await;
    let route = name_of(&wait_route(&world, "first", "/lab/shared").await).to_owned();
    world.site("second", path("lab", "shared")).await;
    wait_conflict(&world, "second").await;

    let held = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    world.api.merge("Ingress", &world.namespace, &route, "", &held(json!(["example.test/hold"]))).await.unwrap();
    world.delete_site("first").await;
    world
        .wait_site("second", "it waits for the end of the old route", |site| {
            let ready = condition(site, "Ready").unwrap_or(&Value::Null);
            ready["message"].as_str().is_some_and(|message| message.contains(&route) && message.contains("deleted"))
        })
        .await;
    let old = world.must("Ingress", &route).await;
    assert_eq!(old["metadata"]["ownerReferences"][0]["name"], "first", "nobody takes what is not gone yet");
    world.api.merge("Ingress", &world.namespace, &route, "", &held(Value::Null)).await.unwrap();
    wait_route(&world, "second", "/lab/shared").await;
    world.running(&operator, "second").await;
    world.end().await;
}

/// Who owns a route keeps it over a restart, though an older Site asks for its path.
#[tokio::test]
async fn life_07_a_restart_gives_no_path_to_another() {
    let mut world = World::new("life-07-restart").await;
    world.settings["operator"]["route_conflict_delay"] = "1s".into();
    let operator = world.start_operator().await;
    world.site("older", json!({})).await;
    world.running(&operator, "older").await;
    world.site("owner", path("lab", "shared")).await;
    world.running(&operator, "owner").await;
    let route = wait_route(&world, "owner", "/lab/shared").await;
    world.edit_site("older", json!({"spec": {"name": "shared"}})).await;
    assert!(wait_conflict(&world, "older").await.contains("Site owner"));
    operator.stop().await;

    let operator = world.start_operator().await;
    world.settled(&operator, "owner").await;
    let passes = || async { operator.get("/debug/sites/older").await["passes"].as_u64().unwrap() };
    eventually("the older one has been looked at again", SOON, || async { passes().await >= 2 }).await;
    assert!(wait_conflict(&world, "older").await.contains("Site owner"));
    assert_eq!(wait_route(&world, "owner", "/lab/shared").await, route);
    wait_route(&world, "older", "/lab/older").await;
    world.end().await;
}

/// An Ingress that an administrator made under the name of a Site's route.
fn administrators(name: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": name, "annotations": {"example.test/note": "hands off"}},
        "spec": {"rules": [{"host": "admin.example.test", "http": {"paths": [{
            "path": "/", "pathType": "Prefix", "backend": {"service": {"name": "admin", "port": {"number": 80}}},
        }]}}]},
    })
}

#[tokio::test]
async fn life_07_foreign_route_is_retried() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("life_07_foreign_route_is_retried") else { return };
    let mut world = World::new("life-07-foreign").await;
    world.settings["operator"]["route_conflict_delay"] = "2s".into();
    world.settings["operator"]["retries"] = 1.into();
    let operator = world.start_operator().await;
    let name = sites::domain::names::route("lab", "plain");
    let foreign = world.api.create(&world.namespace, &administrators(&name)).await.unwrap();
    let mark = audit.mark();
    world.site("plain", json!({})).await;
    let message = wait_conflict(&world, "plain").await;
    assert!(message.contains(&format!("Ingress/{name}")), "{message}");

    let attempts = || world.calls(mark).of("ingresses").filter(|call| call.verb == "create");
    eventually("it was tried three times", SOON, || async { attempts().count() >= 3 }).await;
    let attempts = attempts();
    for pair in attempts.0.windows(2) {
        let pause = pair[0].at.duration_until(pair[1].at);
        assert!(pause.as_millis() >= 2000, "not earlier than the delay:\n{}", attempts.describe());
    }
    assert!(attempts.0.iter().all(|call| call.code == 409), "{}", attempts.describe());
    assert_eq!(world.must("Ingress", &name).await, foreign, "not a byte has changed");
    assert_eq!(generation(&world.stateful_set("plain").await), 1, "the pods are not restarted by waiting");

    assert!(world.api.delete("Ingress", &world.namespace, &name).await);
    let site = world.wait_ready("plain").await;
    let route = wait_route(&world, "plain", "/lab/plain").await;
    assert_eq!(name_of(&route), name);
    assert_ne!(uid(&route), uid(&foreign));
    assert!(condition(&site, "RouteConflict").is_none());
    world.running(&operator, "plain").await;
    world.end().await;
}
