//! Faults on the wire between an operator and the API server: TLS on both sides, everything passed through as it is
//! (watches too) but for the requests that a rule covers. The first rule that covers a request acts, alone.

mod bodies;
mod rules;
mod wire;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use http::Uri;
use hyper::body::Bytes;
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::watch;

use bodies::Streams;
pub use rules::{Act, Asked, Match, Times, Upset};

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
    streams: Streams,
    /// What the rules for stale answers keep.
    kept: Mutex<HashMap<(usize, Uri), Bytes>>,
    /// Told of whenever a rule is lifted.
    lifts: watch::Sender<()>,
}

struct Rule {
    number: usize,
    matching: Match,
    act: Act,
    times: Times,
    hits: usize,
    lifted: bool,
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
    /// When the client went away without an answer.
    pub abandoned: Option<Timestamp>,
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
        rules.push(Rule { number, matching, act, times, hits: 0, lifted: false });
        number
    }

    /// How often a rule has acted.
    pub fn hits(&self, number: usize) -> usize {
        self.shared.rules.lock().unwrap().iter().find(|rule| rule.number == number).map_or(0, |rule| rule.hits)
    }

    /// Ends a rule; what it holds goes on.
    pub fn lift(&self, number: usize) {
        self.lift_where(|rule| rule.number == number);
    }

    /// From now on everything passes, and what is held goes on.
    pub fn heal(&self) {
        self.lift_where(|_| true);
    }

    fn lift_where(&self, wanted: impl Fn(&Rule) -> bool) {
        for rule in self.shared.rules.lock().unwrap().iter_mut().filter(|rule| wanted(rule)) {
            rule.times = Times::Count(0);
            rule.lifted = true;
        }
        self.shared.lifts.send_replace(());
    }

    /// Does something to answers that are under way, such as open watches; gives their number.
    pub fn upset(&self, matching: &Match, upset: Upset) -> usize {
        self.shared.streams.upset(matching, upset)
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

    /// The same with the token in a file of its own, as in a pod; gives the kubeconfig and that file.
    pub async fn kubeconfig_with_token_file(&self, world: &World) -> (PathBuf, PathBuf) {
        let token = self.dir.path().join(format!("{}.token", world.namespace));
        std::fs::write(&token, world.token().await).unwrap();
        let path = self.dir.path().join(format!("{}.file.kubeconfig", world.namespace));
        let text = world.lab().kubeconfig_of(Some(&self.url()), Some(&self.ca()), &json!({"tokenFile": token}));
        std::fs::write(&path, text).unwrap();
        (path, token)
    }
}

impl Shared {
    /// Notes a request and says what is to be done to it.
    fn arrive(self: &Arc<Self>, asked: Asked) -> Arrival {
        let mut rules = self.rules.lock().unwrap();
        let rule = rules.iter_mut().find(|rule| {
            let due = match rule.times {
                Times::Always => true,
                Times::Count(count) => rule.hits < count,
            };
            due && rule.matching.covers(&asked)
        });
        let (rule, fault) = rule.map_or((0, None), |rule| {
            rule.hits += 1;
            (rule.number, Some(rule.act.clone()))
        });
        drop(rules);
        let mut log = self.log.lock().unwrap();
        let user_agent = asked.user_agent.clone();
        log.push(Passed { at: Timestamp::now(), asked, user_agent, fault: fault.clone(), code: None, abandoned: None });
        Arrival { shared: Arc::clone(self), place: log.len() - 1, rule, fault, ended: AtomicBool::new(false) }
    }
}

/// A request that has come and has no answer yet. Dropped before that, its client has gone.
struct Arrival {
    shared: Arc<Shared>,
    /// Its place in the log.
    place: usize,
    /// The rule that covers it, if there is a fault.
    rule: usize,
    fault: Option<Act>,
    ended: AtomicBool,
}

impl Arrival {
    /// It has its answer.
    fn done(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    /// It has its answer from the server.
    fn answered(&self, code: u16) {
        self.shared.log.lock().unwrap()[self.place].code = Some(code);
        self.done();
    }

    /// Returns once its rule is lifted.
    async fn lifted(&self) {
        let mut lifts = self.shared.lifts.subscribe();
        let is_lifted = || self.shared.rules.lock().unwrap().iter().any(|rule| rule.number == self.rule && rule.lifted);
        while !is_lifted() {
            let _ = lifts.changed().await;
        }
    }

    fn kept(&self, target: &Uri) -> Option<Bytes> {
        self.shared.kept.lock().unwrap().get(&(self.rule, target.clone())).cloned()
    }

    fn keep(&self, target: &Uri, bytes: Bytes) {
        self.shared.kept.lock().unwrap().insert((self.rule, target.clone()), bytes);
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        if !self.ended.load(Ordering::SeqCst) {
            self.shared.log.lock().unwrap()[self.place].abandoned = Some(Timestamp::now());
        }
    }
}
