//! The slot queue: who may do work now. Pure; the registry actor drives it.
//!
//! A fixed number of permits is granted to queued keys by class, weighted 16:8:4:2:1 and first come first
//! served inside a class. A key stands in the queue at most once and never holds two permits. While a class
//! has keys it gets at least one of any 31 grants, so a queued key runs within a bounded number of grants.
//! A bulk run holds one permit in sixteen at most, and rests as long as each of its passes took: the API server is
//! busy with two or three passes, and with more of them every call of a person's change would stand in a line there.
//! The slower the server, the longer the rest.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::key::ObjectKey;

/// A pass that hung says nothing about how busy the server is.
const LONGEST_REST: Duration = Duration::from_secs(5);

/// Why a key wants a permit, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A person changed the object.
    Change,
    /// Something around the object changed.
    Fact,
    /// A failed pass is due again.
    Retry,
    /// One of many changes made by a bulk run.
    Bulk,
    /// Resync, and everything of the first list.
    Resync,
}

impl Class {
    /// All classes, most urgent first.
    pub const ALL: [Self; 5] = [Self::Change, Self::Fact, Self::Retry, Self::Bulk, Self::Resync];

    /// Share of the grants while every class has keys.
    #[must_use]
    pub const fn weight(self) -> i64 {
        match self {
            Self::Change => 16,
            Self::Fact => 8,
            Self::Retry => 4,
            Self::Bulk => 2,
            Self::Resync => 1,
        }
    }

    /// The word in metrics and logs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Fact => "fact",
            Self::Retry => "retry",
            Self::Bulk => "bulk",
            Self::Resync => "resync",
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// A granted permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whose turn it is.
    pub key: ObjectKey,
    /// The class it waited in.
    pub class: Class,
    /// Since when it waited.
    pub since: Instant,
}

/// A key's place in the queue. The ticket tells a live entry of a lane from one left behind by a move.
#[derive(Debug)]
struct Place {
    class: Class,
    ticket: u64,
    since: Instant,
}

/// The queue and the permits.
#[derive(Debug)]
pub struct SlotQueue {
    limit: usize,
    /// Who holds a permit, as what and since when.
    running: HashMap<ObjectKey, (Class, Instant)>,
    /// Permits of [`Class::Bulk`] that are out or rest.
    bulk: usize,
    queued: HashMap<ObjectKey, Place>,
    lanes: [VecDeque<(ObjectKey, u64)>; 5],
    /// Smooth weighted round robin: every grant adds a class's weight, the largest credit wins and pays.
    credit: [i64; 5],
    ticket: u64,
}

impl SlotQueue {
    /// A queue of `limit` permits; at least one.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            running: HashMap::new(),
            bulk: 0,
            queued: HashMap::new(),
            lanes: Default::default(),
            credit: [0; 5],
            ticket: 0,
        }
    }

    /// Queues a key. A key that waits already moves only to a more urgent class and keeps its waiting time.
    pub fn push(&mut self, key: &ObjectKey, class: Class, now: Instant) {
        let since = match self.queued.get(key) {
            Some(place) if place.class <= class => return,
            Some(place) => place.since,
            None => now,
        };
        self.ticket += 1;
        self.queued.insert(key.clone(), Place { class, ticket: self.ticket, since });
        self.lanes[class.index()].push_back((key.clone(), self.ticket));
    }

    /// Takes a key out of the queue. A permit that it holds stays until it is given back.
    pub fn withdraw(&mut self, key: &ObjectKey) {
        self.queued.remove(key);
    }

    /// Whether a key holds a permit.
    #[must_use]
    pub fn runs(&self, key: &ObjectKey) -> bool {
        self.running.contains_key(key)
    }

    /// Gives a permit back. The permit of a bulk run is free for everybody else at once; [`Self::rested`] is due
    /// after the time that comes back, and until then it is none of the run's.
    pub fn release(&mut self, key: &ObjectKey, now: Instant) -> Option<Duration> {
        let (class, since) = self.running.remove(key)?;
        (class == Class::Bulk).then(|| now.saturating_duration_since(since).min(LONGEST_REST))
    }

    /// A permit of a bulk run has rested.
    pub fn rested(&mut self) {
        self.bulk = self.bulk.saturating_sub(1);
    }

    /// Permits that a bulk run may hold.
    const fn bulk_limit(&self) -> usize {
        self.limit.div_ceil(16)
    }

    /// Grants one permit, if one is free and a key can take it.
    pub fn grant(&mut self, now: Instant) -> Option<Grant> {
        if self.running.len() >= self.limit {
            return None;
        }
        let mut ready: [bool; 5] = [false; 5];
        for class in Class::ALL {
            ready[class.index()] = self.settle_head(class);
        }
        ready[Class::Bulk.index()] &= self.bulk < self.bulk_limit();
        let total: i64 = Class::ALL.iter().filter(|class| ready[class.index()]).map(|class| class.weight()).sum();
        let mut best: Option<Class> = None;
        for class in Class::ALL {
            if !ready[class.index()] {
                // A class without keys saves nothing up for later.
                self.credit[class.index()] = 0;
                continue;
            }
            self.credit[class.index()] += class.weight();
            if best.is_none_or(|other| self.credit[class.index()] > self.credit[other.index()]) {
                best = Some(class);
            }
        }
        let class = best?;
        self.credit[class.index()] -= total;
        let (key, _) = self.lanes[class.index()].pop_front()?;
        let place = self.queued.remove(&key)?;
        self.running.insert(key.clone(), (class, now));
        if class == Class::Bulk {
            self.bulk += 1;
        }
        Some(Grant { key, class, since: place.since })
    }

    /// Brings the first key that can run to the head of its lane: entries left behind by a move or a
    /// withdrawal are dropped, keys whose last pass still runs go to the back.
    fn settle_head(&mut self, class: Class) -> bool {
        let lane = &mut self.lanes[class.index()];
        for _ in 0..lane.len() {
            let Some((key, ticket)) = lane.front() else { return false };
            match self.queued.get(key) {
                Some(place) if place.ticket == *ticket => {
                    if !self.running.contains_key(key) {
                        return true;
                    }
                    lane.rotate_left(1);
                }
                _ => {
                    lane.pop_front();
                }
            }
        }
        false
    }

    /// Keys that wait.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.queued.len()
    }

    /// Permits that are out.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.running.len()
    }

    /// Where a key stands: its class, if it waits.
    #[must_use]
    pub fn waiting(&self, key: &ObjectKey) -> Option<Class> {
        self.queued.get(key).map(|place| place.class)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// A permit comes back and has rested.
    fn give_back(queue: &mut SlotQueue, key: &ObjectKey, now: Instant) {
        if queue.release(key, now).is_some() {
            queue.rested();
        }
    }

    fn key(number: u8) -> ObjectKey {
        ObjectKey::new("ns", &format!("site-{number}"))
    }

    #[test]
    fn a_person_s_change_overtakes_a_bulk_run() {
        let now = Instant::now();
        let mut queue = SlotQueue::new(1);
        for number in 0..50 {
            queue.push(&key(number), Class::Bulk, now);
        }
        let first = queue.grant(now).unwrap();
        queue.push(&key(99), Class::Change, now);
        give_back(&mut queue, &first.key, now);
        assert_eq!(queue.grant(now).unwrap().key, key(99));
    }

    #[test]
    fn a_bulk_run_holds_one_permit_in_sixteen_and_rests_as_long_as_it_worked() {
        let now = Instant::now();
        for (limit, most) in [(1, 1), (5, 1), (16, 1), (32, 2)] {
            let mut queue = SlotQueue::new(limit);
            for number in 0..50 {
                queue.push(&key(number), Class::Bulk, now);
            }
            let granted: Vec<Grant> = std::iter::from_fn(|| queue.grant(now)).collect();
            assert_eq!(granted.len(), most, "of {limit}");
            queue.push(&key(99), Class::Change, now);
            if limit > 1 {
                assert_eq!(queue.grant(now).unwrap().key, key(99));
            }
            let later = now + Duration::from_millis(40);
            assert_eq!(queue.release(&granted[0].key, later), Some(Duration::from_millis(40)), "as long as it worked");
            queue.push(&key(100), Class::Fact, now);
            let next = queue.grant(later).unwrap();
            assert_ne!(next.class, Class::Bulk, "the run rests, others do not");
            assert_eq!(queue.release(&next.key, later), None);
            while let Some(other) = queue.grant(later) {
                assert_eq!(queue.release(&other.key, later), None);
            }
            queue.rested();
            assert_eq!(queue.grant(later).unwrap().class, Class::Bulk);
        }
    }

    #[test]
    fn grants_follow_the_weights_while_every_class_has_keys() {
        let now = Instant::now();
        let mut queue = SlotQueue::new(1);
        for class in Class::ALL {
            for number in 0..40 {
                let name = ObjectKey::new("ns", &format!("{}-{number}", class.word()));
                queue.push(&name, class, now);
            }
        }
        let mut counts = [0; 5];
        for _ in 0..31 {
            let grant = queue.grant(now).unwrap();
            counts[grant.class.index()] += 1;
            give_back(&mut queue, &grant.key, now);
        }
        assert_eq!(counts, [16, 8, 4, 2, 1]);
    }

    #[test]
    fn a_key_that_still_runs_waits_without_blocking_its_class() {
        let now = Instant::now();
        let mut queue = SlotQueue::new(2);
        queue.push(&key(1), Class::Change, now);
        queue.grant(now).unwrap();
        queue.push(&key(1), Class::Change, now);
        queue.push(&key(2), Class::Change, now);
        assert_eq!(queue.grant(now).unwrap().key, key(2));
        assert_eq!(queue.grant(now), None);
        give_back(&mut queue, &key(1), now);
        assert_eq!(queue.grant(now).unwrap().key, key(1));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(u8, usize),
        Withdraw(u8),
        Grant,
        Release(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u8..12, 0usize..5).prop_map(|(number, class)| Step::Push(number, class)),
            1 => (0u8..12).prop_map(Step::Withdraw),
            4 => Just(Step::Grant),
            3 => (0usize..8).prop_map(Step::Release),
        ]
    }

    proptest! {
        #[test]
        fn never_over_the_limit_never_a_key_twice(limit in 1usize..5, steps in prop::collection::vec(step(), 1..200)) {
            let now = Instant::now();
            let mut queue = SlotQueue::new(limit);
            let mut running: Vec<ObjectKey> = Vec::new();
            let mut wanted: HashSet<ObjectKey> = HashSet::new();
            for step in steps {
                match step {
                    Step::Push(number, class) => {
                        queue.push(&key(number), Class::ALL[class], now);
                        wanted.insert(key(number));
                    }
                    Step::Withdraw(number) => {
                        queue.withdraw(&key(number));
                        wanted.remove(&key(number));
                    }
                    Step::Grant => {
                        if let Some(grant) = queue.grant(now) {
                            prop_assert!(!running.contains(&grant.key));
                            prop_assert!(wanted.remove(&grant.key));
                            running.push(grant.key);
                        } else {
                            let held =
                                |key: &ObjectKey| running.contains(key) || queue.waiting(key) == Some(Class::Bulk);
                            prop_assert!(running.len() >= limit || wanted.iter().all(held));
                        }
                    }
                    Step::Release(index) => {
                        if index < running.len() {
                            give_back(&mut queue, &running.remove(index), now);
                        }
                    }
                }
                prop_assert!(running.len() <= limit);
                prop_assert_eq!(queue.in_use(), running.len());
                prop_assert_eq!(queue.depth(), wanted.len());
            }
        }

        #[test]
        fn every_queued_key_runs_within_a_bounded_number_of_grants(classes in prop::collection::vec(0usize..5, 1..40)) {
            let now = Instant::now();
            let mut queue = SlotQueue::new(1);
            for (number, class) in classes.iter().enumerate() {
                queue.push(&ObjectKey::new("ns", &format!("first-{number}")), Class::ALL[*class], now);
            }
            let mut left: HashSet<ObjectKey> =
                (0..classes.len()).map(|number| ObjectKey::new("ns", &format!("first-{number}"))).collect();
            // New urgent work keeps arriving, one key a grant.
            for number in 0..31 * (classes.len() + 1) {
                queue.push(&ObjectKey::new("ns", &format!("late-{number}")), Class::Change, now);
                let grant = queue.grant(now).unwrap();
                give_back(&mut queue, &grant.key, now);
                left.remove(&grant.key);
            }
            prop_assert!(left.is_empty(), "still waiting: {:?}", left);
        }
    }
}
