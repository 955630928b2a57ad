//! LIFE-06: an upgrade writes the platform's version into the images of the built-in applications and keeps those that
//! somebody chose; a new version of the operator alone changes nothing.

use serde_json::{Value, json};

use sites::domain::application::{Builtin, Catalog};
use sites::domain::site::SiteSpec;
use sites::domain::upgrade::upgraded;

use crate::support::belongings::generation;
use crate::support::{SOON, Start, World, eventually};

const REGISTRY: &str = "registry.example.test/sites";

fn platform() -> impl Iterator<Item = Builtin> {
    Builtin::ALL.into_iter().filter(|builtin| *builtin != Builtin::Custom)
}

/// The settings of a platform of this version.
fn version(version: &str) -> Value {
    let images: serde_json::Map<String, Value> =
        platform().map(|one| (one.name().to_owned(), format!("{REGISTRY}/{}", one.name()).into())).collect();
    json!({"site": {"version": version, "images": images}})
}

/// Name and image of every container, init containers too.
fn images(stateful_set: &Value) -> Vec<(String, String)> {
    let pod = &stateful_set["spec"]["template"]["spec"];
    let mut all = Vec::new();
    for list in ["initContainers", "containers"] {
        for container in pod[list].as_array().unwrap() {
            all.push((container["name"].as_str().unwrap().to_owned(), container["image"].as_str().unwrap().to_owned()));
        }
    }
    all
}

/// What the Hub makes of a Site when it is upgraded.
fn upgrade_of(site: &Value, version: &str) -> Value {
    let spec: SiteSpec = serde_json::from_value(site["spec"].clone()).unwrap();
    let images = platform().map(|one| (one, format!("{REGISTRY}/{}:{version}", one.name())));
    let catalog = Catalog::new(images, &[]).unwrap();
    json!({"spec": {"configuration": {"applications": upgraded(&spec, &catalog)}}})
}

#[tokio::test]
async fn life_06_an_upgrade_rewrites_built_in_images_and_keeps_custom_ones() {
    let world = World::new("life-06").await;
    let operator = world.start_operator_with(Start { settings: version("1.0.0"), ..Start::default() }).await;
    let applications = json!([
        {"name": "site-webdav"},
        {"name": "site-admin", "image": format!("{REGISTRY}/site-admin:1.0.0")},
        {"name": "site-s3", "image": "registry.example.test/team/my-s3:9"},
        {"name": "site-custom", "image": "registry.example.test/team/app:7", "note": "kept"},
    ]);
    world.site("plain", json!({"configuration": {"applications": applications}})).await;
    let site = world.running(&operator, "plain").await;
    let first = world.stateful_set("plain").await;
    let expect = |name: &str, version: &str| match name {
        "site-custom" => "registry.example.test/team/app:7".to_owned(),
        "site-s3" => "registry.example.test/team/my-s3:9".to_owned(),
        name => format!("{REGISTRY}/{name}:{version}"),
    };
    let found = images(&first);
    assert_eq!(found.len(), 8, "{found:?}");
    for (name, image) in &found {
        assert_eq!(*image, expect(name, "1.0.0"));
    }

    // A release of the operator is no upgrade of its Sites.
    operator.stop().await;
    let operator = world.start_operator_with(Start { settings: version("2.0.0"), ..Start::default() }).await;
    world.settled(&operator, "plain").await;
    let pods = world.pod_uids("plain").await;
    assert_eq!(generation(&world.stateful_set("plain").await), generation(&first));

    let patch = upgrade_of(&site, "2.0.0");
    world.edit_site("plain", patch.clone()).await;
    eventually("the pod is another", SOON, || async {
        let now = world.pod_uids("plain").await;
        now.len() == 1 && now != pods
    })
    .await;
    let site = world.running(&operator, "plain").await;
    let second = world.stateful_set("plain").await;
    assert_eq!(generation(&second), generation(&first) + 1);
    for (name, image) in images(&second) {
        assert_eq!(image, expect(&name, "2.0.0"));
    }
    let custom = &site["spec"]["configuration"]["applications"][3];
    assert_eq!(*custom, applications[3], "what the person wrote is kept");

    // The same upgrade again is no change: the list is the record.
    assert_eq!(upgrade_of(&site, "2.0.0"), patch);
    let again = world.edit_site("plain", patch).await;
    assert_eq!(again["metadata"]["resourceVersion"], site["metadata"]["resourceVersion"]);
    world.end().await;
}
