//! `cargo xtask cluster …`: the cluster that stays up between commands. The library does the work.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use xtask::cluster::{self, Options, Profile};
use xtask::paths;

use super::background::Background;

/// What to do with the local cluster.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Build the binaries into the cache folder.
    Build(Which),
    /// Start the cluster and leave it running.
    Up(Which),
    /// End the cluster and remove its data.
    Down,
    /// Say what runs.
    Status,
    /// Remove binaries of older versions and say what the caches hold.
    Clean(Clean),
    /// Run a command inside the running real node's box, such as `ctr -n k8s.io images list` or `curl`.
    Enter {
        /// Program and arguments.
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<OsString>,
    },
    /// Load a binary of the product as the image `sites` into the running real node; pods made from then on run it.
    Load {
        /// The binary; by default the one of this checkout, built now.
        binary: Option<PathBuf>,
    },
    /// Own the cluster until a signal comes; `up` runs this in the background.
    #[command(hide = true)]
    Supervise {
        #[command(flatten)]
        which: Which,
        /// The product's binary.
        #[arg(long)]
        product: Option<PathBuf>,
    },
}

/// Which cluster.
#[derive(Debug, Clone, Copy, Args)]
pub struct Which {
    /// What plays the node [default: node where that is possible, else kwok].
    #[arg(long, value_enum)]
    pub profile: Option<Profile>,
}

impl Which {
    /// The profile that was asked for, else the best one for this machine; says why it is not a real node.
    pub fn choose(self) -> Result<Profile> {
        if let Some(profile) = self.profile {
            return Ok(profile);
        }
        super::setup::node()?;
        let (profile, obstacle) = Profile::best();
        if let Some(obstacle) = obstacle {
            eprintln!("cluster: kwok, whose pods run nothing: {obstacle}");
        }
        Ok(profile)
    }
}

/// What to remove.
#[derive(Debug, Clone, Copy, Args)]
pub struct Clean {
    /// The binaries of this version too.
    #[arg(long)]
    all: bool,
    /// Go's build cache too (shared with all Go work of this user).
    #[arg(long)]
    go: bool,
}

/// Runs an action.
pub fn run(action: &Action) -> Result<()> {
    match action {
        Action::Build(which) => {
            // Most tests run on kwok, some on a real node where there can be one.
            let node = which.choose()? == Profile::Node;
            if which.profile.is_none() && node {
                cluster::build(Profile::Kwok)?;
            }
            let profile = if node { Profile::Node } else { Profile::Kwok };
            println!("{}", cluster::build(profile)?.kubernetes.display());
            Ok(())
        }
        Action::Up(which) => {
            let kubeconfig = up(which.choose()?, None)?;
            println!("export KUBECONFIG={}", kubeconfig.display());
            Ok(())
        }
        Action::Down => down(),
        Action::Status => status(),
        Action::Clean(clean) => clean_caches(*clean),
        Action::Enter { command } => enter(command),
        Action::Load { binary } => load(binary.as_deref()),
        Action::Supervise { which, product } => supervise(which.choose()?, product.clone()),
    }
}

fn background() -> Background {
    Background::new("cluster", &paths::state())
}

/// Points to the folder of the running cluster.
fn link() -> PathBuf {
    paths::state().join("cluster")
}

fn ready_file() -> PathBuf {
    paths::state().join("kubeconfig")
}

/// Holds the id of the process that a real node's box ends with.
fn owner_file() -> PathBuf {
    link().join("box.owner")
}

/// The owner of the running real node's box.
pub fn owner() -> Option<u32> {
    background().alive()?;
    fs::read_to_string(owner_file()).ok()?.trim().parse().ok()
}

/// The certificate of the authority that signed the entrance's.
pub fn ca_file() -> PathBuf {
    paths::state().join("ca.crt")
}

/// Which binary of the product the running real node has: path, size and time.
fn product_file() -> PathBuf {
    link().join("product")
}

fn stamp(product: &Path) -> Result<String> {
    let metadata = fs::metadata(product)?;
    Ok(format!("{} {} {:?}", product.display(), metadata.len(), metadata.modified()?))
}

/// Loads the product's binary into the running real node unless it has it already; says whether it did.
pub fn refresh_product(product: &Path) -> Result<bool> {
    if fs::read_to_string(product_file()).is_ok_and(|known| stamp(product).is_ok_and(|now| now == known)) {
        return Ok(false);
    }
    load(Some(product))?;
    Ok(true)
}

/// Starts the cluster unless it runs, and gives its kubeconfig. A real node gets `product` as the image `sites`.
pub fn up(profile: Profile, product: Option<&Path>) -> Result<PathBuf> {
    let background = background();
    if background.alive().is_some() {
        println!("cluster: already up");
        return Ok(ready_file());
    }
    cluster::build(profile)?;
    if ready_file().exists() {
        fs::remove_file(ready_file())?;
    }
    let step = xtask::progress::Step::begin("cluster", "starting");
    let name = profile.to_possible_value().context("a profile has a name")?;
    let mut arguments = vec!["cluster".into(), "supervise".into(), "--profile".into(), name.get_name().to_owned()];
    if let Some(product) = product {
        arguments.extend(["--product".into(), product.display().to_string()]);
    }
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut child = background.start(&std::env::current_exe()?, &arguments, &[])?;
    background.wait(&mut child, Duration::from_secs(150), || ready_file().exists())?;
    step.done("up");
    Ok(ready_file())
}

fn enter(command: &[OsString]) -> Result<()> {
    let owner = owner().context("no real node runs: `cargo xtask cluster up`")?;
    let (program, arguments) = command.split_first().context("no command")?;
    let mut command = cluster::node::command_in(owner, program);
    let status = command.args(arguments).stdin(Stdio::inherit()).env("KUBECONFIG", ready_file()).status()?;
    std::process::exit(status.code().unwrap_or(1));
}

fn load(binary: Option<&Path>) -> Result<()> {
    let owner = owner().context("no real node runs: `cargo xtask cluster up`")?;
    let binary = match binary {
        Some(binary) => binary.to_owned(),
        None => super::generated::sites_binary()?,
    };
    let step = xtask::progress::Step::begin("image", &format!("loading {}", binary.display()));
    cluster::node::load_product(owner, &cluster::build(Profile::Node)?, &binary, &link())?;
    step.done(&cluster::node::image("sites"));
    fs::write(product_file(), stamp(&binary)?)?;
    Ok(())
}

/// Ends the cluster.
pub fn down() -> Result<()> {
    let ran = background().stop(Duration::from_secs(20))?;
    let end = Instant::now() + Duration::from_secs(10);
    while link().exists() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    for file in [link(), ready_file(), ca_file()] {
        fs::remove_file(file).ok();
    }
    println!("cluster: {}", if ran { "down" } else { "was not up" });
    Ok(())
}

fn status() -> Result<()> {
    let Some(pid) = background().alive() else { bail!("the cluster is not up: `cargo xtask cluster up`") };
    println!("cluster: up (supervisor {pid}), logs in {}", paths::state().join("cluster/log").display());
    println!("export KUBECONFIG={}", ready_file().display());
    let profile = if owner().is_some() { Profile::Node } else { Profile::Kwok };
    let kubectl = Command::new(cluster::build(profile)?.kubectl())
        .args(["get", "nodes", "--no-headers"])
        .env("KUBECONFIG", ready_file())
        .status()?;
    if !kubectl.success() {
        bail!("the API server does not answer");
    }
    Ok(())
}

fn supervise(profile: Profile, product: Option<PathBuf>) -> Result<()> {
    // A folder of its own for each run: the sweeper of an earlier one may still be about to remove that one's.
    let dir = paths::state().join(format!("cluster-{}", std::process::id()));
    fs::remove_file(link()).ok();
    std::os::unix::fs::symlink(&dir, link())?;
    // Redirects name no port, and names below `localhost` are 127.0.0.1 for browsers.
    let edge = Some(([127, 0, 0, 1], 443).into());
    let stamp = product.as_deref().map(stamp).transpose()?;
    let options = Options { profile, dir: Some(dir), product, edge, ..Options::default() };
    let mut cluster = cluster::start(&options)?;
    fs::copy(cluster.ca(), ca_file())?;
    if let Some(node) = cluster.node() {
        fs::write(owner_file(), node.owner().to_string())?;
        fs::write(product_file(), stamp.unwrap_or_default())?;
    }
    let text = fs::read(cluster.kubeconfig())?;
    let partial = ready_file().with_extension("partial");
    fs::write(&partial, text)?;
    fs::rename(&partial, ready_file())?;

    // No signal is handled: the kernel ends the parts with this process, and the sweeper removes the folder.
    loop {
        std::thread::sleep(Duration::from_secs(1));
        if let Some((name, lines)) = cluster.fallen() {
            fs::remove_file(ready_file()).ok();
            bail!("{name} ended: {lines}");
        }
    }
}

fn clean_caches(clean: Clean) -> Result<()> {
    let store = cluster::build_store();
    let keep = if clean.all { Vec::new() } else { cluster::current_builds()? };
    for entry in fs::read_dir(&store).into_iter().flatten() {
        let path = entry?.path();
        // Beside a folder lie its lock and, while somebody builds it, its partial one.
        if keep.contains(&path.with_extension("")) {
            continue;
        }
        let size = size_of(&path);
        if path.is_dir() {
            fs::remove_dir_all(&path)?;
            println!("removed {} ({size})", path.display());
        } else {
            fs::remove_file(&path)?;
        }
    }
    println!("binaries: {} ({})", store.display(), size_of(&store));
    let go = Command::new("go").args(["env", "GOCACHE"]).output().context("`go env GOCACHE`")?;
    let go = PathBuf::from(String::from_utf8_lossy(&go.stdout).trim());
    if clean.go {
        let size = size_of(&go);
        Command::new("go").args(["clean", "-cache"]).status()?;
        println!("removed Go's build cache ({size})");
    } else {
        println!("Go's build cache: {} ({}); `--go` removes it", go.display(), size_of(&go));
    }
    Ok(())
}

/// The size of a folder as `du` says it; it knows about hard links.
fn size_of(path: &Path) -> String {
    let out = Command::new("du").arg("-sh").arg(path).output();
    let text = out.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown size").to_owned()
}
