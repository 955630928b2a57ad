//! Every failure as an answer: JSON with `status` and `message`, whoever asks.

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::runtime::access::{Refusal, TokenError, UrlError};
use crate::runtime::content::{ContentError, PathError};

/// The body of every failure.
#[derive(Serialize, ToSchema)]
pub struct Failure {
    /// `error`.
    #[schema(example = "error")]
    pub status: &'static str,
    /// What is wrong and what to do.
    pub message: String,
}

/// A failure.
#[derive(Debug)]
pub struct ApiError {
    pub(super) status: StatusCode,
    pub(super) message: String,
    pub(super) header: Option<(HeaderName, HeaderValue)>,
}

impl ApiError {
    /// A failure of the request.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), header: None }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// A failure of ours: the log has the reason, the client does not.
    pub(super) fn internal(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "a request failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the site's server failed; its log says why")
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = super::answer::json(self.status, &Failure { status: "error", message: self.message });
        response.headers_mut().extend(self.header);
        response
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let (status, header) = match refusal {
            Refusal::Unauthenticated(_) => {
                (StatusCode::UNAUTHORIZED, Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"sites\""))))
            }
            Refusal::Forbidden(_) => (StatusCode::FORBIDDEN, None),
            Refusal::Malformed(_) => (StatusCode::BAD_REQUEST, None),
            Refusal::Unavailable(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, Some((RETRY_AFTER, HeaderValue::from_static("5"))))
            }
        };
        Self { status, message: refusal.to_string(), header }
    }
}

impl From<ContentError> for ApiError {
    fn from(error: ContentError) -> Self {
        let status = match &error {
            ContentError::Path(_) | ContentError::Root(_) | ContentError::Loop(_) => StatusCode::BAD_REQUEST,
            ContentError::NotFound(_) => StatusCode::NOT_FOUND,
            ContentError::NotAFolder(_)
            | ContentError::IsAFolder(_)
            | ContentError::Special(_)
            | ContentError::Exists { .. } => StatusCode::CONFLICT,
            ContentError::Changed(_) => StatusCode::PRECONDITION_FAILED,
            ContentError::Quota { .. } | ContentError::VolumeFull => StatusCode::INSUFFICIENT_STORAGE,
            ContentError::NotPermitted(_) => StatusCode::FORBIDDEN,
            ContentError::Io { .. } => return Self::internal(&error),
        };
        Self::new(status, error.to_string())
    }
}

impl From<PathError> for ApiError {
    fn from(error: PathError) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<TokenError> for ApiError {
    fn from(error: TokenError) -> Self {
        let status = match &error {
            TokenError::State(_) => return Self::internal(&error),
            TokenError::Label | TokenError::Duration => StatusCode::BAD_REQUEST,
            TokenError::TooMany => StatusCode::CONFLICT,
            TokenError::NotFound(_) => StatusCode::NOT_FOUND,
        };
        Self::new(status, error.to_string())
    }
}

impl From<UrlError> for ApiError {
    fn from(error: UrlError) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// For what is no handler's: unknown paths, unknown methods, panics.
pub(super) fn plain(status: StatusCode, message: &str) -> Response {
    let body = serde_json::json!({ "status": "error", "message": message }).to_string();
    (status, [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], body).into_response()
}
