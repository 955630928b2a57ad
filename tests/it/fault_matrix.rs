//! The fault matrix: people who edit, delete and meddle, pods that fail, a network that breaks and replicas that are
//! killed and paused, all at once. When that is over, everything must be as if nothing had happened.
//!
//! The plan is a pure function of `SITES_MATRIX_SEED` (20261), which is printed; 0 draws one.
//! `SITES_MATRIX_SECONDS` is how long the chaos lasts (120).

mod chaos;
mod history;
mod leaders;
mod objects;
mod oracle;
mod plan;
mod wrong_worlds;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sites::settings::Settings;

use self::chaos::{Journal, Replica};
use self::history::History;
use self::plan::{Plan, SITES, id_of};
use crate::support::api::{kind_of, name_of};
use crate::support::audit::Mark;
use crate::support::proxy::Passed;
use crate::support::world::CASCADE;
use crate::support::{Act, FaultProxy, Lab, Match, SOON, Start, Times, World, eventually};

/// How long healing may take: a lost Lease, a silent watch and a held backoff one after the other, on a busy machine.
const HEALED: Duration = Duration::from_secs(150);

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, it is {text:?}")))
}

fn settings(world: &mut World) {
    let operator = json!({
        "lease": {"duration": "2s", "renew_period": "500ms"},
        // So that what was given up and what a silent watch hides comes to light before the test ends.
        "resync_period": "10s",
        "watch_timeout": "5s",
        "call_timeout": "3s",
        "grace_period": "3s",
        "max_backoff": "3s",
    });
    crate::support::api::merge_into(&mut world.settings["operator"], &operator);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_matrix_everything_is_right_when_the_faults_are_over() {
    let seed = match number("SITES_MATRIX_SEED") {
        None => 20_261,
        Some(0) => rand::random::<u32>().into(),
        Some(seed) => seed,
    };
    let length = Duration::from_secs(number("SITES_MATRIX_SECONDS").unwrap_or(120));
    let replay = Replay { seed, seconds: length.as_secs() };
    replay.say();
    let plan = Plan::of(seed, length);

    let mut world = World::on(Lab::get().await, "matrix").await;
    settings(&mut world);
    let mark = world.lab().audit().map(|audit| audit.mark());
    let history = History::start(&world);
    let journal = Journal::begin();
    for deed in &plan.born {
        chaos::act(&world, deed).await.expect("a new Site");
    }
    let proxies = [Arc::new(FaultProxy::start(world.lab()).await), Arc::new(FaultProxy::start(world.lab()).await)];
    let mut replicas = [Replica::start(&world, 0, &proxies[0]).await, Replica::start(&world, 1, &proxies[1]).await];
    chaos::run(&world, &plan, &mut replicas, &proxies, &journal).await;

    everything_is_right(&world).await;
    no_actor_is_left(&world, &replicas).await;
    let rolls = history.judge().unwrap_or_else(|reason| panic!("{reason}"));
    eprintln!("fault matrix: {} deeds, {} faults, {rolls} rolls", plan.deeds.len(), plan.faults.len());
    if let Some(mark) = mark {
        only_the_leader_wrote(&world, mark, &proxies).await;
    }
    for replica in replicas {
        replica.operator.expect("a replica that runs").stop().await;
    }
    world.end().await;
}

/// A new leader whose watch of Sites is silent sees objects that its predecessor wrote for a Site it does not know yet.
#[tokio::test]
async fn fault_matrix_a_leader_with_an_old_copy_of_a_site_rolls_nothing_back() {
    let mut world = World::on(Lab::get().await, "matrix-stale").await;
    settings(&mut world);
    let history = History::start(&world);
    let first = world.start_operator().await;
    for id in ["edited", "other"] {
        world.site(id, json!({})).await;
        world.running(&first, id).await;
    }
    let proxy = FaultProxy::start(world.lab()).await;
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    let second = world.start_operator_with(Start { kubeconfig, ..Start::default() }).await;
    let silent = proxy.fault(Match::on("watch", "sites"), Act::Silence, Times::Always);
    eventually("its watch is silent", SOON, || async { proxy.hits(silent) > 0 }).await;
    world.edit_site("edited", json!({"spec": {"configuration": {"share": {"view_users": ["bo"]}}}})).await;
    world.wait_ready("edited").await;
    first.kill();
    // It leads, and has looked at the Sites in the order of their names.
    assert!(world.api.delete("Service", &world.namespace, "other").await);
    eventually("the new leader works", SOON, || async { world.get("Service", "other").await.is_some() }).await;
    history.judge().unwrap_or_else(|reason| panic!("{reason}"));
    proxy.heal();
    everything_is_right(&world).await;
    history.judge().unwrap_or_else(|reason| panic!("{reason}"));
    second.stop().await;
    world.end().await;
}

#[test]
fn fault_matrix_the_plan_is_a_function_of_the_seed() {
    let told = |seed| {
        let Plan { born, deeds, upsets, faults } = Plan::of(seed, Duration::from_secs(30));
        format!("{born:?} {deeds:?} {upsets:?} {faults:?}")
    };
    assert_eq!(told(7), told(7));
    assert_ne!(told(7), told(8));
}

/// Every Site's objects and status are what they should be; nothing is left of the others.
async fn everything_is_right(world: &World) {
    let settings = Settings::parse(&world.settings.to_string(), std::iter::empty()).expect("valid settings");
    eventually("every Site is as its spec says", HEALED, || async {
        for site in world.api.list("Site", &world.namespace, "").await {
            objects::judge(world, &settings, &site).await?;
        }
        Ok::<_, String>(())
    })
    .await;
    for id in (0..SITES).map(id_of) {
        if world.get("Site", &id).await.is_some() {
            continue;
        }
        eventually(&format!("nothing is left of {id}"), CASCADE, || async {
            nothing_left(world.objects_of(&id).await)
        })
        .await;
    }
}

/// Both replicas know exactly the Sites that exist.
async fn no_actor_is_left(world: &World, replicas: &[Replica; 2]) {
    let sites = world.api.list("Site", &world.namespace, "").await;
    let wanted: BTreeSet<String> = sites.iter().map(|site| format!("{}/{}", world.namespace, name_of(site))).collect();
    for replica in replicas {
        let operator = replica.operator.as_ref().expect("a replica that runs");
        eventually(&format!("replica {} knows the Sites that exist", replica.number), HEALED, || async {
            let (_, body) = operator.request("/debug/sites").await?;
            let told: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
            knows_exactly(&told, &wanted)
        })
        .await;
    }
}

/// Whether what carries the label of a Site that is gone is nothing but its volume.
fn nothing_left(mut objects: Vec<Value>) -> Result<(), String> {
    objects.retain(|object| kind_of(object) != "PersistentVolume");
    if objects.is_empty() { Ok(()) } else { Err(format!("{objects:#?}")) }
}

/// Whether the actors that `/debug/sites` tells of are those of the Sites that exist.
fn knows_exactly(told: &Value, wanted: &BTreeSet<String>) -> Result<(), String> {
    let lines = told["objects"].as_array().ok_or_else(|| format!("no list of objects: {told}"))?;
    let known: BTreeSet<String> = lines.iter().filter_map(|line| line["key"].as_str()).map(str::to_owned).collect();
    if known == *wanted { Ok(()) } else { Err(format!("{told}, and there are {wanted:?}")) }
}

async fn only_the_leader_wrote(world: &World, mark: Mark, proxies: &[Arc<FaultProxy>; 2]) {
    world.audit_is_complete().await;
    let passed: Vec<Passed> = proxies.iter().flat_map(|proxy| proxy.log()).collect();
    let verdict = leaders::judge(world.calls(mark), passed).unwrap_or_else(|reason| panic!("{reason}"));
    eprintln!("fault matrix: {verdict:?}");
    assert!(verdict.writes > 0, "the log has the writes");
}

/// Says how to do it again: at once, and at the end of a failure, where it is looked for.
struct Replay {
    seed: u64,
    seconds: u64,
}

impl Replay {
    fn say(&self) {
        let Self { seed, seconds } = self;
        eprintln!(
            "fault matrix: SITES_MATRIX_SEED={seed} SITES_MATRIX_SECONDS={seconds} cargo test --workspace --test it fault_matrix"
        );
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.say();
        }
    }
}
