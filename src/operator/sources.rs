//! The watches around the Sites: which kinds, pruned how, mapped to which Site's facts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::facts::{ChildFact, ClaimFact, Fact, StatefulSetFact, WatchedKind};
use super::objects::{api_kind, every_policy_kind};
use super::volumes::{VolumeFact, VolumeIndex};
use crate::cluster::{Cluster, Kind, WatchEvent, WatchSpec, is_served, wait_served, watch, watch_metadata};
use crate::domain::child::{ChildKey, ChildKind};
use crate::domain::labels;
use crate::domain::pod_health::PodFact;
use crate::domain::site::Site;
use crate::engine::{Feeds, ObjectKey, SourceEvent};
use crate::settings::Settings;
use crate::settings::types::RoutingMode;

use super::sites::SiteReconciler;

/// How often a kind that the cluster does not serve is looked for again.
const DISCOVERY_PERIOD: Duration = Duration::from_secs(180);

type Source = BoxStream<'static, SourceEvent<Fact>>;

/// All watches of the operator, in one namespace.
#[must_use]
pub fn feeds(
    cluster: &Cluster,
    settings: &Settings,
    namespace: &str,
    volumes: &Arc<RwLock<VolumeIndex>>,
) -> Feeds<SiteReconciler> {
    let all = WatchSpec { timeout: Some(settings.operator.watch_timeout.get()), ..WatchSpec::default() };
    let of_sites = WatchSpec { ns: Some(namespace.to_owned()), ..all.clone() };
    let spec = WatchSpec { selector: Some(labels::ID.to_owned()), ..of_sites.clone() };
    let mut related: Vec<Source> = vec![
        pods(cluster, spec.clone()),
        claims(cluster, spec.clone()),
        stateful_sets(cluster, spec.clone()),
        persistent_volumes(cluster, all, namespace, volumes.clone()),
    ];
    for kind in [ChildKind::Secret, ChildKind::ConfigMap, ChildKind::Service] {
        related.push(children(cluster, spec.clone(), kind));
    }
    for (kind, needed) in route_kinds(settings) {
        if needed {
            related.push(children(cluster, spec.clone(), kind));
        } else {
            related.push(where_served(cluster, spec.clone(), kind));
        }
    }
    Feeds { objects: watch::<Site>(cluster, of_sites, prune_site).boxed(), related }
}

/// The kinds of both routing modes, and whether the present mode needs each.
fn route_kinds(settings: &Settings) -> Vec<(ChildKind, bool)> {
    let gateway = settings.routing.mode == RoutingMode::Gateway;
    let ours = crate::render::policy_kinds(settings.routing.gateway.provider);
    let mut kinds = vec![(ChildKind::Ingress, !gateway), (ChildKind::HttpRoute, gateway)];
    for policy in every_policy_kind() {
        let needed = gateway && ours.contains(&policy);
        kinds.push((ChildKind::from_group_kind(policy.group, policy.kind), needed));
    }
    kinds
}

/// Numbers the lists of one watch: what a complete list did not have is gone.
#[derive(Default)]
struct Lists(u32);

impl Lists {
    fn next(&mut self) {
        self.0 += 1;
    }
}

fn children(cluster: &Cluster, spec: WatchSpec, kind: ChildKind) -> Source {
    let api = api_kind(&kind);
    let events = watch_metadata(cluster, api, spec);
    mapped(events, move |event, lists: &mut Lists| match event {
        WatchEvent::Relist => {
            lists.next();
            Vec::new()
        }
        WatchEvent::Seen { object, .. } => {
            let key = ChildKey::new(kind.clone(), object.name.clone());
            let fact = Fact::Child(key, ChildFact::of_metadata(&object, &kind, lists.0));
            sites_of(object.namespace.as_deref(), &object.labels, &object.owner_references)
                .map(|site| SourceEvent::Fact { key: site, fact: fact.clone(), spawn: true })
                .collect()
        }
        WatchEvent::Gone { namespace, name, uid, labels, owner_references } => {
            let fact = Fact::ChildGone(ChildKey::new(kind.clone(), name), uid);
            sites_of(namespace.as_deref(), &labels, &owner_references)
                .map(|site| SourceEvent::Fact { key: site, fact: fact.clone(), spawn: false })
                .collect()
        }
        WatchEvent::Broken { .. } => Vec::new(),
        WatchEvent::Synced => listed(WatchedKind::Children(kind.clone()), lists.0),
    })
}

/// A kind that may be absent. Where it is served its first list is waited for like any other: a route of the mode that
/// is off must not be taken for gone. Where it is absent it is looked for every few minutes.
fn where_served(cluster: &Cluster, spec: WatchSpec, kind: ChildKind) -> Source {
    let cluster = cluster.clone();
    let source = async move {
        let api: Kind = api_kind(&kind);
        if is_served(&cluster, &api).await {
            return children(&cluster, spec, kind);
        }
        let later = stream::once(async move {
            wait_served(&cluster, &api, DISCOVERY_PERIOD).await;
            children(&cluster, spec, kind)
        });
        stream::iter([SourceEvent::Synced]).chain(later.flatten()).boxed()
    };
    stream::once(source).flatten().boxed()
}

fn claims(cluster: &Cluster, spec: WatchSpec) -> Source {
    typed::<PersistentVolumeClaim>(cluster, spec, ChildKind::PersistentVolumeClaim, prune_claim, |key, fact, claim| {
        Fact::Claim(key, fact, ClaimFact::of(claim))
    })
}

fn stateful_sets(cluster: &Cluster, spec: WatchSpec) -> Source {
    typed::<StatefulSet>(cluster, spec, ChildKind::StatefulSet, prune_stateful_set, |key, fact, set| {
        Fact::StatefulSet(key, fact, StatefulSetFact::of(set))
    })
}

/// A child kind that is watched in full.
fn typed<K>(
    cluster: &Cluster,
    spec: WatchSpec,
    kind: ChildKind,
    prune: fn(&mut K),
    full: fn(ChildKey, ChildFact, &K) -> Fact,
) -> Source
where
    K: crate::cluster::ApiObject,
{
    let events = watch::<K>(cluster, spec, prune);
    mapped(events, move |event, lists: &mut Lists| match event {
        WatchEvent::Relist => {
            lists.next();
            Vec::new()
        }
        WatchEvent::Seen { object, .. } => {
            let meta = object.meta();
            let key = ChildKey::new(kind.clone(), meta.name.clone().unwrap_or_default());
            let fact = ChildFact::of(meta, &kind, lists.0);
            let none = BTreeMap::new();
            let owners = meta.owner_references.as_deref().unwrap_or_default();
            sites_of(meta.namespace.as_deref(), meta.labels.as_ref().unwrap_or(&none), owners)
                .map(|site| {
                    let (key, fact) = (key.clone(), fact.clone());
                    // Only the object that bears the Site's own name is its claim or its pods' set.
                    let fact = if key.name == site.name() { full(key, fact, &object) } else { Fact::Child(key, fact) };
                    SourceEvent::Fact { key: site, fact, spawn: true }
                })
                .collect()
        }
        WatchEvent::Gone { namespace, name, uid, labels, owner_references } => {
            let fact = Fact::ChildGone(ChildKey::new(kind.clone(), name), uid);
            sites_of(namespace.as_deref(), &labels, &owner_references)
                .map(|site| SourceEvent::Fact { key: site, fact: fact.clone(), spawn: false })
                .collect()
        }
        WatchEvent::Broken { .. } => Vec::new(),
        WatchEvent::Synced => listed(WatchedKind::Children(kind.clone()), lists.0),
    })
}

fn pods(cluster: &Cluster, spec: WatchSpec) -> Source {
    let events = watch::<Pod>(cluster, spec, prune_pod);
    mapped(events, |event, lists: &mut Lists| match event {
        WatchEvent::Relist => {
            lists.next();
            Vec::new()
        }
        WatchEvent::Seen { object, .. } => {
            let pod = PodFact::from(&object);
            let none = BTreeMap::new();
            let all = object.metadata.labels.as_ref().unwrap_or(&none);
            sites_of(object.metadata.namespace.as_deref(), all, &[])
                .map(|site| SourceEvent::Fact {
                    key: site,
                    fact: Fact::Pod(Box::new(pod.clone()), lists.0),
                    spawn: true,
                })
                .collect()
        }
        WatchEvent::Gone { namespace, uid, labels, .. } => sites_of(namespace.as_deref(), &labels, &[])
            .map(|site| SourceEvent::Fact { key: site, fact: Fact::PodGone(uid.clone()), spawn: false })
            .collect(),
        WatchEvent::Broken { .. } => Vec::new(),
        WatchEvent::Synced => listed(WatchedKind::Pods, lists.0),
    })
}

/// Volumes have no namespace and may outlive their Site: they go to the index, and Sites look again.
fn persistent_volumes(cluster: &Cluster, spec: WatchSpec, namespace: &str, index: Arc<RwLock<VolumeIndex>>) -> Source {
    let namespace = namespace.to_owned();
    let events = watch::<PersistentVolume>(cluster, spec, prune_volume);
    mapped(events, move |event, lists: &mut Lists| {
        let mut volumes = index.write().unwrap_or_else(PoisonError::into_inner);
        let look = |volume: &VolumeFact| -> Vec<SourceEvent<Fact>> {
            let claimed = volume.claim.as_ref().filter(|(there, _)| *there == namespace).map(|(_, name)| name.clone());
            claimed
                .into_iter()
                .chain(volume.id.clone())
                .map(|name| SourceEvent::Fact {
                    key: ObjectKey::new(&namespace, &name),
                    fact: Fact::Volumes,
                    spawn: false,
                })
                .collect()
        };
        match event {
            WatchEvent::Relist => {
                lists.next();
                Vec::new()
            }
            WatchEvent::Seen { object, .. } => {
                let volume = VolumeFact::of(&object);
                let events = look(&volume);
                volumes.see(volume, lists.0);
                events
            }
            WatchEvent::Gone { name, .. } => volumes.forget(&name).as_ref().map(look).unwrap_or_default(),
            WatchEvent::Broken { .. } => Vec::new(),
            WatchEvent::Synced => {
                volumes.listed(lists.0);
                vec![SourceEvent::Synced]
            }
        }
    })
}

/// Runs a mapping with memory over a watch.
fn mapped<E: Send + 'static, M: Default + Send + 'static>(
    events: impl futures::Stream<Item = E> + Send + 'static,
    mut map: impl FnMut(E, &mut M) -> Vec<SourceEvent<Fact>> + Send + 'static,
) -> Source {
    let mut memory = M::default();
    events.flat_map(move |event| stream::iter(map(event, &mut memory))).boxed()
}

fn listed(kind: WatchedKind, list: u32) -> Vec<SourceEvent<Fact>> {
    vec![SourceEvent::Everyone(Fact::Listed(kind, list)), SourceEvent::Synced]
}

/// The Sites that an object concerns: the one that its label names (an id is a valid label value, so the label is
/// the id), and the one that owns it, should somebody have edited the label.
fn sites_of(
    namespace: Option<&str>,
    all: &BTreeMap<String, String>,
    owners: &[OwnerReference],
) -> impl Iterator<Item = ObjectKey> {
    let owner = owners.iter().filter(|owner| owner.kind == "Site").map(|owner| owner.name.as_str());
    let names: BTreeSet<&str> = all.get(labels::ID).map(String::as_str).into_iter().chain(owner).collect();
    let namespace = namespace.unwrap_or_default();
    let keys: Vec<ObjectKey> =
        names.into_iter().filter(|name| !name.is_empty()).map(|name| ObjectKey::new(namespace, name)).collect();
    keys.into_iter()
}

// ---- what nobody reads is dropped at the door

fn prune_site(site: &mut Site) {
    if let Some(annotations) = site.metadata.annotations.as_mut() {
        annotations.retain(|name, _| name.starts_with("sites.ecmwf.int/") || name == labels::KOPF_LAST_HANDLED);
    }
}

fn prune_pod(pod: &mut Pod) {
    pod.spec = None;
}

fn prune_claim(claim: &mut PersistentVolumeClaim) {
    claim.metadata.annotations = None;
}

fn prune_stateful_set(set: &mut StatefulSet) {
    set.metadata.annotations = None;
    if let Some(spec) = set.spec.as_mut() {
        spec.template.spec = None;
        spec.volume_claim_templates = None;
    }
}

fn prune_volume(volume: &mut PersistentVolume) {
    volume.metadata.annotations = None;
}
