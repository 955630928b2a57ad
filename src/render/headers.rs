//! Response headers that a Site adds to its content.
//!
//! Owns which names and values can be served. Refuses instead of repairing: a value that is served is served byte by byte.

use std::collections::BTreeMap;

use super::error::RenderError;

/// nginx reads no single word of its configuration beyond 4,096 bytes.
const QUOTED_LENGTH: usize = 4000;
/// Long enough for every registered name.
const NAME_LENGTH: usize = 100;

/// Headers that describe the transfer or the file, or that belong to the platform.
const REFUSED: [&str; 26] = [
    "accept-ranges",
    "age",
    "alt-svc",
    "connection",
    "date",
    "etag",
    "expect",
    "host",
    "keep-alive",
    "last-modified",
    "location",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "retry-after",
    "server",
    "set-cookie",
    "set-cookie2",
    "status",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "www-authenticate",
    "x-sites-login",
];
/// The `Content-` headers that describe what a page may do, not how its bytes are sent.
const CONTENT_ALLOWED: [&str; 2] = ["content-security-policy", "content-security-policy-report-only"];

/// One header that can be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// As the Site spells it.
    pub name: String,
    /// As the Site gave it.
    pub value: String,
}

impl Header {
    /// Checks one header.
    pub fn new(name: &str, value: &str) -> Result<Self, RenderError> {
        let refuse = |rule: &str| Err(RenderError::Header { name: name.to_owned(), rule: rule.to_owned() });
        let lower = name.to_ascii_lowercase();
        let begins = name.starts_with(|first: char| first.is_ascii_alphanumeric());
        let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if !begins || !letters || name.len() > NAME_LENGTH {
            return refuse("a name has 1 to 100 letters, digits, '-' and '_'");
        }
        if REFUSED.contains(&lower.as_str()) || lower.starts_with("x-accel-") {
            return refuse("this header belongs to the transfer or to the platform: remove it");
        }
        if lower.starts_with("content-") && !CONTENT_ALLOWED.contains(&lower.as_str()) {
            return refuse("this header describes the file that is sent: remove it");
        }
        if value.chars().any(char::is_control) || hides_control(value) {
            return refuse(
                "a value must not contain control characters, nor their form with a percent sign such as %0a",
            );
        }
        if super::nginx::quoted(value).len() > QUOTED_LENGTH {
            return refuse("a value must be shorter than 4000 bytes");
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

/// The headers of a Site, sorted by name. An empty value adds nothing.
pub fn checked(headers: &BTreeMap<String, String>) -> Result<Vec<Header>, RenderError> {
    let mut checked: BTreeMap<String, Header> = BTreeMap::new();
    for (name, value) in headers.iter().filter(|(_, value)| !value.trim().is_empty()) {
        let header = Header::new(name, value)?;
        if checked.insert(name.to_ascii_lowercase(), header).is_some() {
            return Err(RenderError::Header {
                name: name.clone(),
                rule: "upper and lower case are the same header: give it once".to_owned(),
            });
        }
    }
    Ok(checked.into_values().collect())
}

/// Whether a percent-encoded control character is in a text: whoever decodes it later would see it.
fn hides_control(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.windows(3).any(|window| {
        window[0] == b'%'
            && std::str::from_utf8(&window[1..])
                .ok()
                .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
                .and_then(|digits| u8::from_str_radix(digits, 16).ok())
                .is_some_and(|byte| byte < 0x20 || byte == 0x7f)
    })
}
