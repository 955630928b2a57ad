//! Signed URLs: one path, one method, until a moment. Whoever has the address may do that, and nothing else.
//!
//! Owns their form: `?sites-expires=<Unix seconds>&sites-method=<METHOD>&sites-signature=<base64url>`, an HMAC-SHA256
//! over version, site, method, moment and path. The key hangs on the master token too: rotating it ends all of them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use http::Method;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Serialize;
use sha2::Sha256;
use thiserror::Error;
use utoipa::ToSchema;

use super::refusal::Refusal;
use crate::runtime::content::{PathError, SitePath};

/// Longest life, in seconds: 30 days.
const MAX_DURATION: i64 = 30 * 24 * 3600;
/// What a path segment need not encode.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const INVALID: Refusal = Refusal::Forbidden("the signed URL is not valid");
const EXPIRED: Refusal = Refusal::Forbidden("the signed URL has expired");

/// Why a URL cannot be signed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum UrlError {
    /// Not a path of the site.
    #[error("url: {0}")]
    Path(#[from] PathError),
    /// Another site's, or no path at all.
    #[error("url: give a path of this site, or an address that begins with {0}")]
    Foreign(String),
    /// Something that a signature must not open.
    #[error("url: content and, below s/api/v2/files/, the API's files can be signed, nothing else")]
    Closed,
    /// A method that makes no sense there.
    #[error("method: GET for content; GET, PUT or DELETE below s/api/v2/files/")]
    Method,
    /// Too short or too long.
    #[error("duration: give 1 to {MAX_DURATION} seconds")]
    Duration,
}

/// What is to be said about a signed URL.
#[derive(Serialize, ToSchema, Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the site would serve it now.
    pub valid: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
}

/// Signs and checks.
pub struct SignedUrls {
    mac: Hmac<Sha256>,
    site: String,
    public_url: String,
    prefix: String,
}

struct Parts {
    expires: i64,
    method: Method,
    signature: Vec<u8>,
}

impl SignedUrls {
    /// For one site. `public_url` ends with a slash; `prefix` is its path without one.
    #[must_use]
    pub fn new(key: Hmac<Sha256>, site: &str, public_url: &str, prefix: &str) -> Self {
        Self { mac: key, site: site.to_owned(), public_url: public_url.to_owned(), prefix: prefix.to_owned() }
    }

    /// The signed address, and when it ends.
    pub fn create(
        &self,
        url: &str,
        method: &Method,
        duration: i64,
        now: Timestamp,
    ) -> Result<(String, Timestamp), UrlError> {
        if !(1..=MAX_DURATION).contains(&duration) {
            return Err(UrlError::Duration);
        }
        let path = self.path_of(url)?;
        let segments: Vec<&str> = path.segments().iter().map(String::as_str).collect();
        let files = match segments.as_slice() {
            ["s", "api", "v1" | "v2", "files", _, ..] => true,
            ["s" | "oauth2", ..] => return Err(UrlError::Closed),
            _ => false,
        };
        if !(*method == Method::GET || files && [Method::PUT, Method::DELETE].contains(method)) {
            return Err(UrlError::Method);
        }
        let expires = now.as_second() + duration;
        let signature = URL_SAFE_NO_PAD.encode(self.mac(method, expires, &path).finalize().into_bytes());
        let encoded: Vec<String> =
            segments.iter().map(|segment| utf8_percent_encode(segment, SEGMENT).to_string()).collect();
        let slash = if url.split(['?', '#']).next().is_some_and(|path| path.ends_with('/')) && !encoded.is_empty() {
            "/"
        } else {
            ""
        };
        let signed = format!(
            "{}{}{slash}?sites-expires={expires}&sites-method={method}&sites-signature={signature}",
            self.public_url,
            encoded.join("/"),
        );
        Ok((signed, Timestamp::from_second(expires).unwrap_or(Timestamp::MAX)))
    }

    /// The method that a request's signature opens its path for; `None` if it has no signature.
    ///
    /// `path` is relative to the site's public path.
    pub fn check(
        &self,
        query: &str,
        method: &Method,
        path: Option<&SitePath>,
        now: Timestamp,
    ) -> Result<Option<Method>, Refusal> {
        let Some(parts) = parts(query)? else { return Ok(None) };
        let asked = if *method == Method::HEAD { &Method::GET } else { method };
        let mac = self.mac(&parts.method, parts.expires, path.ok_or(INVALID)?);
        if mac.verify_slice(&parts.signature).is_err() || *asked != parts.method {
            return Err(INVALID);
        }
        if parts.expires <= now.as_second() {
            return Err(EXPIRED);
        }
        Ok(Some(parts.method))
    }

    /// Whether the site would serve this address now, to anybody who has it.
    #[must_use]
    pub fn verify(&self, url: &str, now: Timestamp) -> Verdict {
        let no = |reason| Verdict { valid: false, reason: Some(reason) };
        let query = url.split_once('?').map_or("", |(_, query)| query);
        let Ok(path) = self.path_of(url) else { return no("the address is not this site's") };
        let method = match parts(query) {
            Ok(Some(parts)) => parts.method,
            Ok(None) => return no("the address is not signed"),
            Err(_) => return no("the signature is not valid"),
        };
        match self.check(query, &method, Some(&path), now) {
            Ok(_) => Verdict { valid: true, reason: None },
            Err(refusal) if refusal == EXPIRED => no("the signed URL has expired"),
            Err(_) => no("the signature is not valid"),
        }
    }

    /// The path below the site's public one, of an address or of a path with or without the public one.
    fn path_of(&self, url: &str) -> Result<SitePath, UrlError> {
        let url = url.split(['?', '#']).next().unwrap_or_default();
        let below = if let Some(below) = url.strip_prefix(&self.public_url) {
            below
        } else if url.contains("://") || url.starts_with("//") {
            return Err(UrlError::Foreign(self.public_url.clone()));
        } else {
            match url.strip_prefix(&self.prefix) {
                Some(below) if below.is_empty() || below.starts_with('/') => below,
                _ => url,
            }
        };
        Ok(SitePath::from_encoded(below)?)
    }

    fn mac(&self, method: &Method, expires: i64, path: &SitePath) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(format!("signed-url/v1\n{}\n{method}\n{expires}\n{path}", self.site).as_bytes());
        mac
    }
}

/// The three parameters; repeated or broken ones make the whole invalid.
fn parts(query: &str) -> Result<Option<Parts>, Refusal> {
    let value = |name: &str| -> Result<Option<String>, Refusal> {
        let mut found = query.split('&').filter_map(|pair| pair.split_once('=')).filter(|(key, _)| *key == name);
        let value = found.next().map(|(_, value)| percent_decode_str(value).decode_utf8_lossy().into_owned());
        if found.next().is_some() { Err(INVALID) } else { Ok(value) }
    };
    let Some(signature) = value("sites-signature")? else { return Ok(None) };
    let parts = (|| {
        Some(Parts {
            expires: value("sites-expires").ok()??.parse().ok()?,
            method: value("sites-method").ok()??.parse().ok()?,
            signature: URL_SAFE_NO_PAD.decode(&signature).ok()?,
        })
    })();
    parts.map(Some).ok_or(INVALID)
}

#[cfg(test)]
mod tests {
    use hmac::KeyInit;

    use super::*;

    fn urls() -> SignedUrls {
        let key = Hmac::new_from_slice(b"key").unwrap();
        SignedUrls::new(key, "plans", "https://sites.example.org/team/plans/", "/team/plans")
    }

    #[test]
    fn one_path_one_method_for_a_time() {
        let (urls, now) = (urls(), Timestamp::from_second(1_000_000).unwrap());
        let path = |text| SitePath::from_text(text).unwrap();
        for url in ["a b/ü.pdf", "/team/plans/a%20b/ü.pdf", "https://sites.example.org/team/plans/a%20b/%C3%BC.pdf?x#y"]
        {
            let (signed, end) = urls.create(url, &Method::GET, 60, now).unwrap();
            assert!(
                signed.starts_with("https://sites.example.org/team/plans/a%20b/%C3%BC.pdf?sites-expires="),
                "{signed}"
            );
            assert_eq!(end.as_second(), 1_000_060);
            let query = signed.split_once('?').unwrap().1;
            let check = |method, text, now| urls.check(query, method, Some(&path(text)), now);
            assert_eq!(check(&Method::GET, "a b/ü.pdf", now), Ok(Some(Method::GET)));
            assert_eq!(check(&Method::HEAD, "a b/ü.pdf", now), Ok(Some(Method::GET)));
            assert_eq!(check(&Method::PUT, "a b/ü.pdf", now), Err(INVALID));
            assert_eq!(check(&Method::GET, "a b/u.pdf", now), Err(INVALID));
            assert_eq!(check(&Method::GET, "a b/ü.pdf", end), Err(EXPIRED));
            assert!(urls.verify(&signed, now).valid && !urls.verify(&signed, end).valid);
            for at in query.match_indices(|letter: char| letter.is_ascii_alphanumeric()).map(|(at, _)| at) {
                let mut changed = query.to_owned();
                let other = if query.as_bytes()[at] == b'1' { "2" } else { "1" };
                changed.replace_range(at..=at, other);
                // The last letter of base64 has bits that mean nothing; strict decoding refuses them.
                let answer = urls.check(&changed, &Method::GET, Some(&path("a b/ü.pdf")), now);
                assert_ne!(answer, Ok(Some(Method::GET)), "{changed}");
            }
        }
    }

    #[test]
    fn refused() {
        let (urls, now) = (urls(), Timestamp::UNIX_EPOCH);
        let create = |url, method: &Method, seconds| urls.create(url, method, seconds, now).map(|_| ());
        assert_eq!(create("a", &Method::GET, 0), Err(UrlError::Duration));
        assert_eq!(create("a", &Method::GET, MAX_DURATION + 1), Err(UrlError::Duration));
        assert_eq!(create("a", &Method::PUT, 1), Err(UrlError::Method));
        assert_eq!(create("s/api/v2/files/a", &Method::PUT, 1), Ok(()));
        assert_eq!(create("s/api/v2/files/a", &Method::POST, 1), Err(UrlError::Method));
        for closed in ["s/api/v2/tokens", "s/dav/x", "/team/plans/oauth2/start", "s/api/v2/files"] {
            assert_eq!(create(closed, &Method::GET, 1), Err(UrlError::Closed), "{closed}");
        }
        for foreign in ["https://evil.example.org/a", "//evil.example.org/a"] {
            assert!(matches!(create(foreign, &Method::GET, 1), Err(UrlError::Foreign(_))));
        }
        assert!(matches!(create("a/%2e%2e/b", &Method::GET, 1), Err(UrlError::Path(_))));
        assert_eq!(urls.check("a=1", &Method::GET, None, now), Ok(None));
        assert_eq!(urls.check("sites-signature=x&sites-signature=x", &Method::GET, None, now), Err(INVALID));
    }
}
