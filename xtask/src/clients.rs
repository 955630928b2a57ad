//! Other people's clients, which tests run against ours: fetched once per recipe into the cache folder. Starts nothing.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use crate::cluster::build::once;
use crate::cluster::fetched;
use crate::paths;
use crate::progress::Step;

/// The folder for `PYTHONPATH` with what `tests/clients/requirements.txt` names, fetched now if it was not yet. Blocks.
pub fn python() -> Result<PathBuf> {
    let requirements = paths::checkout().join("tests/clients/requirements.txt");
    let folder = fetched::place("python-clients", &[&fs::read(&requirements)?]);
    once(&folder, |partial| {
        let step = Step::begin("pip", "fetching the clients of tests/clients/requirements.txt");
        fetched::pip(partial, &["--requirement".as_ref(), requirements.as_ref()])?;
        step.done("fetched");
        Ok(())
    })?;
    Ok(folder)
}

/// The folder with the `node_modules` that drive a browser, fetched now if it was not yet. Blocks.
pub fn browser() -> Result<PathBuf> {
    const FILES: [&str; 2] = ["package.json", "package-lock.json"];
    let [manifest, lock] = FILES.map(|file| fs::read(paths::checkout().join("tests/browser").join(file)));
    let (manifest, lock) = (manifest?, lock?);
    let folder = fetched::place("browser-driver", &[&manifest, &lock]);
    once(&folder, |partial| {
        fs::write(partial.join(FILES[0]), &manifest)?;
        fs::write(partial.join(FILES[1]), &lock)?;
        fetched::npm(partial)
    })?;
    Ok(folder)
}
