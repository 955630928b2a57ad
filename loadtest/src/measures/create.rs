//! M1 and M1b: N Sites are made by the operator and by a bare loop that writes the same objects.
//!
//! Alone (etcd and API server): the Sites exist, the operator is ready and waits for its Lease; the clock runs from
//! the moment the observer sees it lead to the moment the observer has seen the last object and the last status. The
//! bare loop's clock runs from before its first request to the same end.
//! Whole (with controllers and kwok): the operator leads, and the Sites are created at once under it; the end is the
//! last Running pod and the last status that says so. The bare loop patches one status per Site; the end is the last
//! Running pod.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use super::{Meter, PATIENCE, Session, number, seconds};
use crate::bare::{self, IN_FLIGHT};
use crate::ground::Parts;
use crate::observer::{Goal, Observer};
use crate::operator::{Operator, free_lease, hold_lease};
use crate::population::{create, name};
use crate::rows::{Run, Weather, rounded};
use crate::verify::verify;

/// Time after the end in which the operator's last work is counted too.
const SETTLE: Duration = Duration::from_secs(1);

/// One round: the bare loop with each number in flight, the operator with 32 workers and with 5, in an order that
/// changes from round to round.
pub async fn round(session: &mut Session, round: usize) -> Result<()> {
    let mut variants: Vec<Option<usize>> = vec![None];
    variants.extend(IN_FLIGHT.map(Some));
    // The operator runs first, in the middle or last.
    let turn = (round * 2) % variants.len();
    variants.rotate_left(turn);
    for variant in variants {
        match variant {
            None => {
                operator(session, round, 32).await?;
                operator(session, round, 5).await?;
            }
            Some(in_flight) => bare_alone(session, round, in_flight).await?,
        }
    }
    Ok(())
}

/// One round with controllers and kwok.
pub async fn whole_round(session: &mut Session, round: usize) -> Result<()> {
    if round.is_multiple_of(2) {
        bare_whole(session, round, 16).await?;
        operator_whole(session, round).await
    } else {
        operator_whole(session, round).await?;
        bare_whole(session, round, 16).await
    }
}

fn run(session: &Session, variant: String, round: usize, parts: Parts) -> Run {
    Run { metric: "M1", variant, round, server: parts.word(), sites: session.plan.sites }
}

async fn operator(session: &mut Session, round: usize, workers: usize) -> Result<()> {
    let ground = session.ground(Parts::Alone, false).await?;
    let count = session.plan.sites;
    let sites = create(&ground, 0..count).await?;
    hold_lease(&ground).await?;
    let operator = Operator::start(&ground, &json!({"operator": {"worker_limit": workers}})).await?;
    let mut observer = Observer::start(&ground).await?;
    let weather = Weather::now();
    let (own, server) = (Meter::start(vec![operator.pid()])?, Meter::start(ground.server_pids())?);
    free_lease(&ground).await?;
    let begun = observer.until_led(PATIENCE).await?;
    let names: Vec<String> = (0..count).map(name).collect();
    let reached = observer.until(&names, &Goal::Made, PATIENCE).await;
    let reached = reached.with_context(|| operator.last_lines())?;
    let took = last(&reached).duration_since(begun);
    let run = run(session, format!("operator-{workers}"), round, Parts::Alone);
    let server = server.millis()?;
    tokio::time::sleep(SETTLE).await;
    let own = own.millis()?;
    let verdict = verify(&ground, &sites).await?;
    session.rows.write(
        &run,
        weather,
        json!({
            "seconds": seconds(took),
            "sites_per_second": rounded(number(count) / took.as_secs_f64()),
            "operator_cpu_ms_per_site": rounded(own / number(count)),
            "server_cpu_ms_per_site": rounded(server / number(count)),
            "objects": verdict.objects,
            "content": verdict.content,
        }),
    )?;
    operator.stop().await
}

async fn bare_alone(session: &mut Session, round: usize, in_flight: usize) -> Result<()> {
    let ground = session.ground(Parts::Alone, false).await?;
    let count = session.plan.sites;
    let sites = create(&ground, 0..count).await?;
    let scripts = bare::scripts(&ground, &sites)?;
    let mut observer = Observer::start(&ground).await?;
    let names: Vec<String> = (0..count).map(name).collect();
    let weather = Weather::now();
    let (own, server) = (Meter::start(vec![std::process::id()])?, Meter::start(ground.server_pids())?);
    let begun = Instant::now();
    let account = ground.account.clone();
    let (ran, reached) = tokio::join!(
        tokio::spawn(async move { bare::run(&account, scripts, in_flight).await }),
        observer.until(&names, &Goal::Made, PATIENCE)
    );
    ran??;
    let took = last(&reached?).duration_since(begun);
    let run = run(session, format!("bare-{in_flight}"), round, Parts::Alone);
    let (own, server) = (own.millis()?, server.millis()?);
    let verdict = verify(&ground, &sites).await?;
    session.rows.write(
        &run,
        weather,
        json!({
            "seconds": seconds(took),
            "sites_per_second": rounded(number(count) / took.as_secs_f64()),
            "loop_and_observer_cpu_ms_per_site": rounded(own / number(count)),
            "server_cpu_ms_per_site": rounded(server / number(count)),
            "objects": verdict.objects,
            "content": verdict.content,
        }),
    )
}

async fn operator_whole(session: &mut Session, round: usize) -> Result<()> {
    let ground = session.ground(Parts::Whole, false).await?;
    let count = session.plan.sites;
    let operator = Operator::start(&ground, &json!({})).await?;
    let mut observer = Observer::start(&ground).await?;
    let names: Vec<String> = (0..count).map(name).collect();
    let weather = Weather::now();
    let own = Meter::start(vec![operator.pid()])?;
    let begun = Instant::now();
    let (created, reached) = tokio::join!(create(&ground, 0..count), observer.until(&names, &Goal::Runs, PATIENCE));
    let (sites, reached) = (created?, reached.with_context(|| operator.last_lines())?);
    let took = last(&reached).duration_since(begun);
    let run = run(session, "operator-32".into(), round, Parts::Whole);
    tokio::time::sleep(SETTLE).await;
    let own = own.millis()?;
    let verdict = verify(&ground, &sites).await?;
    session.rows.write(
        &run,
        weather,
        json!({
            "seconds": seconds(took),
            "sites_per_second": rounded(number(count) / took.as_secs_f64()),
            "operator_cpu_ms_per_site": rounded(own / number(count)),
            "objects": verdict.objects,
            "content": verdict.content,
        }),
    )?;
    operator.stop().await
}

async fn bare_whole(session: &mut Session, round: usize, in_flight: usize) -> Result<()> {
    let ground = session.ground(Parts::Whole, false).await?;
    let count = session.plan.sites;
    let mut observer = Observer::start(&ground).await?;
    let names: Vec<String> = (0..count).map(name).collect();
    let weather = Weather::now();
    let begun = Instant::now();
    let writing = async {
        // As under the operator, the Sites are created within the measured time.
        let sites = create(&ground, 0..count).await?;
        bare::run(&ground.account, bare::scripts(&ground, &sites)?, in_flight).await?;
        anyhow::Ok(sites)
    };
    let (sites, reached) = tokio::join!(writing, observer.until(&names, &Goal::PodRuns, PATIENCE));
    let took = last(&reached?).duration_since(begun);
    let run = run(session, format!("bare-{in_flight}"), round, Parts::Whole);
    let verdict = verify(&ground, &sites?).await?;
    session.rows.write(
        &run,
        weather,
        json!({
            "seconds": seconds(took),
            "sites_per_second": rounded(number(count) / took.as_secs_f64()),
            "objects": verdict.objects,
            "content": verdict.content,
        }),
    )
}

/// The moment at which all were there.
fn last(moments: &[Instant]) -> Instant {
    moments.iter().max().copied().unwrap_or_else(Instant::now)
}
