//! B18: a key rotation, a key address that fails, and clocks that differ break no login.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::support::openid::Key;
use crate::support::{HUB, HubProcess, OpenId, SOON, Start, World, eventually};

const WHOAMI: &str = "/hub/api/v2/whoami/";

/// The way to a provider's keys, where they can be counted, replaced and refused.
#[derive(Clone)]
struct KeyAddress {
    port: u16,
    asked: Arc<AtomicU32>,
    keys: Arc<Mutex<Option<Value>>>,
}

impl KeyAddress {
    async fn start(keys: Option<Value>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let this = Self { port, asked: Arc::default(), keys: Arc::new(Mutex::new(keys)) };
        let own = this.clone();
        let answer = async move || -> Response {
            own.asked.fetch_add(1, Ordering::SeqCst);
            let keys = own.keys.lock().unwrap().clone();
            // An error whose body could be taken for an answer.
            keys.map_or_else(
                || (StatusCode::SERVICE_UNAVAILABLE, axum::Json(json!({"keys": []}))).into_response(),
                |keys| axum::Json(json!({"keys": [keys]})).into_response(),
            )
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        this
    }

    fn publish(&self, key: Option<&Key>) {
        *self.keys.lock().unwrap() = key.map(Key::public);
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }

    async fn hub(&self, world: &World, openid: &OpenId) -> HubProcess {
        let settings = json!({"oidc": {"jwks_url": format!("http://127.0.0.1:{}/jwks", self.port)}});
        world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b18_the_first_login_after_a_rotation_works() {
    let world = World::new("b18-rotation").await;
    let openid = OpenId::start().await;
    let address = KeyAddress::start(Some(openid.key().public())).await;
    let hub = address.hub(&world, &openid).await;
    let log_in = async |user: &str| {
        let browser = hub.browser(&openid);
        let seen = browser.log_in(&format!("{HUB}/hub/login/"), user).await.unwrap();
        assert_eq!((seen.status, seen.address.as_str()), (200, "https://sites.example.test/hub/"), "{}", seen.text);
    };
    log_in("alice").await;
    log_in("bob").await;
    assert_eq!(address.asked(), 1, "keys are kept");
    openid.rotate("second").await;
    address.publish(Some(&openid.key()));
    log_in("carol-admin").await;
    assert_eq!(address.asked(), 2, "one refetch");
    assert_eq!(hub.get(WHOAMI, &openid.token("alice")).await.status, 200);
    assert_eq!(address.asked(), 2, "and the new keys are kept");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b18_a_thousand_unknown_keys_cost_one_fetch() {
    let world = World::new("b18-flood").await;
    let openid = OpenId::get().await;
    let address = KeyAddress::start(Some(openid.key().public())).await;
    let hub = address.hub(&world, openid).await;
    assert_eq!(hub.get(WHOAMI, &openid.token("alice")).await.status, 200);
    let begun = std::time::Instant::now();
    let token = openid.token("alice");
    let (_, rest) = token.split_once('.').unwrap();
    for round in 0..20 {
        let tokens = (0..50).map(|number| {
            let header = json!({"alg": "RS256", "kid": format!("unknown-{round}-{number}"), "typ": "at+jwt"});
            format!("{}.{rest}", crate::support::openid::encoded(&header))
        });
        let asked = tokens.map(async |token| hub.get(WHOAMI, &token).await.status);
        let told = futures::future::join_all(asked).await;
        assert!(told.iter().all(|status| *status == 401), "{told:?}");
    }
    let minutes = u32::try_from(begun.elapsed().as_secs() / 60).unwrap();
    assert!(address.asked() <= 2 + minutes, "{} fetches in {minutes} min", address.asked());
    assert_eq!(hub.get(WHOAMI, &token).await.status, 200, "the known key still does");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b18_an_error_is_not_kept() {
    let world = World::new("b18-error").await;
    let openid = OpenId::get().await;
    let address = KeyAddress::start(None).await;
    let hub = address.hub(&world, openid).await;
    let token = openid.token("alice");
    let told = hub.get(WHOAMI, &token).await;
    assert_eq!(told.status, 503, "{}", told.text());
    address.publish(Some(&openid.key()));
    eventually("the keys are read", SOON, || async { hub.get(WHOAMI, &token).await.status == 200 }).await;
    // With keys in hand a failing address breaks nothing, and an unknown key is a bad token.
    address.publish(None);
    assert_eq!(hub.get(WHOAMI, &token).await.status, 200);
    let stranger = Key::new("stranger").await.sign(&openid.claims("alice"));
    assert_eq!(hub.get(WHOAMI, &stranger).await.status, 401);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b18_clocks_may_differ_by_seconds() {
    let world = World::new("b18-clocks").await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let now = jiff::Timestamp::now().as_second();
    for claim in ["iat", "nbf"] {
        let ahead = |seconds: i64| openid.token_with("alice", &json!({claim: now + seconds}));
        assert_eq!(hub.get(WHOAMI, &ahead(5)).await.status, 200, "{claim} 5 s ahead");
        let told = hub.get(WHOAMI, &ahead(600)).await;
        assert_eq!(told.status, 401, "{claim} 10 min ahead");
        assert!(told.text().contains("from the future"), "{}", told.text());
    }
    world.end().await;
}
