//! Where things lie: the checkout, and the cache folder outside it. Creates no folder.

use std::env;
use std::path::{Path, PathBuf};

/// The root of this checkout.
#[must_use]
pub fn checkout() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// The folder for what is costly to make and shared by all checkouts:
/// `SITES_CACHE_DIR`, else `XDG_CACHE_HOME/sites`, else `~/.cache/sites`.
#[must_use]
pub fn cache() -> PathBuf {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("SITES_CACHE_DIR")
        .or_else(|| set("XDG_CACHE_HOME").map(|dir| dir.join("sites")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/sites")))
        .unwrap_or_else(|| env::temp_dir().join("sites-cache"))
}

/// The folder of the local cluster's module files, stages and manifests.
#[must_use]
pub fn cluster_sources() -> PathBuf {
    checkout().join("tests/cluster")
}

/// The folder in which `cargo xtask up` keeps what runs in the background (ignored by git).
#[must_use]
pub fn state() -> PathBuf {
    checkout().join(".sites")
}
