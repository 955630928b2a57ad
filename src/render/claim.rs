//! The claim of the content volume.
//!
//! Renders what a fresh claim asks for; that a live claim's request never shrinks is the operator's to keep.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::context::Context;
use super::error::RenderError;
use super::quantity::Amount;

/// `<id>`: the content.
pub fn claim(context: &Context<'_>) -> Result<PersistentVolumeClaim, RenderError> {
    Ok(PersistentVolumeClaim {
        metadata: context.metadata(context.id),
        spec: Some(spec(context)?),
        ..PersistentVolumeClaim::default()
    })
}

fn spec(context: &Context<'_>) -> Result<PersistentVolumeClaimSpec, RenderError> {
    let kubernetes = &context.settings.kubernetes;
    let quota = quota(context)?;
    let Some(volume) = &context.observed.volume else {
        return Ok(PersistentVolumeClaimSpec {
            access_modes: Some(vec![
                kubernetes.storage_access_mode.clone().unwrap_or_else(|| "ReadWriteOnce".to_owned()),
            ]),
            resources: Some(request(quota)),
            storage_class_name: kubernetes.storage_class.clone(),
            ..PersistentVolumeClaimSpec::default()
        });
    };
    let capacity = Amount::parse(&volume.capacity).ok_or_else(|| {
        RenderError::field(
            format!("PersistentVolume/{}: spec.capacity.storage", volume.volume_name),
            format!("{:?} is not a quantity", volume.capacity),
        )
    })?;
    Ok(PersistentVolumeClaimSpec {
        access_modes: Some(volume.access_modes.clone()),
        resources: Some(request(quota.min(capacity))),
        // Empty, not absent: a volume without a class is never bound by a claim that the default class was added to.
        storage_class_name: Some(volume.storage_class.clone().unwrap_or_default()),
        volume_mode: volume.volume_mode.clone(),
        volume_name: Some(volume.volume_name.clone()),
        ..PersistentVolumeClaimSpec::default()
    })
}

fn quota(context: &Context<'_>) -> Result<Amount, RenderError> {
    Amount::parse(&format!("{}Gi", context.quota()))
        .ok_or_else(|| RenderError::field("spec.configuration.quota", "give a number of Gi, at least 1"))
}

fn request(storage: Amount) -> VolumeResourceRequirements {
    VolumeResourceRequirements {
        requests: Some(BTreeMap::from([("storage".to_owned(), Quantity(storage.canonical()))])),
        ..VolumeResourceRequirements::default()
    }
}
