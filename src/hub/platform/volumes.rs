//! Volumes that deleted Sites have left: shown, and given up one by one.
//!
//! Owns the rule of what may go: a volume that is Released, carries a Site's labels and was claimed in this namespace,
//! while no Site has its id. Deletes on the version that was judged, so that one bound meanwhile stays.

use k8s_openapi::api::core::v1::PersistentVolume;
use serde::Serialize;
use tracing::info;
use utoipa::ToSchema;

use super::super::caller::Caller;
use super::super::error::ApiError;
use super::super::sites::find;
use super::super::state::Hub;
use crate::cluster::{CallError, Precondition};
use crate::domain::labels;

/// A volume that a Site has left.
#[derive(Serialize, ToSchema, Clone, Debug)]
pub struct VolumeView {
    /// Its name.
    pub name: String,
    /// Id of the Site that had it.
    pub site_id: String,
    /// First segment of that Site's path.
    pub space: Option<String>,
    /// Second segment of that Site's path.
    pub site: Option<String>,
    /// Size, as a Kubernetes quantity.
    pub capacity: Option<String>,
    /// When it was made, RFC 3339.
    pub created: Option<String>,
}

/// All of them, by name.
pub async fn list(hub: &Hub) -> Result<Vec<VolumeView>, ApiError> {
    let selector = format!("{}={}", labels::APP, labels::APP_VALUE);
    let volumes: Vec<PersistentVolume> = hub.cluster.list(None, &selector).await?;
    let mut left: Vec<VolumeView> = volumes.iter().filter_map(|volume| left(volume, &hub.namespace)).collect();
    left.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(left)
}

/// Deletes one; 404 for what is no volume that a Site has left, 409 when it was taken again.
pub async fn delete(hub: &Hub, caller: &Caller, name: &str) -> Result<(), ApiError> {
    let missing = || ApiError::NotFound("a released volume of this name");
    let volume: PersistentVolume = hub.cluster.read(None, name).await?.ok_or_else(missing)?;
    let view = left(&volume, &hub.namespace).ok_or_else(missing)?;
    if find::read(hub, &view.site_id).await?.is_some() {
        return Err(ApiError::conflict("a site with the volume's id exists and may take it: delete that site first"));
    }
    let guard =
        Precondition { uid: volume.metadata.uid.clone(), resource_version: volume.metadata.resource_version.clone() };
    match hub.cluster.delete::<PersistentVolume>(None, name, &guard, None).await {
        Ok(true) => {}
        Ok(false) => return Err(missing()),
        Err(CallError::Conflict { .. }) => return Err(ApiError::conflict("the volume changed meanwhile: look again")),
        Err(error) => return Err(error.into()),
    }
    let user = caller.person().map_or("", |person| person.user.as_str());
    info!(target: "sites::audit", user, volume = name, site = view.site_id, deed = "deleted", "volume");
    Ok(())
}

fn left(volume: &PersistentVolume, namespace: &str) -> Option<VolumeView> {
    let label = |name: &str| volume.metadata.labels.as_ref().and_then(|all| all.get(name)).cloned();
    let released = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Released");
    let spec = volume.spec.as_ref()?;
    let claim = spec.claim_ref.as_ref()?;
    let ours =
        label(labels::APP).as_deref() == Some(labels::APP_VALUE) && claim.namespace.as_deref() == Some(namespace);
    if !released || !ours || volume.metadata.deletion_timestamp.is_some() {
        return None;
    }
    // A long id is shortened in the label; claims of older platforms have other names.
    let (id, claimed) = (label(labels::ID)?, claim.name.clone().unwrap_or_default());
    let site_id = if labels::label_value(&claimed) == id { claimed } else { id };
    let capacity = spec.capacity.as_ref().and_then(|all| all.get("storage"));
    Some(VolumeView {
        name: volume.metadata.name.clone()?,
        site_id,
        space: label(labels::SPACE),
        site: label(labels::NAME),
        capacity: capacity.map(|quantity| quantity.0.clone()),
        created: volume.metadata.creation_timestamp.as_ref().map(|time| time.0.to_string()),
    })
}
