//! What every handler needs of a request: who asks for which content, its options, its small body.

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, MatchedPath, Query, Request};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;

use super::error::ApiError;
use super::{Api, front};
use crate::runtime::access::{self, Caller, Wanted};
use crate::runtime::content::{ContentError, SitePath};

/// Largest JSON body, in bytes.
const MAX_JSON: usize = 64 << 10;
/// Longest wait for one.
const JSON_PATIENCE: Duration = Duration::from_secs(15);

/// The request's credentials and the content path that it names.
pub struct Asked {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    query: String,
    below: Option<SitePath>,
    /// What the path of the request names; the root if it names nothing.
    pub(super) path: SitePath,
}

impl Asked {
    /// Who asks, if that may be.
    pub(super) async fn allow(&self, api: &Api, wanted: Wanted) -> Result<Caller, ApiError> {
        let request = access::Request {
            method: &self.method,
            headers: &self.headers,
            query: &self.query,
            path: self.below.as_ref(),
            content: Some(&self.path),
        };
        Ok(api.access.decide(&request, wanted).await?)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let matched = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
        // What a handler's own pattern has before the path; everything behind it is the client's text.
        let before = matched.split("/{*").next().unwrap_or_default();
        let path = match parts.uri.path().strip_prefix(before) {
            Some(rest) if matched.contains("{*") => SitePath::from_encoded(rest)?,
            _ => SitePath::root(),
        };
        Ok(Self {
            method: parts.method.clone(),
            headers: parts.headers.clone(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            below: parts.extensions.get::<front::Below>().and_then(|below| below.0.clone()),
            path,
        })
    }
}

/// Options of the query; unknown ones are left alone, wrong ones are named.
pub struct Options<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Options<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Query::try_from_uri(&parts.uri)
            .map(|Query(options)| Self(options))
            .map_err(|error| ApiError::bad_request(format!("query: {error}")))
    }
}

/// A JSON body, whatever `Content-Type` says: clients send it as a form.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        let reading = Limited::new(request.into_body(), MAX_JSON).collect();
        let body = tokio::time::timeout(JSON_PATIENCE, reading)
            .await
            .map_err(|_| ApiError::new(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"))?
            .map_err(|error| match error.downcast_ref::<http_body_util::LengthLimitError>() {
                Some(_) => {
                    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a body of {MAX_JSON} bytes is the most"))
                }
                None => ApiError::bad_request("the body broke off"),
            })?
            .to_bytes();
        // A list would be read as an object too, by the order of its fields.
        if !body.trim_ascii_start().starts_with(b"{") {
            return Err(ApiError::bad_request("the body is not the JSON that is expected: give an object"));
        }
        let mut json = serde_json::Deserializer::from_slice(&body);
        serde_path_to_error::deserialize(&mut json)
            .map(Self)
            .map_err(|error| ApiError::bad_request(format!("the body is not the JSON that is expected: {error}")))
    }
}

/// Runs work on files where it holds up nobody.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ContentError> + Send + 'static,
) -> Result<T, ApiError> {
    Ok(join(work).await??)
}

/// The same for any error.
pub(super) async fn join<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ApiError::internal(&error))
}
