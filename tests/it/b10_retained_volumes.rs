//! B10: a retained volume goes to the Site whose data it has, and to nobody else. (The take-over tests have volumes of
//! deleted Sites and of old claim names.)

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::api::{condition, name_of};
use crate::support::belongings::uid;
use crate::support::{Act, FaultProxy, Match, SOON, Start, Times, Upset, World, eventually};

/// A class that nobody provisions: a claim of it waits for a volume that is there.
async fn manual_class(world: &mut World) -> String {
    let name = format!("manual-{}", world.namespace);
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner", "reclaimPolicy": "Retain",
    });
    world.api.create("", &class).await.unwrap();
    world.settings["kubernetes"]["storage_class"] = name.clone().into();
    name
}

/// A volume with the label of a Site whose claim, of this namespace and name, is gone.
async fn released(world: &World, class: &str, name: &str, id: &str, claim: (&str, &str)) -> String {
    let name = format!("{}-{name}", world.namespace);
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {"sites.ecmwf.int/app": "site", "sites.ecmwf.int/id": id}},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class, "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": format!("/old/{name}")},
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.0, "name": claim.1,
                "uid": uuid::Uuid::new_v4().to_string(), "resourceVersion": "1",
            },
        },
    });
    world.api.create("", &volume).await.unwrap();
    wait_volume(world, &name, "Released").await;
    name
}

async fn wait_volume(world: &World, name: &str, phase: &str) -> Value {
    eventually(&format!("volume {name} is {phase}"), SOON, || async {
        let volume = world.api.get("PersistentVolume", "", name).await.ok_or("it is gone")?;
        if volume["status"]["phase"] == phase { Ok(volume) } else { Err(volume["status"].to_string()) }
    })
    .await
}

async fn end(world: World, class: String, volumes: &[String]) {
    for volume in volumes {
        world.api.delete("PersistentVolume", "", volume).await;
    }
    world.api.delete("StorageClass", "", &class).await;
    world.end().await;
}

#[tokio::test]
async fn b10_a_released_volume_is_never_open_to_another_claim() {
    let mut world = World::new("b10").await;
    let class = manual_class(&mut world).await;
    let volume = released(&world, &class, "data", "first", (&world.namespace, "first")).await;
    let proxy = FaultProxy::start(world.lab()).await;
    let start = Start { kubeconfig: Some(proxy.kubeconfig(&world).await), ..Start::default() };
    let operator = world.start_operator_with(start).await;
    // It asks for the same class and size, and was there first.
    world.site("second", json!({})).await;
    world.wait_ready("second").await;
    assert_eq!(world.claim("second").await["status"]["phase"], "Pending");

    // Between the reservation and the claim it is for, the other claim is looked at by its controller.
    let claims = Match::on("create", "persistentvolumeclaims");
    let held = proxy.fault(claims, Act::Delay(Duration::from_secs(4)), Times::Count(1));
    world.site("first", json!({})).await;
    eventually("the claim is on its way", SOON, || async { proxy.hits(held) == 1 }).await;
    let touch = json!({"metadata": {"annotations": {"example.test/touched": "yes"}}});
    world.api.merge("PersistentVolumeClaim", &world.namespace, "second", "", &touch).await.unwrap();
    let reference = world.api.get("PersistentVolume", "", &volume).await.unwrap()["spec"]["claimRef"].clone();
    assert_eq!(reference["name"], "first");
    assert_eq!(reference["namespace"], world.namespace.as_str());
    assert!(reference["uid"].is_null() && reference["resourceVersion"].is_null(), "{reference}");
    world.running(&operator, "first").await;
    let bound = wait_volume(&world, &volume, "Bound").await;
    let claim = world.claim("first").await;
    assert_eq!(claim["spec"]["volumeName"], volume.as_str());
    let reference = &bound["spec"]["claimRef"];
    assert_eq!((&reference["name"], reference["uid"].as_str()), (&json!("first"), Some(uid(&claim))));
    // A volume for it comes: that it takes this one now shows that its binding works and waited.
    let open = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": format!("{}-open", world.namespace)},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class, "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/open"},
        },
    });
    world.api.create("", &open).await.unwrap();
    world.running(&operator, "second").await;
    assert_eq!(world.claim("second").await["spec"]["volumeName"], name_of(&open));
    end(world, class, &[volume, name_of(&open).to_owned()]).await;
}

/// A Site is deleted and made again while the watch of claims is silent: the claim that the operator still knows is gone,
/// and the new one must get the old one's volume.
#[tokio::test]
async fn b10_a_claim_that_went_unseen_is_not_made_again_without_its_volume() {
    let world = World::new("b10-unseen").await;
    let proxy = FaultProxy::start(world.lab()).await;
    let start = Start { kubeconfig: Some(proxy.kubeconfig(&world).await), ..Start::default() };
    let operator = world.start_operator_with(start).await;
    world.site("kept", json!({})).await;
    world.running(&operator, "kept").await;
    let volume = world.claim("kept").await["spec"]["volumeName"].as_str().unwrap().to_owned();
    let claims = Match::on("watch", "persistentvolumeclaims");
    assert_eq!(proxy.upset(&claims, Upset::Silence), 1);
    world.delete_site("kept").await;
    world.wait_gone("kept").await;
    wait_volume(&world, &volume, "Released").await;

    world.site("kept", json!({})).await;
    eventually("it is told by a read, again and again, that the claim is gone", SOON, || async {
        let reads = proxy.seen("get", "persistentvolumeclaims");
        reads.iter().filter(|one| one.code == Some(404)).count() >= 2
    })
    .await;
    assert!(world.get("PersistentVolumeClaim", "kept").await.is_none(), "it would get an empty volume");
    proxy.upset(&claims, Upset::Break);
    world.running(&operator, "kept").await;
    assert_eq!(world.claim("kept").await["spec"]["volumeName"], volume.as_str());
    operator.stop().await;
    world.end().await;
}

/// Waits until the Site says that it cannot tell which volume is its own, and gives the message.
async fn wait_ambiguous(world: &World, id: &str) -> String {
    let site = world.wait_condition(id, "Ready", "False").await;
    let ready = condition(&site, "Ready").unwrap();
    assert_eq!(ready["reason"], "VolumeAmbiguous", "{ready}");
    assert!(world.get("PersistentVolumeClaim", id).await.is_none() && world.get("StatefulSet", id).await.is_none());
    ready["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn b10_a_volume_that_may_be_anothers_is_not_touched_and_the_site_says_why() {
    let mut world = World::new("b10-left").await;
    let class = manual_class(&mut world).await;
    let ours = world.namespace.clone();
    // Two of one Site.
    let one = released(&world, &class, "one", "twice", (&ours, "twice")).await;
    let two = released(&world, &class, "two", "twice", (&ours, "former")).await;
    // One whose label says the Site's and which another claim has.
    let bound = released(&world, &class, "bound", "lent", (&ours, "somebody")).await;
    let open = json!({"spec": {"claimRef": {"uid": null, "resourceVersion": null}}});
    world.api.merge("PersistentVolume", "", &bound, "", &open).await.unwrap();
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "somebody"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class, "volumeName": bound,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    world.api.create(&ours, &claim).await.unwrap();
    wait_volume(&world, &bound, "Bound").await;
    // One of another namespace.
    let foreign = released(&world, &class, "foreign", "away", ("default", "away")).await;
    let volumes = [one.clone(), two.clone(), bound.clone(), foreign.clone()];
    let mut before = Vec::new();
    for name in &volumes {
        before.push(world.api.get("PersistentVolume", "", name).await.unwrap());
    }

    let operator = world.start_operator().await;
    for id in ["twice", "lent", "away"] {
        world.site(id, json!({})).await;
    }
    let message = wait_ambiguous(&world, "twice").await;
    assert!(message.contains(&one) && message.contains(&two), "{message}");
    let message = wait_ambiguous(&world, "lent").await;
    assert!(message.contains(&bound) && message.contains("somebody"), "{message}");
    // A volume of another namespace does not exist for us: the Site waits for a fresh one.
    world.wait_ready("away").await;
    assert_eq!(world.claim("away").await["spec"]["volumeName"], Value::Null);
    for (name, before) in volumes.iter().zip(&before) {
        assert_eq!(world.api.get("PersistentVolume", "", name).await.as_ref(), Some(before), "not a byte has changed");
    }

    // An administrator decides.
    world.api.delete("PersistentVolume", "", &two).await;
    world.running(&operator, "twice").await;
    assert_eq!(world.claim("twice").await["spec"]["volumeName"], one.as_str());
    end(world, class, &volumes).await;
}
