//! Who leads: a `coordination.k8s.io` Lease, held by compare-and-swap.
//!
//! Owns client-go's algorithm as a pure [`Machine`] (expiry is judged on a local monotonic clock from the
//! last *observed* change, never by comparing two machines' wall clocks) and the thin [`Elector`] that does
//! its calls. Moves the deadline of the write gate; must not know what the writes are.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use rand::RngExt;
use tokio_util::sync::CancellationToken;

use super::calls::within;
use super::connect::Cluster;
use super::error::{Call, CallError};

/// Which Lease, and how.
#[derive(Clone, Debug)]
pub struct LeaseOptions {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who we are: unique per start of a process, or a restarted process would take its dead self for alive.
    pub identity: String,
    /// Validity after a renewal. Rounded up to whole seconds in the Lease.
    pub duration: Duration,
    /// Time between two renewals, and between two looks at a Lease that another one holds.
    pub renew_period: Duration,
}

/// What to do with the Lease now.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// There is none.
    Create(LeaseSpec),
    /// It is free, expired, or ours to renew.
    Replace(LeaseSpec),
    /// Another one holds it.
    Follow(String),
}

/// The pure half: what was seen, and when.
#[derive(Debug)]
struct Machine {
    identity: String,
    duration: Duration,
    observed: Option<(LeaseSpec, Instant)>,
}

impl Machine {
    fn observe(&mut self, spec: LeaseSpec, now: Instant) {
        if self.observed.as_ref().is_none_or(|(before, _)| *before != spec) {
            self.observed = Some((spec, now));
        }
    }

    fn step(&self, exists: bool, now: Instant, wall: Timestamp) -> Step {
        let fresh = LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(whole_seconds(self.duration)),
            acquire_time: Some(MicroTime(wall)),
            renew_time: Some(MicroTime(wall)),
            lease_transitions: Some(0),
            ..LeaseSpec::default()
        };
        let Some((seen, at)) = self.observed.as_ref().filter(|_| exists) else { return Step::Create(fresh) };
        let transitions = seen.lease_transitions.unwrap_or(0);
        match seen.holder_identity.as_deref().filter(|holder| !holder.is_empty()) {
            Some(holder) if holder == self.identity => Step::Replace(LeaseSpec {
                acquire_time: seen.acquire_time.clone(),
                lease_transitions: Some(transitions),
                ..fresh
            }),
            Some(holder) if now < *at + validity(seen, self.duration) => Step::Follow(holder.to_owned()),
            _ => Step::Replace(LeaseSpec { lease_transitions: Some(transitions.saturating_add(1)), ..fresh }),
        }
    }
}

/// How long the holder says that a renewal lasts.
fn validity(seen: &LeaseSpec, ours: Duration) -> Duration {
    seen.lease_duration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok())
        .filter(|seconds| *seconds > 0)
        .map_or(ours, Duration::from_secs)
}

fn whole_seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis().div_ceil(1000)).unwrap_or(i32::MAX).max(1)
}

/// Takes part in the election until stopped.
#[derive(Debug)]
pub struct Elector {
    cluster: Cluster,
    options: LeaseOptions,
    machine: Machine,
    /// The Lease as last read or written; forgotten when a write's outcome is unknown.
    lease: Option<Lease>,
    /// End of the validity of our last renewal.
    held_until: Option<Instant>,
    /// The last thing said about not leading, so that it is said once.
    said: String,
}

impl Elector {
    /// Prepares; nothing is sent before [`Self::run`].
    #[must_use]
    pub fn new(cluster: Cluster, options: LeaseOptions) -> Self {
        let machine = Machine { identity: options.identity.clone(), duration: options.duration, observed: None };
        Self { cluster, options, machine, lease: None, held_until: None, said: String::new() }
    }

    /// Acquires and renews, opening and closing [`Cluster::leadership`], until `stop`; then closes the gate
    /// and releases the Lease, so that another one takes over at its next look. Cancel `stop` after the last
    /// write. Losing the Lease ends nothing: it is acquired again when it is free.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let round = stop.run_until_cancelled(self.round()).await;
            let Some(wait) = round else { break };
            if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                break;
            }
        }
        self.release().await;
    }

    /// One look; the result is the time until the next.
    async fn round(&mut self) -> Duration {
        // Measured before the call: others count from when they see the renewal, which is later.
        let begun = Instant::now();
        match self.take().await {
            Ok(None) => {
                let until = begun + self.options.duration;
                if self.held_until.replace(until).is_none() {
                    tracing::info!(lease = %self.options.name, identity = %self.options.identity, "leading");
                }
                self.said.clear();
                self.cluster.leadership().open_until(until);
                self.cluster.road.metrics.leader(true);
                self.options.renew_period.saturating_sub(begun.elapsed())
            }
            Ok(Some(holder)) => {
                self.lost("another one holds the Lease");
                self.say(&format!("{holder} leads"));
                jittered(self.options.renew_period)
            }
            Err(error) => {
                // What was written, if anything, is unknown: read again.
                self.lease = None;
                if self.held_until.is_some_and(|until| until <= Instant::now()) {
                    self.lost("the Lease could not be renewed in time");
                }
                if matches!(error, CallError::Conflict { .. } | CallError::AlreadyExists { .. }) {
                    // Another one wrote it: look at once who.
                    return jittered(Duration::from_millis(50));
                }
                self.say(&error.to_string());
                jittered(self.options.renew_period / 5)
            }
        }
    }

    /// Tries to hold the Lease; the result is the other holder.
    async fn take(&mut self) -> Result<Option<String>, CallError> {
        let (ns, name) = (self.options.namespace.clone(), self.options.name.clone());
        let ours = self.held_until.is_some();
        if self.lease.is_none() || !ours {
            let call = self.call("get");
            self.lease = within(self.limit(), call, self.cluster.read::<Lease>(Some(&ns), &name)).await?;
            if let Some(spec) = self.lease.as_ref().map(|lease| lease.spec.clone().unwrap_or_default()) {
                self.machine.observe(spec, Instant::now());
            }
        }
        let written = match self.machine.step(self.lease.is_some(), Instant::now(), Timestamp::now()) {
            Step::Follow(holder) => return Ok(Some(holder)),
            Step::Create(spec) => {
                let metadata = ObjectMeta { name: Some(name), namespace: Some(ns.clone()), ..ObjectMeta::default() };
                let lease = Lease { metadata, spec: Some(spec) };
                within(self.limit(), self.call("create"), self.cluster.create(Some(&ns), &lease)).await?
            }
            Step::Replace(spec) => {
                let lease = Lease { spec: Some(spec), ..self.lease.clone().unwrap_or_default() };
                within(self.limit(), self.call("update"), self.cluster.replace(Some(&ns), &name, &lease)).await?
            }
        };
        self.machine.observe(written.spec.clone().unwrap_or_default(), Instant::now());
        self.lease = Some(written);
        Ok(None)
    }

    fn lost(&mut self, why: &str) {
        if self.held_until.take().is_some() {
            self.cluster.leadership().close();
            tracing::warn!(lease = %self.options.name, why, "no longer leading: no write is sent");
        }
        self.cluster.road.metrics.leader(false);
    }

    fn say(&mut self, text: &str) {
        if self.said != text {
            tracing::info!(lease = %self.options.name, reason = text, "waiting for the Lease");
            text.clone_into(&mut self.said);
        }
    }

    async fn release(self) {
        self.cluster.leadership().close();
        self.cluster.road.metrics.leader(false);
        let (ns, name) = (self.options.namespace.clone(), self.options.name.clone());
        // Read even if we do not lead: a renewal that was cut off may have arrived.
        let free = async {
            let Some(mut lease) = self.cluster.read::<Lease>(Some(&ns), &name).await? else { return Ok(false) };
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_deref() != Some(&self.options.identity) {
                return Ok(false);
            }
            spec.holder_identity = None;
            spec.lease_duration_seconds = Some(1);
            spec.renew_time = Some(MicroTime(Timestamp::now()));
            self.cluster.replace(Some(&ns), &name, &lease).await.map(|_| true)
        };
        match within(self.limit(), self.call("update"), free).await {
            Ok(true) => tracing::info!(lease = %name, "the Lease is released"),
            Ok(false) => {}
            Err(error) => tracing::warn!(lease = %name, %error, "the Lease could not be released, it expires"),
        }
    }

    /// A call that hangs must leave time for another attempt within the validity.
    fn limit(&self) -> Duration {
        self.options.renew_period.max(Duration::from_millis(100))
    }

    fn call(&self, verb: &'static str) -> Call {
        Call::new(verb, "Lease", Some(&self.options.namespace), Some(&self.options.name))
    }
}

fn jittered(period: Duration) -> Duration {
    period.mul_f64(rand::rng().random_range(1.0..1.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn wall() -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn machine() -> Machine {
        Machine { identity: "us".to_owned(), duration: 15 * SECOND, observed: None }
    }

    fn spec(holder: Option<&str>, seconds: i32, transitions: i32, renewed: i64) -> LeaseSpec {
        LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            lease_duration_seconds: Some(seconds),
            acquire_time: Some(MicroTime(wall())),
            renew_time: Some(MicroTime(Timestamp::from_second(renewed).unwrap())),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn an_absent_lease_is_created() {
        assert!(matches!(machine().step(false, Instant::now(), wall()), Step::Create(_)));
        let mut machine = machine();
        machine.observe(spec(Some("other"), 15, 0, 0), Instant::now());
        assert!(matches!(machine.step(false, Instant::now(), wall()), Step::Create(_)), "deleted meanwhile");
    }

    #[test]
    fn expiry_counts_from_the_observed_change() {
        let (mut machine, begin) = (machine(), Instant::now());
        // The holder's wall clock is decades behind: it does not matter.
        machine.observe(spec(Some("other"), 10, 3, 0), begin);
        assert_eq!(machine.step(true, begin + 9 * SECOND, wall()), Step::Follow("other".to_owned()));
        machine.observe(spec(Some("other"), 10, 3, 0), begin + 9 * SECOND);
        let Step::Replace(taken) = machine.step(true, begin + 10 * SECOND, wall()) else { panic!("expired") };
        assert_eq!(taken.holder_identity.as_deref(), Some("us"));
        assert_eq!(taken.lease_transitions, Some(4));
        assert_eq!(taken.lease_duration_seconds, Some(15));
        machine.observe(spec(Some("other"), 10, 3, 5), begin + 11 * SECOND);
        assert!(matches!(machine.step(true, begin + 20 * SECOND, wall()), Step::Follow(_)), "renewed");
    }

    #[test]
    fn a_released_lease_is_taken_at_once() {
        for holder in [None, Some("")] {
            let (mut machine, now) = (machine(), Instant::now());
            machine.observe(spec(holder, 1, 3, 0), now);
            assert!(matches!(machine.step(true, now, wall()), Step::Replace(_)));
        }
    }

    #[test]
    fn our_own_lease_is_renewed() {
        let (mut machine, now) = (machine(), Instant::now());
        machine.observe(spec(Some("us"), 15, 3, 0), now);
        let later = Timestamp::from_second(60).unwrap();
        let Step::Replace(renewed) = machine.step(true, now + 60 * SECOND, later) else { panic!("ours") };
        assert_eq!(renewed.lease_transitions, Some(3));
        assert_eq!(renewed.acquire_time, Some(MicroTime(wall())));
        assert_eq!(renewed.renew_time, Some(MicroTime(later)));
    }

    #[test]
    fn durations_round_up_to_seconds() {
        for (millis, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (15_000, 15)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
    }
}
