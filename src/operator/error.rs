//! Why a pass failed, step by step, and when it is tried again: the one place that decides the retry.

use std::time::Duration;

use thiserror::Error;

use super::objects::EncodeError;
use crate::cluster::CallError;
use crate::domain::child::ChildKey;
use crate::engine::{Failure, Retry};
use crate::render::RenderError;
use crate::settings::types::Operator;

/// A failed step.
#[derive(Debug, Error)]
pub enum PassError {
    /// Rendering refused.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A rendered object could not be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A call failed.
    #[error("{step}: {source}")]
    Call {
        /// The step, as LIFE-01 names it.
        step: &'static str,
        /// The failure.
        source: Box<CallError>,
    },
    /// An object of the Site's name is being deleted.
    #[error("{0} is being deleted: waiting until it is gone")]
    Terminating(ChildKey),
    /// An object of the Site's name belongs to something else.
    #[error("{0} exists and is not this Site's: rename or delete it")]
    Foreign(ChildKey),
    /// The public path belongs to another Site.
    #[error("the path {path} belongs to Site {owner}: choose another space or name")]
    PathTaken {
        /// The path.
        path: String,
        /// `spec.id` of its owner.
        owner: String,
    },
    /// A route object of our name is not a Site's.
    #[error("route {0} exists and is not this Site's: it is left alone")]
    ForeignRoute(ChildKey),
    /// A route object of our name is another Site's, though the index says that the path is ours.
    #[error("route {key} belongs to Site {owner}: choose another space or name")]
    RouteOfSite {
        /// The route.
        key: ChildKey,
        /// Its owner.
        owner: String,
    },
    /// The old route could not be deleted.
    #[error("route {key} of another mode or path: {source}")]
    StrayRoute {
        /// The route.
        key: ChildKey,
        /// The failure.
        source: Box<CallError>,
    },
    /// The Site's claim is gone, as a read says, and the watch has not told yet.
    #[error("the volume claim is gone and its watch has not told yet: waiting, so that its volume is found again")]
    ClaimUntold,
    /// The Site's volume is still bound to a claim that is gone.
    #[error("volume {0} is not released yet: waiting, so that the new claim gets it and not an empty one")]
    VolumeHeld(String),
    /// More than one volume could be the Site's.
    #[error("{0}")]
    VolumeAmbiguous(String),
    /// The Site was deleted, or re-created, while its pass ran.
    #[error("the Site is gone or another one: nothing is created for it")]
    SiteGone,
    /// The Site is another than the copy that the pass works with.
    #[error("the Site has changed and its watch has not told yet: nothing is written from the older copy")]
    SiteStale,
    /// The route index did not answer.
    #[error("the route index did not answer in time")]
    RouteIndex,
}

impl PassError {
    /// Wraps a call's failure with its step.
    pub fn call(step: &'static str) -> impl Fn(CallError) -> Self {
        move |source| Self::Call { step, source: Box::new(source) }
    }

    /// Condition reason, Event reason, log field.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Render(RenderError::HostMissing) => "HostMissing",
            Self::Render(_) => "Invalid",
            Self::PathTaken { .. } | Self::ForeignRoute(_) | Self::RouteOfSite { .. } => "RouteConflict",
            Self::StrayRoute { .. } => "OtherModeRoute",
            Self::VolumeAmbiguous(_) => "VolumeAmbiguous",
            Self::Foreign(_) => "ForeignObject",
            Self::Encode(_)
            | Self::Call { .. }
            | Self::Terminating(_)
            | Self::ClaimUntold
            | Self::VolumeHeld(_)
            | Self::SiteGone
            | Self::SiteStale
            | Self::RouteIndex => "ReconcileError",
        }
    }

    /// When it is tried again. `update` failures count towards `operator.retries`, a creation has no cap.
    #[must_use]
    pub fn retry(&self, update: bool, settings: &Operator) -> Retry {
        match self {
            Self::Render(RenderError::HostMissing)
            | Self::PathTaken { .. }
            | Self::ForeignRoute(_)
            | Self::RouteOfSite { .. } => Retry::After(settings.route_conflict_delay.get()),
            Self::StrayRoute { .. } => Retry::After(settings.other_mode_delay.get()),
            Self::Render(_) => Retry::OnChange,
            Self::Call { source, .. } if source.retry_after().is_some() => {
                Retry::After(source.retry_after().unwrap_or_default().max(Duration::from_secs(1)))
            }
            // The object stays as large as it is: asking soon again only makes everybody send it again.
            Self::Call { source, .. } if matches!(**source, CallError::TooLarge { .. }) => {
                Retry::After(settings.max_backoff.get())
            }
            // Not our failure, and over as soon as somebody leads.
            Self::Call { source, .. } if matches!(**source, CallError::NotLeader { .. }) => {
                Retry::Backoff { capped: false }
            }
            // Costs no call while the object is known to be going.
            Self::Terminating(_) | Self::ClaimUntold | Self::VolumeHeld(_) => Retry::After(Duration::from_secs(1)),
            Self::VolumeAmbiguous(_) | Self::SiteStale => Retry::Backoff { capped: false },
            _ => Retry::Backoff { capped: update },
        }
    }

    /// As the engine takes it.
    #[must_use]
    pub fn failure(&self, update: bool, settings: &Operator) -> Failure {
        Failure {
            reason: self.reason(),
            message: self.to_string(),
            retry: self.retry(update, settings),
            expected: self.is_expected(),
        }
    }

    /// Part of the ordinary course: over by itself, and nobody needs to be told.
    fn is_expected(&self) -> bool {
        match self {
            Self::Terminating(_) | Self::ClaimUntold | Self::VolumeHeld(_) | Self::SiteGone | Self::SiteStale => true,
            Self::Call { source, .. } => matches!(**source, CallError::NotLeader { .. }),
            _ => false,
        }
    }
}
