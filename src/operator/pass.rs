//! One pass: observe, validate, render, apply, in the order of LIFE-01. Status is written by the lane.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{PoisonError, RwLock};

use ractor::ActorRef;
use serde_json::Value;

use super::apply::{Applier, Purpose};
use super::attach;
use super::error::PassError;
use super::facts::{ChildFact, Ownership};
use super::look::is_route;
use super::objects::{Objects, api_kind};
use super::routes::RouteMessage;
use super::state::SiteState;
use super::volumes::{Retained, VolumeFact, VolumeIndex};
use crate::cluster::Cluster;
use crate::domain::change::{self, Trigger};
use crate::domain::child::{ChildKey, ChildKind};
use crate::domain::names;
use crate::domain::site::{Child, ChildState, Handled, Site};
use crate::render::{self, Observed, Restart};
use crate::settings::Settings;
use crate::settings::types::RoutingMode;

/// Longest wait for the route index: it does no IO.
const INDEX_TIMEOUT_MS: u64 = 5_000;

/// What a pass that ended well leaves.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The durable record.
    pub handled: Handled,
    /// Metadata of the children as they are now; `None` for one that is gone.
    pub facts: Vec<(ChildKey, Option<ChildFact>)>,
    /// How it came to be.
    pub how: How,
}

/// What kind of pass it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The Site was new.
    Created,
    /// A qualifying change.
    Updated,
    /// Taken over from an older platform, as it is.
    Adopted,
    /// Children were repaired.
    Repaired,
}

/// Everything a pass works with.
pub struct SitePass<'a> {
    /// The client.
    pub cluster: &'a Cluster,
    /// The settings.
    pub settings: &'a Settings,
    /// The Site as it is rendered.
    pub site: &'a Site,
    /// What its actor knew.
    pub state: &'a SiteState,
    /// The volumes of the cluster.
    pub volumes: &'a RwLock<VolumeIndex>,
    /// Who claims which path.
    pub routes: &'a ActorRef<RouteMessage>,
    /// The time of the pass.
    pub wall: jiff::Timestamp,
}

impl SitePass<'_> {
    /// A new Site, a take-over or a qualifying change.
    pub async fn full(&self) -> Result<Applied, PassError> {
        let mut held = self.state.handled.as_deref().and_then(|handled| handled.path.clone());
        let mut route_name = self.kept_route_name(held.as_deref());
        if self.state.handled.is_none() {
            let found = self.unrecorded_route().await?;
            held = found.as_ref().map(|(_, path)| path.clone());
            if let Some(path) = &held {
                self.tell_holds(path);
            }
            if self.is_legacy() && self.unchanged_since_legacy() {
                return Ok(self.adopted(held));
            }
            route_name = found
                .filter(|(key, path)| {
                    key.kind == self.route_kind() && Some(path) == names::public_path(self.site).as_ref()
                })
                .map(|(key, _)| key.name);
        }
        let conflict = self.path_conflict().await?;
        if let Some(conflict) = conflict.as_ref()
            && self.state.handled.is_none()
            && self.state.stateful_set.is_none()
        {
            // Nothing runs yet: nothing is started for a Site that nobody could reach.
            return Err(taken(conflict));
        }
        let retained = self.retained();
        let volume = match &retained {
            Retained::One(volume) => Some(volume.form.clone()),
            Retained::None | Retained::Held(_) | Retained::Ambiguous(_) => None,
        };
        let restart = Restart { restarted_at: seconds(self.wall), stamped_for: change::stamp(&self.state.trigger) };
        let observed = Observed { namespace: self.namespace(), route_name, restart, volume };
        let objects = Objects::of(render::render(self.site, self.settings, &observed)?)?;
        let mut applier = self.applier(self.purpose());
        let mut done = Progressed::default();
        for rendered in &objects.before_claim {
            done.note(&rendered.key, applier.ensure(rendered).await?);
        }
        self.ensure_claim(&mut applier, &objects, &retained, &mut done).await?;
        done.note(&objects.stateful_set.key, applier.ensure(&objects.stateful_set).await?);
        done.note(&objects.service.key, applier.ensure(&objects.service).await?);
        if let Some(conflict) = conflict {
            return Err(taken(&conflict));
        }
        for rendered in &objects.route {
            done.note(&rendered.key, applier.ensure(rendered).await?);
        }
        let path = names::public_path(self.site);
        if let Some(path) = &path {
            self.tell_holds(path);
        }
        for (key, fact) in self.stray_routes(&objects) {
            applier.delete_route(key, fact).await?;
            done.facts.push((key.clone(), None));
        }
        let restarted_at = self.live_restart_time(&objects);
        let handled = Handled {
            digest: self.state.trigger.digest.clone(),
            upgrade_request: self.state.trigger.upgrade_request.clone(),
            restarted_at,
            children: done.children,
            path,
            at: Some(seconds(self.wall)),
        };
        let how =
            if self.state.handled.is_none() && self.state.children.is_empty() { How::Created } else { How::Updated };
        Ok(Applied { handled, facts: done.facts, how })
    }

    /// Children that are missing or differ. Nothing else is touched, and no template is rolled.
    pub async fn repair(&self, keys: &[ChildKey]) -> Result<Applied, PassError> {
        let mut handled = self.state.handled.as_deref().cloned().unwrap_or_default();
        let trigger = change::handled_trigger(&handled);
        let objects = self.render_handled(&handled, &trigger, keys)?;
        let mut applier = self.applier(Purpose::Repair);
        let mut facts = Vec::new();
        for key in keys {
            let known = self.state.children.get(key);
            let adopted =
                handled.children.get(&key.to_string()).is_some_and(|child| child.state == ChildState::Adopted);
            match (objects.get(key), known) {
                (_, Some(_)) if adopted => {
                    if let Some(fact) = applier.ensure_meta(key).await? {
                        handled.children.insert(key.to_string(), child(&fact, ChildState::Adopted));
                        facts.push((key.clone(), Some(fact)));
                    }
                }
                (Some(_), _) if key.kind == ChildKind::PersistentVolumeClaim => {
                    let mut done = Progressed::default();
                    self.ensure_claim(&mut applier, &objects, &self.retained(), &mut done).await?;
                    facts.extend(done.facts);
                }
                (Some(rendered), _) => {
                    let fact = applier.ensure(rendered).await?;
                    handled.children.insert(key.to_string(), child(&fact, ChildState::Applied));
                    facts.push((key.clone(), Some(fact)));
                }
                (None, Some(fact)) if is_route(&key.kind) => {
                    self.ensure_route(&mut applier, &objects, &mut handled, &mut facts).await?;
                    applier.delete_route(key, fact).await?;
                    handled.children.remove(&key.to_string());
                    facts.push((key.clone(), None));
                }
                // A route of the other mode has gone: the present mode's takes its place.
                (None, None) if is_route(&key.kind) => {
                    handled.children.remove(&key.to_string());
                    self.ensure_route(&mut applier, &objects, &mut handled, &mut facts).await?;
                }
                (None, _) => {
                    handled.children.remove(&key.to_string());
                }
            }
            tracing::info!(child = %key, "repaired");
        }
        Ok(Applied { handled, facts, how: How::Repaired })
    }

    /// The present mode's route, where the record has none yet: a Site is not left without one when the route of
    /// another mode or path goes.
    async fn ensure_route(
        &self,
        applier: &mut Applier<'_>,
        objects: &Objects,
        handled: &mut Handled,
        facts: &mut Vec<(ChildKey, Option<ChildFact>)>,
    ) -> Result<(), PassError> {
        for rendered in &objects.route {
            if let Entry::Vacant(entry) = handled.children.entry(rendered.key.to_string()) {
                let fact = applier.ensure(rendered).await?;
                entry.insert(child(&fact, ChildState::Applied));
                facts.push((rendered.key.clone(), Some(fact)));
            }
        }
        Ok(())
    }

    /// The render of what was handled: same stamp, recorded restart time.
    fn render_handled(&self, handled: &Handled, trigger: &Trigger, keys: &[ChildKey]) -> Result<Objects, PassError> {
        let claim_missing = keys.iter().any(|key| key.kind == ChildKind::PersistentVolumeClaim);
        let volume = match self.retained() {
            Retained::One(volume) if claim_missing => Some(volume.form.clone()),
            _ => None,
        };
        let restarted_at = handled.restarted_at.clone().unwrap_or_else(|| seconds(self.wall));
        let observed = Observed {
            namespace: self.namespace(),
            route_name: self.kept_route_name(handled.path.as_deref()),
            restart: Restart { restarted_at, stamped_for: change::stamp(trigger) },
            volume,
        };
        Ok(Objects::of(render::render(self.site, self.settings, &observed)?)?)
    }

    fn purpose(&self) -> Purpose {
        if self.state.handled.is_some() || self.state.stateful_set.is_some() { Purpose::Change } else { Purpose::New }
    }

    fn applier(&self, purpose: Purpose) -> Applier<'_> {
        let expansion = self.settings.kubernetes.storage_expansion_supported;
        let namespace = self.site.metadata.namespace.as_deref().unwrap_or_default();
        Applier::new(self.cluster, self.site, self.state, namespace, purpose, expansion)
    }

    /// The claim: a retained volume is reserved for it first, so that no other claim can take it.
    async fn ensure_claim(
        &self,
        applier: &mut Applier<'_>,
        objects: &Objects,
        retained: &Retained,
        done: &mut Progressed,
    ) -> Result<(), PassError> {
        match retained {
            Retained::Ambiguous(text) => return Err(PassError::VolumeAmbiguous(text.clone())),
            Retained::One(volume) => self.reserve(volume).await?,
            // There may be a claim all the same, one that lost its label: that one is repaired.
            Retained::Held(volume) if self.claim_is_gone().await? => return Err(PassError::VolumeHeld(volume.clone())),
            Retained::Held(_) | Retained::None => {}
        }
        let fact = applier.ensure(&objects.claim).await?;
        // Its controller rewrites the claim: it has no version among the handled children.
        done.facts.push((objects.claim.key.clone(), Some(fact)));
        Ok(())
    }

    async fn claim_is_gone(&self) -> Result<bool, PassError> {
        let kind = api_kind(&ChildKind::PersistentVolumeClaim);
        let read = self.cluster.read_value(&kind, Some(&self.namespace()), &self.site.spec.id).await;
        Ok(read.map_err(PassError::call("volume claim"))?.is_none())
    }

    async fn reserve(&self, volume: &VolumeFact) -> Result<(), PassError> {
        tracing::info!(volume = volume.name, "a retained volume is attached again");
        attach::reserve(self.cluster, self.site, &self.namespace(), volume)
            .await
            .map_err(PassError::call("volume claim"))
    }

    /// A retained volume matters only while there is no claim.
    fn retained(&self) -> Retained {
        if self.state.claim.is_some() {
            return Retained::None;
        }
        let volumes = self.volumes.read().unwrap_or_else(PoisonError::into_inner);
        volumes.retained(self.site, &self.namespace(), &self.settings.kubernetes.old_claim_names)
    }

    fn namespace(&self) -> String {
        self.site.metadata.namespace.clone().unwrap_or_default()
    }

    const fn route_kind(&self) -> ChildKind {
        match self.settings.routing.mode {
            RoutingMode::Ingress => ChildKind::Ingress,
            RoutingMode::Gateway => ChildKind::HttpRoute,
        }
    }

    /// An owned route keeps its name while its path is unchanged.
    fn kept_route_name(&self, held: Option<&str>) -> Option<String> {
        let path = names::public_path(self.site)?;
        let handled = self.state.handled.as_deref().filter(|_| held == Some(path.as_str()))?;
        let prefix = format!("{}/", self.route_kind());
        handled.children.keys().find_map(|key| key.strip_prefix(&prefix)).map(str::to_owned)
    }

    /// Whether another Site owns the path that this one asks for.
    async fn path_conflict(&self) -> Result<Option<(String, String)>, PassError> {
        let Some(path) = names::public_path(self.site) else { return Ok(None) };
        let owner = ractor::call_t!(self.routes, RouteMessage::Owner, INDEX_TIMEOUT_MS, path.clone())
            .map_err(|_| PassError::RouteIndex)?;
        Ok(owner.filter(|owner| Some(&owner.uid) != self.site.metadata.uid.as_ref()).map(|owner| (path, owner.id)))
    }

    fn tell_holds(&self, path: &str) {
        let name = self.site.metadata.name.as_deref().unwrap_or_default();
        let key = crate::engine::ObjectKey::new(&self.namespace(), name);
        // An index that has ended decides nothing any more.
        let _ = self.routes.cast(RouteMessage::Holds(key, path.to_owned()));
    }

    /// Routes of this Site that the render does not have: of the other mode, of an old path, or of a lost one.
    fn stray_routes<'b>(&'b self, objects: &'b Objects) -> impl Iterator<Item = (&'b ChildKey, &'b ChildFact)> {
        self.state
            .children
            .iter()
            .filter(|(key, _)| is_route(&key.kind))
            .filter(|(_, fact)| !fact.terminating && self.owns(fact))
            .filter(|(key, _)| !objects.route.iter().any(|rendered| rendered.key == **key))
    }

    /// The restart time in the template now: the live one if the stamp was there already.
    fn live_restart_time(&self, objects: &Objects) -> Option<String> {
        let known =
            self.state.stateful_set.as_ref().filter(|set| set.stamp == Some(change::stamp(&self.state.trigger)));
        known.and_then(|set| set.restarted_at.clone()).or_else(|| {
            let annotations = &objects.stateful_set.body["spec"]["template"]["metadata"]["annotations"];
            annotations[crate::domain::labels::RESTARTED_AT].as_str().map(str::to_owned)
        })
    }

    // ---- take-over

    /// A Site of an older platform: a `StatefulSet` without our stamp that nobody else owns, and no record of ours.
    fn is_legacy(&self) -> bool {
        let set = ChildKey::new(ChildKind::StatefulSet, self.site.spec.id.clone());
        let foreign = self.state.children.get(&set).is_some_and(|fact| fact.owner == Ownership::Foreign);
        let stampless = self.state.stateful_set.as_ref().is_some_and(|set| set.stamp.is_none());
        self.state.handled.is_none() && stampless && !foreign
    }

    /// The baseline is what kopf handled last, else the Site as it is. An upgrade request that the baseline does not
    /// have was made while nobody ran.
    fn unchanged_since_legacy(&self) -> bool {
        change::kopf_baseline(self.site).is_none_or(|baseline| !self.state.trigger.due(&change::trigger(&baseline)))
    }

    /// A route that the Site has without a record of it, and its path: given by an older platform, whose names say
    /// nothing, so it is read once; or made by a pass whose record was lost, whose name is that of the path.
    async fn unrecorded_route(&self) -> Result<Option<(ChildKey, String)>, PassError> {
        let wanted = names::public_path(self.site);
        let named = self.site.public_path().map(|(space, name)| names::route(space, name));
        let applier = self.applier(self.purpose());
        let mut other = None;
        for (key, fact) in &self.state.children {
            if !matches!(key.kind, ChildKind::Ingress | ChildKind::HttpRoute) || fact.terminating {
                continue;
            }
            if let Some(path) = wanted.as_ref().filter(|_| Some(&key.name) == named.as_ref() && self.owns(fact)) {
                return Ok(Some((key.clone(), path.clone())));
            }
            let read = self.cluster.read_value(&api_kind(&key.kind), Some(&self.namespace()), &key.name).await;
            let Some(live) = read.map_err(PassError::call("routes"))? else { continue };
            if applier.accept(key, &live).await.is_err() {
                continue;
            }
            let path = route_path(&live);
            if path.is_some() && path == wanted {
                return Ok(path.map(|path| (key.clone(), path)));
            }
            other = other.or(path.map(|path| (key.clone(), path)));
        }
        Ok(other)
    }

    fn owns(&self, fact: &ChildFact) -> bool {
        matches!(&fact.owner, Ownership::Site(owner) if Some(owner) == self.site.metadata.uid.as_ref())
    }

    fn adopted(&self, path: Option<String>) -> Applied {
        tracing::info!("taken over as it is");
        let children = self
            .state
            .children
            .iter()
            .filter(|(key, fact)| key.kind != ChildKind::PersistentVolumeClaim && !fact.terminating)
            .filter(|(_, fact)| fact.owner != Ownership::Foreign)
            .filter(|(key, _)| is_route(&key.kind) || self.is_expected(key))
            .map(|(key, fact)| (key.to_string(), child(fact, ChildState::Adopted)))
            .collect();
        let handled = Handled {
            digest: self.state.trigger.digest.clone(),
            upgrade_request: self.state.trigger.upgrade_request.clone(),
            restarted_at: self.state.stateful_set.as_ref().and_then(|set| set.restarted_at.clone()),
            children,
            path,
            at: Some(seconds(self.wall)),
        };
        Applied { handled, facts: Vec::new(), how: How::Adopted }
    }

    /// Whether a child has one of the names that every Site's objects have.
    fn is_expected(&self, key: &ChildKey) -> bool {
        let id = &self.site.spec.id;
        match key.kind {
            ChildKind::Secret => key.name == *id || key.name == names::oauth2(id),
            ChildKind::ConfigMap => key.name == *id || key.name == names::files(id),
            ChildKind::StatefulSet | ChildKind::Service => key.name == *id,
            _ => false,
        }
    }
}

/// What a pass has achieved so far.
#[derive(Default)]
struct Progressed {
    children: BTreeMap<String, Child>,
    facts: Vec<(ChildKey, Option<ChildFact>)>,
}

impl Progressed {
    fn note(&mut self, key: &ChildKey, fact: ChildFact) {
        self.children.insert(key.to_string(), child(&fact, ChildState::Applied));
        self.facts.push((key.clone(), Some(fact)));
    }
}

fn child(fact: &ChildFact, state: ChildState) -> Child {
    Child { version: fact.version(), state }
}

fn taken((path, owner): &(String, String)) -> PassError {
    PassError::PathTaken { path: path.clone(), owner: owner.clone() }
}

/// RFC 3339 in whole seconds.
fn seconds(wall: jiff::Timestamp) -> String {
    wall.round(jiff::Unit::Second).unwrap_or(wall).to_string()
}

/// The public path that a live route serves.
fn route_path(route: &Value) -> Option<String> {
    let path = route
        .pointer("/spec/rules/0/http/paths/0/path")
        .or_else(|| route.pointer("/spec/rules/0/matches/0/path/value"))?
        .as_str()?;
    Some(path.trim_end_matches('/').to_owned())
}
