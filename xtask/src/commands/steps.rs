//! Running other programs as named steps: says what begins, how long it took, and what failed.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

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
