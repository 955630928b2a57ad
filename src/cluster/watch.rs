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
use kube::api::{Api, ApiResource, DynamicObject, PartialObjectMeta};
use kube::core::{DynamicResourceScope, Status};
use kube::runtime::watcher::{self, Config, Event, InitialListStrategy};
use rand::RngExt;
use serde::de::DeserializeOwned;

use super::calls::fault;
use super::connect::Cluster;
use super::decode::Guarded;
use super::kind::{ApiObject, Kind};
use super::transport::Fault;
use crate::telemetry::Metrics;
use crate::telemetry::masking::cut_to;

/// Validity of one watch request, enforced by the server; a connection that is silent for longer is dead.
const SERVER_TIMEOUT: Duration = Duration::from_secs(290);
const FIRST_DELAY: Duration = Duration::from_millis(800);
/// A working server is noticed within this time after an outage of any length.
const LONGEST_DELAY: Duration = Duration::from_secs(10);
/// A stream that held this long was healthy: the next failure waits the first delay again.
const HEALTHY: Duration = Duration::from_mins(1);

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
    },
    /// The list is complete.
    Synced,
}

/// What a metadata-only watch tells of an object. Annotations are dropped.
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
    lasting::<PartialObjectMeta<DynamicObject>, Metadata>(cluster, kind, spec, |object, listed| WatchEvent::Seen {
        object: Metadata::from(object.metadata),
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
        let delay = self.backoff.next(Instant::now(), rand::rng().random_range(0.5..1.0));
        if self.said == text {
            tracing::debug!(kind = %self.kind, error = %text, ?delay, "the watch failed again");
        } else {
            tracing::warn!(kind = %self.kind, error = %text, ?delay, "the watch failed, it begins again");
            self.said = text;
        }
        match remedy(error, self.synced, self.config.initial_list_strategy == InitialListStrategy::StreamingList) {
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

/// What to do about a failure besides waiting.
#[derive(Debug, PartialEq, Eq)]
enum Remedy {
    /// kube's watcher goes on where it was.
    Resume,
    /// A complete list: the server does not know our version any more. kube's watcher would ask for the same
    /// version for ever when the refusal is the HTTP status and not an event in the stream.
    BeginAnew,
    /// The server refuses streaming lists.
    PagedLists,
}

fn remedy(error: &watcher::Error, synced: bool, streaming: bool) -> Remedy {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => match status.code {
            400 | 403 | 422 if !synced && streaming => Remedy::PagedLists,
            400 | 410 | 422 if synced => Remedy::BeginAnew,
            504 if synced && is_too_large_version(status) => Remedy::BeginAnew,
            _ => Remedy::Resume,
        },
        _ => Remedy::Resume,
    }
}

/// After a restore of the store our version lies in its future.
fn is_too_large_version(status: &Status) -> bool {
    status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == "ResourceVersionTooLarge")
        || status.message.starts_with("Too large resource version")
}

/// The failure in one bounded line: the server's reason, never an object.
fn plain(error: &watcher::Error) -> String {
    let (step, inner) = match error {
        watcher::Error::InitialListFailed(inner) => ("list", inner),
        watcher::Error::WatchStartFailed(inner) => ("watch", inner),
        watcher::Error::WatchFailed(inner) => ("stream", inner),
        watcher::Error::WatchError(status) => return format!("stream: {}", refused(status)),
        watcher::Error::NoResourceVersion => return "an object without a resource version".to_owned(),
    };
    match (inner, fault(inner)) {
        // The rest of the wait differs each time; the text must not.
        (_, Some(Fault::Held(_))) => format!("{step}: the API server asked to wait"),
        (_, Some(fault)) => format!("{step}: {fault}"),
        (kube::Error::Api(status), _) => format!("{step}: {}", refused(status)),
        (kube::Error::SerdeError(_), _) => format!("{step}: an answer that is not JSON of Kubernetes"),
        (other, _) => format!("{step}: {}", cut_to(&other.to_string(), 200)),
    }
}

fn refused(status: &Status) -> String {
    format!("{} {}: {}", status.code, status.reason, cut_to(&status.message, 200))
}

/// Doubling delays with jitter, capped, and begun again after a healthy while.
#[derive(Debug, Default)]
struct Backoff {
    failures: u32,
    last: Option<Instant>,
}

impl Backoff {
    /// The next delay; `jitter` is a factor up to 1.
    fn next(&mut self, now: Instant, jitter: f64) -> Duration {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) > HEALTHY) {
            self.failures = 0;
        }
        let delay = FIRST_DELAY.saturating_mul(1 << self.failures.min(10)).min(LONGEST_DELAY).mul_f64(jitter);
        self.failures += 1;
        self.last = Some(now + delay);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(code: u16, message: &str) -> watcher::Error {
        let status = Status::failure(message, "").with_code(code);
        watcher::Error::WatchStartFailed(kube::Error::Api(status.boxed()))
    }

    #[test]
    fn remedies() {
        let cases = [
            (start(422, ""), false, true, Remedy::PagedLists),
            (start(403, ""), false, true, Remedy::PagedLists),
            (start(403, ""), false, false, Remedy::Resume),
            (start(403, ""), true, true, Remedy::Resume),
            (start(410, ""), true, true, Remedy::BeginAnew),
            (start(504, "Too large resource version: 9, current: 3"), true, true, Remedy::BeginAnew),
            (start(504, "timeout"), true, true, Remedy::Resume),
            (start(429, ""), true, true, Remedy::Resume),
            (start(401, ""), true, true, Remedy::Resume),
            (watcher::Error::NoResourceVersion, true, true, Remedy::Resume),
        ];
        for (error, synced, streaming, expected) in cases {
            assert_eq!(remedy(&error, synced, streaming), expected, "{error}");
        }
    }

    #[test]
    fn delays_grow_to_the_cap_and_begin_again() {
        let (mut backoff, mut now) = (Backoff::default(), Instant::now());
        let mut delays = Vec::new();
        for _ in 0..6 {
            let delay = backoff.next(now, 1.0);
            now += delay;
            delays.push(delay.as_millis());
        }
        assert_eq!(delays, [800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(backoff.next(now + HEALTHY + FIRST_DELAY, 0.5), FIRST_DELAY / 2);
    }
}
