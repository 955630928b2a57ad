//! M9, M9b: how long a person waits while all Sites are upgraded, against an idle platform: for a new Site, and for an
//! edit of one that is there.
//!
//! An open loop asks at a fixed pace: first with nothing else to do, then while a bulk upgrade is worked on: upgrade
//! request and `work-class: bulk` are written on every Site, at a steady pace, as a run of the Hub does. A new Site
//! counts as there when its objects exist and its status says Ready; an edited one when its new pod runs and its status
//! says Running.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::pods::quantiles;
use super::{PATIENCE, Session, number, seconds};
use crate::ground::{Ground, Parts};
use crate::observer::{Goal, Observer, Progress};
use crate::operator::Operator;
use crate::population::{PREPARING, SITES, create, name, send_all, site};
use crate::rows::{Run, Weather, rounded};
use crate::server::Prepared;

/// Upgrade requests written a second, as many as the Hub writes unless told otherwise (`hub.bulk.rate`). With no pace
/// at all their own cost to the server would be what is measured.
const REQUESTS: u32 = 20;
/// The same where each of them replaces a pod: with more than one server and its controllers replace on a small
/// machine, their queue is what is measured.
const REPLACED: u32 = 2;
/// What is asked for on the idle platform.
const IDLE: usize = 40;
/// Sites that are edited, one after the other: each has forty seconds until its next edit.
const EDITED: usize = 40;
/// The run of the upgrade.
const REQUEST: &str = "4c1c9a5e-0b1d-4f64-9d5f-6a3a2f1f7d10";

/// What a person asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A new Site, on a server alone.
    New,
    /// An edit that replaces the Site's pod, with controllers and kwok.
    Edit,
}

impl Asked {
    fn parts(self) -> Parts {
        if self == Self::New { Parts::Alone } else { Parts::Whole }
    }

    /// Upgrade requests a second.
    fn upgrades(self) -> u32 {
        if self == Self::New { REQUESTS } else { REPLACED }
    }

    /// Time between two requests of people.
    fn pace(self) -> Duration {
        Duration::from_millis(if self == Self::New { 250 } else { 1000 })
    }

    /// The next request, and the Site it is about.
    fn request(self, label: &str, number: usize) -> (String, Prepared) {
        match self {
            Self::New => {
                let name = format!("new-{label}-{number:04}");
                let request = Prepared::post(SITES.to_owned(), &site(&name));
                (name, request)
            }
            Self::Edit => {
                let name = edited(number % EDITED);
                let headers = json!({"X-Edit": format!("{label} {number}")});
                let patch = json!({"spec": {"configuration": {"headers": headers}}});
                let request = Prepared::merge(format!("{SITES}/{name}"), &patch);
                (name, request)
            }
        }
    }
}

fn edited(number: usize) -> String {
    format!("mine-{number:02}")
}

/// One round.
pub async fn round(session: &mut Session, round: usize, asked: Asked) -> Result<()> {
    let ground = session.ground(asked.parts(), false).await?;
    // As long as it takes, there are as many answers.
    let count = if asked == Asked::New { session.plan.sites } else { session.plan.sites / 10 };
    let names: Vec<String> = (0..count).map(name).collect();
    let mut observer = Observer::start(&ground).await?;
    let operator = Operator::start(&ground, &json!({})).await?;
    create(&ground, 0..count).await?;
    let mut all = names.clone();
    let goal = if asked == Asked::New {
        Goal::Made
    } else {
        let mine: Vec<String> = (0..EDITED).map(edited).collect();
        let requests = mine.iter().map(|name| Prepared::post(SITES.to_owned(), &site(name))).collect();
        send_all(&ground.admin, requests, PREPARING).await?;
        all.extend(mine);
        Goal::Runs
    };
    observer.until(&all, &goal, PATIENCE).await.with_context(|| operator.last_lines())?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    observer.forget();
    let metric = if asked == Asked::New { "M9" } else { "M9b" };
    let run =
        |variant: &str| Run { metric, variant: variant.to_owned(), round, server: asked.parts().word(), sites: count };

    let weather = Weather::now();
    let mut probes = Probes::new(&ground, asked, "idle");
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
        let mut pace = tokio::time::interval(Duration::from_secs(1) / asked.upgrades());
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
    let mut probes = Probes::new(&ground, asked, "busy");
    probes.open = names.iter().cloned().collect();
    probes.follow(&mut observer, |probes| probes.open.is_empty()).await?;
    patching.await??;
    let took = probes.upgraded.context("the upgrade never ended")?.duration_since(begun);
    ensure!(!probes.times.is_empty(), "the upgrade was over before anything could be asked for");
    let mut figures = quantiles(&probes.times)?;
    figures["upgrade_seconds"] = json!(seconds(took));
    figures["upgraded_per_second"] = json!(rounded(number(count) / took.as_secs_f64()));
    session.rows.write(&run("during an upgrade"), weather, figures)?;
    operator.stop().await
}

/// Requests at a fixed pace, and how long each took to be done.
struct Probes<'a> {
    ground: &'a Ground,
    asked: Asked,
    label: &'static str,
    sent: usize,
    waiting: HashMap<String, (Instant, Progress)>,
    times: Vec<Duration>,
    /// Sites whose upgrade is not handled yet.
    open: std::collections::HashSet<String>,
    upgraded: Option<Instant>,
}

impl<'a> Probes<'a> {
    fn new(ground: &'a Ground, asked: Asked, label: &'static str) -> Self {
        let (waiting, times, open) = (HashMap::new(), Vec::new(), std::collections::HashSet::new());
        Self { ground, asked, label, sent: 0, waiting, times, open, upgraded: None }
    }

    /// Asks until `enough`, then waits for what is under way.
    async fn follow(&mut self, observer: &mut Observer, enough: impl Fn(&Self) -> bool) -> Result<()> {
        let goal = if self.asked == Asked::New { Goal::Made } else { Goal::RunsAgain };
        let upgraded = Goal::Upgraded(REQUEST.to_owned());
        let pace = self.asked.pace();
        let begun = Instant::now() + pace;
        let mut sending = tokio::task::JoinSet::new();
        while !enough(self) || !self.waiting.is_empty() {
            let next = begun + pace * u32::try_from(self.sent)?;
            tokio::select! {
                () = tokio::time::sleep_until(next.into()), if !enough(self) => {
                    let (name, request) = self.asked.request(self.label, self.sent);
                    let before = self.waiting.insert(name, (next, Progress::default()));
                    ensure!(before.is_none(), "an edit was not done before the next of the same Site: {before:?}");
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
