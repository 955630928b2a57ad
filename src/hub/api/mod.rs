//! The API for programs and for the pages: a file per noun. Handlers authenticate, load, act and answer.

mod health;
mod reports;
mod runs;
mod whoami;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;

use super::state::Hub;

/// `/hub/api/v2`.
pub fn v2() -> Router<Hub> {
    let routes = whoami::routes().merge(runs::routes()).merge(reports::routes()).merge(health::routes());
    routes.into()
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
