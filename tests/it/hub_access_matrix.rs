//! Who may do what: every route of the Hub's API against every kind of caller, from one table.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{OpenId, Redis, SOON, World, eventually};

/// Who asks: nobody, somebody, a viewer of the Site, an administrator of it, an administrator of the platform.
const CALLERS: [&str; 5] = ["", "dave", "bob", "alice", "carol-admin"];

/// The route, and for each caller `+` (served) or why not: 1 unknown (401), 3 forbidden (403), 4 not there (404).
/// `{site}` stands for both addresses of a private Site.
pub const TABLE: &[(&str, &str, &str)] = &[
    ("GET", "/whoami/", "+ + + + +"),
    ("GET", "/sites/", "+ + + + +"),
    ("POST", "/sites/", "1 + + + +"),
    ("POST", "/sites/upgrade/", "1 3 3 3 +"),
    ("POST", "/sites/restart/", "1 3 3 3 +"),
    ("GET", "/runs/", "1 3 3 3 +"),
    ("GET", "/runs/{id}/", "1 3 3 3 4"),
    ("GET", "/runs/{id}/events/", "1 3 3 3 4"),
    ("POST", "/runs/{id}/cancel/", "1 3 3 3 4"),
    ("GET", "/health/", "1 3 3 3 +"),
    ("POST", "/health/probe/", "1 3 3 3 +"),
    ("GET", "/reports/", "1 3 3 3 +"),
    ("POST", "/reports/", "1 3 3 3 +"),
    ("GET", "/reports/{id}/", "1 3 3 3 4"),
    ("GET", "{site}/", "1 4 + + +"),
    ("PUT", "{site}/", "1 4 3 + +"),
    ("PATCH", "{site}/", "1 4 3 + +"),
    ("POST", "{site}/toggle/", "1 4 3 + +"),
    ("POST", "{site}/upgrade/", "1 4 3 + +"),
    ("POST", "{site}/upgrade/?force=true", "1 4 3 3 +"),
    ("POST", "{site}/restart/", "1 4 3 + +"),
    ("PATCH", "{site}/retention-date/", "1 4 3 + +"),
    ("DELETE", "{site}/", "1 4 3 + +"),
    ("GET", "{site}/status/", "1 4 3 + +"),
    ("GET", "{site}/pods/", "1 4 3 + +"),
    // No operator works here: there is no pod.
    ("GET", "{site}/logs/", "1 4 3 4 4"),
    ("GET", "{site}/master-token/", "1 4 3 + +"),
    ("POST", "{site}/master-token/regenerate/", "1 4 3 + +"),
    ("GET", "{site}/tokens/", "1 4 3 + +"),
    ("POST", "{site}/tokens/", "1 4 3 + +"),
    ("GET", "{site}/tokens/history/", "1 4 3 + +"),
    ("GET", "{site}/tokens/{token_id}/", "1 4 3 + +"),
    ("DELETE", "{site}/tokens/{token_id}/", "1 4 3 + +"),
    ("POST", "{site}/signed-urls/", "1 4 3 + +"),
    ("POST", "{site}/signed-urls/verify/", "1 4 3 + +"),
    ("POST", "{site}/session-urls/", "1 4 3 + +"),
    // Nobody can be told of requests here, and that is said before anything else is looked at.
    ("POST", "{site}/access/", "1 + + + +"),
    ("POST", "{site}/requests/publish/", "1 + + + +"),
    ("POST", "{site}/requests/storage/", "1 + + + +"),
    ("GET", "/templates/", "1 + + + +"),
    ("GET", "/templates/{name}/", "1 4 4 4 4"),
    ("PUT", "/templates/{name}/", "1 3 3 3 +"),
    ("DELETE", "/templates/{name}/", "1 3 3 3 4"),
    ("GET", "/platform/state/", "1 3 3 3 +"),
    ("PUT", "/platform/state/", "1 3 3 3 +"),
    ("GET", "/platform/quota/", "1 3 3 3 +"),
    ("GET", "/platform/versions/", "1 3 3 3 +"),
    ("GET", "/platform/volumes/", "1 3 3 3 +"),
    ("DELETE", "/platform/volumes/{name}/", "1 3 3 3 4"),
];

/// An address of a row for a Site that has this one.
pub fn filled_in(path: &str, site: &str) -> String {
    let path = path
        .replace("{site}", site)
        .replace("{id}", "5b0d4a4e-6d0f-4f58-9f5a-0d7f7f6a4c11")
        .replace("{token_id}", "t1")
        .replace("{name}", "no-such-thing");
    format!("/hub/api/v2{path}")
}

/// A row's routes as the document names them.
pub fn documented(path: &str) -> Vec<String> {
    let path = path.split('?').next().unwrap();
    ["/sites/{space}/{site}", "/sites/-/{site_id}"].map(|site| path.replace("{site}/", &format!("{site}/"))).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_access_matrix_of_every_route_and_caller() {
    let mut world = World::new("hub-access").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;

    let document = hub.get("/hub/api/openapi.json", "").await.json();
    let told: BTreeSet<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| item.as_object().unwrap().keys().map(move |verb| (verb.to_uppercase(), path.clone())))
        .collect();
    let listed: BTreeSet<(String, String)> = TABLE
        .iter()
        .flat_map(|(verb, path, _)| documented(path).into_iter().map(|path| ((*verb).to_owned(), path)))
        .collect();
    assert_eq!(told, listed, "the table has every route of the document, and no other");

    let mut wrong = Vec::new();
    for (number, (verb, path, expected)) in TABLE.iter().enumerate() {
        for (place, (caller, expected)) in CALLERS.iter().zip(expected.split(' ')).enumerate() {
            for by_id in [false, true] {
                let name = format!("s{number}-{place}-{by_id}");
                let site = world
                    .site(
                        &name,
                        json!({"owner": "alice", "name": name, "configuration": {"space": "docs",
                        "share": {"view_users": ["bob"]}}}),
                    )
                    .await;
                let address = if by_id {
                    format!("/sites/-/{}", site["spec"]["id"].as_str().unwrap())
                } else {
                    format!("/sites/docs/{name}")
                };
                if !path.contains("{site}") && by_id {
                    continue;
                }
                let token = if caller.is_empty() { String::new() } else { openid.token(caller) };
                let url = filled_in(path, &address);
                eventually("the Hub knows the Site", SOON, || async {
                    let told = hub.get(&format!("/hub/api/v2/sites/docs/{name}/"), &openid.token("alice")).await;
                    if told.status == 200 { Ok(()) } else { Err(told.text()) }
                })
                .await;
                let told = hub.json(verb, &url, &token, &Value::Null).await;
                let seen = match told.status {
                    401 => "1",
                    403 => "3",
                    404 => "4",
                    // A body was not given where one is needed, or nobody is there to do it: that the caller may is
                    // known by then.
                    200..=299 | 400 | 409 | 410 | 500 | 503 => "+",
                    other => &other.to_string(),
                };
                if seen != expected {
                    wrong.push(format!("{verb} {path} as {caller:?}: {seen}, not {expected}: {}", told.text()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    world.end().await;
}
