//! Running other programs as named steps: says what begins, how long it took, and what failed.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use xtask::paths;

/// `cargo`, as if called by hand in the checkout. What the cargo that runs us tells us about this crate is taken out of
/// its environment: build scripts watch these variables, and dependencies would be compiled anew each time.
pub fn cargo(arguments: &[&str]) -> Command {
    const OURS: &[&str] = &["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_BIN_", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE"];
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(paths::checkout());
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| OURS.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a program with its output on the terminal; fails if it fails.
pub fn run(name: &str, command: &mut Command) -> Result<()> {
    eprintln!("==> {name}");
    let begun = Instant::now();
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("{name}: running {program}"))?;
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    eprintln!("==> {name}: ok ({:.1} s)", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Runs a program and gives what it prints; fails with its messages if it fails.
pub fn read(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let out = command.output().with_context(|| format!("running {program}"))?;
    if !out.status.success() {
        bail!("{program} failed ({}): {}", out.status, String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}
