//! What is shown of a Site: a line of the list, and the whole of it.
//!
//! Owns the shapes of answers. Never holds a token; the form of a Site is for its administrators only, as its
//! applications may carry secrets in their environment.

use serde::Serialize;
use utoipa::ToSchema;

use super::super::etag::etag;
use super::super::forms::site::SiteForm;
use crate::domain::site::{Phase, Site, SiteType};

/// A line of the list.
#[derive(Serialize, ToSchema, Clone, Debug)]
pub struct SiteLine {
    /// The id: name of the resource.
    pub id: String,
    /// First segment of the public path.
    pub space: Option<String>,
    /// Second segment of the public path.
    pub name: Option<String>,
    /// Public address.
    pub url: Option<String>,
    /// Who owns it.
    pub owner: String,
    /// `private` or `public`.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "private")]
    pub site_type: SiteType,
    /// Free text.
    pub description: Option<String>,
    /// Size of the volume, in Gi.
    pub quota: Option<u32>,
    /// `YYYY-MM-DD`.
    pub registered_date: Option<String>,
    /// `YYYY-MM-DD`.
    pub retention_date: Option<String>,
    /// `YYYY-MM-DD` of the last edit.
    pub updated_date: Option<String>,
    /// `false` when archived.
    pub enabled: bool,
    /// State of the pods: `Pending`, `Running`, …
    #[schema(value_type = Option<String>, example = "Running")]
    pub phase: Option<Phase>,
}

impl SiteLine {
    /// Of a Site on this host.
    #[must_use]
    pub fn of(site: &Site, host: Option<&str>) -> Self {
        let spec = &site.spec;
        let configuration = &spec.configuration;
        let url = site.public_path().zip(host).map(|((space, name), host)| format!("https://{host}/{space}/{name}/"));
        Self {
            id: spec.id.clone(),
            space: configuration.space.clone(),
            name: spec.name.clone(),
            url,
            owner: spec.owner.clone(),
            site_type: spec.site_type,
            description: configuration.description.clone(),
            quota: configuration.quota,
            registered_date: configuration.registered_date.clone(),
            retention_date: configuration.retention_date.clone(),
            updated_date: configuration.updated_date.clone(),
            enabled: site.enabled(),
            phase: site.status.as_ref().and_then(|status| status.phase),
        }
    }
}

/// A whole Site.
#[derive(Serialize, ToSchema, Clone, Debug)]
pub struct SiteView {
    /// What everybody sees who may read it.
    #[serde(flatten)]
    pub line: SiteLine,
    /// The form as it is filled in, for administrators of the Site.
    pub form: Option<SiteForm>,
    /// Who created it.
    pub registered_by: Option<String>,
    /// Who edited it last.
    pub updated_by: Option<String>,
    /// Version of the form: for `If-Match`, or the field `etag`.
    pub etag: String,
    /// Said when the Hub did more than was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl SiteView {
    /// Of a Site, for an administrator of it or not.
    #[must_use]
    pub fn of(site: &Site, host: Option<&str>, administers: bool) -> Self {
        let configuration = &site.spec.configuration;
        Self {
            line: SiteLine::of(site, host),
            form: administers.then(|| SiteForm::of(site)),
            registered_by: configuration.registered_by.clone().filter(|_| administers),
            updated_by: configuration.updated_by.clone().filter(|_| administers),
            etag: etag(site),
            message: None,
        }
    }
}
