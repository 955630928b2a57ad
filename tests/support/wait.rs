//! Waiting for the world to become as it should be. The only place where a test pauses.

use std::fmt::Display;
use std::future::Future;
use std::time::{Duration, Instant};

/// Enough for anything that takes seconds on an idle machine, with other tests beside it on a busy one.
pub const SOON: Duration = Duration::from_secs(60);
/// Enough for what takes a minute on an idle machine: a pod that really runs, a bulk run.
pub const LONG: Duration = Duration::from_secs(240);

/// What a look at the world may say: it is so (perhaps with a value), or not yet (perhaps with a reason).
pub trait Look {
    type Value;
    fn settle(self) -> Result<Self::Value, String>;
}

impl Look for bool {
    type Value = ();
    fn settle(self) -> Result<(), String> {
        self.then_some(()).ok_or_else(|| "it was false".into())
    }
}

impl<T> Look for Option<T> {
    type Value = T;
    fn settle(self) -> Result<T, String> {
        self.ok_or_else(|| "there was none".into())
    }
}

impl<T, E: Display> Look for Result<T, E> {
    type Value = T;
    fn settle(self) -> Result<T, String> {
        self.map_err(|reason| format!("{reason:#}"))
    }
}

/// Looks again and again (after 50 ms, later after up to 500 ms) until the look is good; fails the test with the last
/// reason when `deadline` is over.
#[track_caller]
pub fn eventually<L, F, T>(what: &str, deadline: Duration, mut look: F) -> impl Future<Output = L::Value>
where
    L: Look,
    F: FnMut() -> T,
    T: Future<Output = L>,
{
    let place = std::panic::Location::caller();
    async move {
        let begun = Instant::now();
        let mut pause = Duration::from_millis(50);
        loop {
            match look().await.settle() {
                Ok(value) => return value,
                Err(reason) if begun.elapsed() > deadline => {
                    panic!("{place}: not within {deadline:?}: {what}; at last: {reason}")
                }
                Err(_) => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 3 / 2).min(Duration::from_millis(500));
        }
    }
}
