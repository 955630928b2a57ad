//! LIFE-01: the objects of a Site are made in a fixed order; a name that is taken is looked at, never taken for done.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::api::{condition, merge_into, name_of};
use crate::support::belongings::{
    GATEWAY_ROUTE, INGRESS_ROUTE, LABELS, before_the_route, gateway_mode, owner_reference_to, uid,
};
use crate::support::{Act, FaultProxy, Lab, Match, SOON, Start, Times, World, eventually};

const ID: &str = "sites.ecmwf.int/id";
const APP: &str = "sites.ecmwf.int/app";

/// Resources as the audit log names them.
fn plural(kind: &str) -> &'static str {
    match kind {
        "Secret" => "secrets",
        "ConfigMap" => "configmaps",
        "PersistentVolumeClaim" => "persistentvolumeclaims",
        "StatefulSet" => "statefulsets",
        "Service" => "services",
        "Ingress" => "ingresses",
        "HTTPRoute" => "httproutes",
        "BackendTrafficPolicy" => "backendtrafficpolicies",
        other => panic!("{other}?"),
    }
}

async fn made_in_order(mode: Value, route: &[&str]) {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("life_01_objects_are_created_in_order") else { return };
    let world = World::new("life-01").await;
    let operator = world.start_operator_with(Start { settings: mode, ..Start::default() }).await;
    let mark = audit.mark();
    world.site("plain", json!({})).await;
    world.running(&operator, "plain").await;

    let mut expected: Vec<(String, String)> =
        before_the_route("plain").into_iter().map(|(kind, name)| (plural(kind).to_owned(), name)).collect();
    for kind in route {
        let objects = world.of_site(kind, "plain").await;
        assert_eq!(objects.len(), 1, "one {kind}");
        expected.push((plural(kind).to_owned(), name_of(&objects[0]).to_owned()));
    }
    world.audit_is_complete().await;
    let created = world.calls(mark).of_passes().filter(|call| call.verb == "create");
    let calls: Vec<_> = created.0.iter().map(|call| (call.resource.clone(), call.name.clone())).collect();
    assert_eq!(calls, expected, "{}", created.describe());
    assert!(created.0.iter().all(|call| call.code == 201), "{}", created.describe());
    world.end().await;
}

#[tokio::test]
async fn life_01_objects_are_created_in_order_in_ingress_mode() {
    made_in_order(json!({}), INGRESS_ROUTE).await;
}

#[tokio::test]
async fn life_01_objects_are_created_in_order_in_gateway_mode() {
    made_in_order(gateway_mode(), GATEWAY_ROUTE).await;
}

/// An object as somebody else may have made it under the name of a Site's.
fn stale(kind: &str, name: &str, meta: &Value) -> Value {
    let rest = match kind {
        "Secret" => json!({"apiVersion": "v1", "stringData": {"stale": "1"}}),
        "ConfigMap" => json!({"apiVersion": "v1", "data": {"stale": "1"}}),
        "PersistentVolumeClaim" => json!({"apiVersion": "v1", "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "kwok-volume",
            "resources": {"requests": {"storage": "3Gi"}},
        }}),
        "StatefulSet" => json!({"apiVersion": "apps/v1", "spec": {
            "replicas": 0, "serviceName": "stale", "selector": {"matchLabels": {"stale": "1"}},
            "template": {
                "metadata": {"labels": {"stale": "1"}},
                "spec": {"containers": [{"name": "stale", "image": "stale"}]},
            },
        }}),
        "Service" => json!({"apiVersion": "v1", "spec": {"ports": [{"port": 81}], "selector": {"stale": "1"}}}),
        "Ingress" => json!({"apiVersion": "networking.k8s.io/v1", "spec": {
            "defaultBackend": {"service": {"name": "stale", "port": {"number": 81}}},
        }}),
        other => panic!("{other}?"),
    };
    let mut object = json!({"kind": kind, "metadata": {"name": name}});
    merge_into(&mut object, &rest);
    merge_into(&mut object["metadata"], meta);
    object
}

/// What tells a Site's own object from the stale one.
fn is_rendered(kind: &str, object: &Value) -> bool {
    match kind {
        "Secret" | "ConfigMap" => {
            object["data"].get("stale").is_none() && object["data"].as_object().is_some_and(|data| !data.is_empty())
        }
        // Nothing of a claim's spec can change; its labels and owner are looked at with those of all others.
        "PersistentVolumeClaim" => true,
        "StatefulSet" => {
            let containers = object["spec"]["template"]["spec"]["containers"].as_array().unwrap();
            containers.iter().any(|one| one["name"] == "site-proxy")
                && containers.iter().all(|one| one["name"] != "stale")
        }
        "Service" => object["spec"]["ports"].as_array().unwrap().iter().all(|port| port["port"] != 81),
        "Ingress" => object["spec"]["rules"][0]["host"] == "sites.example.test",
        other => panic!("{other}?"),
    }
}

/// Fails unless the Site's object has its content, its labels and its owner.
async fn assert_whole(world: &World, site: &Value, kind: &str, name: &str) -> Value {
    let object = world.must(kind, name).await;
    assert!(is_rendered(kind, &object), "{object}");
    owner_reference_to(&object, site).unwrap();
    for label in LABELS {
        assert!(object["metadata"]["labels"][label].is_string(), "{label} on {object}");
    }
    object
}

/// While the first object is on its way to the server somebody makes all of them, marked as this Site's and free of an
/// owner: each name is taken, each object is read and made what it should be.
#[tokio::test]
async fn life_01_taken_names_that_are_ours_are_compared_and_replaced() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("life_01_taken_names") else { return };
    let world = World::new("life-01-taken").await;
    let proxy = FaultProxy::start(lab).await;
    let start = Start { kubeconfig: Some(proxy.kubeconfig(&world).await), ..Start::default() };
    let operator = world.start_operator_with(start).await;

    let mark = audit.mark();
    let first = proxy.fault(Match::on("create", "secrets"), Act::Delay(Duration::from_secs(2)), Times::Count(1));
    world.site("plain", json!({})).await;
    eventually("the first object is on its way", SOON, || async { proxy.hits(first) == 1 }).await;
    let mut names = before_the_route("plain");
    names.push(("Ingress", sites::domain::names::route("lab", "plain")));
    for (kind, name) in &names {
        let free = json!({"labels": {ID: "plain", APP: "site"}});
        world.api.create(&world.namespace, &stale(kind, name, &free)).await.unwrap();
    }

    let site = world.running(&operator, "plain").await;
    for (kind, name) in &names {
        assert_whole(&world, &site, kind, name).await;
    }
    let set = world.stateful_set("plain").await;
    assert_eq!(set["spec"]["selector"]["matchLabels"], json!({"stale": "1"}), "what cannot change is carried over");
    assert_eq!(set["spec"]["replicas"], 1);
    world.audit_is_complete().await;
    let calls = world.calls(mark).of_passes();
    let taken = calls.clone().filter(|call| call.verb == "create" && call.code == 409);
    assert_eq!(taken.count(), names.len(), "every name was taken:\n{}", calls.describe());
    let replaced = calls.clone().filter(|call| call.verb == "update" && call.code == 200);
    assert_eq!(replaced.count(), names.len(), "every object was replaced once:\n{}", calls.describe());
    world.end().await;
}

/// The server makes every object and the operator hears of none: nothing is made twice, nothing is left out.
#[tokio::test]
async fn life_01_lost_answers_do_not_stop_a_create() {
    let lab = Lab::get().await;
    let mut world = World::new("life-01-lost").await;
    world.settings["operator"]["max_backoff"] = "1s".into();
    let proxy = FaultProxy::start(lab).await;
    let start = Start { kubeconfig: Some(proxy.kubeconfig(&world).await), ..Start::default() };
    let operator = world.start_operator_with(start).await;
    let resources = ["secrets", "configmaps", "persistentvolumeclaims", "statefulsets", "services", "ingresses"]
        .map(|resource| proxy.fault(Match::on("create", resource), Act::LoseAnswer, Times::Count(1)));
    world.site("plain", json!({})).await;
    let site = world.running(&operator, "plain").await;
    assert_eq!(resources.map(|rule| proxy.hits(rule)), [1; 6], "every answer was lost once");
    for (kind, name) in before_the_route("plain") {
        assert_whole(&world, &site, kind, &name).await;
    }
    assert_eq!(world.stateful_set("plain").await["metadata"]["generation"], 1, "one template for one Site");
    world.end().await;
}

/// Objects of a Site's names that are somebody else's: unmarked ones, and ones marked as the Site's but owned by
/// another. Each stops its Site, unchanged, with a message that names it; nothing after it in the order is made.
#[tokio::test]
async fn life_01_foreign_objects_are_refused() {
    let world = World::new("life-01-foreign").await;
    let operator = world.start_operator().await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "somebody"}});
    let owner = world.api.create(&world.namespace, &owner).await.unwrap();
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "somebody", "uid": uid(&owner)}]);

    let mut refused = Vec::new();
    for (number, marked) in [false, true].into_iter().enumerate() {
        for (place, (kind, suffix)) in [
            ("Secret", ""),
            ("Secret", "-oauth2"),
            ("ConfigMap", ""),
            ("ConfigMap", "-files"),
            ("PersistentVolumeClaim", ""),
            ("StatefulSet", ""),
            ("Service", ""),
        ]
        .into_iter()
        .enumerate()
        {
            let id = format!("s{number}{place}");
            let meta =
                if marked { json!({"labels": {ID: id, APP: "site"}, "ownerReferences": reference}) } else { json!({}) };
            let name = format!("{id}{suffix}");
            world.api.create(&world.namespace, &stale(kind, &name, &meta)).await.unwrap();
            world.site(&id, json!({})).await;
            refused.push((id, kind, name, place));
        }
    }
    world.site("plain", json!({})).await;
    world.wait_ready("plain").await;

    for (id, kind, name, place) in &refused {
        let site = world.wait_condition(id, "Ready", "False").await;
        let ready = condition(&site, "Ready").unwrap();
        assert_eq!(ready["reason"], "ForeignObject", "{site}");
        assert!(ready["message"].as_str().unwrap().contains(&format!("{kind}/{name}")), "{ready}");
        let object = world.must(kind, name).await;
        // A claim is bound by its controller; its spec is nobody's to change.
        let untouched = kind == &"PersistentVolumeClaim" || !is_rendered(kind, &object);
        assert!(untouched && owner_reference_to(&object, &site).is_err(), "{object}");
        for (kind, name) in before_the_route(id).into_iter().skip(place + 1) {
            assert!(world.get(kind, &name).await.is_none(), "{kind}/{name} comes after what was refused");
        }
        assert!(world.ingresses(id).await.is_empty());
    }

    // What stands in the way goes: the Site is finished.
    for (id, kind, name, _) in &refused {
        assert!(world.api.delete(kind, &world.namespace, name).await, "{kind}/{name} of {id}");
    }
    for (id, ..) in &refused {
        let site = world.running(&operator, id).await;
        for (kind, name) in before_the_route(id) {
            assert_whole(&world, &site, kind, &name).await;
        }
    }
    world.end().await;
}
