//! The records of bulk runs: what was asked, each Site's result, exact counts, and what happened in order.
//!
//! A run's worker holds two locks: the *lease* of the run, under a token of its own and short, and the lock of the
//! *kind*, whose token is the run's id, so that it belongs to the run whoever works on it. Every write goes through a
//! script that compares the lease's token: a worker that lost its lease changes nothing, and the counts are those of
//! the results at every moment.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use redis::Script;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::entries::{millis, read, written};
use super::key_space::{self, RunKeys};
use super::locks::Lock;
use super::{Cache, CacheError};

/// How long a run is remembered after its beginning and after its end.
pub const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// Events of a run that are kept; older ones are dropped first.
const EVENTS: usize = 200_000;
/// Field among the counts: how often the run was taken over.
const ADOPTED: &str = "adopted";

const BEGIN: &str = r"
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
redis.call('SET', KEYS[6], ARGV[3], 'PX', ARGV[4])
redis.call('SET', KEYS[2], ARGV[5])
redis.call('ZREMRANGEBYSCORE', KEYS[7], '-inf', ARGV[8])
redis.call('ZADD', KEYS[7], ARGV[7], ARGV[1])
redis.call('HSET', KEYS[3], 'adopted', 0)
for i = 9, #ARGV, 3 do
  redis.call('HSET', KEYS[4], ARGV[i], ARGV[i + 1])
  redis.call('HINCRBY', KEYS[3], ARGV[i + 2], 1)
end
redis.call('XADD', KEYS[5], '*', 'run', ARGV[5])
for i = 2, 5 do redis.call('PEXPIRE', KEYS[i], ARGV[6]) end
return 1";

const SETTLE: &str = r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
for i = 3, #ARGV, 3 do
  local old = redis.call('HGET', KEYS[3], ARGV[i])
  local was = old and cjson.decode(old).state
  if was ~= ARGV[i + 2] then
    if was then redis.call('HINCRBY', KEYS[2], was, -1) end
    redis.call('HINCRBY', KEYS[2], ARGV[i + 2], 1)
  end
  redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
  redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[2], '*', ARGV[i], ARGV[i + 1])
end
return 1";

const END: &str = r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[2])
redis.call('XADD', KEYS[5], '*', 'run', ARGV[2])
for i = 2, 5 do redis.call('PEXPIRE', KEYS[i], ARGV[3]) end
if redis.call('GET', KEYS[6]) == ARGV[4] then redis.call('DEL', KEYS[6]) end
redis.call('DEL', KEYS[1])
return 1";

/// What a run does.
#[derive(Serialize, Deserialize, ToSchema, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    /// Rewrites the platform's images and has the operator render each Site anew.
    Upgrade,
    /// Deletes pods, which come again.
    Restart,
}

impl RunKind {
    /// Name of the lock: one run of a kind at a time.
    #[must_use]
    pub const fn lock(self) -> &'static str {
        match self {
            Self::Upgrade => "sites-bulk-upgrade",
            Self::Restart => "sites-bulk-restart",
        }
    }

    /// The word in messages.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Upgrade => "upgrade",
            Self::Restart => "restart",
        }
    }
}

/// How a run stands.
#[derive(Serialize, Deserialize, ToSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Somebody works on it, or will.
    Running,
    /// Every Site has its result.
    Done,
    /// Cancelled; the Sites that were written before have their results.
    Cancelled,
    /// Given up: see the message.
    Failed,
}

/// How one Site of a run stands.
#[derive(Serialize, Deserialize, ToSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum SiteState {
    /// Its turn has not come.
    Queued,
    /// Written; the operator has not handled it yet, or the new pods do not run yet.
    Working,
    /// Handled, and the pods run again if they ran before.
    Done,
    /// See the reason.
    Failed,
    /// There was nothing to do: see the reason.
    Skipped,
    /// The run was cancelled before its turn.
    Cancelled,
}

impl SiteState {
    const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Working => "working",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing more happens to the Site.
    #[must_use]
    pub const fn ended(self) -> bool {
        !matches!(self, Self::Queued | Self::Working)
    }
}

/// The result of one Site.
#[derive(Serialize, Deserialize, ToSchema, Clone, Debug, PartialEq, Eq)]
pub struct SiteResult {
    /// How it stands.
    pub state: SiteState,
    /// Why, where the state alone does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Uids of the pods that a restart deletes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<String>,
    /// Its pods ran when an upgrade wrote it: it has ended when the new ones do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ran: bool,
}

/// What was asked, and how it stands.
#[derive(Serialize, Deserialize, ToSchema, Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// The run; of an upgrade also the upgrade request of all its Sites.
    #[schema(value_type = String)]
    pub id: Uuid,
    /// What it does.
    pub kind: RunKind,
    /// Whether Sites are upgraded for which nothing changes, and archived ones.
    pub force: bool,
    /// Who asked for it.
    pub by: String,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    /// How it stands.
    pub state: RunState,
    /// Why it was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How many Sites are in which state: at every moment exactly the number of results.
#[derive(Serialize, Deserialize, ToSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the states say it")]
pub struct RunCounts {
    pub queued: u64,
    pub working: u64,
    pub done: u64,
    pub failed: u64,
    pub skipped: u64,
    pub cancelled: u64,
}

/// A run as it stands.
#[derive(Serialize, Deserialize, ToSchema, Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// What was asked.
    #[serde(flatten)]
    pub record: RunRecord,
    /// Its Sites by state.
    pub counts: RunCounts,
    /// Somebody wants it to end; Sites that are written already are followed.
    pub cancelling: bool,
}

/// What happened.
#[derive(Clone, Debug)]
pub struct RunEvent {
    /// Its place; events behind it are asked for with it.
    pub id: String,
    /// `run`, or the id of a Site.
    pub of: String,
    /// A [`RunRecord`] or a [`SiteResult`], as JSON.
    pub text: String,
}

/// The times of the locks.
#[derive(Clone, Copy, Debug)]
pub struct RunTimes {
    /// End of the kind's lock without a renewal.
    pub lock: Duration,
    /// End of the worker's lease without a renewal.
    pub lease: Duration,
}

/// A run that this process works on. Dropped, another may go on with it.
#[derive(Debug)]
pub struct HeldRun {
    cache: Cache,
    namespace: String,
    keys: RunKeys,
    lease: Lock,
    lock: Lock,
    /// What was asked.
    pub record: RunRecord,
}

impl Cache {
    /// Begins a run: its lock, its record and its Sites, or nothing. `None`: another of its kind is under way.
    pub async fn begin_run(
        &self,
        namespace: &str,
        record: &RunRecord,
        sites: &BTreeMap<String, SiteResult>,
        times: RunTimes,
    ) -> Result<Option<HeldRun>, CacheError> {
        let run = record.id.to_string();
        let keys = RunKeys::new(namespace, &run);
        let lock = key_space::lock(namespace, record.kind.lock());
        let token = Uuid::new_v4().to_string();
        let start = record.started_at.as_millisecond();
        let oldest = start.saturating_sub_unsigned(millis(RETENTION));
        let script = Script::new(BEGIN);
        let mut call = script.prepare_invoke();
        for key in [&lock, &keys.record, &keys.counts, &keys.results, &keys.events, &keys.lease] {
            call.key(key);
        }
        call.key(key_space::runs(namespace));
        call.arg(&run).arg(millis(times.lock)).arg(&token).arg(millis(times.lease));
        call.arg(written(&keys.record, record)?).arg(millis(RETENTION)).arg(start).arg(oldest);
        for (id, site) in sites {
            call.arg(id).arg(written(&keys.results, site)?).arg(site.state.word());
        }
        let sent = Instant::now();
        let is_new: bool = self.script(&call).await?;
        Ok(is_new.then(|| HeldRun {
            cache: self.clone(),
            namespace: namespace.to_owned(),
            lease: Lock::start(self, keys.lease.clone(), token, times.lease, false, sent),
            lock: Lock::start(self, lock, run, times.lock, true, sent),
            keys,
            record: record.clone(),
        }))
    }

    /// Goes on with a run that nobody works on. `None`: somebody does.
    pub async fn adopt_run(
        &self,
        namespace: &str,
        record: &RunRecord,
        times: RunTimes,
    ) -> Result<Option<HeldRun>, CacheError> {
        let run = record.id.to_string();
        let keys = RunKeys::new(namespace, &run);
        let Some(lease) = self.lock(keys.lease.clone(), times.lease).await? else { return Ok(None) };
        // It may have ended between the look and the lease.
        let Some(Run { record, .. }) = self.run_record(namespace, &run).await? else { return Ok(None) };
        if record.state != RunState::Running {
            return Ok(None);
        }
        let lock = key_space::lock(namespace, record.kind.lock());
        let Some(lock) = self.resume_lock(lock, run, times.lock).await? else { return Ok(None) };
        self.run::<i64>(redis::cmd("HINCRBY").arg(&keys.counts).arg(ADOPTED).arg(1)).await?;
        Ok(Some(HeldRun { cache: self.clone(), namespace: namespace.to_owned(), keys, lease, lock, record }))
    }

    /// The ids of the runs that are remembered, newest first.
    pub async fn runs(&self, namespace: &str, most: usize) -> Result<Vec<String>, CacheError> {
        self.run(redis::cmd("ZREVRANGE").arg(key_space::runs(namespace)).arg(0).arg(most.saturating_sub(1))).await
    }

    /// How a run stands.
    pub async fn run_record(&self, namespace: &str, run: &str) -> Result<Option<Run>, CacheError> {
        let keys = RunKeys::new(namespace, run);
        let mut pipe = redis::pipe();
        pipe.cmd("GET").arg(&keys.record).cmd("HGETALL").arg(&keys.counts).cmd("EXISTS").arg(&keys.cancel);
        let (record, counts, cancelling): (Option<String>, BTreeMap<String, u64>, bool) = self.together(&pipe).await?;
        let Some(record) = record else { return Ok(None) };
        let record: RunRecord = read(&keys.record, &record)?;
        let count = |state: SiteState| counts.get(state.word()).copied().unwrap_or_default();
        let counts = RunCounts {
            queued: count(SiteState::Queued),
            working: count(SiteState::Working),
            done: count(SiteState::Done),
            failed: count(SiteState::Failed),
            skipped: count(SiteState::Skipped),
            cancelled: count(SiteState::Cancelled),
        };
        Ok(Some(Run { cancelling: cancelling && record.state == RunState::Running, record, counts }))
    }

    /// The results of a run, by the Site's id.
    pub async fn run_results(&self, namespace: &str, run: &str) -> Result<BTreeMap<String, SiteResult>, CacheError> {
        let key = RunKeys::new(namespace, run).results;
        let texts: BTreeMap<String, String> = self.run(redis::cmd("HGETALL").arg(&key)).await?;
        texts.into_iter().map(|(id, text)| Ok((id, read(&key, &text)?))).collect()
    }

    /// What happened behind a place (`0` for everything), oldest first.
    pub async fn run_events(
        &self,
        namespace: &str,
        run: &str,
        behind: &str,
        most: usize,
    ) -> Result<Vec<RunEvent>, CacheError> {
        let key = RunKeys::new(namespace, run).events;
        let found: Vec<(String, Vec<String>)> =
            self.run(redis::cmd("XRANGE").arg(key).arg(format!("({behind}")).arg("+").arg("COUNT").arg(most)).await?;
        let event = |(id, fields): (String, Vec<String>)| {
            let mut fields = fields.into_iter();
            Some(RunEvent { id, of: fields.next()?, text: fields.next()? })
        };
        Ok(found.into_iter().filter_map(event).collect())
    }

    /// Asks a run to end.
    pub async fn cancel_run(&self, namespace: &str, run: &str, by: &str) -> Result<(), CacheError> {
        let key = RunKeys::new(namespace, run).cancel;
        self.run(redis::cmd("SET").arg(key).arg(by).arg("PX").arg(millis(RETENTION))).await
    }
}

impl HeldRun {
    /// Whether this process may write for the run: both locks are surely held.
    #[must_use]
    pub fn held(&self) -> bool {
        self.lease.held() && self.lock.held()
    }

    /// The Sites and their results.
    pub async fn results(&self) -> Result<BTreeMap<String, SiteResult>, CacheError> {
        self.cache.run_results(&self.namespace, &self.record.id.to_string()).await
    }

    /// How often it was taken over.
    pub async fn adoptions(&self) -> Result<u64, CacheError> {
        self.cache.run(redis::cmd("HGET").arg(&self.keys.counts).arg(ADOPTED)).await
    }

    /// Whether somebody wants it to end.
    pub async fn cancelled(&self) -> Result<bool, CacheError> {
        self.cache.run(redis::cmd("EXISTS").arg(&self.keys.cancel)).await
    }

    /// Sites have these results. `false`: the run is not this process's any more, and nothing was written.
    pub async fn settle(&self, sites: &[(String, SiteResult)]) -> Result<bool, CacheError> {
        if sites.is_empty() {
            return Ok(true);
        }
        let script = Script::new(SETTLE);
        let mut call = script.prepare_invoke();
        for key in [&self.keys.lease, &self.keys.counts, &self.keys.results, &self.keys.events] {
            call.key(key);
        }
        call.arg(self.lease.token()).arg(EVENTS);
        for (id, site) in sites {
            call.arg(id).arg(written(&self.keys.results, site)?).arg(site.state.word());
        }
        self.cache.script(&call).await
    }

    /// The run has ended: its record says so and both locks are free, at once. `false`: it was not this process's.
    pub async fn end(self, record: &RunRecord) -> Result<bool, CacheError> {
        let lock = key_space::lock(&self.namespace, record.kind.lock());
        let script = Script::new(END);
        let mut call = script.prepare_invoke();
        let RunKeys { record: key, counts, results, events, lease, .. } = &self.keys;
        for key in [lease, key, counts, results, events, &lock] {
            call.key(key);
        }
        call.arg(self.lease.token()).arg(written(key, record)?).arg(millis(RETENTION)).arg(record.id.to_string());
        let ended: bool = self.cache.script(&call).await?;
        if ended {
            self.lease.given_back();
            self.lock.given_back();
        }
        Ok(ended)
    }
}
