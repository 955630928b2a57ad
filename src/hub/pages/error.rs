//! What a browser sees when something did not work: `/hub/error/page/{code}/`, where the routes of archived Sites
//! lead, and the pages of the Hub's own errors.
//!
//! Owns the words for each status. A page names no Site: it is shown to anybody.

use std::sync::Arc;

use askama::Template;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::wants_page;
use crate::settings::Settings;

/// Status, title, what to do.
const PAGES: [(u16, &str, &str); 13] = [
    (
        400,
        "This request is not valid",
        "The address or what was sent with it cannot be understood. Go back and try again.",
    ),
    (401, "Please sign in", "This page is shown to people who are signed in."),
    (
        403,
        "You may not see this page",
        "You are signed in, but this page is not shared with you. Ask its owner for access.",
    ),
    (404, "Not found", "The page was not found: there is nothing at this address. It may have been moved or removed."),
    (405, "This is not possible here", "The address exists, but not for what was asked of it."),
    (409, "Somebody was faster", "What you see has changed since. Load the page again."),
    (
        410,
        "This site is archived",
        "Its owner or the platform has switched it off. Its content is kept: the owner can switch it on again.",
    ),
    (413, "This is too large", "What was sent is larger than what is accepted here."),
    (415, "This form is not understood", "It was sent in a way that is not accepted here."),
    (429, "Too many requests", "Wait a moment and try again."),
    (500, "Something went wrong", "This is our mistake, and it was written down. Try again later."),
    (502, "The site does not answer", "It may be starting. Try again in a minute."),
    (503, "Not available at the moment", "Try again in a minute."),
];

#[derive(Template)]
#[template(path = "error.html")]
struct Page<'a> {
    brand: &'a str,
    code: u16,
    title: &'a str,
    text: &'a str,
}

/// `GET /hub/error/page/{code}/`: the page answers with the code that it is about, 404 for one without a page.
pub async fn page(State(settings): State<Arc<Settings>>, Path(code): Path<String>, headers: HeaderMap) -> Response {
    let code = code.parse().ok().filter(|code| PAGES.iter().any(|(known, ..)| known == code));
    answer(&settings, code.unwrap_or(404), &headers)
}

/// Any other address.
pub async fn not_found(State(settings): State<Arc<Settings>>, headers: HeaderMap) -> Response {
    answer(&settings, 404, &headers)
}

/// A page for browsers, `{"status":"error","message":…}` for programs.
pub fn answer(settings: &Settings, code: u16, headers: &HeaderMap) -> Response {
    let (title, text) = words(code);
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let page = Page { brand: &settings.site.brand, code, title, text };
    match page.render() {
        Ok(html) if wants_page(headers) => {
            (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
        }
        _ => (status, Json(json!({"status": "error", "message": message(title, text)}))).into_response(),
    }
}

/// The page of a refusal that says itself what is wrong.
pub fn refusal(settings: &Settings, code: u16, text: &str, headers: &HeaderMap) -> Response {
    let page = Page { brand: &settings.site.brand, code, title: words(code).0, text };
    match page.render() {
        Ok(html) => {
            let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
        }
        Err(_) => answer(settings, code, headers),
    }
}

/// Title and text of a status; that of 500 for one without.
fn words(code: u16) -> (&'static str, &'static str) {
    let of = |wanted: u16| PAGES.iter().find(|(known, ..)| *known == wanted);
    of(code).or_else(|| of(500)).map_or(("", ""), |(_, title, text)| (title, text))
}

/// One line for programs. Clients look for `not found` to tell a missing thing from a broken one.
fn message(title: &str, text: &str) -> String {
    format!("{title}: {text}")
}
