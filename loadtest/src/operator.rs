//! One running `sites operator`: started, made to wait, paused, measured, stopped.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use xtask::process::{Process, Signal, free_port, signal, tied};

use crate::ground::{Ground, NAMESPACE, merge, pin};
use crate::machine::{Memory, processor_millis};
use crate::server::Prepared;

/// How often readiness is asked for: the error of `exec → ready`.
const READY_POLL: Duration = Duration::from_millis(2);
/// Longest wait for readiness.
const READY_PATIENCE: Duration = Duration::from_secs(120);
/// Longest wait for an orderly end.
const STOP_PATIENCE: Duration = Duration::from_secs(40);
/// The operator's Lease.
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/load/leases";

/// The process. Dropping it kills it.
pub struct Operator {
    process: Process,
    port: u16,
    /// From before its start to the first positive answer of `/readyz`.
    pub ready_after: Duration,
}

impl Operator {
    /// Starts one with `settings` written over the ground's and waits until it is ready.
    pub async fn start(ground: &Ground, settings: &Value) -> Result<Self> {
        let port = free_port()?;
        let mut document = ground.document().clone();
        merge(&mut document, settings);
        document["operator"]["admin_address"] = json!(format!("127.0.0.1:{port}"));
        let file = ground.dir().join(format!("settings-{port}.yaml"));
        // JSON is YAML.
        std::fs::write(&file, document.to_string())?;
        let mut command = tied(program()?);
        command.args(["operator", "--namespace", NAMESPACE, "--config"]).arg(&file);
        command.env("KUBECONFIG", ground.operator_kubeconfig());
        let log = ground.dir().join(format!("operator-{port}.log"));
        let begun = Instant::now();
        let process = Process::start("operator", command, &log)?;
        if ground.standing.pinned {
            pin(process.id(), "1")?;
        }
        let mut operator = Self { process, port, ready_after: Duration::ZERO };
        while operator.get("/readyz").await.is_none_or(|(code, _)| code != 200) {
            if let Some(status) = operator.process.ended()? {
                bail!("the operator ended ({status}):\n{}", operator.process.last_lines(20));
            }
            ensure!(begun.elapsed() < READY_PATIENCE, "not ready:\n{}", operator.process.last_lines(20));
            tokio::time::sleep(READY_POLL).await;
        }
        operator.ready_after = begun.elapsed();
        Ok(operator)
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Milliseconds of processor time used.
    pub fn processor_millis(&self) -> Result<f64> {
        processor_millis(self.pid())
    }

    /// Memory now.
    pub fn memory(&self) -> Result<Memory> {
        Memory::of(self.pid())
    }

    /// The last lines of its log, for messages.
    #[must_use]
    pub fn last_lines(&self) -> String {
        self.process.last_lines(20)
    }

    /// Stops it in its tracks; its connections stay, and what it is sent waits in them.
    pub fn pause(&self) -> Result<()> {
        Ok(signal(self.pid(), Signal::STOP)?)
    }

    /// Lets it go on.
    pub fn resume(&self) -> Result<()> {
        Ok(signal(self.pid(), Signal::CONT)?)
    }

    /// Stops it in order; the Lease is free then.
    pub async fn stop(mut self) -> Result<()> {
        let process = tokio::task::spawn_blocking(move || {
            let status = self.process.stop(STOP_PATIENCE);
            (self.process, status)
        });
        let (process, status) = process.await?;
        ensure!(status?.success(), "the operator ended badly:\n{}", process.last_lines(20));
        Ok(())
    }

    /// Status code and body of a path of the admin port; none while nobody answers.
    pub async fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.ok()?;
        // HTTP/1.0: one answer, not chunked, then the end.
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.ok()?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }
}

/// Takes the operator's Lease away from it before it starts: it becomes ready and waits.
pub async fn hold_lease(ground: &Ground) -> Result<()> {
    let now = format!("{:.6}", jiff::Timestamp::now());
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "sites-operator", "namespace": NAMESPACE},
        "spec": {"holderIdentity": "loadtest", "leaseDurationSeconds": 3600, "acquireTime": now, "renewTime": now},
    });
    ground.admin.send(&Prepared::post(LEASE.to_owned(), &lease)).await.map(|_| ())
}

/// Gives the Lease back, as a leader that stops does.
pub async fn free_lease(ground: &Ground) -> Result<()> {
    let patch = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}});
    ground.admin.send(&Prepared::merge(format!("{LEASE}/sites-operator"), &patch)).await.map(|_| ())
}

/// The product's binary, built with this one.
pub fn program() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("sites");
    ensure!(path.is_file(), "{} is missing: build the package `sites` with the same profile", path.display());
    Ok(path)
}
