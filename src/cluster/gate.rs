//! When the next request may leave: what the server asked for with Retry-After, and the pace of watches.
//!
//! Pure but for a lock: the time comes in as an argument. Must not sleep; `transport` does.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use jiff::Timestamp;

/// Longest wait that an answer may impose.
const LONGEST: Duration = Duration::from_mins(10);
/// Wait after a 429 that names none; what client-go does.
const UNNAMED: Duration = Duration::from_secs(1);
/// Shortest time between two beginnings of one watch: a server that accepts and closes at once would
/// otherwise be asked in a tight loop, because an orderly end is not an error.
const WATCH_PACE: Duration = Duration::from_secs(1);

/// The gate of one API server.
#[derive(Debug, Default)]
pub(super) struct Gate {
    closed_until: Mutex<Option<Instant>>,
    watches: Mutex<BTreeMap<String, Instant>>,
}

impl Gate {
    /// How long every request has to wait, if at all.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        let closed = self.closed_until.lock().unwrap_or_else(PoisonError::into_inner);
        closed.and_then(|until| until.checked_duration_since(now)).filter(|wait| !wait.is_zero())
    }

    /// Takes note of an answer; only ever lengthens the wait.
    pub(super) fn learn(&self, status: StatusCode, wait: Option<Duration>, now: Instant) {
        let wait = match (status, wait) {
            (StatusCode::TOO_MANY_REQUESTS, wait) => wait.unwrap_or(UNNAMED),
            (StatusCode::SERVICE_UNAVAILABLE, Some(wait)) => wait,
            _ => return,
        };
        let until = now + wait.min(LONGEST);
        let mut closed = self.closed_until.lock().unwrap_or_else(PoisonError::into_inner);
        if closed.is_none_or(|before| before < until) {
            *closed = Some(until);
        }
    }

    /// How long the watch `key` has to wait since it last began; books the beginning.
    pub(super) fn pace_watch(&self, key: String, now: Instant) -> Option<Duration> {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = watches.get(&key).map_or(now, |last| now.max(*last + WATCH_PACE));
        watches.insert(key, begin);
        begin.checked_duration_since(now).filter(|wait| !wait.is_zero())
    }
}

/// Retry-After as seconds or as a date.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds).min(LONGEST));
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn header(text: &str) -> HeaderMap {
        HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_str(text).unwrap())])
    }

    #[test]
    fn retry_after_in_both_forms() {
        let now: Timestamp = "2026-11-29T08:00:00Z".parse().unwrap();
        let cases = [
            ("2", Some(2)),
            (" 0 ", Some(0)),
            ("999999999", Some(600)),
            ("Sun, 29 Nov 2026 08:00:30 GMT", Some(30)),
            ("Sun, 29 Nov 2026 07:00:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ];
        for (text, seconds) in cases {
            assert_eq!(retry_after(&header(text), now), seconds.map(Duration::from_secs), "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn the_gate_keeps_the_longest_wait() {
        let (gate, now) = (Gate::default(), Instant::now());
        let seconds = Duration::from_secs;
        gate.learn(StatusCode::SERVICE_UNAVAILABLE, None, now);
        gate.learn(StatusCode::OK, Some(seconds(9)), now);
        assert_eq!(gate.wait(now), None);
        gate.learn(StatusCode::TOO_MANY_REQUESTS, None, now);
        assert_eq!(gate.wait(now), Some(seconds(1)));
        gate.learn(StatusCode::SERVICE_UNAVAILABLE, Some(seconds(5)), now);
        gate.learn(StatusCode::TOO_MANY_REQUESTS, Some(seconds(2)), now);
        assert_eq!(gate.wait(now), Some(seconds(5)));
        assert_eq!(gate.wait(now + seconds(5)), None);
    }

    #[test]
    fn a_watch_begins_once_a_second() {
        let (gate, now) = (Gate::default(), Instant::now());
        assert_eq!(gate.pace_watch("pods".to_owned(), now), None);
        assert_eq!(gate.pace_watch("pods".to_owned(), now), Some(Duration::from_secs(1)));
        assert_eq!(gate.pace_watch("sites".to_owned(), now), None);
        assert_eq!(gate.pace_watch("pods".to_owned(), now + Duration::from_secs(9)), None);
    }
}
