//! What all answers have in common: headers that protect a browser, and one spelling of each path.
//!
//! Owns nothing of a single route.

use axum::Router;
use axum::extract::Request;
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::Response;

/// Scripts and styles come from our own files only, and nobody frames our pages.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
];

/// The routes with the headers on every answer; what an answer sets itself stays.
pub fn around(routes: Router) -> Router {
    routes.layer(middleware::from_fn(async |request: Request, next: Next| {
        let mut answer: Response = next.run(request).await;
        for (name, value) in HEADERS {
            answer.headers_mut().entry(name).or_insert(value);
        }
        // An answer is about the caller, unless it says otherwise.
        answer.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        answer
    }))
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
    use axum::body::Body;

    use super::*;

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
