//! The pods of a Site, and the end of their logs.
//!
//! Owns what of a pod is shown: names, phases and states, never its environment or annotations, which may hold secrets.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};
use serde::Serialize;
use utoipa::ToSchema;

use super::super::error::ApiError;
use super::super::state::Hub;
use crate::cluster::CallError;
use crate::domain::labels;
use crate::domain::site::Site;

/// Largest part of a log that is shown, in bytes.
pub const MOST_BYTES: usize = 1 << 20;

/// A pod.
#[derive(Serialize, ToSchema, Clone, Debug, PartialEq, Eq)]
pub struct PodView {
    /// Name of the pod.
    pub name: String,
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Option<String>,
    /// Whether it serves.
    pub ready: bool,
    /// Whether it is going away.
    pub terminating: bool,
    /// When it was created, RFC 3339.
    pub created: Option<String>,
    /// Why the pod as a whole is where it is, such as `Evicted` or `Unschedulable`.
    pub problems: Vec<String>,
    /// Init containers first.
    pub containers: Vec<ContainerView>,
}

/// A container of a pod.
#[derive(Serialize, ToSchema, Clone, Debug, PartialEq, Eq)]
pub struct ContainerView {
    /// Name of the container.
    pub name: String,
    /// Whether it runs before the others.
    pub init: bool,
    /// `waiting`, `running`, `terminated` or `unknown`.
    pub state: &'static str,
    /// Whether it serves.
    pub ready: bool,
    /// How often it was started again.
    pub restarts: i32,
    /// Why it is in this state, such as `CrashLoopBackOff`.
    pub reason: Option<String>,
    /// Of a container that has ended.
    pub exit_code: Option<i32>,
}

/// The pods of a Site, by name.
pub async fn list(hub: &Hub, site: &Site) -> Result<Vec<PodView>, ApiError> {
    let mut pods: Vec<PodView> = of(hub, site).await?.iter().map(shown).collect();
    pods.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(pods)
}

/// The end of the log of one container of the Site's newest pod, or of `pod`. Text that is no UTF-8 is replaced.
pub async fn log(
    hub: &Hub,
    site: &Site,
    pod: Option<&str>,
    container: Option<&str>,
    lines: usize,
    previous: bool,
) -> Result<String, ApiError> {
    let mut pods = of(hub, site).await?;
    pods.sort_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0));
    let wanted = |found: &&Pod| pod.is_none_or(|name| found.metadata.name.as_deref() == Some(name));
    let found = pods.iter().rev().find(wanted).ok_or(ApiError::NotFound("the pod"))?;
    let names = containers(found);
    let name = match container {
        Some(name) if names.iter().any(|known| known == name) => name,
        None if names.len() == 1 => names[0].as_str(),
        _ => return Err(ApiError::field("container", format!("must be one of {}", names.join(", ")))),
    };
    let pod = found.metadata.name.as_deref().unwrap_or_default();
    let mut lines = lines;
    loop {
        match hub.cluster.log(&hub.namespace, pod, name, lines, MOST_BYTES, previous).await {
            // The node cuts behind so many bytes, and would leave out the very end: then fewer lines do.
            Ok(Some(text)) if text.len() >= MOST_BYTES && lines > 1 => lines /= 2,
            Ok(Some(text)) => return Ok(String::from_utf8_lossy(&text).into_owned()),
            Ok(None) => return Err(ApiError::NotFound("the pod")),
            // The API server says so of a container that has not begun, or has no run before this one.
            Err(CallError::Invalid { .. } | CallError::Other { code: 400, .. }) => {
                return Err(ApiError::NotFound("a log of that container"));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

async fn of(hub: &Hub, site: &Site) -> Result<Vec<Pod>, ApiError> {
    let selector =
        format!("{}={},{}={}", labels::APP, labels::APP_VALUE, labels::ID, labels::label_value(&site.spec.id));
    Ok(hub.cluster.list(Some(&hub.namespace), &selector).await?)
}

fn containers(pod: &Pod) -> Vec<String> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let init = spec.init_containers.iter().flatten();
    spec.containers.iter().chain(init).map(|container| container.name.clone()).collect()
}

fn shown(pod: &Pod) -> PodView {
    let status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let unscheduled = conditions.iter().filter(|one| one.type_ == "PodScheduled" && one.status == "False");
    let reasons = status.reason.into_iter().chain(unscheduled.filter_map(|one| one.reason.clone()));
    let init = status.init_container_statuses.iter().flatten().map(|status| container(status, true));
    let others = status.container_statuses.iter().flatten().map(|status| container(status, false));
    PodView {
        name: pod.metadata.name.clone().unwrap_or_default(),
        phase: status.phase,
        ready: conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True"),
        terminating: pod.metadata.deletion_timestamp.is_some(),
        created: pod.metadata.creation_timestamp.as_ref().map(|time| time.0.to_string()),
        problems: reasons.collect(),
        containers: init.chain(others).collect(),
    }
}

fn container(status: &ContainerStatus, init: bool) -> ContainerView {
    let state = status.state.as_ref();
    let (word, reason, exit_code) = match state {
        Some(ContainerState { running: Some(_), .. }) => ("running", None, None),
        Some(ContainerState { waiting: Some(waiting), .. }) => ("waiting", waiting.reason.clone(), None),
        Some(ContainerState { terminated: Some(ended), .. }) => {
            ("terminated", ended.reason.clone(), Some(ended.exit_code))
        }
        _ => ("unknown", None, None),
    };
    ContainerView {
        name: status.name.clone(),
        init,
        state: word,
        ready: status.ready,
        restarts: status.restart_count,
        reason,
        exit_code,
    }
}
