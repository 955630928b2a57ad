//! Of several operators one works: the one that holds the Lease. Another takes over when it ends, dies or sleeps.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::audit::Mark;
use crate::support::{Audit, Calls, Lab, Operator, SOON, World, eventually};

const LEASE: &str = "sites-operator";

fn share(user: &str) -> Value {
    json!({"spec": {"configuration": {"share": {"view_users": [user]}}}})
}

async fn holder(world: &World) -> String {
    let lease = world.get("Lease", LEASE).await.unwrap_or_default();
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

async fn wait_holder(world: &World, operator: &Operator) {
    eventually("the Lease has its holder", SOON, || async {
        let holder = holder(world).await;
        if holder == operator.agent() { Ok(()) } else { Err(holder) }
    })
    .await;
}

/// Two operators; the first leads.
async fn pair(world: &World) -> (Operator, Operator) {
    let first = world.start_operator().await;
    wait_holder(world, &first).await;
    (first, world.start_operator().await)
}

/// What one operator wrote, Leases excepted.
fn written(world: &World, mark: Mark, operator: &Operator) -> Calls {
    world.calls(mark).by_agent(&operator.agent()).writes().filter(|call| call.resource != "leases")
}

fn leases(world: &World, agent: &str) -> Vec<Timestamp> {
    let calls = world.calls(Mark::START).by_agent(agent).of("leases").writes().accepted();
    calls.0.iter().map(|call| call.at).collect()
}

fn audit(lab: &Lab, test: &str) -> Option<Audit> {
    lab.audit_or_skip(test)
}

#[tokio::test]
async fn leadership_only_the_leader_writes_and_a_stop_hands_over() {
    let lab = Lab::get().await;
    if audit(lab, "leadership_only_the_leader_writes_and_a_stop_hands_over").is_none() {
        return;
    }
    let mut world = World::on(lab, "leadership-stop").await;
    // Long: what takes over within it was handed the Lease.
    world.settings["operator"]["lease"] = json!({"duration": "60s", "renew_period": "1s"});
    let (first, second) = pair(&world).await;
    world.site("one", json!({})).await;
    world.wait_ready("one").await;
    world.wait_phase("one", "Running").await;
    let calls = eventually("its writes are in the log", SOON, || async {
        let calls = written(&world, Mark::START, &first);
        (calls.count() >= 9).then_some(calls)
    })
    .await;
    assert_eq!(written(&world, Mark::START, &second).count(), 0, "of {}", calls.describe());

    let agent = first.agent();
    first.stop().await;
    wait_holder(&world, &second).await;
    world.edit_site("one", share("bo")).await;
    world.wait_ready("one").await;
    assert!(written(&world, Mark::START, &second).count() > 0);
    let (released, taken) = (leases(&world, &agent), leases(&world, &second.agent()));
    let gap = taken[0].duration_since(*released.last().unwrap());
    assert!(gap.as_secs() < 30, "long before the Lease would have expired: {gap:?}");
    second.stop().await;
    assert_eq!(holder(&world).await, "", "nobody holds it");
    world.end().await;
}

#[tokio::test]
async fn leadership_after_a_kill_another_takes_over_when_the_lease_expires() {
    let lab = Lab::get().await;
    if audit(lab, "leadership_after_a_kill_another_takes_over_when_the_lease_expires").is_none() {
        return;
    }
    let world = World::on(lab, "leadership-kill").await;
    let (first, second) = pair(&world).await;
    let agent = first.agent();
    first.kill();
    world.site("one", json!({})).await;
    world.wait_ready("one").await;
    wait_holder(&world, &second).await;
    let (last, taken) = (leases(&world, &agent), leases(&world, &second.agent()));
    let gap = taken[0].duration_since(*last.last().unwrap());
    assert!(gap.as_secs() >= 5, "not before the Lease has expired: {gap:?}");
    world.end().await;
}

/// Each sleeps in the middle of its work and wakes while the other one holds the Lease.
#[tokio::test]
async fn leadership_who_slept_writes_nothing_before_it_leads_again() {
    let lab = Lab::get().await;
    let Some(audit) = audit(lab, "leadership_who_slept_writes_nothing_before_it_leads_again") else { return };
    let world = World::on(lab, "leadership-sleep").await;
    let (first, second) = pair(&world).await;
    let ids: Vec<String> = (0..30).map(|number| format!("s-{number}")).collect();
    for id in &ids {
        world.site(id, json!({"configuration": {"enabled": false}})).await;
    }
    first.pause();
    let more: Vec<String> = (30..60).map(|number| format!("s-{number}")).collect();
    for id in &more {
        world.site(id, json!({"configuration": {"enabled": false}})).await;
    }
    wait_holder(&world, &second).await;
    second.pause();
    let done = world.api.list("StatefulSet", &world.namespace, "").await.len();
    assert!(done < ids.len() + more.len(), "there is work left");

    // There is work for the first one, and the second one does not do it, but it holds the Lease.
    let mark = audit.mark();
    first.resume();
    wait_holder(&world, &first).await;
    for id in ids.iter().chain(&more) {
        world.wait_ready(id).await;
    }
    let again = *leases(&world, &first.agent()).iter().find(|at| **at > leases(&world, &second.agent())[0]).unwrap();
    let calls = written(&world, mark, &first).accepted();
    assert!(calls.count() > 0, "it did the rest");
    let early = calls.filter(|call| call.at < again);
    assert_eq!(early.count(), 0, "before it led again:\n{}", early.describe());

    let mark = audit.mark();
    second.resume();
    eventually("it knows that it lost", SOON, || async { second.metric("leader", &[]).await < 0.5 }).await;
    world.edit_site(&ids[1], share("bo")).await;
    world.wait_ready(&ids[1]).await;
    assert!(written(&world, mark, &first).count() > 0);
    let calls = written(&world, mark, &second).accepted();
    assert_eq!(calls.count(), 0, "{}", calls.describe());
    world.end().await;
}
