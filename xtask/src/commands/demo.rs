//! `cargo xtask up` and `down`: a cluster, an operator and a sample Site, to look at.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use xtask::cluster::Profile;
use xtask::paths;
use xtask::process::last_lines;
use xtask::progress::Step;

use super::background::Background;
use super::cluster::{self, Which};
use super::kubectl::Kubectl;
use super::{generated, platform, steps};

/// The namespace of the demo.
pub const NAMESPACE: &str = "sites";

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
    let in_pod = ours && cluster::owner().is_some();
    let kubectl = Kubectl::find(kubeconfig, profile)?;
    let settings = paths::checkout().join("examples").join(if in_pod { "settings-node.yaml" } else { "settings.yaml" });
    steps::run("settings", Command::new(&sites).args(["config", "check", "--config"]).arg(&settings))?;

    kubectl.apply(&steps::read(Command::new(&sites).arg("crd"))?)?;
    kubectl.apply(&format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n---\n\
         apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {ACCOUNT}, namespace: {NAMESPACE}}}\n"
    ))?;
    kubectl.apply(&steps::read(Command::new(&sites).args(["rbac", "--namespace", NAMESPACE]))?)?;
    kubectl.read(&["wait", "--for=condition=Established", "crd/sites.sites.ecmwf.int", "--timeout=30s"])?;
    if in_pod {
        platform::deploy(&kubectl, &sites, &settings)?;
    } else {
        start_operator(&kubectl, &sites, &settings)?;
    }

    let sample = paths::checkout().join("examples/sites/docs-tree.yaml");
    let name = kubectl.read(&["apply", "-n", NAMESPACE, "-o", "name", "-f", &sample.display().to_string()])?;
    let name = name.trim().lines().next().context("the sample holds no Site")?.to_owned();
    wait_running(&kubectl, &name, in_pod)?;
    tell(&kubectl, &name, ours, in_pod);
    Ok(())
}

/// Runs the operator on this machine, with its own rights in the cluster.
fn start_operator(kubectl: &Kubectl, sites: &Path, settings: &Path) -> Result<()> {
    if operator().stop(Duration::from_secs(30))? {
        println!("operator: the one that ran is stopped");
    }
    let identity = kubectl.kubeconfig_of(NAMESPACE, ACCOUNT)?;
    let config = settings.display().to_string();
    let arguments = ["operator", "--config", &config, "--namespace", NAMESPACE];
    operator().start(sites, &arguments, &[("KUBECONFIG", &identity)])?;
    Ok(())
}

fn wait_running(kubectl: &Kubectl, name: &str, in_pod: bool) -> Result<()> {
    let log = || -> String {
        if in_pod {
            kubectl.read(&["logs", "-n", NAMESPACE, "deployment/sites-operator", "--tail=20"]).unwrap_or_default()
        } else {
            last_lines(&operator().log(), 20)
        }
    };
    let mut step = Step::begin("site", &format!("{name}: waiting until it runs"));
    let end = Instant::now() + PATIENCE;
    loop {
        const STATUS: &str = "jsonpath={.status.phase} {.status.conditions[?(@.type==\"Ready\")].message}";
        let status = kubectl.read(&["get", name, "-n", NAMESPACE, "-o", STATUS])?;
        if status.split(' ').next() == Some("Running") {
            break;
        }
        if !in_pod && operator().alive().is_none() {
            bail!("the operator ended:\n{}", log());
        }
        if Instant::now() > end {
            bail!("{name} does not run; its status: {status}\n{}", log());
        }
        step.tell(&format!("{name}: {}", if status.trim().is_empty() { "no status yet" } else { status.trim() }));
        std::thread::sleep(Duration::from_millis(200));
    }
    step.done(&format!("{name} is Running"));
    Ok(())
}

/// Ends the operator and the cluster.
pub fn down() -> Result<()> {
    let ran = operator().stop(Duration::from_secs(30))?;
    println!("operator: {}", if ran { "down" } else { "was not up" });
    cluster::down()
}

fn tell(kubectl: &Kubectl, name: &str, ours: bool, in_pod: bool) {
    let id = name.rsplit('/').next().unwrap_or(name);
    // Nothing to say about a kubectl that people have.
    let named = kubectl.program.as_os_str() != "kubectl";
    let alias = if named { format!("\n  alias kubectl={}", kubectl.program.display()) } else { String::new() };
    let kubeconfig = kubectl.kubeconfig.display();
    let more = if in_pod { tell_of_pod(kubectl, name, id) } else { tell_of_process(id) };
    let note = if ours { "" } else { "        (the operator; your cluster and what is in it stay)" };
    println!(
        "
Look at it:
  export KUBECONFIG={kubeconfig}{alias}
  kubectl -n {NAMESPACE} get sites -o wide
  kubectl -n {NAMESPACE} get sts,pods,pvc,svc,ingress,secret,cm -l sites.ecmwf.int/id={id}
  kubectl -n {NAMESPACE} edit site {id}
{more}
Stop it:
  make down{note}"
    );
}

fn tell_of_pod(kubectl: &Kubectl, name: &str, id: &str) -> String {
    const PATH: &str = "jsonpath={.spec.configuration.space}/{.spec.name}/";
    let path = kubectl.read(&["get", name, "-n", NAMESPACE, "-o", PATH]).unwrap_or_default();
    let page = format!("https://{}/{path}", xtask::cluster::node::SITES_HOST);
    let ca = cluster::ca_file();
    let ca = ca.display();
    format!(
        "  kubectl -n {NAMESPACE} logs deployment/sites-operator
  kubectl -n {NAMESPACE} logs {id}-0 site-proxy
  curl --cacert {ca} {page}
  cargo xtask cluster enter -- curl http://POD:8081/healthz      any program inside the cluster's network
A browser opens {page} as well; it does not know the certificate's authority ({ca})."
    )
}

fn tell_of_process(id: &str) -> String {
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
    format!(
        "  curl http://{admin}/debug/sites/{id}      what the operator knows of it
  curl http://{admin}/metrics
  less {}",
        log.display()
    )
}
