//! LIFE-03: a qualifying change renders everything anew and restarts the pods: the template changes exactly once, even
//! if calls fail or the operator is killed on the way.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::belongings::{before_the_route, generation, stamp};
use crate::support::{Act, FaultProxy, Lab, Match, Operator, SOON, Start, Times, World, eventually};

const OWNER: &str = "sites.ecmwf.int/owner";

/// A change that touches each object of a Site: its labels name the owner.
fn new_owner(owner: &str) -> Value {
    json!({"spec": {"owner": owner}})
}

fn text_of(base64: &Value) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64.as_str().unwrap()).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn life_03_everything_is_rendered_anew_and_the_pods_restart() {
    let world = World::new("life-03").await;
    let operator = world.start_operator().await;
    world.site("plain", json!({"owner": "ada"})).await;
    world.running(&operator, "plain").await;
    let (set, pods) = (world.stateful_set("plain").await, world.pod_uids("plain").await);
    let revisions = world.of_site("ControllerRevision", "plain").await.len();

    let change = json!({"owner": "bob", "type": "public", "configuration": {
        "headers": {"X-Lab": "forty-two"}, "tokens": {"master": "the-rotated-master-token-012345"},
        "share": {"view_users": ["eve"]}, "retention_date": "2031-01-01",
    }});
    world.edit_site("plain", json!({"spec": change})).await;
    eventually("the pod is another", SOON, || async {
        let now = world.pod_uids("plain").await;
        now.len() == 1 && now != pods
    })
    .await;
    world.running(&operator, "plain").await;

    let after = world.stateful_set("plain").await;
    assert_eq!(generation(&after), generation(&set) + 1, "one write");
    assert_ne!(stamp(&after), stamp(&set));
    assert_eq!(world.of_site("ControllerRevision", "plain").await.len(), revisions + 1, "one new template");

    for (kind, name) in before_the_route("plain") {
        assert_eq!(world.must(kind, &name).await["metadata"]["labels"][OWNER], "bob", "{kind}/{name}");
    }
    assert_eq!(world.ingresses("plain").await[0]["metadata"]["labels"][OWNER], "bob");
    // A cluster's kubelet may take its time: the pod of this moment may be the next one already.
    eventually("the pod is bob's", SOON, || async {
        world.pods("plain").await.first().is_some_and(|pod| pod["metadata"]["labels"][OWNER] == "bob").then_some(())
    })
    .await;
    let environment = world.config_map("plain").await["data"].clone();
    assert_eq!(environment["SITE_OWNER"], "bob");
    assert_eq!(environment["SITE_TYPE"], "public");
    assert_eq!(environment["SITE_RETENTION_DATE"], "2031-01-01");
    let files = world.config_map("plain-files").await["data"].to_string();
    assert!(files.contains("forty-two") && files.contains("eve"), "{files}");
    let token = text_of(&world.secret("plain").await["data"]["MASTER_TOKEN"]);
    assert_eq!(token, "the-rotated-master-token-012345");

    // The volume follows its claim.
    eventually("the volume is labelled anew", SOON, || async {
        world.volume("plain").await?["metadata"]["labels"][OWNER].as_str().filter(|owner| *owner == "bob").map(drop)
    })
    .await;
    world.end().await;
}

/// What a pass may meet on its way, at each of its steps.
fn obstacles() -> Vec<(&'static str, Match, Act)> {
    let put = |resource: &str| Match::on("update", resource);
    vec![
        ("a Secret's 503", put("secrets"), Act::status(503)),
        ("a ConfigMap's reset", put("configmaps"), Act::Reset),
        ("the claim's conflict", put("persistentvolumeclaims"), Act::status(409)),
        ("the StatefulSet cannot be read", Match::on("get", "statefulsets"), Act::status(500)),
        ("the StatefulSet's 503", put("statefulsets"), Act::status(503)),
        ("the StatefulSet's conflict", put("statefulsets"), Act::status(409)),
        ("the StatefulSet's answer is lost", put("statefulsets"), Act::LoseAnswer),
        ("the Service's 429", put("services"), Act::status(429).retry_after(1)),
        ("the route's answer is lost", put("ingresses"), Act::LoseAnswer),
        ("the status' answer is lost", Match::on("patch", "sites").subresource("status"), Act::LoseAnswer),
        ("the status' conflict", Match::on("patch", "sites").subresource("status"), Act::status(409)),
    ]
}

#[tokio::test]
async fn life_03_failed_calls_change_the_template_once() {
    let mut world = World::new("life-03-fail").await;
    world.settings["operator"]["max_backoff"] = "1s".into();
    let proxy = FaultProxy::start(world.lab()).await;
    let start = Start { kubeconfig: Some(proxy.kubeconfig(&world).await), ..Start::default() };
    let operator = world.start_operator_with(start).await;
    world.site("plain", json!({})).await;
    world.running(&operator, "plain").await;
    let first = generation(&world.stateful_set("plain").await);
    for (number, (what, calls, act)) in obstacles().into_iter().enumerate() {
        let before = world.stateful_set("plain").await;
        let rule = proxy.fault(calls, act, Times::Count(1));
        let owner = format!("owner-{number}");
        world.edit_site("plain", new_owner(&owner)).await;
        world.wait_ready("plain").await;
        assert_eq!(proxy.hits(rule), 1, "{what}");
        let after = world.stateful_set("plain").await;
        assert_eq!(after["metadata"]["labels"][OWNER], owner, "{what}");
        assert_ne!(stamp(&after), stamp(&before), "{what}");
        assert_eq!(generation(&after), generation(&before) + 1, "{what}: the template changes once");
        assert_eq!(world.ingresses("plain").await[0]["metadata"]["labels"][OWNER], owner, "{what}");
    }
    world.running(&operator, "plain").await;
    assert_eq!(
        generation(&world.stateful_set("plain").await),
        first + i64::try_from(obstacles().len()).unwrap(),
        "and stays as it is"
    );
    world.end().await;
}

/// Where the operator is killed: a request that never arrives, or one that is done and whose answer never comes.
fn deaths() -> Vec<(&'static str, Match, Act)> {
    let never = || Act::Delay(Duration::from_secs(600));
    let put = |resource: &str| Match::on("update", resource);
    vec![
        ("before a Secret", put("secrets"), never()),
        ("after a ConfigMap", put("configmaps"), Act::Silence),
        ("before the StatefulSet", put("statefulsets"), never()),
        ("after the StatefulSet", put("statefulsets"), Act::Silence),
        ("after the route", put("ingresses"), Act::Silence),
        ("before the status", Match::on("patch", "sites").subresource("status"), never()),
        ("after the status", Match::on("patch", "sites").subresource("status"), Act::Silence),
    ]
}

#[tokio::test]
async fn life_03_a_killed_operator_changes_the_template_once() {
    let mut world = World::new("life-03-kill").await;
    // The next operator need not wait for the killed one's Lease; leadership has tests of its own.
    world.settings["operator"]["lease"]["enabled"] = false.into();
    let proxy = FaultProxy::start(world.lab()).await;
    let start = Start { kubeconfig: Some(proxy.kubeconfig(&world).await), ..Start::default() };
    let mut operator: Operator = world.start_operator_with(start.clone()).await;
    world.site("plain", json!({})).await;
    world.running(&operator, "plain").await;
    let first = generation(&world.stateful_set("plain").await);
    for (number, (what, calls, act)) in deaths().into_iter().enumerate() {
        let before = world.stateful_set("plain").await;
        let rule = proxy.fault(calls, act, Times::Count(1));
        let owner = format!("owner-{number}");
        world.edit_site("plain", new_owner(&owner)).await;
        eventually(what, SOON, || async { proxy.hits(rule) == 1 }).await;
        operator.kill();
        operator = world.start_operator_with(start.clone()).await;
        world.wait_ready("plain").await;
        let after = world.stateful_set("plain").await;
        assert_eq!(after["metadata"]["labels"][OWNER], owner, "{what}");
        assert_ne!(stamp(&after), stamp(&before), "{what}");
        assert_eq!(generation(&after), generation(&before) + 1, "killed {what}: the template changes once");
        assert_eq!(world.ingresses("plain").await[0]["metadata"]["labels"][OWNER], owner, "{what}");
        assert_eq!(world.secret("plain-oauth2").await["metadata"]["labels"][OWNER], owner, "{what}");
    }
    world.running(&operator, "plain").await;
    assert_eq!(
        generation(&world.stateful_set("plain").await),
        first + i64::try_from(deaths().len()).unwrap(),
        "and stays as it is"
    );
    world.end().await;
}

/// An operator that is told to stop finishes the pass in flight; the next one finds nothing to do.
#[tokio::test]
async fn life_03_a_stopped_operator_finishes_its_pass() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("life_03_a_stopped_operator_finishes_its_pass") else { return };
    let world = World::new("life-03-stop").await;
    let proxy = FaultProxy::start(lab).await;
    let start = Start { kubeconfig: Some(proxy.kubeconfig(&world).await), ..Start::default() };
    let operator = world.start_operator_with(start.clone()).await;
    world.site("plain", json!({})).await;
    world.running(&operator, "plain").await;
    let before = world.stateful_set("plain").await;
    let rule = proxy.fault(Match::on("update", "statefulsets"), Act::Delay(Duration::from_secs(2)), Times::Count(1));
    world.edit_site("plain", new_owner("bob")).await;
    eventually("the template is on its way", SOON, || async { proxy.hits(rule) == 1 }).await;
    operator.stop().await;
    let after = world.stateful_set("plain").await;
    assert_eq!(generation(&after), generation(&before) + 1, "the pass was finished");
    assert_eq!(world.ingresses("plain").await[0]["metadata"]["labels"][OWNER], "bob", "to its last step");

    let mark = audit.mark();
    let operator = world.start_operator_with(start).await;
    world.running(&operator, "plain").await;
    world.audit_is_complete().await;
    let templates = world.calls(mark).of("statefulsets").writes();
    assert_eq!(templates.count(), 0, "{}", templates.describe());
    assert_eq!(generation(&world.stateful_set("plain").await), generation(&after));
    world.end().await;
}
