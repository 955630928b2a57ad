//! Kubernetes Events about an object, for people who read `kubectl describe`.
//!
//! Owns one recorder, its queue and its rate. Never fails and never delays the caller: what does not fit is
//! dropped. An Event is a write: without leadership none is sent. Needs create and patch on
//! `events.k8s.io/events`.

use std::num::NonZeroU32;

use governor::{Quota, RateLimiter};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tokio::sync::mpsc;

use super::calls::fault;
use super::connect::Cluster;
use super::kind::Kind;
use super::transport::Fault;

/// Events kept while the API server is slow.
const QUEUE: usize = 256;
/// Events a second over time; an outage must not end in one request per failure.
const RATE: NonZeroU32 = match NonZeroU32::new(5) {
    Some(rate) => rate,
    None => NonZeroU32::MIN,
};
/// Events that may follow each other at once.
const BURST: NonZeroU32 = match NonZeroU32::new(25) {
    Some(burst) => burst,
    None => NonZeroU32::MIN,
};
/// The API's limits, in bytes.
const LONGEST_NOTE: usize = 1024;
const LONGEST_WORD: usize = 128;

/// How serious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// As expected.
    Normal,
    /// Somebody should look.
    Warning,
}

/// The object that an Event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regarding {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; Events of cluster-scoped objects go to `default`.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// A queue to the one recorder; cheap to clone. The recorder ends with the last clone.
#[derive(Clone, Debug)]
pub struct Events(mpsc::Sender<(ObjectReference, Event)>);

impl Events {
    /// Starts the recorder. `controller` and `instance` are shown as the source.
    #[must_use]
    pub fn start(cluster: &Cluster, controller: &str, instance: &str) -> Self {
        let reporter = Reporter { controller: controller.to_owned(), instance: Some(instance.to_owned()) };
        let recorder = Recorder::new(cluster.client.clone(), reporter);
        cluster.road.name_kind("events", "Event");
        let (sender, queue) = mpsc::channel(QUEUE);
        tokio::spawn(drain(recorder, queue));
        Self(sender)
    }

    /// Queues an Event. `reason` and `action` are words such as `RouteConflict`; `note` is for people, is cut
    /// at 1024 bytes and must hold no secret.
    pub fn publish(&self, regarding: &Regarding, kind: EventKind, reason: &str, action: &str, note: &str) {
        let reference = ObjectReference {
            api_version: Some(regarding.kind.api_version()),
            kind: Some(regarding.kind.kind.to_string()),
            namespace: regarding.namespace.clone(),
            name: Some(regarding.name.clone()),
            uid: Some(regarding.uid.clone()),
            ..ObjectReference::default()
        };
        let event = Event {
            type_: match kind {
                EventKind::Normal => EventType::Normal,
                EventKind::Warning => EventType::Warning,
            },
            reason: cut_bytes(reason, LONGEST_WORD),
            action: cut_bytes(action, LONGEST_WORD),
            note: Some(cut_bytes(note, LONGEST_NOTE)),
            secondary: None,
        };
        if self.0.try_send((reference, event)).is_err() {
            tracing::debug!(reason, "the Event queue is full, the Event is dropped");
        }
    }
}

async fn drain(recorder: Recorder, mut queue: mpsc::Receiver<(ObjectReference, Event)>) {
    let rate = RateLimiter::direct(Quota::per_second(RATE).allow_burst(BURST));
    let mut said = false;
    while let Some((regarding, event)) = queue.recv().await {
        rate.until_ready().await;
        match recorder.publish(&event, &regarding).await {
            Ok(()) => said = false,
            Err(error) if matches!(fault(&error), Some(Fault::NotLeader)) => {}
            Err(error) if said => tracing::debug!(reason = event.reason, code = code(&error), "an Event is lost"),
            Err(error) => {
                tracing::warn!(reason = event.reason, code = code(&error), "Events are lost; this is said once");
                said = true;
            }
        }
    }
}

/// The status alone: the server's words may repeat the note.
fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

fn cut_bytes(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_cut_between_characters() {
        assert_eq!(cut_bytes("short", 1024), "short");
        assert_eq!(cut_bytes("aéé", 2), "a");
        assert_eq!(cut_bytes("aéé", 3), "aé");
    }
}
