//! `cargo xtask cluster …`: the cluster that stays up between commands. The library does the work.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
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
    /// Own the cluster until a signal comes; `up` runs this in the background.
    #[command(hide = true)]
    Supervise(Which),
}

/// Which cluster.
#[derive(Debug, Clone, Copy, Args)]
pub struct Which {
    /// What plays the node.
    #[arg(long, value_enum, default_value = "kwok")]
    pub profile: Profile,
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
            let binaries = cluster::build(which.profile)?;
            println!("{}\n{}", binaries.kubernetes.display(), binaries.kwok.display());
            Ok(())
        }
        Action::Up(which) => {
            let kubeconfig = up(*which)?;
            println!("export KUBECONFIG={}", kubeconfig.display());
            Ok(())
        }
        Action::Down => down(),
        Action::Status => status(),
        Action::Clean(clean) => clean_caches(*clean),
        Action::Supervise(which) => supervise(*which),
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

/// Starts the cluster unless it runs, and gives its kubeconfig.
pub fn up(which: Which) -> Result<PathBuf> {
    let background = background();
    if background.alive().is_some() {
        println!("cluster: already up");
        return Ok(ready_file());
    }
    cluster::build(which.profile)?;
    if ready_file().exists() {
        fs::remove_file(ready_file())?;
    }
    let step = xtask::progress::Step::begin("cluster", "starting");
    let Profile::Kwok = which.profile;
    let exe = std::env::current_exe()?;
    let mut child = background.start(&exe, &["cluster", "supervise", "--profile", "kwok"], &[])?;
    background.wait(&mut child, Duration::from_secs(150), || ready_file().exists())?;
    step.done("up");
    Ok(ready_file())
}

/// Ends the cluster.
pub fn down() -> Result<()> {
    let ran = background().stop(Duration::from_secs(20))?;
    let end = Instant::now() + Duration::from_secs(10);
    while link().exists() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    for file in [link(), ready_file()] {
        fs::remove_file(file).ok();
    }
    println!("cluster: {}", if ran { "down" } else { "was not up" });
    Ok(())
}

fn status() -> Result<()> {
    let Some(pid) = background().alive() else { bail!("the cluster is not up: `cargo xtask cluster up`") };
    println!("cluster: up (supervisor {pid}), logs in {}", paths::state().join("cluster/log").display());
    println!("export KUBECONFIG={}", ready_file().display());
    let Ok(binaries) = cluster::build(Profile::Kwok) else {
        return Ok(());
    };
    let kubectl = Command::new(binaries.kubectl())
        .args(["get", "nodes", "--no-headers"])
        .env("KUBECONFIG", ready_file())
        .status()?;
    if !kubectl.success() {
        bail!("the API server does not answer");
    }
    Ok(())
}

fn supervise(which: Which) -> Result<()> {
    // A folder of its own for each run: the sweeper of an earlier one may still be about to remove that one's.
    let dir = paths::state().join(format!("cluster-{}", std::process::id()));
    fs::remove_file(link()).ok();
    std::os::unix::fs::symlink(&dir, link())?;
    let options = Options { profile: which.profile, dir: Some(dir), ..Options::default() };
    let mut cluster = cluster::start(&options)?;
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
