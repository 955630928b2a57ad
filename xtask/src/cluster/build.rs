//! Building the cluster's binaries from their Go modules into the cache folder, once per version.
//! Starts nothing and knows no flag of what it builds.
//!
//! A group's folder is named by the hash of its module files, the Go version and the build flags, so that a change of
//! any makes a new folder and an old checkout keeps finding its own. It is filled under a temporary name and renamed,
//! under a lock: what exists is complete.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::paths;
use crate::progress::Step;

/// The release of Kubernetes that `k8s/go.mod` pins, as its binaries report it.
pub(super) const KUBERNETES_VERSION: &str = "v1.36.3";

/// Where the binaries of a built profile are.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl.
    pub kubernetes: PathBuf,
    /// kwok.
    pub kwok: PathBuf,
    /// Custom resource definitions, one YAML file each.
    pub definitions: PathBuf,
}

impl Binaries {
    /// The `kubectl` of the cluster's own version.
    #[must_use]
    pub fn kubectl(&self) -> PathBuf {
        self.kubernetes.join("kubectl")
    }
}

/// One `go.mod` whose tools are built together.
struct Group {
    name: &'static str,
    packages: &'static [&'static str],
    /// Go names a binary after its package's folder; these get the name people know.
    renames: &'static [(&'static str, &'static str)],
    stamped: bool,
}

const KUBERNETES: Group = Group {
    name: "k8s",
    packages: &[
        "go.etcd.io/etcd/server/v3",
        "k8s.io/kubernetes/cmd/kube-apiserver",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
        "k8s.io/kubernetes/cmd/kube-scheduler",
        "k8s.io/kubernetes/cmd/kubectl",
    ],
    renames: &[("server", "etcd")],
    stamped: true,
};

const KWOK: Group = Group { name: "kwok", packages: &["sigs.k8s.io/kwok/cmd/kwok"], renames: &[], stamped: false };

/// Folders of module `crds` from which only YAML files are taken.
const DEFINITIONS: &[(&str, &str)] = &[
    ("sigs.k8s.io/gateway-api", "config/crd/standard"),
    ("github.com/envoyproxy/gateway", "charts/gateway-helm/charts/crds/crds/generated"),
];

/// The folder that holds one folder per built group.
#[must_use]
pub fn store() -> PathBuf {
    paths::cache().join("bin")
}

/// Builds what the kwok profile needs, or finds it built.
pub(super) fn kwok_profile() -> Result<Binaries> {
    let go = go_version()?;
    Ok(Binaries { kubernetes: built(&KUBERNETES, &go)?, kwok: built(&KWOK, &go)?, definitions: definitions(&go)? })
}

/// The folders that this checkout uses; the rest of the store is old.
pub fn current() -> Result<Vec<PathBuf>> {
    let go = go_version()?;
    let mut folders = Vec::new();
    for group in [&KUBERNETES, &KWOK] {
        folders.push(folder(group.name, &go, &arguments(group).join(" "))?);
    }
    folders.push(folder("crds", &go, "")?);
    Ok(folders)
}

fn go_version() -> Result<String> {
    let out = Command::new("go")
        .args(["env", "GOVERSION"])
        .output()
        .context("`go` is missing: the local cluster is built from Go modules; install Go 1.26 or newer")?;
    ensure!(out.status.success(), "`go env GOVERSION` failed");
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

fn arguments(group: &Group) -> Vec<String> {
    let mut flags = "-s -w".to_owned();
    if group.stamped {
        // Without these the server calls itself 0.0.0, and Helm and controllers refuse it.
        let minor = KUBERNETES_VERSION.split('.').nth(1).unwrap_or_default();
        for (key, value) in [
            ("gitVersion", KUBERNETES_VERSION),
            ("gitMajor", "1"),
            ("gitMinor", minor),
            ("gitTreeState", "clean"),
            ("gitCommit", "module"),
        ] {
            flags.push_str(" -X k8s.io/component-base/version.");
            flags.push_str(key);
            flags.push('=');
            flags.push_str(value);
        }
    }
    let fixed = ["build", "-v", "-trimpath", "-mod=readonly", "-buildvcs=false", "-ldflags"];
    fixed.iter().map(ToString::to_string).chain([flags]).chain(group.packages.iter().map(ToString::to_string)).collect()
}

fn folder(name: &str, go: &str, flags: &str) -> Result<PathBuf> {
    let source = paths::cluster_sources().join(name);
    let mut hash = Sha256::new();
    for file in ["go.mod", "go.sum"] {
        let path = source.join(file);
        hash.update(fs::read(&path).with_context(|| format!("reading {}", path.display()))?);
        hash.update([0]);
    }
    hash.update(go);
    hash.update([0]);
    hash.update(flags);
    let hex: String = hash.finalize().iter().take(6).fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    Ok(store().join(format!("{name}-{hex}")))
}

/// Runs `fill` for a folder that does not exist yet, under the folder's lock.
fn once(folder: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(store())?;
    let lock = File::create(folder.with_extension("lock"))?;
    if lock.try_lock().is_err() {
        eprintln!("{}: another process builds it, waiting", folder.display());
        lock.lock()?;
    }
    if folder.is_dir() {
        return Ok(());
    }
    let partial = folder.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial)?;
    }
    fs::create_dir_all(&partial)?;
    fill(&partial)?;
    fs::rename(&partial, folder)?;
    Ok(())
}

fn built(group: &Group, go: &str) -> Result<PathBuf> {
    let arguments = arguments(group);
    let folder = folder(group.name, go, &arguments.join(" "))?;
    once(&folder, |partial| {
        compile(group, &arguments, partial)?;
        for (from, to) in group.renames {
            fs::rename(partial.join(from), partial.join(to))?;
        }
        Ok(())
    })?;
    Ok(folder)
}

fn compile(group: &Group, arguments: &[String], out: &Path) -> Result<()> {
    let source = paths::cluster_sources().join(group.name);
    let mut step = Step::begin(group.name, "fetching modules (a first build takes about 6 minutes, later ones none)");
    let list = Command::new("go")
        .args(["list", "-mod=readonly", "-deps"])
        .args(group.packages)
        .current_dir(&source)
        .env("CGO_ENABLED", "0")
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(list.status.success(), "`go list` failed in {}", source.display());
    let total = String::from_utf8_lossy(&list.stdout).lines().count();

    let mut child = Command::new("go")
        .args(&arguments[..arguments.len() - group.packages.len()])
        .arg("-o")
        .arg(format!("{}/", out.display()))
        .args(group.packages)
        .current_dir(&source)
        .env("CGO_ENABLED", "0")
        .env_remove("GOFLAGS")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let (mut count, mut other) = (0, Vec::new());
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).lines() {
            let line = line?;
            // With -v Go prints one import path per compiled package; anything else is a message.
            if line.contains(' ') {
                other.push(line);
            } else {
                count += 1;
                step.tell(&format!("{count} of at most {total} packages compiled"));
            }
        }
    }
    if !child.wait()?.success() {
        bail!("`go build` failed in {}:\n{}", source.display(), other.join("\n"));
    }
    step.done(&format!("built {count} packages into {}", out.with_extension("").display()));
    Ok(())
}

fn definitions(go: &str) -> Result<PathBuf> {
    let folder = folder("crds", go, "")?;
    once(&folder, |partial| {
        let source = paths::cluster_sources().join("crds");
        let modules = fs::read_to_string(source.join("go.mod"))?;
        let step = Step::begin("crds", "fetching the Gateway API's and Envoy Gateway's definitions");
        for (module, path) in DEFINITIONS {
            let version = modules
                .lines()
                .find_map(|line| line.trim().strip_prefix(module)?.strip_prefix(' '))
                .with_context(|| format!("{module} is not in crds/go.mod"))?;
            let out = Command::new("go")
                .args(["mod", "download", "-json", &format!("{module}@{}", version.trim())])
                .current_dir(&source)
                .env_remove("GOFLAGS")
                .stderr(Stdio::inherit())
                .output()?;
            ensure!(out.status.success(), "`go mod download {module}` failed");
            let told: serde_json::Value = serde_json::from_slice(&out.stdout)?;
            let dir = told["Dir"].as_str().with_context(|| format!("{module} has no folder"))?;
            copy_definitions(&Path::new(dir).join(path), partial)?;
        }
        step.done("fetched");
        Ok(())
    })?;
    Ok(folder)
}

fn copy_definitions(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        // The Gateway API also ships an admission policy against mixing channels; only definitions are wanted.
        if let (true, Some(name)) = (text.contains("kind: CustomResourceDefinition"), path.file_name()) {
            fs::write(to.join(name), text)?;
        }
    }
    Ok(())
}
