//! The platform as its administrators see it: quotas of the namespace, what runs, and volumes that Sites have left.

use serde_json::{Value, json};

use crate::support::{Act, FaultProxy, HubProcess, Match, OpenId, SOON, Start, Times, World, eventually};

const PLATFORM: &str = "/hub/api/v2/platform/";
const VOLUMES: &str = "/hub/api/v2/platform/volumes/";

#[tokio::test(flavor = "multi_thread")]
async fn hub_platform_shows_quotas_and_versions() {
    let mut world = World::new("hub-platform").await;
    world.settings["site"]["images"] = json!({"site-webdav": "registry.example.test/webdav:9"});
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let admin = openid.token("carol-admin");
    for path in ["quota/", "versions/", "volumes/", "state/"] {
        for (token, status) in [(String::new(), 401), (openid.token("alice"), 403), (admin.clone(), 200)] {
            let told = hub.get(&format!("{PLATFORM}{path}"), &token).await;
            assert_eq!(told.status, status, "{path}: {}", told.text());
        }
    }
    let quotas = async || hub.get(&format!("{PLATFORM}quota/"), &admin).await.json()["quotas"].clone();
    assert_eq!(quotas().await, json!([]));
    // The cluster's own controller counts what is there when a quota comes.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}});
    world.api.create(&world.namespace, &secret).await.unwrap();
    for (name, hard) in [("b-pods", json!({"pods": "10"})), ("a-secrets", json!({"secrets": "1k"}))] {
        let quota =
            json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}});
        world.api.create(&world.namespace, &quota).await.unwrap();
    }
    eventually("the quotas are counted", SOON, || async {
        let seen = quotas().await;
        let secrets = json!({"name": "a-secrets", "hard": {"secrets": "1k"}, "used": {"secrets": "1"}});
        let pods = json!({"name": "b-pods", "hard": {"pods": "10"}, "used": {"pods": "0"}});
        if seen == json!([secrets, pods]) { Ok(()) } else { Err(seen.to_string()) }
    })
    .await;

    let versions = hub.get(&format!("{PLATFORM}versions/"), &admin).await.json();
    assert_eq!(versions["hub"], env!("CARGO_PKG_VERSION"));
    let server = world.api.send("GET", "/version", "application/json", &Value::Null).await.unwrap();
    assert_eq!(versions["kubernetes"], server["gitVersion"]);
    let images = &versions["images"];
    assert_eq!(
        (&images["site-webdav"], &images["site-api"]),
        (&json!("registry.example.test/webdav:9"), &json!("sites:1.0.0"))
    );
    assert!(
        images["site-proxy"].as_str().unwrap().contains("nginx") && images.get("site-custom").is_none(),
        "{images}"
    );
    world.end().await;
}

/// A volume as it is left: its claim is gone. `labels` are what it carries.
async fn left(world: &World, name: &str, labels: Value, claim: (&str, &str)) -> String {
    let name = format!("{}-{name}", world.namespace);
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "labels": labels},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "nobodys", "capacity": {"storage": "3Gi"},
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": format!("/old/{name}")},
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.0, "name": claim.1,
                "uid": uuid::Uuid::new_v4().to_string(), "resourceVersion": "1",
            },
        },
    });
    world.api.create("", &volume).await.unwrap();
    in_phase(world, &name, "Released").await;
    name
}

async fn in_phase(world: &World, name: &str, phase: &str) {
    eventually(&format!("volume {name} is {phase}"), SOON, || async {
        let volume = world.api.get("PersistentVolume", "", name).await.ok_or("it is gone")?;
        if volume["status"]["phase"] == phase { Ok(()) } else { Err(volume["status"].to_string()) }
    })
    .await;
}

fn of_site(id: &str) -> Value {
    let name = |part: &str| format!("sites.ecmwf.int/{part}");
    json!({name("app"): "site", name("id"): id, name("space"): "docs", name("name"): "fdb"})
}

async fn delete(hub: &HubProcess, token: &str, name: &str) -> (u16, String) {
    let told = hub.json("DELETE", &format!("{VOLUMES}{name}/"), token, &Value::Null).await;
    (told.status, told.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_platform_volumes_that_sites_have_left_are_listed_and_given_up() {
    let world = World::new("hub-volumes").await;
    let operator = world.start_operator().await;
    let proxy = FaultProxy::start(world.lab()).await;
    let openid = OpenId::get().await;
    let start = Start { kubeconfig: Some(world.hub_kubeconfig_through(&proxy).await), ..Start::default() };
    let hub = world.start_hub_process_with(openid, start).await;
    let (admin, alice) = (openid.token("carol-admin"), openid.token("alice"));
    let here = world.namespace.as_str();

    // One by a Site that lived, one that is in use, and what is not a Site's of this platform.
    world.site("gone", json!({})).await;
    world.running(&operator, "gone").await;
    let gone = world.claim("gone").await["spec"]["volumeName"].as_str().unwrap().to_owned();
    world.delete_site("gone").await;
    world.wait_gone("gone").await;
    in_phase(&world, &gone, "Released").await;
    world.site("used", json!({})).await;
    world.running(&operator, "used").await;
    let used = world.claim("used").await["spec"]["volumeName"].as_str().unwrap().to_owned();
    let old = left(&world, "old", of_site("old"), (here, "old")).await;
    let elsewhere = left(&world, "elsewhere", of_site("old"), ("another-platform", "old")).await;
    let unlabelled = left(&world, "unlabelled", json!({}), (here, "old")).await;
    let of_another_app =
        left(&world, "other-app", json!({"sites.ecmwf.int/app": "wiki", "sites.ecmwf.int/id": "old"}), (here, "old"))
            .await;

    let listed = async || {
        let told = hub.get(VOLUMES, &admin).await;
        assert_eq!(told.status, 200, "{}", told.text());
        told.json()["volumes"].as_array().unwrap().clone()
    };
    let names =
        |volumes: &[Value]| volumes.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let volumes = listed().await;
    let mut expected = vec![gone.clone(), old.clone()];
    expected.sort();
    assert_eq!(names(&volumes), expected);
    let view = volumes.iter().find(|one| one["name"] == old.as_str()).unwrap();
    assert_eq!(
        (&view["site_id"], &view["space"], &view["site"], &view["capacity"]),
        (&json!("old"), &json!("docs"), &json!("fdb"), &json!("3Gi"))
    );
    assert!(view["created"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{view}");

    // Who may not, what may not, and what has no name.
    assert_eq!((delete(&hub, "", &old).await.0, delete(&hub, &alice, &old).await.0), (401, 403));
    for name in [&used, &elsewhere, &unlabelled, &of_another_app, &"no-such-volume".to_owned()] {
        let (status, text) = delete(&hub, &admin, name).await;
        assert_eq!(status, 404, "{name}: {text}");
    }
    for name in ["a_b", "..%2Fx", "%2e%2e", "a%00"] {
        assert_eq!(delete(&hub, &admin, name).await.0, 400, "{name}");
    }
    for name in [&used, &elsewhere, &unlabelled, &of_another_app, &old] {
        assert!(world.api.get("PersistentVolume", "", name).await.is_some(), "{name}");
    }

    // A Site by that id may take it, and one that somebody touched meanwhile is looked at again.
    operator.kill();
    world.site("old", json!({})).await;
    let (status, text) = delete(&hub, &admin, &old).await;
    assert!(status == 409 && text.contains("delete that site first"), "{status} {text}");
    world.delete_site("old").await;
    let held = proxy.fault(Match::on("delete", "persistentvolumes"), Act::Hold, Times::Always);
    let (told, ()) = tokio::join!(delete(&hub, &admin, &old), async {
        eventually("the deletion is on its way", SOON, || async { proxy.hits(held) == 1 }).await;
        let touch = json!({"metadata": {"annotations": {"example.test/touched": "yes"}}});
        world.api.merge("PersistentVolume", "", &old, "", &touch).await.unwrap();
        proxy.lift(held);
    });
    assert_eq!(told.0, 409, "{}", told.1);
    assert!(world.api.get("PersistentVolume", "", &old).await.is_some());

    for name in [&old, &gone] {
        let (status, text) = delete(&hub, &admin, name).await;
        assert_eq!(status, 200, "{name}: {text}");
        eventually("it goes", SOON, || async { world.api.get("PersistentVolume", "", name).await.is_none() }).await;
        assert_eq!(delete(&hub, &admin, name).await.0, 404);
    }
    assert!(listed().await.is_empty());
    for name in [elsewhere, unlabelled, of_another_app] {
        world.api.delete("PersistentVolume", "", &name).await;
    }
    world.end().await;
}
