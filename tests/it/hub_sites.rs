//! The API of Sites: what a person may set, what is filled in, and that nobody's edit is lost.

use serde_json::{Value, json};

use crate::support::{Act, FaultProxy, HubProcess, Match, OpenId, SOON, Start, Times, World, eventually};

const SITES: &str = "/hub/api/v2/sites/";

async fn create(hub: &HubProcess, token: &str, name: &str, more: Value) -> Value {
    let mut body = json!({"space": "docs", "name": name});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let told = hub.json("POST", SITES, token, &body).await;
    assert_eq!(told.status, 201, "{}", told.text());
    assert_eq!(told.header("location"), format!("{SITES}docs/{name}/"));
    assert_eq!(told.json()["etag"], told.header("etag"));
    told.json()
}

async fn names(hub: &HubProcess, token: &str, query: &str) -> Vec<String> {
    let told = hub.get(&format!("{SITES}{query}"), token).await;
    assert_eq!(told.status, 200, "{}", told.text());
    let sites = told.json()["sites"].as_array().unwrap().clone();
    sites.iter().map(|site| site["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_sites_are_created_with_defaults_and_become_ready() {
    let world = World::new("hub-sites-create").await;
    let operator = world.start_operator().await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let alice = openid.token("alice");
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let headers = [
        ("authorization", format!("Bearer {alice}")),
        ("content-type", "application/json".into()),
        ("traceparent", trace.into()),
    ];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let told = hub.ask("POST", SITES, &headers, json!({"space": "docs", "name": "fdb"}).to_string()).await;
    assert_eq!(told.status, 201, "{}", told.text());
    let made = told.json();
    let id = made["id"].as_str().unwrap().to_owned();
    assert_eq!((&made["owner"], &made["type"], &made["quota"]), (&json!("alice"), &json!("private"), &json!(1)));
    assert!(!told.text().contains("master"), "{}", told.text());

    let site = world.must("Site", &id).await;
    let configuration = &site["spec"]["configuration"];
    assert_eq!(configuration["registered_by"], "alice");
    let registered: jiff::civil::Date = configuration["registered_date"].as_str().unwrap().parse().unwrap();
    let retention: jiff::civil::Date = configuration["retention_date"].as_str().unwrap().parse().unwrap();
    assert_eq!((retention - registered).get_days(), 365);
    assert_eq!(configuration["tokens"]["master"].as_str().unwrap().len(), 43);
    assert_eq!(site["metadata"]["annotations"]["sites.ecmwf.int/traceparent"], trace);
    world.settled(&operator, &id).await;
    eventually("the Hub shows that it runs", SOON, || async {
        let told = hub.get(&format!("{SITES}docs/fdb/"), &alice).await.json();
        if told["phase"] == "Running" { Ok(()) } else { Err(told.to_string()) }
    })
    .await;

    // Read your writes: the list has it at once, for those who may see it.
    create(&hub, &alice, "second", json!({"description": "more"})).await;
    assert_eq!(names(&hub, &alice, "?sort_by=name&order_by=desc").await, ["second", "fdb"]);
    assert_eq!(names(&hub, &alice, "?q=MORE&limit=1").await, ["second"]);
    assert!(names(&hub, &openid.token("bob"), "").await.is_empty() && names(&hub, "", "").await.is_empty());
    let first = hub.get(&format!("{SITES}?limit=1"), &alice).await.json();
    let next = format!("?limit=1&continuation_token={}", first["continuation_token"].as_str().unwrap());
    assert_eq!((first["count"].as_u64(), names(&hub, &alice, &next).await), (Some(2), vec!["second".to_owned()]));
    for (query, field) in [
        ("?limit=ten", "limit"),
        ("?limit=0", "limit"),
        ("?offset=-1", "offset"),
        ("?offset=1&offset=2", "offset"),
        ("?sort_by=size", "sort_by"),
        ("?order_by=up", "order_by"),
        ("?type=secret", "type"),
        ("?enabled_only=yes", "enabled_only"),
        ("?continuation_token=x", "continuation_token"),
        ("?page=2", "page"),
    ] {
        let told = hub.get(&format!("{SITES}{query}"), &alice).await;
        assert_eq!(told.status, 400, "{query}");
        assert!(told.json()["errors"][0].as_str().unwrap().starts_with(&format!("[{field}] ")), "{}", told.text());
    }

    // A path has one Site; protected fields are the platform's.
    let again = hub.json("POST", SITES, &openid.token("bob"), &json!({"space": "docs", "name": "fdb"})).await;
    assert_eq!(again.status, 409, "{}", again.text());
    for (field, value) in [
        ("owner", json!("bob")),
        ("type", json!("public")),
        ("settings", json!({"monitored": true})),
        ("settings", json!({"resource_limits": {"cpu": "4"}})),
        ("name", json!("../x")),
        ("quota", json!(0)),
        ("wings", json!(2)),
    ] {
        let mut body = json!({"space": "docs", "name": "third"});
        body[field] = value;
        let told = hub.json("POST", SITES, &alice, &body).await;
        assert_eq!(told.status, 400, "{field}: {}", told.text());
        assert!(told.json()["errors"][0].as_str().unwrap().starts_with(&format!("[{field}")), "{}", told.text());
        assert_eq!(hub.get(&format!("{SITES}docs/third/"), &alice).await.status, 404);
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_sites_are_edited_and_nobodys_edit_is_lost() {
    let world = World::new("hub-sites-edit").await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let (alice, carol) = (openid.token("alice"), openid.token("carol-admin"));
    let made = create(&hub, &alice, "fdb", json!({})).await;
    let (id, path) = (made["id"].as_str().unwrap().to_owned(), format!("{SITES}docs/fdb/"));
    let bearer = |token: &str| format!("Bearer {token}");

    // Two people read the same version; the second to write is told what changed.
    let tag = hub.get(&path, &alice).await.header("etag");
    let edit = async |token: &str, tag: &str, body: Value| {
        let bearer = bearer(token);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json"), ("if-match", tag)];
        hub.ask("PATCH", &path, &headers, body.to_string()).await
    };
    let told = edit(&alice, &tag, json!({"description": "one", "share": {"view_users": ["bob"]}})).await;
    assert_eq!(told.status, 200, "{}", told.text());
    let told = edit(&carol, &tag, json!({"quota": 7})).await;
    assert_eq!(told.status, 409, "{}", told.text());
    let errors = told.json()["errors"].clone();
    assert_eq!(errors, json!(["[share.view_users] changed since", "[description] changed since"]));
    assert_eq!(edit(&carol, "\"x\"", json!({"quota": 7})).await.status, 400);

    // A status write in between is nobody's edit; without a tag only what is sent is merged.
    let tag = hub.get(&path, &alice).await.header("etag");
    let status = format!("/apis/sites.ecmwf.int/v1/namespaces/{}/sites/{id}/status", world.namespace);
    let pending = json!({"status": {"phase": "Pending"}});
    world.api.send("PATCH", &status, "application/merge-patch+json", &pending).await.unwrap();
    assert_eq!(edit(&alice, &tag, json!({"quota": 7})).await.status, 200);
    let told = hub.json("PATCH", &path.replace("/v2/", "/v1/"), &alice, &json!({"headers": {"X-A": "b"}})).await;
    assert_eq!(told.status, 200, "{}", told.text());
    let form = &told.json()["form"];
    assert_eq!(
        (&form["quota"], &form["description"], &form["headers"]["X-A"]),
        (&json!(7), &json!("one"), &json!("b"))
    );
    let spec = &world.must("Site", &id).await["spec"];
    assert_eq!(
        (&spec["configuration"]["updated_by"], &spec["configuration"]["registered_by"]),
        (&json!("alice"), &json!("alice"))
    );

    // Form data, by id, without the last slash; the tag as a field.
    let tag = hub.get(&path, &alice).await.header("etag");
    let pairs = form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("description", "two"), ("share.view_users", "bob,dave"), ("etag", tag.as_str())])
        .finish();
    let (bearer_alice, plain) = (bearer(&alice), format!("{SITES}-/{id}"));
    let headers = [("authorization", bearer_alice.as_str()), ("content-type", "application/x-www-form-urlencoded")];
    let told = hub.ask("PATCH", &plain, &headers, pairs.clone()).await;
    assert_eq!(told.status, 200, "{}", told.text());
    assert_eq!(told.json()["form"]["share"]["view_users"], json!(["bob", "dave"]));
    assert_eq!(hub.ask("PATCH", &plain, &headers, pairs).await.status, 409);
    let headers = [("authorization", bearer_alice.as_str()), ("content-type", "text/plain")];
    assert_eq!(hub.ask("PATCH", &plain, &headers, "x").await.status, 415);

    // The owner and the type are for the platform; a public Site with an image of its own goes back.
    for body in [json!({"owner": "bob"}), json!({"type": "public"})] {
        assert_eq!(hub.json("PATCH", &path, &alice, &body).await.status, 400, "{body}");
    }
    let custom = json!({"type": "public", "applications": [{"name": "site-custom", "image": "mine:1"}]});
    let told = hub.json("PATCH", &path, &carol, &custom).await;
    assert_eq!((told.status, &told.json()["type"]), (200, &json!("private")), "{}", told.text());
    assert!(told.json()["message"].as_str().unwrap().contains("private now"), "{}", told.text());
    let told = hub.json("PUT", &path, &alice, &json!({"description": "all"})).await;
    let form = &told.json()["form"];
    assert_eq!((told.status, &form["headers"], &form["name"]), (200, &json!({}), &json!("fdb")), "{}", told.text());

    // Viewers read what it is, not how it is made; strangers learn nothing.
    hub.json("PATCH", &path, &alice, &json!({"share": {"view_users": ["bob"]}})).await;
    let seen = hub.get(&path, &openid.token("bob")).await;
    assert_eq!((seen.status, &seen.json()["form"]), (200, &Value::Null), "{}", seen.text());
    assert_eq!(hub.json("PATCH", &path, &openid.token("bob"), &json!({"quota": 9})).await.status, 403);
    let (hidden, missing) = (
        hub.get(&path, &openid.token("dave")).await,
        hub.get(&format!("{SITES}docs/no/"), &openid.token("dave")).await,
    );
    assert_eq!((hidden.status, hidden.text()), (404, missing.text()));
    assert_eq!(hub.get(&path, "").await.status, 401);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_sites_are_archived_upgraded_restarted_extended_and_deleted() {
    let world = World::new("hub-sites-act").await;
    let operator = world.start_operator().await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let (alice, carol) = (openid.token("alice"), openid.token("carol-admin"));
    let made =
        create(&hub, &alice, "fdb", json!({"applications": [{"name": "site-webdav", "image": "sites:0.1"}]})).await;
    let (id, path) = (made["id"].as_str().unwrap().to_owned(), format!("{SITES}docs/fdb/"));
    world.settled(&operator, &id).await;

    let before = world.pod_uids(&id).await;
    let told = hub.json("POST", &format!("{path}restart/"), &alice, &Value::Null).await;
    assert_eq!(told.status, 202, "{}", told.text());
    eventually("another pod", SOON, || async {
        let now = world.pod_uids(&id).await;
        if !now.is_empty() && now.iter().all(|uid| !before.contains(uid)) { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;

    // An upgrade is for the Site's administrators, force for the platform's.
    for query in ["?force=1", "?force=", "?force=true&force=true"] {
        let told = hub.json("POST", &format!("{path}upgrade/{query}"), &carol, &Value::Null).await;
        assert_eq!(told.status, 400, "{query}: {}", told.text());
        assert!(told.json()["errors"][0].as_str().unwrap().starts_with("[force] "), "{}", told.text());
    }
    assert_eq!(hub.json("POST", &format!("{path}upgrade/?force=true"), &alice, &Value::Null).await.status, 403);
    assert_eq!(hub.json("POST", &format!("{path}upgrade/"), &alice, &Value::Null).await.status, 202);
    let applications = world.must("Site", &id).await["spec"]["configuration"]["applications"].clone();
    assert!(!applications.to_string().contains("sites:0.1"), "{applications}");
    let mut requests = Vec::new();
    for _ in 0..2 {
        assert_eq!(hub.json("POST", &format!("{path}upgrade/?force=true"), &carol, &Value::Null).await.status, 202);
        requests
            .push(world.must("Site", &id).await["metadata"]["annotations"]["sites.ecmwf.int/upgrade-request"].clone());
    }
    assert!(requests[0].is_string() && requests[0] != requests[1], "{requests:?}");

    // Archived: no pods; said outright or turned over.
    let toggle = format!("{path}toggle/");
    assert_eq!(hub.json("POST", &toggle, &alice, &Value::Null).await.json()["enabled"], false);
    assert_eq!(hub.json("POST", &toggle, &alice, &json!({"enabled": false})).await.json()["enabled"], false);
    eventually("no pods", SOON, || async {
        let now = world.pod_uids(&id).await;
        if now.is_empty() { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
    assert_eq!(hub.json("POST", &format!("{path}restart/"), &alice, &Value::Null).await.status, 410);
    assert!(names(&hub, &alice, "?enabled_only=true").await.is_empty());
    assert_eq!(hub.json("POST", &toggle, &alice, &Value::Null).await.json()["enabled"], true);
    let extended = hub.json("PATCH", &format!("{path}retention-date/"), &alice, &Value::Null).await.json();
    let day: jiff::civil::Date = extended["retention_date"].as_str().unwrap().parse().unwrap();
    assert_eq!(day.year(), jiff::Zoned::now().year() + 1);

    assert_eq!(hub.json("DELETE", &path, &openid.token("bob"), &Value::Null).await.status, 404);
    assert_eq!(hub.json("DELETE", &path, &alice, &Value::Null).await.status, 202);
    assert_eq!(hub.get(&path, &alice).await.status, 404);
    world.wait_gone(&id).await;
    world.end().await;
}

/// Deletes a Site while something happens to it between the Hub's reading and its deleting.
async fn delete_during<F: Future<Output = ()>>(
    proxy: &FaultProxy,
    hub: &HubProcess,
    headers: &[(&str, &str)],
    path: &str,
    between: F,
) -> (u16, Value) {
    let held = proxy.fault(Match::on("delete", "sites"), Act::Hold, Times::Count(1));
    let (told, ()) = tokio::join!(hub.ask("DELETE", path, headers, ""), async {
        eventually("the deletion is on its way", SOON, || async { proxy.hits(held) == 1 }).await;
        between.await;
        proxy.lift(held);
    });
    (told.status, told.json())
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_sites_a_deletion_of_a_version_is_of_that_version() {
    let world = World::new("hub-sites-delete").await;
    let proxy = FaultProxy::start(world.lab()).await;
    let openid = OpenId::get().await;
    let start = Start { kubeconfig: Some(world.hub_kubeconfig_through(&proxy).await), ..Start::default() };
    let hub = world.start_hub_process_with(openid, start).await;
    let alice = openid.token("alice");
    let bearer = format!("Bearer {alice}");
    let mut ids = Vec::new();
    for name in ["edited", "written", "any", "again"] {
        ids.push(create(&hub, &alice, name, json!({})).await["id"].as_str().unwrap().to_owned());
    }
    let path = |name: &str| format!("{SITES}docs/{name}/");
    let tag = async |name: &str| hub.get(&path(name), &alice).await.header("etag");

    // An edit in between is somebody's: it is named, and the Site stays.
    let seen = tag("edited").await;
    let headers = [("authorization", bearer.as_str()), ("if-match", seen.as_str())];
    let edit = async || {
        world.edit_site(&ids[0], json!({"spec": {"configuration": {"quota": 9}}})).await;
    };
    let (status, told) = delete_during(&proxy, &hub, &headers, &path("edited"), edit()).await;
    assert_eq!((status, &told["errors"]), (409, &json!(["[quota] changed since"])), "{told}");
    assert_eq!(world.must("Site", &ids[0]).await["spec"]["configuration"]["quota"], 9);
    // Of an older version it is refused before anything is asked; of the present one it is done.
    let told = hub.ask("DELETE", &path("edited"), &headers, "").await;
    assert_eq!((told.status, &told.json()["errors"]), (409, &json!(["[quota] changed since"])));
    let present = tag("edited").await;
    let headers = [("authorization", bearer.as_str()), ("if-match", present.as_str())];
    assert_eq!(hub.ask("DELETE", &path("edited"), &headers, "").await.status, 202);
    assert!(world.get("Site", &ids[0]).await.is_none());

    // A status write in between is nobody's edit.
    let seen = tag("written").await;
    let headers = [("authorization", bearer.as_str()), ("if-match", seen.as_str())];
    let write = async || {
        let pending = json!({"status": {"phase": "Pending"}});
        world.api.merge("Site", &world.namespace, &ids[1], "status", &pending).await.unwrap();
    };
    let (status, told) = delete_during(&proxy, &hub, &headers, &path("written"), write()).await;
    assert_eq!(status, 202, "{told}");
    assert!(world.get("Site", &ids[1]).await.is_none());

    // Who saw no version means the Site as it is; `*` is no version.
    for (name, id, more) in [("any", &ids[2], None), ("again", &ids[3], Some(("if-match", "*")))] {
        let headers: Vec<_> = std::iter::once(("authorization", bearer.as_str())).chain(more).collect();
        let edit = async || {
            world.edit_site(id, json!({"spec": {"configuration": {"quota": 9}}})).await;
        };
        let (status, told) = delete_during(&proxy, &hub, &headers, &path(name), edit()).await;
        assert_eq!(status, 202, "{name}: {told}");
        assert!(world.get("Site", id).await.is_none());
    }

    // Another Site by the same id is not the one that was meant.
    world.site("twin", json!({"owner": "alice", "configuration": {"space": "docs"}})).await;
    let replace = async || {
        world.delete_site("twin").await;
        world.site("twin", json!({"owner": "alice", "configuration": {"space": "docs"}})).await;
    };
    let headers = [("authorization", bearer.as_str())];
    let (status, told) = delete_during(&proxy, &hub, &headers, &format!("{SITES}-/twin/"), replace()).await;
    assert_eq!(status, 409, "{told}");
    assert!(world.get("Site", "twin").await.is_some());
    world.end().await;
}
