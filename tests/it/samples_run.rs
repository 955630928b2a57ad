//! The sample Sites apply and run in both routing modes; each rendered object is accepted as it is meant, so that
//! another look finds no difference.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::api::{documents, kind_of, name_of};
use crate::support::{SOON, Start, World, eventually};

/// Applies every sample and gives the ids.
async fn apply_samples(world: &World) -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sites");
    let mut ids = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for site in world.apply(&text).await {
            assert_eq!(kind_of(&site), "Site");
            ids.push(name_of(&site).to_owned());
        }
        assert!(!documents(&text).is_empty());
    }
    assert!(ids.len() >= 4, "{ids:?}");
    ids
}

async fn kinds(world: &World, id: &str) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for object in world.objects_of(id).await {
        *kinds.entry(kind_of(&object).to_owned()).or_default() += 1;
    }
    kinds
}

/// Runs the samples, then restarts the operator: first as it is, then with everything to compare.
async fn run(world: World, expected: &[(&str, usize)]) {
    let Some(audit) = world.lab().audit_or_skip("samples") else { return };
    let operator = world.start_operator().await;
    let ids = apply_samples(&world).await;
    for id in &ids {
        world.wait_ready(id).await;
        world.wait_phase(id, "Running").await;
        eventually("the volume is labelled", SOON, || async { world.of_site("PersistentVolume", id).await.len() == 1 })
            .await;
        let kinds = kinds(&world, id).await;
        let expected = expected.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
        assert_eq!(kinds, expected, "{id}");
    }
    let pods = |id: String| {
        let world = &world;
        async move { (world.pod_uids(&id).await, id) }
    };
    let before = futures::future::join_all(ids.iter().cloned().map(pods)).await;
    operator.stop().await;

    let mark = audit.mark();
    let operator = world.start_operator().await;
    world.site("canary", json!({})).await;
    world.wait_ready("canary").await;
    operator.stop().await;
    let calls = world.calls(mark).of_passes().filter(|call| ids.iter().any(|id| call.name.starts_with(id.as_str())));
    assert_eq!(calls.count(), 0, "{}", calls.describe());

    // Everything that is rendered stands in the live object: a comparison of all of it writes nothing.
    for id in &ids {
        let forget = json!({"status": {"handled": Value::Null}});
        world.api.merge("Site", &world.namespace, id, "status", &forget).await.unwrap();
    }
    let mark = audit.mark();
    let _operator = world.start_operator_with(Start::default()).await;
    for id in &ids {
        world.wait_site(id, "it is recorded", |site| site["status"]["handled"]["digest"].is_string()).await;
    }
    let calls = world.calls(mark).of_passes();
    let reads = calls.clone().filter(|call| call.verb == "get").count();
    assert!(reads >= 8 * ids.len(), "{}", calls.describe());
    let writes = calls.writes().filter(|call| call.subresource != "status" && call.resource != "persistentvolumes");
    assert_eq!(writes.count(), 0, "{}", writes.describe());
    let after = futures::future::join_all(ids.iter().cloned().map(pods)).await;
    assert_eq!(after, before, "no pod was restarted");
    world.end().await;
}

const COMMON: [(&str, usize); 7] = [
    ("ConfigMap", 2),
    ("PersistentVolume", 1),
    ("PersistentVolumeClaim", 1),
    ("Pod", 1),
    ("Secret", 2),
    ("Service", 1),
    ("StatefulSet", 1),
];

#[tokio::test]
async fn samples_run_in_ingress_mode() {
    let world = World::new("samples").await;
    run(world, &[&COMMON[..], &[("Ingress", 1)]].concat()).await;
}

#[tokio::test]
async fn samples_run_in_gateway_mode_with_envoy_gateway() {
    let mut world = World::new("samples-envoy").await;
    world.settings["routing"]["mode"] = json!("gateway");
    world.settings["routing"]["gateway"] = json!({"provider": "envoy-gateway"});
    run(world, &[&COMMON[..], &[("HTTPRoute", 1), ("BackendTrafficPolicy", 1)]].concat()).await;
}
