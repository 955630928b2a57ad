//! What all requests and answers have in common: an id, a log line, limits, headers that protect a browser, pages for
//! people, and one spelling of each path.
//!
//! Owns nothing of a single route. A log line holds no query, no header and no body: they may hold secrets.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use http_body_util::Limited;
use openidconnect::url::Url;
use tracing::{Instrument, Level, error, info_span};

use super::error::{ApiError, Refused};
use super::pages;
use crate::settings::Settings;

/// The header with the id of a request, in its answer and its log lines.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest part of a path in a log line.
const LONGEST: usize = 120;

/// What goes around every route.
struct Shell {
    settings: Arc<Settings>,
    headers: [(HeaderName, HeaderValue); 4],
}

/// The routes with everything that all answers share; what an answer sets itself stays.
pub fn around(routes: Router, settings: &Arc<Settings>) -> Router {
    let shell = Arc::new(Shell { settings: settings.clone(), headers: protection(settings) });
    let limit = settings.hub.body_limit;
    let shell = middleware::from_fn_with_state(shell, async |State(shell): State<Arc<Shell>>, request, next| {
        shell.answer(request, next).await
    });
    routes.layer(axum::extract::DefaultBodyLimit::max(limit)).layer(shell)
}

impl Shell {
    async fn answer(&self, request: Request, next: Next) -> Response {
        let begun = Instant::now();
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let page = pages::wants_page(request.headers()) && !path.starts_with("/hub/api/");
        let accepts = request.headers().clone();
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
        let id = self.id(request.headers());
        let span = info_span!("request", id, user = tracing::field::Empty);
        let mut answer = self.run(request, next, &id).instrument(span.clone()).await;
        if let Some(Refused { message }) = answer.extensions().get::<Refused>().cloned().filter(|_| page) {
            answer = self.as_page(&answer, &message, &accepts);
        }
        let _in_span = span.enter();
        note(&method, &path, peer, &answer, begun);
        let headers = answer.headers_mut();
        for (name, value) in &self.headers {
            headers.entry(name).or_insert_with(|| value.clone());
        }
        // An answer is about the caller, unless it says otherwise.
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        if let Ok(id) = HeaderValue::from_str(&id) {
            headers.insert(REQUEST_ID, id);
        }
        answer
    }

    /// The answer of the routes, or why there is none: too large, too slow, broken.
    async fn run(&self, request: Request, next: Next, id: &str) -> Response {
        let hub = &self.settings.hub;
        let length =
            request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: usize| length > hub.body_limit) {
            return ApiError::TooLarge(hub.body_limit).into_response();
        }
        let request = request.map(|body| Body::new(Limited::new(body, hub.body_limit)));
        let answer = AssertUnwindSafe(next.run(request)).catch_unwind();
        match tokio::time::timeout(hub.request_timeout.get(), answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                // What it said may hold anything.
                error!("a handler panicked");
                ApiError::Upstream(format!("this is our mistake and was written down as {id}")).into_response()
            }
            Err(_) => {
                let limit = hub.request_timeout;
                ApiError::Unavailable(format!("there was no answer within {limit}: try again")).into_response()
            }
        }
    }

    /// The page of a refusal, with the headers that say how to go on.
    fn as_page(&self, refusal: &Response, message: &str, accepts: &HeaderMap) -> Response {
        let mut page = pages::error::refusal(&self.settings, refusal.status().as_u16(), message, accepts);
        for name in [header::WWW_AUTHENTICATE, header::RETRY_AFTER, header::SET_COOKIE, header::ALLOW] {
            for value in refusal.headers().get_all(&name) {
                page.headers_mut().append(&name, value.clone());
            }
        }
        page
    }

    /// The id that a proxy of ours has given, else a new one.
    fn id(&self, headers: &HeaderMap) -> String {
        let plain = |id: &&str| {
            (1..=64).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(plain);
        let given = given.filter(|_| self.settings.hub.trusted_proxies > 0);
        given.map_or_else(|| uuid::Uuid::now_v7().simple().to_string(), str::to_owned)
    }
}

/// One line a request; those of probes are for people who look closely.
fn note(method: &Method, path: &str, peer: Option<std::net::IpAddr>, answer: &Response, begun: Instant) {
    let path = path.get(..path.floor_char_boundary(LONGEST)).unwrap_or_default();
    let (status, ms) = (answer.status().as_u16(), begun.elapsed().as_millis());
    let peer = peer.map(tracing::field::display);
    if matches!(path, "/hub/healthz" | "/hub/readyz" | "/hub/metrics/") {
        tracing::event!(Level::DEBUG, %method, path, status, ms, peer, "answered");
    } else {
        tracing::event!(Level::INFO, %method, path, status, ms, peer, "answered");
    }
}

/// Scripts and styles come from our own files only, and nobody frames our pages. A form may lead to the provider,
/// which is where signing out ends.
fn protection(settings: &Settings) -> [(HeaderName, HeaderValue); 4] {
    let oidc = &settings.oidc;
    let provider = oidc.logout_url.as_ref().unwrap_or(&oidc.login_url);
    let provider = Url::parse(provider).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self' {provider}; base-uri 'none'; \
         frame-ancestors 'none'"
    );
    let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
    [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    ]
}

/// A route ends in a slash; asked for without one it answers too, and never by a redirect: a client would drop
/// or repeat its body. Files and the names that others have fixed stay as they are.
pub fn with_slash(mut request: Request) -> Request {
    let path = request.uri().path();
    let fixed = ["/hub/healthz", "/hub/readyz", "/hub/api/openapi.json", "/oauth2/callback"].contains(&path);
    if fixed || path.ends_with('/') || path.starts_with("/hub/static/") {
        return request;
    }
    let query = request.uri().query().map_or(String::new(), |query| format!("?{query}"));
    if let Ok(longer) = format!("{path}/{query}").parse::<PathAndQuery>() {
        let mut parts = request.uri().clone().into_parts();
        parts.path_and_query = Some(longer);
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::http::request::Builder;
    use axum::routing::{get, post};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::settings::Period;
    use crate::settings::load::tests::minimal;

    async fn ask(request: Builder, body: &'static str) -> (StatusCode, HeaderMap, String) {
        let mut settings = minimal();
        settings.hub.body_limit = 8;
        settings.hub.request_timeout = Period::seconds(0);
        let routes = Router::new()
            .route("/hub/api/panic/", get(async || -> &'static str { panic!("s3cret") }))
            .route("/hub/api/never/", get(async || std::future::pending::<&'static str>().await))
            .route("/hub/refused/", get(async || ApiError::forbidden("because <b>")))
            .route("/hub/api/refused/", get(async || ApiError::forbidden("because <b>")))
            .route("/hub/api/echo/", post(async |body: String| body));
        let body = Body::from_stream(futures::stream::iter([Ok::<_, std::io::Error>(body)]));
        let answer = around(routes, &Arc::new(settings)).oneshot(request.body(body).unwrap()).await.unwrap();
        let (head, body) = answer.into_parts();
        (head.status, head.headers, String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap())
    }

    #[tokio::test]
    async fn what_breaks_or_takes_too_long_is_answered() {
        let (status, headers, text) = ask(Request::get("/hub/api/panic/"), "").await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        let id = headers[REQUEST_ID].to_str().unwrap();
        assert!(text.contains(id) && text.contains("\"status\":\"error\"") && !text.contains("s3cret"), "{text}");
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        let (status, _, text) = ask(Request::get("/hub/api/never/"), "").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(text.contains("within 0s"), "{text}");
    }

    #[tokio::test]
    async fn a_body_has_a_limit_whether_it_says_its_length_or_not() {
        assert_eq!(ask(Request::post("/hub/api/echo/"), "12345678").await.2, "12345678");
        assert_eq!(ask(Request::post("/hub/api/echo/"), "123456789").await.0, StatusCode::PAYLOAD_TOO_LARGE);
        let long = Request::post("/hub/api/echo/").header(header::CONTENT_LENGTH, 9);
        let (status, _, text) = ask(long, "123456789").await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(text.contains("too large") || text.contains("larger"), "{text}");
    }

    #[tokio::test]
    async fn people_get_a_page_and_programs_json() {
        let html = |path: &str| Request::get(path).header(header::ACCEPT, "text/html");
        let (status, headers, text) = ask(html("/hub/refused/"), "").await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
        assert!(text.contains("because &#60;b&#62;"), "{text}");
        for request in [Request::get("/hub/refused/"), html("/hub/api/refused/")] {
            assert_eq!(ask(request, "").await.1[header::CONTENT_TYPE], "application/json");
        }
    }

    #[tokio::test]
    async fn an_id_is_ours_unless_a_proxy_of_ours_gave_it() {
        let shell = |trusted_proxies| {
            let mut settings = minimal();
            settings.hub.trusted_proxies = trusted_proxies;
            Shell { headers: protection(&settings), settings: Arc::new(settings) }
        };
        let given = |id: &str| HeaderMap::from_iter([(REQUEST_ID, id.parse().unwrap())]);
        assert_eq!(shell(1).id(&given("a-1")), "a-1");
        assert_ne!(shell(0).id(&given("a-1")), "a-1");
        for bad in ["", "a b", "\"", &"x".repeat(65)] {
            assert_ne!(shell(1).id(&given(bad)), bad);
        }
    }

    #[test]
    fn a_missing_slash_is_added() {
        for (asked, routed) in [
            ("/hub/api/v2/sites", "/hub/api/v2/sites/"),
            ("/hub/api/v2/sites?a=/b", "/hub/api/v2/sites/?a=/b"),
            ("/hub/api/v2/sites/a.b/c", "/hub/api/v2/sites/a.b/c/"),
            ("/hub/", "/hub/"),
            ("/hub/healthz", "/hub/healthz"),
            ("/hub/api/openapi.json", "/hub/api/openapi.json"),
            ("/oauth2/callback?code=1", "/oauth2/callback?code=1"),
        ] {
            let request = Request::builder().uri(asked).body(Body::empty()).unwrap();
            assert_eq!(with_slash(request).uri().to_string(), routed);
        }
    }
}
