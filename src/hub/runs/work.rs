//! One run from its first Site to its last.
//!
//! A round follows the Sites that are written, then begins as many as the pace and the operator's backlog allow. All
//! it knows it can read again: from the run's results and from the Sites. So a worker may die at any moment.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use jiff::{SignedDuration, Timestamp};
use thiserror::Error;
use tracing::{info, warn};

use super::super::catalog::Catalog;
use super::super::catalog::query::{Query, Viewer};
use super::plan::result;
use super::{judge, step};
use crate::cache::runs::{HeldRun, RunKind, RunRecord, RunState, RunTimes, SiteResult, SiteState};
use crate::cache::{Cache, CacheError};
use crate::cluster::Cluster;
use crate::domain::application::Catalog as Images;
use crate::domain::site::Site;
use crate::settings::types::Bulk;

/// Time between two rounds while there is nothing to begin.
const ROUND: Duration = Duration::from_millis(500);
/// Sites that are begun at the same time.
const AT_ONCE: usize = 8;
/// Longest rest of a place; where Sites take longer, they wait for other things than the cluster's attention.
const LONGEST_REST: SignedDuration = SignedDuration::from_secs(5);
/// Times that a run is taken over before it is given up: what kills a worker each time would do so for ever.
const MOST_ADOPTIONS: u64 = 20;

/// What every worker needs.
#[derive(Debug)]
pub struct Parts {
    pub cluster: Cluster,
    pub namespace: Arc<str>,
    pub catalog: Catalog,
    pub cache: Cache,
    pub bulk: Bulk,
    pub times: RunTimes,
    pub images: Arc<Images>,
}

/// Why a worker leaves its run to others.
#[derive(Debug, Error)]
pub enum WorkError {
    /// A lock has ended, or belongs to somebody else.
    #[error("the run is not this process's any more")]
    Lost,
    /// Redis does not answer.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

struct Worker {
    parts: Arc<Parts>,
    run: Arc<HeldRun>,
    results: BTreeMap<String, SiteResult>,
    /// When the last Site of the run was finished.
    progress: Timestamp,
    /// Places that are still to rest, and until when.
    resting: Vec<Timestamp>,
    /// How often pods may be looked at.
    looks: DefaultDirectRateLimiter,
    /// The Site whose pods were looked at last.
    looked: String,
}

/// How the work on a Site has ended, and why.
type Verdict = (SiteState, Option<String>);

/// Works on a run until it ends or is lost.
pub async fn work(parts: Arc<Parts>, run: HeldRun) -> Result<(), WorkError> {
    let run = Arc::new(run);
    let mut worker = Worker {
        results: run.results().await?,
        progress: Timestamp::now(),
        resting: Vec::new(),
        looks: RateLimiter::direct(rate(&parts.bulk)),
        looked: String::new(),
        parts: parts.clone(),
        run: run.clone(),
    };
    let given_up = run.adoptions().await? > MOST_ADOPTIONS;
    let pace = RateLimiter::direct(rate(&parts.bulk).allow_burst(NonZeroU32::MIN));
    let message = if given_up { Some(worker.give_up().await?) } else { worker.rounds(&pace).await? };
    let cancelled = worker.results.values().any(|site| site.state == SiteState::Cancelled);
    let state = match (&message, cancelled) {
        (Some(_), _) => RunState::Failed,
        (None, true) => RunState::Cancelled,
        (None, false) => RunState::Done,
    };
    let record = RunRecord { state, message, ended_at: Some(Timestamp::now()), ..run.record.clone() };
    let failed = worker.results.values().filter(|site| site.state == SiteState::Failed).count();
    info!(run = %record.id, state = ?state, sites = worker.results.len(), failed, "a bulk run ends");
    drop(worker);
    let run = Arc::into_inner(run).ok_or(WorkError::Lost)?;
    if run.end(&record).await? { Ok(()) } else { Err(WorkError::Lost) }
}

/// `hub.bulk.rate`, as a quota.
fn rate(bulk: &Bulk) -> Quota {
    Quota::per_second(NonZeroU32::new(bulk.rate).unwrap_or(NonZeroU32::MIN))
}

impl Worker {
    /// Until every Site has its result. The message says why the run was given up.
    async fn rounds(&mut self, pace: &DefaultDirectRateLimiter) -> Result<Option<String>, WorkError> {
        loop {
            let cancelled = self.patiently(|run| async move { run.cancelled().await }).await?;
            if cancelled {
                let queued = self.queued(usize::MAX);
                let now = Timestamp::now();
                let ended: Vec<_> =
                    queued.into_iter().map(|id| (id, result(SiteState::Cancelled, None, now))).collect();
                self.settle(&ended).await?;
            }
            let silent = self.follow().await?;
            if silent && self.results.values().any(|site| site.state == SiteState::Queued) {
                return self.give_up().await.map(Some);
            }
            if self.results.values().all(|site| site.state.ended()) {
                return Ok(None);
            }
            let room = self.room();
            let turn = self.queued(room);
            if turn.is_empty() {
                tokio::time::sleep(ROUND).await;
                continue;
            }
            self.begin(turn, pace).await?;
        }
    }

    /// The Sites whose turn is next.
    fn queued(&self, most: usize) -> Vec<String> {
        let queued = self.results.iter().filter(|(_, site)| site.state == SiteState::Queued);
        queued.map(|(id, _)| id.clone()).take(most).collect()
    }

    /// How many Sites may be begun before the next look.
    fn room(&mut self) -> usize {
        let now = Timestamp::now();
        self.resting.retain(|until| *until > now);
        let Bulk { rate, backlog, unavailable_percent, .. } = self.parts.bulk;
        let share = (self.results.len() * usize::from(unavailable_percent) / 100).max(1);
        let free = share.saturating_sub(self.working().count() + self.resting.len());
        if free == 0 {
            // Most rounds: every Site need not be looked at for that.
            return 0;
        }
        // What has its result is behind for reasons that the run knows.
        let ours = |id: &str| self.results.get(id).is_none_or(|site| !site.state.ended());
        let all = self.parts.catalog.read().find(&Viewer::Everything, &Query::default());
        let behind: BTreeSet<&str> = all
            .iter()
            .filter(|entry| ours(&entry.site.spec.id) && judge::lags(&entry.site))
            .map(|entry| entry.site.spec.id.as_str())
            .collect();
        // Those that were just written may not be seen yet.
        let unseen = self.working().filter(|(id, site)| !behind.contains(id.as_str()) && !self.is_handled(id, site));
        backlog
            .saturating_sub(behind.len() + unseen.count())
            .min(free)
            .min(usize::try_from(rate).unwrap_or(usize::MAX).div_ceil(2))
    }

    /// Whether the operator has done its part.
    fn is_handled(&self, id: &str, site: &SiteResult) -> bool {
        let entry = self.parts.catalog.read().get(id);
        let seen = entry.as_ref().map(|entry| &entry.site);
        // A restart asks nothing of it.
        self.run.record.kind == RunKind::Restart
            || judge::upgraded(seen, &self.run.record.id.to_string(), site.at).is_some()
    }

    fn working(&self) -> impl Iterator<Item = (&String, &SiteResult)> {
        self.results.iter().filter(|(_, site)| site.state == SiteState::Working)
    }

    /// Begins Sites at the run's pace. A Site whose work panics has failed; the run goes on.
    async fn begin(&mut self, turn: Vec<String>, pace: &DefaultDirectRateLimiter) -> Result<(), WorkError> {
        let (parts, run) = (self.parts.clone(), self.run.clone());
        let mut begun = futures::stream::iter(turn)
            .map(|id| {
                let (parts, run) = (parts.clone(), run.clone());
                async move {
                    pace.until_ready().await;
                    let site = id.clone();
                    let site = contained(async move { step::first(&parts, &run, &site).await }).await;
                    (id, site)
                }
            })
            .buffer_unordered(AT_ONCE);
        while let Some((id, site)) = begun.next().await {
            // Left to others.
            if site.state == SiteState::Queued {
                return Err(WorkError::Lost);
            }
            self.settle(&[(id, site)]).await?;
        }
        Ok(())
    }

    /// Looks at the Sites that are written. Whether the operator does not answer at all.
    async fn follow(&mut self) -> Result<bool, WorkError> {
        let now = Timestamp::now();
        let patience = self.parts.bulk.answer_timeout.get();
        let mut working: Vec<(String, SiteResult)> =
            self.working().map(|(id, site)| (id.clone(), site.clone())).collect();
        // Where the last round ended: each is looked at in its turn.
        let next = working.partition_point(|(id, _)| *id <= self.looked);
        working.rotate_left(next);
        let (mut ended, mut silent) = (Vec::new(), false);
        for (id, site) in working {
            let entry = self.parts.catalog.read().get(&id);
            let seen = entry.as_ref().map(|entry| &entry.site);
            let verdict = self.verdict(&id, &site, seen).await;
            if let Some((state, reason)) = verdict {
                self.progress = now;
                if state == SiteState::Done {
                    self.resting.push(now + rest(site.at, now));
                }
                ended.push((id, result(state, reason, now)));
            } else if judge::is_overdue(&site, now, patience) {
                silent |= judge::is_overdue(&SiteResult { at: self.progress, ..site }, now, patience);
                ended.push((id, result(SiteState::Failed, Some(judge::overdue(seen)), now)));
            }
        }
        self.settle(&ended).await?;
        Ok(silent)
    }

    /// How the work on a Site has ended; nothing while it is under way, or while there is no turn for a look at its pods.
    async fn verdict(&mut self, id: &str, result: &SiteResult, seen: Option<&Site>) -> Option<Verdict> {
        let Some(site) = seen else { return Some((SiteState::Skipped, Some("it was deleted meanwhile".to_owned()))) };
        let kind = self.run.record.kind;
        let looked = match kind {
            RunKind::Upgrade => {
                let verdict = judge::upgraded(seen, &self.run.record.id.to_string(), result.at)?;
                if verdict.0 != SiteState::Done || !result.ran {
                    return Some(verdict);
                }
                // While the status says that no pod runs there is nothing to look at.
                if (site.enabled() && !judge::runs(site)) || !self.may_look(id) {
                    return None;
                }
                step::runs_again(&self.parts, site).await.map(|again| again.then_some(verdict))
            }
            // Its pods do not come again.
            RunKind::Restart if !site.enabled() => {
                return Some((SiteState::Skipped, Some("it was archived meanwhile".to_owned())));
            }
            RunKind::Restart if !self.may_look(id) => return None,
            RunKind::Restart => step::restarted(&self.parts, &self.run, id, &result.pods).await,
        };
        looked.unwrap_or_else(|error| {
            warn!(site = id, %error, "the pods of a Site could not be listed");
            None
        })
    }

    /// Whether it is a Site's turn to have its pods looked at.
    fn may_look(&mut self, id: &str) -> bool {
        let may = self.looks.check().is_ok();
        if may {
            id.clone_into(&mut self.looked);
        }
        may
    }

    /// Ends what has not begun: nobody answers.
    async fn give_up(&mut self) -> Result<String, WorkError> {
        let message = "given up: no Site was finished for too long; see that the operator runs and that upgraded Sites \
                       become Running, then begin another run";
        let now = Timestamp::now();
        let open = self.results.iter().filter(|(_, site)| !site.state.ended());
        let failed = |(id, _): (&String, _)| (id.clone(), result(SiteState::Failed, Some(message.to_owned()), now));
        let open: Vec<_> = open.map(failed).collect();
        self.settle(&open).await?;
        Ok(message.to_owned())
    }

    async fn settle(&mut self, sites: &[(String, SiteResult)]) -> Result<(), WorkError> {
        if !self.patiently(|run| async move { run.settle(sites).await }).await? {
            return Err(WorkError::Lost);
        }
        self.results.extend(sites.iter().cloned());
        Ok(())
    }

    /// Asks Redis until it answers or the run is lost.
    async fn patiently<T, F: Future<Output = Result<T, CacheError>>>(
        &self,
        question: impl Fn(Arc<HeldRun>) -> F,
    ) -> Result<T, WorkError> {
        loop {
            match question(self.run.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) if !self.run.held() => return Err(error.into()),
                Err(_) => tokio::time::sleep(ROUND / 2).await,
            }
            if !self.run.held() {
                return Err(WorkError::Lost);
            }
        }
    }
}

/// How long the place of a Site stays empty: as long as the Site took. So a run leaves half of what the cluster can do
/// to the edits of people.
fn rest(begun: Timestamp, ended: Timestamp) -> SignedDuration {
    ended.duration_since(begun).clamp(SignedDuration::ZERO, LONGEST_REST)
}

/// The work on one Site, in a task of its own: its panic is its own failure.
async fn contained(work: impl Future<Output = SiteResult> + Send + 'static) -> SiteResult {
    tokio::spawn(work).await.unwrap_or_else(|_| {
        let reason = "the Hub failed on this Site: see its log".to_owned();
        result(SiteState::Failed, Some(reason), Timestamp::now())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_rests_as_long_as_its_site_took() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let rests = [10, 13, 100, 5].map(|ended| rest(at(10), at(ended)).as_secs());
        assert_eq!(rests, [0, 3, 5, 0], "at most five seconds, and a clock that went back is no rest");
    }

    #[tokio::test]
    async fn b20_a_panic_is_the_failure_of_one_site() {
        let site = contained(async { panic!("of one Site") }).await;
        assert_eq!(site.state, SiteState::Failed);
        assert!(site.reason.unwrap().contains("see its log"));
    }
}
