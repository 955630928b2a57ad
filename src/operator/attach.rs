//! The calls that concern volumes: a retained one is reserved for its Site's new claim, a bound one is labelled.

use k8s_openapi::api::core::v1::PersistentVolume;
use serde_json::{Value, json};

use super::volumes::VolumeFact;
use crate::cluster::{CallError, Cluster};
use crate::domain::labels;
use crate::domain::site::Site;

/// Reserves a volume for the claim `<id>`: one patch, guarded by the version that was seen, leaves the claim
/// reference with namespace and name and takes the old claim's uid away. Never the whole reference: the volume
/// would turn Available for everybody.
pub async fn reserve(cluster: &Cluster, site: &Site, namespace: &str, volume: &VolumeFact) -> Result<(), CallError> {
    let reserved = volume.claim.as_ref() == Some(&(namespace.to_owned(), site.spec.id.clone())) && !volume.claim_uid;
    if reserved {
        return Ok(());
    }
    let patch = json!({
        "metadata": {"resourceVersion": volume.resource_version, "labels": labels::site_labels(site)},
        "spec": {"claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": namespace,
            "name": site.spec.id,
            "uid": Value::Null,
            "resourceVersion": Value::Null,
        }},
    });
    cluster.merge_patch::<PersistentVolume>(None, &volume.name, &patch).await?;
    Ok(())
}

/// Puts the site labels on a bound volume.
pub async fn label(cluster: &Cluster, site: &Site, volume: &VolumeFact) -> Result<(), CallError> {
    let patch = json!({
        "metadata": {"resourceVersion": volume.resource_version, "labels": labels::site_labels(site)},
    });
    cluster.merge_patch::<PersistentVolume>(None, &volume.name, &patch).await?;
    Ok(())
}
