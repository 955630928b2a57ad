//! Faults on the wire between an operator and the API server: TLS on both sides, everything passed through as it is
//! (watches too) but for the requests that a rule covers. The first rule that covers a request acts, alone.

mod rules;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;

pub use rules::{Act, Asked, Match, Times};

use super::lab::Lab;
use super::world::World;

/// A running proxy; dropping it ends it and its connections.
pub struct FaultProxy {
    shared: Arc<Shared>,
    dir: tempfile::TempDir,
    address: std::net::SocketAddr,
    /// Dropping it tells the proxy's thread to end.
    _alive: tokio::sync::oneshot::Sender<()>,
}

/// What the proxy's thread and the test both see.
#[derive(Default)]
struct Shared {
    rules: Mutex<Vec<Rule>>,
    log: Mutex<Vec<Passed>>,
}

struct Rule {
    number: usize,
    matching: Match,
    act: Act,
    times: Times,
    hits: usize,
}

/// One request that came by.
#[derive(Debug, Clone)]
pub struct Passed {
    pub at: Timestamp,
    pub asked: Asked,
    pub user_agent: String,
    /// What was done to it, if anything.
    pub fault: Option<Act>,
    /// The server's status code, if it came so far.
    pub code: Option<u16>,
}

impl FaultProxy {
    /// Starts one in front of a control plane.
    pub async fn start(lab: &Lab) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let shared = Arc::new(Shared::default());
        let (alive, end) = tokio::sync::oneshot::channel();
        let upstream = super::lab::config(lab.kubeconfig()).await;
        let address = wire::serve(Arc::clone(&shared), upstream, &dir.path().join("ca.crt"), end);
        Self { shared, dir, address, _alive: alive }
    }

    /// Adds a rule; gives its number for [`FaultProxy::hits`].
    pub fn fault(&self, matching: Match, act: Act, times: Times) -> usize {
        let mut rules = self.shared.rules.lock().unwrap();
        let number = rules.last().map_or(0, |rule| rule.number + 1);
        rules.push(Rule { number, matching, act, times, hits: 0 });
        number
    }

    /// How often a rule has acted.
    pub fn hits(&self, number: usize) -> usize {
        self.shared.rules.lock().unwrap().iter().find(|rule| rule.number == number).map_or(0, |rule| rule.hits)
    }

    /// From now on everything passes.
    pub fn heal(&self) {
        for rule in self.shared.rules.lock().unwrap().iter_mut() {
            rule.times = Times::Count(0);
        }
    }

    /// What came by, in order of arrival.
    pub fn log(&self) -> Vec<Passed> {
        self.shared.log.lock().unwrap().clone()
    }

    /// What came by of a verb and a resource (`*` for any).
    pub fn seen(&self, verbs: &str, resource: &str) -> Vec<Passed> {
        let matching = Match::on(verbs, resource);
        let mut log = self.log();
        log.retain(|passed| matching.covers(&passed.asked));
        log
    }

    /// Its address as a URL.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The certificate that its clients must trust.
    pub fn ca(&self) -> PathBuf {
        self.dir.path().join("ca.crt")
    }

    /// A kubeconfig of a world's operator that leads through this proxy.
    pub async fn kubeconfig(&self, world: &World) -> PathBuf {
        let path = self.dir.path().join(format!("{}.kubeconfig", world.namespace));
        let text = world.lab().kubeconfig_for(Some(&self.url()), Some(&self.ca()), &world.token().await);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Shared {
    /// Notes a request and says what is to be done to it; the index is its place in the log.
    fn arrive(&self, asked: Asked, user_agent: String) -> (usize, Option<Act>) {
        let mut rules = self.rules.lock().unwrap();
        let rule = rules.iter_mut().find(|rule| {
            let due = match rule.times {
                Times::Always => true,
                Times::Count(count) => rule.hits < count,
            };
            due && rule.matching.covers(&asked)
        });
        let fault = rule.map(|rule| {
            rule.hits += 1;
            rule.act.clone()
        });
        drop(rules);
        let mut log = self.log.lock().unwrap();
        log.push(Passed { at: Timestamp::now(), asked, user_agent, fault: fault.clone(), code: None });
        (log.len() - 1, fault)
    }

    fn answered(&self, place: usize, code: u16) {
        self.log.lock().unwrap()[place].code = Some(code);
    }
}
