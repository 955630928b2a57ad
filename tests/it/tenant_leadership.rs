//! Leader election of any operator on the engine, and the rights that it needs.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::api::condition;
use crate::support::tenant::rules;
use crate::support::{Act, FaultProxy, Lab, Match, Operator, SOON, Tenants, Times, eventually};

const QUIET: [(&str, &str); 2] = [("RESYNC_PERIOD_MS", "0"), ("REQUEUE_MS", "0")];
/// Short enough to be lost within a test.
const SHORT: [(&str, &str); 4] = [("LEASE_DURATION_MS", "5000"), ("LEASE_RETRY_PERIOD_MS", "1000"), QUIET[0], QUIET[1]];

async fn leads(operator: &Operator, wanted: bool) {
    eventually(&format!("leading is {wanted}"), SOON, || async {
        (operator.metric("leader", &[]).await > 0.5) == wanted
    })
    .await;
}

#[tokio::test]
async fn tenant_lease_has_the_defaults_of_the_reference() {
    let Some(audit) = Lab::get().await.audit_or_skip("tenant_lease_defaults") else { return };
    let tenants = Tenants::new("tenant-lease").await;
    let mark = audit.mark();
    let operator = tenants.start(&QUIET).await;
    leads(&operator, true).await;
    let lease = tenants.world.must("Lease", "tenant-operator").await;
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 15);
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap().to_owned();
    assert!(!holder.is_empty());
    let renewals = eventually("it is renewed", SOON, || async {
        let renewals = tenants.world.calls(mark).of("leases").accepted().writes();
        (renewals.count() >= 3).then_some(renewals)
    })
    .await;
    for two in renewals.0.windows(2) {
        let apart = two[1].at.duration_since(two[0].at).as_secs_f64();
        assert!((4.5..6.5).contains(&apart), "{}", renewals.describe());
    }
    operator.stop().await;
    let lease = tenants.world.must("Lease", "tenant-operator").await;
    assert_eq!(lease["spec"]["holderIdentity"], Value::Null, "released on stop");
    tenants.end().await;
}

#[tokio::test]
async fn tenant_lease_can_be_named_placed_and_timed() {
    let tenants = Tenants::new("tenant-named").await;
    let other = Tenants::new("tenant-elsewhere").await;
    // The Lease is in another namespace: its right is given there, to this operator.
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "from-elsewhere"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenants"},
        "subjects": [{"kind": "ServiceAccount", "name": "sites", "namespace": tenants.world.namespace}],
    });
    other.world.api.apply(&other.world.namespace, &role).await.unwrap();
    let mut environment = SHORT.to_vec();
    environment.extend([("LEASE_NAME", "mine"), ("LEASE_NAMESPACE", other.world.namespace.as_str())]);
    let operator = tenants.start(&environment).await;
    leads(&operator, true).await;
    assert_eq!(other.world.must("Lease", "mine").await["spec"]["leaseDurationSeconds"], 5);
    assert!(tenants.world.get("Lease", "tenant-operator").await.is_none());
    tenants.create("a").await;
    tenants.wait("a", "True").await;
    tenants.end().await;
    other.end().await;
}

#[tokio::test]
async fn tenant_election_can_be_switched_off() {
    let Some(audit) = Lab::get().await.audit_or_skip("tenant_election_off") else { return };
    let tenants = Tenants::new("tenant-alone").await;
    let mark = audit.mark();
    let operator = tenants.start(&[QUIET.as_slice(), &[("LEADER_ELECTION", "false")]].concat()).await;
    tenants.create("a").await;
    tenants.wait("a", "True").await;
    operator.stop().await;
    assert!(tenants.world.get("Lease", "tenant-operator").await.is_none());
    assert_eq!(tenants.world.calls(mark).of("leases").count(), 0);
    tenants.end().await;
}

#[tokio::test]
async fn tenant_only_the_holder_reconciles_and_a_stop_hands_over_at_once() {
    let Some(audit) = Lab::get().await.audit_or_skip("tenant_hand_over") else { return };
    let tenants = Tenants::new("tenant-handover").await;
    let mark = audit.mark();
    // Valid for much longer than the test waits: only a release can make way.
    let long = [("LEASE_DURATION_MS", "120000"), ("LEASE_RETRY_PERIOD_MS", "1000"), QUIET[0], QUIET[1]];
    let first = tenants.start(&long).await;
    leads(&first, true).await;
    let second = tenants.start(&long).await;
    tenants.create("a").await;
    let tenant = tenants.wait("a", "True").await;
    tenants.wait_passes(mark, &tenant, 1).await;
    assert!(second.metric("leader", &[]).await < 0.5, "a standby is ready and does not lead");
    first.stop().await;

    tenants.rename("a", "b").await;
    tenants.wait("a", "True").await;
    leads(&second, true).await;
    tenants.wait_passes(mark, &tenant, 2).await;
    tenants.end().await;
}

/// Without a standby: the Lease lapses in the middle of a pass and comes back.
#[tokio::test]
async fn tenant_lost_lease_stops_the_pass_at_once_and_is_no_failure() {
    let tenants = Tenants::new("tenant-lapse").await;
    let proxy = FaultProxy::start(tenants.world.lab()).await;
    let operator = tenants.start_through(&proxy, &SHORT).await;
    leads(&operator, true).await;
    let pass = proxy.fault(Match::on("get", "namespaces"), Act::Hold, Times::Always);
    tenants.create("a").await;
    eventually("the pass is under way", SOON, || async { proxy.hits(pass) == 1 }).await;
    // Renewals hang, as with a server that does not answer.
    let renewals = proxy.fault(Match::on("*", "leases"), Act::Hold, Times::Always);
    let stopped =
        eventually("the pass is stopped", SOON, || async { proxy.seen("get", "namespaces").last().unwrap().abandoned })
            .await;
    let renewed = proxy.seen("update|create", "leases").iter().rfind(|one| one.code.is_some()).unwrap().at;
    let after = stopped.duration_since(renewed).as_secs_f64();
    assert!((4.0..6.5).contains(&after), "stopped {after} s after the last renewal of a Lease that is valid for 5 s");
    assert!(operator.metric("leader", &[]).await < 0.5);

    // Nothing is begun either. The read that was held goes nowhere: its client has gone.
    tenants.rename("a", "b").await;
    let asked = proxy.seen("get", "namespaces").len();
    eventually("the change is known", SOON, || async { operator.get("/debug/tenants/a").await["generation"] == 2 })
        .await;
    assert_eq!(proxy.seen("get", "namespaces").len(), asked);
    proxy.lift(pass);
    proxy.lift(renewals);
    let tenant = tenants.wait("a", "True").await;
    assert_eq!(tenant["status"]["observedGeneration"], 2);
    let errors = operator.metric("reconcile_total", &["result=\"error\""]).await;
    assert!(errors < 0.1, "a pass that was stopped is no failure of the object: {errors}");
    tenants.end().await;
}

#[tokio::test]
async fn tenant_lost_lease_goes_to_another_and_can_come_back() {
    let Some(audit) = Lab::get().await.audit_or_skip("tenant_lost_lease") else { return };
    let tenants = Tenants::new("tenant-lost").await;
    let proxy = FaultProxy::start(tenants.world.lab()).await;
    let first = tenants.start_through(&proxy, &SHORT).await;
    leads(&first, true).await;
    tenants.create("a").await;
    let tenant = tenants.wait("a", "True").await;
    let second = tenants.start(&SHORT).await;
    let renewals = proxy.fault(Match::on("*", "leases"), Act::status(503), Times::Always);
    leads(&first, false).await;
    let (mark, lost) = (audit.mark(), Timestamp::now());
    tenants.rename("a", "b").await;
    tenants.wait("a", "True").await;
    leads(&second, true).await;
    tenants.wait_passes(mark, &tenant, 1).await;
    proxy.lift(renewals);
    tenants.rename("a", "c").await;
    tenants.wait("a", "True").await;
    tenants.wait_passes(mark, &tenant, 2).await;
    let by_first: Vec<_> =
        proxy.log().into_iter().filter(|one| one.at > lost && one.asked.resource == "namespaces").collect();
    assert!(by_first.is_empty(), "{by_first:?}");

    second.stop().await;
    leads(&first, true).await;
    tenants.rename("a", "d").await;
    tenants.wait("a", "True").await;
    tenants.wait_passes(mark, &tenant, 3).await;
    assert_eq!(proxy.seen("get", "namespaces").iter().filter(|one| one.at > lost).count(), 1);
    tenants.end().await;
}

/// Everything that the engine does, with no other rights than those it prints, and none that it does not use.
#[tokio::test]
async fn tenant_rights_suffice_and_none_is_spare() {
    let Some(audit) = Lab::get().await.audit_or_skip("tenant_rights") else { return };
    let tenants = Tenants::new("tenant-rights").await;
    let proxy = FaultProxy::start(tenants.world.lab()).await;
    let mark = audit.mark();
    let quick = [SHORT.as_slice(), &[("MAX_BACKOFF_MS", "1000")]].concat();
    let operator = tenants.start_through(&proxy, &quick).await;
    // A conflict reads the Tenant again; a failure is published as an Event, the same once more counts it up.
    proxy.fault(Match::on("patch", "tenants"), Act::status(409), Times::Count(1));
    let fails = proxy.fault(Match::on("get", "namespaces"), Act::status(500), Times::Count(3));
    tenants.create("a").await;
    let failed = tenants.wait("a", "False").await;
    assert_eq!(condition(&failed, "Ready").unwrap()["reason"], "ReconcileError");
    tenants.wait("a", "True").await;
    assert_eq!(proxy.hits(fails), 3);
    assert!(tenants.world.api.delete("Tenant", &tenants.world.namespace, "a").await);
    eventually("it is gone", SOON, || async { tenants.world.get("Tenant", "a").await.is_none() }).await;
    operator.stop().await;

    let given: BTreeSet<String> = rules().await.iter().flat_map(rights).collect();
    eventually("every right is used and no other is asked for", Duration::from_secs(10), || async {
        let calls = tenants.world.calls(mark).filter(|call| call.resource != "namespaces" && !call.resource.is_empty());
        let refused = calls.clone().filter(|call| call.code == 403);
        assert_eq!(refused.count(), 0, "{}", refused.describe());
        let used: BTreeSet<String> = calls
            .0
            .iter()
            .map(|call| {
                let slash = if call.subresource.is_empty() { "" } else { "/" };
                format!("{} {}{slash}{}", call.verb, call.resource, call.subresource)
            })
            .collect();
        // A watch that begins with its list needs the right to list where the server has no such watches.
        let spare: Vec<&String> = given.difference(&used).filter(|right| *right != "list tenants").collect();
        if spare.is_empty() && used.is_subset(&given) { Ok(()) } else { Err(format!("spare {spare:?}, used {used:?}")) }
    })
    .await;
    tenants.end().await;
}

/// The verbs and resources of a rule, one text for each pair.
fn rights(rule: &Value) -> Vec<String> {
    let texts = |key: &str| -> Vec<String> {
        rule[key].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let verbs = texts("verbs");
    texts("resources").iter().flat_map(|one| verbs.iter().map(move |verb| format!("{verb} {one}"))).collect()
}
