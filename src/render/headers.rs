//! Response headers that a Site adds to its content.
//!
//! Owns how they are served: each once, byte by byte. What a Site may set is `domain`'s rule, checked again here,
//! because a Site may be older than the rule.

use std::collections::BTreeMap;

use super::error::RenderError;
use crate::domain::forms;

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
        if !forms::header_name(name) {
            return refuse("a name has 1 to 100 letters, digits and hyphens: correct it");
        }
        if forms::refused_header(name) {
            return refuse("this header belongs to the server, the connection or the whole host: remove it");
        }
        if !forms::without_control(value) {
            return refuse(
                "a value must not have control characters, as they are or percent-encoded (%0a): remove them",
            );
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }

    /// Name of nginx's variable for an application's header of this name; some names have none.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        let plain = self.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        plain.then(|| format!("upstream_http_{}", self.name.to_ascii_lowercase().replace('-', "_")))
    }
}

/// The headers of a Site, sorted by name. An empty value adds nothing. Names that differ in case are one header: its
/// values are joined by a comma, which means the same as two lines (RFC 9110, section 5.3).
pub fn checked(headers: &BTreeMap<String, String>) -> Result<Vec<Header>, RenderError> {
    let mut checked: BTreeMap<String, Header> = BTreeMap::new();
    for (name, value) in headers.iter().filter(|(_, value)| !value.trim().is_empty()) {
        let header = Header::new(name, value)?;
        checked
            .entry(name.to_ascii_lowercase())
            .and_modify(|first| first.value = format!("{}, {}", first.value, header.value))
            .or_insert(header);
    }
    Ok(checked.into_values().collect())
}
