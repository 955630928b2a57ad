//! B23: the derived secrets, read as the containers read them.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use k8s_openapi::api::core::v1::Secret;

use super::{observed, settings, site};
use crate::render::{RenderError, render};

fn text(secret: &Secret, key: &str) -> String {
    String::from_utf8(secret.data.as_ref().unwrap()[key].0.clone()).unwrap()
}

fn cookie_secret(session_key: &str, site_name: &str) -> Result<String, RenderError> {
    let mut settings = settings();
    settings.session.secret_key = session_key.to_owned().into();
    let desired = render(&site(site_name), &settings, &observed())?;
    Ok(text(&desired.oauth2_secret, "OAUTH2_PROXY_COOKIE_SECRET"))
}

#[test]
fn b23_the_cookie_secret_means_32_bytes_and_nothing_else() {
    let mut seen = BTreeSet::new();
    for key in [
        "k".to_owned(),
        "k".repeat(31),
        "k".repeat(32),
        "k".repeat(44),
        "k".repeat(200),
        "schlüssel-λ".to_owned(),
        "key\n".to_owned(),
    ] {
        for name in ["docs", "data"] {
            let secret = cookie_secret(&key, name).unwrap();
            assert_eq!(secret, cookie_secret(&key, name).unwrap());
            assert_eq!(secret.len(), 43, "no size that oauth2-proxy would take as it is (16, 24, 32)");
            assert!(secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{secret}");
            assert_eq!(URL_SAFE_NO_PAD.decode(&secret).unwrap().len(), 32);
            assert!(URL_SAFE.decode(&secret).is_err() && STANDARD.decode(&secret).is_err());
            assert!(seen.insert(secret), "distinct for each key and Site");
        }
    }
}

#[test]
fn b23_an_empty_session_key_is_an_error() {
    for key in ["", "\n", "  "] {
        let error = cookie_secret(key, "docs").unwrap_err();
        assert!(matches!(&error, RenderError::Setting { key, .. } if key == "session.secret_key"), "{error}");
    }
}

#[test]
fn keys_differ_by_purpose_and_the_master_token_is_absent_when_there_is_none() {
    let desired = render(&site("dashboard"), &settings(), &observed()).unwrap();
    assert_eq!(text(&desired.secret, "MASTER_TOKEN"), "master-token-of-dash");
    let keys: BTreeSet<String> = [
        text(&desired.secret, "SIGNING_KEY"),
        text(&desired.secret, "SESSION_URL_KEY"),
        text(&desired.oauth2_secret, "OAUTH2_PROXY_COOKIE_SECRET"),
    ]
    .into();
    assert_eq!(keys.len(), 3);
    let without = render(&site("docs"), &settings(), &observed()).unwrap();
    assert!(!without.secret.data.unwrap().contains_key("MASTER_TOKEN"));
}
