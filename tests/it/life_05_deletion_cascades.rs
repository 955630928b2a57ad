//! LIFE-05: deleting a Site removes all that belongs to it, by the cluster's own garbage collector; the operator does
//! nothing. Its volume is retained and released.

use serde_json::{Value, json};

use crate::support::api::name_of;
use crate::support::belongings::{before_the_route, gateway_mode};
use crate::support::{Lab, SOON, Start, World, eventually};

async fn deleted_with(settings: Value, propagation: &str) {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("life_05_deletion_cascades") else { return };
    let world = World::new("life-05").await;
    world.cascade_works().await;
    let operator = world.start_operator_with(Start { settings, ..Start::default() }).await;
    world.site("plain", json!({})).await;
    world.site("other", json!({})).await;
    world.running(&operator, "plain").await;
    world.running(&operator, "other").await;
    let volume = name_of(&world.volume("plain").await.unwrap()).to_owned();

    let mark = audit.mark();
    let path = format!("/apis/sites.ecmwf.int/v1/namespaces/{}/sites/plain", world.namespace);
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation});
    world.api.send("DELETE", &path, "application/json", &options).await.unwrap();
    world.wait_gone("plain").await;
    for (kind, name) in before_the_route("plain") {
        assert!(world.get(kind, &name).await.is_none(), "{kind}/{name}");
    }
    let released = eventually("the volume is released", SOON, || async {
        let volume = world.api.get("PersistentVolume", "", &volume).await?;
        (volume["status"]["phase"] == "Released").then_some(volume)
    })
    .await;
    assert_eq!(released["metadata"]["labels"]["sites.ecmwf.int/id"], "plain", "found again by its labels");
    eventually("the operator has forgotten the Site", SOON, || async {
        let (code, body) = operator.request("/debug/sites/plain").await?;
        if code == 404 { Ok(()) } else { Err(body) }
    })
    .await;
    world.audit_is_complete().await;
    let writes = world.calls(mark).of_passes().writes();
    // A status that was on its way when the Site went is no work for its deletion.
    let writes = writes.filter(|call| call.subresource != "status" || call.code == 200);
    let foreground = propagation == "Foreground";
    // Waiting for its children, a Site is still there: its pods' end is reported.
    let writes = writes.filter(|call| !(foreground && call.subresource == "status"));
    assert_eq!(writes.count(), 0, "{}", writes.describe());
    assert_eq!(world.settled(&operator, "other").await["status"]["phase"], "Running");
    world.end().await;
}

#[tokio::test]
async fn life_05_deletion_cascades_in_ingress_mode() {
    deleted_with(json!({}), "Background").await;
}

#[tokio::test]
async fn life_05_deletion_cascades_in_gateway_mode() {
    deleted_with(gateway_mode(), "Background").await;
}

/// The children go first and the Site last: none of them is made again.
#[tokio::test]
async fn life_05_deletion_in_the_foreground_makes_nothing_again() {
    deleted_with(json!({}), "Foreground").await;
}

/// Deleted while their objects are being made: what a pass still makes is collected too.
#[tokio::test]
async fn life_05_sites_deleted_while_being_created_leave_nothing() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("life_05_sites_deleted_while_being_created") else { return };
    let world = World::new("life-05-young").await;
    let operator = world.start_operator().await;
    for number in 0..20 {
        world.site(&format!("young{number}"), json!({})).await;
    }
    world.delete_all_sites().await;
    world.wait_nothing_left().await;
    operator.forgets_all().await;
    let mark = audit.mark();
    // A Site that comes later is served as ever, and its arrival shows that what came before has been dealt with.
    world.site("plain", json!({})).await;
    world.running(&operator, "plain").await;
    world.audit_is_complete().await;
    let posts = world.calls(mark).filter(|call| call.verb == "create" && call.name.starts_with("young"));
    assert_eq!(posts.count(), 0, "{}", posts.describe());
    world.end().await;
}
