//! B13: any text can own a Site. Its label is valid and the owner's alone; the spec keeps the text.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::World;
use crate::support::api::kind_of;

const OWNER: &str = "sites.ecmwf.int/owner";

#[tokio::test]
async fn b13_any_text_can_own_a_site() {
    let world = World::new("b13").await;
    let _operator = world.start_operator().await;
    let digits = "0123456789abcdef".repeat(4);
    let sha256 = format!("sha256-{}", &digits[..40]);
    let owners = [
        "_ana@example.org",
        "Zoë",
        &digits,
        "",
        "ana+x@example.org",
        "ana-x@example.org",
        "ana.x@example.org",
        "ana",
        // As our own form of a label.
        &sha256,
        "a\u{301}na / \"quoted\", {braces}; $x\n",
    ];
    for (number, owner) in owners.iter().enumerate() {
        world.site(&format!("owned-{number}"), json!({"owner": owner})).await;
    }
    let mut labels = BTreeSet::new();
    for (number, owner) in owners.iter().enumerate() {
        let id = format!("owned-{number}");
        let site = world.wait_ready(&id).await;
        world.wait_phase(&id, "Running").await;
        assert_eq!(site["spec"]["owner"], *owner, "the spec is the owner's text");
        let set = world.stateful_set(&id).await;
        let label = set["metadata"]["labels"][OWNER].as_str().unwrap().to_owned();
        assert!(label.len() <= 63);
        for object in world.objects_of(&id).await.iter().filter(|object| kind_of(object) != "PersistentVolume") {
            assert_eq!(object["metadata"]["labels"][OWNER], label.as_str(), "{}", kind_of(object));
        }
        // The server's own rule for what a selector takes, and nobody else's Site is found by it.
        let found = world.api.list("StatefulSet", &world.namespace, &format!("{OWNER}={label}")).await;
        assert_eq!(found.len(), 1, "{owner:?} and {label:?}");
        assert!(labels.insert(label));
    }
    assert_eq!(labels.len(), owners.len());
    assert!(labels.contains("ana"), "a valid text stays readable");
    world.end().await;
}
