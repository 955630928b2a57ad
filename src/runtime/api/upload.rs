//! Receiving a file: in blocks, straight to the volume, however large it is.

use std::time::Duration;

use axum::body::Body;
use futures::{Stream, StreamExt};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};
use hyper::body::Bytes;
use utoipa::ToSchema;

use super::Api;
use super::asked::{Asked, blocking};
use super::error::ApiError;
use crate::runtime::content::{Condition, Upload, WriteOptions, Written};

/// Bytes that are collected before they are written.
const BLOCK: usize = 256 << 10;
/// Longest silence of a client.
const PATIENCE: Duration = Duration::from_secs(60);

/// The form of an upload.
#[derive(ToSchema)]
pub struct Form {
    /// The file. Its name and type mean nothing.
    #[schema(value_type = String, format = Binary)]
    #[expect(dead_code, reason = "documents the form")]
    file: Vec<u8>,
}

/// What the request's headers demand of the file that is replaced.
pub(super) fn condition(headers: &HeaderMap) -> Result<Condition, ApiError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    match (text(IF_NONE_MATCH), text(IF_MATCH)) {
        (None, None) => Ok(Condition::Any),
        (Some("*"), None) => Ok(Condition::Absent),
        (None, Some(tag)) if tag.starts_with('"') && !tag.contains(',') => Ok(Condition::Matches(tag.to_owned())),
        _ => Err(ApiError::bad_request("give If-None-Match: * or If-Match: \"<entity tag>\", nothing else")),
    }
}

/// Receives the file of a request. Takes `body` when it begins to read it.
pub(super) async fn receive(
    api: &Api,
    asked: &Asked,
    body: &mut Option<Body>,
    backup: bool,
    condition: Condition,
) -> Result<Written, ApiError> {
    let boundary = asked.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let boundary =
        match boundary.filter(|kind| kind.trim_start().to_ascii_lowercase().starts_with("multipart/form-data")) {
            Some(kind) => Some(multer::parse_boundary(kind).map_err(|error| broken(&error))?),
            None => None,
        };
    let length = asked.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let (content, path) = (api.content.clone(), asked.path.clone());
    // Of a form the length is that of the whole.
    let length = if boundary.is_none() { length } else { None };
    let upload = blocking(move || content.write(path, length)).await?;
    let mut stream = body.take().unwrap_or_default().into_data_stream();
    let result = match boundary {
        None => store(upload, &mut stream).await,
        Some(boundary) => {
            let mut form = multer::Multipart::new(&mut stream, boundary);
            from_form(&mut form, upload).await
        }
    };
    let upload = match result {
        Ok(upload) => upload,
        Err(error) => {
            *body = Some(Body::from_stream(stream));
            return Err(error);
        }
    };
    let new_only = condition == Condition::Absent;
    let finished = blocking(move || upload.finish(&WriteOptions { backup, condition })).await;
    finished.map_err(|mut error| {
        if new_only && error.status == StatusCode::CONFLICT {
            error.status = StatusCode::PRECONDITION_FAILED;
        }
        error
    })
}

/// The one file of a form: the part `file`, or whichever has a file's name.
async fn from_form(form: &mut multer::Multipart<'_>, upload: Upload) -> Result<Upload, ApiError> {
    let mut upload = Some(upload);
    let mut stored = None;
    while let Some(mut field) = patient(form.next_field()).await?.map_err(|error| broken(&error))? {
        if field.name() != Some("file") && field.file_name().is_none() {
            continue;
        }
        let Some(upload) = upload.take() else {
            return Err(ApiError::bad_request("the form has more than one file: send one at a time"));
        };
        stored = Some(store(upload, &mut field).await?);
    }
    stored.ok_or_else(|| ApiError::bad_request("the form has no part named 'file'"))
}

async fn store<E: std::fmt::Display>(
    mut upload: Upload,
    stream: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
) -> Result<Upload, ApiError> {
    let mut block = Vec::new();
    loop {
        let chunk = patient(stream.next()).await?.transpose().map_err(|error| broken(&error))?;
        let ended = chunk.is_none();
        block.extend_from_slice(&chunk.unwrap_or_default());
        if block.len() >= BLOCK || ended && !block.is_empty() {
            (upload, block) = blocking(move || {
                upload.append(&block)?;
                block.clear();
                Ok((upload, block))
            })
            .await?;
        }
        if ended {
            return Ok(upload);
        }
    }
}

async fn patient<T>(reading: impl Future<Output = T>) -> Result<T, ApiError> {
    let late = |_| ApiError::new(StatusCode::REQUEST_TIMEOUT, "the body did not go on");
    tokio::time::timeout(PATIENCE, reading).await.map_err(late)
}

fn broken(error: &impl std::fmt::Display) -> ApiError {
    ApiError::bad_request(format!("the body broke off or is no valid form: {error}"))
}
