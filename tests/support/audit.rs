//! Reads the API server's audit log: who asked for what, and the answer. Judges nothing.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::Value;

/// The audit log of a control plane. An event is written when its request is done, which may be a moment after the
/// client has the answer: a test that expects a count polls for it.
#[derive(Debug, Clone)]
pub struct Audit {
    log: PathBuf,
}

/// A place in the log.
#[derive(Debug, Clone, Copy)]
pub struct Mark(u64);

impl Mark {
    /// The beginning of the log.
    pub const START: Mark = Mark(0);
}

/// One completed request.
#[derive(Debug, Clone)]
pub struct Call {
    pub verb: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub code: u16,
    pub user: String,
    pub user_agent: String,
    pub at: Timestamp,
    pub request_uri: String,
}

impl Audit {
    pub fn new(log: PathBuf) -> Self {
        Self { log }
    }

    /// The end of the log as it is now.
    pub fn mark(&self) -> Mark {
        Mark(std::fs::metadata(&self.log).map_or(0, |data| data.len()))
    }

    /// The requests completed since `mark`, in order.
    pub fn calls(&self, mark: Mark) -> Calls {
        let mut file = std::fs::File::open(&self.log).expect("the audit log");
        file.seek(SeekFrom::Start(mark.0)).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        // The server may be in the middle of a line; and a mark taken then begins in one.
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines = bytes[..complete].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        Calls(lines.filter_map(|line| serde_json::from_slice(line).ok()).map(|event| call(&event)).collect())
    }
}

fn call(event: &Value) -> Call {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &event["objectRef"];
    Call {
        verb: text(&event["verb"]),
        resource: text(&object["resource"]),
        subresource: text(&object["subresource"]),
        namespace: text(&object["namespace"]),
        name: text(&object["name"]),
        code: event["responseStatus"]["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or_default(),
        user: text(&event["user"]["username"]),
        user_agent: text(&event["userAgent"]),
        at: text(&event["requestReceivedTimestamp"]).parse().unwrap_or_default(),
        request_uri: text(&event["requestURI"]),
    }
}

/// Requests, to be narrowed and counted.
#[derive(Debug, Clone)]
pub struct Calls(pub Vec<Call>);

impl Calls {
    pub fn filter(self, keep: impl Fn(&Call) -> bool) -> Self {
        Self(self.0.into_iter().filter(|call| keep(call)).collect())
    }

    /// Those about objects of a namespace.
    pub fn in_namespace(self, namespace: &str) -> Self {
        self.filter(|call| call.namespace == namespace)
    }

    /// Those of a user, such as [`super::World::operator_user`].
    pub fn by_user(self, user: &str) -> Self {
        self.filter(|call| call.user == user)
    }

    /// Those of a program, or of one process of it (see [`super::Operator::agent`]).
    pub fn by_agent(self, part: &str) -> Self {
        self.filter(|call| call.user_agent.contains(part))
    }

    /// Those about a kind of object.
    pub fn of(self, resource: &str) -> Self {
        self.filter(|call| call.resource == resource)
    }

    /// Those that would change something.
    pub fn writes(self) -> Self {
        const WRITES: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];
        self.filter(|call| WRITES.contains(&call.verb.as_str()))
    }

    /// Those that the server did.
    pub fn accepted(self) -> Self {
        self.filter(|call| (200..300).contains(&call.code))
    }

    /// Without Leases, Events, watches and the lists before them: what a pass costs.
    pub fn of_passes(self) -> Self {
        self.filter(|call| {
            !matches!(call.resource.as_str(), "leases" | "events" | "")
                && !matches!(call.verb.as_str(), "watch" | "list")
        })
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn count_by_verb(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for call in &self.0 {
            *counts.entry(call.verb.clone()).or_default() += 1;
        }
        counts
    }

    /// One line each, for messages.
    pub fn describe(&self) -> String {
        let line = |call: &Call| {
            format!(
                "{} {} {}/{}{}{} {}",
                call.at,
                call.verb,
                call.resource,
                call.name,
                if call.subresource.is_empty() { "" } else { "/" },
                call.subresource,
                call.code
            )
        };
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}
