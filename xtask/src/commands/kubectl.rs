//! `kubectl` as the demo uses it. Knows not what the objects are for.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use xtask::cluster::Profile;
use xtask::paths;

use super::steps;

/// `kubectl` for the demo's cluster.
pub struct Kubectl {
    /// The program.
    pub program: PathBuf,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
}

impl Kubectl {
    /// The cluster's own for a cluster of ours, else the user's.
    pub fn find(kubeconfig: PathBuf, profile: Profile) -> Result<Self> {
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

    /// Runs it and gives what it prints.
    pub fn read(&self, arguments: &[&str]) -> Result<String> {
        steps::read(&mut self.command(arguments))
    }

    /// Applies YAML text. Server-side: the definition of the Site is longer than the annotation of a client-side one.
    pub fn apply(&self, yaml: &str) -> Result<()> {
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

    /// A kubeconfig with the identity of a service account, so that the demo shows that its rights are enough.
    pub fn kubeconfig_of(&self, namespace: &str, account: &str) -> Result<PathBuf> {
        let token = self.read(&["create", "token", account, "-n", namespace, "--duration=24h"])?;
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
