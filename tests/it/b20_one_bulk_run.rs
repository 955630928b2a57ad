//! B20: the lock of a bulk upgrade neither ends in the middle of a run nor is freed by somebody else, and Redis being
//! down starts nothing.

use serde_json::{Value, json};

use crate::support::runs::{Administrator, UPGRADE, by_name, count};
use crate::support::{LONG, OpenId, Redis, SOON, Start, World, eventually};

/// A lock that ends every 2 s without a renewal; 50 Sites at 8 a second take three times as long.
const SITES: usize = 50;

fn settings() -> Start {
    let bulk = json!({"lock_ttl": "2s", "lease": "2s", "rate": 8, "backlog": 1000, "unavailable_percent": 100});
    Start { settings: json!({"hub": {"bulk": bulk}}), ..Start::default() }
}

async fn sites(world: &World) {
    for number in 0..SITES {
        world.site(&format!("s{number:03}"), json!({"configuration": {"applications": null}})).await;
    }
}

/// The key of a lock.
fn lock(world: &World) -> String {
    format!("sites:{}:lock:sites-bulk-upgrade", world.namespace)
}

#[tokio::test(flavor = "multi_thread")]
async fn b20_a_run_that_is_longer_than_its_lock_is_the_only_one() {
    let mut world = World::new("b20-only").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let _operator = world.start_operator().await;
    sites(&world).await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process_with(openid, settings()).await;
    let other = world.start_hub_process_with(openid, settings()).await;
    let (admin, beside) = (Administrator::of(&hub, openid), Administrator::of(&other, openid));
    let mark = world.lab().audit().unwrap().mark();
    let first = admin.begin(UPGRADE).await;
    assert_eq!(redis.command(&["GET", &lock(&world)]).await.as_ref(), Some(&first), "the lock is the run's");
    for begun in [SITES / 2, SITES * 4 / 5] {
        let begun = u64::try_from(begun).unwrap();
        admin.run_is(&first, "Sites are begun", LONG, |run| SITES as u64 - count(run, &["queued"]) >= begun).await;
        for asked in [&admin, &beside] {
            let told = asked.post(UPGRADE, &Value::Null).await;
            // Still running after the refusal: so it ran when it was refused.
            let run = admin.run(&first).await;
            if run["state"] == "running" {
                assert_eq!(told.status, 409, "{}", told.text());
                assert!(told.text().contains(&first), "{}", told.text());
            }
        }
    }
    let run = admin.ended(&first, LONG).await;
    assert_eq!((&run["state"], count(&run, &["done"])), (&json!("done"), SITES as u64), "{run}");
    assert_eq!(redis.command(&["GET", &lock(&world)]).await, None, "the lock is free at once");
    let writes = by_name(&world.hub_writes(mark).await.accepted());
    assert_eq!((writes.len(), writes.values().max()), (SITES, Some(&1)), "{writes:?}");
    // And now the next may begin; everything is up to date.
    let next = beside.begin(UPGRADE).await;
    let run = beside.ended(&next, LONG).await;
    assert_eq!(count(&run, &["skipped"]), SITES as u64, "{run}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b20_a_run_that_lost_its_lock_sends_no_more() {
    let mut world = World::new("b20-lost").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let _operator = world.start_operator().await;
    sites(&world).await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process_with(openid, settings()).await;
    let admin = Administrator::of(&hub, openid);
    let mark = world.lab().audit().unwrap().mark();
    let run = admin.begin(UPGRADE).await;
    admin.run_is(&run, "some Sites are begun", LONG, |run| count(run, &["working", "done"]) >= 5).await;
    // Somebody else has the lock, for as long as this test wants.
    redis.command(&["SET", &lock(&world), "somebody-else"]).await;
    eventually("the run is left", SOON, || async { !hub.process.logs_with("left to others").is_empty() }).await;
    let written = world.hub_writes(mark).await.accepted().count();
    assert!(written < SITES, "{written}");
    // The Hub looks after the run again and again, and may not have it.
    let looks = hub.process.logs_with("going on").len();
    let told = admin.post(UPGRADE, &Value::Null).await;
    assert_eq!(told.status, 409, "{}", told.text());
    assert_eq!(world.hub_writes(mark).await.accepted().count(), written);
    assert_eq!(hub.process.logs_with("going on").len(), looks);
    assert_eq!(
        redis.command(&["GET", &lock(&world)]).await.as_deref(),
        Some("somebody-else"),
        "it is not ours to free"
    );
    // Free again: the run goes on where it was, and no Site is written twice.
    redis.command(&["DEL", &lock(&world)]).await;
    let run = admin.ended(&run, LONG).await;
    assert_eq!((&run["state"], count(&run, &["done"])), (&json!("done"), SITES as u64), "{run}");
    let writes = by_name(&world.hub_writes(mark).await.accepted());
    assert_eq!((writes.len(), writes.values().max()), (SITES, Some(&1)), "{writes:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b20_without_redis_nothing_is_written_and_everything_else_works() {
    let mut world = World::new("b20-redis").await;
    let mut redis = Redis::start().await;
    world.with_redis(&redis);
    world.site("one", json!({})).await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process_with(openid, settings()).await;
    let admin = Administrator::of(&hub, openid);
    redis.kill();
    let mark = world.lab().audit().unwrap().mark();
    for path in [UPGRADE, "/hub/api/v2/sites/restart/", "/hub/api/v2/health/probe/"] {
        let told = admin.post(path, &Value::Null).await;
        assert_eq!(told.status, 503, "{path}: {}", told.text());
        assert!(told.json()["message"].as_str().unwrap().contains("Redis"), "{}", told.text());
    }
    assert_eq!(world.hub_writes(mark).await.count(), 0);
    for path in ["/hub/healthz", "/hub/readyz", "/hub/api/v2/whoami/", "/hub/api/v2/health/"] {
        let told = admin.get(path).await;
        assert_eq!(told.status, 200, "{path}: {}", told.text());
    }
    assert!(hub.process.ended().is_none());
    redis.resume().await;
    eventually("a run begins when Redis is back", SOON, || async {
        let told = admin.post(UPGRADE, &Value::Null).await;
        if told.status == 202 { Ok(()) } else { Err(told.text()) }
    })
    .await;
    world.end().await;
}
