//! `cargo xtask setup`: the programs that tests and the real node run: Debian packages, Python packages, a browser's
//! driver. Installs only what is missing, and says what it does.

use std::process::Command;

use anyhow::{Result, bail};
use xtask::clients;
use xtask::cluster::{NODE_PROGRAMS, on_path};

use super::steps;

/// Program that tests run, and the package that has it.
const PROGRAMS: &[(&str, &str)] = &[
    ("redis-server", "redis-server"),
    ("nginx", "nginx"),
    ("curl", "curl"),
    ("litmus", "litmus"),
    ("rclone", "rclone"),
    ("cadaver", "cadaver"),
    ("apache2", "apache2-bin"),
    ("chromium", "chromium"),
    ("wrk", "wrk"),
];

/// Installs what tests need; what a real node needs only where it may, as tests can do without.
pub fn run() -> Result<()> {
    install("tests", PROGRAMS)?;
    clients::python()?;
    clients::browser()?;
    if rooted() { node() } else { Ok(()) }
}

/// Installs what a real node needs, where that is possible without asking; what is still missing is told later.
pub fn node() -> Result<()> {
    if rooted() && on_path("apt-get") { install("a real node", NODE_PROGRAMS) } else { Ok(()) }
}

fn rooted() -> bool {
    steps::read(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn install(who: &str, programs: &[(&str, &str)]) -> Result<()> {
    let mut missing: Vec<_> =
        programs.iter().filter(|(program, _)| !on_path(program)).map(|(_, package)| *package).collect();
    missing.dedup();
    if missing.is_empty() {
        eprintln!("setup: {who}: nothing is missing");
        return Ok(());
    }
    let list = missing.join(" ");
    if !on_path("apt-get") {
        bail!("{who} needs {list}: install them with this system's package manager");
    }
    if !rooted() {
        bail!("{who} needs {list}: run `sudo apt-get install {list}`");
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        // RUNLEVEL: the packages would start their servers, which the tests do not want.
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
        command
    };
    steps::run("apt-get update", &mut apt(&["update", "-q"]))?;
    let mut arguments = vec!["install", "-y", "-q", "--no-install-recommends"];
    arguments.extend(missing);
    steps::run(&format!("apt-get install {list}"), &mut apt(&arguments))
}
