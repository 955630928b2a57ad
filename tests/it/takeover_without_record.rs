//! A Site without our record: without a StatefulSet everything there is compared and replaced; with a template of ours
//! everything is compared and nothing restarts.

use serde_json::{Value, json};

use crate::support::api::name_of;
use crate::support::legacy::{ID, IMAGES, ROUTE};
use crate::support::{Legacy, SOON, Start, World, assert_left_alone, eventually};

#[tokio::test]
async fn takeover_without_a_stateful_set_compares_and_replaces() {
    let mut world = World::new("no-set").await;
    world.settings["site"]["legacy_image_patterns"] = json!([IMAGES]);
    Legacy::read().without("StatefulSet").leave(&world).await;
    let (claim, service) = (world.claim(ID).await, world.service(ID).await);
    let _operator = world.start_operator().await;
    let site = world.wait_ready(ID).await;
    world.wait_phase(ID, "Running").await;

    let children = site["status"]["handled"]["children"].as_object().unwrap();
    assert!(children.values().all(|child| child["state"] == "applied"), "{children:?}");
    assert_eq!(world.claim(ID).await["metadata"]["uid"], claim["metadata"]["uid"], "the content stays");
    let service_now = world.service(ID).await;
    assert_eq!(service_now["metadata"]["uid"], service["metadata"]["uid"]);
    assert_eq!(service_now["spec"]["ports"][0]["port"], 4180);
    assert!(world.config_map("docs-fdb-files").await["data"]["nginx.conf"].is_string());
    let set = world.stateful_set(ID).await;
    assert_eq!(set["spec"]["serviceName"], ID);
    assert!(set["spec"]["selector"]["matchLabels"]["app"].is_null());
    // The route of that path is the Site's already: it is not made a second time under another name.
    let routes = world.ingresses(ID).await;
    assert_eq!(routes.iter().map(name_of).collect::<Vec<_>>(), [ROUTE]);
    assert_eq!(routes[0]["spec"]["rules"][0]["http"]["paths"][0]["path"], "/docs/fdb");
    world.end().await;
}

/// Takes the record away while no operator runs.
async fn forget(world: &World, id: &str) {
    let forgotten =
        world.api.merge("Site", &world.namespace, id, "status", &json!({"status": {"handled": null}})).await;
    assert!(forgotten.unwrap()["status"]["handled"].is_null());
}

fn versions(objects: &[Value]) -> Vec<(String, String)> {
    let text = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    objects
        .iter()
        .filter(|object| object["kind"] != "Pod")
        .map(|object| (format!("{}/{}", object["kind"], name_of(object)), text(object, "resourceVersion")))
        .collect()
}

#[tokio::test]
async fn takeover_with_our_stamp_and_no_record_restarts_nothing() {
    let world = World::new("no-record").await;
    let Some(audit) = world.lab().audit_or_skip("takeover_with_our_stamp_and_no_record_restarts_nothing") else {
        return;
    };
    world.site("alpha", json!({})).await;
    let operator = world.start_operator().await;
    world.wait_ready("alpha").await;
    world.wait_phase("alpha", "Running").await;
    eventually("the volume is labelled", SOON, || async {
        world.of_site("PersistentVolume", "alpha").await.len() == 1
    })
    .await;
    operator.stop().await;
    let (before, pods) = (versions(&world.objects_of("alpha").await), world.pod_uids("alpha").await);
    forget(&world, "alpha").await;

    let mark = audit.mark();
    let operator = world.start_operator().await;
    let site =
        world.wait_site("alpha", "it is recorded again", |site| site["status"]["handled"]["digest"].is_string()).await;
    let children = site["status"]["handled"]["children"].as_object().unwrap();
    assert!(children.len() == 7 && children.values().all(|child| child["state"] == "applied"), "{children:?}");
    assert_eq!(versions(&world.objects_of("alpha").await), before, "nothing was written");
    let writes = crate::support::calls_about(&world, mark, "alpha").await.writes();
    assert!(writes.0.iter().all(|call| call.subresource == "status"), "{}", writes.describe());
    assert_eq!(world.pod_uids("alpha").await, pods);
    operator.stop().await;

    // Nor does a release that renders another template: that waits for the next change.
    forget(&world, "alpha").await;
    let mark = audit.mark();
    let settings = json!({"site": {"version": "2.0.0", "brand": "Other"}});
    let operator = world.start_operator_with(Start { settings: settings.clone(), ..Start::default() }).await;
    world.wait_site("alpha", "it is recorded again", |site| site["status"]["handled"]["digest"].is_string()).await;
    let writes = crate::support::calls_about(&world, mark, "alpha").await.writes();
    assert_eq!(writes.of("statefulsets").count(), 0);
    assert_eq!(world.pod_uids("alpha").await, pods);
    operator.stop().await;
    let mark = audit.mark();
    let _operator = world.start_operator_with(Start { settings, ..Start::default() }).await;
    assert_left_alone(&world, mark, "alpha").await;
    world.end().await;
}
