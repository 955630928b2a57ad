//! What a Site's actor remembers between passes: folded facts and the ends of passes. In memory only: all of
//! it is rebuilt from the watches and from `status.handled` after a restart. Pure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::facts::{ChildFact, ClaimFact, Fact, StatefulSetFact, WatchedKind};
use crate::domain::change::Trigger;
use crate::domain::child::{ChildKey, ChildKind};
use crate::domain::pod_health::PodFact;
use crate::domain::site::Handled;

/// So many repairs of one child in a window are made at once; more wait.
const MOST_REPAIRS: usize = 5;
const REPAIR_WINDOW: Duration = Duration::from_secs(60);

/// The memory.
#[derive(Clone, Debug, Default)]
pub struct SiteState {
    /// Children by key.
    pub children: BTreeMap<ChildKey, ChildFact>,
    /// Children (uid) that went since the last pass ended: what that pass learns of them is older news.
    pub buried: BTreeSet<String>,
    /// The claim, when there is one.
    pub claim: Option<ClaimFact>,
    /// The `StatefulSet`, when there is one.
    pub stateful_set: Option<StatefulSetFact>,
    /// The pods that carry our label and annotation, with the list that last had each.
    pub pods: Vec<(PodFact, u32)>,
    /// The pod event that was folded last, for the log line of a status write.
    pub last_pod: Option<PodEvent>,
    /// What of the Site asks for work.
    pub trigger: Trigger,
    /// The event that made the trigger what it is was one of a bulk run.
    pub bulk: bool,
    /// Hash of the labels that every child must have.
    pub labels: u64,
    /// Rules that the Site breaks, as one text.
    pub violations: Option<String>,
    /// The same, with the rules that bind new Sites only; not known of a Site that has a record.
    pub violations_of_new: Option<String>,
    /// The durable record: of the status, or newer, of the last pass.
    pub handled: Option<Arc<Handled>>,
    /// A pass has made a newer record than the status has.
    pub unsaved: bool,
    /// How the last pass ended.
    pub outcome: Outcome,
    /// When an unlabelled volume is labelled at the earliest.
    pub volume_due: Option<Instant>,
    /// The volume label could not be written: what was said.
    pub volume_problem: Option<String>,
    /// Pods (uid) that were deleted for carrying an old stamp, or may not be.
    pub replaced: BTreeMap<String, String>,
    /// When each child was repaired last, oldest first.
    pub repairs: BTreeMap<ChildKey, VecDeque<Instant>>,
    /// What passes of this process have written; survives a pass that failed half way.
    pub progress: Arc<Mutex<Progress>>,
}

/// One pod event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodEvent {
    /// Name of the pod.
    pub pod: String,
    /// The part of its status that changed.
    pub field: &'static str,
}

/// How the last pass of the present object ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// None has ended in this process.
    #[default]
    Unknown,
    /// Well.
    Done,
    /// Badly, for this trigger.
    Failed {
        /// One word.
        reason: &'static str,
        /// For people.
        message: String,
        /// No more attempts before a change or a resync.
        exhausted: bool,
        /// The trigger it failed for.
        trigger: Trigger,
    },
}

/// Per child, what this process wrote last.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// By key.
    pub written: BTreeMap<ChildKey, Written>,
    /// Fields that differ from their render and cannot be changed, as far as that has been said.
    pub kept: BTreeSet<(ChildKey, &'static str)>,
}

/// One write, as hashes: every child of every Site has one. Stable within a process only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Of what was rendered.
    pub render: u64,
    /// Of the uid of what was written.
    pub uid: u64,
    /// Of its version, as the write answered.
    pub version: u64,
}

impl Written {
    /// A write of this render, answered with this metadata.
    #[must_use]
    pub fn new(render: u64, fact: &ChildFact) -> Self {
        let hash = |text: &str| {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            hasher.finish()
        };
        Self { render, uid: hash(&fact.uid), version: hash(&fact.version()) }
    }
}

impl SiteState {
    /// The rules that keep the Site from being worked on. A Site without a record and without any object is new:
    /// nothing of an older platform depends on it.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        let new = self.handled.is_none() && self.children.is_empty();
        self.violations.as_deref().or_else(|| self.violations_of_new.as_deref().filter(|_| new))
    }

    /// Folds a fact. Returns whether it says anything new.
    pub fn fold(&mut self, fact: Fact) -> bool {
        match fact {
            Fact::Child(key, fact) => self.fold_child(key, fact),
            Fact::ChildGone(key, uid) => {
                let known = self.children.get(&key).is_some_and(|child| child.uid == uid);
                if known {
                    self.drop_child(&key);
                }
                self.buried.insert(uid);
                known
            }
            Fact::Claim(key, fact, claim) => {
                let news = self.claim.as_ref() != Some(&claim);
                let accepted = self.fold_child(key.clone(), fact.clone()) || self.children.get(&key) == Some(&fact);
                if accepted {
                    self.claim = Some(claim);
                }
                accepted && news
            }
            Fact::StatefulSet(key, fact, set) => {
                let news = self.stateful_set.as_ref() != Some(&set);
                let accepted = self.fold_child(key.clone(), fact.clone()) || self.children.get(&key) == Some(&fact);
                if accepted {
                    self.stateful_set = Some(set);
                }
                accepted && news
            }
            Fact::Pod(pod, list) => self.fold_pod(*pod, list),
            Fact::PodGone(uid) => {
                if let Some((pod, _)) = self.pods.iter().find(|(pod, _)| pod.uid == uid) {
                    self.last_pod = Some(PodEvent { pod: pod.name.clone(), field: "deleted" });
                }
                let before = self.pods.len();
                self.pods.retain(|(pod, _)| pod.uid != uid);
                self.replaced.remove(&uid);
                self.pods.len() != before
            }
            Fact::Listed(WatchedKind::Pods, list) => {
                let before = self.pods.len();
                self.pods.retain(|(_, seen)| *seen >= list);
                self.pods.len() != before
            }
            Fact::Listed(WatchedKind::Children(kind), list) => {
                let gone: Vec<ChildKey> = self
                    .children
                    .iter()
                    .filter(|(key, child)| key.kind == kind && child.list < list)
                    .map(|(key, _)| key.clone())
                    .collect();
                for key in &gone {
                    self.drop_child(key);
                }
                !gone.is_empty()
            }
            Fact::Volumes => true,
        }
    }

    /// Takes a child's metadata, unless what is known is newer: our own write, answered before the watch told of it.
    fn fold_child(&mut self, key: ChildKey, fact: ChildFact) -> bool {
        match self.children.get_mut(&key) {
            Some(known) if fact.uid == known.uid && fact.older_than(known) => false,
            Some(known) => {
                let news = known.version() != fact.version()
                    || (&known.uid, known.labels, &known.owner, known.terminating)
                        != (&fact.uid, fact.labels, &fact.owner, fact.terminating);
                *known = fact;
                news
            }
            None => {
                self.children.insert(key, fact);
                true
            }
        }
    }

    fn fold_pod(&mut self, pod: PodFact, list: u32) -> bool {
        if !pod.bound {
            return false;
        }
        let Some((known, seen)) = self.pods.iter_mut().find(|(known, _)| known.uid == pod.uid) else {
            self.last_pod = Some(PodEvent { pod: pod.name.clone(), field: "status" });
            self.pods.push((pod, list));
            return true;
        };
        *seen = list;
        if let Some(field) = changed_field(known, &pod) {
            self.last_pod = Some(PodEvent { pod: pod.name.clone(), field });
            *known = pod;
            return true;
        }
        // Only the version, or what nobody judges, has changed.
        known.resource_version = pod.resource_version;
        false
    }

    fn drop_child(&mut self, key: &ChildKey) {
        self.buried.extend(self.children.remove(key).map(|child| child.uid));
        match key.kind {
            ChildKind::PersistentVolumeClaim => self.claim = None,
            ChildKind::StatefulSet => self.stateful_set = None,
            _ => {}
        }
    }

    /// Takes what a pass that has ended learned of the children. One that was deleted meanwhile stays gone: its
    /// write was answered before the watch told of its end. The next list may have begun before a write, so what was
    /// written counts as seen by that list.
    pub fn learned(&mut self, facts: &[(ChildKey, Option<ChildFact>)]) {
        let list = self.children.values().map(|child| child.list).max().unwrap_or_default() + 1;
        for (key, fact) in facts {
            match fact {
                Some(fact) if self.buried.contains(&fact.uid) => {}
                Some(fact) => {
                    self.fold_child(key.clone(), ChildFact { list, ..fact.clone() });
                }
                None => {
                    self.children.remove(key);
                }
            }
        }
    }

    /// Takes the record that the status has, unless a pass of this process has made a newer one. A standby
    /// follows the leader's records this way.
    pub fn take_record(
        &mut self,
        recorded: Option<&Arc<Handled>>,
        present_form: impl Fn(&Arc<Handled>) -> Arc<Handled>,
    ) {
        let ours = self.handled.as_ref();
        if recorded == ours {
            self.unsaved = false;
            // Equal, but another copy: the object's is kept, so that there is one.
            self.handled = recorded.cloned();
            return;
        }
        let at = |handled: Option<&Arc<Handled>>| handled.and_then(|handled| handled.at.clone());
        if self.unsaved && at(recorded) <= at(ours) {
            return;
        }
        self.unsaved = false;
        self.handled = recorded.map(present_form);
    }

    /// Counts a repair of a child.
    pub fn note_repair(&mut self, key: &ChildKey, now: Instant) {
        let times = self.repairs.entry(key.clone()).or_default();
        times.push_back(now);
        if times.len() > MOST_REPAIRS {
            times.pop_front();
        }
    }

    /// How long the next repair of a child must wait: somebody else may be rewriting it each time we repair it.
    #[must_use]
    pub fn repair_wait(&self, key: &ChildKey, now: Instant) -> Duration {
        match self.repairs.get(key) {
            Some(times) if times.len() == MOST_REPAIRS => {
                times.front().map_or(Duration::ZERO, |oldest| (*oldest + REPAIR_WINDOW).saturating_duration_since(now))
            }
            _ => Duration::ZERO,
        }
    }

    /// Forgets the object, keeps the facts.
    pub fn forget_object(&mut self) {
        *self = Self {
            children: std::mem::take(&mut self.children),
            claim: self.claim.take(),
            stateful_set: self.stateful_set.take(),
            pods: std::mem::take(&mut self.pods),
            ..Self::default()
        };
    }

    /// The facts of the pods alone.
    #[must_use]
    pub fn pod_facts(&self) -> Vec<PodFact> {
        self.pods.iter().map(|(pod, _)| pod.clone()).collect()
    }
}

/// The part of a pod that changed, as the log names it.
fn changed_field(old: &PodFact, new: &PodFact) -> Option<&'static str> {
    if old.phase != new.phase {
        Some("status.phase")
    } else if old.conditions != new.conditions || old.ready != new.ready {
        Some("status.conditions")
    } else if old.containers != new.containers || old.init_containers != new.init_containers {
        Some("status.containerStatuses")
    } else {
        let same_version = PodFact { resource_version: old.resource_version.clone(), ..new.clone() };
        (same_version != *old).then_some("metadata")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: ChildKind) -> ChildKey {
        ChildKey::new(kind, "a")
    }

    fn child(uid: &str, version: &str, list: u32) -> ChildFact {
        ChildFact { uid: uid.to_owned(), resource_version: version.to_owned(), list, ..ChildFact::default() }
    }

    #[test]
    fn the_echo_of_an_older_version_does_not_undo_what_a_write_answered() {
        let mut state = SiteState::default();
        state.fold(Fact::Child(key(ChildKind::Secret), child("u", "5", 1)));
        state.learned(&[(key(ChildKind::Secret), Some(child("u", "9", 0)))]);
        assert!(!state.fold(Fact::Child(key(ChildKind::Secret), child("u", "7", 1))));
        assert_eq!(state.children[&key(ChildKind::Secret)].resource_version, "9");
    }

    #[test]
    fn a_child_that_went_while_a_pass_wrote_it_is_not_remembered() {
        let mut state = SiteState::default();
        state.fold(Fact::Child(key(ChildKind::Secret), child("u", "5", 1)));
        state.fold(Fact::ChildGone(key(ChildKind::Secret), "u".to_owned()));
        // Created by the pass and gone before it ended.
        state.fold(Fact::ChildGone(key(ChildKind::Service), "v".to_owned()));
        let written = |kind, uid| (key(kind), Some(child(uid, "9", 0)));
        state.learned(&[written(ChildKind::Secret, "u"), written(ChildKind::Service, "v")]);
        assert!(state.children.is_empty());
        state.buried.clear();
        state.learned(&[written(ChildKind::Secret, "w")]);
        assert_eq!(state.children.len(), 1);
    }

    #[test]
    fn a_deletion_of_a_namesake_is_not_ours() {
        let mut state = SiteState::default();
        state.fold(Fact::Child(key(ChildKind::Secret), child("new", "9", 1)));
        assert!(!state.fold(Fact::ChildGone(key(ChildKind::Secret), "old".to_owned())));
        assert!(state.fold(Fact::ChildGone(key(ChildKind::Secret), "new".to_owned())));
    }

    #[test]
    fn a_complete_list_drops_what_it_does_not_have_of_its_own_kind() {
        let mut state = SiteState::default();
        state.fold(Fact::Child(key(ChildKind::Secret), child("u", "5", 1)));
        state.fold(Fact::Child(key(ChildKind::Service), child("v", "6", 1)));
        state.fold(Fact::Child(key(ChildKind::ConfigMap), child("w", "7", 2)));
        assert!(state.fold(Fact::Listed(WatchedKind::Children(ChildKind::Secret), 2)));
        assert!(!state.fold(Fact::Listed(WatchedKind::Children(ChildKind::ConfigMap), 2)));
        assert_eq!(state.children.len(), 2);
    }

    #[test]
    fn a_pod_event_without_a_new_meaning_is_no_news() {
        let mut state = SiteState::default();
        let pod = |version: &str, phase: &str| {
            Box::new(PodFact {
                uid: "u".to_owned(),
                bound: true,
                resource_version: version.to_owned(),
                phase: Some(phase.to_owned()),
                ..PodFact::default()
            })
        };
        assert!(state.fold(Fact::Pod(pod("1", "Pending"), 1)));
        for version in 2..100 {
            assert!(!state.fold(Fact::Pod(pod(&version.to_string(), "Pending"), 1)));
        }
        assert_eq!(state.pods[0].0.resource_version, "99");
        assert!(state.fold(Fact::Pod(pod("100", "Running"), 1)));
        assert_eq!(state.last_pod.as_ref().unwrap().field, "status.phase");
    }
}
