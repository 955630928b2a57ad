//! B21, the Hub's half: master tokens, the platform's own secrets and what callers send reach no log line at any level,
//! no Event, no status and no error.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Act, FaultProxy, HUB, HubProcess, Match, OpenId, Redis, SOON, Start, Times, World, eventually};

/// Secrets, each unlike the others from its first character.
const MASTER: &str = "Qm7-master-token-0123456789abcdef";
const SESSION: &str = "Zk3-session-key-0123456789abcdef";
const CLIENT: &str = "Wp9-client-secret-0123456789abcdef";
const HOOK: &str = "Vt5-webhook-secret-0123456789abcdef";
const REDIS: &str = "Xj8-redis-password-0123456789abcdef";
const SENT: &str = "Yb4-sent-by-a-caller-0123456789abcdef";

/// What a secret is recognised by: its beginning, as it is and in base64.
fn marks(secret: &str) -> [String; 3] {
    [&secret[..8], &STANDARD.encode(secret)[..10], &URL_SAFE_NO_PAD.encode(format!(":{secret}"))[..10]]
        .map(str::to_owned)
}

#[track_caller]
fn quiet(what: &str, text: &str) {
    for secret in [MASTER, SESSION, CLIENT, HOOK, REDIS, SENT] {
        for mark in marks(secret) {
            let at = text.find(&mark).map(|at| text[at.saturating_sub(200)..].chars().take(400).collect::<String>());
            assert!(at.is_none(), "{what} tells {secret} ({mark}): …{}", at.unwrap_or_default());
        }
    }
}

/// A Site's API that answers by what it was given, and the tokens that it saw.
async fn telltale() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/{{id}}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let own = seen.clone();
    let answer = async move |headers: HeaderMap, body: String| -> Response {
        let given = headers["authorization"].to_str().unwrap().to_owned();
        own.lock().unwrap().push(given.clone());
        // Whole, cut in its middle, and so late that a limit cuts it.
        let message = format!("{given} | {} | {body} {}{given}", &given[..20], "x".repeat(300));
        (StatusCode::INTERNAL_SERVER_ERROR, axum::Json(json!({"status": "error", "message": message}))).into_response()
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    (address, seen)
}

fn settings(redis: &str, site_address: &str) -> Value {
    json!({
        "hub": {"log_level": "TRACE", "dependency_log_level": "TRACE", "site_address": site_address},
        "session": {"secret_key": SESSION}, "redis": {"url": redis},
        "notifications": {"webhook": {"url": format!("http://u:{HOOK}@127.0.0.1:1/?key={HOOK}"), "secret": HOOK}},
        "jobs": {"notification_default_assignee": "desk"},
    })
}

/// Asks, and looks at what an error says. The status.
async fn ask(hub: &HubProcess, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> u16 {
    let mut all = vec![("content-type", "application/json")];
    all.extend(headers);
    let told = hub.ask(method, path, &all, if body.is_null() { String::new() } else { body.to_string() }).await;
    if told.status >= 400 {
        quiet(&format!("{method} {path}"), &format!("{:?} {}", told.headers, told.text()));
    }
    told.status
}

#[tokio::test(flavor = "multi_thread")]
async fn b21_no_secret_reaches_a_log_an_event_a_status_or_an_error_of_the_hub() {
    let world = World::new("b21-hub").await;
    let redis = Redis::start().await;
    let proxy = FaultProxy::start(world.lab()).await;
    let openid = OpenId::get().await;
    let (address, seen) = telltale().await;
    let kubeconfig = Some(world.hub_kubeconfig_through(&proxy).await);
    let start = Start { kubeconfig, settings: settings(&redis.url(), &address), ..Start::default() };
    let hub = world.start_hub_process_with(openid, start).await;
    let configuration = json!({"space": "docs", "tokens": {"master": MASTER}, "settings": {"monitored": true}});
    world.site("mine", json!({"owner": "alice", "configuration": configuration})).await;
    let [alice, admin, dave] = ["alice", "carol-admin", "dave"].map(|user| format!("Bearer {}", openid.token(user)));
    let (alice, admin, dave) =
        ([("authorization", alice.as_str())], [("authorization", admin.as_str())], [("authorization", dave.as_str())]);
    let site = "/hub/api/v2/sites/docs/mine/";
    eventually("the Hub knows the Site", SOON, || async {
        let status = hub.ask("GET", site, &alice, "").await.status;
        if status == 200 { Ok(()) } else { Err(status.to_string()) }
    })
    .await;

    // Who may see it does, and it is really this one that is used; nobody else learns of it.
    let token = format!("{site}master-token/");
    let shown = hub.ask("GET", &token, &alice, "").await;
    assert_eq!((shown.status, &shown.json()["token"]), (200, &json!(MASTER)));
    for (headers, status) in [(&dave[..], 404), (&[], 401)] {
        assert_eq!(ask(&hub, "GET", &token, headers, &Value::Null).await, status);
    }
    for path in [site, "/hub/api/v2/sites/", &format!("{site}status/")] {
        quiet(path, &hub.ask("GET", path, &admin, "").await.text());
    }

    // The Site's API repeats what it was given; then it cannot be reached; the API server repeats the object.
    for (method, path) in [("GET", "tokens/"), ("POST", "tokens/"), ("POST", "signed-urls/"), ("DELETE", "tokens/t1/")]
    {
        let body = if method == "POST" { json!({"label": "x"}) } else { Value::Null };
        assert_eq!(ask(&hub, method, &format!("{site}{path}"), &alice, &body).await, 500);
    }
    assert!(seen.lock().unwrap().iter().all(|given| given == &format!("Bearer {MASTER}")), "{seen:?}");
    let echo = json!({"tokens": {"master": MASTER}, "list": [{"deep": [{"value": MASTER}]}]}).to_string();
    for code in [400, 403, 422, 500] {
        let mut refusal = Act::status(code);
        if let Act::Status { message, .. } = &mut refusal {
            *message = format!("Site \"mine\" is invalid: spec.configuration: Invalid value: {echo}: no");
        }
        let fault = proxy.fault(Match::on("patch|delete", "sites"), refusal, Times::Count(3));
        assert!(ask(&hub, "PATCH", site, &alice, &json!({"quota": 5})).await >= 400, "{code}");
        assert!(ask(&hub, "POST", &format!("{site}master-token/regenerate/"), &alice, &Value::Null).await >= 400);
        assert!(ask(&hub, "DELETE", site, &alice, &Value::Null).await >= 400);
        proxy.lift(fault);
    }

    // What callers send: fields that are none, tokens, cookies, queries, forms.
    let sent =
        json!({"tokens": {"master": SENT}, "list": [{"password": SENT}], "quota": SENT, "headers": {"X-A": [SENT]}});
    for (method, path) in [("PATCH", site), ("PUT", site), ("POST", "/hub/api/v2/sites/")] {
        assert_eq!(ask(&hub, method, path, &alice, &sent).await, 400, "{method}");
    }
    let bearer = format!("Bearer {SENT}");
    assert_eq!(ask(&hub, "GET", site, &[("authorization", &bearer)], &Value::Null).await, 401);
    let basic = format!("Basic {}", STANDARD.encode(format!("alice:{SENT}")));
    assert_eq!(ask(&hub, "GET", site, &[("authorization", &basic)], &Value::Null).await, 401);
    let cookie = format!("__Secure-sites-hub={SENT}");
    let more = [("cookie", cookie.as_str()), ("x-csrf-token", SENT)];
    assert_eq!(ask(&hub, "POST", &format!("{site}toggle/?token={SENT}"), &more, &Value::Null).await, 401);
    assert_eq!(ask(&hub, "GET", &format!("/hub/callback/?code={SENT}&state={SENT}"), &[], &Value::Null).await, 400);
    assert_eq!(ask(&hub, "GET", &format!("/hub/api/v2/sites/?limit={SENT}"), &alice, &Value::Null).await, 400);
    // The notifier's address has a secret, and nobody is there.
    let why = json!({"comment": "please"});
    assert_eq!(ask(&hub, "POST", &format!("{site}requests/publish/"), &alice, &why).await, 500);
    // A session, its cookie and its form's token.
    let browser = hub.browser(openid);
    browser.log_in(&format!("{HUB}/hub/login/"), "alice").await.unwrap();
    let me = browser.request(&Method::GET, &format!("{HUB}/hub/api/v2/whoami/"), &[], "").await.unwrap();
    let me: Value = serde_json::from_slice(me.body()).unwrap();
    let csrf = me["csrf_token"].as_str().unwrap().to_owned();
    let cookies = browser.cookies_at(&format!("{HUB}/hub/"));

    // Rotated: the new one is told to who asked, and to nobody else.
    let told = hub.ask("POST", &format!("{site}master-token/regenerate/"), &alice, "").await;
    assert_eq!(told.status, 200, "{}", told.text());
    let fresh = told.json()["token"].as_str().unwrap().to_owned();
    assert_ne!(fresh, MASTER);
    assert_eq!(world.must("Site", "mine").await["spec"]["configuration"]["tokens"]["master"], fresh.as_str());

    let log = hub.process.log_text();
    quiet("the log", &log);
    let session = cookies.split_once("sites-hub=").unwrap().1.to_owned();
    for (what, secret) in [("the new token", &fresh), ("the form's token", &csrf), ("the cookie", &session)] {
        assert!(!log.contains(&secret[..8]) && !log.contains(&STANDARD.encode(secret)[..10]), "the log tells {what}");
    }
    let (jwt, _) = alice[0].1.rsplit_once('.').unwrap();
    assert!(!log.contains(&jwt[jwt.len() - 40..]), "the log tells a token of the provider");
    assert!(log.contains("TRACE") && log.contains("answered"), "it says something at every level");
    let events = world.api.list("Event", &world.namespace, "").await;
    let status = world.must("Site", "mine").await["status"].clone();
    quiet("an Event or a status", &json!([events, status]).to_string());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b21_no_secret_is_told_by_a_hub_whose_neighbours_fail() {
    let world = World::new("b21-hub-fails").await;
    let openid = OpenId::get().await;
    let mut redis = Redis::start().await;
    // A password that Redis does not want, a client that the provider does not know, and nobody behind the Service.
    let address = redis.url().replace("redis://", &format!("redis://:{REDIS}@"));
    let mut settings = settings(&address, "http://127.0.0.1:1/{id}");
    settings["oidc"] = json!({"client_secret": CLIENT});
    let hub = world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await;
    let configuration = json!({"space": "docs", "tokens": {"master": MASTER}, "settings": {"monitored": true}});
    world.site("mine", json!({"owner": "alice", "configuration": configuration})).await;
    let [alice, admin] = ["alice", "carol-admin"].map(|user| format!("Bearer {}", openid.token(user)));
    let (alice, admin) = ([("authorization", alice.as_str())], [("authorization", admin.as_str())]);
    eventually("the Hub knows the Site", SOON, || async {
        let status = hub.ask("GET", "/hub/api/v2/sites/docs/mine/", &alice, "").await.status;
        if status == 200 { Ok(()) } else { Err(status.to_string()) }
    })
    .await;

    // By the provider: a code and an opaque token, both with the client's secret.
    let browser = hub.browser(openid);
    let seen = browser.log_in(&format!("{HUB}/hub/login/"), "alice").await.unwrap();
    assert!(seen.status >= 400, "{seen:?}");
    quiet("a login that failed", &seen.text);
    let opaque = format!("Bearer {}", openid.opaque_token().await);
    assert!(ask(&hub, "GET", "/hub/api/v2/whoami/", &[("authorization", &opaque)], &Value::Null).await >= 400);
    // By Redis, twice: it is there and refuses, and it is gone. By the Site: nobody answers.
    for _ in 0..2 {
        for (method, path, status) in [
            ("POST", "/hub/api/v2/sites/upgrade/", 503),
            ("GET", "/hub/api/v2/reports/", 503),
            ("POST", "/hub/api/v2/health/probe/", 503),
            ("GET", "/hub/api/v2/sites/docs/mine/tokens/", 503),
        ] {
            let seen = ask(&hub, method, path, &admin, &Value::Null).await;
            assert_eq!(seen, status, "{method} {path}");
        }
        redis.kill();
    }
    quiet("the log", &hub.process.log_text());
    world.end().await;
}
