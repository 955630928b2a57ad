//! The OpenID provider of local clusters and tests: its files, and a folder in which it can run.
//! Starts nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;

use super::build::once;
use super::fetched;
use crate::paths;

const FILES: [&str; 3] = ["package.json", "package-lock.json", "provider.mjs"];

/// The provider as a program of this machine.
#[derive(Debug, Clone)]
pub struct Provider {
    /// Node.js.
    pub node: PathBuf,
    /// What it runs; see the file's own head for its environment variables.
    pub script: PathBuf,
}

/// The provider, fetched now if it was not yet. Blocks.
pub fn provider() -> Result<Provider> {
    let folder = installed()?;
    let node = node_below(&folder)?;
    Ok(Provider { node, script: folder.join("provider.mjs") })
}

/// The users and clients of the demo.
#[must_use]
pub fn demo_config() -> PathBuf {
    sources()
}

/// The provider's users and clients, as a manifest.
pub(super) fn config() -> Result<String> {
    let data = json!({"users.json": text("users.json")?, "clients.json": text("clients.json")?});
    let metadata = json!({"name": "openid", "namespace": "sites-services"});
    Ok(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}).to_string())
}

/// What the program is made of, for the name of its image.
pub(super) fn inputs() -> Result<Vec<Vec<u8>>> {
    FILES.iter().map(|file| text(file).map(String::into_bytes)).collect()
}

/// The folder of the store with the program.
pub(super) fn place() -> Result<PathBuf> {
    let inputs = inputs()?;
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    Ok(fetched::place("openid-provider", &inputs))
}

/// Puts the program below `root`: the script in `/srv`, Node.js in `/usr/bin`.
pub(super) fn copy_below(root: &Path) -> Result<PathBuf> {
    let (home, program) = (root.join("srv"), root.join("usr/bin/node"));
    fetched::run(Command::new("cp").arg("-a").arg(installed()?).arg(&home))?;
    let node = node_below(&home)?;
    fs::rename(&node, &program)?;
    // Beside the program that package holds only headers and text.
    fs::remove_dir_all(node.ancestors().nth(2).context("a package is in a folder")?)?;
    Ok(program)
}

fn installed() -> Result<PathBuf> {
    let folder = place()?;
    once(&folder, |partial| {
        for file in FILES {
            fs::write(partial.join(file), text(file)?)?;
        }
        fetched::npm(partial)
    })?;
    Ok(folder)
}

/// Node itself is one of the packages, for this machine's architecture.
fn node_below(folder: &Path) -> Result<PathBuf> {
    let modules = fs::read_dir(folder.join("node_modules"))?.collect::<Result<Vec<_>, _>>()?;
    let node = modules.iter().map(|entry| entry.path().join("bin/node")).find(|path| path.is_file());
    node.context("npm brought no Node.js for this architecture")
}

fn sources() -> PathBuf {
    paths::cluster_sources().join("openid")
}

fn text(file: &str) -> Result<String> {
    let path = sources().join(file);
    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}
