//! Every field of the spec that rendering reads changes the output; and nothing does that makes no work.

use serde_json::{Value, json};

use super::{objects, observed, settings};
use crate::domain::change::{EXCEPTIONS, digest};
use crate::domain::site::Site;
use crate::render::render;

/// A Site with every field set.
fn full() -> Value {
    json!({
        "apiVersion": "sites.ecmwf.int/v1",
        "kind": "Site",
        "metadata": { "name": "full", "namespace": "sites", "uid": "00000000-0000-4000-8000-00000000000f" },
        "spec": {
            "id": "full", "owner": "ana", "type": "private", "name": "site",
            "configuration": {
                "space": "space", "enabled": true, "quota": 3,
                "applications": [{ "name": "site-webdav", "image": "images.example.org/sites:1" }],
                "headers": { "X-One": "1" },
                "retention_date": "2030-01-01", "registered_date": "2020-01-01",
                "share": {
                    "administrator_users": ["a"], "administrator_groups": ["b"],
                    "view_users": ["c"], "view_groups": ["d"],
                },
                "settings": {
                    "resource_limits": { "cpu": "1", "memory": "1Gi" },
                    "error_handling": { "directory_listing": true, "not_found_page": "/404.html" },
                    "monitored": false,
                },
                "tokens": { "master": "token" },
                "description": "text", "registered_by": "ana", "updated_by": "ana", "updated_date": "2020-01-01",
            },
        },
    })
}

/// Path of a field and another value of it.
fn read_by_rendering() -> Vec<(&'static str, Value)> {
    vec![
        ("spec.id", json!("other")),
        ("spec.owner", json!("bob")),
        ("spec.type", json!("public")),
        ("spec.name", json!("other")),
        ("spec.configuration.space", json!("other")),
        ("spec.configuration.enabled", json!(false)),
        ("spec.configuration.quota", json!(4)),
        ("spec.configuration.applications", json!([])),
        ("spec.configuration.applications.0.image", json!("images.example.org/sites:2")),
        ("spec.configuration.headers", json!({ "X-One": "2" })),
        ("spec.configuration.retention_date", json!("2031-01-01")),
        ("spec.configuration.share.administrator_users", json!(["x"])),
        ("spec.configuration.share.administrator_groups", json!(["x"])),
        ("spec.configuration.share.view_users", json!(["x"])),
        ("spec.configuration.share.view_groups", json!(["x"])),
        ("spec.configuration.settings.error_handling.directory_listing", json!(false)),
        ("spec.configuration.settings.error_handling.not_found_page", json!("/missing.html")),
        ("spec.configuration.settings.monitored", json!(true)),
        ("spec.configuration.tokens.master", json!("other")),
    ]
}

/// Fields that only the custom application has a use for.
fn read_for_a_custom_application() -> Vec<(&'static str, Value)> {
    vec![
        ("spec.configuration.applications.0.image", json!("images.example.org/app:2")),
        ("spec.configuration.settings.resource_limits.cpu", json!("2")),
        ("spec.configuration.settings.resource_limits.memory", json!("2Gi")),
    ]
}

const AUDIT: [&str; 5] = ["description", "registered_by", "registered_date", "updated_by", "updated_date"];

fn with(site: &Value, path: &str, value: Value) -> Value {
    let mut changed = site.clone();
    *changed.pointer_mut(&format!("/{}", path.replace('.', "/"))).unwrap() = value;
    changed
}

fn parse(site: &Value) -> Site {
    serde_json::from_value(site.clone()).unwrap()
}

fn rendered(site: &Value) -> Vec<Value> {
    objects(&render(&parse(site), &settings(), &observed()).unwrap())
}

fn assert_each_is_seen(site: &Value, mutations: Vec<(&'static str, Value)>) {
    for (path, value) in mutations {
        let changed = with(site, path, value);
        assert_ne!(rendered(site), rendered(&changed), "{path} is in no object");
        let makes_work = digest(&parse(site)) != digest(&parse(&changed));
        assert!(makes_work != EXCEPTIONS.contains(&path), "{path}: rendered, so it must make work or be an exception");
    }
}

#[test]
fn every_field_that_makes_work_is_in_an_object_and_the_reverse() {
    assert_each_is_seen(&full(), read_by_rendering());
    let custom = with(
        &full(),
        "spec.configuration.applications",
        json!([{ "name": "site-custom", "image": "images.example.org/app:1" }]),
    );
    assert_each_is_seen(&custom, read_for_a_custom_application());
}

#[test]
fn audit_fields_change_nothing() {
    for field in AUDIT {
        let changed = with(&full(), &format!("spec.configuration.{field}"), json!("2021-12-31"));
        assert_eq!(rendered(&full()), rendered(&changed), "{field}");
    }
}

/// A new field of the spec must be put on one of the lists above.
#[test]
fn no_field_is_forgotten() {
    fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(map) if !path.ends_with("headers") => {
                for (key, value) in map {
                    leaves(value, &format!("{path}.{key}"), found);
                }
            }
            _ => found.push(path.to_owned()),
        }
    }
    let site = serde_json::to_value(parse(&full())).unwrap();
    let mut found = Vec::new();
    leaves(&site["spec"], "spec", &mut found);
    let listed: Vec<String> = read_by_rendering()
        .into_iter()
        .chain(read_for_a_custom_application())
        .map(|(path, _)| path.to_owned())
        .chain(AUDIT.map(|field| format!("spec.configuration.{field}")))
        .collect();
    let forgotten: Vec<&String> = found.iter().filter(|path| !listed.contains(path)).collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
}
