//! Applying: one object at a time, created if it is missing, else read, compared and replaced only if it differs.
//!
//! Owns what is ours: a 409 never counts as done, an object that is being deleted or belongs to something else
//! is never accepted. Rendering and order are the pass's ([`super::pass`]).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

use super::error::PassError;
use super::facts::{ChildFact, Ownership, TEMPLATE_DIGEST};
use super::look::is_route;
use super::merge::{Scope, kept_fields, replacement, request_grows};
use super::objects::{Rendered, api_kind};
use super::state::{SiteState, Written};
use crate::cluster::{CallError, Cluster, Kind, Precondition};
use crate::domain::change;
use crate::domain::child::{ChildKey, ChildKind};
use crate::domain::labels;
use crate::domain::site::Site;

/// Times that an object is read again because it changed between read and write.
const MOST_ROUNDS: usize = 4;

/// What a pass is for: how sure it must be of its Site before it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Nothing of the Site is known to exist.
    New,
    /// A change. A missing child was there before: the Site is read before it is made again, since a cascade
    /// deletes children first.
    Change,
    /// A repair: also written only while the Site is the one that was looked at.
    Repair,
}

/// Applies the objects of one Site in one pass.
pub struct Applier<'a> {
    /// The client.
    pub cluster: &'a Cluster,
    /// The Site.
    pub site: &'a Site,
    /// What its actor knew when the pass began.
    pub state: &'a SiteState,
    /// Namespace of the Site.
    pub namespace: &'a str,
    /// What the pass is for.
    pub purpose: Purpose,
    /// Whether a claim may grow.
    pub expansion: bool,
    site_checked: bool,
}

impl<'a> Applier<'a> {
    /// An applier for one pass.
    #[must_use]
    pub const fn new(
        cluster: &'a Cluster,
        site: &'a Site,
        state: &'a SiteState,
        namespace: &'a str,
        purpose: Purpose,
        expansion: bool,
    ) -> Self {
        Self { cluster, site, state, namespace, purpose, expansion, site_checked: false }
    }

    /// Makes the live object equal its render. Answers with the metadata that it has then.
    pub async fn ensure(&mut self, rendered: &Rendered) -> Result<ChildFact, PassError> {
        match self.state.children.get(&rendered.key) {
            Some(fact) if fact.terminating => return Err(PassError::Terminating(rendered.key.clone())),
            Some(fact) if self.written_before(rendered, fact) => return Ok(fact.clone()),
            Some(_) => {}
            None => {
                if let Some(fact) = self.create(rendered).await? {
                    return Ok(fact);
                }
            }
        }
        for _ in 0..MOST_ROUNDS {
            let live = self
                .cluster
                .read_value(&rendered.kind, Some(self.namespace), &rendered.key.name)
                .await
                .map_err(PassError::call(step(&rendered.key.kind)))?;
            let Some(live) = live else {
                // Which volume it leaves is decided without a claim: one made here would get an empty volume.
                if rendered.key.kind == ChildKind::PersistentVolumeClaim
                    && self.state.children.contains_key(&rendered.key)
                {
                    return Err(PassError::ClaimUntold);
                }
                if let Some(fact) = self.create(rendered).await? {
                    return Ok(fact);
                }
                continue;
            };
            self.accept(&rendered.key, &live).await?;
            self.say_what_is_kept(rendered, &live);
            let Some(body) = self.difference(rendered, &live) else {
                return Ok(self.record(rendered, ChildFact::of_value(&live, &rendered.key.kind, 0)));
            };
            if self.purpose == Purpose::Repair || self.unknown_stamp(rendered, &live) {
                self.check_site().await?;
            }
            let replaced =
                self.cluster.replace_value(&rendered.kind, Some(self.namespace), &rendered.key.name, &body).await;
            match replaced {
                Ok(meta) => return Ok(self.record(rendered, ChildFact::of_metadata(&meta, &rendered.key.kind, 0))),
                Err(CallError::Conflict { .. } | CallError::NotFound { .. }) => {}
                Err(source) => return Err(PassError::call(step(&rendered.key.kind))(source)),
            }
        }
        Err(PassError::Terminating(rendered.key.clone()))
    }

    /// Repairs labels and owner of a child that was taken over as it is; its content is not compared.
    pub async fn ensure_meta(&mut self, key: &ChildKey) -> Result<Option<ChildFact>, PassError> {
        let kind = api_kind(&key.kind);
        let meta_only = json!({"metadata": {
            "labels": labels::site_labels(self.site),
            "ownerReferences": [crate::render::owner_reference(self.site)?],
        }});
        for _ in 0..MOST_ROUNDS {
            let read = self.cluster.read_value(&kind, Some(self.namespace), &key.name).await;
            let Some(live) = read.map_err(PassError::call(step(&key.kind)))? else { return Ok(None) };
            self.accept(key, &live).await?;
            let Some(body) = replacement(&key.kind, &meta_only, &live, Scope::Meta) else {
                return Ok(Some(ChildFact::of_value(&live, &key.kind, 0)));
            };
            match self.cluster.replace_value(&kind, Some(self.namespace), &key.name, &body).await {
                Ok(meta) => return Ok(Some(ChildFact::of_metadata(&meta, &key.kind, 0))),
                Err(CallError::Conflict { .. } | CallError::NotFound { .. }) => {}
                Err(source) => return Err(PassError::call(step(&key.kind))(source)),
            }
        }
        Err(PassError::Terminating(key.clone()))
    }

    /// Deletes a route of this Site, exactly the one that was seen.
    pub async fn delete_route(&self, key: &ChildKey, fact: &ChildFact) -> Result<(), PassError> {
        let guard = Precondition { uid: Some(fact.uid.clone()), resource_version: None };
        let kind = api_kind(&key.kind);
        let failed = |source| PassError::StrayRoute { key: key.clone(), source: Box::new(source) };
        match self.cluster.delete_value(&kind, Some(self.namespace), &key.name, &guard, None).await {
            Ok(_) => Ok(()),
            Err(conflict @ CallError::Conflict { .. }) => {
                let live = self.cluster.read_value(&kind, Some(self.namespace), &key.name).await.map_err(failed)?;
                let stays = live.is_some_and(|live| {
                    live["metadata"]["uid"] == fact.uid.as_str() && live["metadata"]["deletionTimestamp"].is_null()
                });
                // Otherwise another object of that name has come meanwhile: not ours to delete.
                if stays { Err(failed(conflict)) } else { Ok(()) }
            }
            Err(source) => Err(failed(source)),
        }
    }

    /// `POST`. `None` when the name is taken: then the object is read.
    async fn create(&mut self, rendered: &Rendered) -> Result<Option<ChildFact>, PassError> {
        if self.purpose != Purpose::New {
            self.check_site().await?;
        }
        let (name, text) = (&rendered.key.name, rendered.text.clone());
        match self.cluster.create_text(&rendered.kind, Some(self.namespace), name, text).await {
            Ok(meta) => Ok(Some(self.record(rendered, ChildFact::of_metadata(&meta, &rendered.key.kind, 0)))),
            Err(CallError::AlreadyExists { .. }) => {
                tracing::debug!(child = %rendered.key, "already exists");
                Ok(None)
            }
            Err(source) => Err(PassError::call(step(&rendered.key.kind))(source)),
        }
    }

    /// Reads the Site once in a pass. What differs may have been written by another leader for a newer Site, while our
    /// watch of Sites is silent: that must not be undone.
    async fn check_site(&mut self) -> Result<(), PassError> {
        if self.site_checked {
            return Ok(());
        }
        let name = self.site.metadata.name.as_deref().unwrap_or_default();
        let live = self.cluster.read::<Site>(Some(self.namespace), name).await.map_err(PassError::call("observe"))?;
        let same =
            |live: &Site| live.metadata.uid == self.site.metadata.uid && live.metadata.deletion_timestamp.is_none();
        let live = live.filter(same).ok_or(PassError::SiteGone)?;
        if change::trigger(&live) != change::trigger(self.site) {
            return Err(PassError::SiteStale);
        }
        self.site_checked = true;
        Ok(())
    }

    /// Whether a live object may be written: this Site or a dead one of its name is among its owners, or it has
    /// none and is labelled ours.
    pub(super) async fn accept(&self, key: &ChildKey, live: &Value) -> Result<(), PassError> {
        let meta = &live["metadata"];
        let owners: Vec<OwnerReference> = serde_json::from_value(meta["ownerReferences"].clone()).unwrap_or_default();
        let ownership = Ownership::of(&owners);
        let ours = match &ownership {
            Ownership::Free => {
                meta["labels"][labels::APP] == labels::APP_VALUE
                    && meta["labels"][labels::ID] == labels::label_value(&self.site.spec.id).as_str()
            }
            Ownership::Foreign => false,
            // Only one Site has that name, and it is this one: another uid is that of a dead one. Whatever else is
            // said to own the object beside it is cleared (LIFE-12).
            Ownership::Site(_) => owners.iter().all(|owner| Some(&owner.name) == self.site.metadata.name.as_ref()),
            Ownership::Unclear(names) => names.iter().any(|name| Some(name) == self.site.metadata.name.as_ref()),
        };
        match (ours, meta["deletionTimestamp"].is_null()) {
            (true, true) => Ok(()),
            // What a deletion leaves, ours or another's, is gone soon; what stays is said to be foreign.
            (_, false) => Err(PassError::Terminating(key.clone())),
            (false, true) if is_route(&key.kind) => match ownership {
                Ownership::Free | Ownership::Foreign => Err(PassError::ForeignRoute(key.clone())),
                Ownership::Site(_) | Ownership::Unclear(_) => Err(self.route_of_sites(key, &owners).await?),
            },
            (false, true) => Err(PassError::Foreign(key.clone())),
        }
    }

    /// A route of other Sites, though the path is this one's: a live one keeps it, that of a deleted one is about to
    /// be collected and is waited for like anything that is being deleted.
    async fn route_of_sites(&self, key: &ChildKey, owners: &[OwnerReference]) -> Result<PassError, PassError> {
        // Untyped: a Site that cannot be decoded claims no path and keeps its route all the same.
        let sites = Kind::of::<Site>();
        for owner in owners {
            let read = self.cluster.read_value(&sites, Some(self.namespace), &owner.name).await;
            let site = read.map_err(PassError::call("routes"))?;
            if site.is_some_and(|site| site["metadata"]["uid"] == owner.uid.as_str()) {
                return Ok(PassError::RouteOfSite { key: key.clone(), owner: owner.name.clone() });
            }
        }
        Ok(PassError::Terminating(key.clone()))
    }

    /// Whether the live template was made for a change that is neither the handled one nor the present one.
    fn unknown_stamp(&self, rendered: &Rendered, live: &Value) -> bool {
        let stamp = |set: &Value| {
            let annotations = &set["spec"]["template"]["metadata"]["annotations"];
            annotations[labels::STAMPED_FOR].as_str().map(str::to_owned)
        };
        let handled = self.state.handled.as_deref().map(|handled| change::stamp(&change::handled_trigger(handled)));
        let live = stamp(live).filter(|_| rendered.key.kind == ChildKind::StatefulSet);
        live.is_some() && live != handled && live != stamp(&rendered.body)
    }

    fn difference(&self, rendered: &Rendered, live: &Value) -> Option<Value> {
        match rendered.key.kind {
            ChildKind::StatefulSet => {
                let (body, scope) = Self::template_rule(rendered, live);
                replacement(&rendered.key.kind, &body, live, scope)
            }
            ChildKind::PersistentVolumeClaim => {
                let request = live["spec"]["resources"]["requests"]["storage"].as_str();
                let grows = self.expansion && request_grows(request, self.site.spec.configuration.quota);
                let body = replacement(&rendered.key.kind, &rendered.body, live, Scope::All);
                if !grows {
                    return body;
                }
                let mut body = body.unwrap_or_else(|| live.clone());
                body["spec"]["resources"]["requests"]["storage"] =
                    rendered.body["spec"]["resources"]["requests"]["storage"].clone();
                Some(body)
            }
            _ => replacement(&rendered.key.kind, &rendered.body, live, Scope::All),
        }
    }

    /// What cannot be applied is said once, not at every pass: nobody can change it but by making the object anew.
    fn say_what_is_kept(&self, rendered: &Rendered, live: &Value) {
        for field in kept_fields(&rendered.key.kind, &rendered.body, live) {
            let mut progress = self.state.progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if progress.kept.insert((rendered.key.clone(), field)) {
                tracing::info!(
                    site = self.site.spec.id,
                    child = %rendered.key,
                    field = format!("spec.{field}"),
                    "field cannot be changed: the live value is kept"
                );
            }
        }
    }

    /// A pod template is written only for another stamp, or to undo a foreign edit of it. A template that is
    /// different because a release or a setting renders it differently waits for the next change.
    fn template_rule(rendered: &Rendered, live: &Value) -> (Value, Scope) {
        let annotation =
            |object: &Value, name: &str| object["spec"]["template"]["metadata"]["annotations"][name].clone();
        let mut body = rendered.body.clone();
        let same_stamp = annotation(&body, labels::STAMPED_FOR) == annotation(live, labels::STAMPED_FOR);
        if same_stamp {
            body["spec"]["template"]["metadata"]["annotations"][labels::RESTARTED_AT] =
                annotation(live, labels::RESTARTED_AT);
        }
        let digest = |object: &Value| object["metadata"]["annotations"][TEMPLATE_DIGEST].clone();
        let same_render = digest(&body) == digest(live);
        if same_stamp && !same_render {
            // The mark keeps speaking of the template that is there.
            body["metadata"]["annotations"][TEMPLATE_DIGEST] = digest(live);
            return (body, Scope::AllButTemplate);
        }
        (body, Scope::All)
    }

    /// Whether this process wrote exactly this render and nobody has touched the object since.
    fn written_before(&self, rendered: &Rendered, fact: &ChildFact) -> bool {
        let uid = self.site.metadata.uid.as_deref().unwrap_or_default();
        let meta_is_ours =
            fact.labels == self.state.labels && matches!(&fact.owner, Ownership::Site(owner) if owner == uid);
        let progress = self.state.progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let grows = rendered.key.kind == ChildKind::PersistentVolumeClaim;
        let present = Written::new(rendered.hash, fact);
        meta_is_ours
            && progress.written.get(&rendered.key).is_some_and(|written| {
                (written.render, written.uid) == (present.render, present.uid)
                    // A claim's version moves with its binding; its spec is its controller's but for the request.
                    && (written.version == present.version || grows)
            })
    }

    fn record(&self, rendered: &Rendered, fact: ChildFact) -> ChildFact {
        let mut progress = self.state.progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let written = Written::new(rendered.hash, &fact);
        progress.written.insert(rendered.key.clone(), written);
        fact
    }
}

/// The step's name in messages, after LIFE-01.
#[must_use]
pub const fn step(kind: &ChildKind) -> &'static str {
    match kind {
        ChildKind::Secret => "secret",
        ChildKind::ConfigMap => "config maps",
        ChildKind::PersistentVolumeClaim => "volume claim",
        ChildKind::StatefulSet => "stateful set",
        ChildKind::Service => "service",
        ChildKind::Ingress | ChildKind::HttpRoute | ChildKind::Policy { .. } => "routes",
    }
}
