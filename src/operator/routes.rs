//! The route owner: one actor that knows who claims which public path.
//!
//! A path belongs to the Site that owns its route, else to the oldest claimant. The registry tells every Site
//! that comes, changes or goes, in the order of the watch, before any pass runs; passes ask; when a path is
//! freed, the next claimant is woken.

use std::collections::HashMap;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr};

use crate::domain::names;
use crate::domain::route_owner::{Claimant, RouteIndex};
use crate::domain::site::Site;
use crate::engine::ObjectKey;

/// What one Site claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// `metadata.uid`.
    pub uid: String,
    /// `spec.id`.
    pub id: String,
    /// `metadata.creationTimestamp`.
    pub created: jiff::Timestamp,
    /// The path it asks for.
    pub wanted: Option<String>,
    /// The path of the route that it has, as its status remembers.
    pub held: Option<String>,
}

impl Claim {
    /// What a Site claims now.
    #[must_use]
    pub fn of(site: &Site) -> Self {
        let created = site.metadata.creation_timestamp.as_ref().map_or(jiff::Timestamp::UNIX_EPOCH, |time| time.0);
        Self {
            uid: site.metadata.uid.clone().unwrap_or_default(),
            id: site.spec.id.clone(),
            created,
            wanted: names::public_path(site),
            held: site.status.as_ref().and_then(|status| status.handled.as_ref()?.path.clone()),
        }
    }
}

/// Messages.
pub enum RouteMessage {
    /// A Site as it is now; `None` when it is gone or cannot be read.
    Site(ObjectKey, Option<Claim>),
    /// A pass has found or made a route of this path for the Site.
    Holds(ObjectKey, String),
    /// Who owns this path?
    Owner(String, RpcReplyPort<Option<Claimant>>),
}

/// Wakes the Site of a key.
pub type Wake = Box<dyn Fn(ObjectKey) + Send + Sync>;

/// The actor's type.
pub struct RouteOwner;

/// Starts the route owner. The future ends with it, by a panic too, and names it: without the index no path can be
/// given, so only a new process helps.
pub async fn start(wake: Wake) -> Result<(ActorRef<RouteMessage>, impl Future<Output = &'static str>), SpawnErr> {
    let (routes, ended) = Actor::spawn(None, RouteOwner, wake).await?;
    let ended = async move {
        // A panic is an end too.
        let _ = ended.await;
        "route owner"
    };
    Ok((routes, ended))
}

/// The actor's memory.
pub struct RouteOwnerState {
    index: RouteIndex,
    claims: HashMap<ObjectKey, Claim>,
    keys: HashMap<String, ObjectKey>,
    wake: Wake,
}

impl Actor for RouteOwner {
    type Msg = RouteMessage;
    type State = RouteOwnerState;
    type Arguments = Wake;

    async fn pre_start(&self, _: ActorRef<RouteMessage>, wake: Wake) -> Result<RouteOwnerState, ActorProcessingErr> {
        Ok(RouteOwnerState { index: RouteIndex::default(), claims: HashMap::new(), keys: HashMap::new(), wake })
    }

    async fn handle(
        &self,
        _: ActorRef<RouteMessage>,
        message: RouteMessage,
        state: &mut RouteOwnerState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            RouteMessage::Site(key, claim) => state.replace(&key, claim),
            RouteMessage::Holds(key, path) => {
                if let Some(claim) = state.claims.get(&key).cloned() {
                    state.replace(&key, Some(Claim { held: Some(path), ..claim }));
                }
            }
            RouteMessage::Owner(path, reply) => {
                // A pass that was aborted waits for no answer.
                let _ = reply.send(state.index.owner(&path).cloned());
            }
        }
        Ok(())
    }
}

impl RouteOwnerState {
    fn replace(&mut self, key: &ObjectKey, new: Option<Claim>) {
        if self.claims.get(key) == new.as_ref() {
            return;
        }
        let old = self.claims.remove(key);
        let mut freed: Vec<Claimant> = Vec::new();
        if let Some(old) = old.filter(|old| new.as_ref().is_none_or(|new| new.uid != old.uid)) {
            freed.extend(self.index.release(&old.uid));
            self.keys.remove(&old.uid);
        }
        if let Some(claim) = new {
            let claimant = |owns_route| Claimant {
                uid: claim.uid.clone(),
                id: claim.id.clone(),
                created: claim.created,
                owns_route,
            };
            for path in self.index.claims(&claim.uid) {
                if Some(&path) != claim.wanted.as_ref() && Some(&path) != claim.held.as_ref() {
                    freed.extend(self.index.release_path(&path, &claim.uid));
                }
            }
            if let Some(held) = &claim.held {
                self.index.claim(held, claimant(true));
            }
            if let Some(wanted) = claim.wanted.as_ref().filter(|wanted| claim.held.as_ref() != Some(wanted)) {
                self.index.claim(wanted, claimant(false));
            }
            self.keys.insert(claim.uid.clone(), key.clone());
            self.claims.insert(key.clone(), claim);
        }
        for claimant in freed {
            if let Some(key) = self.keys.get(&claimant.uid) {
                (self.wake)(key.clone());
            }
        }
    }
}
