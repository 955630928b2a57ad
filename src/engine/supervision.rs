//! What happens after an object's actor has died: the decision, without the actor. Pure.
//!
//! An actor dies only of a defect of ours (a panic in a handler): failures of a pass are values. So a few
//! quick restarts are tried, then the object is left alone until it changes, and says so in its status.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Deaths inside this window count.
pub const WINDOW: Duration = Duration::from_secs(60);
/// So many deaths inside the window are tried again.
pub const MOST_RESTARTS: usize = 3;

/// The answer to a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Start it again after this time.
    Respawn(Duration),
    /// Leave it alone until the object changes.
    GiveUp,
}

/// Deaths of one object's actor.
#[derive(Clone, Debug, Default)]
pub struct History(VecDeque<Instant>);

impl History {
    /// Records a death and decides.
    pub fn decide(&mut self, now: Instant) -> Verdict {
        while self.0.front().is_some_and(|at| now.duration_since(*at) > WINDOW) {
            self.0.pop_front();
        }
        self.0.push_back(now);
        let deaths = self.0.len();
        if deaths > MOST_RESTARTS {
            return Verdict::GiveUp;
        }
        let shift = u32::try_from(deaths - 1).unwrap_or(u32::MAX);
        Verdict::Respawn(Duration::from_millis(100).saturating_mul(10_u32.saturating_pow(shift)))
    }

    /// Forgets the deaths: the object has changed.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_restarts_then_left_alone_until_a_change() {
        let now = Instant::now();
        let mut history = History::default();
        let verdicts: Vec<Verdict> = (0..4).map(|second| history.decide(now + Duration::from_secs(second))).collect();
        assert_eq!(
            verdicts,
            [
                Verdict::Respawn(Duration::from_millis(100)),
                Verdict::Respawn(Duration::from_secs(1)),
                Verdict::Respawn(Duration::from_secs(10)),
                Verdict::GiveUp
            ]
        );
        history.clear();
        assert_eq!(history.decide(now), Verdict::Respawn(Duration::from_millis(100)));
    }

    #[test]
    fn old_deaths_are_forgotten() {
        let now = Instant::now();
        let mut history = History::default();
        for minute in 0..20_u32 {
            assert_eq!(
                history.decide(now + (WINDOW + Duration::from_secs(1)) * minute),
                Verdict::Respawn(Duration::from_millis(100))
            );
        }
    }
}
