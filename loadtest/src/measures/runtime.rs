//! R1 to R4: what a site's pod takes and how fast it serves, on a real node.
//!
//! The comparator is one nginx with a plain configuration in a pod of the same image and limits, on a volume of the
//! same kind. Requests come from inside the box to the pods' addresses; both sides alternate within each round.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use xtask::cluster::node::{Node, SITES_HOST};

use super::Session;
use crate::containers;
use crate::ground::{Ground, Parts};
use crate::operator::Operator;
use crate::rows::{Run, Weather, rounded};
use crate::site_pod::{self, MASTER, SPACE, bearer};
use crate::web::{self, Rate};

/// Rounds at the least.
const ROUNDS: usize = 5;
/// Length of one turn of requests.
const SECONDS: u32 = 3;
/// How long the pod has had nothing to do before its memory is read.
const IDLE: Duration = Duration::from_secs(45);
/// The files: name and size. The first is what the aim is about.
const FILES: [(&str, usize); 2] = [("small.html", 1 << 10), ("large.html", 256 << 10)];
/// Size of an upload in MiB.
const UPLOAD_MIB: u32 = 256;
const PUBLIC: &str = "page";
const PRIVATE: &str = "inner";

/// Everything, in one cluster.
pub async fn measure(session: &mut Session) -> Result<()> {
    let ground = session.ground_with(Parts::Node, false, &json!({})).await?;
    let operator = Operator::start(&ground, &json!({})).await?;
    site_pod::site(&ground, PUBLIC, "public").await?;
    site_pod::site(&ground, PRIVATE, "private").await?;
    site_pod::bare(&ground).await?;
    let (page, inner) = (site_pod::ready(&ground, "page-0").await?, site_pod::ready(&ground, "inner-0").await?);
    let bare = site_pod::ready(&ground, "bare").await?;
    let weather = Weather::now();
    let (server, load) = web::versions(ground.node()?, &site_pod::address(&bare)?)?;
    session.rows.write(&run("R0", "versions", 0), weather, json!({"server": server, "load": load}))?;
    memory(session, &ground, &page, "idle").await?;
    let stand = Stand {
        node: ground.node()?,
        page: format!("{}/{SPACE}/{PUBLIC}/", site_pod::address(&page)?),
        inner: format!("{}/{SPACE}/{PRIVATE}/", site_pod::address(&inner)?),
        bare: format!("{}/", site_pod::address(&bare)?),
    };
    stand.fill(ground.dir())?;
    let credentials = stand.credentials(&ground, &site_pod::address(&inner)?)?;
    let upload = ground.dir().join("upload.bin");
    std::fs::write(&upload, noise((UPLOAD_MIB as usize) << 20))?;
    for round in 0..session.plan.rounds.max(ROUNDS) {
        stand.files(session, round)?;
        stand.private(session, round, &credentials)?;
        stand.uploads(session, round, &upload)?;
    }
    memory(session, &ground, &page, "after the load").await?;
    operator.stop().await
}

/// R1: each container of a pod that has had nothing to do for a while, and their sum.
async fn memory(session: &mut Session, ground: &Ground, pod: &Value, when: &str) -> Result<()> {
    let weather = Weather::now();
    tokio::time::sleep(IDLE).await;
    let all = containers::usage(ground.node()?.groups(), pod)?;
    let (mut resident, mut working) = (0.0, 0.0);
    for one in &all {
        (resident, working) = (resident + one.resident, working + one.working_set);
        let run = run("R1", &format!("{} {when}", one.name), 0);
        session.rows.write(&run, weather, kib(one.resident, one.working_set))?;
    }
    session.rows.write(&run("R1", &format!("pod {when}"), 0), weather, kib(resident, working))
}

fn kib(resident: f64, working_set: f64) -> Value {
    json!({"rss_kib": rounded(resident), "working_set_kib": rounded(working_set)})
}

fn run(metric: &'static str, variant: &str, round: usize) -> Run {
    Run { metric, variant: variant.to_owned(), round, server: Parts::Node.word(), sites: 1 }
}

/// Where everybody is.
struct Stand<'a> {
    node: &'a Node,
    page: String,
    inner: String,
    bare: String,
}

impl Stand<'_> {
    /// Puts the same files everywhere.
    fn fill(&self, dir: &Path) -> Result<()> {
        for (name, size) in FILES {
            let file = dir.join(name);
            std::fs::write(&file, noise(size))?;
            for site in [&self.page, &self.inner] {
                web::upload(self.node, &format!("{site}s/api/v2/files/{name}"), &file, &[bearer(MASTER)])?;
            }
            web::upload(self.node, &format!("{}{name}", self.bare), &file, &[])?;
        }
        Ok(())
    }

    /// What opens the private site, each tried once.
    fn credentials(&self, ground: &Ground, address: &str) -> Result<Vec<(&'static str, Vec<String>)>> {
        let token = site_pod::access_token(self.node, address, PRIVATE)?;
        let session = site_pod::session(ground, PRIVATE, "alice")?;
        let host = format!("Host: {SITES_HOST}");
        let all = vec![
            ("session", vec![session, host.clone()]),
            ("JWT", vec![bearer(&site_pod::provider_token(ground)?), host]),
            ("access token", vec![bearer(&token)]),
        ];
        let url = format!("{}{}", self.inner, FILES[0].0);
        let nobody = web::status(self.node, &url, &[])?;
        ensure!(nobody == 401, "the private site answers {nobody} to nobody");
        for (name, headers) in &all {
            let status = web::status(self.node, &url, headers)?;
            ensure!(status == 200, "the {name} is answered with {status}");
        }
        Ok(all)
    }

    /// R2: the same file by the site's front door and by the bare nginx.
    fn files(&self, session: &mut Session, round: usize) -> Result<()> {
        for (name, size) in FILES {
            let sides = [("bare", &self.bare), ("site-proxy", &self.page)];
            // Who is first has no advantage in the long run.
            for index in if round.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
                let (side, base) = sides[index];
                let weather = Weather::now();
                let rate = web::requests(self.node, &format!("{base}{name}"), &[], SECONDS)?;
                let variant = format!("{side} {} KiB", size >> 10);
                session.rows.write(&run("R2", &variant, round), weather, figures(rate))?;
            }
        }
        Ok(())
    }

    /// R3: a private file by each kind of credential.
    fn private(&self, session: &mut Session, round: usize, all: &[(&'static str, Vec<String>)]) -> Result<()> {
        let url = format!("{}{}", self.inner, FILES[0].0);
        for (name, headers) in all {
            let weather = Weather::now();
            let rate = web::requests(self.node, &url, headers, SECONDS)?;
            session.rows.write(&run("R3", name, round), weather, figures(rate))?;
        }
        Ok(())
    }

    /// R4: a big file by the Site API and by the bare nginx's own `PUT`. What is dirty is on the disk before each.
    fn uploads(&self, session: &mut Session, round: usize, file: &Path) -> Result<()> {
        let api = format!("{}s/api/v2/files/upload.bin", self.page);
        let dav = format!("{}upload.bin", self.bare);
        let sides = [("bare", &dav, vec![]), ("Site API", &api, vec![bearer(MASTER)])];
        for index in if round.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
            let (side, url, headers) = &sides[index];
            web::output(Command::new("sync"))?;
            let weather = Weather::now();
            let speed = web::upload(self.node, url, file, headers)?;
            let figures = json!({"mib": UPLOAD_MIB, "mib_per_second": rounded(speed / f64::from(1 << 20))});
            session.rows.write(&run("R4", side, round), weather, figures)?;
        }
        Ok(())
    }
}

fn figures(rate: Rate) -> Value {
    json!({
        "per_second": rounded(rate.per_second), "p50_ms": rounded(rate.p50_ms), "p99_ms": rounded(rate.p99_ms),
        "connections": web::CONNECTIONS, "seconds": SECONDS,
    })
}

/// Bytes that do not compress, the same each time.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = std::iter::repeat_with(next).take(count.div_ceil(8)).flatten().collect();
    bytes.truncate(count);
    bytes
}
