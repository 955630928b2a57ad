//! The one way to the HTTP of a Site's own pod, by the Site's Service inside the cluster.
//!
//! What stands behind the Service is its owner's: no redirect is followed, the time and the bytes of an answer are
//! bounded, an address is made of checked segments, and an error names no address. Must not keep or log a token.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use reqwest::Client;
use reqwest::redirect::Policy;
use serde_json::Value;
use thiserror::Error;

use crate::domain::forms;
use crate::domain::site::Site;

/// Why a pod gave no answer that counts.
#[derive(Debug, Error)]
pub enum PodError {
    /// The client could not be made.
    #[error("no client for the Sites' pods: {0}")]
    Client(#[from] reqwest::Error),
    /// An id or a path that would lead somewhere else.
    #[error("no address")]
    Address,
    /// Nobody answers at the Service.
    #[error("no connection")]
    Connection,
    /// It took too long.
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// It is larger than what is read, in bytes.
    #[error("an answer of more than {0} bytes")]
    TooLarge(usize),
    /// It is not HTTP, or broke off.
    #[error("not a complete HTTP answer")]
    Broken,
}

/// How much of an answer is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Longest time until all of it is there.
    pub time: Duration,
    /// Most bytes of its body.
    pub bytes: usize,
}

/// What a pod is asked.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The method.
    pub method: Method,
    /// Below the Site's own path: begins with a slash.
    pub path: &'a str,
    /// Sent as a bearer token.
    pub token: Option<&'a str>,
    /// Sent as JSON.
    pub body: Option<&'a Value>,
}

impl<'a> Question<'a> {
    /// `GET` of a path.
    #[must_use]
    pub const fn get(path: &'a str, token: Option<&'a str>) -> Self {
        Self { method: Method::GET, path, token, body: None }
    }
}

/// The way to the Sites' pods; cheap to clone.
#[derive(Clone, Debug)]
pub struct Pods {
    client: Client,
    address: Arc<str>,
    namespace: Arc<str>,
}

impl Pods {
    /// `address`: where a Site's pods answer, a template over `{id}` and `{namespace}`.
    pub fn new(address: &str, namespace: &Arc<str>) -> Result<Self, PodError> {
        let agent = concat!("sites-hub/", env!("CARGO_PKG_VERSION"));
        let client = Client::builder().redirect(Policy::none()).no_proxy().user_agent(agent).build()?;
        Ok(Self { client, address: address.trim_end_matches('/').into(), namespace: namespace.clone() })
    }

    /// One question: status and body of the answer.
    pub async fn ask(
        &self,
        site: &Site,
        question: Question<'_>,
        bounds: Bounds,
    ) -> Result<(StatusCode, Vec<u8>), PodError> {
        let url = self.url(site, question.path).ok_or(PodError::Address)?;
        let mut request = self.client.request(question.method, url).timeout(bounds.time);
        if let Some(token) = question.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = question.body {
            request = request.json(body);
        }
        let told = |error: reqwest::Error| told(&error, bounds.time);
        let mut answer = request.send().await.map_err(told)?;
        let mut body = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(told)? {
            body.extend_from_slice(&part);
            if body.len() > bounds.bytes {
                return Err(PodError::TooLarge(bounds.bytes));
            }
        }
        Ok((answer.status(), body))
    }

    fn url(&self, site: &Site, path: &str) -> Option<String> {
        let own = match site.public_path() {
            Some((space, name)) if forms::segment(space) && forms::segment(name) => format!("/{space}/{name}"),
            Some(_) => return None,
            None => String::new(),
        };
        let base = self.address.replace("{id}", &site.spec.id).replace("{namespace}", &self.namespace);
        forms::id(&site.spec.id).then(|| format!("{base}{own}{path}"))
    }
}

fn told(error: &reqwest::Error, limit: Duration) -> PodError {
    if error.is_timeout() {
        PodError::Timeout(limit)
    } else if error.is_connect() {
        PodError::Connection
    } else {
        PodError::Broken
    }
}
