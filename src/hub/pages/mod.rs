//! Pages for browsers. Owns their form; what they say comes from the handlers.

pub mod callback;
pub mod error;
pub mod home;

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

/// The one stylesheet.
pub async fn style() -> Response {
    let headers = [(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, "public, max-age=3600")];
    (headers, include_str!("templates/hub.css")).into_response()
}

/// Whether the caller is a person at a browser: programs get JSON.
pub fn wants_page(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT);
    accepts.iter().filter_map(|value| value.to_str().ok()).any(|value| value.to_ascii_lowercase().contains("text/html"))
}
