//! Contour with an Envoy of its own: the entrance for Ingress objects of the class `nginx`, beside the Gateway's. Only
//! for tests of ingress mode: built and started when one asks.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::relay::Relay;
use super::{ADDRESS, Node, node_binaries};
use crate::cluster::Cluster;
use crate::cluster::build;
use crate::cluster::fetched;
use crate::cluster::parts::flag;
use crate::process::Process;

/// Where its Envoy listens for plain HTTP; 8080 is Envoy Gateway's.
const HTTP: u16 = 18080;

/// Where Envoy asks Contour.
const XDS: u16 = 18101;

/// How long it may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A running Contour. Dropping it ends it and its Envoy.
#[derive(Debug)]
pub struct Contour {
    relay: Relay,
    envoy: Process,
    server: Process,
}

impl Contour {
    /// Builds it if need be, installs its definitions and starts it.
    pub fn start(cluster: &Cluster) -> Result<Self> {
        let node = cluster.node().context("Contour needs a real node")?;
        let (program, definitions) = build::contour()?;
        cluster.kubectl(|kubectl| {
            kubectl.create(&definitions)?;
            kubectl.wait_complete(Instant::now() + PATIENCE)
        })?;
        let dir = cluster.dir().join("contour");
        fs::create_dir_all(&dir)?;

        let mut contour = node.command(&program);
        contour
            .args(["serve", "--insecure", "--disable-leader-election", "--ingress-class-name=nginx"])
            .arg(flag("kubeconfig", cluster.pki.kubeconfig("edge").display()))
            .args([flag("xds-address", Ipv4Addr::LOCALHOST), flag("xds-port", XDS)])
            .args([flag("envoy-service-http-address", ADDRESS), flag("envoy-service-http-port", HTTP)])
            .args([flag("envoy-service-https-address", ADDRESS), flag("envoy-service-https-port", HTTP + 1)])
            .args(["--stats-port=18102", "--http-port=18103", "--health-port=18104", "--debug-http-port=18105"]);
        let contour = Process::start("contour", contour, &cluster.log("contour"))?;

        let bootstrap = dir.join("envoy.json");
        fetched::run(
            Command::new(&program)
                .args(["bootstrap", "--xds-address=127.0.0.1"])
                .arg(flag("xds-port", XDS))
                .arg(flag("admin-address", dir.join("admin.sock").display()))
                .arg(&bootstrap),
        )?;
        let mut envoy = node.command(&node_binaries(cluster.binaries())?.envoy);
        // Two Envoys on one machine share memory unless they are told not to.
        envoy.arg("--config-path").arg(&bootstrap).args(["--use-dynamic-base-id", "--log-level", "warn"]);
        envoy.args(["--service-cluster", "contour", "--service-node", "contour"]);
        let envoy = Process::start("contour-envoy", envoy, &cluster.log("contour-envoy"))?;
        let relay = node.relay((ADDRESS, HTTP).into())?;
        let mut started = Self { relay, envoy, server: contour };
        started.wait(node)?;
        Ok(started)
    }

    /// Where this machine reaches it, by plain HTTP.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.relay.address()
    }

    fn wait(&mut self, node: &Node) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        // Its Envoy listens for the public only while there is an Ingress.
        while node.dialer.connect((Ipv4Addr::LOCALHOST, XDS).into()).is_err() {
            for process in [&mut self.server, &mut self.envoy] {
                if let Some(status) = process.ended()? {
                    bail!("{} ended ({status}):\n{}", process.name(), process.last_lines(15));
                }
            }
            if Instant::now() > end {
                bail!("Contour does not listen: {}", self.server.last_lines(15));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}
