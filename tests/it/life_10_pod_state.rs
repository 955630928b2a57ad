//! LIFE-10: what a Site's pods say becomes its status, state by state.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::api::{condition, name_of};
use crate::support::operator::field;
use crate::support::{Lab, Operator, Options, SOON, World, eventually};

/// Problems as `name kind reason`, in order.
fn problems(site: &Value) -> Vec<String> {
    let all = site["status"]["container_problems"].as_array().cloned().unwrap_or_default();
    let text = |problem: &Value, key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    all.iter().map(|one| ["name", "kind", "reason"].map(|key| text(one, key)).join(" ")).collect()
}

/// Waits for a phase with exactly these problems; `all_steps_started` must be true for Running and false for others.
async fn wait_shown(world: &World, id: &str, phase: &str, wanted: &[String]) -> Value {
    world
        .wait_site(id, &format!("{phase} with {wanted:?}"), |site| {
            site["status"]["phase"] == phase
                && site["status"]["all_steps_started"] == (phase == "Running")
                && problems(site) == wanted
        })
        .await
}

/// The names of the main containers of the Site's pod.
async fn containers(world: &World, id: &str) -> Vec<String> {
    let set = world.stateful_set(id).await;
    let list = set["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    list.iter().map(|container| container["name"].as_str().unwrap().to_owned()).collect()
}

/// Writes over the status of the Site's pod.
async fn patch_pod(world: &World, id: &str, status: &Value) {
    let pod = world.pods(id).await.remove(0);
    let patched = world.api.merge("Pod", &world.namespace, name_of(&pod), "status", &json!({"status": status})).await;
    patched.expect("a pod to patch");
}

async fn wait_pod_unready(world: &World, id: &str) -> Value {
    eventually("the pod shows that it is not ready", SOON, || async {
        let pod = world.pods(id).await.into_iter().next()?;
        let statuses = pod["status"]["containerStatuses"].as_array().cloned().unwrap_or_default();
        let all = !statuses.is_empty() && statuses.iter().all(|status| status["ready"] == false);
        (all && condition(&pod, "ContainersReady")?["status"] == "False").then_some(pod)
    })
    .await
}

#[tokio::test]
async fn life_10_every_state_of_a_pod_reaches_the_status() {
    let world = World::new("life-10-states").await;
    let _operator = world.start_operator().await;
    world.site("pod", json!({})).await;
    wait_shown(&world, "pod", "Running", &[]).await;
    let names = containers(&world, "pod").await;
    let each = |text: &str| names.iter().map(|name| format!("{name} {text}")).collect::<Vec<_>>();

    world.show("pod", "crash").await;
    let site = wait_shown(&world, "pod", "Pending", &[format!("{} waiting CrashLoopBackOff", names[0])]).await;
    let message = site["status"]["container_problems"][0]["message"].as_str().unwrap();
    assert!(message.contains("back-off"), "the kubelet's text: {message}");

    world.show("pod", "unready").await;
    wait_shown(&world, "pod", "Pending", &each("running NotReady")).await;
    // One has ended, and only that one: the others are ready.
    let pod = wait_pod_unready(&world, "pod").await;
    let mut statuses = pod["status"]["containerStatuses"].clone();
    for status in statuses.as_array_mut().unwrap() {
        status["ready"] = true.into();
    }
    let end = "2030-01-01T00:00:00Z";
    statuses[1]["ready"] = false.into();
    statuses[1]["state"] = json!({"terminated": {
        "exitCode": 137, "reason": "OOMKilled", "message": "out of memory", "startedAt": end, "finishedAt": end,
    }});
    patch_pod(&world, "pod", &json!({"containerStatuses": statuses})).await;
    let site = wait_shown(&world, "pod", "Pending", &[format!("{} terminated OOMKilled", names[1])]).await;
    assert_eq!(site["status"]["container_problems"][0]["message"], "out of memory");

    world.show("pod", "hang").await;
    let waits = [vec!["site-initializer waiting PodInitializing".to_owned()], each("waiting ContainerCreating")];
    wait_shown(&world, "pod", "Pending", &waits.concat()).await;

    world.show("pod", "ok").await;
    wait_shown(&world, "pod", "Running", &[]).await;
    world.end().await;
}

#[tokio::test]
async fn life_10_a_disabled_site_is_disabled_whatever_its_pod_says() {
    let world = World::new("life-10-disabled").await;
    let _operator = world.start_operator().await;
    world.site("crash-x", json!({})).await;
    let first = world.wait_phase("crash-x", "Pending").await;
    assert_eq!(first["status"]["all_steps_started"], false);
    world.wait_site("crash-x", "the crash is seen", |site| !problems(site).is_empty()).await;
    // The pod stays for a while, as one with a long grace period does.
    let pod = world.pods("crash-x").await.remove(0);
    let hold = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    let name = name_of(&pod).to_owned();
    world.api.merge("Pod", &world.namespace, &name, "", &hold(json!(["sites.test/hold"]))).await.unwrap();
    world.edit_site("crash-x", json!({"spec": {"configuration": {"enabled": false}}})).await;
    wait_shown(&world, "crash-x", "Disabled", &[]).await;
    assert_eq!(world.pods("crash-x").await.len(), 1, "it was still there");
    world.api.merge("Pod", &world.namespace, &name, "", &hold(Value::Null)).await.unwrap();
    eventually("the pod is gone", SOON, || async { world.pods("crash-x").await.is_empty() }).await;
    world.wait_ready("crash-x").await;
    wait_shown(&world, "crash-x", "Disabled", &[]).await;
    world.end().await;
}

#[tokio::test]
async fn life_10_a_pod_that_finds_no_place_says_why_and_recovers() {
    let mut world = World::new("life-10-place").await;
    let class = format!("nobody-{}", world.namespace);
    world.settings["kubernetes"]["storage_class"] = json!(class);
    let _operator = world.start_operator().await;
    world.site("lost", json!({})).await;
    let site = wait_shown(&world, "lost", "Pending", &["lost-0 scheduling Unschedulable".to_owned()]).await;
    let pod = world.must("Pod", "lost-0").await;
    let told = &condition(&pod, "PodScheduled").unwrap()["message"];
    assert!(!told.as_str().unwrap().is_empty());
    assert_eq!(site["status"]["container_problems"][0]["message"], *told);

    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": class},
        "spec": {
            "storageClassName": class, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": world.namespace, "name": "lost"}, "hostPath": {"path": "/nowhere"},
        },
    });
    world.api.create("", &volume).await.unwrap();
    wait_shown(&world, "lost", "Running", &[]).await;
    world.end().await;
}

fn lines(operator: &Operator, id: &str) -> Vec<Value> {
    let mut lines = operator.logs_with("pod status written");
    lines.retain(|line| field(line, "site").and_then(Value::as_str) == Some(id));
    lines
}

#[tokio::test]
async fn life_10_each_write_is_one_line() {
    let world = World::new("life-10-lines").await;
    let operator = world.start_operator().await;
    world.site("told", json!({})).await;
    world.wait_ready("told").await;
    wait_shown(&world, "told", "Running", &[]).await;
    // The server has the status a moment before the operator tells of it.
    let before = eventually("that it runs is told", SOON, || async {
        let running = |line: &Value| field(line, "phase").is_some_and(|phase| phase == "Running");
        lines(&operator, "told").iter().position(running).map(|place| place + 1)
    })
    .await;
    let container = containers(&world, "told").await.remove(0);
    world.show("told", "crash").await;
    wait_shown(&world, "told", "Pending", &[format!("{container} waiting CrashLoopBackOff")]).await;
    world.show("told", "ok").await;
    wait_shown(&world, "told", "Running", &[]).await;
    let told = eventually("both writes are told", SOON, || async {
        let told = lines(&operator, "told").split_off(before);
        (told.len() >= 2).then_some(told)
    })
    .await;
    assert_eq!(told.len(), 2, "{told:?}");
    for (line, phase) in told.iter().zip(["Pending", "Running"]) {
        assert_eq!(line["level"], "INFO", "{line}");
        assert_eq!(field(line, "pod").unwrap(), "told-0", "{line}");
        let part = field(line, "field").unwrap().as_str().unwrap();
        assert!(["status.phase", "status.conditions", "status.containerStatuses"].contains(&part), "{line}");
        assert_eq!(field(line, "phase").unwrap(), phase, "{line}");
        let problems = field(line, "problems").unwrap().as_str().unwrap();
        assert_eq!(
            problems.contains(&container) && problems.contains("CrashLoopBackOff"),
            phase == "Pending",
            "{line}"
        );
    }
    world.end().await;
}

/// In a control plane of its own: it loses a node.
#[tokio::test]
async fn life_10_a_lost_node_makes_the_phase_unknown() {
    if std::env::var_os("SITES_TEST_KUBECONFIG").is_some() {
        eprintln!("life_10_a_lost_node_makes_the_phase_unknown: skipped, it loses a node of the local cluster");
        return;
    }
    let lab = Lab::own(Options { node_grace: Duration::from_secs(8), ..Options::default() }).await;
    let world = World::on(&lab, "life-10-node").await;
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "lost-node", "annotations": {"kwok.x-k8s.io/node": "fake"}},
    });
    world.api.create("", &node).await.unwrap();
    world.api.merge("Node", "", "node-1", "", &json!({"spec": {"unschedulable": true}})).await.unwrap();
    let _operator = world.start_operator().await;
    world.site("there", json!({})).await;
    wait_shown(&world, "there", "Running", &[]).await;

    let lost = |value: Value| json!({"metadata": {"labels": {"sites.test/lost": value}}});
    world.api.merge("Node", "", "lost-node", "", &lost("true".into())).await.unwrap();
    wait_shown(&world, "there", "Unknown", &[]).await;

    world.api.merge("Node", "", "lost-node", "", &lost(Value::Null)).await.unwrap();
    // A kubelet that is back writes the whole status again.
    world.show("there", "unready").await;
    wait_pod_unready(&world, "there").await;
    world.show("there", "ok").await;
    wait_shown(&world, "there", "Running", &[]).await;
}
