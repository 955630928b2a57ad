//! Saved templates: one `ConfigMap` each, named by a digest so that every legal name has one and no two share it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::error::ApiError;
use super::super::state::Hub;
use super::{Source, TemplateView};
use crate::cluster::{CallError, Kind, Precondition};
use crate::domain::{forms, labels};

/// Tells a template of ours from any other object.
const LABEL: &str = "sites.ecmwf.int/template";
const SAVED: &str = "saved";

/// The fields of a saved template. `name` has been checked, here as below.
pub async fn read(hub: &Hub, name: &str) -> Result<Option<Value>, ApiError> {
    Ok(held(hub, name).await?.and_then(shown).map(|template| template.fields))
}

/// All saved templates.
pub async fn list(hub: &Hub) -> Result<Vec<TemplateView>, ApiError> {
    let maps: Vec<ConfigMap> = hub.cluster.list(Some(&hub.namespace), &format!("{LABEL}={SAVED}")).await?;
    Ok(maps.into_iter().filter_map(shown).collect())
}

/// Saves a template, or replaces what was saved; 409 when somebody else is at it, or the name of its object is taken
/// by what is no template of ours.
pub async fn write(hub: &Hub, name: &str, fields: &Value) -> Result<(), ApiError> {
    let data = BTreeMap::from([("name".to_owned(), name.to_owned()), ("fields".to_owned(), fields.to_string())]);
    let metadata = ObjectMeta {
        name: Some(object(name)),
        labels: Some(BTreeMap::from([(LABEL.to_owned(), SAVED.to_owned())])),
        ..ObjectMeta::default()
    };
    let map = ConfigMap { metadata, data: Some(data.clone()), ..ConfigMap::default() };
    match hub.cluster.create(Some(&hub.namespace), &map).await {
        Err(CallError::AlreadyExists { .. }) => {
            let held = held(hub, name).await?.ok_or_else(taken)?;
            let patch = json!({"metadata": {"resourceVersion": held.metadata.resource_version}, "data": data});
            let kind = Kind::of::<ConfigMap>();
            let written = hub.cluster.merge_patch_value(&kind, Some(&hub.namespace), &object(name), &patch).await;
            written.map(drop).map_err(meanwhile)
        }
        other => Ok(other.map(drop)?),
    }
}

/// Deletes a template; `false`: there was none.
pub async fn delete(hub: &Hub, name: &str) -> Result<bool, ApiError> {
    let Some(ConfigMap { metadata, .. }) = held(hub, name).await? else { return Ok(false) };
    let guard = Precondition { uid: metadata.uid, resource_version: metadata.resource_version };
    hub.cluster.delete::<ConfigMap>(Some(&hub.namespace), &object(name), &guard, None).await.map_err(meanwhile)
}

/// The object of a template, if it carries our label: whatever else has that name is not ours to show or to change.
async fn held(hub: &Hub, name: &str) -> Result<Option<ConfigMap>, ApiError> {
    let map: Option<ConfigMap> = hub.cluster.read(Some(&hub.namespace), &object(name)).await?;
    let ours = |map: &ConfigMap| {
        map.metadata.labels.as_ref().and_then(|labels| labels.get(LABEL)).is_some_and(|value| value == SAVED)
    };
    Ok(map.filter(ours))
}

fn taken() -> ApiError {
    ApiError::conflict("the object that would hold this template belongs to somebody else: choose another name")
}

fn meanwhile(error: CallError) -> ApiError {
    match error {
        CallError::Conflict { .. } => ApiError::conflict("the template changed meanwhile: read it again"),
        CallError::NotFound { .. } => ApiError::NotFound("the template"),
        other => other.into(),
    }
}

fn object(name: &str) -> String {
    format!("sites-template-{}", &labels::hex(&Sha256::digest(name))[..32])
}

fn shown(map: ConfigMap) -> Option<TemplateView> {
    let mut data = map.data?;
    let name = data.remove("name").filter(|name| forms::segment(name))?;
    let fields = serde_json::from_str(&data.remove("fields")?).ok()?;
    Some(TemplateView { name, source: Source::Saved, fields })
}
