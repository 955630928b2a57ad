//! The provider's keys, kept in memory.
//!
//! Owns when they are fetched again: once for a token that no kept key verifies, at most once a minute whatever is
//! sent, by one request at a time. A failure is never kept: the next try is soon, and slower each time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use openidconnect::core::CoreJsonWebKeySet;

use super::error::AuthError;

/// Shortest time between two fetches that worked.
const PAUSE: Duration = Duration::from_secs(60);
/// Age at which keys are looked at again although they work: a withdrawn key must go.
const OLD: Duration = Duration::from_secs(3600);

/// When the next fetch may be.
#[derive(Debug, Default)]
struct Schedule {
    next: Option<Instant>,
    failures: u32,
}

impl Schedule {
    fn due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| next <= now)
    }

    /// The first keys are no second look: a key that changed right after them is found at once.
    fn worked(&mut self, now: Instant, first: bool) {
        *self = Self { next: (!first).then(|| now + PAUSE), failures: 0 };
    }

    fn failed(&mut self, now: Instant) {
        let wait = Duration::from_secs(1 << self.failures.min(6));
        *self = Self { next: Some(now + wait.min(PAUSE)), failures: self.failures.saturating_add(1) };
    }
}

#[derive(Debug, Default)]
struct Held {
    keys: Option<(Arc<CoreJsonWebKeySet>, Instant)>,
    schedule: Schedule,
}

/// The keys.
#[derive(Debug, Default)]
pub struct Keys {
    held: Mutex<Held>,
    flight: tokio::sync::Mutex<()>,
}

impl Keys {
    /// Those that are kept, and whether it is time to look at them again.
    pub fn kept(&self) -> (Option<Arc<CoreJsonWebKeySet>>, bool) {
        let held = self.held();
        let old = held.keys.as_ref().is_some_and(|(_, since)| since.elapsed() > OLD);
        (held.keys.as_ref().map(|(keys, _)| Arc::clone(keys)), old && held.schedule.due(Instant::now()))
    }

    /// Others than those that did not do: fetched now, or by somebody else meanwhile. `None`: there are none yet.
    pub async fn newer<F>(
        &self,
        than: Option<&Arc<CoreJsonWebKeySet>>,
        fetch: impl FnOnce() -> F,
    ) -> Result<Option<Arc<CoreJsonWebKeySet>>, AuthError>
    where
        F: Future<Output = Result<CoreJsonWebKeySet, AuthError>>,
    {
        let _alone = self.flight.lock().await;
        {
            let held = self.held();
            match (&held.keys, than) {
                (Some((keys, _)), Some(than)) if !Arc::ptr_eq(keys, than) => return Ok(Some(Arc::clone(keys))),
                (Some((keys, _)), None) => return Ok(Some(Arc::clone(keys))),
                (Some(_), _) if !held.schedule.due(Instant::now()) => return Ok(None),
                (None, _) if !held.schedule.due(Instant::now()) => {
                    return Err(AuthError::Provider("its keys could not be read, try again in a moment"));
                }
                _ => {}
            }
        }
        let fetched = fetch().await;
        let mut held = self.held();
        match fetched {
            Ok(keys) => {
                let keys = Arc::new(keys);
                let first = held.keys.replace((Arc::clone(&keys), Instant::now())).is_none();
                held.schedule.worked(Instant::now(), first);
                Ok(Some(keys))
            }
            Err(error) => {
                held.schedule.failed(Instant::now());
                tracing::warn!(%error, "the provider's keys cannot be read");
                // With keys in hand a token that none verifies is just a bad token.
                if held.keys.is_some() { Ok(None) } else { Err(error) }
            }
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_fetch_a_minute_and_failures_are_not_kept() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut schedule = Schedule::default();
        assert!(schedule.due(start));
        schedule.failed(start);
        assert!(!schedule.due(start) && schedule.due(after(1)), "a failure costs a second");
        schedule.failed(after(1));
        assert!(!schedule.due(after(2)) && schedule.due(after(3)));
        for _ in 0..40 {
            schedule.failed(start);
        }
        assert!(!schedule.due(after(59)) && schedule.due(after(60)), "and never more than a minute");
        schedule.worked(start, true);
        assert!(schedule.due(start), "the first fetch is no refetch");
        schedule.worked(start, false);
        assert!(!schedule.due(after(59)) && schedule.due(after(60)));
        schedule.failed(start);
        assert!(schedule.due(after(1)), "what worked forgives");
    }

    #[tokio::test]
    async fn one_fetch_for_a_thousand_tokens() {
        let (keys, fetches) = (Keys::default(), AtomicU32::new(0));
        let fetch = async || {
            fetches.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Ok(CoreJsonWebKeySet::default())
        };
        let first = keys.newer(None, fetch).await.unwrap().unwrap();
        for found in [true, false] {
            let than = keys.kept().0.filter(|_| !found).unwrap_or_else(|| Arc::clone(&first));
            let asked = (0..1000).map(|_| keys.newer(Some(&than), fetch));
            let given = futures::future::join_all(asked).await;
            // All get what one has fetched; those whom that does not help have to wait a minute.
            assert!(given.into_iter().all(|given| given.unwrap().is_some() == found));
            assert_eq!(fetches.load(Ordering::Relaxed), 2, "the first, and one for all");
        }
    }
}
