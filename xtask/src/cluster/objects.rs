//! What every local cluster holds from the start: a node, classes, custom resource definitions. Through `kubectl`,
//! which was built with the server: this crate needs no client of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// `kubectl` as the cluster's administrator.
#[derive(Debug)]
pub(super) struct Kubectl<'a> {
    pub(super) program: &'a Path,
    pub(super) kubeconfig: &'a Path,
}

/// Whether the API server says it is ready.
pub(super) fn api_ready(kubectl: &Kubectl<'_>) -> Result<bool> {
    Ok(kubectl.run(&["get", "--raw", "/readyz"])?.status.success())
}

impl Kubectl<'_> {
    fn run(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(self.program);
        command.args(arguments).env("KUBECONFIG", self.kubeconfig).stdin(Stdio::null());
        // kubectl keeps what it discovers under HOME, by server address; addresses come again with other content.
        command.env("KUBECACHEDIR", self.kubeconfig.with_file_name("kubectl-cache"));
        Ok(command.output()?)
    }

    /// Creates the objects of a text.
    pub(super) fn create_text(&self, text: &str) -> Result<()> {
        let file = self.kubeconfig.with_file_name("objects.json");
        fs::write(&file, text)?;
        let created = self.create(&file);
        fs::remove_file(file)?;
        created
    }

    /// Creates the objects of a file or folder.
    pub(super) fn create(&self, from: &Path) -> Result<()> {
        let path = from.display().to_string();
        let out = self.run(&["create", "--validate=false", "-f", &path])?;
        if !out.status.success() {
            bail!("creating {path}: {}", String::from_utf8_lossy(&out.stderr));
        }
        Ok(())
    }

    /// Waits until the node is Ready, every definition is served, and pods may be created.
    pub(super) fn wait_complete(&self, deadline: Instant) -> Result<()> {
        const NODE: &str = "jsonpath={.items[0].status.conditions[?(@.type==\"Ready\")].status}";
        self.wait("a Ready node", deadline, &["get", "nodes", "-o", NODE], |text| text == "True")?;
        self.wait_definitions(deadline)?;
        let account = ["get", "serviceaccounts", "--namespace", "default", "-o", "name"];
        self.wait("the default service account", deadline, &account, |text| !text.is_empty())
    }

    /// Waits until every definition is served: all that an API server without controllers can become.
    pub(super) fn wait_definitions(&self, deadline: Instant) -> Result<()> {
        const DEFINITIONS: &str = "jsonpath={.items[*].status.conditions[?(@.type==\"Established\")].status}";
        let count = self.run(&["get", "customresourcedefinitions", "-o", "name"])?;
        let count = String::from_utf8_lossy(&count.stdout).lines().count();
        self.wait("the definitions", deadline, &["get", "customresourcedefinitions", "-o", DEFINITIONS], |text| {
            text.split_whitespace().filter(|status| *status == "True").count() == count
        })
    }

    fn wait(&self, what: &str, deadline: Instant, ask: &[&str], enough: impl Fn(&str) -> bool) -> Result<()> {
        loop {
            let out = self.run(ask)?;
            if out.status.success() && enough(String::from_utf8_lossy(&out.stdout).trim()) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
                bail!("no sign of {what} in time: {stdout}{stderr}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
