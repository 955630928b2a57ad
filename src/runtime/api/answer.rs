//! Answers that went well.

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

/// `status: "OK"` and what goes with it.
#[derive(Serialize, ToSchema)]
pub struct Success<T> {
    /// `OK`.
    #[schema(example = "OK")]
    pub status: &'static str,
    /// The answer.
    #[serde(flatten)]
    pub answer: T,
}

/// What was done, in words.
#[derive(Serialize, ToSchema)]
pub struct Done {
    /// What was done.
    pub message: String,
}

/// 200 with `status: "OK"`.
pub(super) fn ok<T: Serialize>(answer: T) -> Response {
    json(StatusCode::OK, &Success { status: "OK", answer })
}

/// 200 with a message.
pub(super) fn done(message: impl Into<String>) -> Response {
    ok(Done { message: message.into() })
}

/// JSON that nobody keeps.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    // Types of ours, without maps of odd keys: they serialize.
    let mut response = Response::new(Body::from(serde_json::to_vec(value).unwrap_or_default()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
