//! A bulk upgrade of 500 Sites with three that fail, whose Hub dies in the middle.
//!
//! In a control plane of its own: it takes the machine for minutes, and its audit log is read in full.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::runs::{Administrator, UPGRADE, by_name, count};
use crate::support::{Lab, OpenId, Options, Redis, SOON, Start, World, eventually};

const LONG: Duration = Duration::from_secs(900);
const SITES: u64 = 500;

/// Refuses writes of one object.
async fn refuse(world: &World, name: &str, group: &str, resource: &str, object: &str) {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{"apiGroups": [group], "apiVersions": ["v1"],
                "operations": ["UPDATE"], "resources": [resource]}]},
            "matchConditions": [{"name": "one", "expression": format!("object.metadata.name == '{object}'")}],
            "validations": [{"expression": "false", "message": "not this one"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]},
    });
    let path = "/apis/admissionregistration.k8s.io/v1";
    let json = "application/json";
    world.api.send("POST", &format!("{path}/validatingadmissionpolicies"), json, &policy).await.unwrap();
    world.api.send("POST", &format!("{path}/validatingadmissionpolicybindings"), json, &binding).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_runs_five_hundred_sites_three_fail_and_the_hub_dies() {
    if std::env::var_os("SITES_TEST_KUBECONFIG").is_some() {
        eprintln!("hub_runs_five_hundred: skipped, it reads the audit log of a local cluster");
        return;
    }
    let lab = Lab::own(Options::default()).await;
    let mut world = World::on(&lab, "hub-five-hundred").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    world.settings["operator"]["retries"] = json!(2);
    world.settings["operator"]["max_backoff"] = json!("2s");
    // Of 32 permits a run holds two: it is the run that is judged, not its pace.
    world.settings["operator"]["worker_limit"] = json!(32);
    let operator = world.start_operator().await;
    let ids = world.crowd(&operator, usize::try_from(SITES).unwrap() - 1).await;
    // The 500th has a path that another Site has, and never will have pods.
    world.site("late", json!({"name": ids[0]})).await;
    world.wait_condition("late", "RouteConflict", "True").await;
    let (refused, stuck) = (&ids[100], &ids[200]);
    refuse(&world, "refuse-site", "sites.ecmwf.int", "sites", refused).await;
    refuse(&world, "refuse-set", "apps", "statefulsets", stuck).await;
    let denied = json!({"metadata": {"annotations": {"probe": uuid::Uuid::new_v4().to_string()}}});
    eventually("the policies are in force", SOON, || async {
        let site = world.api.merge("Site", &world.namespace, refused, "", &denied).await.is_err();
        site && world.api.merge("StatefulSet", &world.namespace, stuck, "", &denied).await.is_err()
    })
    .await;

    let openid = OpenId::get().await;
    // The time of an answer counts from the write: few at once, so that a slow machine is no failure.
    let bulk = json!({"rate": 40, "backlog": 40, "unavailable_percent": 10, "lease": "2s", "answer_timeout": "90s"});
    let start = || Start { settings: json!({"hub": {"bulk": bulk}}), ..Start::default() };
    let first = world.start_hub_process_with(openid, start()).await;
    let second = world.start_hub_process_with(openid, start()).await;
    let mark = lab.audit().unwrap().mark();
    let run = Administrator::of(&first, openid).begin(UPGRADE).await;
    let admin = Administrator::of(&second, openid);
    let told = admin.post(UPGRADE, &Value::Null).await;
    assert_eq!(told.status, 409, "{}", told.text());
    let ended = ["done", "failed", "skipped"];
    let seen = admin.run_is(&run, "40 % have ended", LONG, |run| count(run, &ended) >= SITES * 2 / 5).await;
    assert!(count(&seen, &["queued"]) > 0, "it dies in the middle: {}", seen["counts"]);
    first.process.kill();
    eventually("the other goes on", LONG, || async {
        !second.process.logs_with("going on with a bulk run").is_empty()
    })
    .await;
    let told = admin.post(UPGRADE, &Value::Null).await;
    assert_eq!(told.status, 409, "the lock outlives the Hub that died: {}", told.text());

    let done = admin.ended(&run, LONG).await;
    let counts = json!({"queued": 0, "working": 0, "done": SITES - 3, "failed": 3, "skipped": 0, "cancelled": 0});
    assert_eq!((&done["state"], &done["counts"]), (&json!("done"), &counts));
    let reason = |id: &str| done["sites"][id]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason(refused).contains("not this one"), "{}", reason(refused));
    assert!(reason(stuck).starts_with("RetriesExhausted: "), "{}", reason(stuck));
    assert!(reason("late").starts_with("no success in time: RouteConflict: "), "{}", reason("late"));
    assert_eq!(redis.command(&["GET", &format!("sites:{}:lock:sites-bulk-upgrade", world.namespace)]).await, None);

    // No Site twice, no Site missed, and done is what the operator has done.
    let writes = by_name(&world.hub_writes(mark).await.accepted());
    assert_eq!((writes.len() as u64, writes.values().max()), (SITES - 1, Some(&1)));
    for site in world.api.list("Site", &world.namespace, "").await {
        let id = site["metadata"]["name"].as_str().unwrap();
        if done["sites"][id]["state"] == "done" {
            assert_eq!(site["status"]["handled"]["upgrade_request"], done["id"], "{id}");
        }
    }

    // And the next may begin.
    let next = admin.begin(UPGRADE).await;
    assert_eq!(admin.post(&format!("/hub/api/v2/runs/{next}/cancel/"), &Value::Null).await.status, 202);
    admin.ended(&next, LONG).await;
    world.end().await;
}
