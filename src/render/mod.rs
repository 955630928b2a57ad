//! Rendering: a Site, the settings and observed facts become the desired Kubernetes objects.
//!
//! Owns the content of every object of a Site. Pure and deterministic: no clock, no randomness, no IO,
//! no client; equal inputs give equal bytes, so that a restart of the operator never looks like a change.
//! Must not decide *whether* to write (the operator) or *what a change is* (`domain`).
//!
//! | file | object |
//! |---|---|
//! | [`secrets`] | `<id>`: master token and keys; `<id>-oauth2`: cookie and client secret |
//! | [`environment`] | `<id>`: what the site's servers read from their environment |
//! | [`files`], [`nginx`] | `<id>-files`: nginx configuration, error pages, access lists |
//! | [`claim`] | `<id>`: the content volume |
//! | [`stateful_set`], [`pod`] | `<id>`: the pod |
//! | [`service`] | `<id>`: port 4180 |
//! | [`route`] | the Ingress, or the `HTTPRoute` with the policies of its controller |

pub mod applications;
pub mod claim;
pub mod context;
pub mod environment;
pub mod error;
pub mod files;
pub mod headers;
pub mod layout;
pub mod nginx;
pub mod observed;
pub mod pod;
pub mod quantity;
pub mod route;
pub mod secrets;
pub mod service;
pub mod stateful_set;

#[cfg(test)]
mod tests;

/// A Site with this response header makes a development build panic here: the way in which tests on a real cluster
/// show that a defect of the renderer stays one Site's. A release build does not know the word.
#[cfg(debug_assertions)]
const PANIC_HEADER: &str = "X-Sites-Test-Renderer-Panic";

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service};

pub use context::owner_reference;
pub use error::RenderError;
pub use observed::{Observed, Reattach, Restart};
pub use route::{HttpRoutes, PolicyKind, Route, policy_kinds};

use crate::domain::site::Site;
use crate::settings::Settings;
use context::Context;

/// Every object that a Site has. Written by exhaustive destructuring, so that a new one cannot be forgotten.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// `<id>`: the master token and the keys of the site's servers.
    pub secret: Secret,
    /// `<id>-oauth2`: what only oauth2-proxy may know.
    pub oauth2_secret: Secret,
    /// `<id>`: environment of every container.
    pub environment: ConfigMap,
    /// `<id>-files`: rendered files, mounted as the volume `site-config`.
    pub files: ConfigMap,
    /// `<id>`: the content.
    pub claim: PersistentVolumeClaim,
    /// `<id>`: the pods.
    pub stateful_set: StatefulSet,
    /// `<id>`: the address of the pods inside the cluster.
    pub service: Service,
    /// The way in from outside; absent without a public path.
    pub route: Option<Route>,
}

/// Renders all objects of a Site.
pub fn render(site: &Site, settings: &Settings, observed: &Observed) -> Result<Desired, RenderError> {
    let context = Context::new(site, settings, observed)?;
    #[cfg(debug_assertions)]
    panic_if_asked(site);
    Ok(Desired {
        secret: secrets::secret(&context)?,
        oauth2_secret: secrets::oauth2_secret(&context)?,
        environment: environment::config_map(&context)?,
        files: files::config_map(&context)?,
        claim: claim::claim(&context)?,
        stateful_set: stateful_set::stateful_set(&context)?,
        service: service::service(&context),
        route: route::route(&context)?,
    })
}

#[cfg(debug_assertions)]
fn panic_if_asked(site: &Site) {
    let asked = site.spec.configuration.headers.contains_key(PANIC_HEADER);
    assert!(!asked, "a header of the Site asks the renderer to panic");
}
