//! LIFE-14: what Redis holds about a Site is deleted when its pod stops running, so that pages show it at once.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Act, FaultProxy, Match, Redis, SOON, Start, Times, World, eventually};

/// The answer to an inline command, such as `:1` for `EXISTS` of a key that is there.
async fn ask(redis: &Redis, command: &str) -> String {
    let url = redis.url();
    let address = url.trim_start_matches("redis://").trim_end_matches('/');
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

async fn set(redis: &Redis, keys: &[String]) {
    for key in keys {
        assert_eq!(ask(redis, &format!("SET {key} cached")).await, "+OK");
    }
}

/// Those of the keys that are still there.
async fn left(redis: &Redis, keys: &[String]) -> Vec<String> {
    let mut left = Vec::new();
    for key in keys {
        if ask(redis, &format!("EXISTS {key}")).await == ":1" {
            left.push(key.clone());
        }
    }
    left
}

fn keys_of(world: &World, id: &str) -> Vec<String> {
    ["summary", "status", "health"].iter().map(|part| format!("sites:{}:site:{id}:{part}", world.namespace)).collect()
}

async fn running(world: &World, id: &str) {
    world.wait_phase(id, "Running").await;
    world.wait_ready(id).await;
    // Its volume label comes later, by another pass; nothing is written for it here.
    eventually("the volume is labelled", SOON, || async { !world.of_site("PersistentVolume", id).await.is_empty() })
        .await;
}

#[tokio::test]
async fn life_14_keys_of_exactly_that_site_are_deleted() {
    let redis = Redis::start().await;
    let mut world = World::new("life-14-keys").await;
    world.with_redis(&redis);
    let _operator = world.start_operator().await;
    world.site("one", json!({})).await;
    world.site("one-more", json!({})).await;
    running(&world, "one").await;
    running(&world, "one-more").await;

    let list = vec![format!("sites:{}:sites", world.namespace)];
    let others = [
        keys_of(&world, "one-more"),
        vec![
            "session:abc".to_owned(),
            "sites:elsewhere:site:one:status".to_owned(),
            "sites:elsewhere:sites".to_owned(),
        ],
    ]
    .concat();
    let ours = [keys_of(&world, "one"), list].concat();
    set(&redis, &[ours.clone(), others.clone()].concat()).await;
    world.show("one", "crash").await;
    world.wait_phase("one", "Pending").await;
    eventually("its keys are gone", SOON, || async {
        let left = left(&redis, &ours).await;
        if left.is_empty() { Ok(()) } else { Err(left.join(" ")) }
    })
    .await;
    assert_eq!(left(&redis, &others).await, others);

    // And again when it comes back.
    set(&redis, &ours).await;
    world.show("one", "ok").await;
    world.wait_phase("one", "Running").await;
    eventually("its keys are gone", SOON, || async { left(&redis, &ours).await.is_empty() }).await;
    assert_eq!(left(&redis, &others).await, others);
    world.end().await;
}

#[tokio::test]
async fn life_14_a_redis_that_is_down_is_said_and_fails_nothing() {
    let mut redis = Redis::start().await;
    let mut world = World::new("life-14-down").await;
    world.with_redis(&redis);
    redis.kill();
    let operator = world.start_operator().await;
    world.site("one", json!({})).await;
    world.wait_ready("one").await;
    world.wait_phase("one", "Running").await;
    world.show("one", "crash").await;
    world.wait_phase("one", "Pending").await;
    eventually("it is said", SOON, || async { operator.logs_with("the cache is down").len() == 1 }).await;

    redis.resume().await;
    let ours = keys_of(&world, "one");
    set(&redis, &ours).await;
    // Connecting again takes the client a moment: whatever comes next clears the keys then.
    eventually("the cache is used again", SOON, || async {
        let outcome = if world.must("Site", "one").await["status"]["phase"] == "Running" { "crash" } else { "ok" };
        world.show("one", outcome).await;
        left(&redis, &ours).await.is_empty()
    })
    .await;
    assert_eq!(operator.logs_with("the cache is down").len(), 1, "once, not for each write");
    operator.stop().await;
    world.end().await;
}

/// The status is written and the operator never hears of it: the pages must not stay as they were.
#[tokio::test]
async fn life_14_a_lost_answer_leaves_no_old_page() {
    let redis = Redis::start().await;
    let mut world = World::new("life-14-lost").await;
    world.with_redis(&redis);
    let proxy = FaultProxy::start(world.lab()).await;
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    let _operator = world.start_operator_with(Start { kubeconfig, ..Start::default() }).await;
    world.site("one", json!({})).await;
    running(&world, "one").await;
    let ours = keys_of(&world, "one");
    set(&redis, &ours).await;
    let lost = proxy.fault(Match::on("patch", "sites").subresource("status"), Act::LoseAnswer, Times::Count(1));
    world.show("one", "crash").await;
    world.wait_phase("one", "Pending").await;
    eventually("its keys are gone", SOON, || async { left(&redis, &ours).await.is_empty() }).await;
    assert_eq!(proxy.hits(lost), 1);
    world.end().await;
}
