//! The door: what a request's signature must cover, and the form of every answer.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HOST, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::body::{Bytes, Frame, SizeHint};
use s3s::service::S3Service;
use s3s::{S3Error, S3ErrorCode, S3Result};

use super::chunks::Chunks;
use super::failure::{error, internal, not_offered};
use crate::runtime::address::strip;
use crate::runtime::content::Content;
use crate::runtime::rest::drain;

/// Checksums that are verified.
const CHECKSUMS: [&str; 8] = ["crc32", "crc32c", "crc64nvme", "sha1", "sha256", "type", "algorithm", "mode"];
/// Longest life of a presigned URL, in seconds, as in S3: a week.
const MAX_EXPIRES: u32 = 7 * 24 * 3600;

/// Answers every request.
#[derive(Clone)]
pub(super) struct Door {
    content: Arc<Content>,
    service: S3Service,
    prefix: String,
}

impl Door {
    pub(super) fn new(content: Arc<Content>, service: S3Service, prefix: String) -> Self {
        Self { content, service, prefix }
    }

    pub(super) async fn answer(self, request: Request<Body>) -> Response {
        if request.uri().path() == "/healthz" {
            let content = self.content.clone();
            let checked = tokio::task::spawn_blocking(move || content.check()).await;
            let (status, text) = match checked {
                Ok(Ok(())) => (StatusCode::OK, "ok\n"),
                _ => (StatusCode::SERVICE_UNAVAILABLE, "the volume does not answer\n"),
            };
            let mut response = Response::new(Body::from(text));
            *response.status_mut() = status;
            return response;
        }
        let anonymous = !is_signed(&request);
        let (parts, body) = request.into_parts();
        let held = Held(Arc::new(Mutex::new(body)));
        let mut response = self.served(Request::from_parts(parts, held.clone())).await;
        if !response.status().is_success() {
            // Whoever writes before it reads gets its answer all the same.
            drain(held.rest()).await;
        }
        let headers = response.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let keep = if anonymous { "no-cache" } else { "private, no-cache" };
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static(keep));
        if response.status() == StatusCode::NOT_MODIFIED {
            response.headers_mut().remove(CONTENT_LENGTH);
            response.headers_mut().remove(CONTENT_TYPE);
            *response.body_mut() = Body::empty();
        }
        response
    }

    async fn served(&self, request: Request<Held>) -> Response {
        let ours = strip(request.uri().path(), self.prefix.split('/').chain(["s", "s3"])).is_some();
        let examined = if ours { examine(&request) } else { Err(S3ErrorCode::NoSuchBucket.into()) };
        if let Err(error) = examined {
            return told(error);
        }
        let payload = request.headers().get("x-amz-content-sha256").map_or(&b""[..], HeaderValue::as_bytes);
        let signed = payload != b"STREAMING-UNSIGNED-PAYLOAD-TRAILER";
        let request = if payload.starts_with(b"STREAMING-") {
            request.map(|body| s3s::Body::http_body_unsync(Chunks::new(body, signed)))
        } else {
            request.map(s3s::Body::http_body_unsync)
        };
        match self.service.call(request).await {
            Ok(response) => response.map(Body::new),
            Err(_) => told(internal()),
        }
    }
}

/// A handler that failed in an unforeseen way.
pub(super) fn broken() -> Response {
    told(internal())
}

fn told(error: S3Error) -> Response {
    let status = error.status_code().unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Ok(response) = error.to_http_response() {
        return response.map(Body::new);
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn parameters<B>(request: &Request<B>) -> impl Iterator<Item = (String, String)> {
    let pairs = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
    pairs.map(|(name, value)| (name.into_owned(), value.into_owned()))
}

fn is_signed<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(AUTHORIZATION) || parameters(request).any(|(name, _)| name == "X-Amz-Signature")
}

/// Refuses what the signature's check behind would not: other signatures than version 4, and headers that mean
/// something and that nobody has signed.
fn examine<B>(request: &Request<B>) -> S3Result<()> {
    let headers = request.headers();
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_ascii_lowercase();
    let form = headers.get(CONTENT_TYPE).is_some_and(|kind| text(kind).starts_with("multipart/form-data"));
    if form && request.method() == Method::POST {
        return Err(not_offered("an upload by a form"));
    }
    let unknown = headers
        .keys()
        .find(|name| name.as_str().strip_prefix("x-amz-checksum-").is_some_and(|kind| !CHECKSUMS.contains(&kind)));
    if let Some(name) = unknown {
        return Err(not_offered(&format!("the checksum {name}")));
    }
    let parameters: Vec<(String, String)> = parameters(request).collect();
    let one = |wanted: &str| {
        let mut values = parameters.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        values.next().filter(|_| values.next().is_none())
    };
    let old = error(S3ErrorCode::InvalidRequest, "sign the request with Signature Version 4");
    if parameters.iter().any(|(name, _)| ["Signature", "AWSAccessKeyId"].contains(&name.as_str())) {
        return Err(old);
    }
    let presigned = parameters.iter().any(|(name, _)| name == "X-Amz-Signature");
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let signed = match (presigned, given.next(), given.next()) {
        (false, None, _) => return Ok(()),
        (true, None, _) => {
            let seconds = one("X-Amz-Expires").and_then(|text| text.parse::<u32>().ok());
            if seconds.is_none_or(|seconds| seconds > MAX_EXPIRES) {
                let message = "X-Amz-Expires: give up to a week, in seconds";
                return Err(error(S3ErrorCode::AuthorizationQueryParametersError, message));
            }
            one("X-Amz-SignedHeaders").map(str::to_owned)
        }
        (false, Some(value), None) => {
            let value = value.to_str().ok().and_then(|text| text.strip_prefix("AWS4-HMAC-SHA256 ")).ok_or(old)?;
            let mut lists = value.split(',').filter_map(|part| part.trim().strip_prefix("SignedHeaders="));
            lists.next().filter(|_| lists.next().is_none()).map(str::to_owned)
        }
        _ => return Err(error(S3ErrorCode::InvalidRequest, "the request has more than one signature")),
    };
    let signed =
        signed.ok_or_else(|| error(S3ErrorCode::InvalidRequest, "the signature does not say what it covers"))?;
    covers(headers, &signed, presigned)
}

/// A header that means something to us and is not signed could be anybody's.
fn covers(headers: &HeaderMap, signed: &str, presigned: bool) -> S3Result<()> {
    let signed: Vec<&str> = signed.split(';').collect();
    let matters = |name: &str| {
        // The hash of a body is checked against it, whoever wrote it.
        let harmless = presigned && name == "x-amz-content-sha256";
        name == HOST.as_str() || name.starts_with("x-amz-") && !harmless
    };
    match headers.keys().map(http::HeaderName::as_str).find(|name| matters(name) && !signed.contains(name)) {
        Some(name) => Err(error(S3ErrorCode::AccessDenied, format!("the header {name} must be signed"))),
        None if !headers.contains_key(HOST) => Err(error(S3ErrorCode::InvalidRequest, "the header host is missing")),
        None => Ok(()),
    }
}

/// A request's body, of which what is left can be taken back.
#[derive(Clone)]
struct Held(Arc<Mutex<Body>>);

impl Held {
    fn rest(&self) -> Body {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl hyper::body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut *body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).size_hint()
    }
}
