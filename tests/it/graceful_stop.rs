//! A stop in the middle of work: what was begun is finished and said, nothing else is begun, the Lease is free.

use std::time::Duration;

use serde_json::json;

use crate::support::{Act, FaultProxy, Lab, Match, SOON, Start, Times, World, eventually};

#[tokio::test]
async fn graceful_stop_finishes_the_passes_in_flight_and_their_status() {
    const WORKERS: usize = 5;
    let lab = Lab::get().await;
    let world = World::on(lab, "graceful-stop").await;
    let proxy = FaultProxy::start(lab).await;
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    // Whoever wrote a status just now waits for its next one: that one is not forgotten either.
    // The Lease is long: a busy machine loses none on the way.
    let lease = json!({"duration": "60s", "renew_period": "1s"});
    let settings = json!({"operator": {"worker_limit": WORKERS, "status_min_interval": "1s", "lease": lease}});
    let operator = world.start_operator_with(Start { kubeconfig, settings, ..Start::default() }).await;
    let held = proxy.fault(Match::on("create", "services"), Act::Delay(Duration::from_secs(4)), Times::Always);
    let ids: Vec<String> = (0..20).map(|number| format!("s-{number}")).collect();
    for id in &ids {
        world.site(id, json!({})).await;
    }
    eventually("every worker is in a pass", SOON, || async { proxy.hits(held) >= WORKERS }).await;
    operator.stop().await;

    let mut done = 0;
    for id in &ids {
        let site = world.must("Site", id).await;
        if world.get("Secret", id).await.is_none() {
            assert!(site["status"]["handled"].is_null(), "{site}");
            continue;
        }
        done += 1;
        assert_eq!(world.ingresses(id).await.len(), 1, "{id}: its pass went to the end");
        assert!(site["status"]["handled"]["digest"].is_string(), "{id}: and its status says so: {}", site["status"]);
        let ready = crate::support::api::condition(&site, "Ready").expect("a condition");
        assert_eq!(ready["status"], "True");
    }
    assert!(done >= WORKERS && done < ids.len(), "what was not begun stays for the next one: {done} were done");
    let lease = world.must("Lease", "sites-operator").await;
    assert!(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().is_empty(), "{lease}");

    let operator = world.start_operator().await;
    for id in &ids {
        world.wait_ready(id).await;
        assert_eq!(world.stateful_set(id).await["metadata"]["generation"], 1, "{id}: nothing is done twice");
    }
    operator.stop().await;
    world.end().await;
}

/// A standby, and one that waits for its first lists, stop at once and well.
#[tokio::test]
async fn graceful_stop_of_one_that_does_not_work() {
    let lab = Lab::get().await;
    let world = World::on(lab, "graceful-idle").await;
    let _leader = world.start_operator().await;
    world.start_operator().await.stop().await;
    let proxy = FaultProxy::start(lab).await;
    proxy.fault(Match::on("list|watch", "pods"), Act::Silence, Times::Always);
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    let waiting = world.start_operator_with(Start { kubeconfig, do_not_wait: true, ..Start::default() }).await;
    eventually("it answers", SOON, || async { waiting.request("/healthz").await }).await;
    waiting.stop().await;
    world.end().await;
}
