//! `/files/…` and `/pub/files/…`: list, download, upload, delete.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tracing::info;
use utoipa::{IntoParams, ToSchema};

use super::answer::{Done, Success, ok};
use super::asked::{Asked, Options, blocking};
use super::error::{ApiError, Failure};
use super::{Api, download, upload};
use crate::runtime::access::Wanted;
use crate::runtime::content::{ContentError, Entry, EntryType, ListOptions};

/// Options of a listing.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FilesOptions {
    /// List instead of download. A folder is listed in any case.
    #[serde(default)]
    list: bool,
    /// List everything below, not only the folder itself. Links are not followed.
    #[serde(default)]
    recursive: bool,
    /// `d` or `directory`: only folders, and links to folders; `f` or `file`: only files.
    #[serde(rename = "type")]
    #[param(example = "d")]
    only: Option<String>,
    /// At most so many entries; 200,000 at the most.
    #[param(schema_with = whole_number)]
    limit: Option<u64>,
}

/// Without a format: a number above the largest of 64 bits with a sign is taken too.
fn whole_number() -> utoipa::openapi::schema::Object {
    utoipa::openapi::ObjectBuilder::new().schema_type(utoipa::openapi::schema::Type::Integer).minimum(Some(0)).build()
}

impl FilesOptions {
    fn listing(&self) -> Result<ListOptions, ApiError> {
        let only = match self.only.as_deref() {
            None | Some("") => None,
            Some("d" | "directory") => Some(EntryType::Directory),
            Some("f" | "file") => Some(EntryType::File),
            Some(_) => return Err(ApiError::bad_request("type: give d for folders or f for files")),
        };
        let limit = self.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(ListOptions { recursive: self.recursive, only, limit })
    }
}

/// A listing.
#[derive(Serialize, ToSchema)]
pub struct Files {
    /// The entries, by name.
    pub files: Vec<Entry>,
    /// Whether there are more than the limit allows.
    pub truncated: bool,
}

/// The bytes of a file.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "documents the bytes")]
pub struct Bytes(Vec<u8>);

/// What JSON can be here: a listing, or a file that is JSON itself.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "documents the answer")]
pub enum Shown {
    /// A listing.
    Listing(Success<Files>),
    /// The file's content.
    File(serde_json::Value),
}

/// List a folder, or download a file.
///
/// A download takes `Range`, `If-Range`, `If-None-Match` and `If-Modified-Since`.
#[utoipa::path(
    get, path = "/files/{*path}", tag = "files", operation_id = "get_files",
    security(("token" = []), ("password" = []), ("signature" = [])),
    params(("path" = String, Path, description = "Percent-encoded; empty for the site's root"), FilesOptions),
    responses(
        (status = 200, description = "A listing, or the file's bytes", content(
            (Shown = "application/json"), (Bytes = "*/*"))),
        (status = 206, description = "A part of the file", body = Bytes, content_type = "*/*"),
        (status = 304, description = "The client has this version"),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 416, body = Failure), (status = 503, body = Failure),
    )
)]
pub async fn get(
    State(api): State<Api>,
    asked: Asked,
    Options(options): Options<FilesOptions>,
) -> Result<Response, ApiError> {
    asked.allow(&api, Wanted::Read).await?;
    show(&api, &asked, &options).await
}

/// List a folder, or download a file, as visitors may: everybody on a public site.
#[utoipa::path(
    get, path = "/pub/files/{*path}", tag = "files", operation_id = "get_public_files",
    security(("token" = []), ("password" = []), ("signature" = []), ()),
    params(("path" = String, Path, description = "Percent-encoded; empty for the site's root"), FilesOptions),
    responses(
        (status = 200, description = "A listing, or the file's bytes", content(
            (Shown = "application/json"), (Bytes = "*/*"))),
        (status = 206, description = "A part of the file", body = Bytes, content_type = "*/*"),
        (status = 304, description = "The client has this version"),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 416, body = Failure), (status = 503, body = Failure),
    )
)]
pub async fn get_public(
    State(api): State<Api>,
    asked: Asked,
    Options(options): Options<FilesOptions>,
) -> Result<Response, ApiError> {
    asked.allow(&api, Wanted::View).await?;
    show(&api, &asked, &options).await
}

async fn show(api: &Api, asked: &Asked, options: &FilesOptions) -> Result<Response, ApiError> {
    let listing = options.listing()?;
    let (content, path) = (api.content.clone(), asked.path.clone());
    let list = options.list;
    let found = blocking(move || {
        if list || path.is_root() {
            return content.list(&path, &listing).map(Found::Folder);
        }
        match content.read(&path) {
            Err(ContentError::IsAFolder(_)) => content.list(&path, &listing).map(Found::Folder),
            opened => opened.map(Found::File),
        }
    })
    .await
    // Nothing can be below a file.
    .map_err(|error| match error.status {
        http::StatusCode::CONFLICT => {
            ApiError::new(http::StatusCode::NOT_FOUND, format!("{}: no such folder was found", error.message))
        }
        _ => error,
    })?;
    match found {
        Found::Folder(listing) => Ok(ok(Files { files: listing.entries, truncated: listing.truncated })),
        Found::File(opened) => download::answer(asked, opened, api.access.is_public()),
    }
}

enum Found {
    Folder(crate::runtime::content::Listing),
    File(crate::runtime::content::Opened),
}

/// Options of an upload.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct UploadOptions {
    /// Keep a file that is replaced, as `<name>.backup-<UTC time>` beside it. Default false.
    #[serde(default)]
    backup_if_present: bool,
}

/// What was uploaded.
#[derive(Serialize, ToSchema)]
pub struct Uploaded {
    /// What was done.
    pub message: String,
    /// Where it is, relative to the site's root.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Whether there was no such file before.
    pub created: bool,
    /// Where the replaced file is kept.
    pub backup: Option<String>,
}

/// Write a file: the body as it is, or one `multipart/form-data` part, whose file name means nothing.
///
/// Missing folders are made. Readers see the old file or the new one, never a part. `If-None-Match: *` writes only a
/// new file, `If-Match` only over the version that the client knows.
#[utoipa::path(
    put, path = "/files/{*path}", tag = "files", operation_id = "put_file",
    security(("token" = []), ("password" = []), ("signature" = [])),
    params(("path" = String, Path, description = "Percent-encoded"), UploadOptions),
    request_body(content((Bytes = "application/octet-stream"), (upload::Form = "multipart/form-data"))),
    responses(
        (status = 200, description = "Written, new or not", body = Success<Uploaded>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 408, body = Failure), (status = 409, body = Failure),
        (status = 412, body = Failure), (status = 503, body = Failure), (status = 507, body = Failure),
    )
)]
pub async fn put(
    State(api): State<Api>,
    asked: Asked,
    options: Result<Options<UploadOptions>, ApiError>,
    body: Body,
) -> Result<Response, ApiError> {
    let mut body = Some(body);
    let result = receive(&api, &asked, options, &mut body).await;
    if result.is_err() {
        crate::runtime::rest::drain(body.unwrap_or_default()).await;
    }
    result
}

async fn receive(
    api: &Api,
    asked: &Asked,
    options: Result<Options<UploadOptions>, ApiError>,
    body: &mut Option<Body>,
) -> Result<Response, ApiError> {
    let caller = asked.allow(api, Wanted::Write).await?;
    let Options(options) = options?;
    let condition = upload::condition(&asked.headers)?;
    let written = upload::receive(api, asked, body, options.backup_if_present, condition).await?;
    info!(path = %asked.path, size = written.size, created = written.created, %caller, "file written");
    Ok(ok(Uploaded {
        message: if written.created { "created" } else { "replaced" }.to_owned(),
        path: asked.path.to_string(),
        size: written.size,
        created: written.created,
        backup: written.backup,
    }))
}

/// What was deleted.
#[derive(Serialize, ToSchema)]
pub struct Deleted {
    /// What was done.
    pub message: String,
    /// Files and links.
    pub files: u64,
    /// Bytes that are free again.
    pub bytes: u64,
}

/// Delete a file, a link (never its target) or a folder with all that is in it; of the root, all content.
#[utoipa::path(
    delete, path = "/files/{*path}", tag = "files", operation_id = "delete_files",
    security(("token" = []), ("password" = []), ("signature" = [])),
    params(("path" = String, Path, description = "Percent-encoded; empty for all content")),
    responses(
        (status = 200, body = Success<Deleted>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 409, body = Failure), (status = 503, body = Failure),
    )
)]
pub async fn delete(State(api): State<Api>, asked: Asked) -> Result<Response, ApiError> {
    let caller = asked.allow(&api, Wanted::Write).await?;
    let (content, path) = (api.content.clone(), asked.path.clone());
    let removed = blocking(move || content.remove(&path)).await?;
    info!(path = %asked.path, files = removed.files, %caller, "deleted");
    Ok(ok(Deleted { message: "deleted".to_owned(), files: removed.files, bytes: removed.bytes }))
}

/// Make a folder, and those above it. One that is there is left alone.
#[utoipa::path(
    put, path = "/directories/{*path}", tag = "files", operation_id = "put_directory",
    params(("path" = String, Path, description = "Percent-encoded")),
    responses(
        (status = 200, body = Success<Done>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 409, body = Failure), (status = 503, body = Failure), (status = 507, body = Failure),
    )
)]
pub async fn put_directory(State(api): State<Api>, asked: Asked) -> Result<Response, ApiError> {
    let caller = asked.allow(&api, Wanted::Write).await?;
    let (content, path) = (api.content.clone(), asked.path.clone());
    blocking(move || content.make_folders(&path)).await?;
    info!(path = %asked.path, %caller, "folder made");
    Ok(super::answer::done("the folder is there"))
}
