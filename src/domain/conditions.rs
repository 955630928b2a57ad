//! The conditions of a Site's status: closed lists of types and reasons, and how one is set.
//!
//! Owns when a transition time moves and when nothing changes at all. Must not read a clock.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The outcome of reconciling, and of nothing else: pods speak through the phase.
pub const READY: &str = "Ready";
/// Another Site or a foreign object has the public path. Only there while it says something.
pub const ROUTE_CONFLICT: &str = "RouteConflict";
/// The Site's actor died too often and waits for the next change. Only there while it says something.
pub const DEGRADED: &str = "Degraded";
/// The bound volume carries the Site's labels. Only there while it says something.
pub const VOLUME_LABELLED: &str = "VolumeLabelled";

/// Why a condition has its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The last pass ended well.
    Reconciled,
    /// A pass failed and will be tried again.
    ReconcileError,
    /// The Site breaks a rule; it waits for a change.
    Invalid,
    /// `operator.retries` attempts failed; it waits for the next change or resync.
    RetriesExhausted,
    /// The public path belongs to another.
    RouteConflict,
    /// More than one volume could be the Site's own: nothing was touched.
    VolumeAmbiguous,
    /// `routing.host` is not set: no route can be made.
    HostMissing,
    /// The route of the other routing mode could not be deleted.
    OtherModeRoute,
    /// An object of the Site's name exists and is not its own.
    ForeignObject,
    /// The actor died too often.
    ActorFailed,
    /// The volume carries the labels.
    Labelled,
    /// The claim is not bound yet, or the volume could not be labelled yet.
    Waiting,
}

impl Reason {
    /// The word in the condition.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reconciled => "Reconciled",
            Self::ReconcileError => "ReconcileError",
            Self::Invalid => "Invalid",
            Self::RetriesExhausted => "RetriesExhausted",
            Self::RouteConflict => "RouteConflict",
            Self::VolumeAmbiguous => "VolumeAmbiguous",
            Self::HostMissing => "HostMissing",
            Self::OtherModeRoute => "OtherModeRoute",
            Self::ForeignObject => "ForeignObject",
            Self::ActorFailed => "ActorFailed",
            Self::Labelled => "Labelled",
            Self::Waiting => "Waiting",
        }
    }
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Holds.
    True,
    /// Does not hold.
    False,
    /// Cannot be told.
    Unknown,
}

impl Status {
    /// The word in the condition.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Status {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// Longest message that the API takes.
const MAX_MESSAGE: usize = 32_768;

/// Sets a condition and says whether anything changed.
///
/// The transition time moves only with the status. The list stays sorted by type, so that equal contents are
/// equal lists. `generation` is the Site's generation that the condition speaks of.
pub fn set(
    conditions: &mut Vec<Condition>,
    type_: &str,
    status: impl Into<Status>,
    reason: Reason,
    message: &str,
    generation: Option<i64>,
    now: Timestamp,
) -> bool {
    let mut wanted = Condition {
        type_: type_.to_owned(),
        status: status.into().as_str().to_owned(),
        reason: reason.as_str().to_owned(),
        message: message.chars().take(MAX_MESSAGE).collect(),
        observed_generation: generation,
        last_transition_time: Time(now),
    };
    match conditions.iter_mut().find(|condition| condition.type_ == type_) {
        Some(present) => {
            if present.status == wanted.status {
                wanted.last_transition_time = present.last_transition_time.clone();
            }
            if *present == wanted {
                return false;
            }
            *present = wanted;
        }
        None => conditions.push(wanted),
    }
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    true
}

/// Removes a condition that has nothing to say any more; says whether there was one.
pub fn clear(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

/// The condition of a type, if there is one.
#[must_use]
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn transition_time_moves_with_the_status_only() {
        let mut list = Vec::new();
        assert!(set(&mut list, READY, false, Reason::ReconcileError, "a", Some(1), at(1)));
        assert!(set(&mut list, READY, false, Reason::Invalid, "b", Some(2), at(2)));
        assert_eq!(list[0].last_transition_time, Time(at(1)));
        assert!(set(&mut list, READY, true, Reason::Reconciled, "", Some(2), at(3)));
        assert_eq!(list[0].last_transition_time, Time(at(3)));
        assert_eq!((list.len(), list[0].status.as_str()), (1, "True"));
    }

    #[test]
    fn equal_content_is_no_change() {
        let mut list = Vec::new();
        set(&mut list, READY, true, Reason::Reconciled, "", Some(1), at(1));
        let before = list.clone();
        assert!(!set(&mut list, READY, true, Reason::Reconciled, "", Some(1), at(9)));
        assert_eq!(list, before);
        assert!(set(&mut list, READY, true, Reason::Reconciled, "", Some(2), at(9)));
    }

    #[test]
    fn cleared_and_sorted() {
        let mut list = Vec::new();
        set(&mut list, ROUTE_CONFLICT, true, Reason::RouteConflict, "taken", None, at(1));
        set(&mut list, READY, Status::Unknown, Reason::Waiting, "", None, at(1));
        assert_eq!(list[0].type_, READY);
        assert!(find(&list, ROUTE_CONFLICT).is_some());
        assert!(clear(&mut list, ROUTE_CONFLICT) && !clear(&mut list, ROUTE_CONFLICT));
        assert_eq!(list.len(), 1);
    }
}
