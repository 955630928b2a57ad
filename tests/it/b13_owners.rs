//! B13: any text can own a Site. Its label is valid and the owner's alone; the spec keeps the text.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::api::kind_of;
use crate::support::{OpenId, World};

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

#[tokio::test(flavor = "multi_thread")]
async fn b13_whoever_logs_in_owns_the_sites_they_create() {
    let world = World::new("b13-hub").await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let digits = "0123456789abcdef".repeat(4);
    let owners = ["_ana@example.org", "Zoë", &digits, "ana+x@example.org", "ana-x@example.org", "ana"];
    let token = |owner: &str| {
        let claims = json!({"sub": owner, "preferred_username": owner, "email": "", "groups": []});
        openid.token_with("dave", &claims)
    };
    for (number, owner) in owners.iter().enumerate() {
        let body = json!({"space": "docs", "name": format!("owned-{number}")});
        let told = hub.json("POST", "/hub/api/v2/sites/", &token(owner), &body).await;
        assert_eq!(told.status, 201, "{owner:?}: {}", told.text());
        assert_eq!(told.json()["owner"], *owner);
        let id = told.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(world.must("Site", &id).await["spec"]["owner"], *owner);
    }
    // Each sees theirs and nobody else's, and finds it by the exact text.
    for (number, owner) in owners.iter().enumerate() {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let query = query.append_pair("owner", owner).finish();
        for query in ["", query.as_str()] {
            let seen = hub.get(&format!("/hub/api/v2/sites/?{query}"), &token(owner)).await.json();
            assert_eq!(seen["count"], 1, "{owner:?} {query}: {seen}");
            assert_eq!(seen["sites"][0]["name"], format!("owned-{number}"));
        }
    }
    // Any other text is the platform's to give.
    let carol = openid.token("carol-admin");
    for (number, owner) in ["a\u{301}na / \"quoted\", {braces}; $x", "sha256-0123"].iter().enumerate() {
        let body = json!({"space": "docs", "name": format!("given-{number}"), "owner": owner});
        let told = hub.json("POST", "/hub/api/v2/sites/", &carol, &body).await;
        assert_eq!((told.status, &told.json()["owner"]), (201, &json!(owner)), "{}", told.text());
    }
    world.end().await;
}
