//! Tables for [`super`]: a valid Site keeps every rule, and each broken one is named with its field.

use serde_json::json;

use super::*;

fn site(change: impl FnOnce(&mut Value)) -> Site {
    let mut object = json!({
        "apiVersion": "sites.ecmwf.int/v1", "kind": "Site", "metadata": {"name": "docs-fdb"},
        "spec": {"id": "docs-fdb", "owner": "ana@example.org", "type": "private", "name": "fdb", "configuration": {
            "space": "docs", "enabled": true, "quota": 1, "retention_date": "2028-02-29", "registered_date": "2027-02-28",
            "headers": {"Access-Control-Allow-Origin": "*", "Content-Security-Policy": "default-src 'self'; img-src \"x\" {}$%41"},
            "applications": [{"name": "site-webdav"}, {"name": "site-custom", "image": "r.example.org:5000/team/app@sha256:00"}],
            "share": {"view_users": ["ana@example.org"], "view_groups": ["Zoë's group, 100 %"]},
            "settings": {"resource_limits": {"cpu": "500m", "memory": "1.5Gi"}, "error_handling": {"not_found_page": "/errors/..404/not found.html"}},
        }},
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

fn fields(violations: &[Violation]) -> Vec<&str> {
    violations.iter().map(|violation| violation.field.as_str()).collect()
}

#[test]
fn a_valid_site_keeps_every_rule() {
    assert_eq!(violations_of_new(&site(|_| ())), []);
    let least = site(|object| object["spec"] = json!({"id": "docs-fdb", "owner": "", "type": "public"}));
    assert_eq!(violations_of_new(&least), []);
}

#[test]
fn each_broken_rule_names_its_field() {
    let long = "a".repeat(53);
    for (pointer, values) in [
        ("/spec/id", json!(["", "A", "1a", "a-", "a_b", long])),
        ("/spec/name", json!(["", "-a", "a/b", "a b", "..", "a%0a", "é"])),
        ("/spec/configuration/space", json!(["", "hub", "oauth2", "s", "a\n", "a;b", "$a", "{a}"])),
        ("/spec/configuration/quota", json!([0])),
        (
            "/spec/configuration/retention_date",
            json!(["", "2025-02-30", "2025-2-3", "01/02/2026", "2026-01-01T00:00:00Z"]),
        ),
        ("/spec/configuration/registered_date", json!(["2025-13-01"])),
        ("/spec/configuration/settings/resource_limits/cpu", json!(["", "much", "0", "-1", "1K"])),
        ("/spec/configuration/settings/resource_limits/memory", json!(["0Gi", "1 Gi"])),
        (
            "/spec/configuration/settings/error_handling/not_found_page",
            json!([
                "",
                "404.html",
                "/a?b",
                "/a#b",
                "/a\n",
                "/a%0a",
                "/../a",
                "/a/%2e%2E/b",
                "/a/..%2fb",
                "/a\\..\\b",
                "http://x/"
            ]),
        ),
    ] {
        let field = pointer.trim_start_matches('/').replace('/', ".");
        for value in values.as_array().unwrap() {
            let site = site(|object| *object.pointer_mut(pointer).unwrap() = value.clone());
            assert_eq!(fields(&violations(&site)), [field.as_str()], "{value}");
        }
    }
}

#[test]
fn b15_headers() {
    for (name, value, field) in [
        ("X-A", "a\r\nSet-Cookie: b", "spec.configuration.headers[X-A]"),
        ("X-A", "a%0d%0ab", "spec.configuration.headers[X-A]"),
        ("X-A", "a%C2%85b", "spec.configuration.headers[X-A]"),
        ("X-A\n", "a", "spec.configuration.headers"),
        ("X;A", "a", "spec.configuration.headers"),
        ("X{A}", "a", "spec.configuration.headers"),
        ("", "a", "spec.configuration.headers"),
        ("set-cookie", "a", "spec.configuration.headers"),
        ("Content-Length", "1", "spec.configuration.headers"),
        ("Transfer-Encoding", "chunked", "spec.configuration.headers"),
        ("Service-Worker-Allowed", "/", "spec.configuration.headers"),
    ] {
        let site = site(|object| object["spec"]["configuration"]["headers"] = json!({name: value}));
        assert_eq!(fields(&violations(&site)), [field], "{name}: {value}");
    }
}

#[test]
fn applications_and_shares() {
    let list = "spec.configuration.applications";
    for (applications, field) in [
        (json!([{"name": "a"}, {"name": "a"}]), list.to_owned()),
        (json!([{"name": "b"}, {"name": "A"}]), format!("{list}[1].name")),
        (json!([{"name": "site-custom"}]), format!("{list}[0]")),
        (json!([{"name": "a", "image": "a b"}]), format!("{list}[0].image")),
        (json!([{"name": "a", "image": "a\u{7f}"}]), format!("{list}[0].image")),
    ] {
        let site = site(|object| object["spec"]["configuration"]["applications"] = applications.clone());
        assert_eq!(fields(&violations(&site)), [field.as_str()], "{applications}");
    }
    let site = site(|object| object["spec"]["configuration"]["share"]["administrator_groups"] = json!(["a", "b\t"]));
    assert_eq!(fields(&violations(&site)), ["spec.configuration.share.administrator_groups[1]"]);
}

#[test]
fn reserved_ids_bind_new_sites_only() {
    for id in ["a-oauth2", "a-files", "redis", "sites", "sites-hub"] {
        let site = site(|object| {
            object["spec"]["id"] = json!(id);
            object["metadata"]["name"] = json!(id);
        });
        assert_eq!(violations(&site), [], "{id}");
        assert_eq!(fields(&violations_of_new(&site)), ["spec.id"], "{id}");
    }
    let renamed = site(|object| object["metadata"]["name"] = json!("other"));
    assert_eq!((violations(&renamed).len(), fields(&violations_of_new(&renamed))), (0, vec!["spec.id"]));
}

#[test]
fn b12_an_id_of_52_characters_is_the_longest() {
    for (length, valid) in [(1, true), (52, true), (53, false), (63, false)] {
        let site = site(|object| object["spec"]["id"] = json!("a".repeat(length)));
        assert_eq!(violations(&site).is_empty(), valid, "{length}");
    }
}

#[test]
fn sizes_are_bounded() {
    let site = site(|object| {
        object["spec"]["configuration"]["share"]["view_users"] = json!(vec!["a"; 2001]);
        object["spec"]["owner"] = json!("é".repeat(4097));
    });
    let violations = violations(&site);
    assert_eq!(fields(&violations), ["spec.configuration.share.view_users", "spec.owner"]);
    assert_eq!(violations[1].message, "must have at most 4096 characters, has 4097");
}

#[test]
fn messages_name_the_field() {
    for rule in rules() {
        let field = rule
            .at
            .trim_end_matches("[].name")
            .trim_end_matches("[].image")
            .trim_end_matches("[]")
            .trim_end_matches("{}");
        assert!(rule.message.contains(if field.is_empty() { "spec.id" } else { field }), "{}", rule.message);
        assert!(rule.message.len() <= 500 && !rule.message.contains('\n'));
    }
}

#[test]
fn the_sample_sites_are_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sites");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let site: Site = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(violations_of_new(&site), [], "{}", path.display());
        names.push(site.spec.id);
    }
    assert_eq!(names.len(), 4, "{names:?}");
}
