//! Which of two copies of one object is the newer. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Whether `new` is newer than `old`, of the same object. Resource versions of one resource are comparable
/// numbers; should a server use another form, everything that differs counts as newer.
pub(super) fn is_newer(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    let number = |meta: &ObjectMeta| meta.resource_version.as_ref().and_then(|version| version.parse::<u64>().ok());
    match (number(old), number(new)) {
        (Some(old), Some(new)) => new > old,
        _ => old.resource_version != new.resource_version,
    }
}
