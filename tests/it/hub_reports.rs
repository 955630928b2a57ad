//! Reports: made in order, one at a time, also by another replica; JSON, and CSV that no spreadsheet runs.

use serde_json::{Value, json};

use crate::support::runs::Administrator;
use crate::support::{OpenId, Redis, SOON, Start, World, eventually};

const REPORTS: &str = "/hub/api/v2/reports/";

async fn ask(admin: &Administrator<'_>, kind: &str) -> String {
    let told = admin.post(REPORTS, &json!({"kind": kind})).await;
    assert_eq!(told.status, 202, "{}", told.text());
    format!("{REPORTS}{}/", told.json()["id"].as_str().unwrap())
}

async fn made(admin: &Administrator<'_>, path: &str) -> Value {
    eventually("the report is made", SOON, || async {
        let report = admin.get(path).await.json();
        if report["state"] == "done" { Ok(report) } else { Err(report.to_string()) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_reports_are_made_in_order_and_read_as_json_and_csv() {
    let mut world = World::new("hub-reports").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let configuration = json!({"description": "=HYPERLINK(\"http://evil.test\",\"x\")", "retention_date": "2020-01-01",
        "tokens": {"master": "marker-of-a-master-token"}, "settings": {"monitored": true}});
    world.site("one", json!({"owner": "@sum", "configuration": configuration})).await;
    world.site("two", json!({"type": "public"})).await;
    let openid = OpenId::get().await;
    // Nobody answers there.
    let start = || Start { settings: json!({"hub": {"site_address": "http://127.0.0.1:1/{id}"}}), ..Start::default() };
    let hub = world.start_hub_process_with(openid, start()).await;
    let admin = Administrator::of(&hub, openid);

    for (token, status) in [(String::new(), 401), (openid.token("alice"), 403)] {
        for (method, path) in [("GET", REPORTS), ("POST", REPORTS)] {
            assert_eq!(hub.json(method, path, &token, &json!({"kind": "usage"})).await.status, status);
        }
    }
    for bad in [json!({"kind": "everything"}), json!({}), json!([]), json!({"kind": "usage", "other": 1})] {
        let told = admin.post(REPORTS, &bad).await;
        assert_eq!(told.status, 400, "{bad}: {}", told.text());
    }
    let token = format!("Bearer {}", openid.token("carol-admin"));
    let headers = [("authorization", token.as_str()), ("content-type", "text/plain")];
    assert_eq!(hub.ask("POST", REPORTS, &headers, "kind=usage").await.status, 415);
    let headers = [("authorization", token.as_str()), ("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(hub.ask("POST", REPORTS, &headers, "kind=usage").await.status, 202);
    assert_eq!(admin.get(&format!("{REPORTS}nothing/")).await.status, 404);

    let mut paths = Vec::new();
    for kind in ["inventory", "usage", "retention", "health"] {
        paths.push(ask(&admin, kind).await);
    }
    let mut ended = Vec::new();
    for path in &paths {
        ended.push(made(&admin, path).await["ended_at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap());
    }
    assert!(ended.is_sorted(), "{ended:?}");

    let inventory = admin.get(&paths[0]).await;
    assert!(!inventory.text().contains("marker-of-a-master-token"), "{}", inventory.text());
    let rows = inventory.json()["rows"].clone();
    assert_eq!(rows.as_array().unwrap().len(), 2);
    assert_eq!(
        (&rows[0]["id"], &rows[0]["owner"], &rows[1]["type"]),
        (&json!("one"), &json!("@sum"), &json!("public"))
    );
    let usage = admin.get(&paths[1]).await.json();
    assert_eq!(usage["rows"][0]["used_bytes"], Value::Null, "what is not known is null: {usage}");
    let retention = admin.get(&paths[2]).await.json();
    assert_eq!(
        (retention["count"].as_u64(), &retention["rows"][0]["outdated"]),
        (Some(1), &json!(true)),
        "{retention}"
    );
    let health = admin.get(&paths[3]).await.json();
    assert_eq!((health["count"].as_u64(), &health["rows"][0]["healthy"]), (Some(1), &json!(false)), "{health}");

    let csv = admin.get(&format!("{}?format=csv", paths[0])).await;
    assert!(csv.header("content-type").starts_with("text/csv"), "{}", csv.header("content-type"));
    assert!(csv.header("content-disposition").starts_with("attachment; filename=\"inventory-"));
    let text = csv.text();
    let line = text.lines().nth(1).unwrap();
    assert!(line.contains(",'@sum,") && line.contains("\"'=HYPERLINK(\"\"http://evil.test\"\""), "{text}");
    let headers = [("authorization", token.as_str()), ("accept", "text/csv, */*;q=0.1")];
    assert_eq!(hub.ask("GET", &paths[0], &headers, "").await.text(), text);
    assert_eq!(admin.get(&format!("{}?format=xls", paths[0])).await.status, 400);

    let listed = admin.get(REPORTS).await.json();
    assert_eq!(listed["reports"].as_array().unwrap().len(), 5);
    assert_eq!(listed["reports"][0]["kind"], "health", "newest first");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_reports_of_a_hub_that_died_are_made_by_another_in_their_order() {
    let mut world = World::new("hub-reports-died").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    world.site("one", json!({})).await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let admin = Administrator::of(&hub, openid);
    // Somebody makes reports already, it seems: these wait.
    let lock = format!("sites:{}:lock:sites-report", world.namespace);
    redis.command(&["SET", &lock, "somebody-else"]).await;
    let first = ask(&admin, "inventory").await;
    let second = ask(&admin, "retention").await;
    let told = admin.get(&format!("{first}?format=csv")).await;
    assert_eq!(told.status, 409, "{}", told.text());
    assert_eq!(admin.get(&second).await.json()["state"], "queued");
    hub.process.kill();
    let other = world.start_hub_process(openid).await;
    let admin = Administrator::of(&other, openid);
    assert_eq!(admin.get(&first).await.json()["state"], "queued");
    redis.command(&["DEL", &lock]).await;
    let [first, second] = [made(&admin, &first).await, made(&admin, &second).await];
    assert!(first["ended_at"].as_str() <= second["ended_at"].as_str(), "{first} {second}");
    world.end().await;
}
