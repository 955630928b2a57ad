//! `/copy`, `/move` and `/checksums/…`.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tracing::info;
use utoipa::{IntoParams, ToSchema};

use super::Api;
use super::answer::{Done, Success, done, ok};
use super::asked::{Asked, Json, Options, blocking};
use super::error::{ApiError, Failure};
use crate::runtime::access::Wanted;
use crate::runtime::content::{Algorithm, SitePath};

/// From where to where.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"source": "drafts/report.html", "destination": "report.html", "overwrite": true}))]
pub struct Transfer {
    /// Relative to the site's root.
    source: String,
    /// Relative to the site's root: the new name, not the folder to put it in.
    destination: String,
    /// Replace a file or link that is there. A folder never is.
    #[serde(default)]
    overwrite: bool,
}

impl Transfer {
    fn paths(&self) -> Result<(SitePath, SitePath), ApiError> {
        let path = |name: &str, text: &str| {
            SitePath::from_text(text).map_err(|error| ApiError::bad_request(format!("{name}: {error}")))
        };
        Ok((path("source", &self.source)?, path("destination", &self.destination)?))
    }
}

/// Copy a file, link or folder.
#[utoipa::path(
    post, path = "/copy", tag = "files", operation_id = "copy",
    request_body = Transfer,
    responses(
        (status = 200, body = Success<Done>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 408, body = Failure), (status = 409, body = Failure),
        (status = 412, body = Failure), (status = 413, body = Failure), (status = 503, body = Failure),
        (status = 507, body = Failure),
    )
)]
pub async fn copy(
    State(api): State<Api>,
    asked: Asked,
    body: Result<Json<Transfer>, ApiError>,
) -> Result<Response, ApiError> {
    let caller = asked.allow(&api, Wanted::Write).await?;
    let Json(transfer) = body?;
    let (source, destination) = transfer.paths()?;
    let content = api.content.clone();
    blocking(move || content.copy(&source, &destination, transfer.overwrite)).await?;
    info!(source = transfer.source, destination = transfer.destination, %caller, "copied");
    Ok(done("copied"))
}

/// Move a file, link or folder.
#[utoipa::path(
    post, path = "/move", tag = "files", operation_id = "move",
    request_body = Transfer,
    responses(
        (status = 200, body = Success<Done>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 408, body = Failure), (status = 409, body = Failure),
        (status = 413, body = Failure), (status = 503, body = Failure), (status = 507, body = Failure),
    )
)]
pub async fn rename(
    State(api): State<Api>,
    asked: Asked,
    body: Result<Json<Transfer>, ApiError>,
) -> Result<Response, ApiError> {
    let caller = asked.allow(&api, Wanted::Write).await?;
    let Json(transfer) = body?;
    let (source, destination) = transfer.paths()?;
    let content = api.content.clone();
    blocking(move || content.rename(&source, &destination, transfer.overwrite)).await?;
    info!(source = transfer.source, destination = transfer.destination, %caller, "moved");
    Ok(done("moved"))
}

/// Options of a checksum.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ChecksumOptions {
    /// Default sha256.
    #[serde(default)]
    #[param(inline)]
    algorithm: Algorithm,
}

/// A checksum.
#[derive(Serialize, ToSchema)]
pub struct Checksum {
    /// Of which file, relative to the site's root.
    path: String,
    /// How it was made.
    algorithm: Algorithm,
    /// Lower-case hexadecimal digits.
    #[serde(rename = "checksum")]
    digits: String,
    /// Bytes.
    size: u64,
}

/// The checksum of a file.
#[utoipa::path(
    get, path = "/checksums/{*path}", tag = "files", operation_id = "get_checksum",
    params(("path" = String, Path, description = "Percent-encoded"), ChecksumOptions),
    responses(
        (status = 200, body = Success<Checksum>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 409, body = Failure), (status = 503, body = Failure),
    )
)]
pub async fn checksum(
    State(api): State<Api>,
    asked: Asked,
    Options(options): Options<ChecksumOptions>,
) -> Result<Response, ApiError> {
    asked.allow(&api, Wanted::Read).await?;
    let (content, path) = (api.content.clone(), asked.path.clone());
    let (digits, size) = blocking(move || content.checksum(&path, options.algorithm)).await?;
    Ok(ok(Checksum { path: asked.path.to_string(), algorithm: options.algorithm, digits, size }))
}
