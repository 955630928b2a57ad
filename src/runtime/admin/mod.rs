//! `sites runtime admin`: the file manager, on loopback, for the site's administrators.
//!
//! Owns the pages. They are complete without scripts for whoever only looks; what changes something is done by the
//! page's script over the Site API, with the visitor's own session, so that there is one place that decides and writes.

mod page;

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, Method, Request, StatusCode};

use super::access::{self, Access, Refusal, Wanted, login_url};
use super::address::strip;
use super::config::{self, SiteConfig};
use super::content::{Content, ContentError, SitePath};
use super::serve::serve;
use crate::telemetry::logging;

const SCRIPT: &str = include_str!("admin.js");
const STYLE: &str = include_str!("admin.css");
/// Without one of its own, a browser asks the host for an icon, which is another's.
const ICON: &str = include_str!("icon.svg");
/// Nothing from elsewhere, nothing inline: a file's name that got into a page could still run nothing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'self'";

#[derive(Clone)]
struct Admin {
    content: Arc<Content>,
    access: Arc<Access>,
    pages: Arc<page::Pages>,
    prefix: String,
}

/// Serves until it is told to stop.
pub async fn run() -> anyhow::Result<()> {
    let environment = |name: &str| std::env::var(name).ok();
    let config = SiteConfig::load(&environment)?;
    let address = config::listen(&environment, "SITE_ADMIN_LISTEN")?;
    logging::init(&config.log)?;
    let content = Arc::new(Content::open(&config.content_dir, config.quota)?);
    let access = Arc::new(Access::open(&config, &content)?);
    let pages = Arc::new(page::Pages::new(&config)?);
    let admin = Admin { content, access, pages, prefix: config.prefix };
    let broken = || text(StatusCode::INTERNAL_SERVER_ERROR, "the site's server failed; its log says why");
    serve(address, "admin", move |request| admin.clone().answer(request), broken).await
}

impl Admin {
    async fn answer(self, request: Request<Body>) -> Response {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        if path == "/healthz" {
            return match self.blocking(Content::check).await {
                Ok(()) => text(StatusCode::OK, "ok"),
                Err(_) => text(StatusCode::SERVICE_UNAVAILABLE, "the volume does not answer"),
            };
        }
        let Some(rest) = strip(path, self.prefix.split('/').chain(["s", "admin"])) else {
            return text(StatusCode::NOT_FOUND, "not found");
        };
        if ![Method::GET, Method::HEAD].contains(&parts.method) {
            super::rest::drain(body).await;
            return text(StatusCode::METHOD_NOT_ALLOWED, "the pages are only read: changes go to the Site API");
        }
        // The same for every site: nothing to protect.
        match rest {
            "/admin.js" => return asset("text/javascript; charset=utf-8", SCRIPT),
            "/admin.css" => return asset("text/css; charset=utf-8", STYLE),
            "/icon.svg" => return asset("image/svg+xml", ICON),
            _ => {}
        }
        let asked =
            access::Request { method: &parts.method, headers: &parts.headers, query: "", path: None, content: None };
        let caller = match self.access.decide(&asked, Wanted::Administer).await {
            Ok(caller) => caller,
            Err(refusal) => return self.refused(&refusal, &parts),
        };
        if let Some(folder) = strip(rest, ["files"]) {
            return self.folder(folder, &caller.to_string()).await;
        }
        match rest.trim_end_matches('/') {
            "" => redirect(&format!("{}/s/admin/files/", self.prefix)),
            "/tokens" => self.tokens(&caller.to_string()).await,
            _ => text(StatusCode::NOT_FOUND, "not found"),
        }
    }

    async fn folder(&self, rest: &str, caller: &str) -> Response {
        let path = match SitePath::from_encoded(rest) {
            Ok(path) => path,
            Err(error) => return text(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        if !rest.ends_with('/') {
            return redirect(&self.pages.folder_address(&path));
        }
        let asked = path.clone();
        let found = self.blocking(move |content| {
            Ok((content.list(&asked, &super::content::ListOptions::default())?, content.usage()?))
        });
        match found.await {
            Ok((listing, usage)) => html(self.pages.folder(&path, &listing, usage, caller)),
            Err(error) => {
                let status = match &error {
                    ContentError::NotFound(_) | ContentError::NotAFolder(_) => StatusCode::NOT_FOUND,
                    _ => StatusCode::INTERNAL_SERVER_ERROR,
                };
                text(status, &error.to_string())
            }
        }
    }

    async fn tokens(&self, caller: &str) -> Response {
        let access = self.access.clone();
        let listed = tokio::task::spawn_blocking(move || access.tokens.list(jiff::Timestamp::now())).await;
        match listed {
            Ok(Ok(tokens)) => html(self.pages.tokens(&tokens, caller)),
            _ => text(StatusCode::INTERNAL_SERVER_ERROR, "the tokens cannot be read"),
        }
    }

    /// A browser without credentials is sent to the login, everybody else gets a status.
    fn refused(&self, refusal: &Refusal, parts: &http::request::Parts) -> Response {
        let status = match refusal {
            Refusal::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
            Refusal::Forbidden(_) => StatusCode::FORBIDDEN,
            Refusal::Malformed(_) => StatusCode::BAD_REQUEST,
            Refusal::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        let accepts = parts.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        let browser = accepts.is_some_and(|accepts| accepts.contains("text/html"));
        if status == StatusCode::UNAUTHORIZED && browser && !parts.headers.contains_key(AUTHORIZATION) {
            let target = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
            return redirect(&login_url(&self.prefix, target));
        }
        text(status, &refusal.to_string())
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Content) -> Result<T, ContentError> + Send + 'static,
    ) -> Result<T, ContentError> {
        let content = self.content.clone();
        let result = tokio::task::spawn_blocking(move || work(&content)).await;
        let result = result.unwrap_or_else(|error| Err(ContentError::io("work on", "", std::io::Error::other(error))));
        if let Err(error @ ContentError::Io { .. }) = &result {
            tracing::error!(%error, "a page failed");
        }
        result
    }
}

fn html(page: Result<String, minijinja::Error>) -> Response {
    match page {
        Ok(page) => respond(StatusCode::OK, "text/html; charset=utf-8", page),
        Err(error) => {
            tracing::error!(%error, "a page failed");
            text(StatusCode::INTERNAL_SERVER_ERROR, "the page failed; the log says why")
        }
    }
}

fn text(status: StatusCode, message: &str) -> Response {
    respond(status, "text/plain; charset=utf-8", format!("{message}\n"))
}

fn redirect(target: &str) -> Response {
    let mut response = text(StatusCode::FOUND, "");
    // Built of encoded parts only.
    if let Ok(target) = HeaderValue::from_str(target) {
        response.headers_mut().insert(LOCATION, target);
    }
    response
}

fn asset(content_type: &'static str, content: &'static str) -> Response {
    let mut response = respond(StatusCode::OK, content_type, content.to_owned());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    response
}

fn respond(status: StatusCode, content_type: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "SAMEORIGIN"),
        (REFERRER_POLICY, "same-origin"),
        (CONTENT_SECURITY_POLICY, POLICY),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
