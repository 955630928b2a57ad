//! The Hub's own keys, derived from the platform's session key.
//!
//! Owns the derivation: what one use leaks says nothing of another, and changing the session key ends them all.

use axum_extra::extract::cookie::Key;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::error::AuthError;

/// The keys.
pub struct Secrets {
    /// Encrypts and authenticates cookies.
    pub cookies: Key,
    csrf: [u8; 32],
}

impl Secrets {
    /// By the session key.
    pub fn new(key: &SecretString) -> Result<Self, AuthError> {
        let derived = |purpose: &str| mac(key.expose_secret().as_bytes(), purpose);
        let cookies = [derived("hub/cookie-1")?, derived("hub/cookie-2")?].concat();
        Ok(Self { cookies: Key::try_from(cookies.as_slice()).map_err(|_| AuthError::Key)?, csrf: derived("hub/csrf")? })
    }

    /// What a page of this session sends along with a change.
    pub fn csrf_token(&self, session: &str) -> String {
        mac(&self.csrf, session).map(|mac| URL_SAFE_NO_PAD.encode(mac)).unwrap_or_default()
    }

    /// Whether this is that token.
    pub fn is_csrf_token(&self, session: &str, token: &str) -> bool {
        !token.is_empty() && self.csrf_token(session).as_bytes().ct_eq(token.as_bytes()).into()
    }
}

fn mac(key: &[u8], purpose: &str) -> Result<[u8; 32], AuthError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| AuthError::Key)?;
    mac.update(purpose.as_bytes());
    Ok(mac.finalize().into_bytes().into())
}
