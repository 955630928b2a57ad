//! M7, M7b: pages of the Hub's list against the same bytes served statically, and how soon a change stands in the list.
//!
//! Nobody is logged in and every Site is public: what is measured is the list. Hub and comparator are processes of
//! their own; each variant is measured in turns of both, so that they meet the same weather. One client, the same for
//! both, shares the machine: the processor time of the servers is given too.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use xtask::process::{Process, free_port, tied};

use super::pods::quantiles;
use super::{Meter, PATIENCE, Session, number};
use crate::fixed;
use crate::ground::{Ground, Parts, merge};
use crate::hub::{Hub, until};
use crate::population::{PREPARING, SITES, name, send_all, site};
use crate::rows::{Run, Weather, rounded};
use crate::server::{Prepared, Server};

/// Requests in flight.
const IN_FLIGHT: usize = 8;
/// Length of one turn.
const TURN: Duration = Duration::from_millis(500);
/// Turns of each side.
const TURNS: usize = 5;
/// Changes that are waited for.
const CHANGES: usize = 100;
/// The orders of the list.
const ORDERS: [&str; 9] =
    ["name", "space", "owner", "type", "registered_date", "retention_date", "updated_date", "quota", "phase"];
/// The filters, a plain page, and deep ones.
const FILTERS: [(&str, &str); 7] = [
    ("search", "q=load-0012"),
    ("space", "space=space-3"),
    ("owner", "owner=owner-7"),
    ("type", "type=public"),
    ("enabled", "enabled_only=true"),
    ("descending", "sort_by=quota&order_by=desc"),
    ("deep", "offset=DEEP"),
];

/// One round.
pub async fn round(session: &mut Session, round: usize) -> Result<()> {
    let ground = session.ground(Parts::Alone, false).await?;
    let count = session.plan.sites;
    let requests = (0..count).map(|number| Prepared::post(SITES.to_owned(), &public(number))).collect();
    send_all(&ground.admin, requests, PREPARING).await?;
    let hub = Hub::start(&ground, &json!({}))?;
    let list = hub.visitor()?;
    hub.until_listed(&list, count).await?;
    let run = |metric, variant: String| Run { metric, variant, round, server: "alone", sites: count };

    let mut pages: Vec<(String, String)> =
        ORDERS.iter().map(|order| (format!("sort-{order}"), format!("sort_by={order}"))).collect();
    let deep = (count * 9 / 10).to_string();
    pages.extend(FILTERS.iter().map(|(name, query)| ((*name).to_owned(), query.replace("DEEP", &deep))));
    let folder = tempfile::tempdir()?;
    for (name, query) in &pages {
        let bytes = list.send(&Prepared::get(format!("/hub/api/v2/sites/?{query}"))).await?;
        std::fs::write(folder.path().join(name), bytes)?;
    }
    let other = free_port()?;
    let comparator = start_fixed(&ground, folder.path(), other)?;
    let fixed = Server::plain(other)?;
    until("the comparator answers", &comparator, async || fixed.send(&Prepared::get("/deep".to_owned())).await.is_ok())
        .await?;
    for (name, query) in &pages {
        let weather = Weather::now();
        let (ours, theirs) = (Prepared::get(format!("/hub/api/v2/sites/?{query}")), Prepared::get(format!("/{name}")));
        let (mut listed, mut served) = (Side::default(), Side::default());
        for _ in 0..TURNS {
            served.turn(&fixed, &theirs, comparator.id()).await?;
            listed.turn(&list, &ours, hub.process().id()).await?;
        }
        let bytes = std::fs::metadata(folder.path().join(name))?.len();
        let (ours, theirs) = (listed.rate(), served.rate());
        let figures = json!({
            "per_second": rounded(ours), "static_per_second": rounded(theirs), "ratio": rounded(ours / theirs),
            "cpu_us": rounded(listed.cpu_micros()), "static_cpu_us": rounded(served.cpu_micros()), "bytes": bytes,
        });
        session.rows.write(&run("M7", name.clone()), weather, figures)?;
    }

    let weather = Weather::now();
    let mut times = Vec::new();
    for number in 0..CHANGES.min(count) {
        let mark = format!("mark-{number}-of-{round}");
        let patch = json!({"spec": {"configuration": {"description": mark}}});
        ground.admin.send(&Prepared::merge(format!("{SITES}/{}", name(number)), &patch)).await?;
        let written = Instant::now();
        while list.get(&format!("/hub/api/v2/sites/?q={mark}&limit=1")).await?["count"] != 1 {
            ensure!(written.elapsed() < PATIENCE, "a change never came");
        }
        times.push(written.elapsed());
    }
    session.rows.write(&run("M7b", "change to list".to_owned()), weather, quantiles(&times)?)
}

/// One side of a comparison.
#[derive(Default)]
struct Side {
    rates: Vec<f64>,
    requests: usize,
    millis: f64,
}

impl Side {
    async fn turn(&mut self, server: &Server, request: &Prepared, pid: u32) -> Result<()> {
        let meter = Meter::start(vec![pid])?;
        let begun = Instant::now();
        let one = || async {
            let mut done = 0_usize;
            while begun.elapsed() < TURN {
                server.send(request).await?;
                done += 1;
            }
            anyhow::Ok(done)
        };
        let done: usize = try_join_all((0..IN_FLIGHT).map(|_| one())).await?.into_iter().sum();
        self.rates.push(number(done) / begun.elapsed().as_secs_f64());
        self.millis += meter.millis()?;
        self.requests += done;
        Ok(())
    }

    /// The median of the turns.
    fn rate(&self) -> f64 {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or_default()
    }

    fn cpu_micros(&self) -> f64 {
        self.millis * 1000.0 / number(self.requests.max(1))
    }
}

/// A public Site; spaces, owners, sizes and days differ.
fn public(number: usize) -> Value {
    let mut object = site(&name(number));
    let day = |offset: usize| format!("2026-{:02}-{:02}", (number + offset) % 12 + 1, (number * 7 + offset) % 28 + 1);
    merge(
        &mut object,
        &json!({"spec": {
            "type": "public", "owner": format!("owner-{}", number % 97),
            "configuration": {
                "space": format!("space-{}", number % 20), "quota": number % 50 + 1, "description": "A site of the load test.",
                "registered_date": day(0), "retention_date": day(3), "updated_date": day(5),
            },
        }}),
    );
    object
}

fn start_fixed(ground: &Ground, folder: &Path, port: u16) -> Result<Process> {
    let mut command = tied(std::env::current_exe()?);
    command.arg("fixed").env(fixed::FOLDER, folder).env(fixed::PORT, port.to_string());
    Ok(Process::start("fixed", command, &ground.dir().join("fixed.log"))?)
}
