//! B25: while a first list is delayed, refused or half read, nothing is taken for gone: no write, no delete, not ready.

use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::support::api::{condition, name_of};
use crate::support::audit::Mark;
use crate::support::{
    Act, Audit, Calls, FaultProxy, LONG, Lab, Match, Operator, SOON, Start, Times, Upset, World, eventually,
};

/// Sites in all, and how many of them run (the others are archived, which is a healthy state too).
const SITES: usize = 500;
const RUNNING: usize = 30;

fn id(number: usize) -> String {
    format!("s{number}")
}

/// What a restart must not touch: version of each StatefulSet, uid of each pod.
async fn picture(world: &World) -> BTreeMap<String, Value> {
    let mut picture = BTreeMap::new();
    for (kind, field) in [("StatefulSet", "generation"), ("Pod", "uid")] {
        for object in world.api.list(kind, &world.namespace, "").await {
            picture.insert(format!("{kind}/{}", name_of(&object)), object["metadata"][field].clone());
        }
    }
    picture
}

async fn create_all(world: &World) {
    let operator = world.start_operator_with(Start { settings: quick(), ..Start::default() }).await;
    let sites = (0..SITES)
        .map(|number| world.site_object(&id(number), &json!({"configuration": {"enabled": number < RUNNING}})));
    futures::future::join_all(sites.map(|site| async move {
        world.api.create(&world.namespace, &site).await.expect("a Site");
    }))
    .await;
    eventually("every Site is healthy and its volume labelled", LONG, || async {
        let sites = world.api.list("Site", &world.namespace, "").await;
        let healthy = sites.iter().filter(|site| {
            let ready = condition(site, "Ready").is_some_and(|ready| ready["status"] == "True");
            ready && matches!(site["status"]["phase"].as_str(), Some("Running" | "Disabled"))
        });
        let labelled = world.api.list("PersistentVolume", "", "sites.ecmwf.int/id").await;
        let ours = labelled.iter().filter(|volume| volume["spec"]["claimRef"]["namespace"] == world.namespace.as_str());
        let (healthy, labelled) = (healthy.count(), ours.count());
        if healthy == SITES && labelled == SITES { Ok(()) } else { Err(format!("{healthy}, {labelled} labelled")) }
    })
    .await;
    operator.stop().await;
}

fn quick() -> Value {
    json!({"operator": {"worker_limit": 32}})
}

/// One restart through a proxy.
struct Restart<'a> {
    world: &'a World,
    audit: &'a Audit,
    proxy: FaultProxy,
    mark: Mark,
}

impl<'a> Restart<'a> {
    async fn prepare(world: &'a World, audit: &'a Audit) -> Self {
        let proxy = FaultProxy::start(world.lab()).await;
        Self { world, audit, proxy, mark: audit.mark() }
    }

    async fn start(&self) -> Operator {
        let kubeconfig = Some(self.proxy.kubeconfig(self.world).await);
        let operator =
            self.world.start_operator_with(Start { kubeconfig, do_not_wait: true, ..Start::default() }).await;
        eventually("it is alive", SOON, || async { operator.request("/healthz").await.map(|(code, _)| code == 200) })
            .await;
        operator
    }

    fn writes(&self) -> Calls {
        self.audit
            .calls(self.mark)
            .by_user(&self.world.operator_user())
            .writes()
            .filter(|call| call.resource != "leases")
    }

    /// Holds the clock at the moment when everything but one list has come.
    async fn is_patient(&self, operator: &Operator, missing: &str) {
        eventually("every other first list has been answered", SOON, || async {
            let kinds = ["sites", "pods", "secrets", "configmaps", "services", "statefulsets", "ingresses"];
            let waits: Vec<_> = kinds
                .into_iter()
                .filter(|kind| *kind != missing)
                .filter(|kind| self.proxy.seen("watch|list", kind).iter().all(|one| one.code != Some(200)))
                .collect();
            if waits.is_empty() { Ok(()) } else { Err(format!("{waits:?}")) }
        })
        .await;
        eventually("it leads", SOON, || async { operator.metric("leader", &[]).await > 0.5 }).await;
        assert_eq!(operator.request("/readyz").await.unwrap().0, 503, "not ready");
        assert_eq!(operator.request("/healthz").await.unwrap().0, 200, "and alive");
        let writes = self.writes();
        assert_eq!(writes.count(), 0, "before the first complete list:\n{}", writes.describe());
    }

    /// The operator becomes ready, an edit is applied, and nothing else was written.
    async fn ends_quietly(self, operator: Operator, number: usize, before: &BTreeMap<String, Value>) {
        operator.wait_ready().await;
        // An archived one: nothing of it goes on after its status is written.
        let edited = id(SITES - number);
        self.world.edit_site(&edited, json!({"spec": {"owner": format!("{edited}@example.test")}})).await;
        self.world.wait_ready(&edited).await;
        operator.stop().await;
        let foreign = self.writes().filter(|call| {
            // `<id>`, `<id>-files`, `<space>-<id>-<hash>`.
            let ours = call.name.split('-').any(|part| part == edited);
            // Its volume is labelled with the new owner.
            !(ours || call.resource == "persistentvolumes" && call.verb == "patch")
        });
        assert_eq!(foreign.count(), 0, "{}", foreign.describe());
        let mut after = picture(self.world).await;
        let mut before = before.clone();
        for all in [&mut before, &mut after] {
            all.retain(|name, _| *name != format!("StatefulSet/{edited}") && *name != format!("Pod/{edited}-0"));
        }
        assert!(before == after, "StatefulSets and pods of the other Sites are as they were");
    }
}

/// Changes a Site's Service and waits until the operator knows the new version.
async fn sees_service(world: &World, operator: &Operator, id: &str, mark: &str) {
    let patch = json!({"metadata": {"annotations": {"example.test/mark": mark}}});
    let service = world.api.merge("Service", &world.namespace, id, "", &patch).await.expect("a Service");
    eventually("the operator sees the Service", SOON, || async {
        let told = operator.get(&format!("/debug/sites/{id}")).await;
        let child = &told["knows"]["children"][format!("Service/{id}")];
        if child["version"] == service["metadata"]["resourceVersion"] { Ok(()) } else { Err(child.to_string()) }
    })
    .await;
}

/// With nothing wrong, a restart with all these Sites is free: no write and not one read of a single object (LIFE-08).
async fn restarts_for_nothing(world: &World, audit: &Audit) {
    let (before, mark) = (picture(world).await, audit.mark());
    let operator = world.start_operator_with(Start { settings: quick(), ..Start::default() }).await;
    for number in 0..SITES {
        world.settled(&operator, &id(number)).await;
    }
    world.assert_costs_nothing(mark, &format!("a start with {SITES} Sites")).await;
    operator.stop().await;
    assert!(before == picture(world).await, "StatefulSets and pods are as they were");
}

#[tokio::test]
async fn b25_no_first_list_that_is_late_refused_or_in_pages_is_read_as_everything_gone() {
    let Some(audit) = Lab::get().await.audit_or_skip("b25_a_cold_cache") else { return };
    let world = World::new("b25-cold").await;
    create_all(&world).await;
    restarts_for_nothing(&world, &audit).await;

    // The Sites come late.
    let before = picture(&world).await;
    assert!(before.len() >= SITES + RUNNING);
    let restart = Restart::prepare(&world, &audit).await;
    let held = restart.proxy.fault(Match::first_list("sites"), Act::Hold, Times::Always);
    let operator = restart.start().await;
    restart.is_patient(&operator, "sites").await;
    restart.proxy.lift(held);
    restart.ends_quietly(operator, 1, &before).await;

    // The pods come late, and meanwhile another watch lists twice: its second list does not stand for theirs.
    let before = picture(&world).await;
    let restart = Restart::prepare(&world, &audit).await;
    let held = restart.proxy.fault(Match::first_list("pods"), Act::Hold, Times::Always);
    let operator = restart.start().await;
    restart.is_patient(&operator, "pods").await;
    assert_eq!(restart.proxy.upset(&Match::on("watch", "services"), Upset::Expire), 1);
    eventually("the Services are listed again", SOON, || async {
        let lists = restart.proxy.seen("watch", "services");
        lists.iter().filter(|one| one.asked.query.contains("sendInitialEvents=true") && one.code == Some(200)).count()
            == 2
    })
    .await;
    eventually("and watched again", SOON, || async { operator.logs_with("the watch works again").len() == 1 }).await;
    // A change that is seen is perhaps part of the list; the one after it comes after its end.
    for mark in ["once", "twice"] {
        sees_service(&world, &operator, &id(SITES - 2), mark).await;
    }
    restart.is_patient(&operator, "pods").await;
    restart.proxy.lift(held);
    restart.ends_quietly(operator, 2, &before).await;

    // Both are refused at first.
    let before = picture(&world).await;
    let restart = Restart::prepare(&world, &audit).await;
    for kind in ["sites", "pods"] {
        restart.proxy.fault(Match::first_list(kind), Act::status(503), Times::Count(2));
    }
    let operator = restart.start().await;
    eventually("both are refused", SOON, || async {
        let refused = |kind| restart.proxy.seen("watch", kind).iter().any(|one| one.fault.is_some());
        refused("sites") && refused("pods")
    })
    .await;
    assert_eq!(restart.writes().count(), 0, "{}", restart.writes().describe());
    restart.ends_quietly(operator, 3, &before).await;

    // Both come in pages, and the third page is late.
    let before = picture(&world).await;
    let restart = Restart::prepare(&world, &audit).await;
    for kind in ["sites", "pods"] {
        restart.proxy.fault(Match::on("watch", kind).asking("sendInitialEvents"), Act::status(422), Times::Always);
        let next = Match::on("list", kind).asking("continue=");
        restart.proxy.fault(next.clone(), Act::Pages(10), Times::Count(1));
        restart.proxy.fault(next, Act::Hold, Times::Always);
        restart.proxy.fault(Match::first_list(kind), Act::Pages(10), Times::Always);
    }
    let operator = restart.start().await;
    eventually("the third pages are held", SOON, || async {
        let held = |kind| restart.proxy.seen("list", kind).iter().any(|one| matches!(one.fault, Some(Act::Hold)));
        held("sites") && held("pods")
    })
    .await;
    restart.is_patient(&operator, "").await;
    restart.proxy.heal();
    restart.ends_quietly(operator, 4, &before).await;
    world.end().await;
}
