//! B17: a status write does not lead to another one, nor to a pass; a failing Site slows down and stays slow.

use serde_json::{Value, json};

use crate::support::api::name_of;
use crate::support::{Act, Calls, FaultProxy, Lab, Match, SOON, Start, Times, World, eventually};

const EVENTS: u32 = 100;

async fn patch_pod(world: &World, part: &str, patch: &Value) {
    let pod = world.pods("quiet").await.remove(0);
    world.api.merge("Pod", &world.namespace, name_of(&pod), part, patch).await.expect("a pod to patch");
}

fn status_writes(calls: Calls) -> Calls {
    calls.of("sites").filter(|call| call.subresource == "status")
}

#[tokio::test]
async fn b17_a_hundred_events_without_a_new_meaning_are_one_write_at_most() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("b17_a_hundred_events_without_a_new_meaning_are_one_write_at_most") else {
        return;
    };
    let world = World::on(lab, "b17-events").await;
    let _operator = world.start_operator().await;
    world.site("quiet", json!({})).await;
    world.wait_ready("quiet").await;
    world.wait_phase("quiet", "Running").await;
    eventually("the volume is labelled", SOON, || async {
        !world.of_site("PersistentVolume", "quiet").await.is_empty()
    })
    .await;
    let pod = world.pods("quiet").await.remove(0);
    let mark = audit.mark();
    let (mut conditions, mut containers) =
        (pod["status"]["conditions"].clone(), pod["status"]["containerStatuses"].clone());
    for number in 1..=EVENTS {
        // What changes in a pod that goes on as it is: probe times, counters, annotations of others.
        let time = jiff::Timestamp::from_second(2_000_000_000 + i64::from(number)).unwrap().to_string();
        conditions[0]["lastProbeTime"] = json!(time);
        containers[0]["restartCount"] = json!(number);
        patch_pod(&world, "status", &json!({"status": {"conditions": conditions, "containerStatuses": containers}}))
            .await;
        if number % 10 == 0 {
            patch_pod(&world, "", &json!({"metadata": {"annotations": {"example.test/seen": time}}})).await;
        }
    }
    // A write that is due shows that all of them have been seen.
    world.show("quiet", "crash").await;
    world.wait_phase("quiet", "Pending").await;
    let calls = eventually("the write is in the log", SOON, || async {
        let calls = status_writes(world.calls(mark));
        (calls.count() > 0).then_some(calls)
    })
    .await;
    assert!(calls.count() <= 2, "one for the events at most, one for the crash:\n{}", calls.describe());
    let passes = world.calls(mark).of_passes().filter(|call| call.subresource != "status");
    assert_eq!(passes.count(), 0, "no pass:\n{}", passes.describe());
    world.end().await;
}

#[tokio::test]
async fn b17_a_failing_site_slows_down_whatever_its_status_does() {
    let lab = Lab::get().await;
    let world = World::on(lab, "b17-backoff").await;
    let proxy = FaultProxy::start(lab).await;
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    let settings = json!({"operator": {"max_backoff": "60s"}});
    let _operator = world.start_operator_with(Start { kubeconfig, settings, ..Start::default() }).await;
    proxy.fault(Match::on("create", "services"), Act::status(500), Times::Always);
    world.site("fails", json!({})).await;
    let attempts = || proxy.seen("create", "services");
    world.wait_condition("fails", "Ready", "False").await;
    eventually("four attempts", SOON, || async {
        // Somebody else's status writes, and facts: neither may start a pass.
        let phase = json!({"status": {"phase": "Failed"}});
        world.api.merge("Site", &world.namespace, "fails", "status", &phase).await.unwrap();
        let outcome = json!({"metadata": {"annotations": {"example.test/seen": attempts().len().to_string()}}});
        for pod in world.pods("fails").await {
            let _ = world.api.merge("Pod", &world.namespace, name_of(&pod), "", &outcome).await;
        }
        attempts().len() >= 4
    })
    .await;
    let times: Vec<_> = attempts().iter().map(|passed| passed.at).collect();
    let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs_f64()).collect();
    // 1, 2 and 4 s, each at least by half.
    for (gap, least) in gaps.iter().zip([0.5, 1.0, 2.0]) {
        assert!(*gap >= least, "{gaps:?}");
    }
    // The phase that somebody wrote is corrected, and a change is tried at once.
    world.wait_phase("fails", "Running").await;
    let before = attempts().len();
    world.edit_site("fails", json!({"spec": {"configuration": {"headers": {"X-A": "b"}}}})).await;
    let after = eventually("a change is tried", SOON, || async {
        let all = attempts();
        (all.len() >= before + 2).then_some(all)
    })
    .await;
    let fresh = after[before + 1].at.duration_since(after[before].at).as_secs_f64();
    assert!((0.5..3.5).contains(&fresh), "a change begins afresh: {fresh} s");
    proxy.heal();
    world.wait_ready("fails").await;
    world.end().await;
}
