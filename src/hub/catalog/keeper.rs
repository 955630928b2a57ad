//! The actor that keeps the [`Index`] true to the watch of the Sites.
//!
//! Readers share the index and wait for nobody; only this actor writes it. Before the first list is complete the
//! Hub is not ready.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use futures::StreamExt;
use ractor::{Actor, ActorProcessingErr, ActorRef, SpawnErr};
use tracing::{info, warn};

use super::super::actor::{Ended, started};
use super::index::Index;
use crate::cluster::{Cluster, WatchEvent, WatchSpec, watch};
use crate::domain::site::{Site, Tokens};
use crate::telemetry::Metrics;

/// Name of the actor in metrics.
const ACTOR: &str = "catalog";

/// The Sites, in memory; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Catalog(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    index: RwLock<Index>,
    synced: AtomicBool,
}

impl Catalog {
    /// Starts the actor and its watch.
    pub async fn start(
        cluster: &Cluster,
        namespace: &str,
        host: Option<&str>,
        metrics: &Metrics,
    ) -> Result<(Self, Ended), SpawnErr> {
        let catalog = Self::default();
        catalog.change(|index| *index = Index::on_host(host));
        let (keeper, ended) = started(ACTOR, Keeper, catalog.clone(), metrics).await?;
        let spec = WatchSpec { ns: Some(namespace.to_owned()), ..WatchSpec::default() };
        let mut events = watch::<Site>(cluster, spec, without_secrets);
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if keeper.cast(CatalogMessage::Watched(Box::new(event))).is_err() {
                    return;
                }
            }
        });
        Ok((catalog, ended))
    }

    /// The index as it is now. Do not hold it over an `await`.
    pub fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.0.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the first list is complete.
    #[must_use]
    pub fn synced(&self) -> bool {
        self.0.synced.load(Ordering::Acquire)
    }

    /// A Site as the API server has just answered it: whoever reads the list next finds it there.
    pub fn note(&self, site: Site) {
        self.change(|index| index.put(site));
    }

    /// A Site that has just been deleted.
    pub fn forget(&self, id: &str) {
        self.change(|index| index.remove(id));
    }

    fn change(&self, change: impl FnOnce(&mut Index)) {
        change(&mut self.0.index.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A list has no use for a master token, and what is not kept cannot leak.
fn without_secrets(site: &mut Site) {
    site.spec.configuration.tokens = Tokens::default();
}

/// Messages.
#[derive(Debug)]
pub enum CatalogMessage {
    /// What the watch tells.
    Watched(Box<WatchEvent<Site>>),
}

/// The actor's type.
pub struct Keeper;

/// The actor's memory.
pub struct KeeperState {
    catalog: Catalog,
    /// Ids that the list under way has shown.
    listed: HashSet<String>,
}

impl Actor for Keeper {
    type Msg = CatalogMessage;
    type State = KeeperState;
    type Arguments = Catalog;

    async fn pre_start(
        &self,
        _: ActorRef<CatalogMessage>,
        catalog: Catalog,
    ) -> Result<KeeperState, ActorProcessingErr> {
        Ok(KeeperState { catalog, listed: HashSet::new() })
    }

    async fn handle(
        &self,
        _: ActorRef<CatalogMessage>,
        CatalogMessage::Watched(event): CatalogMessage,
        state: &mut KeeperState,
    ) -> Result<(), ActorProcessingErr> {
        match *event {
            WatchEvent::Relist => state.listed.clear(),
            WatchEvent::Seen { object, listed } => {
                if listed {
                    state.listed.insert(object.spec.id.clone());
                }
                state.catalog.change(|index| index.put(object));
            }
            // It was shown as it was; what cannot be read cannot be shown.
            WatchEvent::Broken { name, error, .. } => {
                warn!(site = name, error, "a Site cannot be decoded: it is left out of the list");
                state.catalog.change(|index| index.remove(&name));
            }
            WatchEvent::Gone { name, .. } => state.catalog.change(|index| index.remove(&name)),
            WatchEvent::Synced => {
                let kept = std::mem::take(&mut state.listed);
                state.catalog.change(|index| index.retain(|id| kept.contains(id)));
                if !state.catalog.0.synced.swap(true, Ordering::AcqRel) {
                    info!(sites = kept.len(), "the list of Sites is complete");
                }
            }
        }
        Ok(())
    }
}
