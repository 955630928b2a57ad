//! M4 and M4b: the time from a pod's change to the Site's status, against an echo loop; and a burst of all pods at
//! once, against bare patches.
//!
//! Pods are made and changed by this file, on a server without controllers. M4 is an open loop: each change has an
//! intended moment, and the time counts from there, however late the request was sent. The operator and the echo
//! loop run one after the other on one server, in an order that changes from round to round.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::{PATIENCE, Session, millis, number, seconds};
use crate::echo;
use crate::ground::{Ground, Parts};
use crate::observer::{Goal, Observer, What};
use crate::operator::Operator;
use crate::population::{PODS, PREPARING, SITES, create, flip, name, phase, pod, send_all};
use crate::rows::{Run, Weather, rounded};
use crate::server::Prepared;

/// The first part of an open loop, whose times are not counted.
const WARM_UP: Duration = Duration::from_secs(2);
/// Time for what an earlier step caused to come to rest.
const SETTLE: Duration = Duration::from_secs(3);
/// Numbers in flight of the bare patches, of which the best counts.
const IN_FLIGHT: [usize; 4] = [4, 8, 16, 32];

/// One round.
pub async fn round(session: &mut Session, round: usize) -> Result<()> {
    let ground = session.ground(Parts::Alone, false).await?;
    let names: Vec<String> = (0..session.plan.sites).map(name).collect();
    let mut observer = Observer::start(&ground).await?;
    let operator = Operator::start(&ground, &json!({})).await?;
    create(&ground, 0..names.len()).await?;
    observer.until(&names, &Goal::Made, PATIENCE).await.with_context(|| operator.last_lines())?;
    let pods = names.iter().map(|site| Prepared::post(PODS.into(), &pod(site))).collect();
    send_all(&ground.admin, pods, PREPARING).await?;
    observer.forget();
    send_all(&ground.admin, names.iter().map(|site| flip(site, true)).collect(), PREPARING).await?;
    observer.until(&names, &Goal::Phase(phase(true)), PATIENCE).await?;
    let mut stage = Stage { observer, running: vec![true; names.len()], names, ground, round };
    if round.is_multiple_of(2) {
        stage.under_operator(session, operator).await?;
        stage.under_echo(session).await
    } else {
        operator.stop().await?;
        stage.under_echo(session).await?;
        let operator = Operator::start(&stage.ground, &json!({})).await?;
        tokio::time::sleep(SETTLE).await;
        stage.under_operator(session, operator).await
    }
}

/// Sites with a pod each, and what their pods show now.
struct Stage {
    /// Before the ground: its watches end first.
    observer: Observer,
    ground: Ground,
    names: Vec<String>,
    running: Vec<bool>,
    round: usize,
}

impl Stage {
    fn run(&self, metric: &'static str, variant: String) -> Run {
        Run { metric, variant, round: self.round, server: Parts::Alone.word(), sites: self.names.len() }
    }

    async fn under_operator(&mut self, session: &mut Session, operator: Operator) -> Result<()> {
        for (rate, lasting) in session.plan.rates.clone() {
            self.open_loop(session, "operator", rate, lasting).await?;
        }
        self.level().await?;
        tokio::time::sleep(SETTLE).await;
        self.burst(session, &operator).await?;
        operator.stop().await
    }

    async fn under_echo(&mut self, session: &mut Session) -> Result<()> {
        let echo = echo::start(&self.ground).await?;
        for (rate, lasting) in session.plan.rates.clone() {
            self.open_loop(session, "echo", rate, lasting).await?;
        }
        self.level().await?;
        drop(echo);
        tokio::time::sleep(SETTLE).await;
        self.patches(session).await
    }

    /// M4: so many changes a second, each of another Site's pod.
    async fn open_loop(&mut self, session: &mut Session, who: &str, rate: u32, lasting: Duration) -> Result<()> {
        let weather = Weather::now();
        self.observer.forget();
        let total = usize::try_from(u64::from(rate) * (lasting + WARM_UP).as_secs())?;
        let begun = Instant::now() + Duration::from_millis(100);
        let mut intended: HashMap<String, (Instant, &'static str)> = HashMap::new();
        let mut samples: Vec<(Instant, Duration)> = Vec::with_capacity(total);
        let (mut sent, mut cursor, mut sending) = (0, 0, tokio::task::JoinSet::new());
        while samples.len() < total {
            let next = begun + Duration::from_secs(1) * u32::try_from(sent)? / rate;
            // While every Site still owes its last change, the next change is late, and its time counts all the same.
            let may_send = sent < total && intended.len() < self.names.len();
            tokio::select! {
                () = tokio::time::sleep_until(next.into()), if may_send => {
                    while intended.contains_key(&self.names[cursor % self.names.len()]) {
                        cursor += 1;
                    }
                    let index = cursor % self.names.len();
                    let site = self.names[index].clone();
                    self.running[index] = !self.running[index];
                    let request = flip(&site, self.running[index]);
                    intended.insert(site, (next, phase(self.running[index])));
                    let server = self.ground.admin.clone();
                    sending.spawn(async move { server.send(&request).await });
                    (sent, cursor) = (sent + 1, cursor + 1);
                }
                seen = self.observer.next(PATIENCE) => {
                    let seen = seen?;
                    let What::Status(status) = &seen.what else { continue };
                    if let Some((at, wanted)) = intended.get(&seen.site).copied()
                        && status.phase == wanted
                    {
                        intended.remove(&seen.site);
                        samples.push((at, seen.at.saturating_duration_since(at)));
                    }
                }
            }
        }
        while let Some(answer) = sending.join_next().await {
            answer??;
        }
        let counted = samples.iter().filter(|(at, _)| *at >= begun + WARM_UP).map(|(_, took)| *took);
        let mut figures = quantiles(&counted.collect::<Vec<_>>())?;
        figures["changes_per_second"] = rate.into();
        session.rows.write(&self.run("M4", format!("{who}-{rate}/s")), weather, figures)
    }

    /// Brings all pods, and with them all Sites, to the same phase: an open loop leaves some in each.
    async fn level(&mut self) -> Result<()> {
        let running = self.running[0];
        let others = self.names.iter().zip(&self.running).filter(|(_, one)| **one != running);
        let others: Vec<String> = others.map(|(name, _)| name.clone()).collect();
        self.running.fill(running);
        self.observer.forget();
        let flips = others.iter().map(|site| flip(site, running)).collect();
        send_all(&self.ground.admin, flips, PREPARING).await?;
        self.observer.until(&others, &Goal::Phase(phase(running)), PATIENCE).await.map(|_| ())
    }

    /// M4b: the operator is paused while all pods change, so that the changes' own cost is not counted.
    async fn burst(&mut self, session: &mut Session, operator: &Operator) -> Result<()> {
        let weather = Weather::now();
        let running = !self.running[0];
        self.running.fill(running);
        operator.pause()?;
        let flips: Vec<Prepared> = self.names.iter().map(|site| flip(site, running)).collect();
        let flipped = send_all(&self.ground.admin, flips, PREPARING).await;
        self.observer.forget();
        let begun = Instant::now();
        operator.resume()?;
        flipped?;
        let reached = self.observer.until(&self.names, &Goal::Phase(phase(running)), PATIENCE).await?;
        let took = reached.iter().max().copied().unwrap_or(begun).duration_since(begun);
        let figures =
            json!({"seconds": seconds(took), "per_second": rounded(number(self.names.len()) / took.as_secs_f64())});
        session.rows.write(&self.run("M4b", "operator".into()), weather, figures)
    }

    /// The comparator of the burst: the same patches, sent by a bare loop.
    async fn patches(&mut self, session: &mut Session) -> Result<()> {
        for in_flight in IN_FLIGHT {
            let weather = Weather::now();
            let running = !self.running[0];
            self.running.fill(running);
            let mut requests = Vec::new();
            for site in self.ground.admin.list(SITES).await? {
                let name = site["metadata"]["name"].as_str().unwrap_or_default();
                let body = json!({
                    "metadata": {"resourceVersion": site["metadata"]["resourceVersion"]},
                    "status": {"phase": phase(running), "all_steps_started": running},
                });
                requests.push(Prepared::merge(format!("{SITES}/{name}/status"), &body));
            }
            self.observer.forget();
            let begun = Instant::now();
            let account = self.ground.account.clone();
            let sending = tokio::spawn(async move { send_all(&account, requests, in_flight).await });
            let reached = self.observer.until(&self.names, &Goal::Phase(phase(running)), PATIENCE).await?;
            sending.await??;
            let took = reached.iter().max().copied().unwrap_or(begun).duration_since(begun);
            let figures =
                json!({"seconds": seconds(took), "per_second": rounded(number(self.names.len()) / took.as_secs_f64())});
            session.rows.write(&self.run("M4b", format!("bare-{in_flight}")), weather, figures)?;
        }
        Ok(())
    }
}

/// Quantiles of times, and the times themselves.
pub fn quantiles(times: &[Duration]) -> Result<Value> {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 600_000_000, 3)?;
    for time in times {
        histogram.record(u64::try_from(time.as_micros())?.max(1))?;
    }
    let at = |quantile: f64| {
        let micros = histogram.value_at_quantile(quantile);
        millis(Duration::from_micros(micros))
    };
    Ok(json!({
        "p50_ms": at(0.5),
        "p90_ms": at(0.9),
        "p99_ms": at(0.99),
        "p99_9_ms": at(0.999),
        "max_ms": millis(Duration::from_micros(histogram.max())),
        "count": times.len(),
        "samples_ms": times.iter().copied().map(millis).collect::<Vec<_>>(),
    }))
}
