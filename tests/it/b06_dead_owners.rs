//! B06: objects whose owner is dead are taken over before the garbage collector takes them away. (LIFE-12 has the Site
//! that is restored under a running operator and references of every wrong form. The backup itself is a job's.)

use serde_json::{Value, json};

use crate::support::api::{kind_of, name_of};
use crate::support::belongings::{before_the_route, owner_reference_to};
use crate::support::{Lab, SOON, World, eventually};

async fn belongings(world: &World, id: &str) -> Vec<Value> {
    let mut objects = world.objects_of(id).await;
    objects.retain(|object| !matches!(kind_of(object), "PersistentVolume"));
    objects
}

fn uids(objects: &[Value]) -> Vec<String> {
    let uid = |object: &Value| format!("{}/{} {}", kind_of(object), name_of(object), object["metadata"]["uid"]);
    objects.iter().map(uid).collect()
}

/// The Site is orphaned and created again from its backup while no operator runs; its objects name the dead one, in a
/// version that is not served any more, so that only the operator can tell whose they are.
#[tokio::test]
async fn b06_objects_of_a_dead_owner_are_taken_over_and_stay() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("b06_objects_of_a_dead_owner") else { return };
    let world = World::new("b06").await;
    world.cascade_works().await;
    let operator = world.start_operator().await;
    let backup = world.site_object("back", &json!({}));
    let dead = world.api.create(&world.namespace, &backup).await.unwrap();
    world.running(&operator, "back").await;
    world.site("canary", json!({})).await;
    world.running(&operator, "canary").await;
    operator.stop().await;

    let path = format!("/apis/sites.ecmwf.int/v1/namespaces/{}/sites/back?propagationPolicy=Orphan", world.namespace);
    world.api.send("DELETE", &path, "application/json", &Value::Null).await.unwrap();
    eventually("the Site is gone", SOON, || async { world.get("Site", "back").await.is_none() }).await;
    let left = belongings(&world, "back").await;
    assert_eq!(left.len(), 9, "{:?}", uids(&left));
    let owner = json!([{
        "apiVersion": "sites.ecmwf.int/v1alpha1", "kind": "Site", "name": "back", "uid": dead["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }]);
    for object in left.iter().filter(|object| kind_of(object) != "Pod") {
        let references = json!({"metadata": {"ownerReferences": owner}});
        world.api.merge(kind_of(object), &world.namespace, name_of(object), "", &references).await.unwrap();
    }
    let site = world.api.create(&world.namespace, &backup).await.unwrap();
    assert_ne!(site["metadata"]["uid"], dead["metadata"]["uid"]);

    let mark = audit.mark();
    let operator = world.start_operator().await;
    world.running(&operator, "back").await;
    let mut all = before_the_route("back");
    let route = name_of(&world.ingresses("back").await[0]).to_owned();
    all.push(("Ingress", route));
    for (kind, name) in &all {
        owner_reference_to(&world.must(kind, name).await, &site).unwrap();
    }
    world.audit_is_complete().await;
    let refused = world.calls(mark).writes().filter(|call| call.code == 422);
    assert_eq!(refused.count(), 0, "no reference without a uid is even tried:\n{}", refused.describe());

    // The garbage collector has looked at them, since it has removed what became its work later.
    world.delete_site("canary").await;
    world.wait_gone("canary").await;
    assert_eq!(uids(&belongings(&world, "back").await), uids(&left), "none was collected, and no pod restarted");
    world.end().await;
}
