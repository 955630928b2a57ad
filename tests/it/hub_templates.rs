//! Templates: who may, what is kept of them, and a Site that begins with one.

use std::fs;

use serde_json::{Value, json};

use crate::support::api::name_of;
use crate::support::{Act, FaultProxy, Match, OpenId, SOON, Start, Times, World, eventually};

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

/// The object that holds the only saved template.
async fn object(world: &World) -> String {
    let maps = world.api.list("ConfigMap", &world.namespace, "sites.ecmwf.int/template=saved").await;
    let [map] = &maps[..] else { panic!("{maps:?}") };
    name_of(map).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_templates_touch_only_what_is_theirs() {
    let world = World::new("hub-templates-own").await;
    let proxy = FaultProxy::start(world.lab()).await;
    let openid = OpenId::get().await;
    let start = Start { kubeconfig: Some(world.hub_kubeconfig_through(&proxy).await), ..Start::default() };
    let hub = world.start_hub_process_with(openid, start).await;
    let admin = openid.token("carol-admin");
    let at = |name: &str| format!("{TEMPLATES}{name}/");

    // Somebody else's object under the very name, without our label or with another value of it.
    for (name, labels) in [("plain", json!({})), ("marked", json!({"sites.ecmwf.int/template": "draft"}))] {
        assert_eq!(hub.json("PUT", &at(name), &admin, &json!({"quota": 1})).await.status, 200);
        let object = object(&world).await;
        assert!(world.api.delete("ConfigMap", &world.namespace, &object).await);
        let foreign = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": object, "labels": labels},
            "data": {"name": name, "fields": "{\"quota\": 99}", "theirs": "kept"},
        });
        let made = world.api.create(&world.namespace, &foreign).await.unwrap();
        assert_eq!(hub.get(&at(name), &admin).await.status, 404, "{name}");
        assert_eq!(hub.json("DELETE", &at(name), &admin, &Value::Null).await.status, 404, "{name}");
        let told = hub.json("PUT", &at(name), &admin, &json!({"quota": 1})).await;
        assert_eq!(told.status, 409, "{name}: {}", told.text());
        assert!(told.text().contains("choose another name"), "{}", told.text());
        let kept = world.config_map(name_of(&made)).await;
        assert_eq!(kept["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"], "{name}");
    }
    assert_eq!(hub.get(TEMPLATES, &admin).await.json()["templates"], json!([]));

    // What changes between reading and writing is not overwritten, nor deleted.
    let told = hub.json("PUT", &at("mine"), &admin, &json!({"quota": 1})).await;
    assert_eq!(told.status, 200, "{}", told.text());
    let mine = object(&world).await;
    for (method, verb, body) in [("PUT", "patch", json!({"quota": 2})), ("DELETE", "delete", Value::Null)] {
        let held = proxy.fault(Match::on(verb, "configmaps"), Act::Hold, Times::Count(1));
        let path = at("mine");
        let (told, ()) = tokio::join!(hub.json(method, &path, &admin, &body), async {
            eventually("it is on its way", SOON, || async { proxy.hits(held) == 1 }).await;
            let edit = json!({"data": {"fields": format!("{{\"description\": \"{verb}\"}}")}});
            world.api.merge("ConfigMap", &world.namespace, &mine, "", &edit).await.unwrap();
            proxy.lift(held);
        });
        assert_eq!(told.status, 409, "{method}: {}", told.text());
        let fields = hub.get(&path, &admin).await.json()["fields"].clone();
        assert_eq!(fields, json!({"description": verb}), "{method}");
    }
    let told = hub.json("PUT", &at("mine"), &admin, &json!({"quota": 3})).await;
    assert_eq!((told.status, &told.json()["fields"]), (200, &json!({"quota": 3})), "{}", told.text());
    assert_eq!(hub.json("DELETE", &at("mine"), &admin, &Value::Null).await.status, 200);
    assert!(world.get("ConfigMap", &mine).await.is_none());
    world.end().await;
}
