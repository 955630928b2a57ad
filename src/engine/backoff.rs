//! How long a failed object waits: from one second, doubled each time, up to a limit, with jitter. Pure.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);

/// The waiting times of one object. Reset by a change, a success or a restart, never by a fact or a status write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The wait after one more failure: half of it fixed, half by `random`, so that objects which failed
    /// together do not come back together.
    pub fn next(&mut self, limit: Duration, random: u64) -> Duration {
        let wait = FIRST.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX)).min(limit);
        self.failures = self.failures.saturating_add(1).min(31);
        let half = wait / 2;
        let span = u64::try_from(half.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        half + Duration::from_millis(random % span)
    }

    /// Back to the first wait.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_from_one_second_to_the_limit() {
        let mut backoff = Backoff::default();
        let limit = Duration::from_secs(300);
        let full: Vec<f64> = (0..11)
            .map(|_| {
                let before = backoff;
                let longest = (0..2000_u64)
                    .map(|random| {
                        let mut copy = before;
                        copy.next(limit, random * 151)
                    })
                    .max();
                backoff.next(limit, 0);
                longest.unwrap().as_secs_f64().ceil()
            })
            .collect();
        assert!(
            full.iter()
                .zip([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0])
                .all(|(a, b)| (a - b).abs() < 0.01),
            "{full:?}"
        );
        backoff.reset();
        assert!(backoff.next(limit, u64::MAX) <= FIRST);
    }

    #[test]
    fn never_ends_and_never_exceeds_the_limit() {
        let mut backoff = Backoff::default();
        for random in 0..100 {
            let wait = backoff.next(Duration::from_secs(300), random * 7919);
            assert!(wait <= Duration::from_secs(300));
            assert!(wait >= FIRST / 2);
        }
    }
}
