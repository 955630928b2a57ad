//! What a Site's pods say, in one phase and a list of problems (LIFE-10, B16).
//!
//! Owns the reduction of a pod to the facts that count, and the judgement over them. Must not compare with what
//! the status holds, nor write it.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodCondition};

use super::labels;
use super::mask;
use super::site::{ContainerProblem, Phase};

/// Conditions of a pod that are read as steps. Others may be false in a healthy pod.
const STEPS: [&str; 5] = ["PodScheduled", "Initialized", "ContainersReady", "Ready", DISRUPTION];
/// The one condition that is bad when it is true.
const DISRUPTION: &str = "DisruptionTarget";
/// Reason of a container that only waits for the init containers: a consequence, not a cause.
const WAITS_FOR_INIT: &str = "PodInitializing";
/// Pod reason after its node stopped answering.
const NODE_LOST: &str = "NodeLost";

/// The facts of one pod that the platform looks at. A full pod is 20 times as large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodFact {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// Label `/id`: the Site that the pod belongs to.
    pub site_id: Option<String>,
    /// Whether it carries the annotation `/operator_bound`; pods without it are not the operator's.
    pub bound: bool,
    /// Annotation `/stamped-for`: the change that its template was restarted for.
    pub stamp: Option<String>,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// Whether a deletion has begun.
    pub terminating: bool,
    /// `status.phase`, as the API spells it.
    pub phase: Option<String>,
    /// `status.reason`, such as `NodeLost` or `Evicted`.
    pub reason: Option<String>,
    /// `status.message`.
    pub message: Option<String>,
    /// Whether the condition `Ready` is True.
    pub ready: bool,
    /// The step conditions only.
    pub conditions: Vec<StepCondition>,
    /// In the order of the status.
    pub init_containers: Vec<ContainerFact>,
    /// In the order of the status.
    pub containers: Vec<ContainerFact>,
}

/// One step condition of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepCondition {
    /// One of `PodScheduled`, `Initialized`, `ContainersReady`, `Ready`, `DisruptionTarget`.
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// May be empty.
    pub reason: String,
    /// May be empty.
    pub message: String,
    /// When the status changed last.
    pub last_transition: Option<Timestamp>,
}

impl StepCondition {
    fn successful(&self) -> bool {
        self.status == if self.type_ == DISRUPTION { "False" } else { "True" }
    }
}

/// One container of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerFact {
    /// Name in the pod.
    pub name: String,
    /// The probes' verdict.
    pub ready: bool,
    /// What it does.
    pub state: ContainerFactState,
}

/// State of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ContainerFactState {
    /// Nothing is known yet.
    #[default]
    Unknown,
    /// Runs.
    Running,
    /// Has not started, or not again.
    Waiting {
        /// Such as `CrashLoopBackOff`.
        reason: String,
        /// The kubelet's text.
        message: String,
    },
    /// Has ended.
    Terminated {
        /// Such as `Completed` or `OOMKilled`.
        reason: String,
        /// The kubelet's text.
        message: String,
        /// 0 is success.
        exit_code: i32,
    },
}

/// What the pods of a Site come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodReport {
    /// In one word.
    pub phase: Phase,
    /// True only for a Running pod whose selected condition is successful and that has no problem.
    pub all_steps_started: bool,
    /// In container order, init containers first.
    pub container_problems: Vec<ContainerProblem>,
}

impl PodFact {
    /// Phase Running and condition Ready: such a pod is never replaced by the restart rule (LIFE-15).
    #[must_use]
    pub fn running_and_ready(&self) -> bool {
        self.ready && self.phase.as_deref() == Some("Running")
    }
}

/// Judges the pods of one Site.
///
/// A disabled Site is Disabled, whatever its pods say; without pods it is Pending. Terminating pods are dropped
/// when others exist; of the rest the worst wins: Failed, Unknown, Pending, Succeeded, Running.
/// The answer does not depend on the order of the pods.
#[must_use]
pub fn report(enabled: bool, pods: &[PodFact]) -> PodReport {
    if !enabled {
        return PodReport { phase: Phase::Disabled, ..PodReport::default() };
    }
    let stays = pods.iter().any(|pod| !pod.terminating);
    let judged = pods.iter().filter(|pod| !(stays && pod.terminating)).map(|pod| (verdict(pod), pod));
    judged
        .max_by(|a, b| worse(&a.0, &b.0).then_with(|| (&b.1.name, &b.1.uid).cmp(&(&a.1.name, &a.1.uid))))
        .map(|(report, _)| report)
        .unwrap_or_default()
}

/// Greater is worse.
fn worse(a: &PodReport, b: &PodReport) -> Ordering {
    let rank = |report: &PodReport| {
        let phase = match report.phase {
            Phase::Running => 0,
            Phase::Succeeded => 1,
            Phase::Pending | Phase::Disabled => 2,
            Phase::Unknown => 3,
            Phase::Failed => 4,
        };
        (phase, !report.all_steps_started, report.container_problems.len())
    };
    rank(a).cmp(&rank(b))
}

fn verdict(pod: &PodFact) -> PodReport {
    let selected = selected(&pod.conditions);
    let problems = problems(pod);
    let phase = if lost(pod) {
        Phase::Unknown
    } else if !problems.is_empty() {
        Phase::Pending
    } else {
        match pod.phase.as_deref() {
            Some("Running") => Phase::Running,
            Some("Succeeded") => Phase::Succeeded,
            Some("Failed") => Phase::Failed,
            _ => Phase::Pending,
        }
    };
    let all_steps_started = phase == Phase::Running && selected.is_some_and(StepCondition::successful);
    PodReport { phase, all_steps_started, container_problems: problems }
}

/// By transition time, the first that failed, else the last. Equal times keep the order of [`STEPS`].
fn selected(conditions: &[StepCondition]) -> Option<&StepCondition> {
    let step = |condition: &StepCondition| STEPS.iter().position(|type_| *type_ == condition.type_);
    let mut ordered: Vec<&StepCondition> = conditions.iter().collect();
    ordered.sort_by_key(|condition| (condition.last_transition, step(condition)));
    ordered.iter().find(|condition| !condition.successful()).or(ordered.last()).copied()
}

/// Whether the pod's node does not answer: then nobody knows what the containers do.
///
/// The controller that misses a node writes `Ready=False` into its pods, without a reason and beside the kubelet's
/// last `ContainersReady=True`. A kubelet gives a reason when the two differ.
fn lost(pod: &PodFact) -> bool {
    let is = |type_: &str, status: &str, no_reason: bool| {
        pod.conditions.iter().any(|condition| {
            condition.type_ == type_ && condition.status == status && (!no_reason || condition.reason.is_empty())
        })
    };
    let overruled = is("Ready", "False", true) && is("ContainersReady", "True", false);
    let unknown = |condition: &StepCondition| {
        condition.type_ == "Ready" && (condition.status == "Unknown" || condition.reason == NODE_LOST)
    };
    pod.phase.as_deref() == Some("Unknown")
        || pod.reason.as_deref() == Some(NODE_LOST)
        || pod.conditions.iter().any(unknown)
        || overruled
}

fn problems(pod: &PodFact) -> Vec<ContainerProblem> {
    let unscheduled = pod.conditions.iter().find(|condition| {
        condition.type_ == "PodScheduled" && condition.status == "False" && !condition.reason.is_empty()
    });
    let scheduling =
        unscheduled.map(|condition| problem(&pod.name, "scheduling", &condition.reason, &condition.message));
    let init: Vec<ContainerProblem> =
        pod.init_containers.iter().filter_map(|fact| container_problem(fact, true)).collect();
    let main = pod.containers.iter().filter_map(|fact| container_problem(fact, false));
    let cause = init.iter().any(|problem| problem.reason != WAITS_FOR_INIT);
    let all = scheduling.into_iter().chain(init.iter().cloned()).chain(main);
    all.filter(|problem| !(cause && problem.reason == WAITS_FOR_INIT)).collect()
}

/// A container that waits, has ended badly, or runs without being ready. An init container at work is none.
fn container_problem(fact: &ContainerFact, init: bool) -> Option<ContainerProblem> {
    match &fact.state {
        ContainerFactState::Waiting { reason, message } => Some(problem(&fact.name, "waiting", reason, message)),
        ContainerFactState::Terminated { exit_code: 0, .. } => None,
        ContainerFactState::Terminated { reason, message, .. } => {
            Some(problem(&fact.name, "terminated", reason, message))
        }
        ContainerFactState::Running if !fact.ready && !init => Some(problem(&fact.name, "running", "NotReady", "")),
        ContainerFactState::Running | ContainerFactState::Unknown => None,
    }
}

fn problem(name: &str, kind: &str, reason: &str, message: &str) -> ContainerProblem {
    ContainerProblem {
        name: name.to_owned(),
        kind: kind.to_owned(),
        reason: reason.to_owned(),
        message: mask::cut(message),
    }
}

impl From<&Pod> for PodFact {
    fn from(pod: &Pod) -> Self {
        let metadata = &pod.metadata;
        let status = pod.status.clone().unwrap_or_default();
        let annotation = |key: &str| metadata.annotations.as_ref().and_then(|all: &BTreeMap<_, _>| all.get(key));
        let conditions: Vec<StepCondition> = status.conditions.iter().flatten().filter_map(step).collect();
        let containers = |list: Option<Vec<ContainerStatus>>| list.iter().flatten().map(ContainerFact::from).collect();
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            site_id: metadata.labels.as_ref().and_then(|all| all.get(labels::ID)).cloned(),
            bound: annotation(labels::OPERATOR_BOUND).is_some(),
            stamp: annotation(labels::STAMPED_FOR).cloned(),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            terminating: metadata.deletion_timestamp.is_some(),
            phase: status.phase,
            reason: status.reason,
            message: status.message,
            ready: conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"),
            conditions,
            init_containers: containers(status.init_container_statuses),
            containers: containers(status.container_statuses),
        }
    }
}

/// A step condition; a disruption only while it is true.
fn step(condition: &PodCondition) -> Option<StepCondition> {
    let counts =
        STEPS.contains(&condition.type_.as_str()) && (condition.type_ != DISRUPTION || condition.status == "True");
    counts.then(|| StepCondition {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone().unwrap_or_default(),
        message: condition.message.clone().unwrap_or_default(),
        last_transition: condition.last_transition_time.as_ref().map(|time| time.0),
    })
}

impl From<&ContainerStatus> for ContainerFact {
    fn from(status: &ContainerStatus) -> Self {
        let state = status.state.as_ref().map(ContainerFactState::from).unwrap_or_default();
        Self { name: status.name.clone(), ready: status.ready, state }
    }
}

impl From<&ContainerState> for ContainerFactState {
    fn from(state: &ContainerState) -> Self {
        if let Some(waiting) = &state.waiting {
            return Self::Waiting {
                reason: waiting.reason.clone().unwrap_or_default(),
                message: waiting.message.clone().unwrap_or_default(),
            };
        }
        if let Some(terminated) = &state.terminated {
            return Self::Terminated {
                reason: terminated.reason.clone().unwrap_or_default(),
                message: terminated.message.clone().unwrap_or_default(),
                exit_code: terminated.exit_code,
            };
        }
        if state.running.is_some() { Self::Running } else { Self::Unknown }
    }
}

#[cfg(test)]
#[path = "pod_health_tests.rs"]
mod tests;
