//! B23: the cookie secret as the container reads it is 32 bytes and nothing else, whatever the session key, and it
//! stays what it is.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::json;

use crate::support::{Start, World};

/// The value of a Site's cookie secret as its environment has it.
async fn cookie_secret(world: &World, id: &str) -> Vec<u8> {
    let secret = world.secret(&format!("{id}-oauth2")).await;
    let encoded = secret["data"]["OAUTH2_PROXY_COOKIE_SECRET"].as_str().unwrap().to_owned();
    // The API's own encoding of any Secret.
    STANDARD.decode(encoded).unwrap()
}

#[tokio::test]
async fn b23_the_container_reads_32_bytes_for_any_session_key() {
    let world = World::new("b23").await;
    let keys = [
        "k".to_owned(),
        "k".repeat(31),
        "k".repeat(32),
        "k".repeat(44),
        "k".repeat(200),
        "schlüssel-λ-鍵".to_owned(),
        "key-with-a-newline\n".to_owned(),
    ];
    let mut seen = BTreeSet::new();
    for (number, key) in keys.iter().enumerate() {
        let ids = [format!("one-{number}"), format!("two-{number}")];
        for id in &ids {
            world.site(id, json!({})).await;
        }
        let settings = json!({"session": {"secret_key": key}});
        let operator = world.start_operator_with(Start { settings, ..Start::default() }).await;
        for id in &ids {
            world.wait_ready(id).await;
            let value = cookie_secret(&world, id).await;
            let text = String::from_utf8(value.clone()).unwrap();
            assert!(!text.contains(char::is_whitespace), "{text:?}");
            assert!(![16, 24, 32].contains(&text.len()), "it is not a key as it stands");
            assert_eq!(URL_SAFE_NO_PAD.decode(&text).unwrap().len(), 32);
            assert!(URL_SAFE.decode(&text).is_err() && STANDARD.decode(&text).is_err(), "no second meaning");
            assert!(seen.insert(value), "distinct for each key and Site");
        }
        operator.stop().await;
    }
    world.end().await;
}

/// The settings refuse an empty key (see `bad_input_settings`), so no operator ever starts with one.
#[tokio::test]
async fn b23_an_empty_session_key_is_an_error() {
    let world = World::new("b23-empty").await;
    let settings = json!({"session": {"secret_key": "\n"}});
    let operator = world.start_operator_with(Start { settings, do_not_wait: true, ..Start::default() }).await;
    assert!(!operator.wait_end().await.success());
    assert!(operator.log_text().contains("session.secret_key: must not be empty"), "{}", operator.log_text());
    world.end().await;
}

#[tokio::test]
async fn b23_the_same_session_key_gives_the_same_secret() {
    let world = World::new("b23-same").await;
    world.site("alpha", json!({})).await;
    let operator = world.start_operator().await;
    world.wait_ready("alpha").await;
    let value = cookie_secret(&world, "alpha").await;
    // Rendered anew after an edit.
    world.edit_site("alpha", json!({"spec": {"owner": "bo@example.test"}})).await;
    world.wait_ready("alpha").await;
    assert_eq!(cookie_secret(&world, "alpha").await, value);
    operator.stop().await;
    // By another process, from nothing.
    assert!(world.api.delete("Secret", &world.namespace, "alpha-oauth2").await);
    let _operator = world.start_operator().await;
    crate::support::eventually("the Secret is made again", crate::support::SOON, || async {
        world.get("Secret", "alpha-oauth2").await
    })
    .await;
    assert_eq!(cookie_secret(&world, "alpha").await, value);
    world.end().await;
}
