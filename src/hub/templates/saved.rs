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

const LABEL: &str = "sites.ecmwf.int/template";

/// The fields of a saved template. `name` has been checked, here as below.
pub async fn read(hub: &Hub, name: &str) -> Result<Option<Value>, ApiError> {
    let map: Option<ConfigMap> = hub.cluster.read(Some(&hub.namespace), &object(name)).await?;
    Ok(map.and_then(shown).map(|template| template.fields))
}

/// All saved templates.
pub async fn list(hub: &Hub) -> Result<Vec<TemplateView>, ApiError> {
    let maps: Vec<ConfigMap> = hub.cluster.list(Some(&hub.namespace), &format!("{LABEL}=saved")).await?;
    Ok(maps.into_iter().filter_map(shown).collect())
}

/// Saves a template, or replaces what was saved.
pub async fn write(hub: &Hub, name: &str, fields: &Value) -> Result<(), ApiError> {
    let data = BTreeMap::from([("name".to_owned(), name.to_owned()), ("fields".to_owned(), fields.to_string())]);
    let metadata = ObjectMeta {
        name: Some(object(name)),
        labels: Some(BTreeMap::from([(LABEL.to_owned(), "saved".to_owned())])),
        ..ObjectMeta::default()
    };
    let map = ConfigMap { metadata, data: Some(data.clone()), ..ConfigMap::default() };
    match hub.cluster.create(Some(&hub.namespace), &map).await {
        Err(CallError::AlreadyExists { .. }) => {
            let kind = Kind::of::<ConfigMap>();
            hub.cluster.merge_patch_value(&kind, Some(&hub.namespace), &object(name), &json!({ "data": data })).await?;
            Ok(())
        }
        other => Ok(other.map(drop)?),
    }
}

/// Deletes a template; `false`: there was none.
pub async fn delete(hub: &Hub, name: &str) -> Result<bool, ApiError> {
    let guard = Precondition::default();
    Ok(hub.cluster.delete::<ConfigMap>(Some(&hub.namespace), &object(name), &guard, None).await?)
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
