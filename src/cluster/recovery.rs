//! What follows the failure of a watch: how long to wait, and whether to resume or to begin anew.
//!
//! Pure; `watch` does it.

use std::time::{Duration, Instant};

use kube::core::Status;
use kube::runtime::watcher;

use super::calls::fault;
use super::transport::Fault;
use crate::telemetry::masking::cut_to;

const FIRST_DELAY: Duration = Duration::from_millis(800);
/// A working server is noticed within this time after an outage of any length.
const LONGEST_DELAY: Duration = Duration::from_secs(10);
/// A stream that held this long was healthy: the next failure waits the first delay again.
const HEALTHY: Duration = Duration::from_secs(30);

/// What to do about a failure besides waiting.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// kube's watcher goes on where it was.
    Resume,
    /// A complete list: the server does not know our version any more. kube's watcher would ask for the same
    /// version for ever when the refusal is the HTTP status and not an event in the stream.
    BeginAnew,
    /// The server refuses streaming lists.
    PagedLists,
}

/// What helps against `error`, once a list was complete (`synced`) or in a `streaming` list.
pub(super) fn remedy(error: &watcher::Error, synced: bool, streaming: bool) -> Remedy {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => match status.code {
            400 | 403 | 422 if !synced && streaming => Remedy::PagedLists,
            400 | 410 | 422 if synced => Remedy::BeginAnew,
            504 if synced && is_too_large_version(status) => Remedy::BeginAnew,
            _ => Remedy::Resume,
        },
        _ => Remedy::Resume,
    }
}

/// After a restore of the store our version lies in its future.
fn is_too_large_version(status: &Status) -> bool {
    status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == "ResourceVersionTooLarge")
        || status.message.starts_with("Too large resource version")
}

/// The failure in one bounded line: the server's reason, never an object.
pub(super) fn plain(error: &watcher::Error) -> String {
    let (step, inner) = match error {
        watcher::Error::InitialListFailed(inner) => ("list", inner),
        watcher::Error::WatchStartFailed(inner) => ("watch", inner),
        watcher::Error::WatchFailed(inner) => ("stream", inner),
        watcher::Error::WatchError(status) => return format!("stream: {}", refused(status)),
        watcher::Error::NoResourceVersion => return "an object without a resource version".to_owned(),
    };
    match (inner, fault(inner)) {
        // The rest of the wait differs each time; the text must not.
        (_, Some(Fault::Held(_))) => format!("{step}: the API server asked to wait"),
        (_, Some(fault)) => format!("{step}: {fault}"),
        (kube::Error::Api(status), _) => format!("{step}: {}", refused(status)),
        (kube::Error::SerdeError(_), _) => format!("{step}: an answer that is not JSON of Kubernetes"),
        (other, _) => format!("{step}: {}", cut_to(&other.to_string(), 200)),
    }
}

fn refused(status: &Status) -> String {
    format!("{} {}: {}", status.code, status.reason, cut_to(&status.message, 200))
}

/// Doubling delays with jitter, capped, and begun again after a healthy while.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    last: Option<Instant>,
}

impl Backoff {
    /// The next delay; `jitter` is a factor up to 1.
    pub(super) fn next(&mut self, now: Instant, jitter: f64) -> Duration {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) > HEALTHY) {
            self.failures = 0;
        }
        let delay = FIRST_DELAY.saturating_mul(1 << self.failures.min(10)).min(LONGEST_DELAY).mul_f64(jitter);
        self.failures += 1;
        self.last = Some(now + delay);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(code: u16, message: &str) -> watcher::Error {
        let status = Status::failure(message, "").with_code(code);
        watcher::Error::WatchStartFailed(kube::Error::Api(status.boxed()))
    }

    #[test]
    fn remedies() {
        let cases = [
            (start(422, ""), false, true, Remedy::PagedLists),
            (start(403, ""), false, true, Remedy::PagedLists),
            (start(403, ""), false, false, Remedy::Resume),
            (start(403, ""), true, true, Remedy::Resume),
            (start(410, ""), true, true, Remedy::BeginAnew),
            (start(504, "Too large resource version: 9, current: 3"), true, true, Remedy::BeginAnew),
            (start(504, "timeout"), true, true, Remedy::Resume),
            (start(429, ""), true, true, Remedy::Resume),
            (start(401, ""), true, true, Remedy::Resume),
            (watcher::Error::NoResourceVersion, true, true, Remedy::Resume),
        ];
        for (error, synced, streaming, expected) in cases {
            assert_eq!(remedy(&error, synced, streaming), expected, "{error}");
        }
    }

    #[test]
    fn delays_grow_to_the_cap_and_begin_again() {
        let (mut backoff, mut now) = (Backoff::default(), Instant::now());
        let mut delays = Vec::new();
        for _ in 0..6 {
            let delay = backoff.next(now, 1.0);
            now += delay;
            delays.push(delay.as_millis());
        }
        assert_eq!(delays, [800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(backoff.next(now + HEALTHY + FIRST_DELAY, 0.5), FIRST_DELAY / 2);
    }
}
