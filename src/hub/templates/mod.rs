//! Templates of new Sites: those of the platform, in a folder, and saved ones, in `ConfigMap`s.
//!
//! Owns their names and what they may hold: fields of the form of a Site, so never a token. A name is checked before
//! anything is opened or asked (B24); the folder is opened as a capability, and links in it lead nowhere else.

mod folder;
mod saved;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::error::ApiError;
use super::forms::bind::value_into;
use super::forms::site::SiteForm;
use super::state::Hub;
use crate::domain::forms;

/// Where a template comes from.
#[derive(Serialize, ToSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The platform's folder: cannot be changed here.
    Platform,
    /// Saved by a platform administrator.
    Saved,
}

/// A template.
#[derive(Serialize, ToSchema, Clone, Debug)]
pub struct TemplateView {
    /// Its name.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
    /// Fields of the form of a Site.
    #[schema(value_type = Object)]
    pub fields: Value,
}

/// 400 for what is no name of a template.
pub fn named(name: &str) -> Result<&str, ApiError> {
    if forms::segment(name) {
        Ok(name)
    } else {
        Err(ApiError::field("template", "must be 1 to 63 letters, digits, dots, dashes or underscores"))
    }
}

/// The fields of a template.
pub async fn load(hub: &Hub, name: &str) -> Result<Value, ApiError> {
    Ok(get(hub, name).await?.fields)
}

/// One template; the platform's hide saved ones of the same name.
pub async fn get(hub: &Hub, name: &str) -> Result<TemplateView, ApiError> {
    let name = named(name)?;
    if let Some(fields) = folder::read(hub, name).await? {
        return Ok(TemplateView { name: name.to_owned(), source: Source::Platform, fields });
    }
    let fields = saved::read(hub, name).await?.ok_or(ApiError::NotFound("the template"))?;
    Ok(TemplateView { name: name.to_owned(), source: Source::Saved, fields })
}

/// All templates, by name.
pub async fn list(hub: &Hub) -> Result<Vec<TemplateView>, ApiError> {
    let mut all = saved::list(hub).await?;
    for name in folder::names(hub).await? {
        // One that cannot be read is in the log, and hides no other.
        if let Ok(Some(fields)) = folder::read(hub, &name).await {
            all.retain(|other| other.name != name);
            all.push(TemplateView { name, source: Source::Platform, fields });
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// Saves a template.
pub async fn save(hub: &Hub, name: &str, fields: Value) -> Result<TemplateView, ApiError> {
    let name = named(name)?;
    changeable(hub, name).await?;
    value_into::<SiteForm>(fields.clone())?;
    saved::write(hub, name, &fields).await?;
    Ok(TemplateView { name: name.to_owned(), source: Source::Saved, fields })
}

/// Deletes a saved template.
pub async fn delete(hub: &Hub, name: &str) -> Result<(), ApiError> {
    let name = named(name)?;
    changeable(hub, name).await?;
    if saved::delete(hub, name).await? { Ok(()) } else { Err(ApiError::NotFound("the template")) }
}

async fn changeable(hub: &Hub, name: &str) -> Result<(), ApiError> {
    if folder::read(hub, name).await?.is_some() {
        return Err(ApiError::conflict("this template is the platform's: choose another name"));
    }
    Ok(())
}
