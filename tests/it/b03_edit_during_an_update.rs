//! B03: an edit made while an update runs is neither lost nor taken for done: what is recorded is what was rendered.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::belongings::{before_the_route, generation, stamp};
use crate::support::{Act, FaultProxy, Lab, Match, SOON, Start, Times, World, eventually};

const OWNER: &str = "sites.ecmwf.int/owner";

fn owner(owner: &str) -> Value {
    json!({"spec": {"owner": owner}})
}

/// Fails unless every object of the Site speaks of this owner.
async fn assert_owned_everywhere(world: &World, id: &str, owner: &str) {
    for (kind, name) in before_the_route(id) {
        assert_eq!(world.must(kind, &name).await["metadata"]["labels"][OWNER], owner, "{kind}/{name}");
    }
    assert_eq!(world.ingresses(id).await[0]["metadata"]["labels"][OWNER], owner);
    assert_eq!(world.config_map(id).await["data"]["SITE_OWNER"], owner);
    let files = world.config_map(&format!("{id}-files")).await["data"]["access.json"].to_string();
    assert!(files.contains(owner), "{files}");
}

/// Two edits while the template of a first one is on its way: Secrets and ConfigMaps were rendered before them.
#[tokio::test]
async fn b03_two_edits_during_an_update_need_one_more_pass() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("b03_two_edits_during_an_update") else { return };
    let world = World::new("b03").await;
    let proxy = FaultProxy::start(lab).await;
    let start = Start { kubeconfig: Some(proxy.kubeconfig(&world).await), ..Start::default() };
    let operator = world.start_operator_with(start).await;
    world.site("plain", json!({})).await;
    world.running(&operator, "plain").await;
    let before = world.stateful_set("plain").await;

    let mark = audit.mark();
    let held = proxy.fault(Match::on("update", "statefulsets"), Act::Delay(Duration::from_secs(4)), Times::Count(1));
    world.edit_site("plain", json!({"spec": {"configuration": {"quota": 2}}})).await;
    eventually("the template is on its way", SOON, || async { proxy.hits(held) == 1 }).await;
    world.edit_site("plain", owner("bob")).await;
    world.edit_site("plain", owner("eve")).await;
    let site = world.running(&operator, "plain").await;

    assert_owned_everywhere(&world, "plain", "eve").await;
    let set = world.stateful_set("plain").await;
    assert_eq!(generation(&set), generation(&before) + 2, "a template for the quota, one for both owners");
    let digest = site["status"]["handled"]["digest"].as_str().unwrap();
    assert!(stamp(&set).starts_with(digest), "{} {digest}", stamp(&set));
    world.audit_is_complete().await;
    let templates = world.calls(mark).of("statefulsets").writes();
    assert_eq!(templates.count(), 2, "{}", templates.describe());
    world.end().await;
}

/// The operator dies after the first update, before the second: the next one has nothing but the record to go by.
#[tokio::test]
async fn b03_the_record_of_an_update_is_what_it_rendered() {
    let lab = Lab::get().await;
    let mut world = World::new("b03-kill").await;
    // The next operator need not wait for the killed one's Lease; leadership has tests of its own.
    world.settings["operator"]["lease"]["enabled"] = false.into();
    let proxy = FaultProxy::start(lab).await;
    let start = Start { kubeconfig: Some(proxy.kubeconfig(&world).await), ..Start::default() };
    let operator = world.start_operator_with(start.clone()).await;
    world.site("plain", json!({})).await;
    world.running(&operator, "plain").await;
    let before = world.stateful_set("plain").await;

    let put = || Match::on("update", "statefulsets");
    let first = proxy.fault(put(), Act::Delay(Duration::from_secs(4)), Times::Count(1));
    let second = proxy.fault(put(), Act::Delay(Duration::from_secs(600)), Times::Count(1));
    world.edit_site("plain", json!({"spec": {"type": "public"}})).await;
    eventually("the template is on its way", SOON, || async { proxy.hits(first) == 1 }).await;
    world.edit_site("plain", owner("bob")).await;
    eventually("a second pass runs", SOON, || async { proxy.hits(second) == 1 }).await;
    let between = world.stateful_set("plain").await;
    assert_eq!(generation(&between), generation(&before) + 1);
    world
        .wait_site("plain", "the first pass is on record", |site| {
            let digest = site["status"]["handled"]["digest"].as_str().unwrap_or_default();
            stamp(&between).starts_with(digest) && !stamp(&before).starts_with(digest)
        })
        .await;
    operator.kill();

    let operator = world.start_operator_with(start).await;
    world.running(&operator, "plain").await;
    assert_owned_everywhere(&world, "plain", "bob").await;
    assert_eq!(generation(&world.stateful_set("plain").await), generation(&before) + 2);
    world.end().await;
}
