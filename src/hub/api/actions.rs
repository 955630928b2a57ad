//! What can be done to one Site: `toggle/`, `upgrade/`, `restart/`, `retention-date/`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::super::caller::Caller;
use super::super::error::{ApiError, ErrorBody};
use super::super::forms::body::Fields;
use super::super::sites::address::Address;
use super::super::sites::view::SiteView;
use super::super::sites::{actions, find};
use super::super::state::Hub;
use super::super::trace::Trace;
use super::bodies::ToggleForm;
use super::query::Parameters;
use super::site::{Done, done, shown};

/// Switches the Site off (archives it) or on again. The field `enabled` says which; without it, it is turned over.
#[utoipa::path(post, path = "/toggle/", tag = "actions",
    request_body(content((ToggleForm = "application/json"), (ToggleForm = "application/x-www-form-urlencoded"))),
    responses(
    (status = 200, body = SiteView),
    (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    (status = 409, body = ErrorBody), (status = 413, body = ErrorBody), (status = 415, body = ErrorBody),
))]
pub async fn toggle(
    State(hub): State<Hub>,
    caller: Caller,
    trace: Trace,
    address: Address,
    mut fields: Fields,
) -> Result<Response, ApiError> {
    let site = find::administered(&hub, &caller, &address).await?;
    let enabled = fields.take_bool("enabled")?;
    fields.nothing_else()?;
    let edit = actions::toggle(&hub, &caller, site, enabled, &trace).await?;
    Ok(shown(&hub, &caller, &edit.site, None))
}

/// Upgrades the platform's containers. With `force` (platform administrators) the operator makes a full pass even
/// when nothing is newer.
#[utoipa::path(post, path = "/upgrade/", tag = "actions",
    params(("force" = Option<bool>, Query, description = "`true` or `false`")),
    responses(
    (status = 202, body = Done, description = "The operator goes on"),
    (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    (status = 409, body = ErrorBody),
))]
pub async fn upgrade(
    State(hub): State<Hub>,
    caller: Caller,
    trace: Trace,
    address: Address,
    mut given: Parameters,
) -> Result<Response, ApiError> {
    let force = given.take_bool("force")?;
    given.nothing_else()?;
    let site = find::administered(&hub, &caller, &address).await?;
    if force {
        caller.platform_administrator()?;
    }
    let edit = actions::upgrade(&hub, &caller, site, force, &trace).await?;
    let message = if edit.patch.is_null() { "the site is up to date" } else { "the site is being upgraded" };
    Ok((StatusCode::ACCEPTED, done(message)).into_response())
}

/// Deletes the Site's pods; they come again at once.
#[utoipa::path(post, path = "/restart/", tag = "actions", responses(
    (status = 202, body = Done, description = "The pods are being replaced"),
    (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    (status = 410, body = ErrorBody, description = "The site is archived"),
))]
pub async fn restart(State(hub): State<Hub>, caller: Caller, address: Address) -> Result<Response, ApiError> {
    let site = find::enabled(&hub, &caller, &address, "it has no pods to restart").await?;
    let pods = actions::restart(&hub, &site).await?;
    Ok((StatusCode::ACCEPTED, done(format!("{pods} of the site's pods are being replaced"))).into_response())
}

/// Moves the retention date to one year from today. Takes no body.
#[utoipa::path(patch, path = "/retention-date/", tag = "actions", responses(
    (status = 200, body = SiteView),
    (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    (status = 409, body = ErrorBody),
))]
pub async fn extend(
    State(hub): State<Hub>,
    caller: Caller,
    trace: Trace,
    address: Address,
) -> Result<Response, ApiError> {
    let site = find::administered(&hub, &caller, &address).await?;
    let edit = actions::extend(&hub, &caller, site, &trace).await?;
    Ok(shown(&hub, &caller, &edit.site, None))
}
