//! When an object's status is written: one write in flight, the newest desired status wins, not more often
//! than the shortest interval allows, and never in the way of a pass. Pure; the object's actor runs it.

use std::time::{Duration, Instant};

/// Writes of all objects that may be on the wire at the same time.
pub const LANE_LIMIT: usize = 16;

/// First wait after a failed write.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// What the actor is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing now.
    Rest,
    /// Ask for a place in the lane.
    AskLane,
    /// Ask again after this time.
    Arm(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Asked,
    InFlight,
    Armed,
}

/// The status writes of one object.
#[derive(Clone, Debug)]
pub struct StatusLane {
    stage: Stage,
    not_before: Option<Instant>,
    failures: u32,
    /// The resourceVersion that a write conflicted with: pointless to try again with the same.
    stale: Option<String>,
    wanted_since: Option<Instant>,
}

impl Default for StatusLane {
    fn default() -> Self {
        Self { stage: Stage::Idle, not_before: None, failures: 0, stale: None, wanted_since: None }
    }
}

impl StatusLane {
    /// The desired status differs from the written one (or not any more).
    pub fn wanted(&mut self, differs: bool, version: Option<&str>, now: Instant) -> Step {
        if !differs {
            self.wanted_since = None;
            if self.stage == Stage::Armed {
                self.stage = Stage::Idle;
            }
            return Step::Rest;
        }
        self.wanted_since.get_or_insert(now);
        if self.stale.is_some() && self.stale.as_deref() != version {
            // The watch has brought the copy that the conflict spoke of.
            self.stale = None;
            self.not_before = None;
            if self.stage == Stage::Armed {
                self.stage = Stage::Idle;
            }
        }
        if self.stage != Stage::Idle {
            return Step::Rest;
        }
        if let Some(until) = self.not_before.filter(|until| *until > now) {
            self.stage = Stage::Armed;
            return Step::Arm(until - now);
        }
        self.stage = Stage::Asked;
        Step::AskLane
    }

    /// The armed time has passed.
    pub fn due(&mut self) {
        if self.stage == Stage::Armed {
            self.stage = Stage::Idle;
            self.not_before = None;
        }
    }

    /// A place has come; `differs` says whether it is still needed. Returns whether to write.
    pub fn entered(&mut self, differs: bool) -> bool {
        self.stage = if differs { Stage::InFlight } else { Stage::Idle };
        differs
    }

    /// The write is done. Returns how long the status was out of date.
    pub fn written(&mut self, interval: Duration, now: Instant) -> Duration {
        self.stage = Stage::Idle;
        self.failures = 0;
        self.stale = None;
        self.not_before = Some(now + interval);
        self.wanted_since.take().map_or(Duration::ZERO, |since| now.duration_since(since))
    }

    /// The write failed. A conflict waits for the watch's newer copy first. Returns whether it will be
    /// tried soon without one: after `most_attempts` conflicts in a row it is not.
    pub fn failed(&mut self, conflict_with: Option<&str>, most_attempts: u32, limit: Duration, now: Instant) -> bool {
        self.stage = Stage::Idle;
        self.stale = conflict_with.map(str::to_owned);
        let wait = FIRST_WAIT.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX)).min(limit);
        self.failures = self.failures.saturating_add(1).min(31);
        let given_up = conflict_with.is_some() && self.failures >= most_attempts;
        self.not_before = Some(now + if given_up { limit } else { wait });
        !given_up
    }

    /// Whether something is still to be written.
    #[must_use]
    pub const fn outstanding(&self) -> bool {
        self.wanted_since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(1);

    #[test]
    fn the_first_is_written_at_once_the_next_after_the_interval() {
        let now = Instant::now();
        let mut lane = StatusLane::default();
        assert_eq!(lane.wanted(true, Some("1"), now), Step::AskLane);
        assert_eq!(lane.wanted(true, Some("1"), now), Step::Rest);
        assert!(lane.entered(true));
        assert_eq!(lane.wanted(true, Some("1"), now), Step::Rest);
        lane.written(INTERVAL, now);
        assert_eq!(lane.wanted(true, Some("2"), now), Step::Arm(INTERVAL));
        assert_eq!(lane.wanted(true, Some("2"), now), Step::Rest);
        lane.due();
        assert_eq!(lane.wanted(true, Some("2"), now + INTERVAL), Step::AskLane);
    }

    #[test]
    fn what_came_true_meanwhile_is_not_written() {
        let now = Instant::now();
        let mut lane = StatusLane::default();
        lane.wanted(true, None, now);
        assert!(!lane.entered(false));
        assert_eq!(lane.wanted(false, None, now), Step::Rest);
        assert!(!lane.outstanding());
    }

    #[test]
    fn a_conflict_waits_for_the_watch_s_copy() {
        let now = Instant::now();
        let mut lane = StatusLane::default();
        lane.wanted(true, Some("1"), now);
        lane.entered(true);
        assert!(lane.failed(Some("1"), 5, INTERVAL * 30, now));
        assert_eq!(lane.wanted(true, Some("1"), now), Step::Arm(FIRST_WAIT));
        assert_eq!(lane.wanted(true, Some("2"), now), Step::AskLane);
    }

    #[test]
    fn conflicts_without_a_newer_copy_are_tried_max_retries_times_then_rarely() {
        let mut now = Instant::now();
        let mut lane = StatusLane::default();
        let mut tries = 0;
        loop {
            assert_eq!(lane.wanted(true, Some("1"), now), Step::AskLane);
            lane.entered(true);
            tries += 1;
            if !lane.failed(Some("1"), 5, INTERVAL * 30, now) {
                break;
            }
            let Step::Arm(wait) = lane.wanted(true, Some("1"), now) else { panic!("not armed") };
            now += wait;
            lane.due();
        }
        assert_eq!(tries, 5);
        assert_eq!(lane.wanted(true, Some("1"), now), Step::Arm(INTERVAL * 30));
    }
}
