//! LIFE-11: an object of a Site that somebody deletes comes back, as it was.

use serde_json::{Value, json};

use crate::support::api::{kind_of, name_of};
use crate::support::{Operator, SOON, World, eventually};

/// Deletes an object and waits until another one of that name is there, with the same content.
async fn deleted_comes_back(world: &World, kind: &str, name: &str) -> Value {
    let old = world.must(kind, name).await;
    assert!(world.api.delete(kind, &world.namespace, name).await);
    let new = eventually(&format!("{kind} {name} is back"), SOON, || async {
        let new = world.get(kind, name).await?;
        (new["metadata"]["uid"] != old["metadata"]["uid"]).then_some(new)
    })
    .await;
    for part in ["labels", "annotations", "ownerReferences"] {
        assert_eq!(new["metadata"][part], old["metadata"][part], "{part} of {kind} {name}");
    }
    assert_eq!(new["data"], old["data"], "{kind} {name}");
    let mut specs = [old["spec"].clone(), new["spec"].clone()];
    for spec in &mut specs {
        // The server chooses them.
        for field in ["clusterIP", "clusterIPs"] {
            spec.as_object_mut().map(|spec| spec.remove(field));
        }
    }
    assert_eq!(specs[1], specs[0], "{kind} {name}");
    new
}

/// Every child of the Site but its claim, pods and volume.
async fn children(world: &World, id: &str) -> Vec<(String, String)> {
    let mut objects = world.objects_of(id).await;
    objects.retain(|object| !["PersistentVolumeClaim", "Pod", "PersistentVolume"].contains(&kind_of(object)));
    objects.iter().map(|object| (kind_of(object).to_owned(), name_of(object).to_owned())).collect()
}

/// Deletes the objects of two like Sites, half of them each: many repairs of one Site in a row are slowed down.
async fn each_comes_back(world: &World, ids: [&str; 2], expected: &[&str]) {
    for (turn, id) in ids.iter().enumerate() {
        let all = children(world, id).await;
        let kinds: Vec<&str> = all.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, expected, "{all:?}");
        for (kind, name) in all.iter().skip(turn).step_by(2) {
            deleted_comes_back(world, kind, name).await;
        }
        assert_eq!(children(world, id).await, all);
        world.wait_ready(id).await;
    }
}

#[tokio::test]
async fn life_11_each_object_comes_back_in_ingress_mode() {
    let world = World::new("life-11-ingress").await;
    let _operator = world.start_operator().await;
    for id in ["one", "two"] {
        world.site(id, json!({})).await;
    }
    for id in ["one", "two"] {
        world.wait_phase(id, "Running").await;
    }
    let kinds = ["Secret", "Secret", "ConfigMap", "ConfigMap", "StatefulSet", "Service", "Ingress"];
    each_comes_back(&world, ["one", "two"], &kinds).await;
    // The pod went with its StatefulSet, and came back with it.
    for id in ["one", "two"] {
        eventually("the pod is there", SOON, || async { world.pods(id).await.len() == 1 }).await;
        world.wait_phase(id, "Running").await;
    }
    world.end().await;
}

#[tokio::test]
async fn life_11_each_object_comes_back_in_gateway_mode() {
    let mut world = World::new("life-11-gateway").await;
    world.settings["routing"] =
        json!({"mode": "gateway", "host": "sites.example.test", "gateway": {"provider": "envoy-gateway"}});
    let _operator = world.start_operator().await;
    for id in ["one", "two"] {
        world.site(id, json!({"configuration": {"enabled": false}})).await;
    }
    for id in ["one", "two"] {
        world.wait_ready(id).await;
    }
    let kinds =
        ["Secret", "Secret", "ConfigMap", "ConfigMap", "StatefulSet", "Service", "HTTPRoute", "BackendTrafficPolicy"];
    each_comes_back(&world, ["one", "two"], &kinds).await;
    world.end().await;
}

/// What was deleted while nobody looked comes back too: here with the restart time that the status remembers.
#[tokio::test]
async fn life_11_a_stateful_set_comes_back_with_its_restart_time() {
    let world = World::new("life-11-set").await;
    let operator = world.start_operator().await;
    world.site("back", json!({})).await;
    world.wait_phase("back", "Running").await;
    world.wait_ready("back").await;
    operator.stop().await;
    // Another time than any that the operator would choose now.
    let recorded = "2026-01-02T03:04:05Z";
    let patch = json!({"status": {"handled": {"restarted_at": recorded}}});
    world.api.merge("Site", &world.namespace, "back", "status", &patch).await.unwrap();
    assert!(world.api.delete("StatefulSet", &world.namespace, "back").await);
    let _operator: Operator = world.start_operator().await;
    let set = eventually("the StatefulSet is back", SOON, || world.get("StatefulSet", "back")).await;
    let annotations = &set["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["kubectl.kubernetes.io/restartedAt"], recorded);
    eventually("the pod is back", SOON, || async {
        let pod = world.pods("back").await.into_iter().find(|pod| pod["metadata"]["deletionTimestamp"].is_null())?;
        (pod["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] == recorded).then_some(())
    })
    .await;
    world.wait_phase("back", "Running").await;
    world.end().await;
}

/// A claim in use is only marked; once it is gone it comes back, on the volume that holds its data.
#[tokio::test]
async fn life_11_a_claim_comes_back_on_its_volume() {
    let world = World::new("life-11-claim").await;
    let _operator = world.start_operator().await;
    world.site("data", json!({})).await;
    world.wait_phase("data", "Running").await;
    eventually("the volume is labelled", SOON, || async {
        !world.of_site("PersistentVolume", "data").await.is_empty()
    })
    .await;
    let old = world.claim("data").await;
    assert!(world.api.delete("PersistentVolumeClaim", &world.namespace, "data").await);
    assert!(!world.claim("data").await["metadata"]["deletionTimestamp"].is_null(), "its pod holds it");
    world.edit_site("data", json!({"spec": {"configuration": {"description": "ready still"}}})).await;
    world.wait_ready("data").await;

    let pod = world.pods("data").await.remove(0);
    assert!(world.api.delete("Pod", &world.namespace, name_of(&pod)).await);
    let new = eventually("the claim is back", SOON, || async {
        let new = world.get("PersistentVolumeClaim", "data").await?;
        (new["metadata"]["uid"] != old["metadata"]["uid"] && new["status"]["phase"] == "Bound").then_some(new)
    })
    .await;
    assert_eq!(new["spec"]["volumeName"], old["spec"]["volumeName"]);
    world.wait_phase("data", "Running").await;
    world.end().await;
}
