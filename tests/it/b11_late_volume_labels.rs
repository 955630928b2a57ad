//! B11: that a volume lacks its label is a fact, seen whenever volume and operator are both there; nothing waits for a
//! volume that nobody uses yet. (LIFE-08 has an operator that is killed while it labels.)

use serde_json::json;

use crate::support::api::condition;
use crate::support::belongings::LABELS;
use crate::support::{Lab, SOON, World, eventually};

/// A class whose volumes are made when a pod asks for them.
async fn late_class(world: &mut World) -> String {
    let name = format!("late-{}", world.namespace);
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": "kwok.x-k8s.io/volume", "reclaimPolicy": "Retain", "volumeBindingMode": "WaitForFirstConsumer",
    });
    world.api.create("", &class).await.unwrap();
    world.settings["kubernetes"]["storage_class"] = name.clone().into();
    name
}

async fn wait_labelled(world: &World, id: &str) {
    eventually(&format!("the volume of {id} is labelled"), SOON, || async {
        let volume = world.volume(id).await.ok_or("no volume")?;
        let labels = &volume["metadata"]["labels"];
        let lacks = LABELS.iter().find(|label| labels[label].as_str().is_none());
        lacks.map_or(Ok(()), |label| Err(format!("{label} is not among {labels}")))
    })
    .await;
    assert_eq!(world.volume(id).await.unwrap()["metadata"]["labels"]["sites.ecmwf.int/id"], id);
}

#[tokio::test]
async fn b11_an_operator_killed_before_the_label_leaves_it_to_the_next() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("b11_an_operator_killed_before_the_label") else { return };
    let mut world = World::new("b11").await;
    world.settings["operator"]["lease"]["enabled"] = false.into();
    let soon = world.settings["operator"]["volume_label"].clone();
    world.settings["operator"]["volume_label"] = json!({"create_min": "600s", "create_max": "601s", "update": "600s"});
    let operator = world.start_operator().await;
    world.site("plain", json!({})).await;
    world.wait_phase("plain", "Running").await;
    let site = world.wait_ready("plain").await;
    assert!(world.of_site("PersistentVolume", "plain").await.is_empty(), "the label is still to come");
    operator.kill();

    world.settings["operator"]["volume_label"] = soon;
    let mark = audit.mark();
    let operator = world.start_operator().await;
    wait_labelled(&world, "plain").await;
    world.settled(&operator, "plain").await;
    world.audit_is_complete().await;
    let calls = world.calls(mark).of_passes();
    assert_eq!(calls.count(), 1, "the label and nothing else:\n{}", calls.describe());
    assert_eq!(world.must("Site", "plain").await["metadata"]["generation"], site["metadata"]["generation"]);
    world.end().await;
}

/// A Site that is archived from the start: its claim waits for a pod, over an operator's restart; then one comes.
#[tokio::test]
async fn b11_a_claim_that_waits_for_a_pod_is_labelled_when_it_is_bound() {
    let mut world = World::new("b11-late").await;
    let class = late_class(&mut world).await;
    let operator = world.start_operator().await;
    world.site("late", json!({"configuration": {"enabled": false}})).await;
    world.wait_ready("late").await;
    world.settled(&operator, "late").await;
    assert!(world.get("StatefulSet", "late").await.is_some(), "the pods' set does not wait for the volume");
    assert_eq!(world.claim("late").await["status"]["phase"], "Pending");
    operator.stop().await;
    let operator = world.start_operator().await;
    world.settled(&operator, "late").await;
    assert_eq!(world.claim("late").await["status"]["phase"], "Pending");
    let site = world.must("Site", "late").await;

    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "consumer"},
        "spec": {
            "containers": [{"name": "one", "image": "one", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "late"}}],
        },
    });
    world.api.create(&world.namespace, &pod).await.unwrap();
    wait_labelled(&world, "late").await;
    assert_eq!(world.must("Site", "late").await["metadata"]["generation"], site["metadata"]["generation"]);
    world.api.delete("StorageClass", "", &class).await;
    world.end().await;
}

/// With pods of its own the claim is bound by them: an operator that waited for the volume first would wait for ever.
#[tokio::test]
async fn b11_the_pods_do_not_wait_for_the_volume_that_waits_for_them() {
    let mut world = World::new("b11-first").await;
    let class = late_class(&mut world).await;
    let _operator = world.start_operator().await;
    let site = world.site("first", json!({})).await;
    let site = world.wait_phase(site["metadata"]["name"].as_str().unwrap(), "Running").await;
    assert!(condition(&site, "VolumeLabelled").is_none(), "{site}");
    wait_labelled(&world, "first").await;
    world.api.delete("StorageClass", "", &class).await;
    world.end().await;
}
