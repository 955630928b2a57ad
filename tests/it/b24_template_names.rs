//! B24: a template name, a space or a name of a Site that would leave its place is 400, reads nothing and asks the API
//! server for nothing.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::{OpenId, Start, World};

/// As they stand in an address; a client may send any byte but these two: NUL must be encoded, as must a blank.
const NAMES: [&str; 9] = [
    "..%2Fbackups%2F20260101",
    "..%252f..%252fbackups%252f20260101",
    "%2Fetc%2Fpasswd",
    "a%2F..%2F..%2Fb",
    ".",
    "..",
    "",
    "a%00b",
    "%2e%2e",
];

#[tokio::test(flavor = "multi_thread")]
async fn b24_no_name_leaves_the_templates_or_the_sites() {
    let world = World::new("b24").await;
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("templates");
    fs::create_dir_all(root.path().join("backups")).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(root.path().join("backups/20260101.yaml"), "description: stolen-4711").unwrap();
    fs::write(folder.join("eu-climate_1.yaml"), "quota: 5\nshare:\n  view_groups: [staff]\n").unwrap();
    symlink("../backups/20260101.yaml", folder.join("linked.yaml")).unwrap();
    symlink(root.path().join("backups/20260101.yaml"), folder.join("absolute.yaml")).unwrap();

    let openid = OpenId::get().await;
    let settings = json!({"hub": {"templates_path": folder}});
    let hub = world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await;
    let admin = openid.token("carol-admin");
    let good = hub.get("/hub/api/v2/templates/eu-climate_1/", &admin).await;
    assert_eq!((good.status, &good.json()["fields"]["quota"]), (200, &json!(5)), "{}", good.text());

    let Some(audit) = world.lab().audit_or_skip("b24_no_name_leaves_the_templates_or_the_sites") else { return };
    let mark = audit.mark();
    let body = json!({"quota": 1});
    for name in NAMES {
        for (method, sent) in [("GET", &Value::Null), ("PUT", &body), ("DELETE", &Value::Null)] {
            let told = hub.json(method, &format!("/hub/api/v2/templates/{name}/"), &admin, sent).await;
            assert_eq!(told.status, 400, "{method} {name}: {}", told.text());
        }
        let create = format!("/hub/api/v2/sites/?template={name}");
        let told = hub.json("POST", &create, &admin, &json!({"space": "docs", "name": "b24"})).await;
        assert_eq!(told.status, 400, "{create}: {}", told.text());
        // An empty segment is another address, where nothing is.
        let wanted = if name.is_empty() { 404 } else { 400 };
        for path in [format!("docs/{name}/"), format!("{name}/fdb/"), format!("-/{name}/")] {
            let told = hub.get(&format!("/hub/api/v2/sites/{path}"), &admin).await;
            assert!([400, wanted].contains(&told.status), "{path}: {} {}", told.status, told.text());
        }
    }
    for name in ["linked", "absolute"] {
        let told = hub.get(&format!("/hub/api/v2/templates/{name}/"), &admin).await;
        assert_eq!(told.status, 400, "{name}: {}", told.text());
        assert!(!told.text().contains("stolen-4711"));
    }
    // The right way round: only a name that is legal is looked up, in one collection.
    let told = hub.get("/hub/api/v2/templates/no-such_1/", &admin).await;
    assert_eq!(told.status, 404, "{}", told.text());
    let calls = world.hub_calls(mark);
    let strange: Vec<_> = calls
        .0
        .iter()
        .filter(|call| !(call.verb == "watch" || call.resource == "configmaps" && call.verb == "get"))
        .collect();
    assert!(strange.is_empty(), "{strange:?}");
    // Before a change the switch of the platform is looked at.
    let looked_up = calls.filter(|call| call.verb == "get" && call.name != "sites-platform-state");
    assert_eq!(looked_up.count(), 1, "one for the name that is legal");
    world.end().await;
}
