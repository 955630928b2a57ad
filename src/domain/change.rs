//! What counts as a change of a Site, and how a change is written down.
//!
//! Owns the digest over the triggering properties (LIFE-02), the forced upgrade (LIFE-09), the stamp and the
//! baseline at a take-over; [`changed_paths`] has a file of its own. Must not decide when a pass runs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub use super::changed_paths::{PathChange, changed_paths};
use super::labels;
use super::site::{Application, Handled, Site};

/// The properties whose change makes work: the prefixes of LIFE-02, and the tokens, because a rotated master
/// token must reach the pods. A change below one of them counts.
pub const TRIGGERING: [&str; 13] = [
    "spec.name",
    "spec.owner",
    "spec.type",
    "spec.configuration.applications",
    "spec.configuration.enabled",
    "spec.configuration.headers",
    "spec.configuration.quota",
    "spec.configuration.retention_date",
    "spec.configuration.share",
    "spec.configuration.settings.error_handling",
    "spec.configuration.settings.resource_limits",
    "spec.configuration.space",
    "spec.configuration.tokens",
];

/// Fields that rendering reads and that make no work: `spec.id` cannot change, and `monitored` takes effect at
/// the next qualifying change, as in the reference.
pub const EXCEPTIONS: [&str; 2] = ["spec.id", "spec.configuration.settings.monitored"];

/// What a Site asks for, in the form that is compared with what was handled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trigger {
    /// See [`digest`].
    pub digest: String,
    /// The non-empty upgrade-request annotation. Its removal is no work: see [`Trigger::due`].
    pub upgrade_request: Option<String>,
}

impl Trigger {
    /// Whether this asks for work when `handled` has been done: another digest, or an added or changed
    /// upgrade request. A removed one asks for nothing (LIFE-09).
    #[must_use]
    pub fn due(&self, handled: &Self) -> bool {
        self.digest != handled.digest
            || (self.upgrade_request.is_some() && self.upgrade_request != handled.upgrade_request)
    }
}

/// What a Site asks for.
#[must_use]
pub fn trigger(site: &Site) -> Trigger {
    Trigger { digest: digest(site), upgrade_request: upgrade_request(site) }
}

/// The trigger that was handled.
#[must_use]
pub fn handled_trigger(handled: &Handled) -> Trigger {
    Trigger { digest: handled.digest.clone(), upgrade_request: handled.upgrade_request.clone() }
}

/// `<digest>/<upgrade_request>`: the pod template's mark of the change that its restart time belongs to.
/// The text after the slash is empty without a request.
#[must_use]
pub fn stamp(trigger: &Trigger) -> String {
    format!("{}/{}", trigger.digest, trigger.upgrade_request.as_deref().unwrap_or_default())
}

/// `v1:<sha256 hex>` over the triggering properties in canonical JSON.
///
/// Keys are sorted, applications too (by name), and what is absent equals its default: null, empty text of an
/// optional field, empty list or map, `enabled: true`, `directory_listing: true`.
#[must_use]
pub fn digest(site: &Site) -> String {
    FORMS[0].digest(site)
}

/// How a recorded digest relates to a Site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Nothing has changed.
    Current,
    /// Nothing has changed, but an older release recorded it in its own form: a status write is due, no restart.
    OlderForm,
    /// Something has changed, or the form is unknown.
    Different,
}

/// Compares a Site with the digest that `status.handled` holds, in whichever known form it is.
#[must_use]
pub fn recorded(site: &Site, handled: &str) -> Recorded {
    recorded_in(&FORMS, site, handled)
}

/// Whether a digest is in the form that this release writes: then there is nothing to carry over.
#[must_use]
pub fn in_present_form(digest: &str) -> bool {
    digest.strip_prefix(FORMS[0].version).is_some_and(|rest| rest.starts_with(':'))
}

/// What a Site needs, measured against the record of its last pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// The record is in an older release's form: it is written anew, without a pass and without a restart.
    Record,
    /// A pass with a restart.
    Work,
}

/// Compares a Site with the record of its last pass, in whichever known form that is (LIFE-02, LIFE-09).
#[must_use]
pub fn due(site: &Site, handled: &Handled) -> Due {
    let request = upgrade_request(site);
    match recorded(site, &handled.digest) {
        _ if request.is_some() && request != handled.upgrade_request => Due::Work,
        Recorded::Different => Due::Work,
        Recorded::OlderForm => Due::Record,
        Recorded::Current => Due::Nothing,
    }
}

/// One way of making a digest. A release that changes the canonical form adds one in front.
struct Form {
    version: &'static str,
    canonical: fn(&Site) -> Value,
}

impl Form {
    fn digest(&self, site: &Site) -> String {
        format!("{}:{}", self.version, labels::hex((self.canonical)(site).to_string().as_bytes()))
    }
}

/// Newest first.
const FORMS: [Form; 1] = [Form { version: "v1", canonical: triggering }];

fn recorded_in(forms: &[Form], site: &Site, handled: &str) -> Recorded {
    let same = |form: &Form| form.digest(site) == handled;
    match forms.iter().position(same) {
        Some(0) => Recorded::Current,
        Some(_) => Recorded::OlderForm,
        None => Recorded::Different,
    }
}

/// The configuration that the replaced operator handled last, as a Site of the same name.
///
/// `None` without its annotation, or when the annotation cannot be read as a Site: then the spec as it is counts as handled.
#[must_use]
pub fn kopf_baseline(site: &Site) -> Option<Site> {
    let annotation = site.metadata.annotations.as_ref()?.get(labels::KOPF_LAST_HANDLED)?;
    let essence: Value = serde_json::from_str(annotation).ok()?;
    let mut baseline: Site = serde_json::from_value(json!({
        "apiVersion": "sites.ecmwf.int/v1",
        "kind": "Site",
        "metadata": essence.get("metadata").cloned().unwrap_or_else(|| json!({})),
        "spec": essence.get("spec")?,
    }))
    .ok()?;
    baseline.metadata.name.clone_from(&site.metadata.name);
    baseline.metadata.namespace.clone_from(&site.metadata.namespace);
    baseline.metadata.uid.clone_from(&site.metadata.uid);
    Some(baseline)
}

fn upgrade_request(site: &Site) -> Option<String> {
    let request = site.metadata.annotations.as_ref()?.get(labels::UPGRADE_REQUEST)?;
    (!request.is_empty()).then(|| request.clone())
}

/// The triggering properties, keyed by path.
fn triggering(site: &Site) -> Value {
    let spec = &site.spec;
    let configuration = &spec.configuration;
    let settings = &configuration.settings;
    let properties = [
        ("spec.name", optional(spec.name.as_deref())),
        ("spec.owner", Value::from(spec.owner.as_str())),
        ("spec.type", json!(spec.site_type)),
        ("spec.configuration.applications", Value::Array(applications(&configuration.applications))),
        ("spec.configuration.enabled", if site.enabled() { Value::Null } else { Value::Bool(false) }),
        ("spec.configuration.headers", json!(configuration.headers)),
        ("spec.configuration.quota", json!(configuration.quota)),
        ("spec.configuration.retention_date", optional(configuration.retention_date.as_deref())),
        ("spec.configuration.share", json!(configuration.share)),
        ("spec.configuration.settings.error_handling", error_handling(site)),
        ("spec.configuration.settings.resource_limits", json!(settings.resource_limits)),
        ("spec.configuration.space", optional(configuration.space.as_deref())),
        (
            "spec.configuration.tokens",
            json!({"master": optional(configuration.tokens.master.as_ref().map(super::site::Secret::expose))}),
        ),
    ];
    canonical(Value::Object(properties.into_iter().map(|(path, value)| (path.to_owned(), value)).collect()))
}

fn optional(text: Option<&str>) -> Value {
    text.filter(|text| !text.is_empty()).map_or(Value::Null, Value::from)
}

fn error_handling(site: &Site) -> Value {
    let Some(handling) = &site.spec.configuration.settings.error_handling else { return Value::Null };
    let mut value = json!(handling);
    if let Value::Object(map) = &mut value
        && handling.directory_listing != Some(false)
    {
        map.remove("directory_listing");
    }
    value
}

/// Sorted by name, then by content, so that the order in the list has no meaning even with equal names.
fn applications(list: &[Application]) -> Vec<Value> {
    let mut applications: Vec<(String, String, Value)> = list
        .iter()
        .map(|application| {
            let value = canonical(json!(application));
            (application.name.clone(), value.to_string(), value)
        })
        .collect();
    applications.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    applications.into_iter().map(|(_, _, value)| value).collect()
}

/// Without nulls, empty lists and empty maps, at any depth, keys sorted whatever features `serde_json` is built
/// with. An entry of a list stays, whatever it is.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<String, Value> = map
                .into_iter()
                .map(|(key, value)| (key, canonical(value)))
                .filter(|(_, value)| !empty(value))
                .collect();
            Value::Object(sorted.into_iter().collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(canonical).collect()),
        other => other,
    }
}

fn empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(spec: &Value) -> Site {
        serde_json::from_value(
            json!({"apiVersion": "sites.ecmwf.int/v1", "kind": "Site", "metadata": {"name": "a"}, "spec": spec}),
        )
        .unwrap()
    }

    fn configured(configuration: &Value) -> Site {
        site(&json!({"id": "a", "owner": "o", "type": "public", "name": "n", "configuration": configuration}))
    }

    #[test]
    fn the_form_is_fixed() {
        // Changing this text restarts every Site of every installation: add a form instead.
        assert_eq!(
            digest(&configured(&json!({"space": "docs", "quota": 2}))),
            "v1:d03fcbafbff260f46fc4192739d5c299a6dce9b520b26633ab27f7b0842f0d59"
        );
    }

    #[test]
    fn every_triggering_property_counts() {
        let before = site(&json!({"id": "a", "owner": "o", "type": "public"}));
        for (path, value) in [
            ("spec.name", json!("n")),
            ("spec.owner", json!("p")),
            ("spec.type", json!("private")),
            ("spec.configuration.applications", json!([{"name": "site-webdav"}])),
            ("spec.configuration.enabled", json!(false)),
            ("spec.configuration.headers", json!({"X-A": ""})),
            ("spec.configuration.quota", json!(3)),
            ("spec.configuration.retention_date", json!("2027-01-01")),
            ("spec.configuration.share", json!({"view_groups": ["g"]})),
            ("spec.configuration.settings.error_handling", json!({"directory_listing": false})),
            ("spec.configuration.settings.resource_limits", json!({"cpu": "1"})),
            ("spec.configuration.space", json!("s1")),
            ("spec.configuration.tokens", json!({"master": "m"})),
        ] {
            assert!(TRIGGERING.contains(&path));
            let mut object = serde_json::to_value(&before).unwrap();
            *path.split('.').fold(&mut object, |value, key| &mut value[key]) = value;
            let after: Site = serde_json::from_value(object).unwrap();
            assert!(trigger(&after).due(&trigger(&before)), "{path}");
        }
    }

    #[test]
    fn audit_fields_and_unknown_fields_do_not_count() {
        let before = configured(&json!({"space": "docs"}));
        let after = configured(&json!({
            "space": "docs", "description": "x", "updated_by": "u", "updated_date": "2026-01-01", "registered_by": "r",
            "registered_date": "2026-01-01", "twofa": true, "settings": {"monitored": true, "twofa": true}
        }));
        assert_eq!(digest(&before), digest(&after));
    }

    #[test]
    fn absent_equals_default() {
        let plain = configured(&json!({}));
        for configuration in [
            json!({"enabled": true, "applications": [], "headers": {}, "share": {"view_users": []}, "tokens": {}}),
            json!({"settings": {"error_handling": {"directory_listing": true}, "resource_limits": {}}, "space": ""}),
            json!({"share": null, "quota": null, "tokens": {"master": ""}}),
        ] {
            assert_eq!(digest(&configured(&configuration)), digest(&plain), "{configuration}");
        }
    }

    #[test]
    fn order_of_applications_does_not_count_but_content_does() {
        let list = |apps: Value| digest(&configured(&json!({"applications": apps})));
        let a = list(json!([{"name": "site-s3"}, {"name": "site-custom", "image": "x", "env": [1, 2]}]));
        let b = list(json!([{"name": "site-custom", "env": [1, 2], "image": "x"}, {"name": "site-s3", "image": null}]));
        let c = list(json!([{"name": "site-custom", "env": [2, 1], "image": "x"}, {"name": "site-s3"}]));
        assert_eq!(a, b);
        assert_ne!(a, c);
    }

    #[test]
    fn upgrade_requests() {
        let with = |request: &str| {
            let mut site = configured(&json!({}));
            site.metadata.annotations = Some([(labels::UPGRADE_REQUEST.to_owned(), request.to_owned())].into());
            trigger(&site)
        };
        let none = trigger(&configured(&json!({})));
        assert_eq!(with(""), none);
        assert!(with("1").due(&none) && with("2").due(&with("1")));
        assert!(!none.due(&with("1")) && !with("1").due(&with("1")));
        assert_eq!(stamp(&with("1")), format!("{}/1", none.digest));
        assert!(stamp(&none).ends_with('/'));
    }

    #[test]
    fn due_against_the_record() {
        let mut site = configured(&json!({}));
        let mut handled =
            Handled { digest: digest(&site), upgrade_request: Some("1".to_owned()), ..Handled::default() };
        assert_eq!(due(&site, &handled), Due::Nothing, "a removed request");
        site.metadata.annotations = Some([(labels::UPGRADE_REQUEST.to_owned(), "2".to_owned())].into());
        assert_eq!(due(&site, &handled), Due::Work);
        handled.upgrade_request = Some("2".to_owned());
        assert_eq!(due(&site, &handled), Due::Nothing);
        handled.digest = "v0:x".to_owned();
        assert_eq!(due(&site, &handled), Due::Work);
    }

    #[test]
    fn an_older_form_is_recognised() {
        let site = configured(&json!({}));
        let forms = [Form { version: "v2", canonical: |_| json!(2) }, Form { version: "v1", canonical: triggering }];
        assert_eq!(recorded_in(&forms, &site, &forms[0].digest(&site)), Recorded::Current);
        assert_eq!(recorded_in(&forms, &site, &digest(&site)), Recorded::OlderForm);
        assert_eq!(recorded_in(&forms, &site, "v0:x"), Recorded::Different);
        assert_eq!(recorded(&site, &digest(&site)), Recorded::Current);
    }

    #[test]
    fn the_baseline_that_kopf_left() {
        let mut site = configured(&json!({"quota": 2}));
        assert!(kopf_baseline(&site).is_none());
        let leave = |site: &mut Site, essence: &str| {
            site.metadata.annotations = Some([(labels::KOPF_LAST_HANDLED.to_owned(), essence.to_owned())].into());
        };
        leave(
            &mut site,
            r#"{"spec":{"id":"a","owner":"o","type":"public","name":"n","configuration":{"quota":1,"share":null}},
                "metadata":{"labels":{"x":"y"},"annotations":{"sites.ecmwf.int/upgrade-request":"u"}}}"#,
        );
        let baseline = kopf_baseline(&site).unwrap();
        assert_eq!(baseline.spec.configuration.quota, Some(1));
        assert_eq!(trigger(&baseline).upgrade_request.as_deref(), Some("u"));
        assert!(trigger(&site).due(&trigger(&baseline)));
        for broken in ["", "{}", r#"{"spec":{"id":1}}"#] {
            leave(&mut site, broken);
            assert!(kopf_baseline(&site).is_none());
        }
    }
}
