//! M2, M5b and M5c: what the operator asks of the API server, counted by the server. Exact: one request too many
//! fails.
//!
//! One server with an audit log and without controllers, so that every event is one that this file made. The
//! operator's resync period is short, so that resyncs happen all the time and must cost nothing.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{PATIENCE, Session};
use crate::audit::{Audit, Calls, reads, writes};
use crate::ground::{Ground, Parts};
use crate::observer::{Goal, Observer};
use crate::operator::Operator;
use crate::population::{CONFIGMAPS, PODS, PREPARING, SITES, create, flip, name, phase, pod, send_all};
use crate::rows::{Run, Weather};
use crate::server::Prepared;

/// Time without any counted request after which a phase is over; longer than a resync period.
const QUIET: Duration = Duration::from_secs(4);
/// Longest wait for quiet.
const QUIET_PATIENCE: Duration = Duration::from_secs(60);
/// Resync period of these runs.
const RESYNC: &str = "3s";

/// One phase: what happened to each Site and what it may cost.
struct Phase {
    name: &'static str,
    each: &'static [(&'static str, u64)],
}

const CREATE: Phase = Phase {
    name: "a new Site",
    each: &[
        ("create secrets", 2),
        ("create configmaps", 2),
        ("create persistentvolumeclaims", 1),
        ("create statefulsets", 1),
        ("create services", 1),
        ("create ingresses", 1),
        ("patch sites/status", 1),
    ],
};
const EQUAL_POD: Phase = Phase { name: "a pod event that says nothing new", each: &[] };
const POD: Phase = Phase { name: "a pod event", each: &[("patch sites/status", 1)] };
const UNTRIGGERED: Phase = Phase { name: "an edit that triggers nothing", each: &[("patch sites/status", 1)] };
const ONE_CHILD: Phase = Phase {
    name: "a change of one child beside the StatefulSet",
    each: &[
        ("get configmaps", 1),
        ("update configmaps", 1),
        ("get statefulsets", 1),
        ("update statefulsets", 1),
        ("patch sites/status", 1),
    ],
};
const RESYNCED: Phase = Phase { name: "a resync", each: &[] };
const RESTARTED: Phase = Phase { name: "a restart", each: &[] };
/// The Site is read before a repair writes, see `actors.md`.
const DRIFTED: Phase = Phase {
    name: "a restart, one object of each of so many Sites was edited meanwhile",
    each: &[("get configmaps", 1), ("get sites", 1), ("update configmaps", 1), ("patch sites/status", 1)],
};
/// One of so many Sites drifts.
const DRIFTING: usize = 10;

/// All phases.
pub async fn count(session: &mut Session) -> Result<()> {
    let settings = json!({"operator": {"resync_period": RESYNC}});
    let ground = session.ground_with(Parts::Alone, true, &settings).await?;
    let count = session.plan.sites;
    let names: Vec<String> = (0..count).map(name).collect();
    let operator = Operator::start(&ground, &json!({})).await?;
    let mut observer = Observer::start(&ground).await?;
    observer.until_led(PATIENCE).await?;

    let phase_of = Counting::begin(&ground, "M2", count)?;
    create(&ground, 0..count).await?;
    observer.until(&names, &Goal::Made, PATIENCE).await.with_context(|| operator.last_lines())?;
    phase_of.end(session, &CREATE).await?;

    let phase_of = Counting::begin(&ground, "M2", count)?;
    send_all(&ground.admin, names.iter().map(|site| Prepared::post(PODS.into(), &pod(site))).collect(), PREPARING)
        .await?;
    phase_of.end(session, &EQUAL_POD).await?;

    let phase_of = Counting::begin(&ground, "M2", count)?;
    observer.forget();
    send_all(&ground.admin, names.iter().map(|site| flip(site, true)).collect(), PREPARING).await?;
    observer.until(&names, &Goal::Phase(phase(true)), PATIENCE).await?;
    phase_of.end(session, &POD).await?;

    edited(session, &ground, &names, &json!({"description": "another"}), &UNTRIGGERED).await?;
    let handling = json!({"settings": {"error_handling": {"directory_listing": false}}});
    edited(session, &ground, &names, &handling, &ONE_CHILD).await?;

    Counting::begin(&ground, "M2", count)?.end(session, &RESYNCED).await?;
    operator.stop().await?;
    restart(session, &ground, &mut observer).await
}

/// Edits every Site's configuration.
async fn edited(
    session: &mut Session,
    ground: &Ground,
    names: &[String],
    configuration: &Value,
    phase: &Phase,
) -> Result<()> {
    let counting = Counting::begin(ground, "M2", names.len())?;
    let patch = json!({"spec": {"configuration": configuration}});
    let patches = names.iter().map(|site| Prepared::merge(format!("{SITES}/{site}"), &patch)).collect();
    send_all(&ground.admin, patches, PREPARING).await?;
    counting.end(session, phase).await
}

/// Many converged Sites, and an operator that starts among them.
async fn restart(session: &mut Session, ground: &Ground, observer: &mut Observer) -> Result<()> {
    let (few, many) = (session.plan.sites, session.plan.many);
    let more: Vec<String> = (few..many).map(name).collect();
    if !more.is_empty() {
        let operator = Operator::start(ground, &json!({})).await?;
        observer.forget();
        let (created, made) = tokio::join!(create(ground, few..many), observer.until(&more, &Goal::Made, PATIENCE));
        created?;
        made.with_context(|| operator.last_lines())?;
        tokio::time::sleep(QUIET).await;
        operator.stop().await?;
    }
    observer.forget();
    let counting = Counting::begin(ground, "M5b", many.max(few))?;
    let operator = Operator::start(ground, &json!({})).await?;
    observer.until_led(PATIENCE).await?;
    counting.end(session, &RESTARTED).await?;
    operator.stop().await?;

    let drifted: Vec<String> = (0..many.max(few)).step_by(DRIFTING).map(name).collect();
    let patch = json!({"data": {"404.html": "edited by hand"}});
    let configmap = |site: &String| Prepared::merge(format!("{CONFIGMAPS}/{site}-files"), &patch);
    send_all(&ground.admin, drifted.iter().map(configmap).collect(), PREPARING).await?;
    observer.forget();
    let counting = Counting::begin(ground, "M5c", drifted.len())?;
    let operator = Operator::start(ground, &json!({})).await?;
    observer.until_led(PATIENCE).await?;
    counting.end(session, &DRIFTED).await?;
    operator.stop().await
}

/// The count of one phase.
struct Counting {
    audit: Audit,
    weather: Weather,
    metric: &'static str,
    sites: usize,
}

impl Counting {
    fn begin(ground: &Ground, metric: &'static str, sites: usize) -> Result<Self> {
        Ok(Self { audit: Audit::from_now(ground.audit_log()?)?, weather: Weather::now(), metric, sites })
    }

    /// Waits until nothing is asked any more, writes the row and judges.
    async fn end(self, session: &mut Session, phase: &Phase) -> Result<()> {
        let calls = self.quiet().await?;
        let count = u64::try_from(self.sites).unwrap_or(u64::MAX);
        let expected: Calls = phase.each.iter().map(|(name, each)| ((*name).to_owned(), each * count)).collect();
        let exact = calls == expected;
        let (wrote, read) = (writes(&calls), reads(&calls));
        let run = Run {
            metric: self.metric,
            variant: phase.name.to_owned(),
            round: 0,
            server: Parts::Alone.word(),
            sites: self.sites,
        };
        let figures = json!({
            "exact": exact,
            "writes": wrote,
            "single_object_reads": read,
            "expected": expected.values().sum::<u64>(),
            "calls": calls,
        });
        session.rows.write(&run, self.weather, figures)?;
        if !exact {
            session.failed.push(format!("{}: {}: {calls:?}, expected {expected:?}", self.metric, phase.name));
        }
        Ok(())
    }

    async fn quiet(&self) -> Result<Calls> {
        let begun = Instant::now();
        let mut last = self.audit.calls()?;
        let mut since = Instant::now();
        while since.elapsed() < QUIET {
            if begun.elapsed() > QUIET_PATIENCE {
                bail!("the operator does not come to rest: {last:?}");
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = self.audit.calls()?;
            if now != last {
                last = now;
                since = Instant::now();
            }
        }
        Ok(last)
    }
}
