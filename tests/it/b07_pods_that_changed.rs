//! B07: the clean-up of stuck pods never hits a healthy one. (LIFE-15 has the rest: only unready pods, once each, none
//! that is being deleted, a pod that changed but is still stuck, refused and failed deletions.)

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::api::condition;
use crate::support::audit::Mark;
use crate::support::{Act, Calls, FaultProxy, Lab, Match, Operator, SOON, Start, Times, World, eventually};

const POD: &str = "stuck-0";

struct Stuck {
    world: World,
    proxy: FaultProxy,
    operator: Operator,
    /// The uid of its pod, which crashes.
    pod: String,
}

/// A Site with a pod that crashes, and an operator behind a proxy; none without an audit log.
async fn stuck(test: &str, name: &str) -> Option<Stuck> {
    let lab = Lab::get().await;
    lab.audit_or_skip(test)?;
    let world = World::new(name).await;
    let proxy = FaultProxy::start(lab).await;
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    let operator = world.start_operator_with(Start { kubeconfig, ..Start::default() }).await;
    world.site("stuck", json!({})).await;
    world.running(&operator, "stuck").await;
    world.show("stuck", "crash").await;
    world.wait_phase("stuck", "Pending").await;
    let pod = world.pod_uids("stuck").await.remove(0);
    Some(Stuck { world, proxy, operator, pod })
}

impl Stuck {
    async fn edit(&self) {
        let share = json!({"spec": {"configuration": {"share": {"view_users": ["bo"]}}}});
        self.world.edit_site("stuck", share).await;
    }

    /// Waits until another pod runs, and gives its uid.
    async fn another_pod(&self) -> String {
        eventually("another pod is ready", SOON, || async {
            let pod = self.world.get("Pod", POD).await.ok_or("there is none")?;
            let ready = condition(&pod, "Ready").is_some_and(|ready| ready["status"] == "True");
            let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
            if ready && uid != self.pod { Ok(uid) } else { Err(format!("{uid}, ready {ready}")) }
        })
        .await
    }

    /// What the operator asked of pods and templates, as it was completed.
    fn calls(&self) -> Calls {
        let calls = self.world.calls(Mark::START);
        calls.filter(|call| {
            matches!((call.resource.as_str(), call.verb.as_str()), ("pods", "delete") | ("statefulsets", "update"))
        })
    }

    /// Waits until the held deletion has been answered, and checks that the answer was no and nobody minded.
    async fn assert_refused_quietly(self) {
        let deletions = eventually("the deletion is answered", SOON, || async {
            let deletions = self.calls().of("pods");
            (deletions.count() > 0).then_some(deletions)
        })
        .await;
        let new = self.another_pod().await;
        self.world.wait_phase("stuck", "Running").await;
        self.world.wait_ready("stuck").await;
        self.world.settled(&self.operator, "stuck").await;
        self.world.audit_is_complete().await;
        assert_eq!(self.calls().of("pods").count(), deletions.count(), "{}", self.calls().describe());
        assert!(deletions.0.iter().all(|call| matches!(call.code, 404 | 409)), "{}", deletions.describe());
        assert_eq!(self.world.pod_uids("stuck").await, [new]);
        let loud = |line: &Value| line["level"] == "ERROR" || line.to_string().contains("pass failed");
        assert!(!self.operator.logs().iter().any(loud), "{}", self.operator.log_text());
        self.world.end().await;
    }
}

#[tokio::test]
async fn b07_the_template_is_stored_before_a_pod_is_deleted() {
    let Some(stuck) = stuck("b07_the_template_is_stored", "b07-order").await else { return };
    let template = Match::on("update", "statefulsets");
    stuck.proxy.fault(template, Act::Delay(Duration::from_secs(2)), Times::Count(1));
    stuck.edit().await;
    let new = stuck.another_pod().await;
    let pod = stuck.world.must("Pod", POD).await;
    let set = stuck.world.stateful_set("stuck").await;
    let stamp = "sites.ecmwf.int/stamped-for";
    let wanted = &set["spec"]["template"]["metadata"]["annotations"][stamp];
    assert_eq!(&pod["metadata"]["annotations"][stamp], wanted, "it came from the new template");
    stuck.world.settled(&stuck.operator, "stuck").await;
    stuck.world.audit_is_complete().await;
    let calls = stuck.calls();
    let told: Vec<_> = calls.0.iter().map(|call| (call.verb.as_str(), call.code)).collect();
    assert_eq!(told, [("update", 200), ("delete", 200)], "{}", calls.describe());
    let pods = stuck.world.pod_uids("stuck").await;
    assert_eq!(pods, [new]);
    stuck.world.end().await;
}

/// Enough for what a test does while a deletion is on its way.
const HELD: Duration = Duration::from_secs(6);

#[tokio::test]
async fn b07_a_pod_that_became_ready_meanwhile_is_its_controllers() {
    let Some(stuck) = stuck("b07_a_pod_that_became_ready", "b07-ready").await else { return };
    let held = stuck.proxy.fault(Match::on("delete", "pods"), Act::Delay(HELD), Times::Count(1));
    stuck.edit().await;
    eventually("the deletion is on its way", SOON, || async { stuck.proxy.hits(held) == 1 }).await;
    stuck.world.show("stuck", "ok").await;
    stuck.another_pod().await;
    stuck.assert_refused_quietly().await;
}

#[tokio::test]
async fn b07_a_pod_of_the_same_name_is_not_the_one_that_was_seen() {
    let Some(stuck) = stuck("b07_a_pod_of_the_same_name", "b07-same").await else { return };
    let held = stuck.proxy.fault(Match::on("delete", "pods"), Act::Delay(HELD), Times::Count(1));
    stuck.edit().await;
    eventually("the deletion is on its way", SOON, || async { stuck.proxy.hits(held) == 1 }).await;
    let path = format!("/api/v1/namespaces/{}/pods/{POD}?gracePeriodSeconds=0", stuck.world.namespace);
    stuck.world.api.send("DELETE", &path, "application/json", &Value::Null).await.unwrap();
    stuck.another_pod().await;
    stuck.assert_refused_quietly().await;
}
