//! The volumes of the cluster, as far as Sites care: which are labelled, which one a Site may take again.
//!
//! Owns the index over all PersistentVolumes (a claim names its volume, not the other way round) and the
//! choice of a retained volume. Pure; the calls are in [`super::attach`].

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolume;

use super::facts::label_hash;
use crate::domain::labels;
use crate::domain::site::Site;
use crate::render::Reattach;

/// One volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeFact {
    /// Name.
    pub name: String,
    /// Resource version.
    pub resource_version: String,
    /// Label `/id`.
    pub id: Option<String>,
    /// Hash of the six site labels.
    pub labels: u64,
    /// `status.phase`.
    pub phase: String,
    /// Namespace and name of the claim that it is for.
    pub claim: Option<(String, String)>,
    /// Whether the claim's uid is set: bound, or once bound.
    pub claim_uid: bool,
    /// Its reclaim policy lets it go with its claim, or somebody is deleting it: nothing to keep.
    pub goes: bool,
    /// What a claim must copy to bind it.
    pub form: Reattach,
}

impl VolumeFact {
    /// From the volume.
    #[must_use]
    pub fn of(volume: &PersistentVolume) -> Self {
        let meta = &volume.metadata;
        let name = meta.name.clone().unwrap_or_default();
        let spec = volume.spec.clone().unwrap_or_default();
        let claim = spec.claim_ref.as_ref();
        Self {
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            id: meta.labels.as_ref().and_then(|all| all.get(labels::ID)).cloned(),
            labels: label_hash(meta.labels.as_ref().unwrap_or(&BTreeMap::new())),
            phase: volume.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default(),
            claim: claim.and_then(|claim| Some((claim.namespace.clone()?, claim.name.clone()?))),
            claim_uid: claim.is_some_and(|claim| claim.uid.as_deref().is_some_and(|uid| !uid.is_empty())),
            goes: meta.deletion_timestamp.is_some()
                || spec.persistent_volume_reclaim_policy.as_deref().is_some_and(|policy| policy != "Retain"),
            form: Reattach {
                volume_name: name.clone(),
                storage_class: spec.storage_class_name.filter(|class| !class.is_empty()),
                access_modes: spec.access_modes.unwrap_or_default(),
                volume_mode: spec.volume_mode,
                capacity: spec
                    .capacity
                    .as_ref()
                    .and_then(|capacity| capacity.get("storage"))
                    .map(|quantity| quantity.0.clone())
                    .unwrap_or_default(),
            },
            name,
        }
    }

    /// Whether a claim has it, or will as soon as its controller has got to it: a volume begins without a phase.
    fn taken(&self) -> bool {
        matches!(self.phase.as_str(), "Bound" | "Pending" | "")
    }

    fn free(&self) -> bool {
        match self.phase.as_str() {
            "Released" => !self.goes,
            phase => phase == "Available",
        }
    }
}

/// A Site's retained volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retained {
    /// None: a fresh claim is made.
    None,
    /// Exactly this one.
    One(Box<VolumeFact>),
    /// This one, as soon as it is released: it is bound to a claim of the Site's name. If that claim is gone, its
    /// controller has not got to it yet, and a claim made now would get an empty volume.
    Held(String),
    /// More than one could be it, or its own is bound to another claim: nothing is touched.
    Ambiguous(String),
}

/// All volumes by name.
#[derive(Clone, Debug, Default)]
pub struct VolumeIndex {
    volumes: BTreeMap<String, (VolumeFact, u32)>,
}

impl VolumeIndex {
    /// Takes a newer copy.
    pub fn see(&mut self, volume: VolumeFact, list: u32) {
        self.volumes.insert(volume.name.clone(), (volume, list));
    }

    /// Takes the labels that a patch has just written, before the watch tells of them.
    pub fn relabelled(&mut self, name: &str, labels: u64) {
        if let Some((volume, _)) = self.volumes.get_mut(name) {
            volume.labels = labels;
        }
    }

    /// A volume is gone; returns what it was.
    pub fn forget(&mut self, name: &str) -> Option<VolumeFact> {
        self.volumes.remove(name).map(|(volume, _)| volume)
    }

    /// A complete list has ended: what it did not have is gone.
    pub fn listed(&mut self, list: u32) {
        self.volumes.retain(|_, (_, seen)| *seen >= list);
    }

    /// Whether a volume carries these labels; `None` while it is unknown.
    #[must_use]
    pub fn labelled(&self, name: &str, labels: u64) -> Option<bool> {
        self.volumes.get(name).map(|(volume, _)| volume.labels == labels)
    }

    /// One volume.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&VolumeFact> {
        self.volumes.get(name).map(|(volume, _)| volume)
    }

    /// The volume that a Site without a claim takes again: of this id, or of an old claim name, whose claim was
    /// in our namespace, and which is Released or Available. Volumes of other namespaces do not exist for us.
    #[must_use]
    pub fn retained(&self, site: &Site, namespace: &str, old_claim_names: &[String]) -> Retained {
        let id = &site.spec.id;
        let old: Vec<String> = old_claim_names
            .iter()
            .map(|template| template.replace("{id}", id).replace("{owner}", &site.spec.owner))
            .collect();
        let label = labels::label_value(id);
        let mut candidates: Vec<&VolumeFact> = Vec::new();
        let mut held = None;
        for (volume, _) in self.volumes.values() {
            let Some((claim_namespace, claim)) = &volume.claim else { continue };
            if claim_namespace != namespace {
                continue;
            }
            let ours = volume.id.as_deref() == Some(&label);
            if !ours && claim != id && !old.contains(claim) {
                continue;
            }
            if volume.free() {
                // A volume whose label names another Site is that Site's, whatever its old claim was called.
                if ours || volume.id.is_none() {
                    candidates.push(volume);
                }
            } else if claim == id && volume.taken() && (ours || volume.id.is_none()) {
                held = Some(volume.name.clone());
            } else if ours && claim != id {
                return Retained::Ambiguous(format!(
                    "volume {} carries this Site's id and is {} to claim {claim}: nothing was touched; label or release it",
                    volume.name,
                    volume.phase.to_lowercase()
                ));
            }
        }
        if let Some(name) = held {
            return Retained::Held(name);
        }
        match candidates[..] {
            [] => Retained::None,
            [one] => Retained::One(Box::new(one.clone())),
            _ => Retained::Ambiguous(format!(
                "volumes {} could each be this Site's: nothing was touched; delete or relabel all but one",
                candidates.iter().map(|volume| volume.name.as_str()).collect::<Vec<_>>().join(", ")
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        let mut site = Site::new("fdb", crate::domain::site::SiteSpec::default());
        site.spec.id = "fdb".to_owned();
        site.spec.owner = "ana".to_owned();
        site
    }

    fn volume(name: &str, id: Option<&str>, claim: (&str, &str), phase: &str) -> VolumeFact {
        VolumeFact {
            name: name.to_owned(),
            id: id.map(str::to_owned),
            claim: Some((claim.0.to_owned(), claim.1.to_owned())),
            phase: phase.to_owned(),
            ..VolumeFact::default()
        }
    }

    fn retained(volumes: Vec<VolumeFact>) -> Retained {
        let mut index = VolumeIndex::default();
        for volume in volumes {
            index.see(volume, 1);
        }
        index.retained(&site(), "sites", &["pvc-{owner}".to_owned()])
    }

    #[test]
    fn a_released_volume_of_this_id_or_of_an_old_claim_name_is_taken() {
        for found in [
            volume("pv", Some("fdb"), ("sites", "fdb"), "Released"),
            volume("pv", Some("fdb"), ("sites", "fdb"), "Available"),
            volume("pv", None, ("sites", "pvc-ana"), "Released"),
        ] {
            assert!(matches!(retained(vec![found.clone()]), Retained::One(one) if one.name == "pv"), "{found:?}");
        }
    }

    #[test]
    fn foreign_namespaces_other_sites_and_bound_volumes_are_left_alone() {
        for left in [
            volume("pv", Some("fdb"), ("elsewhere", "fdb"), "Released"),
            volume("pv", Some("other"), ("sites", "pvc-ana"), "Released"),
            volume("pv", Some("other"), ("sites", "other"), "Released"),
            VolumeFact { goes: true, ..volume("pv", Some("fdb"), ("sites", "fdb"), "Released") },
            VolumeFact { claim: None, ..volume("pv", Some("fdb"), ("", ""), "Available") },
        ] {
            assert_eq!(retained(vec![left.clone()]), Retained::None, "{left:?}");
        }
    }

    #[test]
    fn a_volume_that_is_still_bound_to_a_claim_of_the_name_is_waited_for() {
        for id in [Some("fdb"), None] {
            // One that was made for a claim that went meanwhile has no phase yet.
            for phase in ["Bound", "Pending", ""] {
                assert_eq!(retained(vec![volume("pv", id, ("sites", "fdb"), phase)]), Retained::Held("pv".to_owned()));
            }
        }
        assert_eq!(retained(vec![volume("pv", Some("other"), ("sites", "fdb"), "Bound")]), Retained::None);
    }

    #[test]
    fn two_candidates_or_one_bound_elsewhere_stop_the_pass() {
        let two = vec![
            volume("pv1", Some("fdb"), ("sites", "fdb"), "Released"),
            volume("pv2", None, ("sites", "pvc-ana"), "Released"),
        ];
        assert!(matches!(retained(two), Retained::Ambiguous(text) if text.contains("pv1, pv2")));
        let bound = vec![volume("pv1", Some("fdb"), ("sites", "someone"), "Bound")];
        assert!(matches!(retained(bound), Retained::Ambiguous(text) if text.contains("someone")));
    }
}
