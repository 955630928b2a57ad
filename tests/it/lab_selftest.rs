//! The tests' own ground: the control plane starts, pods show the outcome asked for, volumes bind and are released,
//! the proxy makes its faults, the audit log tells who asked for what.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::time::{Duration, Instant};

use futures::{AsyncBufReadExt, StreamExt};
use serde_json::{Value, json};

use crate::support::api::{ApiServer, condition};
use crate::support::{Act, FaultProxy, Lab, Match, Options, Redis, SOON, Times, World, eventually};

fn claim(name: &str, more: &Value) -> Value {
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "kwok-volume",
        "resources": {"requests": {"storage": "5Gi"}},
    });
    crate::support::api::merge_into(&mut spec, more);
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec})
}

fn stateful_set(id: &str) -> Value {
    let labels = json!({"sites.ecmwf.int/id": id});
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": id, "labels": labels},
        "spec": {
            "serviceName": id,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "priorityClassName": "low-priority",
                    "initContainers": [{"name": "site-initializer", "image": "init"}],
                    "containers": [{"name": "site-proxy", "image": "proxy"}, {"name": "site-api", "image": "api"}],
                    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": id}}],
                },
            },
        },
    })
}

/// What a pod shows, in one word.
fn shown(pod: &Value) -> String {
    let waiting = |statuses: &Value| -> Vec<String> {
        let statuses = statuses.as_array().map_or(&[][..], Vec::as_slice);
        statuses.iter().filter_map(|status| status["state"]["waiting"]["reason"].as_str().map(str::to_owned)).collect()
    };
    let ready = condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True");
    let status = &pod["status"];
    let phase = status["phase"].as_str().unwrap_or_default();
    if waiting(&status["initContainerStatuses"]).iter().any(|reason| reason == "CrashLoopBackOff") {
        format!("{phase} init-crash")
    } else if let Some(reason) = waiting(&status["containerStatuses"]).first() {
        format!("{phase} {reason}")
    } else {
        format!("{phase} {}", if ready { "ready" } else { "unready" })
    }
}

async fn wait_shown(world: &World, id: &str, wanted: &str) {
    eventually(&format!("the pod of {id} shows {wanted:?}"), SOON, || async {
        let pod = world.pods(id).await.into_iter().next().ok_or("no pod")?;
        let shown = shown(&pod);
        if shown == wanted { Ok(()) } else { Err(format!("it shows {shown:?}")) }
    })
    .await;
}

#[tokio::test]
async fn lab_pods_show_the_outcome_asked_for() {
    let world = World::bare(Lab::get().await, "lab-pods").await;
    for id in ["plain", "hang-1", "crash-1", "initcrash-1", "unready-1"] {
        world.api.create(&world.namespace, &claim(id, &json!({}))).await.unwrap();
        world.api.create(&world.namespace, &stateful_set(id)).await.unwrap();
    }
    wait_shown(&world, "plain", "Running ready").await;
    wait_shown(&world, "hang-1", "Pending ContainerCreating").await;
    wait_shown(&world, "crash-1", "Running CrashLoopBackOff").await;
    wait_shown(&world, "initcrash-1", "Pending init-crash").await;
    wait_shown(&world, "unready-1", "Running unready").await;

    world.show("plain", "crash").await;
    wait_shown(&world, "plain", "Running CrashLoopBackOff").await;
    world.show("plain", "ok").await;
    wait_shown(&world, "plain", "Running ready").await;
    world.show("crash-1", "ok").await;
    wait_shown(&world, "crash-1", "Running ready").await;
    world.end().await;
}

async fn wait_claim(world: &World, name: &str, phase: &str) -> Value {
    eventually(&format!("claim {name} is {phase}"), SOON, || async {
        let claim = world.get("PersistentVolumeClaim", name).await?;
        (claim["status"]["phase"] == phase).then_some(claim)
    })
    .await
}

async fn wait_volume(api: &ApiServer, name: &str, phase: &str) -> Value {
    eventually(&format!("volume {name} is {phase}"), SOON, || async {
        let volume = api.get("PersistentVolume", "", name).await?;
        (volume["status"]["phase"] == phase).then_some(volume)
    })
    .await
}

#[tokio::test]
async fn lab_volumes_are_provisioned_released_and_bound_again() {
    let world = World::bare(Lab::get().await, "lab-volumes").await;
    let api = &world.api;
    api.create(&world.namespace, &claim("first", &json!({}))).await.unwrap();
    let first = wait_claim(&world, "first", "Bound").await;
    let name = first["spec"]["volumeName"].as_str().unwrap();
    let volume = wait_volume(api, name, "Bound").await;
    assert_eq!(volume["spec"]["claimRef"]["uid"], first["metadata"]["uid"]);
    assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Retain");
    assert_eq!(volume["spec"]["capacity"]["storage"], "5Gi");

    api.delete("PersistentVolumeClaim", &world.namespace, "first").await;
    wait_volume(api, name, "Released").await;

    // Reserved by namespace and name, without naming the volume in the claim.
    let reserve = |claim: &str| json!({"spec": {"claimRef": {"name": claim, "namespace": world.namespace, "uid": null, "resourceVersion": null}}});
    api.merge("PersistentVolume", "", name, "", &reserve("second")).await.unwrap();
    wait_volume(api, name, "Available").await;
    api.create(&world.namespace, &claim("second", &json!({}))).await.unwrap();
    assert_eq!(wait_claim(&world, "second", "Bound").await["spec"]["volumeName"], name);

    // Named in the claim as well.
    api.delete("PersistentVolumeClaim", &world.namespace, "second").await;
    wait_volume(api, name, "Released").await;
    api.merge("PersistentVolume", "", name, "", &reserve("third")).await.unwrap();
    api.create(&world.namespace, &claim("third", &json!({"volumeName": name}))).await.unwrap();
    assert_eq!(wait_claim(&world, "third", "Bound").await["spec"]["volumeName"], name);
    world.end().await;
}

#[tokio::test]
async fn lab_proxy_makes_faults_and_passes_the_rest() {
    let lab = Lab::get().await;
    let world = World::bare(lab, "lab-proxy").await;
    let rights = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "edit"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "sites", "namespace": world.namespace}],
    });
    world.api.create(&world.namespace, &rights).await.unwrap();
    let proxy = FaultProxy::start(lab).await;
    let through = ApiServer::new(crate::support::lab::client(&proxy.kubeconfig(&world).await).await);
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    eventually("the rights are in force", SOON, || async { through.create(&world.namespace, &map("a")).await }).await;
    proxy.heal();

    let conflict =
        proxy.fault(Match::on("create", "configmaps"), Act::status(409).reason("AlreadyExists"), Times::Count(1));
    let refused = through.create(&world.namespace, &map("b")).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 409 && status.reason == "AlreadyExists"));
    assert!(world.get("ConfigMap", "b").await.is_none());
    through.create(&world.namespace, &map("b")).await.unwrap();
    assert_eq!(proxy.hits(conflict), 1);

    let pause = Duration::from_millis(300);
    proxy.fault(Match::on("delete", "configmaps").named("b"), Act::Delay(pause), Times::Count(1));
    let begun = Instant::now();
    assert!(through.delete("ConfigMap", &world.namespace, "b").await);
    assert!(begun.elapsed() >= pause);

    // The server does it and the client never hears of it.
    let lost = proxy.fault(Match::on("create", "configmaps"), Act::LoseAnswer, Times::Count(1));
    through.create(&world.namespace, &map("c")).await.unwrap_err();
    assert!(world.get("ConfigMap", "c").await.is_some());
    assert_eq!(proxy.hits(lost), 1);

    proxy.fault(Match::on("create", "configmaps"), Act::Reset, Times::Count(1));
    through.create(&world.namespace, &map("d")).await.unwrap_err();
    assert!(world.get("ConfigMap", "d").await.is_none());

    let seen = proxy.seen("create", "configmaps");
    assert!(seen.iter().any(|passed| passed.code == Some(201) && passed.fault.is_none()));
    world.end().await;
}

#[tokio::test]
async fn lab_proxy_passes_watches_and_breaks_them() {
    let lab = Lab::get().await;
    let world = World::bare(lab, "lab-watch").await;
    let rights = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "edit"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "sites", "namespace": world.namespace}],
    });
    world.api.create(&world.namespace, &rights).await.unwrap();
    let proxy = FaultProxy::start(lab).await;
    let client = crate::support::lab::client(&proxy.kubeconfig(&world).await).await;
    let path = format!("/api/v1/namespaces/{}/configmaps?watch=true", world.namespace);
    let watch = || client.request_stream(http::Request::get(&path).body(Vec::new()).unwrap());
    eventually("the rights are in force", SOON, || async { watch().await.map(drop) }).await;

    let mut lines = std::pin::pin!(watch().await.unwrap().lines());
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    world.api.create(&world.namespace, &map("seen")).await.unwrap();
    let event = tokio::time::timeout(SOON, async {
        while let Some(line) = lines.next().await {
            if line.as_ref().unwrap().contains("\"seen\"") {
                return line.unwrap();
            }
        }
        panic!("the watch ended");
    });
    assert!(event.await.unwrap().contains("ADDED"));

    proxy.fault(Match::on("watch", "configmaps"), Act::CutAfter(Duration::from_millis(200)), Times::Count(1));
    let rest = tokio::time::timeout(SOON, watch().await.unwrap().lines().collect::<Vec<_>>()).await;
    assert!(rest.expect("a cut watch ends").last().is_some_and(Result::is_err), "it ends with an error");

    proxy.fault(Match::on("watch", "configmaps"), Act::Silence, Times::Count(1));
    let mut silent = std::pin::pin!(watch().await.unwrap().lines());
    world.api.create(&world.namespace, &map("unseen")).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(500), silent.next()).await.is_err(), "a silent watch is silent");
    world.end().await;
}

#[tokio::test]
async fn lab_audit_tells_who_asked_for_what() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("lab_audit_tells_who_asked_for_what") else { return };
    let world = World::bare(lab, "lab-audit").await;
    let mark = audit.mark();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    world.api.create(&world.namespace, &map).await.unwrap();
    world.api.merge("ConfigMap", &world.namespace, "a", "", &json!({"data": {"k": "v"}})).await.unwrap();
    world.api.delete("ConfigMap", &world.namespace, "a").await;
    let calls = eventually("the three writes are in the log", SOON, || async {
        let calls = audit.calls(mark).in_namespace(&world.namespace).by_user("admin").of("configmaps").writes();
        (calls.count() == 3).then_some(calls)
    })
    .await;
    let by_verb = calls.count_by_verb();
    assert_eq!((by_verb["create"], by_verb["patch"], by_verb["delete"]), (1, 1, 1), "{}", calls.describe());
    assert!(calls.0.iter().all(|call| call.code < 300 && !call.user_agent.is_empty()));
    world.end().await;
}

#[tokio::test]
async fn lab_redis_answers() {
    let redis = Redis::start().await;
    assert!(redis.url().starts_with("redis://127.0.0.1:"));
}

/// In a control plane of its own: it makes a node silent and takes the other one away.
#[tokio::test]
async fn lab_lost_node_makes_its_pods_unready() {
    if std::env::var_os("SITES_TEST_KUBECONFIG").is_some() {
        eprintln!("lab_lost_node_makes_its_pods_unready: skipped, it loses a node of the local cluster");
        return;
    }
    let lab = Lab::own(Options { node_grace: Duration::from_secs(8), ..Options::default() }).await;
    let world = World::bare(&lab, "lab-lost").await;
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "lost-node", "annotations": {"kwok.x-k8s.io/node": "fake"}},
    });
    world.api.create("", &node).await.unwrap();
    world.api.merge("Node", "", "node-1", "", &json!({"spec": {"unschedulable": true}})).await.unwrap();
    world.api.create(&world.namespace, &claim("plain", &json!({}))).await.unwrap();
    world.api.create(&world.namespace, &stateful_set("plain")).await.unwrap();
    wait_shown(&world, "plain", "Running ready").await;

    let lost = |value: Value| json!({"metadata": {"labels": {"sites.test/lost": value}}});
    world.api.merge("Node", "", "lost-node", "", &lost("true".into())).await.unwrap();
    wait_shown(&world, "plain", "Running unready").await;
    let pod = world.pods("plain").await.remove(0);
    assert_eq!(condition(&pod, "ContainersReady").unwrap()["status"], "True", "only the node is gone");
    world.api.merge("Node", "", "lost-node", "", &lost(Value::Null)).await.unwrap();
    eventually("the node is back", SOON, || async {
        let node = world.api.get("Node", "", "lost-node").await?;
        (condition(&node, "Ready")?["status"] == "True").then_some(())
    })
    .await;
}
