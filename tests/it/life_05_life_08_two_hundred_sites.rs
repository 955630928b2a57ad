//! LIFE-05 and LIFE-08 with 200 Sites, made once for both: a start of the operator costs nothing, and what is deleted at
//! once leaves nothing.
//!
//! In a control plane of its own: the volume controller binds one claim after the other, so in the shared one every
//! test beside this one would wait for 200 claims.

use crate::support::{Lab, Options, World};

#[tokio::test]
async fn life_05_life_08_two_hundred_sites_restart_for_nothing_and_leave_nothing() {
    if std::env::var_os("SITES_TEST_KUBECONFIG").is_some() {
        eprintln!("life_05_life_08_two_hundred_sites: skipped, it counts calls in the audit log of a local cluster");
        return;
    }
    let lab = Lab::own(Options::default()).await;
    let audit = lab.audit().unwrap();
    let world = World::on(&lab, "life-08-many").await;
    let operator = world.start_operator().await;
    let ids = world.crowd(&operator, 200).await;
    let before = world.workloads().await;
    assert_eq!(before.len(), 400, "a StatefulSet and a pod each");

    operator.stop().await;
    let mark = audit.mark();
    let operator = world.start_operator().await;
    for id in &ids {
        world.settled(&operator, id).await;
    }
    world.assert_costs_nothing(mark, "a start with 200 Sites").await;
    assert_eq!(world.workloads().await, before);

    let mark = audit.mark();
    world.delete_all_sites().await;
    world.wait_nothing_left().await;
    operator.forgets_all().await;
    world.audit_is_complete().await;
    let writes = world.calls(mark).of_passes().writes();
    let posts = writes.clone().filter(|call| call.verb == "create");
    assert_eq!(posts.count(), 0, "{}", posts.describe());
    let accepted = writes.accepted();
    assert_eq!(accepted.count(), 0, "{}", accepted.describe());
    world.end().await;
}
