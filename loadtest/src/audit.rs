//! Counts what the operator asked of the API server, from the server's own audit log.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

/// The log of one server.
#[derive(Debug)]
pub struct Audit {
    log: PathBuf,
    from: u64,
}

/// Requests by verb, resource and answer, such as `create secrets` (refused ones end in their code).
pub type Calls = BTreeMap<String, u64>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: Object,
    #[serde(default)]
    response_status: Status,
}

#[derive(Deserialize, Default)]
struct Object {
    #[serde(default)]
    resource: String,
    #[serde(default)]
    subresource: String,
}

#[derive(Deserialize, Default)]
struct Status {
    #[serde(default)]
    code: u16,
}

impl Audit {
    /// Counts from now on.
    pub fn from_now(log: &Path) -> Result<Self> {
        let length = std::fs::metadata(log).context("the audit log")?.len();
        Ok(Self { log: log.to_owned(), from: length })
    }

    /// What operators asked since then. Leases, Events, watches and the lists before them are not counted.
    pub fn calls(&self) -> Result<Calls> {
        let mut file = std::fs::File::open(&self.log)?;
        file.seek(SeekFrom::Start(self.from))?;
        let mut calls = Calls::new();
        for line in BufReader::new(file).lines() {
            // The server may be in the middle of its last line.
            let Ok(event) = serde_json::from_str::<Event>(&line?) else { continue };
            if let Some(name) = counted(&event) {
                *calls.entry(name).or_default() += 1;
            }
        }
        Ok(calls)
    }
}

fn counted(event: &Event) -> Option<String> {
    let object = &event.object_ref;
    let ours = event.user_agent.starts_with("sites-operator/");
    let read_of_many = matches!(event.verb.as_str(), "watch" | "list");
    if !ours || read_of_many || matches!(object.resource.as_str(), "" | "leases" | "events") {
        return None;
    }
    let slash = if object.subresource.is_empty() { "" } else { "/" };
    let mut name = format!("{} {}{slash}{}", event.verb, object.resource, object.subresource);
    if !(200..300).contains(&event.response_status.code) {
        name = format!("{name} {}", event.response_status.code);
    }
    Some(name)
}

/// Writes among calls.
#[must_use]
pub fn writes(calls: &Calls) -> u64 {
    calls.iter().filter(|(name, _)| !name.starts_with("get ")).map(|(_, count)| count).sum()
}

/// Reads of single objects among calls.
#[must_use]
pub fn reads(calls: &Calls) -> u64 {
    calls.iter().filter(|(name, _)| name.starts_with("get ")).map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn name(verb: &str, agent: &str, object: &Value, code: u16) -> Option<String> {
        let event = json!({"verb": verb, "userAgent": agent, "objectRef": object, "responseStatus": {"code": code}});
        counted(&serde_json::from_value(event).unwrap())
    }

    #[test]
    fn only_what_passes_ask_is_counted() {
        let ours = "sites-operator/0.1.0 (1)";
        let status = json!({"resource": "sites", "subresource": "status"});
        let secrets = json!({"resource": "secrets"});
        assert_eq!(name("patch", ours, &status, 200).as_deref(), Some("patch sites/status"));
        assert_eq!(name("create", ours, &secrets, 409).as_deref(), Some("create secrets 409"));
        assert_eq!(name("list", ours, &secrets, 200), None);
        assert_eq!(name("update", ours, &json!({"resource": "leases"}), 200), None);
        assert_eq!(name("create", "sites-loadtest-bare", &secrets, 201), None);
    }
}
