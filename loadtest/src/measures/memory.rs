//! M3, M3b and M5: memory per idle Site, and the time from exec to ready among N converged Sites against a bare list
//! of the same kinds. Restarts write nothing, so they and the lists alternate on one server.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use xtask::process::{start, tied};

use super::{PATIENCE, Session, millis, number};
use crate::ground::{Ground, Parts};
use crate::observer::{Goal, Observer};
use crate::operator::Operator;
use crate::population::{create, name};
use crate::rows::{Run, Weather, rounded};
use crate::verify::verify;

/// Time after which a process counts as idle.
const IDLE: Duration = Duration::from_secs(8);

/// Restarts and lists in turns, at least.
const TURNS: usize = 3;

/// One server, filled by the operator; then restarts and lists in turns.
pub async fn measure(session: &mut Session, round: usize) -> Result<()> {
    let ground = session.ground(Parts::Alone, false).await?;
    let count = session.plan.many;
    let run = |metric, variant: &str, round| Run {
        metric,
        variant: variant.to_owned(),
        round,
        server: Parts::Alone.word(),
        sites: count,
    };
    let weather = Weather::now();
    let operator = Operator::start(&ground, &json!({})).await?;
    tokio::time::sleep(IDLE).await;
    let empty = operator.memory()?;
    let mut observer = Observer::start(&ground).await?;
    let names: Vec<String> = (0..count).map(name).collect();
    let (created, made) = tokio::join!(create(&ground, 0..count), observer.until(&names, &Goal::Made, PATIENCE));
    let (sites, _) = (created?, made.with_context(|| operator.last_lines())?);
    drop(observer);
    tokio::time::sleep(IDLE).await;
    let full = operator.memory()?;
    let per_site = |now: f64| rounded((now - empty.resident) / number(count));
    let figures = json!({
        "kib_per_site": per_site(full.resident),
        "empty_kib": empty.resident,
        "resident_kib": full.resident,
        "peak_kib": full.peak,
    });
    session.rows.write(&run("M3", "after creating", round), weather, figures)?;
    verify(&ground, &sites).await?;
    drop(sites);
    operator.stop().await?;

    for turn in 0..session.plan.rounds.max(TURNS) {
        let weather = Weather::now();
        let listed = list(&ground).await?;
        session.rows.write(&run("M5", "bare-list", turn), weather, json!({"ready_ms": millis(listed)}))?;
        let weather = Weather::now();
        let operator = Operator::start(&ground, &json!({})).await?;
        let ready = millis(operator.ready_after);
        let processor = operator.processor_millis()?;
        session.rows.write(
            &run("M5", "operator", turn),
            weather,
            json!({"ready_ms": ready, "operator_cpu_ms": processor}),
        )?;
        tokio::time::sleep(IDLE).await;
        let now = operator.memory()?;
        let figures = json!({
            "kib_per_site": per_site(now.resident),
            "empty_kib": empty.resident,
            "resident_kib": now.resident,
            "peak_kib": now.peak,
            "peak_over_steady": rounded(now.peak / now.resident),
        });
        session.rows.write(&run("M3", "after a restart", turn), weather, figures)?;
        operator.stop().await?;
    }
    Ok(())
}

/// From exec to exit of a process that lists and drops what the operator lists.
async fn list(ground: &Ground) -> Result<Duration> {
    let mut command = tied(std::env::current_exe()?);
    command.arg("list").env("KUBECONFIG", ground.operator_kubeconfig());
    let begun = Instant::now();
    let status = tokio::task::spawn_blocking(move || start(command)?.wait()).await??;
    ensure!(status.success(), "the bare list failed: {status}");
    Ok(begun.elapsed())
}
