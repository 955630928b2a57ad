//! `cargo xtask up` and `down`: a cluster, an operator and a sample Site, to look at.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use xtask::cluster::Profile;
use xtask::paths;
use xtask::process::last_lines;
use xtask::progress::Step;

use super::background::Background;
use super::cluster::{self, Which};
use super::{generated, steps};

/// The namespace of the demo.
const NAMESPACE: &str = "sites";

/// The service account whose rights the operator has.
const ACCOUNT: &str = "sites";

/// How long the sample Site may take to run.
const PATIENCE: Duration = Duration::from_mins(3);

fn operator() -> Background {
    Background::new("operator", &paths::state())
}

/// Brings everything up and waits until the sample Site runs.
pub fn up(which: Which) -> Result<()> {
    let sites = generated::sites_binary()?;
    let external = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()).map(PathBuf::from);
    let ours = external.is_none();
    let profile = if ours { which.choose()? } else { Profile::Kwok };
    let kubeconfig = match external {
        Some(kubeconfig) => {
            println!("cluster: the one of KUBECONFIG ({})", kubeconfig.display());
            kubeconfig
        }
        None => cluster::up(profile, Some(&sites))?,
    };
    let kubectl = Kubectl::find(kubeconfig, profile)?;
    let settings = paths::checkout().join("examples/settings.yaml");
    steps::run("settings", Command::new(&sites).args(["config", "check", "--config"]).arg(&settings))?;

    kubectl.apply(&steps::read(Command::new(&sites).arg("crd"))?)?;
    kubectl.apply(&format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n---\n\
         apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {ACCOUNT}, namespace: {NAMESPACE}}}\n"
    ))?;
    kubectl.apply(&steps::read(Command::new(&sites).args(["rbac", "--namespace", NAMESPACE]))?)?;
    kubectl.read(&["wait", "--for=condition=Established", "crd/sites.sites.ecmwf.int", "--timeout=30s"])?;

    if operator().stop(Duration::from_secs(30))? {
        println!("operator: the one that ran is stopped");
    }
    let identity = kubectl.operator_kubeconfig()?;
    let config = settings.display().to_string();
    let arguments = ["operator", "--config", &config, "--namespace", NAMESPACE];
    let mut process = operator().start(&sites, &arguments, &[("KUBECONFIG", &identity)])?;

    let sample = paths::checkout().join("examples/sites/docs-tree.yaml");
    let name = kubectl.read(&["apply", "-n", NAMESPACE, "-o", "name", "-f", &sample.display().to_string()])?;
    let name = name.trim().lines().next().context("the sample holds no Site")?.to_owned();
    let mut step = Step::begin("site", &format!("{name}: waiting until it runs"));
    let end = Instant::now() + PATIENCE;
    loop {
        const STATUS: &str = "jsonpath={.status.phase} {.status.conditions[?(@.type==\"Ready\")].message}";
        let status = kubectl.read(&["get", &name, "-n", NAMESPACE, "-o", STATUS])?;
        if status.split(' ').next() == Some("Running") {
            break;
        }
        if let Some(status) = process.try_wait()? {
            bail!("the operator ended ({status}):\n{}", last_lines(&operator().log(), 20));
        }
        if Instant::now() > end {
            bail!("{name} does not run; its status: {status}\n{}", last_lines(&operator().log(), 20));
        }
        step.tell(&format!("{name}: {}", if status.trim().is_empty() { "no status yet" } else { status.trim() }));
        std::thread::sleep(Duration::from_millis(200));
    }
    step.done(&format!("{name} is Running"));
    tell(&kubectl, &name, ours);
    Ok(())
}

/// Ends the operator and the cluster.
pub fn down() -> Result<()> {
    let ran = operator().stop(Duration::from_secs(30))?;
    println!("operator: {}", if ran { "down" } else { "was not up" });
    cluster::down()
}

fn tell(kubectl: &Kubectl, name: &str, ours: bool) {
    let id = name.rsplit('/').next().unwrap_or(name);
    // Nothing to say about a kubectl that people have.
    let named = kubectl.program.as_os_str() != "kubectl";
    let alias = if named { format!("\n  alias kubectl={}", kubectl.program.display()) } else { String::new() };
    let log = operator().log();
    // The operator logs the address that it really listens on.
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let admin = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|line| {
            let address = line.get("address").or_else(|| line.get("fields")?.get("address"))?;
            address.as_str().map(str::to_owned)
        })
        .unwrap_or_else(|| "127.0.0.1:8081".into());
    println!(
        "
Look at it:
  export KUBECONFIG={kubeconfig}{alias}
  kubectl -n {NAMESPACE} get sites -o wide
  kubectl -n {NAMESPACE} get sts,pods,pvc,svc,ingress,secret,cm -l sites.ecmwf.int/id={id}
  kubectl -n {NAMESPACE} edit site {id}
  curl http://{admin}/debug/sites/{id}      what the operator knows of it
  curl http://{admin}/metrics
  less {log}
Stop it:
  make down{note}",
        kubeconfig = kubectl.kubeconfig.display(),
        log = log.display(),
        note = if ours { "" } else { "        (the operator; your cluster and what is in it stay)" },
    );
}

/// `kubectl` for the demo's cluster.
struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// The cluster's own for a cluster of ours, else the user's.
    fn find(kubeconfig: PathBuf, profile: Profile) -> Result<Self> {
        let program = if xtask::cluster::on_path("kubectl") {
            "kubectl".into()
        } else {
            xtask::cluster::build(profile)?.kubectl()
        };
        Ok(Self { program, kubeconfig })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig);
        command
    }

    fn read(&self, arguments: &[&str]) -> Result<String> {
        steps::read(&mut self.command(arguments))
    }

    /// Applies YAML text. Server-side: the definition of the Site is longer than the annotation of a client-side one.
    fn apply(&self, yaml: &str) -> Result<()> {
        let mut command = self.command(&["apply", "--server-side", "--force-conflicts", "-f", "-"]);
        let mut child = command.stdin(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(yaml.as_bytes())?;
        }
        if !child.wait()?.success() {
            bail!("kubectl apply failed");
        }
        Ok(())
    }

    /// A kubeconfig with the operator's own identity, so that the demo shows that its rights are enough.
    fn operator_kubeconfig(&self) -> Result<PathBuf> {
        let token = self.read(&["create", "token", ACCOUNT, "-n", NAMESPACE, "--duration=24h"])?;
        let view = self.read(&["config", "view", "--minify", "--raw", "--flatten", "-o", "json"])?;
        let mut config: serde_json::Value = serde_json::from_str(&view)?;
        for user in config["users"].as_array_mut().into_iter().flatten() {
            user["user"] = serde_json::json!({"token": token.trim()});
        }
        let path = paths::state().join("operator.kubeconfig");
        write_private(&path, &config.to_string())?;
        Ok(path)
    }
}

fn write_private(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}
