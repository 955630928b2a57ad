//! Take-over: a Site of the replaced platform is taken over as it is, without one pod restart; what was edited while
//! no operator ran is applied.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::api::{condition, kind_of, name_of};
use crate::support::legacy::{ID, IMAGES, ROUTE, content};
use crate::support::older::{lab, write_before_the_rules};
use crate::support::world::ID_LABEL;
use crate::support::{Legacy, SOON, World, assert_left_alone, eventually};

const SITE_LABELS: [&str; 6] = [
    "sites.ecmwf.int/app",
    "sites.ecmwf.int/id",
    "sites.ecmwf.int/space",
    "sites.ecmwf.int/name",
    "sites.ecmwf.int/owner",
    "app.kubernetes.io/managed-by",
];

async fn world(name: &str) -> World {
    let mut world = World::new(name).await;
    world.settings["site"]["legacy_image_patterns"] = json!([IMAGES]);
    world
}

/// Every object of the Site by kind and name, pods and volume included.
async fn objects(world: &World) -> BTreeMap<String, Value> {
    let objects = world.objects_of(ID).await.into_iter();
    objects.map(|object| (format!("{}/{}", kind_of(&object), name_of(&object)), object)).collect()
}

fn stamped(set: &Value) -> bool {
    !set["spec"]["template"]["metadata"]["annotations"]["sites.ecmwf.int/stamped-for"].is_null()
}

/// Waits until labels and owner of everything but the pods are ours.
async fn wait_repaired(world: &World) {
    eventually("labels and owner are repaired", SOON, || async {
        let site = world.must("Site", ID).await;
        for (key, object) in objects(world).await {
            let labels = &object["metadata"]["labels"];
            if kind_of(&object) != "Pod" && SITE_LABELS.iter().any(|label| labels[label].is_null()) {
                return Err(format!("{key} lacks a label: {labels}"));
            }
            let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
            let ours = owners.len() == 1 && owners[0]["uid"] == site["metadata"]["uid"];
            if !ours && !matches!(kind_of(&object), "Pod" | "PersistentVolume") {
                return Err(format!("{key} is owned by {owners:?}"));
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn takeover_adopts_a_site_as_it_is() {
    let world = world("adopt").await;
    let Some(audit) = world.lab().audit_or_skip("takeover_adopts_a_site_as_it_is") else { return };
    Legacy::read().leave(&world).await;
    let (before, pods) = (objects(&world).await, world.pod_uids(ID).await);
    assert_eq!(before.len(), 10, "{:?}", before.keys());

    let operator = world.start_operator().await;
    let site = world.wait_ready(ID).await;
    wait_repaired(&world).await;

    assert_eq!(world.pod_uids(ID).await, pods, "no pod was restarted");
    let after = objects(&world).await;
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    for (key, object) in &after {
        assert_eq!(content(object), content(&before[key]), "{key} is as it was");
    }
    assert!(!stamped(&after["StatefulSet/docs-fdb"]));
    let site_now = world.must("Site", ID).await;
    assert_eq!(site_now["spec"], site["spec"]);
    assert!(site_now["metadata"]["annotations"]["kopf.zalando.org/last-handled-configuration"].is_string());

    let handled = &site["status"]["handled"];
    assert!(handled["digest"].as_str().unwrap().starts_with("v1:"), "{handled}");
    assert_eq!(handled["upgrade_request"], "6b1f2c9e-0d51-4f0e-9a38-1f6f6f2f7c10");
    assert_eq!(handled["path"], "/docs/fdb");
    let children = handled["children"].as_object().unwrap();
    let expected = [
        "ConfigMap/docs-fdb",
        "ConfigMap/docs-fdb-files",
        "Ingress/ingress-docs-fdb-legacy",
        "Secret/docs-fdb",
        "Secret/docs-fdb-oauth2",
        "Service/docs-fdb",
        "StatefulSet/docs-fdb",
    ];
    assert_eq!(children.keys().collect::<Vec<_>>(), expected);
    assert!(children.values().all(|child| child["state"] == "adopted"), "{handled}");
    assert_eq!(site["status"]["phase"], "Running");
    assert_eq!(site["status"]["all_steps_started"], true);

    // Nothing more is due, and another process finds that too.
    eventually("the status speaks of the repaired objects", SOON, || async {
        let children = world.must("Site", ID).await["status"]["handled"]["children"].clone();
        let version = |kind: &str, name: &str| children[format!("{kind}/{name}")]["version"].clone();
        let secret = world.secret(ID).await;
        version("Secret", ID) == secret["metadata"]["resourceVersion"]
    })
    .await;
    operator.stop().await;
    let mark = audit.mark();
    let _again = world.start_operator().await;
    assert_left_alone(&world, mark, ID).await;
    assert_eq!(world.pod_uids(ID).await, pods);
    world.end().await;
}

#[tokio::test]
async fn takeover_adopts_an_archived_site_without_starting_it() {
    let world = world("adopt-archived").await;
    let legacy = Legacy::read()
        .site(&json!({"spec": {"configuration": {"enabled": false}}}))
        .site(&json!({"metadata": {"annotations": {"kopf.zalando.org/last-handled-configuration": null}}}))
        .object("StatefulSet", &json!({"spec": {"replicas": 0}}));
    legacy.leave(&world).await;
    let before = world.stateful_set(ID).await;
    let _operator = world.start_operator().await;
    let site = world.wait_ready(ID).await;
    assert_eq!(site["status"]["phase"], "Disabled");
    wait_repaired(&world).await;
    assert_eq!(content(&world.stateful_set(ID).await), content(&before));
    assert!(world.pods(ID).await.is_empty());
    world.end().await;
}

/// Starts an operator over a fixture and says whether it gave the Site a pod of ours.
async fn rolled(name: &str, legacy: Legacy) -> bool {
    let world = world(name).await;
    legacy.leave(&world).await;
    let pods = world.pod_uids(ID).await;
    let generation = world.stateful_set(ID).await["metadata"]["generation"].as_i64().unwrap();
    let _operator = world.start_operator().await;
    world.wait_ready(ID).await;
    wait_repaired(&world).await;
    let set = world.stateful_set(ID).await;
    if !stamped(&set) {
        assert_eq!(world.pod_uids(ID).await, pods, "no pod was restarted");
        assert_eq!(set["metadata"]["generation"], generation);
        world.end().await;
        return false;
    }
    assert_eq!(set["metadata"]["generation"], generation + 1, "one change of the template");
    eventually("the pod is another one and runs", SOON, || async {
        let now = world.pods(ID).await;
        let new = now.len() == 1 && world.pod_uids(ID).await != pods;
        new && condition(&now[0], "Ready").is_some_and(|ready| ready["status"] == "True")
    })
    .await;
    world.end().await;
    true
}

#[tokio::test]
async fn takeover_applies_an_edit_made_while_no_operator_ran() {
    let edit = json!({"spec": {"configuration": {"share": {"view_users": ["bo@example.org"]}}}});
    assert!(rolled("adopt-edited", Legacy::read().site(&edit)).await);
}

#[tokio::test]
async fn takeover_of_an_audit_edit_restarts_nothing() {
    let edit = json!({"spec": {"configuration": {"description": "another text", "updated_by": "bo@example.org"}}});
    assert!(!rolled("adopt-audit", Legacy::read().site(&edit)).await);
}

#[tokio::test]
async fn takeover_without_a_baseline_counts_spec_and_upgrade_request_as_handled() {
    let none = json!({"metadata": {"annotations": {"kopf.zalando.org/last-handled-configuration": null}}});
    assert!(!rolled("adopt-nobase", Legacy::read().site(&none)).await);
}

#[tokio::test]
async fn takeover_with_an_unreadable_baseline_restarts_nothing() {
    let broken = json!({"metadata": {"annotations": {"kopf.zalando.org/last-handled-configuration": "{\"spec\": 3"}}});
    assert!(!rolled("adopt-badbase", Legacy::read().site(&broken)).await);
}

/// The baseline names the request that the old platform served last: a newer one was made while nobody ran.
#[tokio::test]
async fn takeover_serves_an_upgrade_request_that_the_old_platform_did_not() {
    let newer = json!({"metadata": {"annotations": {"sites.ecmwf.int/upgrade-request": "newer"}}});
    assert!(rolled("adopt-request", Legacy::read().site(&newer)).await);
}

#[tokio::test]
async fn takeover_keeps_what_runs_of_a_site_that_breaks_a_rule() {
    let Some(lab) = lab("takeover_keeps_what_runs_of_a_site_that_breaks_a_rule").await else { return };
    let mut world = World::on(&lab, "adopt-invalid").await;
    world.settings["site"]["legacy_image_patterns"] = json!([IMAGES]);
    let audit = lab.audit().unwrap();
    let headers = json!({"spec": {"configuration": {"headers": {"Set-Cookie": "a=b"}}}});
    let legacy = Legacy::read().site(&headers);
    write_before_the_rules(&world, &[legacy.site_of(&world)]).await;
    legacy.leave_objects(&world).await;
    let before = objects(&world).await;

    let mark = audit.mark();
    let _operator = world.start_operator().await;
    let site = world.wait_condition(ID, "Ready", "False").await;
    let ready = condition(&site, "Ready").unwrap();
    assert_eq!(ready["reason"], "Invalid");
    let message = ready["message"].as_str().unwrap();
    assert!(message.starts_with("spec.configuration.headers: ") && message.contains("Set-Cookie"), "{message}");
    assert_eq!(site["status"]["phase"], "Running", "its pods still speak");
    let calls = crate::support::calls_about(&world, mark, ID).await.writes();
    assert_eq!(calls.clone().filter(|call| call.subresource != "status").count(), 0, "{}", calls.describe());
    assert!(calls.count() <= 2, "{}", calls.describe());
    for (key, object) in objects(&world).await {
        assert_eq!(object["metadata"]["resourceVersion"], before[&key]["metadata"]["resourceVersion"], "{key}");
    }

    // Mended, it is taken over; what differs from the old platform's baseline is applied.
    let mended = json!({"spec": {"configuration": {"headers": {"Set-Cookie": null, "X-Mended": "1"}}}});
    world.edit_site(ID, mended).await;
    world.wait_ready(ID).await;
    assert!(stamped(&world.stateful_set(ID).await));
    assert_eq!(world.ingresses(ID).await[0]["metadata"]["name"], ROUTE);
    world.end().await;
}

/// What the old platform wrote into the status is ours to replace, however odd it is.
#[tokio::test]
async fn takeover_reads_over_a_status_that_is_not_of_our_form() {
    let Some(lab) = lab("takeover_reads_over_a_status_that_is_not_of_our_form").await else { return };
    let mut world = World::on(&lab, "adopt-status").await;
    world.settings["site"]["legacy_image_patterns"] = json!([IMAGES]);
    let odd = json!({
        "phase": "Provisioning", "all_steps_started": null, "container_problems": "none", "on_create": {"message": "created"},
        "observedGeneration": "7", "conditions": {"Ready": true}, "kopf": {"progress": {}},
    });
    let legacy = Legacy::read();
    let mut site = legacy.site_of(&world);
    site["status"] = odd;
    write_before_the_rules(&world, &[site]).await;
    legacy.leave_objects(&world).await;
    let pods = world.pod_uids(ID).await;
    let _operator = world.start_operator().await;
    let site = world.wait_ready(ID).await;
    assert_eq!(site["status"]["phase"], "Running");
    assert!(site["status"]["container_problems"].as_array().is_none_or(Vec::is_empty));
    assert!(site["status"]["handled"]["digest"].is_string());
    assert_eq!(world.pod_uids(ID).await, pods);
    assert_eq!(world.of_site("StatefulSet", ID).await[0]["metadata"]["labels"][ID_LABEL], ID);
    world.end().await;
}
