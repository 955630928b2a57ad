//! The plain reconciler on a cluster: what is reconciled and when, what the status says, what a restart repeats.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::api::condition;
use crate::support::tenant::given_name;
use crate::support::{Act, FaultProxy, Lab, Match, SOON, Tenants, Times, eventually};

/// No resync and no requeue: only what a test does.
const QUIET: [(&str, &str); 2] = [("RESYNC_PERIOD_MS", "0"), ("REQUEUE_MS", "0")];

#[tokio::test]
async fn tenant_is_reconciled_when_it_is_added_and_when_its_spec_changes() {
    let Some(audit) = Lab::get().await.audit_or_skip("tenant_is_reconciled") else { return };
    let tenants = Tenants::new("tenant-change").await;
    let mark = audit.mark();
    let operator = tenants.start(&QUIET).await;
    tenants.create("a").await;
    let added = tenants.wait("a", "True").await;
    let ready = condition(&added, "Ready").unwrap();
    assert_eq!((&ready["reason"], &ready["observedGeneration"]), (&json!("Reconciled"), &json!(1)));
    assert_eq!(added["status"]["ready"], true, "a field that the pass reported");
    assert_eq!(tenants.given(&added).await.unwrap()["metadata"]["annotations"]["myapp.example.com/tenant"], "a");

    tenants.rename("a", "b").await;
    let changed = tenants.wait("a", "True").await;
    assert_eq!(changed["status"]["observedGeneration"], 2);
    assert_eq!(tenants.given(&changed).await.unwrap()["metadata"]["annotations"]["myapp.example.com/tenant"], "b");
    let since = &condition(&changed, "Ready").unwrap()["lastTransitionTime"];
    assert_eq!(since, &ready["lastTransitionTime"], "it was True all the time");
    tenants.wait_passes(mark, &added, 2).await;
    assert!(operator.stop().await.iter().all(|line| line["level"] != "ERROR"));
    tenants.end().await;
}

#[tokio::test]
async fn tenant_status_changes_are_not_reconciled() {
    let Some(audit) = Lab::get().await.audit_or_skip("tenant_status_changes") else { return };
    let tenants = Tenants::new("tenant-status").await;
    let mark = audit.mark();
    let _operator = tenants.start(&QUIET).await;
    tenants.create("a").await;
    let tenant = tenants.wait("a", "True").await;

    // Somebody's hand in the status, in the operator's own field and beside it; and labels, which are no spec.
    let (api, namespace) = (&tenants.world.api, &tenants.world.namespace);
    let since = &condition(&tenant, "Ready").unwrap()["lastTransitionTime"];
    let other =
        json!({"type": "Other", "status": "True", "reason": "Hand", "message": "", "lastTransitionTime": since});
    let mut conditions = tenant["status"]["conditions"].as_array().unwrap().clone();
    conditions.push(other);
    let hand = json!({"status": {"ready": false, "conditions": conditions}});
    api.merge("Tenant", namespace, "a", "status", &hand).await.unwrap();
    api.merge("Tenant", namespace, "a", "", &json!({"metadata": {"labels": {"x": "y"}}})).await.unwrap();
    eventually("the operator's own field is true again", SOON, || async {
        tenants.world.must("Tenant", "a").await["status"]["ready"] == true
    })
    .await;

    tenants.rename("a", "b").await;
    let tenant = tenants.wait("a", "True").await;
    assert!(condition(&tenant, "Other").is_some(), "another's condition stays");
    tenants.wait_passes(mark, &tenant, 2).await;
    tenants.end().await;
}

/// Also what a `reconcile` that changes its own spec comes to: the change arrives while the pass runs.
#[tokio::test]
async fn tenant_spec_change_during_a_pass_is_reconciled_again() {
    let Some(audit) = Lab::get().await.audit_or_skip("tenant_spec_change") else { return };
    let tenants = Tenants::new("tenant-during").await;
    let proxy = FaultProxy::start(tenants.world.lab()).await;
    let mark = audit.mark();
    let _operator = tenants.start_through(&proxy, &QUIET).await;
    let held = proxy.fault(Match::on("create", "namespaces"), Act::Hold, Times::Always);
    tenants.create("a").await;
    eventually("the first pass is held", SOON, || async { proxy.hits(held) == 1 }).await;
    tenants.rename("a", "b").await;
    tenants.rename("a", "c").await;
    proxy.lift(held);
    let tenant = tenants.wait("a", "True").await;
    assert_eq!(tenant["status"]["observedGeneration"], 3);
    assert_eq!(tenants.given(&tenant).await.unwrap()["metadata"]["annotations"]["myapp.example.com/tenant"], "c");
    tenants.wait_passes(mark, &tenant, 2).await;
    tenants.end().await;
}

#[tokio::test]
async fn tenant_failure_is_told_and_tried_again_with_growing_waits() {
    let tenants = Tenants::new("tenant-failure").await;
    let proxy = FaultProxy::start(tenants.world.lab()).await;
    let quick = [QUIET.as_slice(), &[("MAX_BACKOFF_MS", "4000")]].concat();
    let operator = tenants.start_through(&proxy, &quick).await;
    let fails = proxy.fault(Match::on("get", "namespaces"), Act::status(500), Times::Always);
    let start = Timestamp::now();
    tenants.create("a").await;
    let tenant = tenants.wait("a", "False").await;
    let ready = condition(&tenant, "Ready").unwrap();
    assert_eq!(ready["reason"], "ReconcileError");
    let message = ready["message"].as_str().unwrap();
    let name = given_name(&tenant);
    assert!(message.contains(&format!("get Namespace {name}")) && message.contains("500"), "{message}");

    eventually("five attempts", SOON, || async { proxy.hits(fails) >= 5 }).await;
    let waits = waits_since(&proxy, start, &name);
    for (wait, full) in waits.iter().zip([1.0, 2.0, 4.0, 4.0]) {
        // Half of a wait is fixed, half is drawn; a busy machine makes it longer.
        assert!((full / 2.0 - 0.01..full + 1.0).contains(wait), "{waits:?}");
    }
    proxy.heal();
    let tenant = tenants.wait("a", "True").await;
    assert_eq!(tenant["status"]["observedGeneration"], 1);
    let errors = operator.logs().iter().filter(|line| line["level"] == "ERROR").count();
    assert_eq!(errors, 1, "one line for one failure, however often it is tried:\n{}", operator.log_text());

    // A change ends a wait at once, and waits begin again from one second.
    let fails = proxy.fault(Match::on("get", "namespaces"), Act::status(503), Times::Always);
    let mark = Timestamp::now();
    tenants.rename("a", "b").await;
    tenants.wait("a", "False").await;
    eventually("two attempts", SOON, || async { proxy.hits(fails) >= 2 }).await;
    let again = waits_since(&proxy, mark, &name);
    assert!((0.49..2.0).contains(&again[0]), "{again:?}");
    proxy.heal();
    let edited = Timestamp::now();
    tenants.rename("a", "c").await;
    tenants.wait("a", "True").await;
    let asked = proxy.seen("get", "namespaces");
    let first = asked.iter().find(|one| one.at > edited).unwrap();
    assert!(seconds(edited, first.at) < 0.5, "not after the backoff");
    tenants.end().await;
}

/// Seconds between the attempts to read a namespace since `mark`.
fn waits_since(proxy: &FaultProxy, mark: Timestamp, name: &str) -> Vec<f64> {
    let mut reads = proxy.seen("get", "namespaces");
    reads.retain(|one| one.at > mark && one.asked.name == name);
    reads.windows(2).map(|two| seconds(two[0].at, two[1].at)).collect()
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

#[tokio::test]
async fn tenant_is_reconciled_again_when_it_asked_for_it() {
    let Some(audit) = Lab::get().await.audit_or_skip("tenant_asked_for_it") else { return };
    let tenants = Tenants::new("tenant-requeue").await;
    let mark = audit.mark();
    let _operator = tenants.start(&[("RESYNC_PERIOD_MS", "0"), ("REQUEUE_MS", "400")]).await;
    tenants.create("a").await;
    let tenant = tenants.wait("a", "True").await;
    let passes = eventually("five passes", SOON, || async {
        let passes = tenants.passes(mark, &tenant);
        (passes.count() >= 5).then_some(passes)
    })
    .await;
    for two in passes.0.windows(2) {
        assert!(seconds(two[0].at, two[1].at) >= 0.4, "{}", passes.describe());
    }
    let after = tenants.world.must("Tenant", "a").await;
    assert_eq!(
        after["metadata"]["resourceVersion"], tenant["metadata"]["resourceVersion"],
        "an equal status is not written"
    );
    tenants.end().await;
}

#[tokio::test]
async fn tenant_resync_reconciles_every_object_once_a_period() {
    let Some(audit) = Lab::get().await.audit_or_skip("tenant_resync") else { return };
    let tenants = Tenants::new("tenant-resync").await;
    let mark = audit.mark();
    let _operator = tenants.start(&[("RESYNC_PERIOD_MS", "1500"), ("REQUEUE_MS", "0")]).await;
    tenants.create("a").await;
    tenants.create("b").await;
    for name in ["a", "b"] {
        let tenant = tenants.wait(name, "True").await;
        let passes = eventually("the first pass and three resyncs", SOON, || async {
            let passes = tenants.passes(mark, &tenant);
            (passes.count() >= 4).then_some(passes)
        })
        .await;
        // From the second on they are a period apart; the first comes at a random moment.
        for two in passes.0[1..].windows(2) {
            assert!((1.3..3.0).contains(&seconds(two[0].at, two[1].at)), "{}", passes.describe());
        }
    }
    tenants.end().await;
}

#[tokio::test]
async fn tenant_restart_repeats_nothing_before_the_next_resync() {
    let Some(audit) = Lab::get().await.audit_or_skip("tenant_restart") else { return };
    let tenants = Tenants::new("tenant-restart").await;
    let proxy = FaultProxy::start(tenants.world.lab()).await;
    let operator = tenants.start_through(&proxy, &[("REQUEUE_MS", "0")]).await;
    for name in ["well", "changed"] {
        tenants.create(name).await;
        tenants.wait(name, "True").await;
    }
    tenants.create("failed").await;
    let name = given_name(&tenants.wait("failed", "True").await);
    proxy.fault(Match::on("get", "namespaces").named(&name), Act::status(500), Times::Always);
    tenants.rename("failed", "other").await;
    tenants.wait("failed", "False").await;
    operator.stop().await;

    tenants.rename("changed", "meanwhile").await;
    let mark = audit.mark();
    let operator = tenants.start(&[("REQUEUE_MS", "0")]).await;
    let failed = tenants.wait("failed", "True").await;
    let changed = tenants.wait("changed", "True").await;
    tenants.create("new").await;
    let new = tenants.wait("new", "True").await;
    for (tenant, passes) in [(&failed, 1), (&changed, 1), (&new, 1)] {
        tenants.wait_passes(mark, tenant, passes).await;
    }
    let well = tenants.world.must("Tenant", "well").await;
    tenants.wait_passes(mark, &well, 0).await;
    let writes = tenants.world.calls(mark).writes().filter(|call| call.name == "well");
    assert_eq!(writes.count(), 0, "{}", writes.describe());
    operator.stop().await;

    let mark = audit.mark();
    let _operator = tenants.start(&[("REQUEUE_MS", "0"), ("RESYNC_PERIOD_MS", "1000")]).await;
    eventually("the resync comes", SOON, || async { tenants.passes(mark, &well).count() >= 1 }).await;
    tenants.end().await;
}

/// The engine's own numbers, beside the names that the reference gives them.
#[tokio::test]
async fn tenant_metrics_count_passes_and_the_queue() {
    let tenants = Tenants::new("tenant-metrics").await;
    let proxy = FaultProxy::start(tenants.world.lab()).await;
    let operator = tenants.start_through(&proxy, &QUIET).await;
    tenants.create("a").await;
    tenants.wait("a", "True").await;
    let of = |result: &'static str| ["model=\"tenants\"", result];
    assert!((operator.metric("reconcile_total", &of("result=\"ok\"")).await - 1.0).abs() < 0.1);
    proxy.fault(Match::on("get", "namespaces"), Act::status(500), Times::Count(1));
    tenants.rename("a", "b").await;
    eventually("a failed and a good pass more", SOON, || async {
        let (ok, error) = (
            operator.metric("reconcile_total", &of("result=\"ok\"")).await,
            operator.metric("reconcile_total", &of("result=\"error\"")).await,
        );
        if (ok - 2.0).abs() < 0.1 && (error - 1.0).abs() < 0.1 { Ok(()) } else { Err(format!("{ok} {error}")) }
    })
    .await;
    assert!((operator.metric("reconcile_duration_seconds_count", &["model=\"tenants\""]).await - 3.0).abs() < 0.1);
    assert!(operator.metric("reconcile_duration_seconds_sum", &["model=\"tenants\""]).await > 0.0);
    assert!(operator.metrics().await.contains("queue_depth{model=\"tenants\"} 0"));
    tenants.end().await;
}

#[tokio::test]
async fn tenant_concurrency_is_one_unless_told_otherwise() {
    let tenants = Tenants::new("tenant-slots").await;
    let proxy = FaultProxy::start(tenants.world.lab()).await;
    for (told, at_once) in [(None, 1), (Some(("CONCURRENCY", "3")), 3)] {
        let environment: Vec<_> = QUIET.into_iter().chain(told).collect();
        let operator = tenants.start_through(&proxy, &environment).await;
        let held = proxy.fault(Match::on("get", "namespaces"), Act::Hold, Times::Always);
        let names: Vec<String> = (0..5).map(|number| format!("of-{at_once}-{number}")).collect();
        for name in &names {
            tenants.create(name).await;
        }
        let waiting = format!("queue_depth{{model=\"tenants\"}} {}", names.len() - at_once);
        eventually("the others wait", SOON, || async {
            let metrics = operator.metrics().await;
            let depth = metrics.lines().find(|line| line.starts_with("queue_depth")).unwrap_or_default().to_owned();
            if depth == waiting { Ok(()) } else { Err(depth) }
        })
        .await;
        eventually("so many are under way", SOON, || async { proxy.hits(held) == at_once }).await;
        proxy.lift(held);
        for name in &names {
            tenants.wait(name, "True").await;
        }
        operator.stop().await;
    }
    tenants.end().await;
}

#[tokio::test]
async fn tenant_that_is_gone_leaves_no_actor() {
    let tenants = Tenants::new("tenant-gone").await;
    let operator = tenants.start(&QUIET).await;
    tenants.create("a").await;
    let tenant = tenants.wait("a", "True").await;
    assert!(tenants.world.api.delete("Tenant", &tenants.world.namespace, "a").await);
    eventually("it is gone", SOON, || async { tenants.world.get("Tenant", "a").await.is_none() }).await;
    eventually("no actor is left", Duration::from_secs(10), || async {
        let list: Value = operator.get("/debug/tenants").await;
        if list["objects"] == json!([]) { Ok(()) } else { Err(list.to_string()) }
    })
    .await;
    assert!(tenants.given(&tenant).await.is_none_or(|given| given["metadata"]["deletionTimestamp"].is_string()));
    tenants.end().await;
}
