//! The write gate: whether this process may write right now.
//!
//! Owns one deadline on a monotonic clock. It closes by itself when the deadline passes, so a process that
//! was paused sends no write after it wakes. Must not do IO: `lease` moves the deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// A shared view of the gate. Closed from the start: nothing is written before an [`super::Elector`] holds
/// the Lease, or [`Self::always`] says that leader election is off.
#[derive(Clone, Debug)]
pub struct Leadership(Arc<State>);

#[derive(Debug)]
struct State {
    base: Instant,
    /// Nanoseconds after `base`; `u64::MAX` means for ever.
    deadline: AtomicU64,
    leads: watch::Sender<bool>,
}

impl Leadership {
    pub(super) fn closed() -> Self {
        Self(Arc::new(State { base: Instant::now(), deadline: AtomicU64::new(0), leads: watch::channel(false).0 }))
    }

    /// Opens the gate for good: leader election is off.
    pub fn always(&self) {
        self.0.deadline.store(u64::MAX, Ordering::SeqCst);
        self.0.leads.send_replace(true);
    }

    /// Whether a write may be sent at this very moment.
    #[must_use]
    pub fn valid(&self) -> bool {
        self.valid_at(Instant::now())
    }

    /// Told of each gain and of each loss that the elector notices; the value is the newest. A loss by time is
    /// told late here: [`Self::valid`] and [`Self::lapsed`] know it at once. A gain after one is told again.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<bool> {
        self.0.leads.subscribe()
    }

    /// Returns when no write may be sent any more.
    pub async fn lapsed(&self) {
        loop {
            let deadline = self.0.deadline.load(Ordering::SeqCst);
            let left = deadline.saturating_sub(self.nanos(Instant::now()));
            match (deadline, left) {
                (_, 0) => return,
                (u64::MAX, _) => std::future::pending::<()>().await,
                // A renewal moves the deadline while this sleeps.
                (_, left) => tokio::time::sleep(Duration::from_nanos(left)).await,
            }
        }
    }

    fn valid_at(&self, now: Instant) -> bool {
        self.nanos(now) < self.0.deadline.load(Ordering::SeqCst)
    }

    /// Opens until `deadline`.
    pub(super) fn open_until(&self, deadline: Instant) {
        let lapsed = !self.valid();
        self.0.deadline.store(self.nanos(deadline), Ordering::SeqCst);
        self.0.leads.send_if_modified(|leads| !std::mem::replace(leads, true) || lapsed);
    }

    /// Closes at once.
    pub(super) fn close(&self) {
        self.0.deadline.store(0, Ordering::SeqCst);
        self.0.leads.send_if_modified(|leads| std::mem::replace(leads, false));
    }

    fn nanos(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.0.base).as_nanos()).unwrap_or(u64::MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_closes_by_itself() {
        let gate = Leadership::closed();
        let now = Instant::now();
        assert!(!gate.valid_at(now));
        gate.open_until(now + Duration::from_secs(15));
        assert!(gate.valid_at(now + Duration::from_secs(14)));
        assert!(!gate.valid_at(now + Duration::from_secs(15)));
        assert!(*gate.changes().borrow());
        gate.close();
        assert!(!gate.valid_at(now));
        assert!(!*gate.changes().borrow());
        gate.always();
        assert!(gate.valid_at(now + Duration::from_secs(1_000_000)));
    }

    #[tokio::test]
    async fn a_lapse_is_known_at_once_and_a_late_renewal_is_told() {
        let gate = Leadership::closed();
        gate.lapsed().await;
        gate.open_until(Instant::now() + Duration::from_millis(30));
        let mut changes = gate.changes();
        changes.borrow_and_update();
        gate.open_until(Instant::now() + Duration::from_millis(60));
        assert!(!changes.has_changed().unwrap(), "a renewal in time is no news");
        gate.lapsed().await;
        assert!(!gate.valid());
        gate.open_until(Instant::now() + Duration::from_secs(60));
        assert!(changes.has_changed().unwrap());
    }
}
