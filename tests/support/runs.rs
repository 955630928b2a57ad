//! Bulk runs as a platform administrator sees them, and what they wrote as the API server saw it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::audit::{Calls, Mark};
use super::hub::{HubProcess, Told};
use super::openid::OpenId;
use super::wait::eventually;
use super::world::World;

pub const UPGRADE: &str = "/hub/api/v2/sites/upgrade/";
pub const RESTART: &str = "/hub/api/v2/sites/restart/";

/// A Hub with its provider's tokens.
pub struct Administrator<'a> {
    pub hub: &'a HubProcess,
    token: String,
}

impl<'a> Administrator<'a> {
    pub fn of(hub: &'a HubProcess, openid: &OpenId) -> Self {
        Self { hub, token: openid.token("carol-admin") }
    }

    pub async fn get(&self, path: &str) -> Told {
        self.hub.get(path, &self.token).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Told {
        self.hub.json("POST", path, &self.token, body).await
    }

    /// Begins a run and gives its id.
    pub async fn begin(&self, path: &str) -> String {
        let told = self.post(path, &Value::Null).await;
        assert_eq!(told.status, 202, "{}", told.text());
        let told = told.json();
        assert_eq!(told["status"], "accepted");
        told["run"].as_str().unwrap().to_owned()
    }

    /// A run with its Sites.
    pub async fn run(&self, id: &str) -> Value {
        let told = self.get(&format!("/hub/api/v2/runs/{id}/")).await;
        assert_eq!(told.status, 200, "{}", told.text());
        told.json()
    }

    /// Waits until a run is as wanted. Its counts are those of its Sites at every look.
    pub async fn run_is(&self, id: &str, what: &str, deadline: Duration, wanted: impl Fn(&Value) -> bool) -> Value {
        eventually(what, deadline, || async {
            let run = self.run(id).await;
            if wanted(&run) { Ok(run) } else { Err(format!("{} {}", run["state"], run["counts"])) }
        })
        .await
    }

    /// Waits until a run has ended; its counts are then those of its Sites.
    pub async fn ended(&self, id: &str, deadline: Duration) -> Value {
        let run = self.run_is(id, "the run ends", deadline, |run| run["state"] != "running").await;
        assert_eq!(counted(&run), run["counts"], "{run}");
        run
    }
}

/// How many Sites of a run are in a state.
pub fn count(run: &Value, states: &[&str]) -> u64 {
    states.iter().map(|state| run["counts"][state].as_u64().unwrap()).sum()
}

/// The counts as its Sites give them.
fn counted(run: &Value) -> Value {
    let mut counts = json!({"queued": 0, "working": 0, "done": 0, "failed": 0, "skipped": 0, "cancelled": 0});
    for site in run["sites"].as_object().unwrap().values() {
        let count = &mut counts[site["state"].as_str().unwrap()];
        *count = json!(count.as_u64().unwrap() + 1);
    }
    counts
}

impl World {
    /// What Hubs changed since `mark`, accepted or not. Complete up to now.
    pub async fn hub_writes(&self, mark: Mark) -> Calls {
        self.audit_is_complete().await;
        let calls = self.lab().audit().expect("an audit log").calls(mark);
        calls.in_namespace(&self.namespace).by_agent("sites-hub").writes()
    }
}

/// How often each object was written.
pub fn by_name(calls: &Calls) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for call in &calls.0 {
        *names.entry(call.name.clone()).or_default() += 1;
    }
    names
}
