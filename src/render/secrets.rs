//! The two Secrets of a Site and the derivation of its keys.
//!
//! Every key is derived from the platform's session key and the Site's id: the same input gives the same key,
//! so nobody is signed out by a second rendering, and no Site can compute another's.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use secrecy::ExposeSecret;
use sha2::Sha256;

use super::context::Context;
use super::error::RenderError;
use super::files::check_size;
use crate::domain::names;

/// `<id>`: the master token and the keys of the site's own servers. Every container gets it.
pub fn secret(context: &Context<'_>) -> Result<Secret, RenderError> {
    let mut data = BTreeMap::from([
        ("SIGNING_KEY".to_owned(), derived(context, "signing")?),
        ("SESSION_URL_KEY".to_owned(), derived(context, "session-url")?),
    ]);
    let master = context.site.spec.configuration.tokens.master.as_ref().map(|token| token.expose().to_owned());
    if let Some(master) = master.filter(|token| !token.is_empty()) {
        data.insert("MASTER_TOKEN".to_owned(), master);
    }
    object(context, context.id, data)
}

/// `<id>-oauth2`: what only oauth2-proxy may know.
pub fn oauth2_secret(context: &Context<'_>) -> Result<Secret, RenderError> {
    let data = BTreeMap::from([
        // 43 characters that oauth2-proxy can only read as the 32 bytes they encode: 32 hexadecimal digits
        // would also be valid base64 of 24 bytes.
        ("OAUTH2_PROXY_COOKIE_SECRET".to_owned(), derived(context, "oauth2-cookie")?),
        (
            "OAUTH2_PROXY_CLIENT_SECRET".to_owned(),
            context.settings.oidc.client_secret.expose_secret().trim_end_matches(['\r', '\n']).to_owned(),
        ),
    ]);
    object(context, &names::oauth2(context.id), data)
}

fn object(context: &Context<'_>, name: &str, data: BTreeMap<String, String>) -> Result<Secret, RenderError> {
    check_size("Secret", name, data.values().map(String::len).sum())?;
    Ok(Secret {
        metadata: context.metadata(name),
        data: Some(data.into_iter().map(|(key, value)| (key, ByteString(value.into_bytes()))).collect()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    })
}

/// Unpadded URL-safe base64 of `HMAC-SHA256(session key, "<purpose>/<id>")`.
fn derived(context: &Context<'_>, purpose: &str) -> Result<String, RenderError> {
    let key = context.settings.session.secret_key.expose_secret();
    let refused = || RenderError::setting("session.secret_key", "set a random text of at least 32 characters");
    if key.trim().is_empty() {
        return Err(refused());
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).map_err(|_| refused())?;
    mac.update(format!("{purpose}/{}", context.id).as_bytes());
    Ok(URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}
