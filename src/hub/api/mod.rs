//! The API for programs and for the pages: a file per noun. Handlers authenticate, load, act and answer.
//!
//! | module | owns |
//! |---|---|
//! | [`sites`], [`site`], [`actions`] | Sites: the list, one, what can be done to it |
//! | [`status`], [`credentials`] | how a Site does; its tokens and addresses |
//! | [`platform`], [`templates`] | the platform and templates of Sites, for its administrators |
//! | [`document`] | the OpenAPI document and its page |
//! | `runs`, `health`, `reports` | bulk runs, the health of watched Sites, reports |
//! | `whoami` | who the caller is |
//! | [`query`], `bodies` | parameters of an address; what small bodies hold |

pub mod actions;
mod bodies;
pub mod credentials;
pub mod document;
mod health;
pub mod platform;
pub mod query;
mod reports;
pub mod requests;
mod runs;
pub mod site;
pub mod sites;
pub mod status;
pub mod templates;
mod whoami;

use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Hub;

/// Everything below `/hub/api/v2`; `/hub/api/v1` is the same.
pub fn routes() -> OpenApiRouter<Hub> {
    OpenApiRouter::new()
        .routes(routes!(sites::list, sites::create))
        .merge(platform::routes())
        .merge(templates::routes())
        // With the slash: a nested `/` then ends in it.
        .nest("/sites/{space}/{site}/", of_site())
        .nest("/sites/-/{site_id}/", of_site())
        .merge(runs::routes())
        .merge(health::routes())
        .merge(reports::routes())
        .merge(whoami::routes())
}

/// What is below one Site, however it is addressed.
fn of_site() -> OpenApiRouter<Hub> {
    OpenApiRouter::new()
        .routes(routes!(site::get, site::put, site::patch, site::delete))
        .routes(routes!(actions::toggle))
        .routes(routes!(actions::upgrade))
        .routes(routes!(actions::restart))
        .routes(routes!(actions::extend))
        .merge(status::routes())
        .merge(credentials::routes())
        .merge(requests::routes())
}

/// `GET /hub/readyz`: 503 until the list of Sites is complete.
pub async fn ready(State(hub): State<Hub>) -> Result<&'static str, (StatusCode, &'static str)> {
    if hub.catalog.synced() {
        Ok("ok\n")
    } else {
        Err((StatusCode::SERVICE_UNAVAILABLE, "the first list is not complete\n"))
    }
}
