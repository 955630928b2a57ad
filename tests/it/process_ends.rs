//! A process that has lost an actor it cannot do without ends, says why once and gives its Lease back, so that a
//! new one starts at once instead of a dead one that looks alive.
//!
//! The operator is this test binary started again: the product's process, reconciler, watches and actors, with a route
//! owner that meets a defect, or a registry that somebody ends.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use serde_json::json;
use sites::engine::{connect, run};
use sites::operator::role;
use sites::operator::routes;
use sites::operator::sites::SiteReconciler;
use sites::operator::sources::feeds;
use sites::operator::volumes::VolumeIndex;
use sites::settings::Settings;
use sites::telemetry::logging::{self, LogOptions};
use xtask::process::tied;

use crate::support::{Operator, SOON, World, eventually};

/// Names the actor that is to end; without it the operator below is no operator.
const ENDS: &str = "SITES_TEST_ENDS";

#[test]
#[ignore = "the operator that the other tests of this file start"]
fn process_ends_operator() {
    let Ok(which) = std::env::var(ENDS) else { return };
    let _ = rustls::crypto::ring::default_provider().install_default();
    logging::init(&LogOptions { json: true, level: "INFO".to_owned(), dependency_level: "INFO".to_owned() }).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    // As the product's `main`.
    std::process::exit(match runtime.block_on(operate(&which)) {
        Ok(()) => 0,
        Err(error) => {
            logging::last_word(&error);
            1
        }
    });
}

async fn operate(which: &str) -> anyhow::Result<()> {
    let settings = Arc::new(Settings::parse(&std::env::var("SITES_TEST_SETTINGS")?, std::iter::empty())?);
    let connected = connect("sites-operator/test", Duration::from_secs(10), 100).await?;
    let namespace = std::env::var("NAMESPACE")?;
    let (routes, ended) = routes::start(Box::new(|key| panic!("a defect: {key} cannot be woken"))).await?;
    let volumes = Arc::new(RwLock::new(VolumeIndex::default()));
    let (stale, _keys) = tokio::sync::mpsc::unbounded_channel();
    let reconciler = Arc::new(SiteReconciler { settings: settings.clone(), volumes: volumes.clone(), routes, stale });
    let feeds = feeds(&connected.cluster, &settings, &namespace, &volumes);
    let options = role::process_options(&settings, namespace);
    let registry_ends = which == "registry";
    run(connected, reconciler, feeds, options, ended, move |engine| {
        let (registry, context) = (engine.registry().clone(), engine.context().clone());
        if registry_ends {
            tokio::spawn(async move {
                while !context.open() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                registry.kill();
            });
        }
    })
    .await?;
    Ok(())
}

async fn start(world: &World, which: &str) -> Operator {
    let mut command = tied(std::env::current_exe().unwrap());
    command
        .args(["process_ends_operator", "--ignored", "--nocapture"])
        .env(ENDS, which)
        .env("SITES_TEST_SETTINGS", world.settings.to_string())
        .env("KUBECONFIG", world.kubeconfig().await)
        .env("NAMESPACE", &world.namespace);
    Operator::run(&format!("{} {which}", world.namespace), command)
}

/// It is over: no success, one line that says why, and the Lease is free.
async fn has_ended_well(world: &World, operator: &Operator, which: &str) {
    let status = operator.wait_end().await;
    assert_eq!(status.code(), Some(1), "{}", operator.log_text());
    let lines = eventually("its last line", SOON, || async {
        let lines = operator.logs_with("the process ends");
        if lines.is_empty() { Err(operator.log_text()) } else { Ok(lines) }
    })
    .await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["level"], "ERROR");
    assert!(operator.logs_with("grace period").is_empty(), "nothing is waited for: {}", operator.log_text());
    let text = lines[0]["message"].as_str().unwrap();
    assert!(text.contains(&format!("the {which} has ended")) && text.contains("started again"), "{text}");
    let lease = world.must("Lease", "sites-operator").await;
    assert!(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().is_empty(), "{lease}");
}

#[tokio::test]
async fn process_ends_when_its_registry_has_ended() {
    let mut world = World::new("ends-registry").await;
    world.settings["operator"]["lease"]["duration"] = "60s".into();
    let operator = start(&world, "registry").await;
    has_ended_well(&world, &operator, "registry").await;
    // Nobody waits for the Lease of 60 s.
    world.site("next", json!({})).await;
    let next = world.start_operator().await;
    world.wait_ready("next").await;
    next.stop().await;
    world.end().await;
}

#[tokio::test]
async fn process_ends_when_its_route_owner_has_ended() {
    let mut world = World::new("ends-routes").await;
    world.settings["operator"]["lease"]["duration"] = "60s".into();
    let operator = start(&world, "route owner").await;
    world.site("first", json!({"name": "same"})).await;
    world.wait_ready("first").await;
    world.site("second", json!({"name": "same"})).await;
    world.wait_condition("second", "RouteConflict", "True").await;
    assert!(operator.ended().is_none(), "{}", operator.log_text());
    // The path is free and the second is to be woken: there the route owner ends.
    world.delete_site("first").await;
    has_ended_well(&world, &operator, "route owner").await;
    let next = world.start_operator().await;
    world.wait_ready("second").await;
    next.stop().await;
    world.end().await;
}
