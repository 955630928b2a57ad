//! The finalizer, and how often its write and the status' are tried on conflicts.

use serde_json::json;

use crate::support::api::condition;
use crate::support::tenant::{FINALIZER, given_name};
use crate::support::{Act, FaultProxy, Lab, Match, SOON, Tenants, Times, eventually};

const QUIET: [(&str, &str); 2] = [("RESYNC_PERIOD_MS", "0"), ("REQUEUE_MS", "0")];

#[tokio::test]
async fn tenant_finalizer_is_added_before_reconcile_and_finalize_runs_before_deletion() {
    let Some(audit) = Lab::get().await.audit_or_skip("tenant_finalizer") else { return };
    let tenants = Tenants::new("tenant-final").await;
    let proxy = FaultProxy::start(tenants.world.lab()).await;
    let mark = audit.mark();
    let _operator = tenants.start_through(&proxy, &QUIET).await;
    tenants.create("a").await;
    let tenant = tenants.wait("a", "True").await;
    assert_eq!(tenant["metadata"]["finalizers"], json!([FINALIZER]));
    let given = given_name(&tenant);
    let order = || {
        let calls = tenants.world.calls(mark).accepted().writes().filter(|call| {
            (call.resource == "tenants" && call.subresource.is_empty()) || call.resource == "namespaces"
        });
        calls.0.iter().map(|call| format!("{} {}", call.verb, call.resource)).collect::<Vec<_>>()
    };
    eventually("the finalizer comes first", SOON, || async {
        let order = order();
        if order == ["patch tenants", "create namespaces"] { Ok(()) } else { Err(format!("{order:?}")) }
    })
    .await;

    // While `finalize` fails the Tenant stays and says why.
    let fails = proxy.fault(Match::on("delete", "namespaces"), Act::status(500), Times::Always);
    assert!(tenants.world.api.delete("Tenant", &tenants.world.namespace, "a").await);
    let dying = tenants.wait("a", "False").await;
    assert_eq!(condition(&dying, "Ready").unwrap()["reason"], "ReconcileError");
    assert_eq!(dying["metadata"]["finalizers"], json!([FINALIZER]));
    eventually("it is tried again", SOON, || async { proxy.hits(fails) >= 2 }).await;
    proxy.heal();
    eventually("it is gone", SOON, || async { tenants.world.get("Tenant", "a").await.is_none() }).await;
    let given = tenants.world.api.get("Namespace", "", &given).await;
    assert!(given.is_none_or(|given| given["metadata"]["deletionTimestamp"].is_string()));
    eventually("finalize came before the finalizer went", SOON, || async {
        let order = order();
        if order[2..] == ["delete namespaces", "patch tenants"] { Ok(()) } else { Err(format!("{order:?}")) }
    })
    .await;
    tenants.end().await;
}

#[tokio::test]
async fn tenant_without_a_finalizer_goes_at_once() {
    let Some(audit) = Lab::get().await.audit_or_skip("tenant_without_a_finalizer") else { return };
    let tenants = Tenants::new("tenant-nofinal").await;
    let mark = audit.mark();
    let operator = tenants.start(&[QUIET.as_slice(), &[("FINALIZER", "")]].concat()).await;
    tenants.create("a").await;
    let tenant = tenants.wait("a", "True").await;
    assert_eq!(tenant["metadata"]["finalizers"], json!(null));
    assert!(tenants.world.api.delete("Tenant", &tenants.world.namespace, "a").await);
    assert!(tenants.world.get("Tenant", "a").await.is_none(), "at once");
    eventually("the operator has seen it", SOON, || async {
        operator.get("/debug/tenants").await["objects"] == json!([])
    })
    .await;
    operator.stop().await;
    let kept = tenants.given(&tenant).await.expect("nothing was finalized");
    assert!(kept["metadata"]["deletionTimestamp"].is_null());
    let metadata = tenants.world.calls(mark).of("tenants").writes().filter(|call| call.subresource.is_empty());
    assert_eq!(metadata.count(), 0, "{}", metadata.describe());
    tenants.world.api.delete("Namespace", "", &given_name(&tenant)).await;
    tenants.end().await;
}

#[tokio::test]
async fn tenant_finalizer_write_is_tried_max_retries_times_on_conflicts() {
    let tenants = Tenants::new("tenant-conflict").await;
    let proxy = FaultProxy::start(tenants.world.lab()).await;
    let operator = tenants.start_through(&proxy, &[QUIET.as_slice(), &[("MAX_RETRIES", "3")]].concat()).await;
    let errors = async || operator.metric("reconcile_total", &["result=\"error\""]).await;
    proxy.fault(Match::on("patch", "tenants"), Act::status(409), Times::Count(2));
    tenants.create("a").await;
    tenants.wait("a", "True").await;
    assert!(errors().await < 0.1, "the third attempt of the same pass got through");

    let conflicts = proxy.fault(Match::on("patch", "tenants"), Act::status(409), Times::Count(3));
    tenants.create("b").await;
    let refused = tenants.wait("b", "False").await;
    assert_eq!(proxy.hits(conflicts), 3);
    let message = &condition(&refused, "Ready").unwrap()["message"];
    assert!(message.as_str().unwrap().contains("changed meanwhile"), "{message}");
    tenants.wait("b", "True").await;
    assert!((errors().await - 1.0).abs() < 0.1);
    tenants.end().await;
}

#[tokio::test]
async fn tenant_status_write_is_tried_max_retries_times_on_conflicts() {
    let tenants = Tenants::new("tenant-lane").await;
    let proxy = FaultProxy::start(tenants.world.lab()).await;
    let environment = [("RESYNC_PERIOD_MS", "0"), ("REQUEUE_MS", "300"), ("MAX_RETRIES", "2")];
    let operator = tenants.start_through(&proxy, &environment).await;
    let status = |name: &str| Match::on("patch", "tenants").subresource("status").named(name);
    let once = proxy.fault(status("a"), Act::status(409), Times::Count(1));
    tenants.create("a").await;
    tenants.wait("a", "True").await;
    assert_eq!(proxy.hits(once), 1);

    let always = proxy.fault(status("b"), Act::status(409), Times::Always);
    tenants.create("b").await;
    eventually("both attempts", SOON, || async { proxy.hits(always) == 2 }).await;
    let passes = async || operator.metric("reconcile_total", &["result=\"ok\""]).await;
    let before = passes().await;
    eventually("work goes on for seconds", SOON, || async { passes().await >= before + 10.0 }).await;
    assert_eq!(proxy.hits(always), 2, "no third without a newer copy");
    // A newer copy of the object, as after a real conflict, is worth an attempt at once.
    let label = async |value: &str| {
        let patch = json!({"metadata": {"labels": {"x": value}}});
        tenants.world.api.merge("Tenant", &tenants.world.namespace, "b", "", &patch).await.unwrap();
    };
    label("y").await;
    eventually("the third", SOON, || async { proxy.hits(always) == 3 }).await;
    proxy.lift(always);
    label("z").await;
    tenants.wait("b", "True").await;
    tenants.end().await;
}
