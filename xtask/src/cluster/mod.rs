//! A Kubernetes cluster on this machine: built, started, filled with what Sites needs, and ended without a trace.
//! Knows nothing of Sites itself. Everything listens on 127.0.0.1 only, on free ports, and dies with its owner.

pub(crate) mod build;
pub(crate) mod fetched;
mod ground;
mod groups;
mod image;
pub mod node;
mod objects;
pub mod openid;
mod parts;
mod pki;
mod possible;
mod sweeper;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

pub use build::{Binaries, NodeBinaries, Player, current as current_builds, store as build_store};
pub use pki::kubeconfig;
pub use possible::{PROGRAMS as NODE_PROGRAMS, obstacle as node_obstacle, on_path};

use crate::paths;
use crate::process::{Process, free_port, last_lines};
use ground::Ground;
use node::Node;
use objects::Kubectl;
use parts::Ports;
use pki::{Pki, Servers};
use sweeper::Sweeper;

/// How long a start may take on a slow machine.
const START_DEADLINE: Duration = Duration::from_mins(2);

/// How often a start is tried when another program takes a port between the choice and its use.
const PORT_ATTEMPTS: usize = 3;

/// What plays the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Profile {
    /// kwok: pods have a status and run nothing. Needs no privileges.
    Kwok,
    /// A real node in a box of namespaces: pods run. Needs root (see [`node_obstacle`]).
    Node,
}

impl Profile {
    /// The real node if it can run here, else kwok with the reason.
    #[must_use]
    pub fn best() -> (Self, Option<String>) {
        match node_obstacle() {
            None => (Self::Node, None),
            Some(obstacle) => (Self::Kwok, Some(obstacle)),
        }
    }
}

/// How a cluster is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// What plays the node.
    pub profile: Profile,
    /// Only etcd and the API server: no controllers, no scheduler, no node. What is measured or counted there was
    /// done by nobody else. Pods are never made, claims never bound, and a namespace has no service account.
    pub alone: bool,
    /// Whether the API server logs each request (see [`Cluster::audit_log`]).
    pub audit: bool,
    /// How long a node may be silent before it counts as lost (see `tests/cluster/stages/nodes.yaml`).
    pub node_grace: Duration,
    /// The folder of the cluster, removed with it: one that nothing used before. A temporary one by default.
    pub dir: Option<PathBuf>,
    /// The product's binary, for the image `sites` of a real node.
    pub product: Option<PathBuf>,
    /// Where a real node's edge is reached on this machine: by default port 443 of the first free address of
    /// 127.0.0.2 to 127.0.0.250, so that addresses in redirects need no port and several clusters fit.
    pub edge: Option<SocketAddr>,
}

impl Default for Options {
    fn default() -> Self {
        let node_grace = Duration::from_secs(40);
        Self { profile: Profile::Kwok, alone: false, audit: true, node_grace, dir: None, product: None, edge: None }
    }
}

/// Builds the binaries of a profile, or finds them built.
pub fn build(profile: Profile) -> Result<Binaries> {
    match profile {
        Profile::Kwok => build::kwok_profile(),
        Profile::Node => node::build(),
    }
}

/// A running cluster. Dropping it ends every process and removes its folder.
#[derive(Debug)]
pub struct Cluster {
    dir: PathBuf,
    server: String,
    pki: Pki,
    binaries: Binaries,
    audit_log: Option<PathBuf>,
    ground: Ground,
    /// First: with it everything inside ends at once.
    node: Option<Node>,
    /// In order of start; ended the other way round, so that nobody complains about a lost server.
    processes: Vec<Process>,
    /// Last: it removes the folder when this process, and so the processes above, are gone.
    _sweeper: Sweeper,
}

impl Cluster {
    /// The kubeconfig of an administrator.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.pki.kubeconfig("admin")
    }

    /// The API server's audit log: one JSON event per completed request of anybody but the cluster's own parts.
    #[must_use]
    pub fn audit_log(&self) -> Option<&Path> {
        self.audit_log.as_deref()
    }

    /// The folder that holds everything of this cluster.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The address of the API server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The certificate of the authority that signed the API server's.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.pki.ca()
    }

    /// The binaries it runs.
    #[must_use]
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// Name and process id of each part.
    pub fn parts(&self) -> impl Iterator<Item = (&str, u32)> {
        self.processes.iter().map(|process| (process.name(), process.id()))
    }

    /// The name of a part that has ended by itself, with its last lines.
    pub fn fallen(&mut self) -> Option<(String, String)> {
        if let Some(told) = self.node.as_mut().and_then(Node::ended) {
            return Some(("the box".into(), told));
        }
        self.processes.iter_mut().find_map(|process| {
            let ended = process.ended().ok().flatten()?;
            Some((process.name().to_owned(), format!("{ended}\n{}", process.last_lines(15))))
        })
    }

    /// The real node, if it has one.
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.join("log").join(format!("{name}.log"))
    }

    fn run(&mut self, name: &str, command: Command) -> Result<()> {
        let process = Process::start(name, command, &self.log(name)).with_context(|| format!("starting {name}"))?;
        self.processes.push(process);
        Ok(())
    }

    /// Starts what every profile has, and waits until the API server answers.
    fn run_control_plane(
        &mut self,
        options: &Options,
        ports: Ports,
        more: &dyn Fn(&mut Command, &Pki),
        deadline: Instant,
    ) -> Result<()> {
        self.run("etcd", parts::etcd(&self.ground, &self.binaries, &self.dir, ports))?;
        let policy = paths::cluster_sources().join("audit-policy.yaml");
        let audit = self.audit_log.as_deref().map(|log| (policy.as_path(), log));
        let mut apiserver = parts::apiserver(&self.ground, &self.binaries, &self.pki, ports, audit);
        more(&mut apiserver, &self.pki);
        self.run("kube-apiserver", apiserver)?;
        self.wait(deadline, "the API server", objects::api_ready)?;
        if options.alone {
            return Ok(());
        }
        let manager = parts::controller_manager(&self.ground, &self.binaries, &self.pki, options.node_grace);
        self.run("kube-controller-manager", manager)?;
        self.run("kube-scheduler", parts::scheduler(&self.ground, &self.binaries, &self.pki))
    }

    /// Does something as the administrator.
    fn kubectl<T>(&self, work: impl FnOnce(&Kubectl<'_>) -> Result<T>) -> Result<T> {
        work(&Kubectl { program: &self.binaries.kubectl(), kubeconfig: &self.kubeconfig() })
    }

    /// Polls as the administrator; fails if a part has ended or the time is over.
    fn wait(&mut self, deadline: Instant, what: &str, ready: impl Fn(&Kubectl<'_>) -> Result<bool>) -> Result<()> {
        while !self.kubectl(&ready)? {
            check(self, deadline, what)?;
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Creates the manifests of these files and folders, and waits until the cluster is complete.
    fn fill(&mut self, manifests: &[PathBuf], alone: bool, deadline: Instant) -> Result<()> {
        for file in manifests {
            self.kubectl(|kubectl| kubectl.create(file))?;
        }
        let complete =
            self.kubectl(
                |kubectl| {
                    if alone { kubectl.wait_definitions(deadline) } else { kubectl.wait_complete(deadline) }
                },
            );
        check(self, deadline, "the cluster")?;
        complete
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.node.take());
        while let Some(process) = self.processes.pop() {
            drop(process);
        }
    }
}

/// Starts a cluster and waits until it is ready: API served, node Ready, definitions established.
///
/// Blocks for some seconds, and for minutes if the binaries are not built yet.
pub fn start(options: &Options) -> Result<Cluster> {
    let binaries = build(options.profile)?;
    let mut attempt = 0;
    loop {
        attempt += 1;
        match try_start(options, &binaries) {
            Err(error) if attempt < PORT_ATTEMPTS && format!("{error:#}").contains("address already in use") => {
                eprintln!("cluster: another program took a port, trying again");
            }
            result => return result,
        }
    }
}

fn try_start(options: &Options, binaries: &Binaries) -> Result<Cluster> {
    match &binaries.player {
        Player::Kwok(kwok) => start_kwok(options, binaries, kwok),
        Player::Node(_) => node::start(options, binaries),
    }
}

fn start_kwok(options: &Options, binaries: &Binaries, kwok: &Path) -> Result<Cluster> {
    let deadline = Instant::now() + START_DEADLINE;
    let dir = options.dir.clone().unwrap_or_else(temporary_dir);
    fs::create_dir_all(dir.join("log"))?;
    let sweeper = Sweeper::start(&dir, &[])?;

    let ports = Ports { api: free_port()?, etcd: free_port()?, etcd_peer: free_port()? };
    let server = format!("https://127.0.0.1:{}", ports.api);
    let servers = Servers { outside: server.clone(), inside: server.clone(), addresses: Vec::new() };
    let pki = Pki::create(&dir.join("pki"), &servers, &[("kwok", "kwok", "system:masters")])?;
    let mut cluster = Cluster {
        audit_log: options.audit.then(|| dir.join("log/audit.log")),
        dir,
        server,
        pki,
        binaries: binaries.clone(),
        ground: Ground::Machine,
        node: None,
        processes: Vec::new(),
        _sweeper: sweeper,
    };
    let more = |command: &mut Command, _: &Pki| {
        command.args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"]);
    };
    cluster.run_control_plane(options, ports, &more, deadline)?;
    let sources = paths::cluster_sources();
    if !options.alone {
        let stages = yaml_files(&sources.join("stages"))?;
        cluster.run("kwok", parts::kwok(kwok, &cluster.dir, &cluster.pki, &stages))?;
    }
    let manifests = sources.join("manifests");
    let definitions = cluster.binaries.definitions.clone();
    let files = [manifests.join("common.yaml"), manifests.join("kwok.yaml"), definitions];
    cluster.fill(&files, options.alone, deadline)?;
    Ok(cluster)
}

/// Fails if a part has ended or the time is over.
fn check(cluster: &mut Cluster, deadline: Instant, what: &str) -> Result<()> {
    if let Some((name, lines)) = cluster.fallen() {
        bail!("{name} ended: {lines}");
    }
    if Instant::now() > deadline {
        let log = cluster.dir.join("log/kube-apiserver.log");
        bail!("{what} was not ready in {} s\n{}", START_DEADLINE.as_secs(), last_lines(&log, 15));
    }
    Ok(())
}

fn temporary_dir() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("sites-cluster-{}-{count}", std::process::id()))
}

/// The YAML files of a folder, in order of name.
fn yaml_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    Ok(files)
}
