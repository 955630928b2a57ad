//! A real node: kubelet, containerd, kube-proxy and a name server in one box of namespaces, where pods really run.
//!
//! One process owns the box; when it ends, however that happens, everything inside ends: processes, mounts, devices
//! and packet filters. Its control groups and its folder are removed by the sweeper. It has no way out to any network,
//! and this machine reaches it by relays on loopback only.

mod cgroups;
mod config;
pub mod contour;
mod edge;
mod images;
mod parts;
pub mod relay;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

pub use images::image;

use self::cgroups::Cgroups;
use self::relay::{Dialer, Relay};
use super::build::{Binaries, NodeBinaries, Player, node_profile};
use super::ground::Ground;
use super::parts::Ports;
use super::pki::{Pki, Servers, Usage};
use super::sweeper::Sweeper;
use super::{Cluster, Options, START_DEADLINE, fetched, node_obstacle, temporary_dir};
use crate::paths;
use crate::process::{Process, tied};

/// The node's address. It exists in every box and nowhere else.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 4, 0, 1);

/// The name of the node.
const NODE: &str = "node-1";

/// Addresses of pods.
const PODS: &str = "10.64.0.0/16";

/// Addresses of services, as the API server has them.
const SERVICES: &str = "10.0.0.0/14";

/// Ports inside the box.
const PORTS: Ports = Ports { api: 6443, etcd: 2379, etcd_peer: 2380 };

/// Where Envoy listens for the public.
const EDGE: (Ipv4Addr, u16) = (ADDRESS, 443);

/// The host name of the sites and the Hub. Browsers take any name below `localhost` for this machine.
pub const SITES_HOST: &str = "sites.localhost";

/// The host name of the OpenID provider.
pub const OPENID_HOST: &str = "id.localhost";

/// Who talks to the API server beside the usual: file name, user, group.
const USERS: &[(&str, &str, &str)] = &[
    ("kubelet", "system:node:node-1", "system:nodes"),
    ("kube-proxy", "system:kube-proxy", ""),
    ("coredns", "coredns", "system:masters"),
    ("provisioner", "local-path-provisioner", "system:masters"),
    ("edge", "edge", "system:masters"),
];

/// The group of the API server's client certificate (see `tests/cluster/manifests/node.yaml`).
const KUBELET_CLIENT: &str = "sites-test:kubelet-client";

/// Public names that lead to the edge, inside and outside.
fn hosts() -> [&'static str; 2] {
    [SITES_HOST, OPENID_HOST]
}

/// Why control groups are an obstacle, in one line.
pub(super) fn groups_obstacle() -> Option<String> {
    let probe = || -> Result<()> {
        let groups = Cgroups::plan(&box_name())?;
        let made = groups.make();
        for folder in &groups.folders {
            fs::remove_dir(folder).ok();
        }
        made
    };
    probe().err().map(|error| format!("a real node needs control groups: {error:#}"))
}

/// Builds everything a real node runs, images included, or finds it built.
pub(super) fn build() -> Result<Binaries> {
    let binaries = node_profile()?;
    images::prepared(node_binaries(&binaries)?)?;
    Ok(binaries)
}

/// The folders of the images that this checkout uses.
pub(super) fn image_folders(oauth2_proxy: &Path) -> Result<Vec<PathBuf>> {
    images::folders(oauth2_proxy)
}

fn node_binaries(binaries: &Binaries) -> Result<&NodeBinaries> {
    match &binaries.player {
        Player::Node(node) => Ok(node),
        Player::Kwok(_) => bail!("these binaries are not a real node's"),
    }
}

/// What a cluster with a real node has beside its parts. Dropping it ends everything inside.
#[derive(Debug)]
pub struct Node {
    /// Before the process: nobody shall be let in any more.
    api: Relay,
    edge: Relay,
    dialer: Dialer,
    owner: Process,
    groups: Vec<PathBuf>,
}

impl Node {
    /// Where this machine reaches the edge, by HTTPS for any of the public host names.
    #[must_use]
    pub fn edge(&self) -> SocketAddr {
        self.edge.address()
    }

    /// Where this machine reaches the API server.
    #[must_use]
    pub fn api(&self) -> SocketAddr {
        self.api.address()
    }

    /// A command inside the box, which knows all names that pods know. It ends with this process.
    #[must_use]
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        Ground::Box(self.owner.id()).command(program)
    }

    /// The process that the whole box ends with.
    #[must_use]
    pub fn owner(&self) -> u32 {
        self.owner.id()
    }

    /// The folders of its control groups.
    #[must_use]
    pub fn groups(&self) -> &[PathBuf] {
        &self.groups
    }

    /// A free port of this machine's loopback that leads to an address inside, such as a pod's.
    pub fn relay(&self, target: SocketAddr) -> Result<Relay> {
        Relay::start(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?, self.dialer.clone(), target)
    }

    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.owner.ended().ok().flatten()?;
        Some(format!("{status}\n{}", self.owner.last_lines(15)))
    }
}

/// A command in a running box, for programs that do not own it.
#[must_use]
pub fn command_in(owner: u32, program: impl AsRef<Path>) -> Command {
    Ground::Box(owner).command(program)
}

/// Starts a cluster with a real node and waits until it is ready.
pub(super) fn start(options: &Options, binaries: &Binaries) -> Result<Cluster> {
    if let Some(obstacle) = node_obstacle() {
        bail!("{obstacle}");
    }
    let node = node_binaries(binaries)?;
    let archives = images::prepared(node)?;
    let deadline = Instant::now() + START_DEADLINE;
    let dir = options.dir.clone().unwrap_or_else(temporary_dir);
    fs::create_dir_all(dir.join("log"))?;
    let groups = Cgroups::plan(&box_name())?;
    let sweeper = Sweeper::start(&dir, &groups.folders)?;
    groups.make()?;

    let api = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let entrance = edge_listener(options.edge)?;
    let server = format!("https://{}", api.local_addr()?);
    let inside = format!("https://{ADDRESS}:{}", PORTS.api);
    let addresses = vec![IpAddr::from(ADDRESS)];
    let servers = Servers { outside: server.clone(), inside, addresses: addresses.clone() };
    let pki = Pki::create(&dir.join("pki"), &servers, USERS)?;
    pki.issue("kubelet", (NODE, ""), &[NODE], &addresses, Usage::Server)?;
    pki.issue("kubelet-client", ("kube-apiserver", KUBELET_CLIENT), &[], &[], Usage::Client)?;
    config::write(&dir, &pki, node, &groups.name, groups.version_1)?;
    edge::prepare(&dir, &pki, node)?;

    let owner = furnish(&dir, deadline)?;
    let ground = Ground::Box(owner.id());
    let dialer = Dialer::new(owner.id())?;
    let api = Relay::start(api, dialer.clone(), (ADDRESS, PORTS.api).into())?;
    let edge = Relay::start(entrance, dialer.clone(), EDGE.into())?;
    let mut cluster = Cluster {
        audit_log: options.audit.then(|| dir.join("log/audit.log")),
        dir,
        server,
        pki,
        binaries: binaries.clone(),
        ground: ground.clone(),
        node: Some(Node { api, edge, dialer, owner, groups: groups.folders }),
        processes: Vec::new(),
        _sweeper: sweeper,
    };

    cluster.run("containerd", parts::containerd(&ground, node, &cluster.dir))?;
    let product = options.product.clone().map(|binary| (binary, cluster.dir.join("sites.tar")));
    let import = Import { ground: ground.clone(), binaries: node.clone(), archives, product, deadline };
    let import = thread::Builder::new().name("image-import".into()).spawn(move || import.run())?;

    cluster.run_control_plane(options, PORTS, &parts::more_for_apiserver, deadline)?;
    cluster.run("kubelet", parts::kubelet(&ground, node, &cluster.dir, &cluster.pki))?;
    cluster.run("kube-proxy", parts::kube_proxy(&ground, node, &cluster.dir))?;
    cluster.run("coredns", parts::coredns(&ground, node, &cluster.dir))?;
    let manifests = paths::cluster_sources().join("manifests");
    let definitions = cluster.binaries.definitions.clone();
    cluster.fill(&[manifests.join("common.yaml"), manifests.join("node.yaml"), definitions], false, deadline)?;
    // It ends if its namespace is not there yet.
    cluster.run("local-path-provisioner", parts::provisioner(&ground, node, &cluster.dir, &cluster.pki))?;
    let secrets = edge::secrets(&cluster.dir, &cluster.pki)?;
    cluster.kubectl(|kubectl| kubectl.create_text(&secrets))?;
    cluster.kubectl(|kubectl| kubectl.create(&manifests.join("edge.yaml")))?;
    cluster.run("envoy-gateway", edge::gateway(&ground, node, &cluster.dir, &cluster.pki))?;
    let users = super::openid::config()?;
    cluster.kubectl(|kubectl| kubectl.create_text(&users))?;
    import.join().map_err(|_| anyhow::anyhow!("the import of images failed"))??;
    let dialer = cluster.node.as_ref().map(|node| node.dialer.clone()).context("the node")?;
    // Now that their images are there. Who needs them waits for them.
    cluster.kubectl(|kubectl| kubectl.create(&manifests.join("services.yaml")))?;
    cluster.wait(deadline, "the edge", |_| Ok(dialer.connect(EDGE.into()).is_ok()))?;
    Ok(cluster)
}

/// Starts the process that owns the box and waits until its namespaces are furnished.
fn furnish(dir: &Path, deadline: Instant) -> Result<Process> {
    let mut command = tied("unshare");
    command
        .args(["--mount", "--net", "--pid", "--uts", "--ipc", "--propagation", "private"])
        .args(["--fork", "--kill-child=SIGKILL", "--", "sh"])
        .arg(paths::cluster_sources().join("node/box.sh"))
        .arg(dir)
        .args([&ADDRESS.to_string(), SERVICES, NODE]);
    let mut owner = Process::start("box", command, &dir.join("log/box.log"))?;
    while !dir.join("box.ready").exists() {
        if let Some(status) = owner.ended()? {
            bail!("the box ended ({status}):\n{}", owner.last_lines(15));
        }
        if Instant::now() > deadline {
            bail!("the box was not ready in time:\n{}", owner.last_lines(15));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(owner)
}

/// A name for the control groups that no other box of this machine has.
fn box_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("sites-box-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn edge_listener(wanted: Option<SocketAddr>) -> Result<TcpListener> {
    if let Some(address) = wanted {
        return TcpListener::bind(address).with_context(|| format!("the edge cannot listen on {address}"));
    }
    let free = (2..=250).find_map(|last| TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), 443)).ok());
    free.context("port 443 is taken on every address of 127.0.0.2 to 127.0.0.250")
}

/// Loads images into containerd while the control plane starts.
struct Import {
    ground: Ground,
    binaries: NodeBinaries,
    archives: Vec<PathBuf>,
    product: Option<(PathBuf, PathBuf)>,
    deadline: Instant,
}

impl Import {
    fn run(self) -> Result<()> {
        while fetched::run(parts::ctr(&self.ground, &self.binaries).arg("version")).is_err() {
            if Instant::now() > self.deadline {
                bail!("containerd was not ready in time");
            }
            thread::sleep(Duration::from_millis(100));
        }
        for archive in &self.archives {
            fetched::run(&mut parts::import(&self.ground, &self.binaries, archive))?;
        }
        if let Some((binary, archive)) = &self.product {
            images::sites(binary, archive)?;
            fetched::run(&mut parts::import(&self.ground, &self.binaries, archive))?;
            fs::remove_file(archive)?;
        }
        Ok(())
    }
}

/// Loads the product's binary as the image `sites` into a running box; new pods run it.
pub fn load_product(owner: u32, binaries: &Binaries, product: &Path, scratch: &Path) -> Result<()> {
    let archive = scratch.join(format!("sites-{}.tar", std::process::id()));
    images::sites(product, &archive)?;
    fetched::run(&mut parts::import(&Ground::Box(owner), node_binaries(binaries)?, &archive))?;
    Ok(fs::remove_file(archive)?)
}
