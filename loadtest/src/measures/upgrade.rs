//! M9, M9b: how long a person waits while the Hub upgrades all Sites, against an idle platform: for a new Site, and
//! for an edit of one that is there.
//!
//! An open loop asks at a fixed pace: first with nothing else to do, then while a bulk run of the Hub is worked on, at
//! the pace that the Hub has by default. A new Site counts as there when its objects exist and its status says Ready;
//! an edited one when its new pod runs and its status says Running.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sites::domain::site::Site;

use super::pods::quantiles;
use super::{PATIENCE, Session, seconds};
use crate::ground::{Ground, Parts};
use crate::hub::{self, Hub};
use crate::observer::{Goal, Observer, Progress};
use crate::operator::Operator;
use crate::population::{PREPARING, SITES, create, name, send_all, site};
use crate::rows::{Run, Weather, rounded};
use crate::server::{Prepared, Server};

/// What is asked for on the idle platform.
const IDLE: usize = 40;
/// Sites that are edited, one after the other: each has forty seconds until its next edit.
const EDITED: usize = 40;

/// What a person asks for, and how it is measured.
pub struct Asked {
    metric: &'static str,
    parts: Parts,
    /// One of so many of the plan's Sites is upgraded: as long as it takes, there are answers.
    part: usize,
    /// Time between two requests.
    pace: Duration,
    /// What has come of the Sites before anything is asked.
    before: Goal,
    /// What is asked for.
    goal: Goal,
    request: fn(label: &str, number: usize) -> (String, Prepared),
}

/// A new Site, on a server alone.
pub const NEW: Asked = Asked {
    metric: "M9",
    parts: Parts::Alone,
    part: 1,
    pace: Duration::from_millis(250),
    before: Goal::Made,
    goal: Goal::Made,
    request: |label, number| {
        let name = format!("new-{label}-{number:04}");
        let request = Prepared::post(SITES.to_owned(), &site(&name));
        (name, request)
    },
};

/// An edit that replaces the Site's pod, with controllers and kwok.
pub const EDIT: Asked = Asked {
    metric: "M9b",
    parts: Parts::Whole,
    part: 2,
    pace: Duration::from_secs(1),
    before: Goal::Runs,
    goal: Goal::RunsAgain,
    request: |label, number| {
        let name = edited(number % EDITED);
        let headers = json!({"X-Edit": format!("{label} {number}")});
        let request =
            Prepared::merge(format!("{SITES}/{name}"), &json!({"spec": {"configuration": {"headers": headers}}}));
        (name, request)
    },
};

fn edited(number: usize) -> String {
    format!("mine-{number:02}")
}

/// A Site that is up to date, so that no upgrade is about it.
fn current(ground: &Ground, name: &str) -> Result<Value> {
    let mut object: Site = serde_json::from_value(site(name))?;
    let images = sites::hub::runs::images(&ground.settings)?;
    object.spec.configuration.applications = sites::domain::upgrade::upgraded(&object.spec, &images);
    Ok(serde_json::to_value(object)?)
}

/// One round.
pub async fn round(session: &mut Session, round: usize, asked: &Asked) -> Result<()> {
    let ground = session.ground(asked.parts, false).await?;
    let count = session.plan.sites / asked.part;
    let mut observer = Observer::start(&ground).await?;
    let operator = Operator::start(&ground, &json!({})).await?;
    create(&ground, 0..count).await?;
    let mut all: Vec<String> = (0..count).map(name).collect();
    if asked.parts == Parts::Whole {
        all.extend((0..EDITED).map(edited));
        let mine = all.iter().skip(count).map(|name| Ok(Prepared::post(SITES.to_owned(), &current(&ground, name)?)));
        send_all(&ground.admin, mine.collect::<Result<_>>()?, PREPARING).await?;
    }
    observer.until(&all, &asked.before, PATIENCE).await.with_context(|| operator.last_lines())?;
    let (hub, administrator) = Hub::start_with_runs(&ground).await?;
    hub.until_listed(&administrator, all.len()).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    observer.forget();
    let run = |variant: &str| Run {
        metric: asked.metric,
        variant: variant.to_owned(),
        round,
        server: asked.parts.word(),
        sites: count,
    };

    let weather = Weather::now();
    let mut probes = Probes::new(&ground.admin, asked, "idle");
    probes.ask(&mut observer, |sent| sent >= IDLE).await?;
    session.rows.write(&run("idle"), weather, quantiles(&probes.times)?)?;

    let weather = Weather::now();
    let begun = Instant::now();
    let upgrade = tokio::spawn(async move {
        let upgraded = hub::upgrade(&administrator).await?;
        anyhow::Ok((upgraded, begun.elapsed()))
    });
    let mut probes = Probes::new(&ground.admin, asked, "busy");
    probes.ask(&mut observer, |_| upgrade.is_finished()).await?;
    let (upgraded, took) = upgrade.await?.with_context(|| hub.process().last_lines(20))?;
    ensure!(!probes.times.is_empty(), "the upgrade was over before anything could be asked for");
    let mut figures = quantiles(&probes.times)?;
    figures["upgrade_seconds"] = json!(seconds(took));
    figures["upgraded_per_second"] = json!(rounded(f64::from(upgraded) / took.as_secs_f64()));
    session.rows.write(&run("during an upgrade"), weather, figures)?;
    operator.stop().await
}

/// Requests at a fixed pace, and how long each took to be done.
struct Probes<'a> {
    server: &'a Server,
    asked: &'a Asked,
    label: &'static str,
    waiting: HashMap<String, (Instant, Progress)>,
    times: Vec<Duration>,
}

impl<'a> Probes<'a> {
    fn new(server: &'a Server, asked: &'a Asked, label: &'static str) -> Self {
        Self { server, asked, label, waiting: HashMap::new(), times: Vec::new() }
    }

    /// Asks until `enough` of the number sent, then waits for what is under way.
    async fn ask(&mut self, observer: &mut Observer, enough: impl Fn(usize) -> bool) -> Result<()> {
        let pace = self.asked.pace;
        let begun = Instant::now() + pace;
        let mut sent = 0;
        let mut sending = tokio::task::JoinSet::new();
        while !enough(sent) || !self.waiting.is_empty() {
            let next = begun + pace * u32::try_from(sent)?;
            tokio::select! {
                () = tokio::time::sleep_until(next.into()), if !enough(sent) => {
                    let (name, request) = (self.asked.request)(self.label, sent);
                    let before = self.waiting.insert(name, (next, Progress::default()));
                    ensure!(before.is_none(), "an edit was not done before the next of the same Site: {before:?}");
                    sent += 1;
                    let server = self.server.clone();
                    sending.spawn(async move { server.send(&request).await });
                }
                seen = observer.next(PATIENCE) => {
                    let seen = seen?;
                    let Some((at, progress)) = self.waiting.get_mut(&seen.site) else { continue };
                    progress.fold(&seen);
                    if progress.reached(&self.asked.goal) {
                        self.times.push(seen.at.saturating_duration_since(*at));
                        self.waiting.remove(&seen.site);
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
