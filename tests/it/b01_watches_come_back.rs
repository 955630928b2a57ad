//! B01: a watch that ends with 429 or 401, goes silent or is told that its version is gone comes back by itself.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::support::api::kind_of;
use crate::support::{Act, FaultProxy, Lab, Match, Operator, Start, Times, Upset, World, eventually};

/// Longest from the end of a fault to all objects of the Site.
const LIMIT: Duration = Duration::from_secs(30);

/// An operator behind a proxy whose watch of Sites stands.
struct Ground {
    world: World,
    proxy: FaultProxy,
    operator: Operator,
}

impl Ground {
    async fn new(name: &str, settings: serde_json::Value) -> Self {
        let world = World::new(name).await;
        let proxy = FaultProxy::start(Lab::get().await).await;
        let kubeconfig = Some(proxy.kubeconfig(&world).await);
        let operator = world.start_operator_with(Start { kubeconfig, settings, ..Start::default() }).await;
        let ground = Self { world, proxy, operator };
        ground.works("before").await;
        ground
    }

    /// A Site gets all its objects.
    async fn works(&self, id: &str) {
        self.world.site(id, json!({})).await;
        self.has_all(id).await;
    }

    async fn has_all(&self, id: &str) {
        eventually(&format!("Site {id} has all its objects"), LIMIT, || async {
            let objects = self.world.objects_of(id).await;
            let mut kinds: Vec<&str> = objects.iter().map(kind_of).collect();
            kinds.retain(|kind| !matches!(*kind, "Pod" | "PersistentVolume"));
            kinds.sort_unstable();
            let all = [
                "ConfigMap",
                "ConfigMap",
                "Ingress",
                "PersistentVolumeClaim",
                "Secret",
                "Secret",
                "Service",
                "StatefulSet",
            ];
            if kinds == all { Ok(()) } else { Err(format!("{kinds:?}")) }
        })
        .await;
        self.world.wait_ready(id).await;
    }

    async fn end(self) {
        assert!(self.operator.ended().is_none(), "the same process all the time");
        self.world.end().await;
    }
}

#[tokio::test]
async fn b01_a_watch_refused_with_429_comes_back_and_nothing_is_sent_before_retry_after() {
    let ground = Ground::new("b01-429", json!({})).await;
    let refusals = Act::status(429).retry_after(2);
    let rule = ground.proxy.fault(Match::on("watch", "sites"), refusals, Times::Count(5));
    assert_eq!(ground.proxy.upset(&Match::on("watch", "sites"), Upset::Break), 1);
    ground.world.site("during", json!({})).await;
    eventually("all five refusals", LIMIT, || async { ground.proxy.hits(rule) == 5 }).await;
    ground.has_all("during").await;

    let log = ground.proxy.log();
    let refused: Vec<Timestamp> = log.iter().filter(|one| one.fault.is_some()).map(|one| one.at).collect();
    assert_eq!(refused.len(), 5);
    for at in refused {
        // What was on its way when the answer came is not sent earlier than it says.
        let heard = at + SignedDuration::from_millis(300);
        let early: Vec<_> =
            log.iter().filter(|one| heard < one.at && one.at < at + SignedDuration::from_secs(2)).collect();
        assert!(early.is_empty(), "after the refusal at {at}: {early:#?}");
        let again = |one: &&crate::support::proxy::Passed| {
            one.asked.verb == "watch" && one.asked.resource == "sites" && at < one.at
        };
        let next = log.iter().find(again).expect("another try").at;
        assert!(next >= at + SignedDuration::from_secs(2), "refused at {at}, again at {next}");
    }
    ground.end().await;
}

#[tokio::test]
async fn b01_a_rotated_token_is_read_again_after_a_401() {
    let world = World::new("b01-401").await;
    let proxy = FaultProxy::start(Lab::get().await).await;
    let (kubeconfig, file) = proxy.kubeconfig_with_token_file(&world).await;
    let old = std::fs::read_to_string(&file).unwrap();
    let start = Start { kubeconfig: Some(kubeconfig), ..Start::default() };
    let operator = world.start_operator_with(start).await;
    let ground = Ground { world, proxy, operator };
    ground.works("before").await;

    let rule = ground.proxy.fault(Match::all().bearing(&old), Act::status(401), Times::Always);
    ground.proxy.upset(&Match::on("watch", "sites"), Upset::Break);
    ground.world.site("during", json!({})).await;
    let watch_refused = || {
        let watches = ground.proxy.seen("watch", "sites");
        watches.iter().filter(|one| one.fault.is_some()).count() >= 2
    };
    eventually("the watch is refused, again and again", LIMIT, || async { watch_refused() }).await;
    std::fs::write(&file, ground.world.token().await).unwrap();
    ground.has_all("during").await;
    assert!(ground.proxy.hits(rule) > 2);
    ground.end().await;
}

#[tokio::test]
async fn b01_a_silent_watch_is_noticed_soon_after_its_server_timeout() {
    let ground = Ground::new("b01-silent", json!({"operator": {"watch_timeout": "5s"}})).await;
    let silent = Timestamp::now();
    // Every watch that stands: the connections stay open and nothing comes any more.
    assert!(ground.proxy.upset(&Match::on("watch", "*"), Upset::Silence) >= 8);
    ground.world.site("during", json!({})).await;
    ground.has_all("during").await;
    let took = Timestamp::now().duration_since(silent);
    assert!(took <= SignedDuration::from_secs(5 + 15), "{took}");
    ground.end().await;
}

#[tokio::test]
async fn b01_a_version_that_is_gone_leads_to_a_fresh_list_in_each_of_its_three_forms() {
    let ground = Ground::new("b01-410", json!({})).await;
    let watches = Match::on("watch", "sites");
    // An ERROR event in the stream that stands.
    assert_eq!(ground.proxy.upset(&watches, Upset::Expire), 1);
    ground.works("event").await;
    // The status of the request that goes on.
    // As often as it is asked for: only a fresh list helps.
    let status = ground.proxy.fault(watches.clone().not_asking("sendInitialEvents"), Act::status(410), Times::Always);
    ground.proxy.upset(&watches, Upset::Break);
    ground.works("status").await;
    assert!(ground.proxy.hits(status) >= 1);
    ground.proxy.lift(status);
    // A list in pages (the server knows no streaming ones) whose continuation expires.
    ground.proxy.fault(watches.clone().asking("sendInitialEvents"), Act::status(422), Times::Always);
    ground.proxy.fault(Match::first_list("sites"), Act::Pages(1), Times::Always);
    let next = Match::on("list", "sites").asking("continue=");
    let page = ground.proxy.fault(next, Act::status(410), Times::Count(2));
    ground.proxy.upset(&watches, Upset::Expire);
    ground.works("page").await;
    assert_eq!(ground.proxy.hits(page), 2);
    // A Site that goes while no watch stands is missed in the list.
    let hold = ground.proxy.fault(Match::on("watch|list", "sites"), Act::status(500), Times::Always);
    ground.proxy.upset(&watches, Upset::Expire);
    eventually("the watch is refused", LIMIT, || async { ground.proxy.hits(hold) >= 1 }).await;
    ground.world.delete_site("page").await;
    ground.proxy.heal();
    eventually("its actor has gone", LIMIT, || async {
        let list = ground.operator.get("/debug/sites").await;
        let all = list["objects"].as_array().unwrap().clone();
        if all.len() == 3 { Ok(()) } else { Err(format!("{all:?}")) }
    })
    .await;
    ground.end().await;
}
