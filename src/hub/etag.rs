//! The version of a Site that a person edits.
//!
//! Owns the entity tag: a short hash of each field that the Hub can change. From an old tag alone it follows which
//! fields changed since, so an edit over somebody else's names them, and an edit over a mere status write goes on.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::domain::site::Site;

/// Bytes of a field's hash: two different values look alike once in 16 million times.
const BYTES: usize = 3;

/// The fields, in the order of their hashes. A new one goes to the end.
const FIELDS: [(&str, &str); 17] = [
    ("owner", "/owner"),
    ("type", "/type"),
    ("name", "/name"),
    ("space", "/configuration/space"),
    ("enabled", "/configuration/enabled"),
    ("applications", "/configuration/applications"),
    ("headers", "/configuration/headers"),
    ("quota", "/configuration/quota"),
    ("retention_date", "/configuration/retention_date"),
    ("share.administrator_users", "/configuration/share/administrator_users"),
    ("share.administrator_groups", "/configuration/share/administrator_groups"),
    ("share.view_users", "/configuration/share/view_users"),
    ("share.view_groups", "/configuration/share/view_groups"),
    ("settings.resource_limits", "/configuration/settings/resource_limits"),
    ("settings.error_handling", "/configuration/settings/error_handling"),
    ("settings.monitored", "/configuration/settings/monitored"),
    ("description", "/configuration/description"),
];

/// The entity tag of a Site, with its quotes.
#[must_use]
pub fn etag(site: &Site) -> String {
    format!("\"{}\"", URL_SAFE_NO_PAD.encode(hashes(site)))
}

/// The fields that changed since a tag was given; empty when the edit may go on. `None`: not a tag of ours.
#[must_use]
pub fn changed_since(tag: &str, site: &Site) -> Option<Vec<&'static str>> {
    let text = tag.trim().strip_prefix('"')?.strip_suffix('"')?;
    let old = URL_SAFE_NO_PAD.decode(text).ok().filter(|old| old.len() == FIELDS.len() * BYTES)?;
    let new = hashes(site);
    let pairs = old.chunks(BYTES).zip(new.chunks(BYTES)).zip(FIELDS);
    Some(pairs.filter(|((old, new), _)| old != new).map(|(_, (field, _))| field).collect())
}

fn hashes(site: &Site) -> Vec<u8> {
    let spec = serde_json::to_value(&site.spec).unwrap_or_default();
    let hash = |pointer: &str| {
        let value = spec.pointer(pointer).unwrap_or(&Value::Null);
        Sha256::digest(value.to_string()).into_iter().take(BYTES)
    };
    FIELDS.iter().flat_map(|(_, pointer)| hash(pointer)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::catalog::index::tests::site;
    use super::*;

    #[test]
    fn a_tag_names_the_fields_that_changed() {
        let mut edited = site("a", "docs", "fdb", "ana", "private");
        let tag = etag(&edited);
        assert_eq!(changed_since(&tag, &edited), Some(vec![]));
        edited.status = Some(crate::domain::site::SiteStatus::default());
        edited.metadata.resource_version = Some("9".to_owned());
        edited.spec.configuration.updated_by = Some("ben".to_owned());
        assert_eq!(changed_since(&tag, &edited), Some(vec![]), "audit and status are nobody's edit");
        edited.spec.configuration.share.view_users.push("cleo".to_owned());
        edited.spec.configuration.description = Some("x".to_owned());
        assert_eq!(changed_since(&tag, &edited), Some(vec!["share.view_users", "description"]));
        for bad in ["", "*", "\"\"", "W/\"x\"", "\"eA\"", "x"] {
            assert_eq!(changed_since(bad, &edited), None, "{bad}");
        }
    }
}
