//! The life of one object between its passes: a pure state machine. The actor around it runs the effects.
//!
//! It knows nothing of what a pass does. Each time anything has changed, the actor *looks* (compares what it
//! observes with what was handled) and tells the machine what is wanted now; the machine decides whether that
//! means a place in the slot queue, patience or nothing. Because the actor looks again after every pass, a
//! change that arrives during one is never lost.

use std::time::Duration;

use super::backoff::Backoff;
use super::slots::Class;

/// What the actor is to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Ask for a permit.
    Enqueue(Class),
    /// Take the request back.
    Withdraw,
    /// Start a pass with the permit that was granted.
    Start,
    /// Give the permit back unused.
    Decline,
    /// Call [`Machine::due`] with this epoch after the time has passed.
    Arm {
        /// The time.
        after: Duration,
        /// The epoch.
        epoch: u64,
    },
}

/// When a failed pass is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Exponentially, from one second. `capped` failures count towards the most attempts.
    Backoff {
        /// Counts towards the most attempts.
        capped: bool,
    },
    /// After a fixed time; does not count as an attempt.
    After(Duration),
    /// Not before the object changes.
    OnChange,
}

/// Why the machine waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// For the backoff.
    Backoff,
    /// For a fixed time; a nudge ends it.
    Fixed,
    /// Attempts are used up: for a change or the next resync.
    Exhausted,
    /// For a change.
    Change,
}

/// Where the object stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing to do.
    Idle,
    /// In the slot queue.
    Queued(Class),
    /// A pass runs.
    Running,
    /// A pass has failed.
    Waiting(Patience),
}

/// Limits of the retries.
#[derive(Clone, Copy, Debug)]
pub struct RetryLimits {
    /// Capped failures before the object waits for a change or the next resync.
    pub attempts: u32,
    /// Longest backoff.
    pub max_backoff: Duration,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct Machine {
    phase: Phase,
    /// Something changed while a pass ran: how urgent it was.
    dirty: Option<Class>,
    /// The trigger whose pass failed last. Another one starts afresh.
    failed: Option<String>,
    attempts: u32,
    backoff: Backoff,
    epoch: u64,
}

impl Default for Machine {
    fn default() -> Self {
        Self { phase: Phase::Idle, dirty: None, failed: None, attempts: 0, backoff: Backoff::default(), epoch: 0 }
    }
}

impl Machine {
    /// Where the object stands.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Failed attempts since the last change or success.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Whether something changed while the present pass runs.
    #[must_use]
    pub const fn dirty(&self) -> bool {
        self.dirty.is_some()
    }

    /// The actor has looked: this is wanted now, for this trigger.
    pub fn looked(&mut self, wanted: Option<Class>, trigger: &str) -> Vec<Effect> {
        if self.failed.as_deref().is_some_and(|failed| failed != trigger) {
            self.forget_failures();
            if let Phase::Waiting(_) = self.phase {
                self.epoch += 1;
                self.phase = Phase::Idle;
            }
        }
        match (self.phase, wanted) {
            (Phase::Idle, Some(class)) => self.enqueue(class),
            (Phase::Queued(present), Some(class)) if class < present => self.enqueue(class),
            (Phase::Queued(_), None) => {
                self.phase = Phase::Idle;
                vec![Effect::Withdraw]
            }
            (Phase::Running, Some(class)) => {
                self.dirty = Some(self.dirty.map_or(class, |present| present.min(class)));
                Vec::new()
            }
            (Phase::Waiting(_), None) => {
                self.forget_failures();
                self.epoch += 1;
                self.phase = Phase::Idle;
                Vec::new()
            }
            (Phase::Idle | Phase::Running, None) | (Phase::Queued(_) | Phase::Waiting(_), Some(_)) => Vec::new(),
        }
    }

    /// A permit has come.
    pub fn granted(&mut self) -> Vec<Effect> {
        if let Phase::Queued(_) = self.phase {
            self.phase = Phase::Running;
            self.dirty = None;
            vec![Effect::Start]
        } else {
            vec![Effect::Decline]
        }
    }

    /// The pass ended well. The actor looks again after this, with at least the urgency that is returned.
    pub fn succeeded(&mut self) -> Option<Class> {
        self.phase = Phase::Idle;
        self.forget_failures();
        self.dirty.take()
    }

    /// The pass was stopped before its end and counts for nothing; failures before it are remembered.
    pub fn stopped(&mut self) {
        if self.phase == Phase::Running {
            self.phase = Phase::Idle;
            self.dirty = None;
        }
    }

    /// The pass for `trigger` failed.
    pub fn failed(&mut self, trigger: &str, retry: &Retry, limits: RetryLimits, random: u64) -> Vec<Effect> {
        self.dirty = None;
        self.failed = Some(trigger.to_owned());
        match retry {
            Retry::OnChange => {
                self.phase = Phase::Waiting(Patience::Change);
                Vec::new()
            }
            Retry::After(after) => {
                self.phase = Phase::Waiting(Patience::Fixed);
                self.arm(*after)
            }
            Retry::Backoff { capped } => {
                self.attempts = self.attempts.saturating_add(1);
                if *capped && self.attempts >= limits.attempts {
                    self.phase = Phase::Waiting(Patience::Exhausted);
                    return Vec::new();
                }
                self.phase = Phase::Waiting(Patience::Backoff);
                let after = self.backoff.next(limits.max_backoff, random);
                self.arm(after)
            }
        }
    }

    /// A timer armed by this machine has fired; an old one is ignored.
    pub fn due(&mut self, epoch: u64) -> Vec<Effect> {
        match self.phase {
            Phase::Waiting(_) if epoch == self.epoch => self.enqueue(Class::Retry),
            _ => Vec::new(),
        }
    }

    /// What a fixed wait waited for may have come true.
    pub fn nudged(&mut self) -> Vec<Effect> {
        match self.phase {
            Phase::Waiting(Patience::Fixed) => self.enqueue(Class::Retry),
            _ => Vec::new(),
        }
    }

    /// A resync: used-up attempts get one more, the backoff stays what it was.
    pub fn resynced(&mut self) -> Vec<Effect> {
        match self.phase {
            Phase::Waiting(Patience::Exhausted) => self.enqueue(Class::Resync),
            _ => Vec::new(),
        }
    }

    /// The object is gone: nothing of it is remembered.
    pub fn gone(&mut self) -> Vec<Effect> {
        let effects = if let Phase::Queued(_) = self.phase { vec![Effect::Withdraw] } else { Vec::new() };
        let epoch = self.epoch + 1;
        *self = Self { epoch, ..Self::default() };
        effects
    }

    fn enqueue(&mut self, class: Class) -> Vec<Effect> {
        self.epoch += 1;
        self.phase = Phase::Queued(class);
        vec![Effect::Enqueue(class)]
    }

    fn arm(&mut self, after: Duration) -> Vec<Effect> {
        self.epoch += 1;
        vec![Effect::Arm { after, epoch: self.epoch }]
    }

    fn forget_failures(&mut self) {
        self.failed = None;
        self.attempts = 0;
        self.backoff.reset();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: RetryLimits = RetryLimits { attempts: 3, max_backoff: Duration::from_secs(300) };

    fn running(trigger: &str) -> Machine {
        let mut machine = Machine::default();
        machine.looked(Some(Class::Change), trigger);
        assert_eq!(machine.granted(), [Effect::Start]);
        machine
    }

    fn fail(machine: &mut Machine, trigger: &str) -> Vec<Effect> {
        machine.failed(trigger, &Retry::Backoff { capped: true }, LIMITS, 0)
    }

    #[test]
    fn a_change_during_a_pass_keeps_its_urgency_for_the_next() {
        let mut machine = running("a");
        machine.looked(Some(Class::Resync), "a");
        machine.looked(Some(Class::Change), "b");
        machine.looked(Some(Class::Bulk), "b");
        assert_eq!(machine.succeeded(), Some(Class::Change));
    }

    #[test]
    fn facts_and_status_writes_do_not_shorten_a_backoff() {
        let mut machine = running("a");
        let armed = fail(&mut machine, "a");
        for _ in 0..100 {
            assert_eq!(machine.looked(Some(Class::Fact), "a"), []);
        }
        let [Effect::Arm { epoch, .. }] = armed[..] else { panic!("{armed:?}") };
        assert_eq!(machine.due(epoch), [Effect::Enqueue(Class::Retry)]);
    }

    #[test]
    fn a_change_ends_the_backoff_and_starts_it_afresh() {
        let mut machine = running("a");
        fail(&mut machine, "a");
        assert_eq!(machine.looked(Some(Class::Change), "b"), [Effect::Enqueue(Class::Change)]);
        assert_eq!(machine.attempts(), 0);
    }

    #[test]
    fn used_up_attempts_wait_for_a_change_or_a_resync_which_grants_one() {
        let mut machine = running("a");
        for _ in 0..2 {
            let armed = fail(&mut machine, "a");
            let [Effect::Arm { epoch, .. }] = armed[..] else { panic!("{armed:?}") };
            machine.due(epoch);
            machine.granted();
        }
        assert_eq!(fail(&mut machine, "a"), []);
        assert_eq!(machine.phase(), Phase::Waiting(Patience::Exhausted));
        assert_eq!(machine.nudged(), []);
        assert_eq!(machine.resynced(), [Effect::Enqueue(Class::Resync)]);
        machine.granted();
        assert_eq!(fail(&mut machine, "a"), []);
        assert_eq!(machine.phase(), Phase::Waiting(Patience::Exhausted));
        assert_eq!(machine.looked(Some(Class::Change), "b"), [Effect::Enqueue(Class::Change)]);
    }

    #[test]
    fn a_fixed_wait_costs_no_attempt_and_ends_by_a_nudge() {
        let mut machine = running("a");
        for _ in 0..20 {
            machine.failed("a", &Retry::After(Duration::from_secs(60)), LIMITS, 0);
            assert_eq!(machine.attempts(), 0);
            assert_eq!(machine.nudged(), [Effect::Enqueue(Class::Retry)]);
            machine.granted();
        }
    }

    #[test]
    fn an_invalid_object_waits_for_a_change_only() {
        let mut machine = running("a");
        machine.failed("a", &Retry::OnChange, LIMITS, 0);
        assert_eq!(machine.resynced(), []);
        assert_eq!(machine.nudged(), []);
        assert_eq!(machine.looked(Some(Class::Resync), "a"), []);
        assert_eq!(machine.looked(Some(Class::Change), "b"), [Effect::Enqueue(Class::Change)]);
    }

    #[test]
    fn a_stopped_pass_costs_no_attempt_and_is_wanted_again() {
        let mut machine = running("a");
        machine.stopped();
        assert_eq!((machine.phase(), machine.attempts()), (Phase::Idle, 0));
        assert_eq!(machine.looked(Some(Class::Change), "a"), [Effect::Enqueue(Class::Change)]);
        machine.stopped();
        assert_eq!(machine.phase(), Phase::Queued(Class::Change));
    }

    #[test]
    fn an_old_timer_is_ignored() {
        let mut machine = running("a");
        let armed = fail(&mut machine, "a");
        let [Effect::Arm { epoch, .. }] = armed[..] else { panic!("{armed:?}") };
        machine.looked(Some(Class::Change), "b");
        machine.granted();
        fail(&mut machine, "b");
        assert_eq!(machine.due(epoch), []);
    }

    #[test]
    fn a_permit_for_a_gone_object_is_declined() {
        let mut machine = Machine::default();
        machine.looked(Some(Class::Change), "a");
        assert_eq!(machine.gone(), [Effect::Withdraw]);
        assert_eq!(machine.granted(), [Effect::Decline]);
    }

    proptest! {
        /// Whatever happens, a wanted object is never idle without a place in the queue, a pass or a reason to wait.
        #[test]
        fn what_is_wanted_is_never_forgotten(steps in prop::collection::vec((0u8..8, 0usize..5, 0u8..3), 1..200)) {
            let mut machine = Machine::default();
            let mut wanted: Option<Class> = None;
            let mut trigger = String::from("0");
            let mut armed: Option<u64> = None;
            for (step, class, text) in steps {
                let effects = match step {
                    0 | 1 => {
                        wanted = Some(Class::ALL[class]);
                        trigger = text.to_string();
                        machine.looked(wanted, &trigger)
                    }
                    2 => { wanted = None; machine.looked(None, &trigger) }
                    3 => machine.granted(),
                    4 if machine.phase() == Phase::Running => {
                        machine.succeeded();
                        machine.looked(wanted, &trigger)
                    }
                    5 if machine.phase() == Phase::Running => {
                        let mut effects = fail(&mut machine, &trigger);
                        effects.extend(machine.looked(wanted, &trigger));
                        effects
                    }
                    6 => armed.map(|epoch| machine.due(epoch)).unwrap_or_default(),
                    _ => machine.resynced(),
                };
                for effect in effects {
                    if let Effect::Arm { epoch, .. } = effect { armed = Some(epoch); }
                }
                if wanted.is_some() {
                    prop_assert_ne!(machine.phase(), Phase::Idle);
                }
            }
        }
    }
}
