//! The platform, for its administrators.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::caller::Caller;
use super::super::error::{ApiError, ErrorBody};
use super::super::forms::body::Fields;
use super::super::platform::quota::{self, QuotaView};
use super::super::platform::state::{self, MESSAGE, PlatformState};
use super::super::platform::volumes::{self, VolumeView};
use super::super::state::Hub;
use super::bodies::PlatformStateForm;
use super::site::{Done, done};
use crate::domain::application::Builtin;
use crate::domain::forms;

/// What is below `/platform/`.
pub fn routes() -> OpenApiRouter<Hub> {
    OpenApiRouter::new()
        .routes(routes!(read_state, write_state))
        .routes(routes!(quota))
        .routes(routes!(volumes))
        .routes(routes!(delete_volume))
        .routes(routes!(versions))
}

/// What the namespace may use.
#[derive(Serialize, ToSchema, Debug)]
pub struct Quotas {
    /// By name.
    pub quotas: Vec<QuotaView>,
}

/// Volumes that Sites have left.
#[derive(Serialize, ToSchema, Debug)]
pub struct Volumes {
    /// By name.
    pub volumes: Vec<VolumeView>,
}

/// What runs.
#[derive(Serialize, ToSchema, Debug)]
pub struct Versions {
    /// Of the Hub.
    pub hub: &'static str,
    /// Of the Kubernetes API server.
    pub kubernetes: String,
    /// Image of each application that new and upgraded Sites get.
    pub images: BTreeMap<String, String>,
}

/// The read-only switch.
#[utoipa::path(get, path = "/platform/state/", tag = "platform", responses(
    (status = 200, body = PlatformState),
    (status = 403, body = ErrorBody),
))]
async fn read_state(State(hub): State<Hub>, caller: Caller) -> Result<Json<PlatformState>, ApiError> {
    caller.platform_administrator()?;
    Ok(Json(state::read(&hub).await?))
}

/// Turns the read-only switch: `read_only`, and a `message` for those who are refused. The other replicas of the Hub
/// follow within seconds.
#[utoipa::path(put, path = "/platform/state/", tag = "platform",
    request_body(content((PlatformStateForm = "application/json"), (PlatformStateForm = "application/x-www-form-urlencoded"))),
    responses(
    (status = 200, body = PlatformState),
    (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 413, body = ErrorBody),
    (status = 415, body = ErrorBody),
))]
async fn write_state(
    State(hub): State<Hub>,
    caller: Caller,
    mut fields: Fields,
) -> Result<Json<PlatformState>, ApiError> {
    let user = caller.platform_administrator()?.user.clone();
    let read_only = fields.take_bool("read_only")?;
    let message = fields.take_text("message")?.unwrap_or_default();
    fields.nothing_else()?;
    let read_only = read_only.ok_or_else(|| ApiError::field("read_only", "is needed: true or false"))?;
    if message.chars().count() > MESSAGE || !forms::without_control(&message) {
        return Err(ApiError::field("message", format!("must be one line of at most {MESSAGE} characters")));
    }
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let state = PlatformState { read_only, message, updated_by: Some(user), updated_at: Some(now) };
    state::write(&hub, &state).await?;
    tracing::info!(target: "sites::audit", user = state.updated_by, read_only, "platform state");
    Ok(Json(state))
}

/// The resource quotas of the platform's namespace.
#[utoipa::path(get, path = "/platform/quota/", tag = "platform", responses(
    (status = 200, body = Quotas),
    (status = 403, body = ErrorBody),
))]
async fn quota(State(hub): State<Hub>, caller: Caller) -> Result<Json<Quotas>, ApiError> {
    caller.platform_administrator()?;
    Ok(Json(Quotas { quotas: quota::list(&hub).await? }))
}

/// Volumes that deleted Sites have left.
#[utoipa::path(get, path = "/platform/volumes/", tag = "platform", responses(
    (status = 200, body = Volumes),
    (status = 403, body = ErrorBody),
))]
async fn volumes(State(hub): State<Hub>, caller: Caller) -> Result<Json<Volumes>, ApiError> {
    caller.platform_administrator()?;
    Ok(Json(Volumes { volumes: volumes::list(&hub).await? }))
}

/// Deletes a volume that a deleted Site has left. What is on it may be lost for ever.
#[utoipa::path(delete, path = "/platform/volumes/{name}/", tag = "platform",
    params(("name" = String, Path, description = "Name of the volume")),
    responses(
    (status = 200, body = Done),
    (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    (status = 409, body = ErrorBody),
))]
async fn delete_volume(
    State(hub): State<Hub>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Done>, ApiError> {
    caller.platform_administrator()?;
    if !forms::segment(&name) || name.contains('_') {
        return Err(ApiError::field("name", "is no name of a volume"));
    }
    volumes::delete(&hub, &caller, &name).await?;
    Ok(done(format!("the volume {name} is deleted")))
}

/// What runs.
#[utoipa::path(get, path = "/platform/versions/", tag = "platform", responses(
    (status = 200, body = Versions),
    (status = 403, body = ErrorBody),
))]
async fn versions(State(hub): State<Hub>, caller: Caller) -> Result<Json<Versions>, ApiError> {
    caller.platform_administrator()?;
    let named = Builtin::ALL.into_iter().filter(|builtin| *builtin != Builtin::Custom).map(Builtin::name);
    Ok(Json(Versions {
        hub: env!("CARGO_PKG_VERSION"),
        kubernetes: hub.cluster.version().await?,
        images: named.map(|name| (name.to_owned(), hub.settings.image(name))).collect(),
    }))
}
