//! One long-lived stream per watched kind, which never ends and never loses an object.
//!
//! Owns the recovery: backoff, the change to paged lists where the server refuses streaming ones, a fresh
//! list where it no longer knows our version. Built on `kube::runtime::watcher`, whose raw events are kept:
//! after a re-list absence is the only sign of a deletion. Must not keep objects.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use futures::stream::{self, BoxStream, Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use kube::api::{Api, ApiResource};
use kube::core::DynamicResourceScope;
use kube::runtime::watcher::{self, Config, Event, InitialListStrategy};
use rand::RngExt;
use serde::de::DeserializeOwned;

use super::connect::Cluster;
use super::decode::{Guarded, Slim};
use super::kind::{ApiObject, Kind};
use super::recovery::{Backoff, Remedy, plain, remedy};
use crate::telemetry::Metrics;

/// Validity of one watch request, enforced by the server; a connection that is silent for longer is dead.
const SERVER_TIMEOUT: Duration = Duration::from_secs(290);

/// What to watch.
#[derive(Clone, Debug, Default)]
pub struct WatchSpec {
    /// Namespace; `None` is the whole cluster.
    pub ns: Option<String>,
    /// Label selector.
    pub selector: Option<String>,
    /// Field selector.
    pub field: Option<String>,
    /// Validity of one watch request; `None` is 290 s. A dead connection is noticed 5 s after it.
    pub timeout: Option<Duration>,
}

/// What a watch tells, in order.
#[derive(Clone, Debug)]
pub enum WatchEvent<K> {
    /// A complete list begins. What does not appear before [`Self::Synced`] is gone. A list that breaks off
    /// is followed by another [`Self::Relist`] and counts for nothing.
    Relist,
    /// An object as it is now.
    Seen {
        /// The object, pruned.
        object: K,
        /// Part of a list, not a change.
        listed: bool,
    },
    /// An object exists whose content does not fit its type.
    Broken {
        /// Its namespace.
        namespace: Option<String>,
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
        /// Its generation.
        generation: Option<i64>,
        /// Its resource version.
        resource_version: String,
        /// Where it departs from the type, without the value.
        error: String,
        /// Part of a list, not a change.
        listed: bool,
    },
    /// An object was deleted.
    Gone {
        /// Its namespace.
        namespace: Option<String>,
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
        /// Its labels, as they were last.
        labels: BTreeMap<String, String>,
        /// Its owners, as they were last.
        owner_references: Vec<OwnerReference>,
    },
    /// The list is complete.
    Synced,
}

/// What a metadata-only watch, or the answer to a write, tells of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// Namespace.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Owners.
    pub owner_references: Vec<OwnerReference>,
    /// Resource version.
    pub resource_version: String,
    /// Generation; absent for kinds without one.
    pub generation: Option<i64>,
    /// Whether it is being deleted.
    pub terminating: bool,
}

/// Watches a type in full. `managedFields` never arrive; `prune` drops what else nobody reads.
pub fn watch<K: ApiObject>(
    cluster: &Cluster,
    spec: WatchSpec,
    prune: fn(&mut K),
) -> impl Stream<Item = WatchEvent<K>> + Send + use<K> {
    let kind = Kind::of::<K>();
    lasting::<Guarded<K>, K>(cluster, kind, spec, move |guarded, listed| match guarded {
        Guarded::Object(mut object) => {
            prune(&mut object);
            WatchEvent::Seen { object, listed }
        }
        Guarded::Broken { meta, error } => WatchEvent::Broken {
            namespace: meta.namespace,
            name: meta.name.unwrap_or_default(),
            uid: meta.uid.unwrap_or_default(),
            generation: meta.generation,
            resource_version: meta.resource_version.unwrap_or_default(),
            error,
            listed,
        },
    })
}

/// Watches the metadata alone: a third of the bytes.
pub fn watch_metadata(
    cluster: &Cluster,
    kind: Kind,
    spec: WatchSpec,
) -> impl Stream<Item = WatchEvent<Metadata>> + Send + use<> {
    lasting::<Slim, Metadata>(cluster, kind, spec, |Slim(meta), listed| WatchEvent::Seen {
        object: Metadata::from(meta),
        listed,
    })
}

impl From<ObjectMeta> for Metadata {
    fn from(meta: ObjectMeta) -> Self {
        Self {
            namespace: meta.namespace,
            name: meta.name.unwrap_or_default(),
            uid: meta.uid.unwrap_or_default(),
            labels: meta.labels.unwrap_or_default(),
            annotations: meta.annotations.unwrap_or_default(),
            owner_references: meta.owner_references.unwrap_or_default(),
            resource_version: meta.resource_version.unwrap_or_default(),
            generation: meta.generation,
            terminating: meta.deletion_timestamp.is_some(),
        }
    }
}

type Raw<R> = BoxStream<'static, Result<Event<R>, watcher::Error>>;

/// The state of one lasting watch.
struct Watch<R> {
    api: Api<R>,
    metrics: Metrics,
    kind: String,
    config: Config,
    raw: Raw<R>,
    /// The text last logged as an error; empty while all is well.
    said: String,
    backoff: Backoff,
    /// Whether a list is complete and changes follow.
    synced: bool,
}

fn lasting<R, K>(
    cluster: &Cluster,
    kind: Kind,
    spec: WatchSpec,
    seen: impl Fn(R, bool) -> WatchEvent<K> + Send + 'static,
) -> BoxStream<'static, WatchEvent<K>>
where
    R: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
    K: Send + 'static,
{
    cluster.road.name_kind(&kind.plural, &kind.kind);
    cluster.road.metrics.watches(&kind.kind);
    let resource = kind.resource();
    let api = match &spec.ns {
        Some(ns) => Api::namespaced_with(cluster.client.clone(), ns, &resource),
        None => Api::all_with(cluster.client.clone(), &resource),
    };
    let timeout = spec.timeout.unwrap_or(SERVER_TIMEOUT).as_secs().max(1);
    let config = Config {
        label_selector: spec.selector,
        field_selector: spec.field,
        timeout: Some(u32::try_from(timeout).unwrap_or(u32::MAX)),
        initial_list_strategy: InitialListStrategy::StreamingList,
        ..Config::default()
    };
    let raw = watcher::watcher(api.clone(), config.clone()).boxed();
    let watch = Watch {
        api,
        metrics: cluster.road.metrics.clone(),
        kind: kind.kind.into_owned(),
        config,
        raw,
        said: String::new(),
        backoff: Backoff::default(),
        synced: false,
    };
    stream::unfold((watch, seen), |(mut watch, seen)| async move {
        let event = match watch.next().await {
            Event::Init => WatchEvent::Relist,
            Event::InitApply(object) => seen(object, true),
            Event::Apply(object) => seen(object, false),
            Event::InitDone => WatchEvent::Synced,
            Event::Delete(object) => {
                let meta = object.meta();
                WatchEvent::Gone {
                    namespace: meta.namespace.clone(),
                    name: meta.name.clone().unwrap_or_default(),
                    uid: meta.uid.clone().unwrap_or_default(),
                    labels: meta.labels.clone().unwrap_or_default(),
                    owner_references: meta.owner_references.clone().unwrap_or_default(),
                }
            }
        };
        Some((event, (watch, seen)))
    })
    .boxed()
}

impl<R> Watch<R>
where
    R: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    async fn next(&mut self) -> Event<R> {
        loop {
            match self.raw.next().await {
                Some(Ok(event)) => {
                    if !std::mem::take(&mut self.said).is_empty() {
                        tracing::info!(kind = %self.kind, "the watch works again");
                    }
                    match event {
                        Event::Init => self.synced = false,
                        Event::InitDone => self.synced = true,
                        _ => {}
                    }
                    return event;
                }
                Some(Err(error)) => self.recover(&error).await,
                // kube's watcher has no end; if it had one, the answer would be a new one.
                None => self.begin_anew(),
            }
        }
    }

    async fn recover(&mut self, error: &watcher::Error) {
        self.metrics.watch_restart(&self.kind);
        let text = plain(error);
        let streaming = self.config.initial_list_strategy == InitialListStrategy::StreamingList;
        let remedy = remedy(error, self.synced, streaming);
        // The change to paged lists happens once in the life of a watch: no reason to wait.
        let delay = match remedy {
            Remedy::PagedLists => Duration::ZERO,
            _ => self.backoff.next(Instant::now(), rand::rng().random_range(0.5..1.0)),
        };
        if self.said == text {
            tracing::debug!(kind = %self.kind, error = %text, ?delay, "the watch failed again");
        } else {
            tracing::warn!(kind = %self.kind, error = %text, ?delay, "the watch failed, it begins again");
            self.said = text;
        }
        match remedy {
            Remedy::Resume => {}
            Remedy::BeginAnew => self.begin_anew(),
            Remedy::PagedLists => {
                self.config.initial_list_strategy = InitialListStrategy::ListWatch;
                self.begin_anew();
            }
        }
        tokio::time::sleep(delay).await;
    }

    fn begin_anew(&mut self) {
        self.synced = false;
        self.raw = watcher::watcher(self.api.clone(), self.config.clone()).boxed();
    }
}
