//! The read-only switch: every change is refused, whoever asks and whichever route it is, from the table of all routes.

use http::Method;
use serde_json::{Value, json};

use crate::hub_access_matrix::{TABLE, documented, filled_in};
use crate::support::{HUB, HubProcess, OpenId, Redis, SOON, World, eventually};

const STATE: &str = "/hub/api/v2/platform/state/";
const MAP: &str = "sites-platform-state";
/// Changes that go on: the switch itself, and the end of a bulk run.
const GO_ON: [(&str, &str); 2] = [("PUT", "/platform/state/"), ("POST", "/runs/{id}/cancel/")];

fn changes() -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str)> {
    TABLE.iter().filter(|(method, ..)| *method != "GET")
}

async fn turn(hub: &HubProcess, token: &str, read_only: bool) {
    let told = hub.json("PUT", STATE, token, &json!({"read_only": read_only, "message": "moving <house>"})).await;
    assert_eq!((told.status, &told.json()["read_only"]), (200, &json!(read_only)), "{}", told.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_read_only_refuses_every_change_and_nothing_else() {
    let mut world = World::new("hub-read-only").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let other = world.start_hub_process(openid).await;
    let (admin, alice) = (openid.token("carol-admin"), openid.token("alice"));
    world.site("mine", json!({"owner": "alice", "configuration": {"space": "docs"}})).await;
    eventually("both Hubs know the Site", SOON, || async {
        for hub in [&hub, &other] {
            let told = hub.get("/hub/api/v2/sites/docs/mine/", &alice).await;
            if told.status != 200 {
                return Err(told.text());
            }
        }
        Ok(())
    })
    .await;
    assert_eq!(hub.get(STATE, &admin).await.json()["read_only"], false, "nobody has turned it yet");
    assert!(world.get("ConfigMap", MAP).await.is_none(), "it is made on demand");

    for (bad, field) in [
        (json!({}), "read_only"),
        (json!({"read_only": "perhaps"}), "read_only"),
        (json!({"read_only": true, "message": "a\nb"}), "message"),
        (json!({"read_only": true, "message": "x".repeat(501)}), "message"),
        (json!({"read_only": true, "until": "tomorrow"}), "until"),
    ] {
        let told = hub.json("PUT", STATE, &admin, &bad).await;
        assert_eq!(told.status, 400, "{bad}: {}", told.text());
        assert!(told.json()["errors"][0].as_str().unwrap().starts_with(&format!("[{field}] ")), "{}", told.text());
    }
    // The other replica has just learned that all may write.
    assert_eq!(other.json("POST", "/hub/api/v2/sites/", &alice, &json!({"wings": 2})).await.status, 400);
    turn(&hub, &admin, true).await;
    let state = hub.get(STATE, &admin).await.json();
    assert_eq!((&state["message"], &state["updated_by"]), (&json!("moving <house>"), &json!("carol-admin")));
    let data = world.config_map(MAP).await["data"].clone();
    assert_eq!((&data["read_only"], &data["message"]), (&json!("true"), &json!("moving <house>")));
    eventually("the other replica follows", SOON, || async {
        let told = other.json("POST", "/hub/api/v2/sites/", &alice, &json!({})).await;
        if told.status == 503 { Ok(()) } else { Err(told.text()) }
    })
    .await;

    let before = world.must("Site", "mine").await["metadata"]["resourceVersion"].clone();
    let mark = world.lab().audit().map(|audit| audit.mark());
    let mut wrong = Vec::new();
    for (method, path, _) in changes() {
        for site in ["/sites/docs/mine", "/sites/-/mine"] {
            let url = filled_in(path, site);
            for (hub, token, url) in [
                (&hub, &admin, url.clone()),
                (&other, &alice, url.replace("/v2/", "/v1/")),
                (&hub, &String::new(), url),
            ] {
                let told = hub.json(method, &url, token, &Value::Null).await;
                let refused = told.status == 503 && told.text().contains("the platform is read-only: moving <house>");
                if refused == GO_ON.contains(&(*method, *path)) {
                    wrong.push(format!("{method} {url}: {} {}", told.status, told.text()));
                }
            }
        }
    }
    for (method, path, _) in TABLE.iter().filter(|(method, ..)| *method == "GET") {
        let told = hub.json(method, &filled_in(path, "/sites/docs/mine"), &admin, &Value::Null).await;
        if told.text().contains("read-only: ") {
            wrong.push(format!("{method} {path} changes nothing: {} {}", told.status, told.text()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(world.must("Site", "mine").await["metadata"]["resourceVersion"], before);
    if let Some(mark) = mark {
        let writes = world.hub_writes(mark).await;
        assert!(writes.0.is_empty(), "{}", writes.describe());
    }

    // A person may still leave, and one that comes afterwards finds it as it is.
    let browser = hub.browser(openid);
    browser.log_in(&format!("{HUB}/hub/login/"), "alice").await.unwrap();
    let me = browser.request(&Method::GET, &format!("{HUB}/hub/api/v2/whoami/"), &[], "").await.unwrap();
    let me: Value = serde_json::from_slice(me.body()).unwrap();
    assert_eq!(me["user"], "alice");
    let form = format!("csrf_token={}", me["csrf_token"].as_str().unwrap());
    let out = browser.request(&Method::POST, &format!("{HUB}/hub/logout/"), &[], &form).await.unwrap();
    assert_eq!(out.status(), 303);
    let fresh = world.start_hub_process(openid).await;
    let told = fresh.json("DELETE", "/hub/api/v2/sites/docs/mine/", &alice, &Value::Null).await;
    assert_eq!(told.status, 503, "it survives the Hub: {}", told.text());

    turn(&hub, &admin, false).await;
    let told = hub.json("PATCH", "/hub/api/v2/sites/docs/mine/", &alice, &json!({"quota": 2})).await;
    assert_eq!(told.status, 200, "at once where it was turned: {}", told.text());
    world.end().await;
}

#[test]
fn hub_read_only_is_in_the_document_of_every_change() {
    let document = sites::hub::openapi();
    for (method, path, _) in changes() {
        for path in documented(path) {
            let answers = &document["paths"][&path][method.to_lowercase()]["responses"];
            let told = answers["503"]["description"].as_str().unwrap_or_default();
            let refused = told.contains("the platform is read-only");
            assert_ne!(
                refused,
                GO_ON.iter().any(|(verb, end)| verb == method && path.ends_with(end)),
                "{method} {path}: {told}"
            );
        }
    }
}
