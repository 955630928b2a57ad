//! Bad input: the API server refuses each kind of invalid Site, with a message that names the field and the rule.

use serde_json::{Value, json};

use crate::support::api::merge_into;
use crate::support::older::refusal;
use crate::support::{Lab, World};

/// One thing that is wrong with a Site.
pub struct Case {
    /// Written over the Site; its id is given by the test unless the case is about that.
    pub patch: Value,
    /// Where it is wrong.
    pub field: &'static str,
    /// What the message must say.
    pub rule: &'static str,
    /// An expression of the definition cannot be computed over this value: the API server takes no status then.
    pub speechless: bool,
    /// One of our rules, so the operator says what the API server says; else the schema refuses it in its own words.
    pub ours: bool,
}

impl Case {
    /// The Site with this one thing wrong.
    pub fn site(&self, world: &World, id: &str) -> Value {
        let mut site = world.site_object(id, &json!({}));
        merge_into(&mut site, &self.patch);
        site
    }
}

fn case(patch: Value, field: &'static str, rule: &'static str) -> Case {
    Case { patch, field, rule, ours: true, speechless: false }
}

/// What the schema itself refuses.
fn schema(patch: Value, field: &'static str, rule: &'static str) -> Case {
    Case { ours: false, ..case(patch, field, rule) }
}

fn configuration(patch: &Value) -> Value {
    json!({"spec": {"configuration": patch}})
}

/// One case for each rule.
pub fn cases() -> Vec<Case> {
    let mut cases = names();
    cases.extend(values());
    cases.extend(applications());
    cases.extend(texts());
    cases.extend(sizes());
    cases.extend(types());
    cases
}

fn names() -> Vec<Case> {
    let id = |id: &str| json!({"metadata": {"name": id}, "spec": {"id": id}});
    let space = "spec.configuration.space";
    vec![
        case(id("1-begins-with-a-digit"), "spec.id", "spec.id must be 1 to 52 of a-z 0-9 -"),
        case(id("x-oauth2"), "spec.id", "must not end in -oauth2 or -files"),
        case(id("x-files"), "spec.id", "must not end in -oauth2 or -files"),
        case(id("redis"), "spec.id", "must not be redis, sites or begin with sites-"),
        case(id("sites-hub"), "spec.id", "must not be redis, sites or begin with sites-"),
        case(json!({"spec": {"id": "another-than-its-name"}}), "spec.id", "spec.id must equal metadata.name"),
        case(json!({"spec": {"name": "a/b"}}), "spec.name", "must be one segment of a URL"),
        case(configuration(&json!({"space": "a b"})), space, "must be one segment of a URL"),
        case(configuration(&json!({"space": "hub"})), space, "must not be hub, oauth2 or s"),
    ]
}

fn values() -> Vec<Case> {
    let limits = |limits: Value| configuration(&json!({"settings": {"resource_limits": limits}}));
    let (cpu, memory) =
        ("spec.configuration.settings.resource_limits.cpu", "spec.configuration.settings.resource_limits.memory");
    vec![
        case(configuration(&json!({"quota": 0})), "spec.configuration.quota", "greater than or equal to 1"),
        case(
            configuration(&json!({"retention_date": "2025-02-30"})),
            "spec.configuration.retention_date",
            "must be a day that exists, written YYYY-MM-DD",
        ),
        case(
            configuration(&json!({"registered_date": "01/02/2026"})),
            "spec.configuration.registered_date",
            "must be a day that exists, written YYYY-MM-DD",
        ),
        case(limits(json!({"cpu": "much"})), cpu, "must be a Kubernetes quantity above 0"),
        case(limits(json!({"cpu": 0})), cpu, "must be a Kubernetes quantity above 0"),
        schema(limits(json!({"memory": "0Gi"})), memory, "must be a Kubernetes quantity above 0"),
    ]
}

fn applications() -> Vec<Case> {
    let applications = |list: Value| configuration(&json!({"applications": list}));
    let field = "spec.configuration.applications";
    vec![
        schema(applications(json!([{"name": "site-s3"}, {"name": "site-s3"}])), field, ""),
        case(applications(json!([{"name": "site-custom"}])), field, "needs an image"),
        case(applications(json!([{"name": "Site"}])), "spec.configuration.applications[0].name", "must be a DNS label"),
        case(
            applications(json!([{"name": "site-custom", "image": "a b"}])),
            "spec.configuration.applications[0].image",
            "must be a reference such as",
        ),
    ]
}

fn texts() -> Vec<Case> {
    let headers = |headers: Value| configuration(&json!({"headers": headers}));
    let share = |list: &str| configuration(&json!({"share": {list: ["ana", "a\r\nb"]}}));
    let page = |page: &str| configuration(&json!({"settings": {"error_handling": {"not_found_page": page}}}));
    let page_field = "spec.configuration.settings.error_handling.not_found_page";
    let (field, control) = ("spec.configuration.headers", "must not have control characters");
    vec![
        case(headers(json!({"X;A": "a"})), field, "must have names that are HTTP tokens"),
        case(headers(json!({"Transfer-Encoding": "chunked"})), field, "must not set headers that belong to the server"),
        case(headers(json!({"X-A": "a\r\nSet-Cookie: b"})), "spec.configuration.headers", control),
        case(headers(json!({"X-A": "a%0d%0ab"})), "spec.configuration.headers", control),
        case(share("administrator_users"), "spec.configuration.share.administrator_users[1]", control),
        case(share("administrator_groups"), "spec.configuration.share.administrator_groups[1]", control),
        case(share("view_users"), "spec.configuration.share.view_users[1]", control),
        case(share("view_groups"), "spec.configuration.share.view_groups[1]", control),
        case(page("404.html"), page_field, "must be a path of the Site's content"),
        case(page("/../other/404.html"), page_field, "must be a path of the Site's content"),
        case(page("/a%0ab"), page_field, "must be a path of the Site's content"),
    ]
}

fn sizes() -> Vec<Case> {
    let many =
        |count: usize| (0..count).map(|number| (format!("X-{number}"), json!("a"))).collect::<serde_json::Map<_, _>>();
    let list = |count: usize| (0..count).map(|number| json!({"name": format!("a-{number}")})).collect::<Vec<_>>();
    vec![
        schema(json!({"spec": {"owner": "o".repeat(4097)}}), "spec.owner", "4096"),
        schema(configuration(&json!({"headers": many(33)})), "spec.configuration.headers", "32"),
        schema(configuration(&json!({"headers": {"X-A": "a".repeat(4097)}})), "spec.configuration.headers", "4096"),
        schema(configuration(&json!({"applications": list(33)})), "spec.configuration.applications", "32"),
        schema(
            configuration(&json!({"share": {"view_users": vec!["a"; 2001]}})),
            "spec.configuration.share.view_users",
            "2000",
        ),
    ]
}

fn types() -> Vec<Case> {
    vec![
        schema(configuration(&json!({"quota": "ten"})), "spec.configuration.quota", "integer"),
        schema(configuration(&json!({"quota": 1.5})), "spec.configuration.quota", "integer"),
        schema(configuration(&json!({"enabled": "yes"})), "spec.configuration.enabled", "boolean"),
        Case {
            speechless: true,
            ..schema(configuration(&json!({"headers": ["a"]})), "spec.configuration.headers", "object")
        },
        schema(configuration(&json!({"share": {"view_users": "ana"}})), "spec.configuration.share.view_users", "array"),
        schema(json!({"spec": {"type": "secret"}}), "spec.type", "\"private\", \"public\""),
        schema(json!({"spec": {"owner": null}}), "spec.owner", "Required value"),
        schema(json!({"spec": {"type": null}}), "spec.type", "Required value"),
    ]
}

#[tokio::test]
async fn bad_input_is_refused_with_field_and_rule() {
    let lab = Lab::get().await;
    lab.install_definition().await;
    let world = World::bare(lab, "refused").await;
    let good = world.site_object("good", &json!({}));
    assert_eq!(refusal(&world, &good).await, None);
    let mut wrong = Vec::new();
    for case in cases() {
        let message = refusal(&world, &case.site(&world, "bad")).await;
        let told = message.as_ref().is_some_and(|told| told.contains(case.field) && told.contains(case.rule));
        if !told {
            let told: String = format!("{message:?}").chars().take(300).collect();
            wrong.push(format!("{} ({}): {told}", case.field, case.rule));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    world.end().await;
}

/// An id is for life; everything else may change, and a change is held to the rules as well.
#[tokio::test]
async fn bad_input_is_refused_in_an_edit_too() {
    let lab = Lab::get().await;
    lab.install_definition().await;
    let world = World::bare(lab, "refused-edit").await;
    world.site("alpha", json!({})).await;
    for (patch, field, rule) in [
        (json!({"spec": {"id": "beta"}}), "spec.id", "cannot change"),
        (json!({"spec": {"configuration": {"quota": 0}}}), "spec.configuration.quota", "greater than or equal to 1"),
        (json!({"spec": {"configuration": {"headers": {"X-A": "a\nb"}}}}), "spec.configuration.headers", "control"),
    ] {
        let refused = world.api.merge("Site", &world.namespace, "alpha", "", &patch).await.unwrap_err().to_string();
        assert!(refused.contains(field) && refused.contains(rule), "{refused}");
    }
    world.edit_site("alpha", json!({"spec": {"name": "other", "owner": "bo"}})).await;
    world.end().await;
}
