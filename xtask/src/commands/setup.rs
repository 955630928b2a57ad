//! `cargo xtask setup`: the Debian packages that tests run. Installs only what is missing, and says what it does.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::steps;

/// Program that tests run, and the package that has it.
const PROGRAMS: &[(&str, &str)] =
    &[("redis-server", "redis-server"), ("nginx", "nginx"), ("curl", "curl"), ("litmus", "litmus")];

/// Installs what is missing.
pub fn run() -> Result<()> {
    let missing: Vec<_> =
        PROGRAMS.iter().filter(|(program, _)| !installed(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        eprintln!("setup: nothing is missing");
        return Ok(());
    }
    let list = missing.join(" ");
    if !installed("apt-get") {
        bail!("tests need {list}: install them with this system's package manager");
    }
    if steps::read(Command::new("id").arg("-u"))?.trim() != "0" {
        bail!("tests need {list}: run `sudo apt-get install {list}`");
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

/// Whether a program is on the path, or where Debian puts servers.
pub fn installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).chain([Path::new("/usr/sbin").to_owned()]).any(|dir| dir.join(program).is_file())
}
