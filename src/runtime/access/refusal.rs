//! Why a request is not served.

use thiserror::Error;

/// Why a request is not served. The texts go to the client.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody knows who asks: 401.
    #[error("authentication required: {0}")]
    Unauthenticated(&'static str),
    /// The caller is, or was, known and may not: 403.
    #[error("forbidden: {0}")]
    Forbidden(&'static str),
    /// The request's credentials contradict each other: 400.
    #[error("{0}")]
    Malformed(&'static str),
    /// Whoever could tell does not answer: 503.
    #[error("{0}; try again in a moment")]
    Unavailable(&'static str),
}
