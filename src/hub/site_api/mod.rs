//! Asks a Site's own API with its master token.
//!
//! Owns the client: no redirects, bounded answers and times, a second attempt for reads only, addresses made of checked
//! segments. Must not keep or log anything of what it carries: the token comes from the Site at each call.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use reqwest::{Client, redirect};
use serde_json::Value;
use tracing::warn;

use super::error::ApiError;
use super::sites::master_token;
use super::state::Hub;
use crate::domain::forms;
use crate::domain::site::Site;

/// Longest answer of a Site, in bytes.
const MOST: usize = 4 << 20;
/// Longest message of a Site that is passed on, in characters.
const MESSAGE: usize = 400;

/// The client, shared by all calls.
#[derive(Clone, Debug)]
pub struct SiteApi {
    http: Client,
    url: String,
}

/// A Site that did not do it.
struct Refusal {
    status: Option<StatusCode>,
    message: String,
}

impl SiteApi {
    /// `url`: where a Site's pods answer, a template over `{id}` and `{namespace}`.
    pub fn new(url: &str, limit: Duration) -> Result<Self, reqwest::Error> {
        let http = Client::builder().redirect(redirect::Policy::none()).no_proxy().timeout(limit).build()?;
        Ok(Self { http, url: url.trim_end_matches('/').to_owned() })
    }

    /// One call; `path` is made of checked segments, such as `["tokens", id]`. A failure is 500 with the Site's words;
    /// 404 for what the Site does not have, 400 for what it says is wrong with the request, 409 for a Site that has no
    /// API to ask yet.
    pub async fn call(
        &self,
        hub: &Hub,
        site: &Site,
        method: Method,
        path: &[&str],
        body: Option<&Value>,
    ) -> Result<Value, ApiError> {
        let token =
            master_token::of(site).ok_or_else(|| ApiError::conflict("the site has no master token: regenerate it"))?;
        let url = self.address(hub, site, path)?;
        let attempts = if method == Method::GET { 2 } else { 1 };
        let mut refused = None;
        for _ in 0..attempts {
            match self.once(&method, &url, token, body).await {
                Ok(answer) => return Ok(answer),
                Err(refusal) => {
                    let again = refusal.status.is_none_or(|status| status.is_server_error());
                    refused = Some(refusal);
                    if !again {
                        break;
                    }
                }
            }
        }
        let Refusal { status, message } = refused.unwrap_or_else(|| unreachable("it was not asked"));
        let message = message.replace(token, "…");
        warn!(site = site.spec.id, status = status.map(|status| status.as_u16()), "a site's API did not do it");
        Err(match status {
            Some(StatusCode::NOT_FOUND) => ApiError::NotFound("the token"),
            Some(StatusCode::BAD_REQUEST) => ApiError::BadRequest(message),
            Some(StatusCode::CONFLICT) => ApiError::conflict(message),
            _ => ApiError::Upstream(message),
        })
    }

    fn address(&self, hub: &Hub, site: &Site, path: &[&str]) -> Result<String, ApiError> {
        let public = site.public_path().filter(|(space, name)| forms::segment(space) && forms::segment(name));
        let (space, name) = public
            .filter(|_| forms::id(&site.spec.id) && path.iter().all(|segment| forms::segment(segment)))
            .ok_or_else(|| ApiError::conflict("the site has no public path yet: its API cannot be asked"))?;
        let base = self.url.replace("{id}", &site.spec.id).replace("{namespace}", &hub.namespace);
        Ok(format!("{base}/{space}/{name}/s/api/v2/{}", path.join("/")))
    }

    async fn once(&self, method: &Method, url: &str, token: &str, body: Option<&Value>) -> Result<Value, Refusal> {
        let mut request = self.http.request(method.clone(), url).bearer_auth(token);
        if let Some(body) = body {
            request = request.json(body);
        }
        // Never the error itself: it may name the address with all that is in it.
        let mut answer = request.send().await.map_err(|error| {
            unreachable(if error.is_timeout() { "it did not answer in time" } else { "it cannot be reached" })
        })?;
        let status = answer.status();
        let mut bytes = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(|_| unreachable("its answer broke off"))? {
            bytes.extend_from_slice(&part);
            if bytes.len() > MOST {
                return Err(unreachable("its answer is too long"));
            }
        }
        let value: Option<Value> = serde_json::from_slice(&bytes).ok();
        match value {
            Some(value) if status.is_success() => Ok(value),
            value => {
                let said = value.as_ref().and_then(|value| value["message"].as_str());
                let said = said.map_or_else(
                    || format!("it answered {status}"),
                    |text| text.chars().filter(|one| !one.is_control()).take(MESSAGE).collect(),
                );
                Err(Refusal { status: Some(status), message: format!("the site's API: {said}") })
            }
        }
    }
}

fn unreachable(reason: &str) -> Refusal {
    Refusal { status: None, message: format!("the site's API: {reason}") }
}
