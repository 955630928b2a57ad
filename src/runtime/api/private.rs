//! `/_auth/private`: what the pod's own nginx asks before it serves private content or the custom application.
//!
//! No location of nginx leads here from outside. 204: yes. 401 with `X-Sites-Login`: nobody knows who asks. 403: no.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::Api;
use super::error::ApiError;
use crate::runtime::access::{Refusal, Request, Wanted, login_url};
use crate::runtime::address::strip;
use crate::runtime::content::SitePath;

const LOGIN: &str = "x-sites-login";

/// May this request see the site's content?
pub async fn decide(State(api): State<Api>, headers: HeaderMap) -> Response {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let target = text("x-original-uri");
    let method = Method::from_bytes(text("x-original-method").as_bytes()).unwrap_or(Method::GET);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let below = strip(path, api.config.prefix.split('/')).and_then(|path| SitePath::from_encoded(path).ok());
    let request = Request { method: &method, headers: &headers, query, path: below.as_ref(), content: below.as_ref() };
    match api.access.decide(&request, Wanted::View).await {
        Ok(_) => StatusCode::NO_CONTENT.into_response(),
        Err(refusal) => {
            let unknown = matches!(refusal, Refusal::Unauthenticated(_));
            let mut response = match refusal {
                // nginx knows three answers.
                Refusal::Malformed(text) => ApiError::from(Refusal::Forbidden(text)).into_response(),
                refusal => ApiError::from(refusal).into_response(),
            };
            let login = unknown.then(|| HeaderValue::from_str(&login_url(&api.config.prefix, target)).ok()).flatten();
            if let Some(login) = login {
                response.headers_mut().insert(LOGIN, login);
            }
            response
        }
    }
}

/// Whether this server can serve.
pub async fn healthz(State(api): State<Api>) -> Result<&'static str, ApiError> {
    super::asked::blocking(move || api.content.check()).await?;
    Ok("ok\n")
}
