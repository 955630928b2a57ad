//! From the client's request line to the router: which of our addresses a path is.

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::uri::PathAndQuery;
use http::{Request, StatusCode, Uri};
use tower::ServiceExt;

use super::error::plain;
use crate::runtime::address::strip;
use crate::runtime::content::SitePath;

/// The request's path below the site's public one, as a signed URL names it.
#[derive(Clone, Debug)]
pub(super) struct Below(pub Option<SitePath>);

/// Sends each request to its router.
#[derive(Clone)]
pub struct Front {
    /// `/<space>/<name>`, or empty.
    pub prefix: String,
    /// What only the pod's own nginx asks.
    pub internal: Router,
    /// The Site API, relative to its version.
    pub api: Router,
}

impl Front {
    /// Answers a request.
    pub async fn answer(self, mut request: Request<Body>) -> Response {
        let path = request.uri().path();
        if ["/healthz", "/_auth/private"].contains(&path) {
            return serve(self.internal, request).await;
        }
        let Some(below) = strip(path, self.prefix.split('/')) else {
            return plain(StatusCode::NOT_FOUND, "not found: this is not the site's address");
        };
        let site_path = Below(SitePath::from_encoded(below).ok());
        let Some(rest) = ["v2", "v1"].into_iter().find_map(|version| strip(below, ["s", "api", version])) else {
            return plain(StatusCode::NOT_FOUND, "not found: the Site API is at s/api/v2/");
        };
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        let Ok(target) = format!("/{}{query}", rest.trim_start_matches('/')).parse::<PathAndQuery>() else {
            return plain(StatusCode::BAD_REQUEST, "the path is not valid");
        };
        *request.uri_mut() = Uri::from(target);
        request.extensions_mut().insert(site_path);
        serve(self.api, request).await
    }
}

async fn serve(router: Router, request: Request<Body>) -> Response {
    match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
