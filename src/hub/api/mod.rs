//! The API for programs and for the pages: a file per noun. Handlers authenticate, load, act and answer.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;

use super::caller::Caller;
use super::error::ApiError;
use super::state::Hub;

/// `/hub/api/v2`.
pub fn v2() -> Router<Hub> {
    Router::new().route("/whoami/", get(whoami))
}

/// `/hub/api/v1`: the same handlers; differs only where noted.
pub fn v1() -> Router<Hub> {
    v2()
}

/// `GET /hub/readyz`: 503 until the list of Sites is complete.
pub async fn ready(State(hub): State<Hub>) -> Result<&'static str, (StatusCode, &'static str)> {
    if hub.catalog.synced() {
        Ok("ok\n")
    } else {
        Err((StatusCode::SERVICE_UNAVAILABLE, "the first list is not complete\n"))
    }
}

async fn whoami(caller: Caller) -> Result<String, ApiError> {
    Ok(caller.person().map_or_else(|| "nobody".to_owned(), |person| person.user.clone()))
}
