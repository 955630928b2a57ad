//! `sites runtime webdav`: the content over `WebDAV`, on loopback.
//!
//! Owns the door: which method needs which right, and the public prefix in every address. Protocol and locks are
//! dav-server's, files are [`super::content`]'s through `files`. Locks live in this process: a site with several pods
//! has them per pod.

mod file;
mod files;
mod metadata;
mod props;

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use dav_server::memls::MemLs;
use dav_server::{DavConfig, DavHandler, DavMethod, DavMethodSet};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use tracing::info;

use super::access::{self, Access, Refusal, Wanted};
use super::address::strip;
use super::config::{self, SiteConfig};
use super::content::{Content, SitePath};
use super::serve::serve;
use crate::telemetry::logging;

/// Bytes per read.
const BLOCK: usize = 64 << 10;

#[derive(Clone)]
struct Dav {
    content: Arc<Content>,
    access: Arc<Access>,
    prefix: String,
    handler: DavHandler,
}

/// Serves until it is told to stop.
pub async fn run() -> anyhow::Result<()> {
    let environment = |name: &str| std::env::var(name).ok();
    let config = SiteConfig::load(&environment)?;
    let address = config::listen(&environment, "SITE_WEBDAV_LISTEN")?;
    logging::init(&config.log)?;
    let content = Arc::new(Content::open(&config.content_dir, config.quota)?);
    let access = Arc::new(Access::open(&config, &content)?);
    let mut methods = DavMethodSet::WEBDAV_RW;
    // A part of a file cannot be written in one step.
    methods.remove(DavMethod::Patch);
    let handler = DavConfig::new()
        .strip_prefix(format!("{}/s/dav", config.prefix))
        .filesystem(Box::new(files::Files::open(&content)?))
        .locksystem(MemLs::new())
        .methods(methods)
        .autoindex(false)
        .hide_symlinks(false)
        .read_buf_size(BLOCK)
        .build_handler();
    let dav = Dav { content, access, prefix: config.prefix, handler };
    serve(
        address,
        "webdav",
        move |request| dav.clone().answer(request),
        || plain(StatusCode::INTERNAL_SERVER_ERROR, "the site's server failed; its log says why"),
    )
    .await
}

impl Dav {
    async fn answer(self, mut request: Request<Body>) -> Response {
        if request.uri().path() == "/healthz" {
            let content = self.content.clone();
            let checked = tokio::task::spawn_blocking(move || content.check()).await;
            return match checked {
                Ok(Ok(())) => plain(StatusCode::OK, "ok"),
                _ => plain(StatusCode::SERVICE_UNAVAILABLE, "the volume does not answer"),
            };
        }
        let Some(rest) = strip(request.uri().path(), self.prefix.split('/').chain(["s", "dav"])) else {
            return plain(StatusCode::NOT_FOUND, "not found");
        };
        let path = match SitePath::from_encoded(rest) {
            Ok(path) => path,
            Err(error) => return plain(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        // One spelling of the prefix from here on.
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        let target = format!("{}/s/dav/{}{query}", self.prefix, rest.trim_start_matches('/'));
        let wanted = wanted(request.method());
        let asked = access::Request {
            method: request.method(),
            headers: request.headers(),
            query: "",
            path: None,
            content: Some(&path),
        };
        let caller = match self.access.decide(&asked, wanted).await {
            Ok(caller) => caller,
            Err(refusal) => {
                super::rest::drain(request.into_body()).await;
                return refused(&refusal);
            }
        };
        let Ok(target) = target.parse::<PathAndQuery>() else {
            return plain(StatusCode::BAD_REQUEST, "the path is not valid");
        };
        *request.uri_mut() = Uri::from(target);
        let method = request.method().clone();
        let mut response = self.handler.handle(request).await.map(Body::new);
        if wanted == Wanted::Write && response.status().is_success() {
            info!(%path, %method, %caller, "content changed by WebDAV");
        }
        response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("private, no-cache"));
        response
    }
}

/// What a method needs. One that we do not know changes something.
fn wanted(method: &Method) -> Wanted {
    match method.as_str() {
        "GET" | "HEAD" | "OPTIONS" | "PROPFIND" => Wanted::Read,
        _ => Wanted::Write,
    }
}

fn refused(refusal: &Refusal) -> Response {
    let status = match refusal {
        Refusal::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
        Refusal::Forbidden(_) => StatusCode::FORBIDDEN,
        Refusal::Malformed(_) => StatusCode::BAD_REQUEST,
        Refusal::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut response = plain(status, &refusal.to_string());
    if status == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Basic realm=\"sites\", charset=\"UTF-8\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    }
    response
}

fn plain(status: StatusCode, message: &str) -> Response {
    let mut response = Response::new(Body::from(format!("{message}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
