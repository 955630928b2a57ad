//! `hub.bulk`: how bulk runs are paced.

use schemars::JsonSchema;
use serde::Deserialize;

use super::duration::Period;

/// `hub.bulk`: bulk upgrades and restarts.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct Bulk {
    /// Sites written a second at most; as many are looked at a second. Default 20.
    pub rate: u32,
    /// Sites, in percent of the run's, whose pods are replaced at the same time: a run waits until some of them run
    /// again, and as long as that took, 5 s at most. One Site at least. Default 1.
    pub unavailable_percent: u8,
    /// Sites that the operator may be behind with before a run waits. Default 100.
    pub backlog: usize,
    /// Time after which a Site that was written and does not run again has failed. Default 10 min.
    pub answer_timeout: Period,
    /// End of the lock without a renewal: a safety net, it is renewed and given back. Default 30 min.
    pub lock_ttl: Period,
    /// Time after which another replica goes on with the run of one that died. Default 10 s.
    pub lease: Period,
}

impl Default for Bulk {
    fn default() -> Self {
        Self {
            rate: 20,
            unavailable_percent: 1,
            backlog: 100,
            answer_timeout: Period::seconds(600),
            lock_ttl: Period::seconds(1800),
            lease: Period::seconds(10),
        }
    }
}
