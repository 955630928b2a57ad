//! What can go wrong with a call, and what may be said about it.
//!
//! Owns [`CallError`] and its text. The text never holds what was sent or read: `reply` builds the
//! messages in here from the server's answer with every echoed value taken out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

/// Which call it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call(Arc<Parts>);

#[derive(Debug, PartialEq, Eq)]
struct Parts {
    verb: &'static str,
    kind: String,
    namespace: Option<String>,
    name: Option<String>,
}

impl Call {
    pub(super) fn new(verb: &'static str, kind: &str, namespace: Option<&str>, name: Option<&str>) -> Self {
        Self(Arc::new(Parts {
            verb,
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        }))
    }

    /// The verb, in the words of RBAC: `create`, `get`, `update`, `patch`, `delete`, `list`, `watch`.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        self.0.verb
    }

    /// Kind of the object.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.0.kind
    }

    /// Namespace, where the call had one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.0.namespace.as_deref()
    }

    /// Name of the object, where the call had one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0.verb, self.0.kind)?;
        match (&self.0.namespace, &self.0.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (Some(namespace), None) => write!(f, " in {namespace}"),
            (None, Some(name)) => write!(f, " {name}"),
            (None, None) => Ok(()),
        }
    }
}

/// Why a call failed. `message` is bounded and free of values; it is empty for Secrets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallError {
    /// 404: no such object, or no such kind.
    #[error("{call}: not found")]
    NotFound {
        /// The call.
        call: Call,
    },
    /// 409 on a create: the name is taken.
    #[error("{call}: exists already")]
    AlreadyExists {
        /// The call.
        call: Call,
    },
    /// 409: the object changed since it was read, or the precondition does not hold.
    #[error("{call}: the object changed meanwhile")]
    Conflict {
        /// The call.
        call: Call,
    },
    /// 410: the resource version or the continuation is too old.
    #[error("{call}: the version asked for is gone")]
    Gone {
        /// The call.
        call: Call,
    },
    /// 422: the object breaks a rule of its kind.
    #[error("{call}: invalid{}: {message}", .field.as_deref().map(|field| format!(" at {field}")).unwrap_or_default())]
    Invalid {
        /// The call.
        call: Call,
        /// Path of the first field at fault.
        field: Option<String>,
        /// The rules broken, without the values.
        message: String,
    },
    /// 403: no right to do this, or an admission rule refused it.
    #[error("{call}: forbidden: {message}")]
    Forbidden {
        /// The call.
        call: Call,
        /// What is missing.
        message: String,
    },
    /// 401, with the token that the file holds now.
    #[error("{call}: the API server does not know these credentials")]
    Unauthorized {
        /// The call.
        call: Call,
    },
    /// 429, or not sent because an earlier answer asked to wait longer.
    #[error("{call}: the API server asks to wait")]
    TooMany {
        /// The call.
        call: Call,
        /// How long to wait.
        retry_after: Option<Duration>,
    },
    /// 500, 502, 503, 504.
    #[error("{call}: the API server failed with {code}: {message}")]
    Unavailable {
        /// The call.
        call: Call,
        /// HTTP status.
        code: u16,
        /// How long to wait, where the server said so.
        retry_after: Option<Duration>,
        /// What the server said.
        message: String,
    },
    /// No answer in time; a write may have happened.
    #[error("{call}: no answer within the time limit")]
    Timeout {
        /// The call.
        call: Call,
    },
    /// A write that was not sent, because the Lease is not ours (any more).
    #[error("{call}: not sent, this process does not lead")]
    NotLeader {
        /// The call.
        call: Call,
    },
    /// 413, or the store's own limit.
    #[error("{call}: the object is too large")]
    TooLarge {
        /// The call.
        call: Call,
    },
    /// The connection failed; a write may have happened.
    #[error("{call}: {message}")]
    Transport {
        /// The call.
        call: Call,
        /// The failure of the connection.
        message: String,
    },
    /// The answer, or the object to send, is not what its type says.
    #[error("{call}: cannot be decoded: {message}")]
    Decode {
        /// The call.
        call: Call,
        /// Path and expected form, without the value.
        message: String,
    },
    /// Anything else.
    #[error("{call}: failed with {code}: {message}")]
    Other {
        /// The call.
        call: Call,
        /// HTTP status; 0 if nothing was sent.
        code: u16,
        /// What the server said.
        message: String,
    },
}

impl CallError {
    /// A word for metrics, Event reasons and log fields: one per variant.
    #[must_use]
    pub fn category(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "NotFound",
            Self::AlreadyExists { .. } => "AlreadyExists",
            Self::Conflict { .. } => "Conflict",
            Self::Gone { .. } => "Gone",
            Self::Invalid { .. } => "Invalid",
            Self::Forbidden { .. } => "Forbidden",
            Self::Unauthorized { .. } => "Unauthorized",
            Self::TooMany { .. } => "TooManyRequests",
            Self::Unavailable { .. } => "Unavailable",
            Self::Timeout { .. } => "Timeout",
            Self::NotLeader { .. } => "NotLeader",
            Self::TooLarge { .. } => "TooLarge",
            Self::Transport { .. } => "Transport",
            Self::Decode { .. } => "Decode",
            Self::Other { .. } => "Other",
        }
    }

    /// How long the server asked to wait.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooMany { retry_after, .. } | Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the same call may succeed later although nothing that was sent changes.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::TooMany { .. }
                | Self::Unavailable { .. }
                | Self::Timeout { .. }
                | Self::Transport { .. }
                | Self::Unauthorized { .. }
        )
    }

    /// Whether a write may have happened although it failed.
    #[must_use]
    pub const fn may_have_happened(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Timeout { .. } | Self::Transport { .. })
    }

    /// The call that failed.
    #[must_use]
    pub fn call(&self) -> &Call {
        match self {
            Self::NotFound { call }
            | Self::AlreadyExists { call }
            | Self::Conflict { call }
            | Self::Gone { call }
            | Self::Invalid { call, .. }
            | Self::Forbidden { call, .. }
            | Self::Unauthorized { call }
            | Self::TooMany { call, .. }
            | Self::Unavailable { call, .. }
            | Self::Timeout { call }
            | Self::NotLeader { call }
            | Self::TooLarge { call }
            | Self::Transport { call, .. }
            | Self::Decode { call, .. }
            | Self::Other { call, .. } => call,
        }
    }
}
