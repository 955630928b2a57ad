//! Locks: one of many does a thing, and knows when it may not any more.
//!
//! A lock is a key with an end whose value is its holder's token. It is renewed while its holder works, given back by
//! a script that compares the token, and counted as held only until the end of the last renewal *by the holder's own
//! monotonic clock*, measured from before the renewal was sent: who cannot reach Redis stops in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redis::Script;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::entries::millis;
use super::{Cache, CacheError};

/// Renewals within one time to live.
const RENEWALS: u32 = 3;

/// Extends the lock, or takes it again if it has ended and nobody else took it meanwhile.
const RENEW: &str = r"
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 1 end
if not holder and ARGV[3] == '1' then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1 end
return 0";

/// Gives the lock back if it is still the holder's.
const RELEASE: &str = r"
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0";

/// A lock that is held. Dropping it gives it back, after a panic too, unless it belongs to a work that others go on
/// with.
#[derive(Debug)]
pub struct Lock {
    shared: Arc<Shared>,
    renewal: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    cache: Cache,
    key: String,
    token: String,
    ttl: Duration,
    /// It belongs to a work that outlives its worker: taken again when it has ended, kept when it is dropped.
    outlives: bool,
    began: Instant,
    /// Milliseconds after `began` until which it is held; 0: lost.
    until: AtomicU64,
}

impl Cache {
    /// Takes a lock under a token of its own; `None` while somebody else has it.
    pub async fn lock(&self, key: String, ttl: Duration) -> Result<Option<Lock>, CacheError> {
        let token = Uuid::new_v4().to_string();
        let sent = Instant::now();
        let taken: Option<String> = self
            .run(redis::cmd("SET").arg(&key).arg(&token).arg("NX").arg("PX").arg(millis(ttl)))
            .await?;
        Ok(taken.map(|_| Lock::start(self, key, token, ttl, false, sent)))
    }

    /// Goes on with a lock that was taken under a known token, or whose end has come without a new holder. `None`:
    /// somebody else has it.
    pub async fn resume_lock(&self, key: String, token: String, ttl: Duration) -> Result<Option<Lock>, CacheError> {
        let sent = Instant::now();
        let lock = Shared { cache: self.clone(), key, token, ttl, outlives: true, began: sent, until: AtomicU64::new(0) };
        let held = lock.renew().await?;
        Ok(held.then(|| Lock::start(self, lock.key, lock.token, ttl, true, sent)))
    }

    /// Who has a lock.
    pub async fn holder(&self, key: &str) -> Result<Option<String>, CacheError> {
        self.run(redis::cmd("GET").arg(key)).await
    }
}

impl Lock {
    /// A lock that was taken by a command sent at `sent`.
    pub(super) fn start(
        cache: &Cache,
        key: String,
        token: String,
        ttl: Duration,
        outlives: bool,
        sent: Instant,
    ) -> Self {
        let until = AtomicU64::new(millis(ttl));
        let shared = Arc::new(Shared { cache: cache.clone(), key, token, ttl, outlives, began: sent, until });
        let renewal = tokio::spawn({
            let shared = shared.clone();
            async move {
                loop {
                    tokio::time::sleep(shared.ttl / RENEWALS).await;
                    match shared.renew().await {
                        Ok(true) => {}
                        Ok(false) => return,
                        // It stays held until its end; the next renewal may succeed.
                        Err(error) => tracing::warn!(lock = shared.key, %error, "a lock could not be renewed"),
                    }
                }
            }
        });
        Self { shared, renewal }
    }

    /// Whether it is surely still held.
    #[must_use]
    pub fn held(&self) -> bool {
        let until = self.shared.until.load(Ordering::Acquire);
        u128::from(until) > self.shared.began.elapsed().as_millis()
    }

    /// What proves it to the scripts that write under it.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.shared.token
    }

    /// A script has given it back.
    pub(super) fn given_back(self) {
        self.shared.until.store(0, Ordering::Release);
    }

    /// Gives it back, if it is still held.
    pub async fn release(self) -> Result<(), CacheError> {
        self.renewal.abort();
        self.shared.release().await
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.renewal.abort();
        if self.shared.outlives || self.shared.until.load(Ordering::Acquire) == 0 {
            return;
        }
        let shared = self.shared.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { shared.release().await });
        }
    }
}

impl Shared {
    async fn renew(&self) -> Result<bool, CacheError> {
        let sent = self.began.elapsed();
        let held: bool = self
            .cache
            .script(
                Script::new(RENEW).key(&self.key).arg(&self.token).arg(millis(self.ttl)).arg(u8::from(self.outlives)),
            )
            .await?;
        let until = if held { millis(sent + self.ttl) } else { 0 };
        self.until.store(until, Ordering::Release);
        Ok(held)
    }

    async fn release(&self) -> Result<(), CacheError> {
        if self.until.swap(0, Ordering::AcqRel) == 0 {
            return Ok(());
        }
        self.cache.script::<i64>(Script::new(RELEASE).key(&self.key).arg(&self.token)).await.map(drop)
    }
}
