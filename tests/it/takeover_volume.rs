//! The content of a deleted Site: its volume is retained, and taken again when the Site is created once more.

use serde_json::{Value, json};

use crate::support::api::{condition, name_of};
use crate::support::{SOON, World, eventually};

async fn wait_volume(world: &World, name: &str, phase: &str) -> Value {
    eventually(&format!("volume {name} is {phase}"), SOON, || async {
        let volume = world.api.get("PersistentVolume", "", name).await.ok_or("it is gone")?;
        if volume["status"]["phase"] == phase { Ok(volume) } else { Err(volume["status"].to_string()) }
    })
    .await
}

#[tokio::test]
async fn takeover_attaches_the_volume_of_a_deleted_site_again() {
    let world = World::new("again").await;
    let _operator = world.start_operator().await;
    world.site("alpha", json!({"configuration": {"quota": 3}})).await;
    world.wait_phase("alpha", "Running").await;
    eventually("the volume is labelled", SOON, || async {
        world.of_site("PersistentVolume", "alpha").await.len() == 1
    })
    .await;
    let volume = world.volume("alpha").await.unwrap();
    let name = name_of(&volume).to_owned();
    assert_eq!(volume["spec"]["capacity"]["storage"], "3Gi");
    world.delete_site("alpha").await;
    world.wait_gone("alpha").await;
    wait_volume(&world, &name, "Released").await;

    // Larger than before: the claim asks for what the volume has.
    world.site("alpha", json!({"configuration": {"quota": 5}})).await;
    world.wait_phase("alpha", "Running").await;
    let bound = wait_volume(&world, &name, "Bound").await;
    let claim = world.claim("alpha").await;
    assert_eq!(claim["spec"]["volumeName"], name.as_str());
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "3Gi");
    assert_eq!(bound["spec"]["claimRef"]["uid"], claim["metadata"]["uid"]);
    assert_eq!(bound["spec"]["hostPath"], volume["spec"]["hostPath"], "the data is where it was");
    let pod = world.pods("alpha").await.remove(0);
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    assert!(volumes.iter().any(|volume| volume["persistentVolumeClaim"]["claimName"] == "alpha"));
    world.end().await;
}

/// A volume that an older platform left, for a claim of that name.
async fn leave_volume(world: &World, name: &str, claim: &str, labels: Value) {
    let claim_object = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": claim},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "kwok-volume", "volumeName": name,
            "resources": {"requests": {"storage": "4Gi"}},
        },
    });
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "labels": labels},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "kwok-volume", "capacity": {"storage": "4Gi"},
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": format!("/old/{name}")},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": world.namespace, "name": claim},
        },
    });
    world.api.create("", &volume).await.unwrap();
    world.api.create(&world.namespace, &claim_object).await.unwrap();
    wait_volume(world, name, "Bound").await;
    assert!(world.api.delete("PersistentVolumeClaim", &world.namespace, claim).await);
    wait_volume(world, name, "Released").await;
}

#[tokio::test]
async fn takeover_attaches_the_volume_of_an_old_claim_name() {
    let mut world = World::new("old-claim").await;
    world.settings["kubernetes"]["old_claim_names"] = json!(["claim-{owner}"]);
    let (mine, other) = (format!("{}-ana", world.namespace), format!("{}-bo", world.namespace));
    leave_volume(&world, &mine, "claim-ana", Value::Null).await;
    leave_volume(&world, &other, "claim-bo", Value::Null).await;
    let _operator = world.start_operator().await;
    world.site("alpha", json!({"owner": "ana"})).await;
    world.site("beta", json!({"owner": "cy"})).await;
    world.wait_phase("alpha", "Running").await;
    world.wait_phase("beta", "Running").await;
    assert_eq!(world.claim("alpha").await["spec"]["volumeName"], mine.as_str());
    assert_eq!(wait_volume(&world, &mine, "Bound").await["spec"]["claimRef"]["name"], "alpha");
    let beta = world.claim("beta").await["spec"]["volumeName"].clone();
    assert!(beta != mine.as_str() && beta != other.as_str(), "{beta}");
    wait_volume(&world, &other, "Released").await;
    world.end().await;
}

#[tokio::test]
async fn takeover_touches_neither_of_two_volumes_that_could_be_the_sites() {
    let world = World::new("two-volumes").await;
    let names = ["one", "two"].map(|name| format!("{}-{name}", world.namespace));
    for (name, claim) in names.iter().zip(["first", "second"]) {
        leave_volume(&world, name, claim, json!({"sites.ecmwf.int/id": "alpha"})).await;
    }
    let _operator = world.start_operator().await;
    world.site("alpha", json!({})).await;
    let site = world.wait_condition("alpha", "Ready", "False").await;
    let ready = condition(&site, "Ready").unwrap();
    assert_eq!(ready["reason"], "VolumeAmbiguous");
    let message = ready["message"].as_str().unwrap();
    assert!(names.iter().all(|name| message.contains(name)), "{message}");
    for name in &names {
        wait_volume(&world, name, "Released").await;
    }
    assert!(world.get("PersistentVolumeClaim", "alpha").await.is_none());
    assert!(world.get("StatefulSet", "alpha").await.is_none());

    // An administrator decides.
    let label = json!({"metadata": {"labels": {"sites.ecmwf.int/id": null}}});
    world.api.merge("PersistentVolume", "", &names[1], "", &label).await.unwrap();
    world.wait_phase("alpha", "Running").await;
    assert_eq!(world.claim("alpha").await["spec"]["volumeName"], names[0].as_str());
    world.end().await;
}
