//! The comparator of pod events: a process that watches the same pods and patches the Site's status at once. It keeps
//! nothing but the last phase of each pod, and judges nothing.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::Api;
use kube::runtime::watcher::{self, Config, Event};
use serde_json::json;
use sites::domain::labels;
use tokio::sync::Semaphore;
use xtask::process::{Process, tied};

use crate::ground::{Ground, NAMESPACE, pin};
use crate::population::SITES;
use crate::server::{Prepared, Server};

/// Patches in flight: as many as the operator's status lane has places.
const IN_FLIGHT: usize = 16;
/// What the process says once its list is complete.
const READY: &str = "echo is ready";

/// Runs until killed, as `KUBECONFIG` says.
pub async fn run() -> Result<()> {
    let path = std::env::var_os("KUBECONFIG").context("KUBECONFIG is not set")?;
    let server = Server::connect(path.as_ref(), "sites-loadtest-echo").await?;
    let pods = Api::<Pod>::namespaced(server.client().clone(), NAMESPACE);
    let config = Config::default().streaming_lists().labels(labels::ID);
    let mut events = std::pin::pin!(watcher::watcher(pods, config));
    let places = Arc::new(Semaphore::new(IN_FLIGHT));
    let mut phases: HashMap<String, String> = HashMap::new();
    while let Some(event) = events.next().await {
        let (pod, listed) = match event? {
            Event::Apply(pod) => (pod, false),
            Event::InitApply(pod) => (pod, true),
            Event::InitDone => {
                println!("{READY}");
                continue;
            }
            Event::Init | Event::Delete(_) => continue,
        };
        let Some(site) = pod.labels().get(labels::ID).cloned() else { continue };
        let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
        if phases.insert(site.clone(), phase.clone()).as_ref() == Some(&phase) || listed {
            continue;
        }
        let body = json!({"status": {"phase": phase, "all_steps_started": phase == "Running"}});
        let request = Prepared::merge(format!("{SITES}/{site}/status"), &body);
        let place = places.clone().acquire_owned().await?;
        let server = server.clone();
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = server.send(&request).await {
                eprintln!("echo: {error:#}");
            }
        });
    }
    Ok(())
}

/// Starts the process and waits until its list is complete.
pub async fn start(ground: &Ground) -> Result<Process> {
    let mut command = tied(std::env::current_exe()?);
    command.arg("echo").env("KUBECONFIG", ground.operator_kubeconfig());
    let mut process = Process::start("echo", command, &ground.dir().join("echo.log"))?;
    if ground.standing.pinned {
        pin(process.id(), "1")?;
    }
    while !process.last_lines(5).contains(READY) {
        anyhow::ensure!(process.ended()?.is_none(), "the echo loop ended: {}", process.last_lines(5));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    Ok(process)
}
