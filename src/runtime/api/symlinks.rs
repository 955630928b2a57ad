//! `/symlinks/…`: links inside the site.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tracing::info;
use utoipa::{IntoParams, ToSchema};

use super::Api;
use super::answer::{Success, ok};
use super::asked::{Asked, Json, Options, blocking};
use super::error::{ApiError, Failure};
use crate::runtime::access::Wanted;
use crate::runtime::content::SitePath;

/// Options of a new link.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LinkOptions {
    /// Point a link that is there elsewhere. A file or folder is never replaced.
    #[serde(default)]
    force: bool,
}

/// A new link. Read as JSON whatever `Content-Type` says.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"target": "fdb/develop"}))]
pub struct NewLink {
    /// What it points to, relative to the site's root; it must exist. A slash at the beginning means nothing.
    #[schema(example = "fdb/develop")]
    target: String,
}

/// A link.
#[derive(Serialize, ToSchema)]
pub struct Link {
    /// Where it is, relative to the site's root.
    pub path: String,
    /// What it points to, relative to the site's root; absent when that is outside.
    pub target: Option<String>,
}

/// Make a link, or point one elsewhere in one step.
#[utoipa::path(
    put, path = "/symlinks/{*path}", tag = "symlinks", operation_id = "put_symlink",
    params(("path" = String, Path, description = "Percent-encoded"), LinkOptions),
    request_body = NewLink,
    responses(
        (status = 200, body = Success<Link>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 408, body = Failure), (status = 409, body = Failure),
        (status = 413, body = Failure), (status = 503, body = Failure), (status = 507, body = Failure),
    )
)]
pub async fn put(
    State(api): State<Api>,
    asked: Asked,
    options: Result<Options<LinkOptions>, ApiError>,
    body: Result<Json<NewLink>, ApiError>,
) -> Result<Response, ApiError> {
    let caller = asked.allow(&api, Wanted::Write).await?;
    let (Options(options), Json(new)) = (options?, body?);
    let target = SitePath::from_text(&new.target).map_err(|error| ApiError::bad_request(format!("target: {error}")))?;
    let link = Link { path: asked.path.to_string(), target: Some(target.to_string()) };
    let (content, path) = (api.content.clone(), asked.path.clone());
    blocking(move || content.link(&path, &target, options.force)).await?;
    info!(path = link.path, target = link.target, %caller, "link made");
    Ok(ok(link))
}

/// Look at a link.
#[utoipa::path(
    get, path = "/symlinks/{*path}", tag = "symlinks", operation_id = "get_symlink",
    params(("path" = String, Path, description = "Percent-encoded")),
    responses(
        (status = 200, body = Success<Link>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 409, body = Failure), (status = 503, body = Failure),
    )
)]
pub async fn get(State(api): State<Api>, asked: Asked) -> Result<Response, ApiError> {
    asked.allow(&api, Wanted::Read).await?;
    let (content, path) = (api.content.clone(), asked.path.clone());
    let target = blocking(move || content.link_target(&path)).await?;
    Ok(ok(Link { path: asked.path.to_string(), target: target.map(|target| target.to_string()) }))
}

/// Delete a link; its target stays. What is no link is not found.
#[utoipa::path(
    delete, path = "/symlinks/{*path}", tag = "symlinks", operation_id = "delete_symlink",
    params(("path" = String, Path, description = "Percent-encoded")),
    responses(
        (status = 200, body = Success<super::answer::Done>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 409, body = Failure), (status = 503, body = Failure),
    )
)]
pub async fn delete(State(api): State<Api>, asked: Asked) -> Result<Response, ApiError> {
    let caller = asked.allow(&api, Wanted::Write).await?;
    let (content, path) = (api.content.clone(), asked.path.clone());
    blocking(move || {
        content.link_target(&path)?;
        content.remove(&path)
    })
    .await?;
    info!(path = %asked.path, %caller, "link deleted");
    Ok(super::answer::done("deleted"))
}
