//! B04: a big Site works as far as the API server can hold its objects; one that is bigger is told so, works no loop
//! and delays nobody; the Hub refuses it with the name of the field.

use serde_json::{Value, json};

use crate::support::api::{condition, kind_of, name_of};
use crate::support::belongings::generation;
use crate::support::{
    Act, FaultProxy, Lab, Match, OpenId, SOON, Start, Times, World, assert_left_alone, calls_about, eventually,
};

/// So many distinct names of so many characters.
fn people(count: usize, characters: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number:06}-{}", "x".repeat(characters - 7))).collect()
}

fn shared_with(view_users: &[String]) -> Value {
    json!({"configuration": {"share": {"view_users": view_users}}})
}

/// More than one ConfigMap holds, less than what the API server takes as one object.
fn too_many() -> Value {
    let people = people(2000, 145);
    json!({"configuration": {"share": {
        "administrator_users": people, "administrator_groups": people, "view_users": people, "view_groups": people,
    }}})
}

#[tokio::test]
async fn b04_a_site_of_280_kib_works() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("b04_a_site_of_280_kib_works") else { return };
    let world = World::new("b04-big").await;
    let operator = world.start_operator().await;
    let mut people = people(1900, 160);
    let site = world.site("big", shared_with(&people)).await;
    assert!(site["spec"].to_string().len() > 280 << 10);
    let site = world.running(&operator, "big").await;
    assert!(site["status"].to_string().len() < 4096, "bookkeeping does not grow with the Site: {}", site["status"]);
    assert!(site["metadata"]["annotations"].to_string().len() < 4096);
    for object in world.objects_of("big").await {
        let annotations = object["metadata"]["annotations"].to_string().len();
        assert!(annotations < 8192, "{}/{}: {annotations}", kind_of(&object), name_of(&object));
    }

    people.push("one-more@example.test".to_owned());
    let before = world.stateful_set("big").await;
    world.edit_site("big", json!({"spec": shared_with(&people)})).await;
    world.running(&operator, "big").await;
    let access = world.config_map("big-files").await["data"]["access.json"].as_str().unwrap().to_owned();
    assert!(people.iter().all(|one| access.contains(one.as_str())));
    assert_eq!(generation(&world.stateful_set("big").await), generation(&before) + 1);
    operator.stop().await;

    let mark = audit.mark();
    let _operator = world.start_operator().await;
    assert_left_alone(&world, mark, "big").await;
    world.end().await;
}

/// Waits until the Site says what is too large and what to shorten.
async fn wait_refused(world: &World, id: &str) -> Value {
    let site = world.wait_condition(id, "Ready", "False").await;
    let message = condition(&site, "Ready").unwrap()["message"].as_str().unwrap();
    for wanted in [&format!("ConfigMap/{id}-files"), "limit", "spec.configuration.share"] {
        assert!(message.contains(wanted), "{message}");
    }
    site
}

#[tokio::test]
async fn b04_a_site_whose_files_are_too_large_is_refused_once_and_delays_nobody() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("b04_a_site_whose_files_are_too_large") else { return };
    let mut world = World::new("b04-huge").await;
    // One slot: a Site that kept it would stop the others. And more than one resync while the test looks.
    world.settings["operator"]["worker_limit"] = 1.into();
    world.settings["operator"]["resync_period"] = "1s".into();
    let operator = world.start_operator().await;
    world.site("older", json!({})).await;
    world.running(&operator, "older").await;
    let (pods, files) = (world.pod_uids("older").await, world.config_map("older-files").await);

    let mark = audit.mark();
    let site = world.site("new", too_many()).await;
    assert!(site["spec"].to_string().len() > 1 << 20);
    world.edit_site("older", json!({"spec": too_many()})).await;
    for id in ["new", "older"] {
        wait_refused(&world, id).await;
    }
    for id in ["new", "older"] {
        let calls = calls_about(&world, mark, id).await.of("sites");
        assert_eq!(calls.count(), 1, "{id} says it once:\n{}", calls.describe());
        let debug = operator.get(&format!("/debug/sites/{id}")).await;
        assert!(debug["phase"].to_string().contains("Change"), "it waits for a change: {debug}");
        let told = operator.log_text().matches(&format!("ConfigMap/{id}-files would have")).count();
        assert_eq!(told, 1, "one line about {id}");
    }
    assert!(world.objects_of("new").await.is_empty());
    assert_eq!(world.config_map("older-files").await, files, "what runs is kept");
    assert_eq!(world.pod_uids("older").await, pods);

    // Shortened, both go on; the one that is as it was needs no restart.
    let lists = ["administrator_users", "administrator_groups", "view_users", "view_groups"];
    let none: serde_json::Map<String, Value> = lists.iter().map(|list| ((*list).to_owned(), Value::Null)).collect();
    for id in ["new", "older"] {
        world.edit_site(id, json!({"spec": {"configuration": {"share": none}}})).await;
        world.running(&operator, id).await;
    }
    assert_eq!(world.pod_uids("older").await, pods);
    world.end().await;
}

/// A limit that only the API server knows: nothing is sent again before the longest wait is over.
#[tokio::test]
async fn b04_what_the_server_calls_too_large_waits_the_longest() {
    let lab = Lab::get().await;
    let mut world = World::new("b04-server").await;
    world.settings["operator"]["max_backoff"] = "4s".into();
    let proxy = FaultProxy::start(lab).await;
    let start = Start { kubeconfig: Some(proxy.kubeconfig(&world).await), ..Start::default() };
    let operator = world.start_operator_with(start).await;
    let refused = proxy.fault(
        Match::on("create", "configmaps"),
        Act::status(413).reason("RequestEntityTooLarge"),
        Times::Count(1),
    );
    world.site("plain", json!({})).await;
    let site = world.wait_condition("plain", "Ready", "False").await;
    let message = condition(&site, "Ready").unwrap()["message"].as_str().unwrap();
    assert!(message.contains("too large") && message.contains("ConfigMap"), "{message}");
    eventually("it was refused", SOON, || async { proxy.hits(refused) == 1 }).await;
    world.site("other", json!({})).await;
    world.running(&operator, "other").await;
    world.running(&operator, "plain").await;
    // Of all creates the refused one is the first.
    let first = proxy.seen("create", "configmaps")[0].at;
    let made = world.config_map("plain").await["metadata"]["creationTimestamp"].as_str().unwrap().to_owned();
    let made: jiff::Timestamp = made.parse().unwrap();
    // Creation times have whole seconds.
    assert!(first.duration_until(made).as_secs() >= 3, "{first} {made}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b04_the_hub_takes_a_big_site_and_names_the_field_of_one_that_is_too_large() {
    let world = World::new("b04-hub").await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let alice = openid.token("alice");
    let create = async |name: &str, share: Value| {
        let body = json!({"space": "docs", "name": name, "share": share});
        hub.json("POST", "/hub/api/v2/sites/", &alice, &body).await
    };
    let told = create("big", json!({"view_users": people(1900, 160)})).await;
    assert_eq!(told.status, 201, "{}", told.text());

    // As much as one body may hold is more than one object may.
    let some = people(2000, 126);
    let all = json!({
        "administrator_users": some, "administrator_groups": some, "view_users": some, "view_groups": some,
    });
    let told = create("new", all).await;
    assert_eq!(told.status, 400, "{}", told.text());
    let error = told.json()["errors"][0].as_str().unwrap().to_owned();
    assert!(error.starts_with("[share.") && error.contains("the limit is"), "{error}");
    let told = create("new", too_many()["configuration"]["share"].clone()).await;
    assert_eq!(told.status, 413, "{}", told.text());
    assert_eq!(hub.get("/hub/api/v2/sites/docs/new/", &alice).await.status, 404);

    // One that grows, edit by edit, stops below the limit and is as it was.
    let made = create("grows", json!({})).await.json();
    let (id, path) = (made["id"].as_str().unwrap(), "/hub/api/v2/sites/docs/grows/");
    let many = people(2000, 145);
    for list in ["administrator_users", "administrator_groups", "view_users"] {
        let told = hub.json("PATCH", path, &alice, &json!({"share": {list: many}})).await;
        assert_eq!(told.status, 200, "{list}: {}", told.text());
    }
    let before = world.must("Site", id).await;
    let told = hub.json("PATCH", path, &alice, &json!({"share": {"view_groups": many}})).await;
    assert_eq!(told.status, 400, "{}", told.text());
    assert!(told.json()["errors"][0].as_str().unwrap().starts_with("[share."), "{}", told.text());
    assert_eq!(world.must("Site", id).await["spec"], before["spec"]);
    let told = hub.json("PATCH", path, &alice, &json!({"share": {"view_users": []}, "description": "less"})).await;
    assert_eq!(told.status, 200, "{}", told.text());
    world.end().await;
}
