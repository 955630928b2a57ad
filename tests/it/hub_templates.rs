//! Templates: who may, what is kept of them, and a Site that begins with one.

use std::fs;

use serde_json::{Value, json};

use crate::support::{OpenId, Start, World};

const TEMPLATES: &str = "/hub/api/v2/templates/";

#[tokio::test(flavor = "multi_thread")]
async fn hub_templates_are_saved_listed_used_and_deleted() {
    let world = World::new("hub-templates").await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("eu-climate_1.yaml"), "quota: 5\n").unwrap();
    fs::write(folder.path().join("broken.yaml"), "tokens: {master: hunter2hunter2}\n").unwrap();
    let openid = OpenId::get().await;
    let settings = json!({"hub": {"templates_path": folder.path()}});
    let hub = world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await;
    let (admin, alice) = (openid.token("carol-admin"), openid.token("alice"));
    let at = |name: &str| format!("{TEMPLATES}{name}/");
    let form = json!({"quota": 7, "description": "of a template", "share": {"view_groups": ["staff"]}});

    // Who may what.
    for (token, read, write) in [("", 401, 401), (alice.as_str(), 200, 403)] {
        assert_eq!(hub.get(TEMPLATES, token).await.status, read);
        assert_eq!(hub.get(&at("eu-climate_1"), token).await.status, read);
        assert_eq!(hub.json("PUT", &at("Mine.1"), token, &form).await.status, write);
        assert_eq!(hub.json("DELETE", &at("eu-climate_1"), token, &Value::Null).await.status, write);
    }

    // What is no form of a Site is refused by name; a token is no field of it.
    for (bad, field) in [
        (json!({"tokens": {"master": "hunter2hunter2"}}), "tokens"),
        (json!({"quota": "five"}), "quota"),
        (json!({"share": {"view_users": "ana"}}), "share.view_users"),
    ] {
        let told = hub.json("PUT", &at("Mine.1"), &admin, &bad).await;
        assert_eq!(told.status, 400, "{bad}: {}", told.text());
        assert!(told.text().contains(field) && !told.text().contains("hunter2"), "{bad}: {}", told.text());
    }
    let told = hub.get(&at("broken"), &admin).await;
    assert!(told.status == 500 && !told.text().contains("hunter2"), "{} {}", told.status, told.text());

    // Saved twice, listed once, with what was sent and nothing more.
    for form in [&json!({"quota": 1}), &form] {
        let told = hub.json("PUT", &at("Mine.1"), &admin, form).await;
        assert_eq!((told.status, &told.json()["fields"]), (200, form), "{}", told.text());
    }
    // One that is broken hides no other.
    assert_eq!(
        hub.get(TEMPLATES, &alice).await.json()["templates"],
        json!([
            {"name": "Mine.1", "source": "saved", "fields": form},
            {"name": "eu-climate_1", "source": "platform", "fields": {"quota": 5}},
        ])
    );
    assert_eq!(hub.get(&at("Mine.1"), &alice).await.json()["fields"], form);
    for method in ["PUT", "DELETE"] {
        let told = hub.json(method, &at("eu-climate_1"), &admin, &json!({"quota": 1})).await;
        assert_eq!(told.status, 409, "the platform's own stays: {}", told.text());
    }

    // A Site begins with it; what the request says wins.
    let create = "/hub/api/v2/sites/?template=Mine.1";
    let told = hub.json("POST", create, &alice, &json!({"space": "docs", "name": "made", "quota": 2})).await;
    assert_eq!(told.status, 201, "{}", told.text());
    let made = told.json()["form"].clone();
    assert_eq!((&made["quota"], &made["description"]), (&json!(2), &json!("of a template")), "{made}");
    assert_eq!(made["share"]["view_groups"], json!(["staff"]));

    assert_eq!(hub.json("DELETE", &at("Mine.1"), &admin, &Value::Null).await.status, 200);
    assert_eq!(hub.json("DELETE", &at("Mine.1"), &admin, &Value::Null).await.status, 404);
    let told = hub.json("POST", create, &alice, &json!({"space": "docs", "name": "other"})).await;
    assert_eq!(told.status, 404, "{}", told.text());
    world.end().await;
}
