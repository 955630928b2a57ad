//! `cargo xtask generated`: files that the product's own binary writes, committed so that people can read them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::paths;

use super::steps;

/// Committed file, and the arguments of `sites` that print it. Add a line for a new one.
const FILES: &[(&str, &[&str])] = &[
    ("helm/sites/crds/sites.ecmwf.int_sites.yaml", &["crd"]),
    ("docs/rbac.yaml", &["rbac", "--namespace", "sites"]),
    ("docs/openapi-site-api.json", &["runtime", "openapi"]),
    ("docs/openapi-hub.json", &["openapi"]),
    ("docs/settings.md", &["config", "reference"]),
];

/// Writes the files, or only compares them.
pub fn run(check: bool) -> Result<()> {
    let sites = sites_binary()?;
    let mut stale = Vec::new();
    for (file, arguments) in FILES {
        let text = steps::read(Command::new(&sites).args(*arguments))
            .with_context(|| format!("`sites {}`", arguments.join(" ")))?;
        let path = paths::checkout().join(file);
        if fs::read_to_string(&path).is_ok_and(|committed| committed == text) {
            continue;
        }
        if check {
            stale.push(*file);
        } else {
            if let Some(dir) = path.parent() {
                fs::create_dir_all(dir)?;
            }
            fs::write(&path, text)?;
            println!("wrote {file}");
        }
    }
    if !stale.is_empty() {
        bail!("not up to date: {}; run `cargo xtask generated` and commit the result", stale.join(", "));
    }
    Ok(())
}

/// Builds the product's binary and says where it is: beside this one.
pub fn sites_binary() -> Result<PathBuf> {
    steps::run("build sites", &mut steps::cargo(&["build", "--locked", "--bin", "sites"]))?;
    let path = std::env::current_exe()?.with_file_name("sites");
    if !path.is_file() {
        bail!("cargo built no {}: is xtask run by another target folder?", path.display());
    }
    Ok(path)
}
