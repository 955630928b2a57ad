//! Whether a JSON Web Token is the provider's and for us.
//!
//! Pure: keys and time come in. The same rules hold for ID tokens and access tokens. The algorithm must be one that
//! the key is for; `none` and shared secrets are not on the list.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::JsonWebKey;
use openidconnect::core::{CoreJsonWebKeySet, CoreJwsSigningAlgorithm};
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

/// Seconds that the provider's clock and ours may differ.
pub const SKEW: i64 = 60;
/// Longest token.
pub const LONGEST: usize = 32 << 10;
const ALGORITHMS: [&str; 9] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
/// Kinds of token that say who somebody is; others of the same issuer say something else (a logout, an answer).
const KINDS: [&str; 4] = ["jwt", "at+jwt", "application/jwt", "application/at+jwt"];

/// The claims of a verified token.
pub type Claims = Map<String, Value>;

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the token is refused: {}", self.words())]
pub enum Fault {
    /// It is no token.
    Malformed,
    /// It is signed in a way that is not accepted, or not at all.
    Algorithm,
    /// It is a token for something else.
    Kind,
    /// It may only be used with a proof that was not sent.
    Bound,
    /// No key of the provider made this signature.
    Signature,
    /// Another issuer.
    Issuer,
    /// It is meant for somebody else.
    Audience,
    /// It is too old.
    Expired,
    /// It is from the future.
    Early,
    /// It is not the answer to this login.
    Nonce,
    /// It names nobody.
    Subject,
    /// The provider does not know it, or nobody can be asked.
    Unknown,
}

impl Fault {
    /// Words for `error_description`.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Malformed => "it is malformed",
            Self::Algorithm => "its algorithm is not accepted",
            Self::Kind => "it is a token for another use",
            Self::Bound => "it needs a proof of possession",
            Self::Signature => "no key of the provider made its signature",
            Self::Issuer => "it has another issuer",
            Self::Audience => "it has another audience",
            Self::Expired => "it has expired",
            Self::Early => "it is from the future, look at the clocks",
            Self::Nonce => "it answers another login",
            Self::Subject => "it names nobody",
            Self::Unknown => "the provider does not know it",
        }
    }
}

/// What a token must say.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// Exactly this issuer.
    pub issuer: &'a str,
    /// This audience among its own.
    pub audience: &'a str,
    /// Seconds since 1970.
    pub now: i64,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

/// A token that was read and not verified.
pub struct Token<'a> {
    header: Header,
    algorithm: CoreJwsSigningAlgorithm,
    claims: Claims,
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> Token<'a> {
    /// Reads a token. Its claims stay inside until a key has verified them.
    pub fn read(text: &'a str) -> Result<Self, Fault> {
        if text.len() > LONGEST {
            return Err(Fault::Malformed);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(Fault::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(Fault::Malformed)?;
        let bytes = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| Fault::Malformed);
        let header: Header = serde_json::from_slice(&bytes(header)?).map_err(|_| Fault::Malformed)?;
        if !ALGORITHMS.contains(&header.alg.as_str()) {
            return Err(Fault::Algorithm);
        }
        let algorithm = serde_json::from_value(Value::from(header.alg.as_str())).map_err(|_| Fault::Algorithm)?;
        let known = |kind: &str| KINDS.contains(&kind.to_ascii_lowercase().as_str());
        if !header.typ.as_deref().is_none_or(known) || header.crit.is_some() {
            return Err(Fault::Kind);
        }
        let claims = serde_json::from_slice(&bytes(claims)?).map_err(|_| Fault::Malformed)?;
        Ok(Self { header, algorithm, claims, signed, signature: bytes(signature)? })
    }

    /// Whether it says what it must. Asked before the signature: a token that is for nobody here costs no key.
    pub fn check(&self, expected: &Expected<'_>) -> Result<(), Fault> {
        check(&self.claims, expected)
    }

    /// The claims, if one of these keys made the signature.
    #[must_use]
    pub fn verified(&self, keys: &CoreJsonWebKeySet) -> Option<&Claims> {
        let named = |kid: Option<&str>| self.header.kid.as_deref().is_none_or(|wanted| kid == Some(wanted));
        let mut candidates = keys.keys().iter().filter(|key| named(key.key_id().map(|kid| kid.as_str())));
        let message = self.signed.as_bytes();
        candidates
            .any(|key| key.verify_signature(&self.algorithm, message, &self.signature).is_ok())
            .then_some(&self.claims)
    }
}

/// Whether claims are for us and of now.
pub fn check(claims: &Claims, expected: &Expected<'_>) -> Result<(), Fault> {
    if claims.get("iss").and_then(Value::as_str) != Some(expected.issuer) {
        return Err(Fault::Issuer);
    }
    let meant = match claims.get("aud") {
        Some(Value::String(audience)) => audience == expected.audience,
        Some(Value::Array(all)) => all.iter().any(|audience| audience == expected.audience),
        _ => false,
    };
    if !meant {
        return Err(Fault::Audience);
    }
    if claims.contains_key("cnf") {
        return Err(Fault::Bound);
    }
    let until = seconds(claims, "exp")?.ok_or(Fault::Malformed)?;
    if until.saturating_add(SKEW) <= expected.now {
        return Err(Fault::Expired);
    }
    for moment in ["nbf", "iat"] {
        if seconds(claims, moment)?.is_some_and(|moment| moment > expected.now.saturating_add(SKEW)) {
            return Err(Fault::Early);
        }
    }
    Ok(())
}

/// A moment of the claims, in whole seconds since 1970.
pub fn seconds(claims: &Claims, name: &str) -> Result<Option<i64>, Fault> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        #[expect(clippy::cast_possible_truncation, reason = "a cast saturates, and such a time is far away")]
        Some(value) => value.as_f64().map(|seconds| Some(seconds as i64)).ok_or(Fault::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const EXPECTED: Expected<'_> = Expected { issuer: "https://id", audience: "sites", now: 1000 };

    fn claims(over: &Value) -> Claims {
        let mut all = json!({"iss": "https://id", "aud": "sites", "exp": 2000, "sub": "ana"});
        let (Value::Object(all), Value::Object(over)) = (&mut all, over) else { panic!("objects") };
        all.extend(over.clone());
        all.clone()
    }

    #[test]
    fn claims_are_for_us_and_of_now() {
        for (over, result) in [
            (json!({}), Ok(())),
            (json!({"aud": ["x", "sites"]}), Ok(())),
            (json!({"aud": "sites2"}), Err(Fault::Audience)),
            (json!({"aud": ["sites2", 7]}), Err(Fault::Audience)),
            (json!({"aud": null}), Err(Fault::Audience)),
            (json!({"iss": "https://id/"}), Err(Fault::Issuer)),
            (json!({"iss": "https://id.evil.test"}), Err(Fault::Issuer)),
            (json!({"exp": 941}), Ok(())),
            (json!({"exp": 940}), Err(Fault::Expired)),
            (json!({"exp": "2000"}), Err(Fault::Malformed)),
            (json!({"exp": null}), Err(Fault::Malformed)),
            (json!({"iat": 1005}), Ok(())),
            (json!({"iat": 1060.5, "nbf": 1060}), Ok(())),
            (json!({"iat": 1600}), Err(Fault::Early)),
            (json!({"nbf": 1061}), Err(Fault::Early)),
            (json!({"nbf": 1e300}), Err(Fault::Early)),
            (json!({"cnf": {"jkt": "x"}}), Err(Fault::Bound)),
        ] {
            assert_eq!(check(&claims(&over), &EXPECTED), result, "{over}");
        }
    }

    #[test]
    fn what_is_no_signed_token_is_not_read() {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let token = |header: Value| format!("{}.{}.AAAA", part(&header), part(&json!({})));
        for (text, fault) in [
            (String::new(), Fault::Malformed),
            ("a.b".to_owned(), Fault::Malformed),
            ("a.b.c.d".to_owned(), Fault::Malformed),
            ("a".repeat(LONGEST + 1), Fault::Malformed),
            (token(json!({"kid": "x"})), Fault::Malformed),
            (token(json!({"alg": "none"})), Fault::Algorithm),
            (token(json!({"alg": "None"})), Fault::Algorithm),
            (token(json!({"alg": "HS256"})), Fault::Algorithm),
            (token(json!({"alg": "RS256", "typ": "logout+jwt"})), Fault::Kind),
            (token(json!({"alg": "RS256", "crit": ["x"]})), Fault::Kind),
        ] {
            assert_eq!(Token::read(&text).err(), Some(fault), "{text:.60}");
        }
        let read = token(json!({"alg": "RS256", "typ": "JWT"}));
        assert!(Token::read(&read).unwrap().verified(&CoreJsonWebKeySet::default()).is_none());
    }
}
