//! Single values with an end: signed-out sessions, what a provider said, reports, probes.
//!
//! A read that fails is told apart from nothing only where the caller can do something about it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Cache, CacheError, key_space};

/// Milliseconds of a time to live, at least one: Redis refuses 0.
pub(super) fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).clamp(1, 1 << 53)
}

/// A value as Redis keeps it.
pub(super) fn written<T: Serialize>(key: &str, value: &T) -> Result<String, CacheError> {
    serde_json::to_string(value).map_err(|_| CacheError::Unreadable(key.to_owned()))
}

/// A value as Redis kept it.
pub(super) fn read<T: DeserializeOwned>(key: &str, text: &str) -> Result<T, CacheError> {
    serde_json::from_str(text).map_err(|_| CacheError::Unreadable(key.to_owned()))
}

impl Cache {
    /// Signs a session out for as long as its cookie could live.
    pub async fn revoke(&self, namespace: &str, session: &str, ttl: Duration) -> Result<(), CacheError> {
        self.run(
            redis::cmd("SET")
                .arg(key_space::revocation(namespace, session))
                .arg(1)
                .arg("PX")
                .arg(millis(ttl)),
        )
        .await
    }

    /// Whether a session was signed out. Without an answer it was not: a lost Redis logs nobody out.
    pub async fn revoked(&self, namespace: &str, session: &str) -> bool {
        let known = self.run::<bool>(redis::cmd("EXISTS").arg(key_space::revocation(namespace, session))).await;
        known.unwrap_or(false)
    }

    /// What a provider said of itself, if it is remembered.
    pub async fn discovery(&self, issuer: &str) -> Option<String> {
        self.run(redis::cmd("GET").arg(key_space::discovery(issuer))).await.ok()?
    }

    /// Remembers what a provider said of itself.
    pub async fn keep_discovery(&self, issuer: &str, text: &str, ttl: Duration) {
        let key = key_space::discovery(issuer);
        // Without Redis the provider is asked again.
        let _ = self.run::<()>(redis::cmd("SET").arg(key).arg(text).arg("PX").arg(millis(ttl))).await;
    }

    /// Asks for a report: its record is kept, its place in the queue is the last.
    pub async fn ask_report<T: Serialize>(
        &self,
        namespace: &str,
        report: &str,
        record: &T,
        at: i64,
        ttl: Duration,
    ) -> Result<(), CacheError> {
        let key = key_space::report(namespace, report);
        let index = key_space::reports(namespace);
        let oldest = at.saturating_sub(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        let mut pipe = redis::pipe();
        pipe.atomic();
        pipe.cmd("SET").arg(&key).arg(written(&key, record)?).arg("PX").arg(millis(ttl)).ignore();
        pipe.cmd("ZREMRANGEBYSCORE").arg(&index).arg("-inf").arg(oldest).ignore();
        pipe.cmd("ZADD").arg(&index).arg(at).arg(report).ignore();
        pipe.cmd("RPUSH").arg(key_space::report_queue(namespace)).arg(report).ignore();
        self.together(&pipe).await
    }

    /// The report whose turn it is.
    pub async fn next_report(&self, namespace: &str) -> Result<Option<String>, CacheError> {
        self.run(redis::cmd("LINDEX").arg(key_space::report_queue(namespace)).arg(0)).await
    }

    /// A report leaves the queue.
    pub async fn end_report(&self, namespace: &str, report: &str) -> Result<(), CacheError> {
        self.run(redis::cmd("LREM").arg(key_space::report_queue(namespace)).arg(1).arg(report)).await
    }

    /// Keeps a report's record, and its rows if there are any.
    pub async fn keep_report<T: Serialize, R: Serialize>(
        &self,
        namespace: &str,
        report: &str,
        record: &T,
        rows: Option<&R>,
        ttl: Duration,
    ) -> Result<(), CacheError> {
        let (key, rows_key) = (key_space::report(namespace, report), key_space::report_rows(namespace, report));
        let mut pipe = redis::pipe();
        pipe.atomic();
        pipe.cmd("SET").arg(&key).arg(written(&key, record)?).arg("PX").arg(millis(ttl)).ignore();
        if let Some(rows) = rows {
            pipe.cmd("SET").arg(&rows_key).arg(written(&rows_key, rows)?).arg("PX").arg(millis(ttl)).ignore();
        }
        self.together(&pipe).await
    }

    /// The record of a report.
    pub async fn report<T: DeserializeOwned>(&self, namespace: &str, report: &str) -> Result<Option<T>, CacheError> {
        self.kept(&key_space::report(namespace, report)).await
    }

    /// What a report found.
    pub async fn report_rows<T: DeserializeOwned>(
        &self,
        namespace: &str,
        report: &str,
    ) -> Result<Option<T>, CacheError> {
        self.kept(&key_space::report_rows(namespace, report)).await
    }

    /// The ids of the reports that are remembered, newest first.
    pub async fn reports(&self, namespace: &str, most: usize) -> Result<Vec<String>, CacheError> {
        self.run(redis::cmd("ZREVRANGE").arg(key_space::reports(namespace)).arg(0).arg(most.saturating_sub(1))).await
    }

    /// Keeps what probes said, by the Site's id.
    pub async fn keep_probes<T: Serialize>(
        &self,
        namespace: &str,
        probes: &BTreeMap<String, T>,
        ttl: Duration,
    ) -> Result<(), CacheError> {
        if probes.is_empty() {
            return Ok(());
        }
        let key = key_space::probes(namespace);
        let mut set = redis::cmd("HSET");
        set.arg(&key);
        for (id, probe) in probes {
            set.arg(id).arg(written(&key, probe)?);
        }
        let mut pipe = redis::pipe();
        pipe.atomic().add_command(set).ignore();
        pipe.cmd("PEXPIRE").arg(&key).arg(millis(ttl)).ignore();
        self.together(&pipe).await
    }

    /// What the last probes said.
    pub async fn probes<T: DeserializeOwned>(&self, namespace: &str) -> Result<BTreeMap<String, T>, CacheError> {
        let key = key_space::probes(namespace);
        let texts: BTreeMap<String, String> = self.run(redis::cmd("HGETALL").arg(&key)).await?;
        texts.into_iter().map(|(id, text)| Ok((id, read(&key, &text)?))).collect()
    }

    async fn kept<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, CacheError> {
        let text: Option<String> = self.run(redis::cmd("GET").arg(key)).await?;
        text.map(|text| read(key, &text)).transpose()
    }
}
