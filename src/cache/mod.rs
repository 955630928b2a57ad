//! The shared cache: Redis, or none.
//!
//! The only room that may name `redis`. Owns the connection and its time limits; a cache that is down is said
//! once and fails no read of a caller. What cannot be done without it (locks, runs, reports) says so.
//!
//! | module | owns |
//! |---|---|
//! | [`key_space`] | the name of every key |
//! | [`entries`] | single values: revocations, what a provider said, reports, probes |
//! | [`locks`] | that one of many does a thing |
//! | [`runs`] | the records of bulk runs |

pub mod entries;
pub mod key_space;
pub mod locks;
pub mod runs;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::FromRedisValue;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use thiserror::Error;

/// Time for a caller to wait, connecting included.
const LIMIT: Duration = Duration::from_secs(1);
/// Time for one command.
const RESPONSE: Duration = Duration::from_secs(1);
/// Time for one connection.
const CONNECT: Duration = Duration::from_secs(2);
/// Longest wait between two connections.
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// Attempts of a connection within one command: a caller waits for no more.
const ATTEMPTS: usize = 1;

/// Why the cache did not do it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CacheError {
    /// The address is malformed. It is not repeated here: it may hold a password.
    #[error("redis.url is no redis:// or rediss:// address")]
    Address,
    /// There is none.
    #[error("redis.url is not set, and this needs Redis")]
    Off,
    /// It does not answer, or refuses.
    #[error("Redis is down ({0}), and this needs it: try again in a minute")]
    Down(String),
    /// What it holds is not what we wrote: a key was changed by somebody else, or by a later release.
    #[error("what Redis holds under {0} cannot be read")]
    Unreadable(String),
}

/// A handle on the cache; cheap to clone.
#[derive(Clone)]
pub struct Cache(Option<Redis>);

#[derive(Clone)]
struct Redis {
    connection: ConnectionManager,
    down: Arc<AtomicBool>,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Cache(redis)" } else { "Cache(none)" })
    }
}

impl Cache {
    /// No cache: every method does nothing.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    /// The Redis at `url`. Connects with the first command, so a Redis that is down stops no start. Must be
    /// called inside the runtime.
    pub fn redis(url: &str) -> Result<Self, CacheError> {
        let client = redis::Client::open(url).map_err(|_| CacheError::Address)?;
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(RESPONSE))
            .set_connection_timeout(Some(CONNECT))
            .set_number_of_retries(ATTEMPTS)
            .set_max_delay(LONGEST_DELAY);
        let connection = ConnectionManager::new_lazy_with_config(client, config).map_err(|_| CacheError::Address)?;
        Ok(Self(Some(Redis { connection, down: Arc::default() })))
    }

    /// Forgets what is cached about one Site: one DEL of a fixed list. Takes a second at most.
    pub async fn clear_site(&self, namespace: &str, id: &str) {
        // Without an answer the copies grow old by themselves; that it is down was said.
        let _ = self.run::<()>(redis::cmd("DEL").arg(&key_space::of_site(namespace, id)[..])).await;
    }

    /// Whether there is a Redis at all.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// One command. Takes a second at most.
    async fn run<T: FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, CacheError> {
        self.ask(|mut connection| async move { command.query_async(&mut connection).await }).await
    }

    /// Several commands as one.
    async fn together<T: FromRedisValue>(&self, pipe: &redis::Pipeline) -> Result<T, CacheError> {
        self.ask(|mut connection| async move { pipe.query_async(&mut connection).await }).await
    }

    /// A script: atomic.
    async fn script<T: FromRedisValue>(&self, script: &redis::ScriptInvocation<'_>) -> Result<T, CacheError> {
        self.ask(|mut connection| async move { script.invoke_async(&mut connection).await }).await
    }

    async fn ask<T, F: Future<Output = redis::RedisResult<T>>>(
        &self,
        question: impl FnOnce(ConnectionManager) -> F,
    ) -> Result<T, CacheError> {
        let redis = self.0.as_ref().ok_or(CacheError::Off)?;
        let answer = match tokio::time::timeout(LIMIT, question(redis.connection.clone())).await {
            Ok(Ok(answer)) => Ok(answer),
            // The category alone: the text may hold what was sent.
            Ok(Err(error)) => Err(error.category().to_owned()),
            Err(_) => Err("no answer".to_owned()),
        };
        redis.note(answer.as_ref().err());
        answer.map_err(CacheError::Down)
    }
}

impl Redis {
    /// Says each change between up and down once.
    fn note(&self, failure: Option<&String>) {
        let down = failure.is_some();
        if self.down.swap(down, Ordering::Relaxed) == down {
            return;
        }
        if let Some(reason) = failure {
            tracing::warn!(reason, "the cache is down, pages may be stale for a while");
        } else {
            tracing::info!("the cache works again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cache_that_is_down_fails_nobody() {
        Cache::none().clear_site("ns", "demo").await;
        let cache = Cache::redis("redis://:s3cret@127.0.0.1:1/").unwrap();
        cache.clear_site("ns", "demo").await;
        assert!(!format!("{cache:?}").contains("s3cret"));
        assert!(cache.0.is_some_and(|redis| redis.down.load(Ordering::Relaxed)));
    }

    #[test]
    fn a_wrong_address_is_not_repeated() {
        let error = Cache::redis("http://s3cret@x").unwrap_err();
        assert!(!error.to_string().contains("s3cret"));
    }
}
