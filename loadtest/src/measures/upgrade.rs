//! M9: how long a person waits for a new Site while all others are upgraded, against an idle platform.
//!
//! An open loop creates a Site at a fixed pace: first with nothing else to do, then while a bulk upgrade is worked
//! on: upgrade request and `work-class: bulk` are written on every Site, at a steady pace, as a run of the Hub does.
//! A Site counts as there when its objects exist and its status says Ready.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::pods::quantiles;
use super::{PATIENCE, Session, number, seconds};
use crate::ground::{Ground, Parts};
use crate::observer::{Goal, Observer, Progress};
use crate::operator::Operator;
use crate::population::{SITES, create, name, site};
use crate::rows::{Run, Weather, rounded};
use crate::server::Prepared;

/// Time between two new Sites.
const PACE: Duration = Duration::from_millis(250);
/// Upgrade requests written a second, as many as the Hub writes unless told otherwise (`hub.bulk.rate`). With no pace
/// at all their own cost to the server would be what is measured.
const REQUESTS: u32 = 20;
/// New Sites on the idle platform.
const IDLE: usize = 40;
/// The run of the upgrade.
const REQUEST: &str = "4c1c9a5e-0b1d-4f64-9d5f-6a3a2f1f7d10";

/// One round.
pub async fn round(session: &mut Session, round: usize, parts: Parts) -> Result<()> {
    let ground = session.ground(parts, false).await?;
    let count = session.plan.sites;
    let names: Vec<String> = (0..count).map(name).collect();
    let mut observer = Observer::start(&ground).await?;
    let operator = Operator::start(&ground, &json!({})).await?;
    let goal = if parts == Parts::Alone { Goal::Made } else { Goal::Runs };
    create(&ground, 0..count).await?;
    observer.until(&names, &goal, PATIENCE).await.with_context(|| operator.last_lines())?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    observer.forget();
    let run =
        |variant: &str| Run { metric: "M9", variant: variant.to_owned(), round, server: parts.word(), sites: count };

    let weather = Weather::now();
    let mut probes = Probes::new(&ground, "idle");
    probes.follow(&mut observer, |probes| probes.sent >= IDLE).await?;
    session.rows.write(&run("idle"), weather, quantiles(&probes.times)?)?;

    let weather = Weather::now();
    let begun = Instant::now();
    let annotations = json!({
        "sites.ecmwf.int/upgrade-request": REQUEST,
        "sites.ecmwf.int/work-class": format!("bulk/{REQUEST}"),
    });
    let patch = json!({"metadata": {"annotations": annotations}});
    let patches: Vec<Prepared> = names.iter().map(|site| Prepared::merge(format!("{SITES}/{site}"), &patch)).collect();
    let admin = ground.admin.clone();
    let patching = tokio::spawn(async move {
        let mut pace = tokio::time::interval(Duration::from_secs(1) / REQUESTS);
        let mut sending = tokio::task::JoinSet::new();
        for patch in patches {
            pace.tick().await;
            let admin = admin.clone();
            sending.spawn(async move { admin.send(&patch).await });
        }
        while let Some(answer) = sending.join_next().await {
            answer??;
        }
        anyhow::Ok(())
    });
    let mut probes = Probes::new(&ground, "busy");
    probes.open = names.iter().cloned().collect();
    probes.follow(&mut observer, |probes| probes.open.is_empty()).await?;
    patching.await??;
    let took = probes.upgraded.context("the upgrade never ended")?.duration_since(begun);
    ensure!(!probes.times.is_empty(), "the upgrade was over before a Site could be made");
    let mut figures = quantiles(&probes.times)?;
    figures["upgrade_seconds"] = json!(seconds(took));
    figures["upgraded_per_second"] = json!(rounded(number(count) / took.as_secs_f64()));
    session.rows.write(&run("during an upgrade"), weather, figures)?;
    operator.stop().await
}

/// New Sites at a fixed pace, and how long each took.
struct Probes<'a> {
    ground: &'a Ground,
    label: &'static str,
    sent: usize,
    waiting: HashMap<String, (Instant, Progress)>,
    times: Vec<Duration>,
    /// Sites whose upgrade is not handled yet.
    open: std::collections::HashSet<String>,
    upgraded: Option<Instant>,
}

impl<'a> Probes<'a> {
    fn new(ground: &'a Ground, label: &'static str) -> Self {
        let (waiting, times, open) = (HashMap::new(), Vec::new(), std::collections::HashSet::new());
        Self { ground, label, sent: 0, waiting, times, open, upgraded: None }
    }

    /// Makes Sites until `enough`, then waits for those under way.
    async fn follow(&mut self, observer: &mut Observer, enough: impl Fn(&Self) -> bool) -> Result<()> {
        let goal = if self.ground.standing.parts == Parts::Alone { Goal::Made } else { Goal::Runs };
        let upgraded = Goal::Upgraded(REQUEST.to_owned());
        let begun = Instant::now() + PACE;
        let mut sending = tokio::task::JoinSet::new();
        while !enough(self) || !self.waiting.is_empty() {
            let next = begun + PACE * u32::try_from(self.sent)?;
            tokio::select! {
                () = tokio::time::sleep_until(next.into()), if !enough(self) => {
                    let name = format!("new-{}-{:04}", self.label, self.sent);
                    let request = Prepared::post(SITES.to_owned(), &site(&name));
                    self.waiting.insert(name, (next, Progress::default()));
                    self.sent += 1;
                    let server = self.ground.admin.clone();
                    sending.spawn(async move { server.send(&request).await });
                }
                seen = observer.next(PATIENCE) => {
                    let seen = seen?;
                    if self.open.contains(&seen.site) {
                        let mut progress = Progress::default();
                        progress.fold(&seen);
                        if progress.reached(&upgraded) && self.open.remove(&seen.site) && self.open.is_empty() {
                            self.upgraded = Some(seen.at);
                        }
                    } else if let Some((at, progress)) = self.waiting.get_mut(&seen.site) {
                        progress.fold(&seen);
                        if progress.reached(&goal) {
                            self.times.push(seen.at.saturating_duration_since(*at));
                            self.waiting.remove(&seen.site);
                        }
                    }
                }
            }
        }
        while let Some(answer) = sending.join_next().await {
            answer??;
        }
        Ok(())
    }
}
