//! What somebody changes by hand in a Site's objects is made what it should be, with one read and one write and without
//! a restart; a pod template only if it was the template that was changed, and `kubectl rollout restart` stays.
//! (LIFE-11 has objects that are deleted, LIFE-12 owner references.)

use serde_json::{Value, json};

use crate::support::api::{kind_of, name_of};
use crate::support::belongings::{generation, stamp};
use crate::support::{Lab, Operator, SOON, World, eventually};

const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

/// What is ours in an object.
fn content(object: &Value) -> Value {
    let meta = &object["metadata"];
    json!({
        "labels": meta["labels"], "annotations": meta["annotations"], "owners": meta["ownerReferences"],
        "data": object["data"], "spec": object["spec"],
    })
}

async fn wait_equal(world: &World, before: &Value, what: &str) -> Value {
    let (kind, name) = (kind_of(before), name_of(before));
    eventually(&format!("{kind}/{name} is as it was: {what}"), SOON, || async {
        let now = world.must(kind, name).await;
        if content(&now) == content(before) { Ok(now) } else { Err(content(&now).to_string()) }
    })
    .await
}

/// Kind, name and change: each of something that rendering decides.
fn edits(route: &str) -> Vec<(&'static str, &'static str, String, Value)> {
    let id = || "plain".to_owned();
    let files = || "plain-files".to_owned();
    vec![
        ("a key is changed", "ConfigMap", files(), json!({"data": {"access.json": "{}"}})),
        ("a key is added", "ConfigMap", files(), json!({"data": {"mine.conf": "server {}"}})),
        ("a key is removed", "ConfigMap", files(), json!({"data": {"access.json": null}})),
        ("a variable is changed", "ConfigMap", id(), json!({"data": {"SITE_OWNER": "eve"}})),
        ("a token is changed", "Secret", id(), json!({"data": {"MASTER_TOKEN": "AAAA"}})),
        (
            "a label is removed",
            "Secret",
            "plain-oauth2".to_owned(),
            json!({"metadata": {"labels": {"sites.ecmwf.int/owner": null}}}),
        ),
        (
            "a label is changed",
            "PersistentVolumeClaim",
            id(),
            json!({"metadata": {"labels": {"sites.ecmwf.int/space": "other"}}}),
        ),
        (
            "a label of the set is changed",
            "StatefulSet",
            id(),
            json!({"metadata": {"labels": {"sites.ecmwf.int/owner": "eve"}}}),
        ),
        ("a port is changed", "Service", id(), json!({"spec": {"ports": [{"name": "http", "port": 81}]}})),
        ("a selector is changed", "Service", id(), json!({"spec": {"selector": {"sites.ecmwf.int/id": "other"}}})),
        (
            "the host is changed",
            "Ingress",
            route.to_owned(),
            json!({"spec": {"rules": [{"host": "evil.example.test"}]}}),
        ),
        (
            "an annotation of ours is added",
            "Ingress",
            route.to_owned(),
            json!({"metadata": {"annotations": {"nginx.org/location-snippets": "return 404;"}}}),
        ),
    ]
}

#[tokio::test]
async fn hand_edits_of_each_object_are_undone_by_one_write() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("hand_edits_of_each_object") else { return };
    let world = World::new("hand").await;
    let operator = world.start_operator().await;
    world.site("plain", json!({})).await;
    world.running(&operator, "plain").await;
    let pods = world.pod_uids("plain").await;
    let route = name_of(&world.ingresses("plain").await[0]).to_owned();

    for (what, kind, name, patch) in edits(&route) {
        let before = world.must(kind, &name).await;
        let mark = audit.mark();
        let edited = world.api.merge(kind, &world.namespace, &name, "", &patch).await.unwrap();
        assert_ne!(content(&edited), content(&before), "{what}");
        wait_equal(&world, &before, what).await;
        world.settled(&operator, "plain").await;
        world.audit_is_complete().await;
        let calls = world.calls(mark).of_passes().filter(|call| call.subresource != "status");
        let verbs: Vec<_> = calls.0.iter().map(|call| (call.verb.as_str(), call.name.as_str())).collect();
        // The Site is read before anything is written over what another leader may have written for a newer one.
        let expected = [("get", name.as_str()), ("get", "plain"), ("update", name.as_str())];
        assert_eq!(verbs, expected, "{what}:\n{}", calls.describe());
    }
    assert_eq!(world.pod_uids("plain").await, pods, "nothing restarts");
    assert_eq!(generation(&world.stateful_set("plain").await), 1);

    // What others keep on our objects is theirs.
    let mark = audit.mark();
    let note =
        json!({"metadata": {"annotations": {"example.test/note": "kept"}, "labels": {"example.test/team": "a"}}});
    world.api.merge("Secret", &world.namespace, "plain", "", &note).await.unwrap();
    // It is read once: a Secret has nothing but its version to compare.
    eventually("it has been looked at", SOON, || async { world.calls(mark).of("secrets").count() > 0 }).await;
    world.settled(&operator, "plain").await;
    world.audit_is_complete().await;
    let writes = world.calls(mark).of("secrets").writes();
    assert_eq!(writes.count(), 0, "{}", writes.describe());
    assert_eq!(world.secret("plain").await["metadata"]["annotations"]["example.test/note"], "kept");
    world.end().await;
}

/// What was edited while no operator ran is found by the next one.
#[tokio::test]
async fn hand_edits_made_while_no_operator_ran_are_undone() {
    let world = World::new("hand-away").await;
    let operator = world.start_operator().await;
    world.site("plain", json!({})).await;
    world.running(&operator, "plain").await;
    let pods = world.pod_uids("plain").await;
    let before = [world.config_map("plain-files").await, world.stateful_set("plain").await];
    operator.stop().await;
    let key = json!({"data": {"access.json": "{}"}});
    world.api.merge("ConfigMap", &world.namespace, "plain-files", "", &key).await.unwrap();
    let label = json!({"metadata": {"labels": {"sites.ecmwf.int/owner": "eve"}}});
    world.api.merge("StatefulSet", &world.namespace, "plain", "", &label).await.unwrap();
    let _operator = world.start_operator().await;
    for before in &before {
        wait_equal(&world, before, "edited while no operator ran").await;
    }
    assert_eq!(world.pod_uids("plain").await, pods);
    world.end().await;
}

/// A Site that runs, its operator, and its set of pods.
async fn running(name: &str) -> (World, Operator, Value) {
    let world = World::new(name).await;
    let operator = world.start_operator().await;
    world.site("plain", json!({})).await;
    world.running(&operator, "plain").await;
    let set = world.stateful_set("plain").await;
    (world, operator, set)
}

#[tokio::test]
async fn hand_edits_of_the_template_are_undone() {
    let (world, operator, before) = running("hand-template").await;
    let mut edited = before.clone();
    let pod = &mut edited["spec"]["template"]["spec"];
    pod["containers"][0]["image"] = "registry.example.test/evil:1".into();
    pod["terminationGracePeriodSeconds"] = 7.into();
    edited["metadata"]["resourceVersion"] = world.stateful_set("plain").await["metadata"]["resourceVersion"].clone();
    world.api.replace(&world.namespace, &edited).await.unwrap();
    let after = wait_equal(&world, &before, "the template").await;
    assert_eq!(generation(&after), generation(&before) + 2, "the edit and its undoing");
    assert_eq!(stamp(&after), stamp(&before));
    eventually("the pod is of the right template", SOON, || async {
        let pods = world.pods("plain").await;
        let image = |pod: &Value| pod["spec"]["containers"][0]["image"].clone();
        pods.len() == 1 && image(&pods[0]) == before["spec"]["template"]["spec"]["containers"][0]["image"]
    })
    .await;
    world.running(&operator, "plain").await;
    world.end().await;
}

#[tokio::test]
async fn hand_edits_of_the_scale_are_undone_without_a_restart() {
    let (world, operator, before) = running("hand-scale").await;
    let pod = world.must("Pod", "plain-0").await;
    for (number, replicas) in [3, 2].into_iter().enumerate() {
        let scale = json!({"spec": {"replicas": replicas}});
        world.api.merge("StatefulSet", &world.namespace, "plain", "", &scale).await.unwrap();
        let after = wait_equal(&world, &before, "the scale").await;
        assert_eq!(generation(&after), generation(&before) + 2 * (i64::try_from(number).unwrap() + 1));
    }
    eventually("one pod is left", SOON, || async { world.pods("plain").await.len() == 1 }).await;
    assert_eq!(world.must("Pod", "plain-0").await["metadata"]["uid"], pod["metadata"]["uid"]);
    assert_eq!(world.of_site("ControllerRevision", "plain").await.len(), 1, "the template never changed");
    world.running(&operator, "plain").await;
    world.end().await;
}

#[tokio::test]
async fn hand_edits_by_kubectl_rollout_restart_stay() {
    let (world, operator, before) = running("hand-restart").await;
    let pods = world.pod_uids("plain").await;
    let at = "2031-01-02T03:04:05Z";
    let restart = json!({"spec": {"template": {"metadata": {"annotations": {RESTARTED: at}}}}});
    world.api.merge("StatefulSet", &world.namespace, "plain", "", &restart).await.unwrap();
    eventually("the pod is another", SOON, || async {
        let now = world.pod_uids("plain").await;
        now.len() == 1 && now != pods
    })
    .await;
    world.running(&operator, "plain").await;
    let time = |set: &Value| set["spec"]["template"]["metadata"]["annotations"][RESTARTED].clone();
    let set = world.stateful_set("plain").await;
    assert_eq!((time(&set), generation(&set)), (json!(at), generation(&before) + 1));

    // A repair of the same object keeps it, and so does another process.
    let label = json!({"metadata": {"labels": {"sites.ecmwf.int/owner": "eve"}}});
    world.api.merge("StatefulSet", &world.namespace, "plain", "", &label).await.unwrap();
    wait_equal(&world, &set, "a label, after a restart by hand").await;
    operator.stop().await;
    let operator = world.start_operator().await;
    world.running(&operator, "plain").await;
    let after = world.stateful_set("plain").await;
    assert_eq!((time(&after), generation(&after)), (json!(at), generation(&set)));

    // The next change has a time of its own.
    world.edit_site("plain", json!({"spec": {"owner": "bob"}})).await;
    world.running(&operator, "plain").await;
    let after = world.stateful_set("plain").await;
    assert_eq!(generation(&after), generation(&set) + 1);
    assert!(time(&after) != at && stamp(&after) != stamp(&before), "{after}");
    world.end().await;
}
