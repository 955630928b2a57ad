//! What every object of one rendering shares: identity, addresses, labels, ownership, applications.
//!
//! Owns the last line of defence on the texts that become addresses or parts of the nginx configuration:
//! the API server and the operator have refused bad ones before, an object written before the schema may
//! still carry one.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;

use super::applications::Applications;
use super::error::RenderError;
use super::observed::Observed;
use crate::domain::site::Site;
use crate::domain::{forms, labels};
use crate::settings::Settings;

/// One rendering.
pub struct Context<'a> {
    /// The Site.
    pub site: &'a Site,
    /// The platform.
    pub settings: &'a Settings,
    /// The facts.
    pub observed: &'a Observed,
    /// `spec.id`.
    pub id: &'a str,
    /// Public host of the sites.
    pub host: &'a str,
    /// Public host of the Hub.
    pub hub_host: &'a str,
    /// Space and name, when the Site has a public path.
    pub public_path: Option<(&'a str, &'a str)>,
    /// `/<space>/<name>`, or empty: what every path of the Site begins with.
    pub prefix: String,
    /// The containers of the pod.
    pub applications: Applications,
    labels: BTreeMap<String, String>,
    owner: OwnerReference,
}

impl<'a> Context<'a> {
    /// Checks what every object needs.
    pub fn new(site: &'a Site, settings: &'a Settings, observed: &'a Observed) -> Result<Self, RenderError> {
        let id = checked_id(&site.spec.id)?;
        let host = checked_host("routing.host", settings.routing.host.as_deref())?.ok_or(RenderError::HostMissing)?;
        let hub_host = checked_host("routing.hub_host", settings.routing.hub_host.as_deref())?.unwrap_or(host);
        let public_path = site.public_path();
        if let Some((space, name)) = public_path {
            checked_segment("spec.configuration.space", space)?;
            checked_segment("spec.name", name)?;
        }
        Ok(Self {
            site,
            settings,
            observed,
            id,
            host,
            hub_host,
            public_path,
            prefix: public_path.map(|(space, name)| format!("/{space}/{name}")).unwrap_or_default(),
            applications: Applications::new(site, settings)?,
            labels: labels::site_labels(site),
            owner: owner_reference(site)?,
        })
    }

    /// Metadata of an object of this Site.
    #[must_use]
    pub fn metadata(&self, name: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(self.observed.namespace.clone()),
            labels: Some(self.labels.clone()),
            owner_references: Some(vec![self.owner.clone()]),
            ..ObjectMeta::default()
        }
    }

    /// The labels of every object of this Site.
    #[must_use]
    pub const fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// What selects the pods: the two labels that never change while the Site lives.
    #[must_use]
    pub fn selector(&self) -> BTreeMap<String, String> {
        self.labels
            .iter()
            .filter(|(key, _)| [labels::APP, labels::ID].contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// Public address of the Site, with a final slash.
    #[must_use]
    pub fn public_url(&self) -> String {
        format!("https://{}{}/", self.host, self.prefix)
    }

    /// Size of the content volume in Gi.
    #[must_use]
    pub fn quota(&self) -> u32 {
        self.site.spec.configuration.quota.unwrap_or(self.settings.site.default_quota).max(1)
    }

    /// Name of oauth2-proxy's session cookie. One per Site, so that no site reads another's.
    #[must_use]
    pub fn cookie_name(&self) -> String {
        format!("__Secure-sites-{}", self.id)
    }
}

/// `blockOwnerDeletion` is true as in the objects of the replaced platform, so that taking them over writes nothing,
/// and a foreground deletion waits for the objects.
pub fn owner_reference(site: &Site) -> Result<OwnerReference, RenderError> {
    let uid = site.metadata.uid.clone().filter(|uid| !uid.is_empty()).ok_or(RenderError::UidMissing)?;
    Ok(OwnerReference {
        api_version: Site::api_version(&()).into_owned(),
        kind: Site::kind(&()).into_owned(),
        name: site.metadata.name.clone().unwrap_or_else(|| site.spec.id.clone()),
        uid,
        controller: Some(true),
        block_owner_deletion: Some(true),
    })
}

fn checked_id(id: &str) -> Result<&str, RenderError> {
    forms::id(id).then_some(id).ok_or_else(|| {
        RenderError::field(
            "spec.id",
            "use 1 to 52 lower-case letters, digits and hyphens, beginning with a letter and not ending with a hyphen",
        )
    })
}

fn checked_segment(field: &str, segment: &str) -> Result<(), RenderError> {
    forms::segment(segment).then_some(()).ok_or_else(|| {
        RenderError::field(
            field,
            "use 1 to 63 letters, digits, '.', '_' and '-', beginning with a letter or a digit: it is part of the address",
        )
    })
}

/// The host becomes part of annotations that all sites share.
fn checked_host<'a>(key: &str, host: Option<&'a str>) -> Result<Option<&'a str>, RenderError> {
    let Some(host) = host.filter(|host| !host.is_empty()) else { return Ok(None) };
    if host.len() <= 253 && host.split('.').all(forms::dns_label) {
        return Ok(Some(host));
    }
    Err(RenderError::setting(key, "give a host name such as sites.example.org, without scheme, port and path"))
}
