//! What the watches tell about the objects around a Site, reduced to what a look compares. Pure.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use super::look::is_route;
use super::merge::OUR_ANNOTATIONS;
use crate::cluster::Metadata;
use crate::domain::child::{ChildKey, ChildKind};
use crate::domain::labels;
use crate::domain::pod_health::PodFact;

/// API version in our owner references: the one the API server serves.
pub const SITE_API_VERSION: &str = "sites.ecmwf.int/v1";
/// Annotation on the `StatefulSet`: hash of the pod template as it was rendered, before defaults. Tells a foreign
/// edit of the template, which is undone, from a render that a new release or setting made different, which is not.
pub const TEMPLATE_DIGEST: &str = "sites.ecmwf.int/rendered-template";

/// One event about the surroundings of a Site.
#[derive(Clone, Debug)]
pub enum Fact {
    /// A child object as it is now.
    Child(ChildKey, ChildFact),
    /// A child object is gone.
    ChildGone(ChildKey, String),
    /// The claim, in full.
    Claim(ChildKey, ChildFact, ClaimFact),
    /// The `StatefulSet`, in full.
    StatefulSet(ChildKey, ChildFact, StatefulSetFact),
    /// A pod as it is now, and the list it was part of.
    Pod(Box<PodFact>, u32),
    /// A pod (uid) is gone.
    PodGone(String),
    /// A complete list of a kind has ended: what it did not have is gone.
    Listed(WatchedKind, u32),
    /// Something about the volumes changed: look again.
    Volumes,
}

/// What a list is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchedKind {
    /// Pods.
    Pods,
    /// Children of this kind.
    Children(ChildKind),
}

/// Metadata of a child.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ChildFact {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// `metadata.generation`, for kinds that have one.
    pub generation: Option<i64>,
    /// Hash of a route's annotations that are ours: they are its behaviour, and no generation counts them. 0 if none.
    pub annotations: u32,
    /// Hash of the six site labels, see [`label_hash`].
    pub labels: u64,
    /// Who owns it.
    pub owner: Ownership,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// The list that last had it.
    pub list: u32,
}

impl ChildFact {
    /// What is compared with `status.handled.children`: the generation (with the annotations' hash, where there are
    /// any), or the resourceVersion.
    #[must_use]
    pub fn version(&self) -> String {
        match (self.generation, self.annotations) {
            (None, _) => self.resource_version.clone(),
            (Some(generation), 0) => generation.to_string(),
            (Some(generation), annotations) => format!("{generation}.{annotations:08x}"),
        }
    }

    /// From an object's metadata.
    #[must_use]
    pub fn of(meta: &ObjectMeta, kind: &ChildKind, list: u32) -> Self {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            generation: meta.generation.filter(|_| generated(kind)),
            annotations: annotation_hash(kind, meta.annotations.as_ref().unwrap_or(&NONE)),
            labels: label_hash(meta.labels.as_ref().unwrap_or(&NONE)),
            owner: Ownership::of(meta.owner_references.as_deref().unwrap_or_default()),
            terminating: meta.deletion_timestamp.is_some(),
            list,
        }
    }

    /// From the metadata that a watch tells of or a write answers.
    #[must_use]
    pub fn of_metadata(object: &Metadata, kind: &ChildKind, list: u32) -> Self {
        Self {
            uid: object.uid.clone(),
            resource_version: object.resource_version.clone(),
            generation: object.generation.filter(|_| generated(kind)),
            annotations: annotation_hash(kind, &object.annotations),
            labels: label_hash(&object.labels),
            owner: Ownership::of(&object.owner_references),
            terminating: object.terminating,
            list,
        }
    }

    /// From a whole object, as a read answers it.
    #[must_use]
    pub fn of_value(object: &Value, kind: &ChildKind, list: u32) -> Self {
        let meta = object.get("metadata").cloned().unwrap_or_default();
        serde_json::from_value::<ObjectMeta>(meta).map(|meta| Self::of(&meta, kind, list)).unwrap_or_default()
    }

    /// Whether this is an older copy of `other`. Resource versions of one kind are comparable numbers.
    #[must_use]
    pub fn older_than(&self, other: &Self) -> bool {
        match (self.resource_version.parse::<u64>(), other.resource_version.parse::<u64>()) {
            (Ok(this), Ok(other)) => this < other,
            _ => false,
        }
    }
}

/// The owner references of a child.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Ownership {
    /// None at all.
    #[default]
    Free,
    /// Exactly one, to a Site in the served version: its uid.
    Site(String),
    /// Sites are among the owners, but not exactly one in the served version and nothing else: their names.
    Unclear(Vec<String>),
    /// Only something else owns it.
    Foreign,
}

impl Ownership {
    /// Reads the references.
    #[must_use]
    pub fn of(references: &[OwnerReference]) -> Self {
        let sites = |reference: &OwnerReference| {
            reference.kind == "Site" && reference.api_version.starts_with("sites.ecmwf.int/")
        };
        match references {
            [] => Self::Free,
            [one] if sites(one) && one.api_version == SITE_API_VERSION && !one.uid.is_empty() => {
                Self::Site(one.uid.clone())
            }
            many => {
                let names: Vec<String> = many.iter().filter(|one| sites(one)).map(|one| one.name.clone()).collect();
                if names.is_empty() { Self::Foreign } else { Self::Unclear(names) }
            }
        }
    }
}

/// What a look needs of the claim.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ClaimFact {
    /// Phase is Bound.
    pub bound: bool,
    /// `spec.volumeName`.
    pub volume: Option<String>,
    /// `spec.resources.requests.storage`.
    pub request: Option<String>,
}

impl ClaimFact {
    /// From the claim.
    #[must_use]
    pub fn of(claim: &PersistentVolumeClaim) -> Self {
        let spec = claim.spec.as_ref();
        Self {
            bound: claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound"),
            volume: spec.and_then(|spec| spec.volume_name.clone()).filter(|name| !name.is_empty()),
            request: spec
                .and_then(|spec| spec.resources.as_ref()?.requests.as_ref()?.get("storage"))
                .map(|quantity| quantity.0.clone()),
        }
    }
}

/// What a look needs of the `StatefulSet`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StatefulSetFact {
    /// `metadata.generation`.
    pub generation: i64,
    /// `status.observedGeneration`.
    pub observed_generation: i64,
    /// The template's stamp; absent in a template that is not ours.
    pub stamp: Option<String>,
    /// The template's restart time.
    pub restarted_at: Option<String>,
}

impl StatefulSetFact {
    /// From the `StatefulSet`.
    #[must_use]
    pub fn of(set: &StatefulSet) -> Self {
        let annotation =
            |name: &str| set.spec.as_ref()?.template.metadata.as_ref()?.annotations.as_ref()?.get(name).cloned();
        Self {
            generation: set.metadata.generation.unwrap_or_default(),
            observed_generation: set.status.as_ref().and_then(|status| status.observed_generation).unwrap_or_default(),
            stamp: annotation(labels::STAMPED_FOR),
            restarted_at: annotation(labels::RESTARTED_AT),
        }
    }
}

/// Hash of the six site labels among `all`; stable within a process only.
#[must_use]
pub fn label_hash(all: &BTreeMap<String, String>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for name in [labels::APP, labels::ID, labels::SPACE, labels::NAME, labels::OWNER, labels::MANAGED_BY] {
        all.get(name).hash(&mut hasher);
    }
    hasher.finish()
}

/// Hash of the annotations of a route that are ours; the same in every process and release, since it is recorded.
#[must_use]
pub fn annotation_hash(kind: &ChildKind, all: &BTreeMap<String, String>) -> u32 {
    let ours = |name: &str| is_route(kind) && OUR_ANNOTATIONS.iter().any(|prefix| name.starts_with(prefix));
    let text: Vec<String> =
        all.iter().filter(|(name, _)| ours(name)).map(|(name, value)| format!("{name}={value}\n")).collect();
    let text = text.concat();
    if text.is_empty() {
        return 0;
    }
    labels::hex(text.as_bytes()).get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default()
}

/// Whether the resource has a generation that its spec's changes raise (the others are compared by version).
#[must_use]
pub fn generated(kind: &ChildKind) -> bool {
    !matches!(kind, ChildKind::Secret | ChildKind::ConfigMap | ChildKind::Service | ChildKind::PersistentVolumeClaim)
}

/// A fact as the debug page shows it.
#[must_use]
pub fn describe(fact: &ChildFact) -> Value {
    json!({"version": fact.version(), "uid": fact.uid, "owner": format!("{:?}", fact.owner), "terminating": fact.terminating})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_route_counts_its_annotations_that_are_ours() {
        let version = |kind: &ChildKind, annotations: Value| {
            let object = json!({"metadata": {"generation": 3, "resourceVersion": "9", "annotations": annotations}});
            ChildFact::of_value(&object, kind, 0).version()
        };
        let ours = version(&ChildKind::Ingress, json!({"nginx.org/a": "1"}));
        assert_eq!(ours, "3.f365647b");
        assert_eq!(version(&ChildKind::Ingress, json!({"nginx.org/a": "1", "example.test/b": "2"})), ours);
        assert_ne!(version(&ChildKind::Ingress, json!({"nginx.org/a": "2"})), ours);
        assert_eq!(version(&ChildKind::HttpRoute, json!({"example.test/b": "2"})), "3");
        assert_eq!(version(&ChildKind::StatefulSet, json!({"sites.ecmwf.int/rendered-template": "x"})), "3");
        assert_eq!(version(&ChildKind::Secret, json!({"nginx.org/a": "1"})), "9");
    }
}
