//! The third party: watches the API server and says when each object and each status came to be. It shares no watch
//! with the operator and asks it nothing.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, PartialObjectMeta};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Config, Event};
use serde_json::Value;
use sites::domain::labels;
use sites::domain::site::Site;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::ground::{Ground, NAMESPACE, Parts};

/// Objects of a Site of this load test.
pub const OBJECTS: usize = 8;
/// Time before a watch that failed begins again.
const RECOVERY: Duration = Duration::from_millis(100);

/// What was seen, and when.
#[derive(Debug)]
pub struct Seen {
    /// When the event had been read.
    pub at: Instant,
    /// Of which Site; empty for the Lease.
    pub site: String,
    /// What.
    pub what: What,
}

/// What was seen.
#[derive(Debug)]
pub enum What {
    /// An object of the Site exists: kind and name.
    Object(&'static str, String),
    /// The Site's status.
    Status(Status),
    /// A pod of the Site runs and is ready.
    PodRuns,
    /// The holder of the Lease; empty if it is free.
    Leader(String),
}

/// What of a Site's status counts.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// `phase`.
    pub phase: String,
    /// `Ready` is True for the present generation.
    pub ready: bool,
}

/// A running observer.
pub struct Observer {
    events: mpsc::UnboundedReceiver<Seen>,
    _watches: JoinSet<()>,
}

impl Observer {
    /// Starts the watches and waits until each has listed what is there. What the lists held is told too.
    pub async fn start(ground: &Ground) -> Result<Self> {
        let client = ground.admin.client().clone();
        let (tell, events) = mpsc::unbounded_channel();
        let (synced, mut lists) = mpsc::channel(16);
        let mut watches = JoinSet::new();
        let mut count = 0;
        macro_rules! metadata {
            ($($kind:ty),*) => {$(
                let api = Api::<PartialObjectMeta<$kind>>::namespaced(client.clone(), NAMESPACE);
                let stream = watcher::watcher(api, labelled());
                watches.spawn(follow(stream, tell.clone(), synced.clone(), |object: PartialObjectMeta<$kind>| {
                    let site = object.labels().get(labels::ID)?.clone();
                    Some((site, What::Object(<$kind as k8s_openapi::Resource>::KIND, object.name_any())))
                }));
                count += 1;
            )*};
        }
        metadata!(Secret, ConfigMap, PersistentVolumeClaim, StatefulSet, Service, Ingress);
        let resource = ApiResource::erase::<Site>(&());
        let sites = Api::<DynamicObject>::namespaced_with(client.clone(), NAMESPACE, &resource);
        watches.spawn(follow(watcher::watcher(sites, plain()), tell.clone(), synced.clone(), status));
        let leases = Api::<Lease>::namespaced(client.clone(), NAMESPACE);
        watches.spawn(follow(watcher::watcher(leases, plain()), tell.clone(), synced.clone(), |lease: Lease| {
            Some((String::new(), What::Leader(lease.spec?.holder_identity.unwrap_or_default())))
        }));
        count += 2;
        if ground.standing.parts == Parts::Whole {
            let pods = Api::<Pod>::namespaced(client, NAMESPACE);
            watches.spawn(follow(watcher::watcher(pods, labelled()), tell.clone(), synced.clone(), running));
            count += 1;
        }
        for _ in 0..count {
            lists.recv().await.context("a watch of the observer ended")?;
        }
        Ok(Self { events, _watches: watches })
    }

    /// The next event, within a time.
    pub async fn next(&mut self, patience: Duration) -> Result<Seen> {
        match tokio::time::timeout(patience, self.events.recv()).await {
            Ok(Some(seen)) => Ok(seen),
            Ok(None) => bail!("the observer ended"),
            Err(_) => bail!("nothing was seen for {} s", patience.as_secs()),
        }
    }

    /// Drops what has been seen so far.
    pub fn forget(&mut self) {
        while self.events.try_recv().is_ok() {}
    }

    /// Waits until somebody holds the Lease who is not the load test, and says since when.
    pub async fn until_led(&mut self, patience: Duration) -> Result<Instant> {
        loop {
            let seen = self.next(patience).await?;
            if matches!(&seen.what, What::Leader(holder) if !holder.is_empty() && holder != "loadtest") {
                return Ok(seen.at);
            }
        }
    }

    /// Waits until `goal` is reached for all of `sites` and gives the moment for each.
    pub async fn until(&mut self, sites: &[String], goal: &Goal, patience: Duration) -> Result<Vec<Instant>> {
        let mut open: HashMap<&str, Progress> = sites.iter().map(|site| (site.as_str(), Progress::default())).collect();
        let mut reached = Vec::with_capacity(sites.len());
        while !open.is_empty() {
            let seen = self.next(patience).await.with_context(|| {
                let first = open.iter().next().map(|(site, progress)| format!("{site}: {progress:?}"));
                format!("{} Sites never reached {goal:?}; {}", open.len(), first.unwrap_or_default())
            })?;
            let Some(progress) = open.get_mut(seen.site.as_str()) else { continue };
            progress.fold(&seen);
            if progress.reached(goal) {
                reached.push(seen.at);
                open.remove(seen.site.as_str());
            }
        }
        Ok(reached)
    }
}

/// What a Site is to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goal {
    /// All objects exist and the status says Ready.
    Made,
    /// All objects exist and the pod runs, whatever the status says.
    PodRuns,
    /// As [`Self::Made`], the pod runs and the status says so.
    Runs,
    /// After an edit that replaces the pod: the edit is done, the new pod runs and the status says so.
    RunsAgain,
    /// The status has this phase.
    Phase(&'static str),
}

/// What is known of one Site.
#[derive(Debug, Default)]
pub struct Progress {
    objects: HashSet<(&'static str, String)>,
    status: Status,
    pod_runs: bool,
}

impl Progress {
    /// Folds what was seen.
    pub fn fold(&mut self, seen: &Seen) {
        match &seen.what {
            What::Object(kind, name) => {
                self.objects.insert((kind, name.clone()));
            }
            What::Status(status) => self.status = status.clone(),
            What::PodRuns => self.pod_runs = true,
            What::Leader(_) => {}
        }
    }

    /// Whether the goal is reached.
    #[must_use]
    pub fn reached(&self, goal: &Goal) -> bool {
        let objects = self.objects.len() >= OBJECTS;
        match goal {
            Goal::Made => objects && self.status.ready,
            Goal::PodRuns => objects && self.pod_runs,
            Goal::Runs => objects && self.pod_runs && self.status.ready && self.status.phase == "Running",
            Goal::RunsAgain => self.pod_runs && self.status.ready && self.status.phase == "Running",
            Goal::Phase(phase) => self.status.phase == *phase,
        }
    }
}

fn labelled() -> Config {
    plain().labels(labels::ID)
}

fn plain() -> Config {
    Config::default().streaming_lists()
}

async fn follow<K>(
    stream: impl futures::Stream<Item = watcher::Result<Event<K>>>,
    tell: mpsc::UnboundedSender<Seen>,
    synced: mpsc::Sender<()>,
    read: impl Fn(K) -> Option<(String, What)>,
) {
    let mut stream = std::pin::pin!(stream);
    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                let at = Instant::now();
                if let Some((site, what)) = read(object)
                    && tell.send(Seen { at, site, what }).is_err()
                {
                    return;
                }
            }
            Ok(Event::InitDone) => {
                // Only the first list is waited for.
                let _ = synced.try_send(());
            }
            Ok(_) => {}
            Err(error) => {
                eprintln!("observer: {error}");
                tokio::time::sleep(RECOVERY).await;
            }
        }
    }
}

fn status(site: DynamicObject) -> Option<(String, What)> {
    let status = site.data.get("status").unwrap_or(&Value::Null);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let current = status["observedGeneration"].as_i64() == site.metadata.generation;
    let ready = status["conditions"]
        .as_array()
        .is_some_and(|all| all.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True"));
    let seen = Status { phase: text(&status["phase"]), ready: ready && current };
    Some((site.metadata.name?, What::Status(seen)))
}

fn running(pod: Pod) -> Option<(String, What)> {
    let site = pod.labels().get(labels::ID)?.clone();
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let status = pod.status?;
    let ready = status.conditions.iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True");
    (ready && status.phase.as_deref() == Some("Running")).then_some((site, What::PodRuns))
}
