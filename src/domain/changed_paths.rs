//! The paths at which two versions of a Site differ, with values that a log may show.
//!
//! Owns the listing for the operator's log lines (paths at info, values at debug). What a change triggers is
//! decided in [`super::change`] alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::labels;
use super::mask;
use super::site::Site;

/// One differing path. Values are masked and cut: see [`super::mask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// Such as `spec.configuration.applications[site-custom].image`.
    pub path: String,
    /// `None`: was absent.
    pub old: Option<String>,
    /// `None`: is absent now.
    pub new: Option<String>,
}

/// Differing leaves of the two specs, and the upgrade request, sorted by path.
///
/// Lists of objects with a `name` are matched by it, so an order of applications is no difference. Values under
/// `tokens` and of fields whose name looks like a secret, at any depth, are masked.
#[must_use]
pub fn changed_paths(old: &Site, new: &Site) -> Vec<PathChange> {
    let (before, after) = (leaves(old), leaves(new));
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    paths
        .into_iter()
        .filter(|path| before.get(*path) != after.get(*path))
        .map(|path| PathChange {
            path: path.clone(),
            old: before.get(path).map(Leaf::shown),
            new: after.get(path).map(Leaf::shown),
        })
        .collect()
}

#[derive(PartialEq)]
struct Leaf {
    value: Value,
    secret: bool,
}

impl Leaf {
    fn shown(&self) -> String {
        if self.secret { mask::MASK.to_owned() } else { mask::shown(&self.value) }
    }
}

fn leaves(site: &Site) -> BTreeMap<String, Leaf> {
    let mut found = BTreeMap::new();
    // A spec of plain types always has a JSON form.
    collect("spec".to_owned(), serde_json::to_value(&site.spec).unwrap_or_default(), false, &mut found);
    if let Some(request) = site.metadata.annotations.as_ref().and_then(|all| all.get(labels::UPGRADE_REQUEST)) {
        let path = format!("metadata.annotations[{}]", labels::UPGRADE_REQUEST);
        found.insert(path, Leaf { value: Value::from(request.as_str()), secret: false });
    }
    found
}

fn collect(path: String, value: Value, secret: bool, found: &mut BTreeMap<String, Leaf>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let secret = secret || mask::secret_name(&key);
                collect(format!("{path}.{}", mask::shown(&Value::from(key))), value, secret, found);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.into_iter().enumerate() {
                let name = value.get("name").and_then(Value::as_str).map(str::to_owned);
                let secret = secret || name.as_deref().is_some_and(mask::secret_name);
                let key = name.map_or_else(|| index.to_string(), |name| mask::shown(&Value::from(name)));
                collect(format!("{path}[{key}]"), value, secret, found);
            }
        }
        Value::Null => {}
        value => {
            found.insert(path, Leaf { value, secret });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn site(configuration: &Value) -> Site {
        serde_json::from_value(json!({"apiVersion": "sites.ecmwf.int/v1", "kind": "Site", "metadata": {"name": "a"},
            "spec": {"id": "a", "owner": "o", "type": "public", "configuration": configuration}}))
        .unwrap()
    }

    fn changes(old: &Value, new: &Value) -> Vec<(String, Option<String>, Option<String>)> {
        changed_paths(&site(old), &site(new)).into_iter().map(|change| (change.path, change.old, change.new)).collect()
    }

    #[test]
    fn names_the_leaves() {
        let old = json!({"quota": 1, "share": {"view_users": ["ana"]}, "applications": [{"name": "site-s3"}, {"name": "site-custom", "image": "x:1"}]});
        let new = json!({"quota": 2, "share": {"view_users": ["ana", "bo"]}, "applications": [{"name": "site-custom", "image": "x:2"}, {"name": "site-s3"}]});
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            changes(&old, &new),
            [
                ("spec.configuration.applications[site-custom].image".to_owned(), text("x:1"), text("x:2")),
                ("spec.configuration.quota".to_owned(), text("1"), text("2")),
                ("spec.configuration.share.view_users[1]".to_owned(), None, text("bo")),
            ]
        );
        assert!(changes(&old, &old).is_empty());
    }

    #[test]
    fn masks_secrets_at_any_depth() {
        let old = json!({});
        let new = json!({
            "tokens": {"master": "hunter2"},
            "headers": {"Authorization": "hunter2"},
            "applications": [{"name": "site-custom", "image": "https://u:hunter2@h/i",
                "env": [{"name": "GITHUB_TOKEN", "value": "hunter2"}], "database": {"password": {"text": "hunter2"}}}],
        });
        let changes = changes(&old, &new);
        assert_eq!(changes.len(), 7, "{changes:?}");
        assert!(!format!("{changes:?}").contains("hunter2"), "{changes:?}");
        let rotated = json!({"tokens": {"master": "hunter3"}});
        assert_eq!(self::changes(&json!({"tokens": {"master": "hunter2"}}), &rotated).len(), 1);
    }

    #[test]
    fn cuts_long_values_and_names_the_upgrade_request() {
        let mut new = site(&json!({"description": "x".repeat(500)}));
        new.metadata.annotations = Some([(labels::UPGRADE_REQUEST.to_owned(), "u".to_owned())].into());
        let changes = changed_paths(&site(&json!({})), &new);
        assert_eq!(changes[0].path, "metadata.annotations[sites.ecmwf.int/upgrade-request]");
        assert_eq!(changes[1].new.as_ref().unwrap().chars().count(), 120);
    }
}
