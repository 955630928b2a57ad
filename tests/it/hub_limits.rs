//! What a caller may ask of a Hub at most, and what every answer says of itself.

use serde_json::{Value, json};

use crate::support::operator::field;
use crate::support::{OpenId, SOON, Start, World, eventually};

const WHOAMI: &str = "/hub/api/v2/whoami/";

async fn hub(settings: Value) -> (World, &'static OpenId, crate::support::HubProcess) {
    let (world, openid) = (World::new("hub-limits").await, OpenId::get().await);
    let hub = world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await;
    (world, openid, hub)
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_limits_each_caller_has_a_rate() {
    let settings = json!({"hub": {"requests_per_second": 1, "trusted_proxies": 1}});
    let (world, openid, hub) = hub(settings).await;
    let from = |address: &'static str| [("x-forwarded-for", address)];
    // A busy machine may be slower than a request a second: many at once are not.
    let many = async |headers: Vec<(&str, &str)>| {
        let asked = (0..20).map(|_| hub.ask("GET", WHOAMI, &headers, ""));
        futures::future::join_all(asked).await
    };
    let told = eventually("somebody is asked to wait", SOON, || async {
        many(from("192.0.2.1").to_vec()).await.into_iter().find(|told| told.status == 429)
    })
    .await;
    assert!(told.header("retry-after").parse::<u64>().unwrap() >= 1);
    assert!(told.json()["message"].as_str().unwrap().contains("wait"), "{}", told.text());
    assert_eq!(hub.ask("GET", WHOAMI, &from("192.0.2.2"), "").await.status, 200, "another address");
    assert_eq!(hub.ask("GET", WHOAMI, &from("192.0.2.1, 192.0.2.3"), "").await.status, 200, "ours is the last");

    // A person has their own, from wherever they ask and with whichever token.
    eventually("alice is asked to wait", SOON, || async {
        let another = || openid.token_with("alice", &json!({"jti": uuid::Uuid::new_v4()}));
        let tokens: Vec<String> = (0..20).map(|_| another()).collect();
        let asked = tokens.iter().enumerate().map(|(number, token)| {
            let hub = &hub;
            async move {
                let (address, bearer) = (format!("192.0.2.{}", 100 + number), format!("Bearer {token}"));
                let headers = [("authorization", bearer.as_str()), ("x-forwarded-for", address.as_str())];
                hub.ask("GET", WHOAMI, &headers, "").await.status
            }
        });
        futures::future::join_all(asked).await.contains(&429)
    })
    .await;
    let other = format!("Bearer {}", openid.token("bob"));
    let headers = [("authorization", other.as_str()), ("x-forwarded-for", "192.0.2.100")];
    assert_eq!(hub.ask("GET", WHOAMI, &headers, "").await.status, 200);

    // Guessing tokens is counted too, whatever they look like.
    for (guess, address) in
        [("Bearer guess", "192.0.2.50"), ("Bearer a.b.c", "192.0.2.51"), ("Basic YTpi", "192.0.2.52")]
    {
        eventually("guesses are asked to wait", SOON, || async {
            many(vec![("authorization", guess), ("x-forwarded-for", address)])
                .await
                .iter()
                .any(|told| told.status == 429)
        })
        .await;
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_limits_a_body_and_an_id_and_one_line_a_request() {
    let (world, openid, hub) = hub(json!({"hub": {"body_limit": 1024}})).await;
    let large = json!({"a": "x".repeat(2000)});
    let told = hub.json("POST", "/hub/logout/", &openid.token("alice"), &large).await;
    assert_eq!(told.status, 413, "{}", told.text());
    assert_eq!(told.json()["status"], "error");

    let path = format!("{WHOAMI}?secret=s3cret-in-a-query");
    let told = hub.get(&path, &openid.token("alice")).await;
    let id = told.header("x-request-id");
    assert!(id.len() >= 16, "{id}");
    let forged = hub.ask("GET", WHOAMI, &[("x-request-id", "forged")], "").await;
    assert_ne!(forged.header("x-request-id"), "forged", "no proxy of ours gives it");
    let line = eventually("the request has its line", SOON, || async {
        let mut lines = hub.process.logs_with("answered");
        lines.retain(|line| line["span"]["id"] == id.as_str());
        assert!(lines.len() < 2, "{lines:?}");
        lines.pop()
    })
    .await;
    assert_eq!((field(&line, "status"), field(&line, "path")), (Some(&json!(200)), Some(&json!(WHOAMI))));
    assert_eq!((&line["span"]["user"], field(&line, "method")), (&json!("alice"), Some(&json!("GET"))));
    assert!(!hub.process.log_text().contains("s3cret-in-a-query"));
    world.end().await;
}
