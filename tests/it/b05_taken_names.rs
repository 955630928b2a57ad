//! B05: a 409 on a create says that a name is taken, not that the work is done. (LIFE-01 has every kind's taken name and
//! foreign objects, LIFE-12 objects of another owner, LIFE-11 a claim that its pod still holds.)

use serde_json::{Value, json};

use crate::support::api::{condition, name_of};
use crate::support::belongings::{owner_reference_to, uid};
use crate::support::{Act, FaultProxy, Lab, Match, SOON, Start, Times, World, eventually};

/// What rendering decides about a route.
fn rendered(route: &Value) -> Value {
    let meta = &route["metadata"];
    json!([meta["labels"], meta["annotations"], meta["ownerReferences"], route["spec"]])
}

/// The route cannot be read, or is said not to be there: it is made what it should be all the same.
#[tokio::test]
async fn b05_an_unread_route_is_not_taken_for_a_missing_one() {
    let lab = Lab::get().await;
    let mut world = World::new("b05-route").await;
    world.settings["operator"]["max_backoff"] = "1s".into();
    let proxy = FaultProxy::start(lab).await;
    let start = Start { kubeconfig: Some(proxy.kubeconfig(&world).await), ..Start::default() };
    let operator = world.start_operator_with(start).await;
    world.site("plain", json!({})).await;
    world.running(&operator, "plain").await;
    let mut before = world.ingresses("plain").await.remove(0);
    let name = name_of(&before).to_owned();

    for (enabled, act) in [(false, Act::status(503)), (true, Act::status(404))] {
        let unread = proxy.fault(Match::on("get", "ingresses"), act, Times::Count(1));
        // The route of an archived Site answers otherwise: its content changes.
        world.edit_site("plain", json!({"spec": {"configuration": {"enabled": enabled}}})).await;
        world.wait_phase("plain", if enabled { "Running" } else { "Disabled" }).await;
        world.wait_ready("plain").await;
        world.settled(&operator, "plain").await;
        assert_eq!(proxy.hits(unread), 1);
        let live = world.must("Ingress", &name).await;
        assert_eq!(uid(&live), uid(&before), "it is the one that was there");
        assert_ne!(rendered(&live), rendered(&before));

        assert!(world.api.delete("Ingress", &world.namespace, &name).await);
        before = eventually("the route is back", SOON, || world.get("Ingress", &name)).await;
        assert_eq!(rendered(&live), rendered(&before), "it equalled one that is made anew");
        world.settled(&operator, "plain").await;
    }
    world.end().await;
}

/// A Site is deleted and created again at once, while something still holds its old claim.
#[tokio::test]
async fn b05_a_claim_that_is_going_is_waited_for() {
    let world = World::new("b05-claim").await;
    world.cascade_works().await;
    let operator = world.start_operator().await;
    world.site("data", json!({})).await;
    world.running(&operator, "data").await;
    let old = world.claim("data").await;
    let hold = json!({"metadata": {"finalizers": ["example.test/hold"]}});
    world.api.merge("PersistentVolumeClaim", &world.namespace, "data", "", &hold).await.unwrap();
    world.delete_site("data").await;
    eventually("the old claim is going", SOON, || async {
        let claim = world.get("PersistentVolumeClaim", "data").await?;
        claim["metadata"]["deletionTimestamp"].is_string().then_some(())
    })
    .await;
    let site = world.site("data", json!({})).await;

    world
        .wait_site("data", "it waits for the end of the claim", |site| {
            let message = condition(site, "Ready").map_or(&Value::Null, |ready| &ready["message"]);
            message.as_str().is_some_and(|message| {
                message.contains("PersistentVolumeClaim/data") && message.contains("is being deleted")
            })
        })
        .await;
    let ours = |set: &Value| owner_reference_to(set, &site).is_ok();
    assert!(!world.get("StatefulSet", "data").await.as_ref().is_some_and(ours), "no pods on a claim that vanishes");
    assert_eq!(uid(&world.claim("data").await), uid(&old));

    let free = json!({"metadata": {"finalizers": null}});
    world.api.merge("PersistentVolumeClaim", &world.namespace, "data", "", &free).await.unwrap();
    world.running(&operator, "data").await;
    let new = world.claim("data").await;
    assert_ne!(uid(&new), uid(&old));
    owner_reference_to(&new, &site).unwrap();
    assert_eq!(new["spec"]["volumeName"], old["spec"]["volumeName"], "on the volume that has the data");
    world.end().await;
}
