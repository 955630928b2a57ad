//! `/health/`: how the watched Sites are, for platform administrators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::caller::Caller;
use super::super::error::{ApiError, ErrorBody};
use super::super::health::HealthReport;
use super::super::state::Hub;

/// The routes.
pub fn routes() -> OpenApiRouter<Hub> {
    OpenApiRouter::new().routes(routes!(report)).routes(routes!(probe))
}

/// The probes have begun.
#[derive(Serialize, ToSchema, Debug)]
pub struct ProbesAccepted {
    /// Always `accepted`: the answers stand in the report when they are there.
    pub status: &'static str,
    /// Sites that are asked.
    pub sites: usize,
}

/// The monitored and enabled Sites: what their status says, and what the last probe said.
#[utoipa::path(
    get, path = "/health/", tag = "health", operation_id = "get_health",
    responses(
        (status = OK, body = HealthReport),
        (status = FORBIDDEN, body = ErrorBody),
    ),
)]
pub async fn report(State(hub): State<Hub>, caller: Caller) -> Result<Json<HealthReport>, ApiError> {
    caller.platform_administrator()?;
    Ok(Json(hub.health.report().await))
}

/// Asks each monitored and enabled Site for its front page, in the background.
#[utoipa::path(
    post, path = "/health/probe/", tag = "health", operation_id = "probe_sites",
    responses(
        (status = ACCEPTED, body = ProbesAccepted),
        (status = FORBIDDEN, body = ErrorBody),
        (status = CONFLICT, body = ErrorBody, description = "They are being probed already"),
        (status = SERVICE_UNAVAILABLE, body = ErrorBody, description = "Redis is down or off"),
    ),
)]
pub async fn probe(State(hub): State<Hub>, caller: Caller) -> Result<(StatusCode, Json<ProbesAccepted>), ApiError> {
    caller.platform_administrator()?;
    let sites = hub.health.probe().await?;
    Ok((StatusCode::ACCEPTED, Json(ProbesAccepted { status: "accepted", sites })))
}
