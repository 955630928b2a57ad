//! The API for programs and for the pages: a file per noun. Handlers authenticate, load, act and answer.
//!
//! | module | owns |
//! |---|---|
//! | [`sites`], [`site`], [`actions`] | Sites: the list, one, what can be done to it |
//! | [`document`] | the OpenAPI document and its page |
//! | [`whoami`] | who asks |
//! | [`query`] | parameters of an address |

pub mod actions;
pub mod document;
pub mod query;
pub mod site;
pub mod sites;
mod whoami;

use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Hub;

/// Everything below `/hub/api/v2`; `/hub/api/v1` is the same.
pub fn routes() -> OpenApiRouter<Hub> {
    OpenApiRouter::new()
        .merge(whoami::routes())
        .routes(routes!(sites::list, sites::create))
        // With the slash: a nested `/` then ends in it.
        .nest("/sites/{space}/{site}/", of_site())
        .nest("/sites/-/{site_id}/", of_site())
}

/// What is below one Site, however it is addressed.
fn of_site() -> OpenApiRouter<Hub> {
    OpenApiRouter::new()
        .routes(routes!(site::get, site::put, site::patch, site::delete))
        .routes(routes!(actions::toggle))
        .routes(routes!(actions::upgrade))
        .routes(routes!(actions::restart))
        .routes(routes!(actions::extend))
}

/// `GET /hub/readyz`: 503 until the list of Sites is complete.
pub async fn ready(State(hub): State<Hub>) -> Result<&'static str, (StatusCode, &'static str)> {
    if hub.catalog.synced() {
        Ok("ok\n")
    } else {
        Err((StatusCode::SERVICE_UNAVAILABLE, "the first list is not complete\n"))
    }
}
