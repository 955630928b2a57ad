//! What all handlers share: one value, cheap to clone.
//!
//! Owns nothing itself; each part has its own module.

use std::sync::Arc;

use super::auth::Auth;
use super::catalog::Catalog;
use super::health::Health;
use super::limits::Limits;
use super::notify::Notifier;
use super::platform::Switch;
use super::reports::Reports;
use super::runs::Runs;
use super::site_api::SiteApi;
use crate::cache::Cache;
use crate::cluster::Cluster;
use crate::domain::application::Catalog as Images;
use crate::settings::Settings;

/// The Hub as handlers see it.
#[derive(Clone, Debug)]
pub struct Hub {
    /// The platform's settings.
    pub settings: Arc<Settings>,
    /// The way to the API server.
    pub cluster: Cluster,
    /// Namespace of the platform and its Sites.
    pub namespace: Arc<str>,
    /// The Sites, in memory.
    pub catalog: Catalog,
    /// Redis, or none.
    pub cache: Cache,
    /// Who is who.
    pub auth: Auth,
    /// How much one caller may ask.
    pub limits: Limits,
    /// The platform's images; their patterns are compiled once.
    pub images: Arc<Images>,
    /// Bulk runs.
    pub runs: Runs,
    /// Reports.
    pub reports: Reports,
    /// The watched Sites.
    pub health: Health,
    /// What is remembered of the read-only switch.
    pub switch: Switch,
    /// The way to the Sites' own APIs.
    pub site_api: SiteApi,
    /// How people are told of requests.
    pub notifier: Notifier,
}
