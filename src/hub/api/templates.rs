//! Templates of new Sites.

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::caller::Caller;
use super::super::error::{ApiError, ErrorBody};
use super::super::forms::body::Fields;
use super::super::forms::site::SiteForm;
use super::super::state::Hub;
use super::super::templates::{self, TemplateView};
use super::site::{Done, done};

/// What is below `/templates/`.
pub fn routes() -> OpenApiRouter<Hub> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get, put, delete))
        // A parameter is never empty, so the empty name needs its own answer (B24).
        .route("/templates//", axum::routing::any(async || ApiError::field("template", "is empty")))
}

/// Templates of new Sites.
#[derive(Serialize, ToSchema, Debug)]
pub struct TemplateList {
    /// By name.
    pub templates: Vec<TemplateView>,
}

/// All templates.
#[utoipa::path(get, path = "/templates/", tag = "platform", responses(
    (status = 200, body = TemplateList),
    (status = 500, body = ErrorBody),
))]
async fn list(State(hub): State<Hub>, caller: Caller) -> Result<Json<TemplateList>, ApiError> {
    caller.somebody()?;
    Ok(Json(TemplateList { templates: templates::list(&hub).await? }))
}

/// One template.
#[utoipa::path(get, path = "/templates/{name}/", tag = "platform",
    params(("name" = String, Path, description = "Name of the template")),
    responses(
    (status = 200, body = TemplateView),
    (status = 400, body = ErrorBody), (status = 404, body = ErrorBody), (status = 500, body = ErrorBody),
))]
async fn get(State(hub): State<Hub>, caller: Caller, Path(name): Path<String>) -> Result<Json<TemplateView>, ApiError> {
    caller.somebody()?;
    Ok(Json(templates::get(&hub, &name).await?))
}

/// Saves a template: fields of the form of a Site, all optional.
#[utoipa::path(put, path = "/templates/{name}/", tag = "platform",
    params(("name" = String, Path, description = "Name of the template")),
    request_body(content((SiteForm = "application/json"), (SiteForm = "application/x-www-form-urlencoded"))),
    responses(
    (status = 200, body = TemplateView),
    (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 409, body = ErrorBody),
    (status = 413, body = ErrorBody), (status = 415, body = ErrorBody), (status = 500, body = ErrorBody),
))]
async fn put(
    State(hub): State<Hub>,
    caller: Caller,
    Path(name): Path<String>,
    fields: Fields,
) -> Result<Json<TemplateView>, ApiError> {
    let user = caller.platform_administrator()?.user.clone();
    let template = templates::save(&hub, &name, fields.0).await?;
    tracing::info!(target: "sites::audit", user, template = template.name, deed = "saved", "template");
    Ok(Json(template))
}

/// Deletes a saved template.
#[utoipa::path(delete, path = "/templates/{name}/", tag = "platform",
    params(("name" = String, Path, description = "Name of the template")),
    responses(
    (status = 200, body = Done),
    (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    (status = 409, body = ErrorBody), (status = 500, body = ErrorBody),
))]
async fn delete(State(hub): State<Hub>, caller: Caller, Path(name): Path<String>) -> Result<Json<Done>, ApiError> {
    let user = caller.platform_administrator()?.user.clone();
    templates::delete(&hub, &name).await?;
    tracing::info!(target: "sites::audit", user, template = name, deed = "deleted", "template");
    Ok(done("the template is deleted"))
}
