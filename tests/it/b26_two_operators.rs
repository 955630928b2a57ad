//! B26: of two operators one works. One that was paused in the middle of a sequence writes nothing after it wakes.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::support::audit::Mark;
use crate::support::{Act, Audit, Calls, FaultProxy, Lab, Match, Operator, SOON, Start, Times, World, eventually};

struct Ground {
    world: World,
    audit: Audit,
    proxy: FaultProxy,
    /// Leads at first; all its traffic goes through the proxy.
    first: Operator,
    second: Operator,
    generation: i64,
}

impl Ground {
    async fn new(name: &str, test: &str) -> Option<Self> {
        let audit = Lab::get().await.audit_or_skip(test)?;
        let world = World::new(name).await;
        let proxy = FaultProxy::start(Lab::get().await).await;
        let kubeconfig = Some(proxy.kubeconfig(&world).await);
        let first = world.start_operator_with(Start { kubeconfig, ..Start::default() }).await;
        leads(&first).await;
        let second = world.start_operator().await;
        world.site("demo", json!({})).await;
        world.wait_phase("demo", "Running").await;
        world.wait_ready("demo").await;
        let generation = generation(&world).await;
        Some(Self { world, audit, proxy, first, second, generation })
    }

    /// Edits the Site.
    async fn edit(&self, owner: &str) {
        self.world.edit_site("demo", json!({"spec": {"owner": owner}})).await;
    }

    /// So many template changes since the beginning, and the last edit is in force.
    async fn changed(&self, edits: i64) {
        self.world.wait_ready("demo").await;
        assert_eq!(generation(&self.world).await, self.generation + edits, "one template change for each edit");
    }

    /// What an operator asked the server for, Leases left out, that would change something and was done.
    fn accepted_of(&self, operator: &Operator, mark: Mark) -> Calls {
        self.audit.calls(mark).by_agent(&operator.agent()).writes().accepted().filter(|call| call.resource != "leases")
    }
}

async fn generation(world: &World) -> i64 {
    world.stateful_set("demo").await["metadata"]["generation"].as_i64().unwrap()
}

async fn leads(operator: &Operator) {
    eventually("it leads", SOON, || async { operator.metric("leader", &[]).await > 0.5 }).await;
}

#[tokio::test]
async fn b26_a_paused_leader_writes_nothing_after_it_wakes_and_can_lead_again() {
    let Some(ground) = Ground::new("b26-paused", "b26_a_paused_leader").await else { return };
    // In the middle of the sequence: the maps are written, the StatefulSet is about to be read.
    let held = ground.proxy.fault(Match::on("get", "statefulsets"), Act::Hold, Times::Always);
    ground.edit("one@example.test").await;
    eventually("the sequence is in its middle", SOON, || async { ground.proxy.hits(held) == 1 }).await;
    ground.first.pause();
    leads(&ground.second).await;
    ground.changed(1).await;

    let (mark, resumed) = (ground.audit.mark(), Timestamp::now());
    ground.proxy.lift(held);
    ground.first.resume();
    eventually("the first knows that it does not lead", SOON, || async {
        ground.first.metric("leader", &[]).await < 0.5
    })
    .await;
    ground.edit("two@example.test").await;
    ground.changed(2).await;
    eventually("the first has looked at the Lease since", SOON, || async {
        let looks = ground.proxy.seen("get", "leases");
        looks.iter().filter(|one| one.at > resumed && one.code == Some(200)).count() >= 3
    })
    .await;
    let writes = ground.accepted_of(&ground.first, mark);
    assert_eq!(writes.count(), 0, "{}", writes.describe());
    // It did not even try: that the server would refuse is the second line of defence.
    let tried: Vec<_> = ["create", "update", "patch", "delete"]
        .into_iter()
        .flat_map(|verb| ground.proxy.seen(verb, "*"))
        .filter(|one| one.at > resumed && one.asked.resource != "leases")
        .collect();
    assert!(tried.is_empty(), "{tried:#?}");

    // It waits without haste: a look at the Lease each second.
    let looks = ground.proxy.seen("*", "leases").iter().filter(|one| one.at > resumed).count();
    let seconds = usize::try_from(Timestamp::now().duration_since(resumed).as_secs()).unwrap();
    assert!(looks < 2 * seconds + 7, "{looks} calls for the Lease in {seconds} s");

    // And it leads again when the other one goes.
    let Ground { world, audit, first, second, generation: begin, .. } = ground;
    second.stop().await;
    leads(&first).await;
    let mark = audit.mark();
    world.edit_site("demo", json!({"spec": {"owner": "three@example.test"}})).await;
    world.wait_ready("demo").await;
    assert_eq!(generation(&world).await, begin + 3);
    eventually("the first did it", Duration::from_secs(10), || async {
        audit.calls(mark).by_agent(&first.agent()).of("statefulsets").writes().accepted().count() == 1
    })
    .await;
    world.end().await;
}

#[tokio::test]
async fn b26_a_write_that_was_on_the_wire_is_refused_by_the_server() {
    let Some(ground) = Ground::new("b26-wire", "b26_a_write_on_the_wire").await else { return };
    let held = ground.proxy.fault(Match::on("update", "statefulsets"), Act::Hold, Times::Always);
    ground.edit("one@example.test").await;
    eventually("the write is on its way", SOON, || async { ground.proxy.hits(held) == 1 }).await;
    ground.first.pause();
    leads(&ground.second).await;
    ground.changed(1).await;
    let mark = ground.audit.mark();
    ground.proxy.lift(held);
    let code =
        eventually("it arrives", SOON, || async { ground.proxy.seen("update", "statefulsets").last().unwrap().code })
            .await;
    assert_eq!(code, 409, "it carries the version that it was made from");
    ground.first.resume();
    ground.edit("two@example.test").await;
    ground.changed(2).await;
    let writes = ground.accepted_of(&ground.first, mark);
    assert_eq!(writes.count(), 0, "{}", writes.describe());
    ground.world.end().await;
}
