//! What the Hub answers when it does not do what was asked: one enum, one JSON form.
//!
//! `{"status":"error","message":…}`, with `"errors":["[field] …"]` when fields are wrong. Browsers that navigate get the
//! page of the status instead (`shell` looks at [`Refused`]). Must not hold a secret: an answer's words come from here
//! and from what the caller sent.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use thiserror::Error;
use tracing::error;
use utoipa::ToSchema;

use super::forms::FieldError;
use crate::cluster::CallError;

/// Why a request was not served.
#[derive(Debug, Error)]
pub enum ApiError {
    /// 400: these fields are wrong.
    #[error("the request is not valid")]
    Invalid(Vec<FieldError>),
    /// 400: the request as a whole is wrong.
    #[error("{0}")]
    BadRequest(String),
    /// 401: nobody knows who asks.
    #[error("log in, or send a valid token")]
    Unauthorized,
    /// 401: the token is refused, for this reason.
    #[error("the token is refused: {0}")]
    InvalidToken(&'static str),
    /// 403: they may not.
    #[error("{0}")]
    Forbidden(String),
    /// 404: there is no such thing, or it is not theirs to see.
    #[error("{0} was not found")]
    NotFound(&'static str),
    /// 409: it is not as they think, or somebody else is at it.
    #[error("{message}")]
    Conflict {
        /// What and what to do.
        message: String,
        /// Fields of the form that changed since.
        fields: Vec<String>,
    },
    /// 410: the Site is archived.
    #[error("the site is archived: {0}")]
    Archived(&'static str),
    /// 413: the body is too large.
    #[error("the body is too large")]
    TooLarge,
    /// 415: the body has a form that is not understood.
    #[error("send application/json or application/x-www-form-urlencoded")]
    MediaType,
    /// 429: they ask too often.
    #[error("too many requests: wait {} s", .0.as_secs().max(1))]
    TooMany(Duration),
    /// 500: something that the Hub asked failed; the message may be shown.
    #[error("{0}")]
    Upstream(String),
    /// 503: a part that is needed is down, off, or the platform is read-only.
    #[error("{0}")]
    Unavailable(String),
    /// The API server refused or did not answer.
    #[error(transparent)]
    Cluster(#[from] CallError),
}

/// The body of every refusal.
#[derive(Serialize, ToSchema, Debug, Clone, PartialEq, Eq)]
pub struct ErrorBody {
    /// Always `error`.
    pub status: &'static str,
    /// What is wrong and what to do, for a person.
    pub message: String,
    /// One line per wrong or changed field, `[field] …`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// Marks an answer whose body a browser would rather see as a page.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What is wrong and what to do.
    pub message: String,
}

impl ApiError {
    /// 403 with a reason.
    pub fn forbidden(reason: impl Into<String>) -> Self {
        Self::Forbidden(reason.into())
    }

    /// 409 without fields.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::Conflict { message: message.into(), fields: Vec::new() }
    }

    /// 400 about one field.
    pub fn field(field: &str, message: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError::new(field, message)])
    }

    /// The status of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_) | Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Unauthorized | Self::InvalidToken(_) => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Conflict { .. } => StatusCode::CONFLICT,
            Self::Archived(_) => StatusCode::GONE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Upstream(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable(_) | Self::Cluster(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn body(&self) -> ErrorBody {
        let (message, errors) = match self {
            Self::Invalid(fields) => {
                let errors: Vec<String> = fields.iter().map(ToString::to_string).collect();
                (errors.join("; "), errors)
            }
            Self::Conflict { message, fields } => {
                (message.clone(), fields.iter().map(|field| format!("[{field}] changed since")).collect())
            }
            // What the API server says may repeat what was sent to it, secrets included.
            Self::Cluster(_) => ("the cluster did not do it, try again in a minute".to_owned(), Vec::new()),
            other => (other.to_string(), Vec::new()),
        };
        ErrorBody { status: "error", message, errors }
    }
}

impl From<Vec<FieldError>> for ApiError {
    fn from(errors: Vec<FieldError>) -> Self {
        Self::Invalid(errors)
    }
}

impl From<FieldError> for ApiError {
    fn from(error: FieldError) -> Self {
        Self::Invalid(vec![error])
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if let Self::Cluster(failure) = &self {
            error!(error = %failure, "a call to the API server failed");
        }
        let body = self.body();
        let message = body.message.clone();
        let mut answer = (self.status(), Json(body)).into_response();
        let headers = answer.headers_mut();
        match &self {
            Self::Unauthorized => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"sites\""));
            }
            Self::InvalidToken(reason) => {
                let value = format!("Bearer realm=\"sites\", error=\"invalid_token\", error_description=\"{reason}\"");
                if let Ok(value) = HeaderValue::from_str(&value) {
                    headers.insert(header::WWW_AUTHENTICATE, value);
                }
            }
            Self::TooMany(wait) => {
                headers.insert(header::RETRY_AFTER, wait.as_secs().max(1).into());
            }
            _ => {}
        }
        answer.extensions_mut().insert(Refused { message });
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_and_the_api_server_is_not_quoted() {
        let error = ApiError::field("quota", "must be at least 1");
        assert_eq!(error.status(), StatusCode::BAD_REQUEST);
        assert_eq!(error.body().message, "[quota] must be at least 1");
        let fields = vec!["owner".to_owned()];
        let conflict = ApiError::Conflict { message: "somebody else edited it".to_owned(), fields };
        assert_eq!(conflict.body().errors, ["[owner] changed since"]);
    }

    #[test]
    fn a_caller_learns_how_to_go_on() {
        let answer = ApiError::TooMany(Duration::from_millis(2500)).into_response();
        assert_eq!(answer.headers()[header::RETRY_AFTER], "2");
        assert!(ApiError::Unauthorized.into_response().headers().contains_key(header::WWW_AUTHENTICATE));
        let refused = ApiError::InvalidToken("it has expired").into_response();
        let told = refused.headers()[header::WWW_AUTHENTICATE].to_str().unwrap().to_owned();
        assert!(told.starts_with("Bearer ") && told.contains("error=\"invalid_token\""), "{told}");
    }
}
