//! B08: a change of a Site that an older release made is applied to its objects as they are: what cannot change is
//! carried over and said once, everything else is written, and nothing is deleted to get round it.

use serde_json::{Value, json};

use crate::support::api::condition;
use crate::support::belongings::{generation, stamp, uid};
use crate::support::legacy::{ID, IMAGES, ROUTE};
use crate::support::operator::field;
use crate::support::{Legacy, SOON, World, eventually};

const OWNER: &str = "sites.ecmwf.int/owner";

#[tokio::test]
async fn b08_fixed_fields_are_carried_over_and_every_step_runs() {
    let mut world = World::new("b08").await;
    let Some(audit) = world.lab().audit_or_skip("b08_fixed_fields_are_carried_over") else { return };
    world.settings["site"]["legacy_image_patterns"] = json!([IMAGES]);
    // A claim of another class than today's, which cannot change either.
    world.settings["kubernetes"]["storage_class"] = "kwok-volume-delete".into();
    Legacy::read().leave(&world).await;
    let (set, service, claim) = (world.stateful_set(ID).await, world.service(ID).await, world.claim(ID).await);
    let pods = world.pod_uids(ID).await;
    assert!(service["spec"]["clusterIP"].is_string());
    let operator = world.start_operator().await;
    world.wait_ready(ID).await;

    let mark = audit.mark();
    let edits = [
        json!({"spec": {"owner": "bob", "configuration": {"share": {"view_users": ["eve"]}}}}),
        json!({"spec": {"owner": "eve"}}),
    ];
    for (number, edit) in edits.into_iter().enumerate() {
        let owner = edit["spec"]["owner"].clone();
        world.edit_site(ID, edit).await;
        world.wait_ready(ID).await;
        let now = world.stateful_set(ID).await;
        assert_eq!(uid(&now), uid(&set));
        assert_eq!(
            generation(&now),
            generation(&set) + 1 + i64::try_from(number).unwrap(),
            "the template changes once"
        );
        for fixed in ["selector", "serviceName", "podManagementPolicy"] {
            assert_eq!(now["spec"][fixed], set["spec"][fixed], "{fixed}");
        }
        assert!(!stamp(&now).is_empty());
        let template = &now["spec"]["template"]["metadata"]["labels"];
        assert_eq!((&template["app"], &template[OWNER]), (&json!(ID), &owner), "old selector, new labels");
        assert_eq!(world.must("Ingress", ROUTE).await["metadata"]["labels"][OWNER], owner, "the last step has run");
    }

    let now = world.service(ID).await;
    assert_eq!(uid(&now), uid(&service));
    for given in ["clusterIP", "clusterIPs", "ipFamilies"] {
        assert_eq!(now["spec"][given], service["spec"][given], "{given}");
    }
    assert_eq!(now["spec"]["ports"][0]["port"], 4180);
    let now = world.claim(ID).await;
    assert_eq!((uid(&now), &now["spec"]), (uid(&claim), &claim["spec"]));
    eventually("the pod is another one and runs", SOON, || async {
        let now = world.pods(ID).await;
        let ready = now.len() == 1 && condition(&now[0], "Ready").is_some_and(|ready| ready["status"] == "True");
        ready && now[0]["metadata"]["uid"] != pods[0].as_str() && now[0]["metadata"]["labels"][OWNER] == "eve"
    })
    .await;

    world.audit_is_complete().await;
    let refused = world.calls(mark).writes().filter(|call| !(200..300).contains(&call.code) && call.code != 409);
    assert_eq!(refused.count(), 0, "{}", refused.describe());
    let deleted = world.calls(mark).filter(|call| call.verb == "delete" && call.resource != "pods");
    assert_eq!(deleted.count(), 0, "{}", deleted.describe());

    let text = |line: &Value, name: &str| field(line, name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let lines = operator.logs_with("cannot be changed");
    let mut told: Vec<_> =
        lines.iter().map(|line| format!("{} {}", text(line, "child"), text(line, "field"))).collect();
    told.sort();
    let expected = [
        "PersistentVolumeClaim/docs-fdb spec.storageClassName",
        "StatefulSet/docs-fdb spec.podManagementPolicy",
        "StatefulSet/docs-fdb spec.selector",
        "StatefulSet/docs-fdb spec.serviceName",
    ];
    assert_eq!(told, expected, "each is said, once");
    world.end().await;
}
