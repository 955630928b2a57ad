//! What can be done to a Site beside editing it: toggle, upgrade, restart, retention.

use jiff::ToSpan;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::super::caller::Caller;
use super::super::error::ApiError;
use super::super::forms::site::Edit;
use super::super::state::Hub;
use super::super::trace::Trace;
use super::write::{patched, today};
use crate::cluster::Precondition;
use crate::domain::labels;
use crate::domain::site::Site;
use crate::domain::upgrade::upgraded;

/// Switches a Site on or off: to `enabled`, or to what it is not.
pub async fn toggle(
    hub: &Hub,
    caller: &Caller,
    site: Site,
    enabled: Option<bool>,
    trace: &Trace,
) -> Result<Edit, ApiError> {
    let enabled = enabled.unwrap_or(!site.enabled());
    let stamp = stamp(caller);
    patched(hub, caller, site, None, trace, |site| {
        let mut spec = stamp.clone();
        spec["configuration"]["enabled"] = json!(enabled);
        Ok(change(site, if site.enabled() == enabled { Value::Null } else { json!({ "spec": spec }) }))
    })
    .await
}

/// Moves the retention date to one year from today.
pub async fn extend(hub: &Hub, caller: &Caller, site: Site, trace: &Trace) -> Result<Edit, ApiError> {
    let day = today().checked_add(1.year()).map_err(|_| ApiError::Upstream("the calendar has ended".to_owned()))?;
    let stamp = stamp(caller);
    patched(hub, caller, site, None, trace, |site| {
        let mut spec = stamp.clone();
        spec["configuration"]["retention_date"] = json!(day.to_string());
        Ok(change(site, json!({ "spec": spec })))
    })
    .await
}

/// Rewrites the platform's images to the present version; custom ones stay. `force` also asks the operator for a full
/// pass by a fresh upgrade request.
pub async fn upgrade(hub: &Hub, caller: &Caller, site: Site, force: bool, trace: &Trace) -> Result<Edit, ApiError> {
    let request = force.then(|| uuid::Uuid::new_v4().to_string());
    let stamp = stamp(caller);
    patched(hub, caller, site, None, trace, |site| {
        let applications = upgraded(&site.spec, &hub.images);
        let mut patch = Value::Null;
        if applications != site.spec.configuration.applications {
            patch["spec"] = stamp.clone();
            patch["spec"]["configuration"]["applications"] = json!(applications);
        }
        if let Some(request) = &request {
            patch["metadata"]["annotations"][labels::UPGRADE_REQUEST] = json!(request);
        }
        Ok(change(site, patch))
    })
    .await
}

/// Deletes the Site's pods, which come again; the number of them. Each by its uid, so that none of the new ones goes.
pub async fn restart(hub: &Hub, site: &Site) -> Result<usize, ApiError> {
    let selector =
        format!("{}={},{}={}", labels::APP, labels::APP_VALUE, labels::ID, labels::label_value(&site.spec.id));
    let pods: Vec<Pod> = hub.cluster.list(Some(&hub.namespace), &selector).await?;
    let mut deleted = 0;
    for pod in pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
        let guard = Precondition { uid: pod.metadata.uid.clone(), resource_version: None };
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        deleted += usize::from(hub.cluster.delete::<Pod>(Some(&hub.namespace), name, &guard, None).await?);
    }
    Ok(deleted)
}

fn change(site: &Site, patch: Value) -> Edit {
    Edit { site: site.clone(), patch, audit: Vec::new(), reverted: false }
}

/// Who changed it, and when.
fn stamp(caller: &Caller) -> Value {
    let user = caller.person().map(|person| person.user.as_str());
    json!({"configuration": {"updated_by": user, "updated_date": today().to_string()}})
}
