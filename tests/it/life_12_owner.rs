//! LIFE-12: every object of a Site has one owner reference, the current one, whatever somebody or a restore left.

use serde_json::{Value, json};

use crate::support::api::{kind_of, name_of};
use crate::support::{SOON, World, eventually};

/// The objects that a Site owns.
async fn owned(world: &World, id: &str) -> Vec<Value> {
    let mut objects = world.objects_of(id).await;
    objects.retain(|object| !["Pod", "PersistentVolume"].contains(&kind_of(object)));
    objects
}

/// Waits until each object of the Site has exactly the reference to it.
async fn wait_owned_by(world: &World, id: &str, uid: &Value) {
    eventually("each object has the one reference", SOON, || async {
        for object in owned(world, id).await {
            let references = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
            let right = references.len() == 1
                && references[0]["uid"] == *uid
                && references[0]["apiVersion"] == "sites.ecmwf.int/v1"
                && references[0]["kind"] == "Site"
                && references[0]["name"] == id;
            if !right {
                return Err(format!("{} {}: {references:?}", kind_of(&object), name_of(&object)));
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn life_12_wrong_references_are_cleared_on_each_object() {
    let world = World::new("life-12-clear").await;
    let _operator = world.start_operator().await;
    // It exists, so that the garbage collector has no reason to take its reference away.
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}});
    let other = world.api.create(&world.namespace, &other).await.unwrap();
    let extra = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["metadata"]["uid"]});
    // A Site a case: many repairs of one Site in a row are slowed down.
    for case in 0..5 {
        let id = format!("mine-{case}");
        let site = world.site(&id, json!({})).await;
        let uid = &site["metadata"]["uid"];
        world.wait_phase(&id, "Running").await;
        let reference = |version: &str| json!({"apiVersion": version, "kind": "Site", "name": id, "uid": uid});
        let current = reference("sites.ecmwf.int/v1");
        let old_version = reference("sites.ecmwf.int/v1alpha1");
        let references = match case {
            0 => json!([current, extra]),
            1 => json!([old_version]),
            2 => json!([extra, old_version, current]),
            3 => json!([reference("example.test/v1"), current]),
            _ => json!([]),
        };
        let pods = world.pod_uids(&id).await;
        let objects = owned(&world, &id).await;
        assert_eq!(objects.len(), 8);
        for object in &objects {
            let patch = json!({"metadata": {"ownerReferences": references}});
            world.api.merge(kind_of(object), &world.namespace, name_of(object), "", &patch).await.unwrap();
        }
        wait_owned_by(&world, &id, uid).await;
        for (before, after) in objects.iter().zip(&owned(&world, &id).await) {
            assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
            assert_eq!(before["metadata"]["generation"], after["metadata"]["generation"], "{}", kind_of(before));
        }
        assert_eq!(world.pod_uids(&id).await, pods);
    }
    world.end().await;
}

/// An object that belongs to something else stays as it is, and the Site says so.
#[tokio::test]
async fn life_12_an_object_of_another_owner_is_left_alone() {
    let world = World::new("life-12-foreign").await;
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}});
    let other = world.api.create(&world.namespace, &other).await.unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "mine", "labels": {"sites.ecmwf.int/id": "mine", "sites.ecmwf.int/app": "site"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["metadata"]["uid"]}]},
    });
    let secret = world.api.create(&world.namespace, &secret).await.unwrap();
    let _operator = world.start_operator().await;
    world.site("mine", json!({})).await;
    let site = world.wait_condition("mine", "Ready", "False").await;
    let ready = crate::support::api::condition(&site, "Ready").unwrap();
    assert_eq!(ready["reason"], "ForeignObject", "{ready}");
    assert_eq!(world.secret("mine").await, secret);
    world.end().await;
}

/// Delete with orphan propagation, then create from the backup: another uid over the same objects.
#[tokio::test]
async fn life_12_a_restored_site_takes_its_objects_back() {
    let world = World::new("life-12-restore").await;
    let _operator = world.start_operator().await;
    let backup = world.site_object("mine", &json!({}));
    let first = world.api.create(&world.namespace, &backup).await.unwrap();
    world.wait_phase("mine", "Running").await;
    world.wait_ready("mine").await;
    let before = owned(&world, "mine").await;
    let pods = world.pod_uids("mine").await;

    let path = format!("/apis/sites.ecmwf.int/v1/namespaces/{}/sites/mine?propagationPolicy=Orphan", world.namespace);
    world.api.send("DELETE", &path, "application/json", &Value::Null).await.unwrap();
    eventually("the Site is gone", SOON, || async { world.get("Site", "mine").await.is_none() }).await;
    assert_eq!(owned(&world, "mine").await.len(), before.len(), "its objects stay");

    let second = world.api.create(&world.namespace, &backup).await.unwrap();
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    world.wait_ready("mine").await;
    wait_owned_by(&world, "mine", &second["metadata"]["uid"]).await;
    world.wait_phase("mine", "Running").await;
    let after = owned(&world, "mine").await;
    assert_eq!(after.len(), before.len());
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"], "{} {}", kind_of(before), name_of(before));
    }
    assert_eq!(world.pod_uids("mine").await, pods, "nothing restarts");
    world.end().await;
}
