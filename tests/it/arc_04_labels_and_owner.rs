//! ARC-04: every object of a Site carries the Site's labels and is owned by it, and its volume carries the labels; what
//! somebody removes comes back, and no pod is restarted for it.

use serde_json::{Value, json};

use crate::support::api::{kind_of, name_of};
use crate::support::belongings::{
    GATEWAY_ROUTE, INGRESS_ROUTE, LABELS, before_the_route, gateway_mode, generation, owner_reference_to, uid,
};
use crate::support::{SOON, Start, World, eventually};

/// The labels that the Site of these tests must give.
fn expected() -> [(&'static str, &'static str); 6] {
    let values = ["site", "plain", "lab", "plain", "ada", "sites-operator"];
    std::array::from_fn(|place| (LABELS[place], values[place]))
}

fn labels_are_right(object: &Value) -> Result<(), String> {
    let labels = &object["metadata"]["labels"];
    let wrong = expected().into_iter().find(|(name, value)| labels[*name] != *value);
    wrong
        .map_or(Ok(()), |(name, _)| Err(format!("{}/{} has {name}={}", kind_of(object), name_of(object), labels[name])))
}

/// Kind and name of every object but pods and volume.
async fn children(world: &World, route: &[&'static str]) -> Vec<(&'static str, String)> {
    let mut all = before_the_route("plain");
    for kind in route {
        let found = world.of_site(kind, "plain").await;
        assert_eq!(found.len(), 1, "one {kind}");
        all.push((kind, name_of(&found[0]).to_owned()));
    }
    all
}

async fn carried_and_restored(settings: Value, route: &[&'static str]) {
    let world = World::new("arc-04").await;
    let operator = world.start_operator_with(Start { settings, ..Start::default() }).await;
    world.site("plain", json!({"owner": "ada"})).await;
    let site = world.running(&operator, "plain").await;
    let children = children(&world, route).await;
    let mut before = Vec::new();
    for (kind, name) in &children {
        let object = world.must(kind, name).await;
        labels_are_right(&object).unwrap();
        owner_reference_to(&object, &site).unwrap();
        before.push(object);
    }
    let volume = world.volume("plain").await.unwrap();
    labels_are_right(&volume).unwrap();
    assert!(volume["metadata"]["ownerReferences"].is_null(), "a volume outlives its Site");
    for pod in world.pods("plain").await {
        labels_are_right(&pod).unwrap();
        assert!(!pod["metadata"]["annotations"]["sites.ecmwf.int/operator_bound"].is_null());
    }
    let pods = world.pod_uids("plain").await;

    // One label of each in turn, the one that the operator finds it by among them; then all of each; then the owner.
    let removals = LABELS.iter().map(|label| json!({"labels": {*label: null}})).chain([
        json!({"labels": null}),
        json!({"labels": {LABELS[4]: "eve"}}),
        json!({"ownerReferences": null}),
    ]);
    for removal in removals {
        for (kind, name) in &children {
            let patch = json!({"metadata": removal});
            world.api.merge(kind, &world.namespace, name, "", &patch).await.unwrap();
        }
        if removal.get("labels").is_some() {
            let patch = json!({"metadata": removal});
            world.api.merge("PersistentVolume", "", name_of(&volume), "", &patch).await.unwrap();
        }
        for (place, (kind, name)) in children.iter().enumerate() {
            eventually(&format!("{kind}/{name} is itself again after {removal}"), SOON, || async {
                let object = world.must(kind, name).await;
                labels_are_right(&object)?;
                owner_reference_to(&object, &site)?;
                let same = uid(&object) == uid(&before[place]);
                if same { Ok(()) } else { Err("another object has taken its place".to_owned()) }
            })
            .await;
        }
        eventually(&format!("the volume is itself again after {removal}"), SOON, || async {
            labels_are_right(&world.api.get("PersistentVolume", "", name_of(&volume)).await.ok_or("no volume")?)
        })
        .await;
    }

    world.running(&operator, "plain").await;
    let set = before.iter().find(|object| kind_of(object) == "StatefulSet").unwrap();
    assert_eq!(generation(&world.stateful_set("plain").await), generation(set), "no template was written");
    assert_eq!(world.pod_uids("plain").await, pods, "no pod was restarted");
    world.end().await;
}

#[tokio::test]
async fn arc_04_labels_and_owner_in_ingress_mode() {
    carried_and_restored(json!({}), INGRESS_ROUTE).await;
}

#[tokio::test]
async fn arc_04_labels_and_owner_in_gateway_mode() {
    carried_and_restored(gateway_mode(), GATEWAY_ROUTE).await;
}
