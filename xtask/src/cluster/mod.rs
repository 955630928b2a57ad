//! A Kubernetes control plane on this machine: built, started, filled with what Sites needs, and ended without a trace.
//! Knows nothing of Sites itself. Everything listens on 127.0.0.1 only, on free ports, and dies with its owner.

mod build;
mod objects;
mod parts;
mod pki;

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

pub use build::{Binaries, current as current_builds, store as build_store};
pub use pki::kubeconfig;

use crate::paths;
use crate::process::{Process, last_lines};
use objects::Kubectl;
use parts::Ports;
use pki::Pki;

/// How long a start may take on a slow machine.
const START_DEADLINE: Duration = Duration::from_mins(2);

/// How often a start is tried when another program takes a port between the choice and its use.
const PORT_ATTEMPTS: usize = 3;

/// What plays the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Profile {
    /// kwok: pods have a status and run nothing. Needs no privileges.
    Kwok,
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
}

impl Default for Options {
    fn default() -> Self {
        Self { profile: Profile::Kwok, alone: false, audit: true, node_grace: Duration::from_secs(40), dir: None }
    }
}

/// Builds the binaries of a profile, or finds them built.
pub fn build(profile: Profile) -> Result<Binaries> {
    match profile {
        Profile::Kwok => build::kwok_profile(),
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
        self.processes.iter_mut().find_map(|process| {
            let ended = process.ended().ok().flatten()?;
            Some((process.name().to_owned(), format!("{ended}\n{}", process.last_lines(15))))
        })
    }

    fn run(&mut self, name: &str, command: Command) -> Result<()> {
        let log = self.dir.join("log").join(format!("{name}.log"));
        let process = Process::start(name, command, &log).with_context(|| format!("starting {name}"))?;
        self.processes.push(process);
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
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
    let deadline = Instant::now() + START_DEADLINE;
    let dir = match &options.dir {
        Some(dir) => dir.clone(),
        None => temporary_dir(),
    };
    fs::create_dir_all(dir.join("log"))?;
    let sweeper = Sweeper::start(&dir)?;

    let ports = free_ports()?;
    let server = format!("https://127.0.0.1:{}", ports.api);
    let pki = Pki::create(&dir.join("pki"), &server)?;
    let audit_log = options.audit.then(|| dir.join("log/audit.log"));
    let binaries = binaries.clone();
    let mut cluster = Cluster { dir, server, pki, binaries, audit_log, processes: Vec::new(), _sweeper: sweeper };

    let sources = paths::cluster_sources();
    cluster.run("etcd", parts::etcd(&cluster.binaries, &cluster.dir, ports))?;
    let policy = sources.join("audit-policy.yaml");
    let audit = cluster.audit_log.as_deref().map(|log| (policy.as_path(), log));
    cluster.run("kube-apiserver", parts::apiserver(&cluster.binaries, &cluster.pki, ports, audit))?;

    let (program, kubeconfig) = (cluster.binaries.kubectl(), cluster.kubeconfig());
    let kubectl = Kubectl { program: &program, kubeconfig: &kubeconfig };
    while !kubectl.api_ready()? {
        check(&mut cluster, deadline, "the API server")?;
        std::thread::sleep(Duration::from_millis(50));
    }
    if !options.alone {
        start_controllers(&mut cluster, options.node_grace)?;
    }
    kubectl.create(&sources.join("manifests.yaml"))?;
    kubectl.create(&cluster.binaries.definitions)?;
    let complete = if options.alone { kubectl.wait_definitions(deadline) } else { kubectl.wait_complete(deadline) };
    check(&mut cluster, deadline, "the cluster")?;
    complete?;
    Ok(cluster)
}

/// What makes pods of `StatefulSets`, binds their claims and runs them.
fn start_controllers(cluster: &mut Cluster, node_grace: Duration) -> Result<()> {
    let manager = parts::controller_manager(&cluster.binaries, &cluster.pki, node_grace);
    cluster.run("kube-controller-manager", manager)?;
    cluster.run("kube-scheduler", parts::scheduler(&cluster.binaries, &cluster.pki))?;
    let stages = yaml_files(&paths::cluster_sources().join("stages"))?;
    cluster.run("kwok", parts::kwok(&cluster.binaries, &cluster.dir, &cluster.pki, &stages))
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

/// Chooses ports by holding all of them at once.
fn free_ports() -> Result<Ports> {
    let held: [TcpListener; 3] =
        [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    let [api, etcd, etcd_peer] = held.each_ref().map(|listener| listener.local_addr().map(|address| address.port()));
    Ok(Ports { api: api?, etcd: etcd?, etcd_peer: etcd_peer? })
}

/// The YAML files of a folder, in order of name.
fn yaml_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    Ok(files)
}

/// Removes a folder once this process has ended or let go, however that happens: a small shell waits for the end of
/// its input, which the kernel closes.
#[derive(Debug)]
struct Sweeper {
    shell: Child,
}

impl Sweeper {
    fn start(dir: &Path) -> Result<Self> {
        // The pause lets killed processes finish their last write.
        let script = "cat > /dev/null; sleep 0.2; rm -rf -- \"$0\"";
        let shell = Command::new("sh")
            .args(["-c", script])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Its own group: Ctrl-C on the terminal must not end it before its work.
            .process_group(0)
            .spawn()
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => anyhow!("`sh` is missing"),
                _ => error.into(),
            })?;
        Ok(Self { shell })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
