//! One running `sites hub`; for bulk runs with Redis and the OpenID provider behind it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use xtask::cluster::openid::{Provider, demo_config, provider};
use xtask::process::{Process, free_port, tied};

use crate::ground::{Ground, NAMESPACE, merge};
use crate::measures::PATIENCE;
use crate::operator::program;
use crate::server::{Prepared, Server};

/// The client of the demo's provider, which administers the platform here.
const CLIENT: &str = "sites";
const SECRET: &str = "demo-not-a-secret";

/// The processes. Dropping it ends them.
pub struct Hub {
    process: Process,
    port: u16,
    _behind: Vec<Process>,
}

impl Hub {
    /// Starts one with settings written over the ground's.
    pub fn start(ground: &Ground, settings: &Value) -> Result<Self> {
        let port = free_port()?;
        let mut document = ground.document().clone();
        merge(
            &mut document,
            &json!({"hub": {"address": format!("127.0.0.1:{port}"), "requests_per_second": 10_000_000, "log_level": "WARN"}}),
        );
        merge(&mut document, settings);
        let file = ground.dir().join("hub.yaml");
        // JSON is YAML.
        std::fs::write(&file, document.to_string())?;
        let mut command = tied(program()?);
        command.args(["hub", "--namespace", NAMESPACE, "--config"]).arg(&file);
        command.env("KUBECONFIG", ground.hub_kubeconfig());
        let process = Process::start("hub", command, &ground.dir().join("hub.log"))?;
        Ok(Self { process, port, _behind: Vec::new() })
    }

    /// Starts one that can work on bulk runs; the second asks it as an administrator of the platform.
    pub async fn start_with_runs(ground: &Ground) -> Result<(Self, Server)> {
        let (redis, at) = (free_port()?, free_port()?);
        let issuer = format!("http://127.0.0.1:{at}");
        let mut command = tied("redis-server");
        command.args([
            "--port",
            &redis.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
        ]);
        command.arg(ground.dir());
        let kept = Process::start("redis", command, &ground.dir().join("redis.log"))
            .context("`redis-server` runs (`cargo xtask setup`)")?;
        let Provider { node, script } = tokio::task::spawn_blocking(provider).await??;
        let mut command = tied(node);
        command.arg(script).env("ISSUER", &issuer).env("AUDIENCE", CLIENT).env("CONFIG", demo_config());
        command.env("HOST", "127.0.0.1").env("PORT", at.to_string());
        let openid = Process::start("openid", command, &ground.dir().join("openid.log"))?;
        let client = Server::as_client(at, CLIENT, SECRET)?;
        until("the provider answers", &openid, async || {
            client.send(&Prepared::get("/healthz".to_owned())).await.is_ok()
        })
        .await?;
        let asked = Prepared {
            content: "application/x-www-form-urlencoded",
            body: b"grant_type=client_credentials".to_vec(),
            ..Prepared::post("/token".to_owned(), &Value::Null)
        };
        let told = client.ask(&asked).await?;
        let token = told["access_token"].as_str().context("the provider gives the client a token")?;
        let settings = json!({
            "redis": {"url": format!("redis://127.0.0.1:{redis}/")},
            "oidc": {
                "issuer": issuer, "client_id": CLIENT, "client_secret": SECRET, "login_url": format!("{issuer}/auth"),
                "redeem_url": format!("{issuer}/token"), "jwks_url": format!("{issuer}/jwks"),
            },
            "hub": {"platform_administrators": {"users": [CLIENT]}},
        });
        let hub = Self { _behind: vec![kept, openid], ..Self::start(ground, &settings)? };
        let administrator = Server::as_bearer(hub.port, token)?;
        Ok((hub, administrator))
    }

    /// Its process, for its processor time and its last words.
    #[must_use]
    pub const fn process(&self) -> &Process {
        &self.process
    }

    /// The way to it for somebody without a login.
    pub fn visitor(&self) -> Result<Server> {
        Server::plain(self.port)
    }

    /// Waits until its list has so many Sites for somebody.
    pub async fn until_listed(&self, reader: &Server, sites: usize) -> Result<()> {
        until("the Hub lists every Site", &self.process, async || {
            reader.get("/hub/api/v2/sites/?limit=1").await.is_ok_and(|page| page["count"] == sites)
        })
        .await
    }
}

/// Upgrades all Sites, as an administrator, and says how many when the run has ended.
pub async fn upgrade(administrator: &Server) -> Result<u32> {
    let begun = administrator.ask(&Prepared::post("/hub/api/v2/sites/upgrade/".to_owned(), &Value::Null)).await?;
    let path = format!("/hub/api/v2/runs/{}/?state=failed", begun["run"].as_str().context("a run has an id")?);
    loop {
        let run = administrator.get(&path).await?;
        if run["state"] != "running" {
            ensure!(run["state"] == "done" && run["counts"]["failed"] == 0, "the run did not upgrade all: {run}");
            return Ok(serde_json::from_value(run["counts"]["done"].clone())?);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Waits for something that a process will do.
pub async fn until(what: &str, process: &Process, mut so: impl AsyncFnMut() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !so().await {
        ensure!(begun.elapsed() < PATIENCE, "{what}: not in time:\n{}", process.last_lines(20));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
