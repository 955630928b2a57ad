//! What a run does to one Site: an upgrade writes it, a restart deletes its pods. Doing it twice changes nothing.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::judge;
use super::plan::{idle, result};
use super::work::Parts;
use crate::cache::runs::{HeldRun, RunKind, RunRecord, SiteResult, SiteState};
use crate::cluster::{CallError, Precondition};
use crate::domain::labels;
use crate::domain::pod_health::PodFact;
use crate::domain::site::Site;
use crate::domain::upgrade::upgraded;

/// Attempts of a write that somebody else's overtook, or that the server had no time for.
const ATTEMPTS: u32 = 5;
/// Wait between two attempts, unless the server says how long.
const PAUSE: Duration = Duration::from_secs(1);

/// Writes a Site for an upgrade. The Site is read first: what stands there now is upgraded, and one that carries the
/// run already (of a worker that died before it could say so) is not written again.
pub async fn upgrade(parts: &Parts, run: &HeldRun, id: &str) -> SiteResult {
    let record = &run.record;
    for attempt in 1.. {
        if !run.held() {
            break;
        }
        match write(parts, record, id).await {
            Ok(written) => return written,
            Err(error) if attempt < ATTEMPTS && again(&error) => {
                tokio::time::sleep(error.retry_after().unwrap_or(PAUSE / ATTEMPTS * attempt)).await;
            }
            Err(error) => return result(SiteState::Failed, Some(told(&error)), Timestamp::now()),
        }
    }
    // Whoever goes on with the run begins with this Site.
    result(SiteState::Queued, None, Timestamp::now())
}

async fn write(parts: &Parts, record: &RunRecord, id: &str) -> Result<SiteResult, CallError> {
    let ns = Some(&*parts.namespace);
    let skipped = |reason: &str| Ok(result(SiteState::Skipped, Some(reason.to_owned()), Timestamp::now()));
    let working = |ran| Ok(SiteResult { ran, ..result(SiteState::Working, None, Timestamp::now()) });
    let Some(site) = parts.cluster.read::<Site>(ns, id).await? else {
        return skipped("it was deleted meanwhile");
    };
    let request = record.id.to_string();
    let annotations = site.metadata.annotations.as_ref();
    if annotations.and_then(|all| all.get(labels::UPGRADE_REQUEST)) == Some(&request) {
        // Whether its pods ran before is not known any more.
        return working(true);
    }
    if let Some(reason) = idle(&site, record.kind, record.force, &parts.images) {
        return skipped(reason);
    }
    parts.cluster.merge_patch::<Site>(ns, id, &patch(&site, record, parts)).await?;
    working(judge::runs(&site))
}

/// On the version that was read: an edit between is not undone.
fn patch(site: &Site, record: &RunRecord, parts: &Parts) -> Value {
    let request = record.id.to_string();
    let span = uuid::Uuid::new_v4().simple().to_string();
    json!({
        "metadata": {
            "resourceVersion": site.metadata.resource_version,
            "annotations": {
                labels::UPGRADE_REQUEST: request,
                labels::WORK_CLASS: format!("bulk/{request}"),
                // One trace for the run, one span for each Site.
                labels::TRACEPARENT: format!("00-{}-{}-01", record.id.simple(), &span[..16]),
            },
        },
        "spec": {"configuration": {"applications": upgraded(&site.spec, &parts.images)}},
    })
}

/// The pods of a Site that a restart deletes: made before the run began. A time of Kubernetes has no fraction, so a
/// pod of the same second counts as younger.
pub async fn old_pods(parts: &Parts, record: &RunRecord, id: &str) -> Result<Vec<Pod>, CallError> {
    let mut pods = pods(parts, id).await?;
    pods.retain(|pod| {
        let created = pod.metadata.creation_timestamp.as_ref().map_or(i64::MAX, |time| time.0.as_second());
        pod.metadata.deletion_timestamp.is_none() && created < record.started_at.as_second()
    });
    Ok(pods)
}

async fn pods(parts: &Parts, id: &str) -> Result<Vec<Pod>, CallError> {
    let selector = format!("{}={}", labels::ID, labels::label_value(id));
    let mut pods = parts.cluster.list::<Pod>(Some(&*parts.namespace), &selector).await?;
    let bound =
        |pod: &Pod| pod.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(labels::OPERATOR_BOUND));
    pods.retain(bound);
    Ok(pods)
}

/// Which pods a restart of a Site is about. Nothing is deleted yet: the uids are written down first.
pub async fn restart(parts: &Parts, run: &HeldRun, id: &str) -> SiteResult {
    let now = Timestamp::now;
    match old_pods(parts, &run.record, id).await {
        Ok(pods) if pods.is_empty() => {
            result(SiteState::Skipped, Some("it has no pod from before the run".to_owned()), now())
        }
        Ok(pods) => {
            let uids = pods.into_iter().filter_map(|pod| pod.metadata.uid).collect();
            SiteResult { pods: uids, ..result(SiteState::Working, None, now()) }
        }
        Err(error) => result(SiteState::Failed, Some(told(&error)), now()),
    }
}

/// Whether the pods of a Site that was upgraded run again.
pub async fn runs_again(parts: &Parts, site: &Site) -> Result<bool, CallError> {
    let pods = pods(parts, &site.spec.id).await?;
    Ok(judge::runs_again(site, &pods.iter().map(PodFact::from).collect::<Vec<_>>()))
}

/// Deletes what is left of a Site's old pods, by uid, and says how the restart ended.
pub async fn restarted(
    parts: &Parts,
    run: &HeldRun,
    id: &str,
    old: &[String],
) -> Result<Option<(SiteState, Option<String>)>, CallError> {
    let pods = pods(parts, id).await?;
    let mut left = false;
    for pod in pods.iter().filter(|pod| pod.metadata.uid.as_ref().is_some_and(|uid| old.contains(uid))) {
        left = true;
        if pod.metadata.deletion_timestamp.is_some() || !run.held() {
            continue;
        }
        let guard = Precondition { uid: pod.metadata.uid.clone(), resource_version: None };
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        match parts.cluster.delete::<Pod>(Some(&*parts.namespace), name, &guard, None).await {
            // A namesake has taken its place.
            Ok(_) | Err(CallError::Conflict { .. }) => {}
            Err(error) if again(&error) => return Ok(None),
            Err(error) => return Ok(Some((SiteState::Failed, Some(told(&error))))),
        }
    }
    let ready = |pod: &Pod| PodFact::from(pod).running_and_ready();
    Ok((!left && !pods.is_empty() && pods.iter().all(ready)).then_some((SiteState::Done, None)))
}

fn again(error: &CallError) -> bool {
    error.is_transient() || matches!(error, CallError::Conflict { .. })
}

/// What an administrator may read of a failed call: values never stand in it.
fn told(error: &CallError) -> String {
    error.to_string()
}

/// What is done first for a Site.
pub async fn first(parts: &Parts, run: &HeldRun, id: &str) -> SiteResult {
    match run.record.kind {
        RunKind::Upgrade => upgrade(parts, run, id).await,
        RunKind::Restart => restart(parts, run, id).await,
    }
}
