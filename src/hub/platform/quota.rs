//! What the platform's namespace may use, and uses.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceQuota;
use serde::Serialize;
use utoipa::ToSchema;

use super::super::error::ApiError;
use super::super::state::Hub;

/// A resource quota.
#[derive(Serialize, ToSchema, Clone, Debug)]
pub struct QuotaView {
    /// Its name.
    pub name: String,
    /// What may be used, as Kubernetes quantities.
    pub hard: BTreeMap<String, String>,
    /// What is used.
    pub used: BTreeMap<String, String>,
}

/// The quotas of the namespace, by name.
pub async fn list(hub: &Hub) -> Result<Vec<QuotaView>, ApiError> {
    let quotas: Vec<ResourceQuota> = hub.cluster.list(Some(&hub.namespace), "").await?;
    let mut shown: Vec<QuotaView> = quotas
        .into_iter()
        .map(|quota| {
            let status = quota.status.unwrap_or_default();
            let texts = |map: Option<BTreeMap<_, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>| {
                map.unwrap_or_default().into_iter().map(|(name, quantity)| (name, quantity.0)).collect()
            };
            QuotaView {
                name: quota.metadata.name.unwrap_or_default(),
                hard: texts(status.hard),
                used: texts(status.used),
            }
        })
        .collect();
    shown.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(shown)
}
