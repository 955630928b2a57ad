//! The measurements, a file each. Each run starts from a fresh server and writes its rows as it goes.
//!
//! | file | metrics |
//! |---|---|
//! | [`create`] | M1, M1b: time and processor time to make N Sites, against a bare loop |
//! | [`calls`] | M2, M5b, M5c: requests per event, exact |
//! | [`memory`] | M3, M3b, M5: memory per idle Site, restart against a bare list |
//! | [`pods`] | M4, M4b: pod change to Site status, against an echo loop and bare patches |
//! | [`hub`] | M7, M7b: pages of the Hub's list against the same bytes served statically |
//! | [`runtime`] | R1 to R4: memory of a site's pod, its files against a bare nginx, uploads |
//! | [`upgrade`] | M9, M9b: a person's new Site, and an edit, while all others are upgraded |

pub mod calls;
pub mod create;
pub mod hub;
pub mod memory;
pub mod pods;
pub mod runtime;
pub mod upgrade;

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::ground::{Ground, Parts, Standing};
use crate::machine::processor_millis;
use crate::rows::{Rows, rounded};

/// Longest silence of the observer before a run has failed.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// How much is measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Sites of a run.
    pub sites: usize,
    /// Sites of the restart and memory runs.
    pub many: usize,
    /// Interleaved rounds.
    pub rounds: usize,
    /// Pod changes a second, and for how long.
    pub rates: Vec<(u32, Duration)>,
    /// Server on core 0, operator and observer on core 1.
    pub pinned: bool,
}

/// A session: its plan and its rows.
pub struct Session {
    /// The plan.
    pub plan: Plan,
    /// The rows.
    pub rows: Rows,
    /// Exact gates that failed.
    pub failed: Vec<String>,
}

impl Session {
    /// A fresh server.
    pub async fn ground(&self, parts: Parts, audit: bool) -> Result<Ground> {
        self.ground_with(parts, audit, &json!({})).await
    }

    /// A fresh server, with settings written over the load test's own.
    pub async fn ground_with(&self, parts: Parts, audit: bool, settings: &Value) -> Result<Ground> {
        Ground::start(Standing { parts, audit, pinned: self.plan.pinned }, settings).await
    }
}

/// Processor time of a set of processes, taken at a moment.
pub struct Meter {
    pids: Vec<u32>,
    before: Vec<f64>,
}

impl Meter {
    /// Starts to count.
    pub fn start(pids: Vec<u32>) -> Result<Self> {
        let before = pids.iter().map(|pid| processor_millis(*pid)).collect::<Result<_>>()?;
        Ok(Self { pids, before })
    }

    /// Milliseconds since, all together.
    pub fn millis(&self) -> Result<f64> {
        let mut sum = 0.0;
        for (pid, before) in self.pids.iter().zip(&self.before) {
            sum += processor_millis(*pid)? - before;
        }
        Ok(sum)
    }
}

/// A count as a number.
#[must_use]
pub fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Seconds with two decimals.
#[must_use]
pub fn seconds(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64())
}

/// Milliseconds with two decimals.
#[must_use]
pub fn millis(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64() * 1000.0)
}
