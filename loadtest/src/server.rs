//! The API server as a bare client sees it: raw requests over the same HTTP stack as the operator's (hyper, rustls,
//! HTTP/1.1, JSON). Decodes only what it is asked for.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use serde_json::Value;

/// Objects per page of a list.
const PAGE: usize = 500;

/// Content types of writes.
pub const JSON: &str = "application/json";
/// A merge patch.
pub const MERGE: &str = "application/merge-patch+json";

/// One request, ready to be sent.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The method.
    pub method: Method,
    /// The path with its query.
    pub path: String,
    /// Content type of the body.
    pub content: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

impl Prepared {
    /// `GET`.
    #[must_use]
    pub const fn get(path: String) -> Self {
        Self { method: Method::GET, path, content: JSON, body: Vec::new() }
    }

    /// `POST`.
    #[must_use]
    pub fn post(path: String, body: &Value) -> Self {
        Self { method: Method::POST, path, content: JSON, body: body.to_string().into_bytes() }
    }

    /// `PATCH` with a merge patch.
    #[must_use]
    pub fn merge(path: String, body: &Value) -> Self {
        Self { method: Method::PATCH, path, content: MERGE, body: body.to_string().into_bytes() }
    }
}

/// The API server, as whoever the kubeconfig names.
#[derive(Clone)]
pub struct Server {
    client: kube::Client,
}

impl Server {
    /// Connects lazily with the kubeconfig at `path`.
    pub async fn connect(path: &Path, agent: &'static str) -> Result<Self> {
        let file = Kubeconfig::read_from(path)?;
        let mut config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static(agent)));
        Ok(Self { client: kube::Client::try_from(config)? })
    }

    /// A server of this machine without TLS, over the same stack.
    pub fn plain(port: u16) -> Result<Self> {
        Self::local(port, AuthInfo::default())
    }

    /// As [`Self::plain`], with a token.
    pub fn as_bearer(port: u16, token: &str) -> Result<Self> {
        Self::local(port, AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() })
    }

    /// As [`Self::plain`], with a name and a password.
    pub fn as_client(port: u16, name: &str, password: &str) -> Result<Self> {
        let (username, password) = (Some(name.to_owned()), Some(password.to_owned().into()));
        Self::local(port, AuthInfo { username, password, ..AuthInfo::default() })
    }

    fn local(port: u16, auth_info: AuthInfo) -> Result<Self> {
        let mut config = kube::Config::new(format!("http://127.0.0.1:{port}").parse()?);
        config.auth_info = auth_info;
        Ok(Self { client: kube::Client::try_from(config)? })
    }

    /// The client, for watches.
    #[must_use]
    pub const fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Sends a request and drops the answer; anything but success is an error.
    pub async fn send(&self, request: &Prepared) -> Result<Vec<u8>> {
        let (method, path) = (request.method.clone(), request.path.as_str());
        let sent = Request::builder()
            .method(method.clone())
            .uri(path)
            .header(http::header::CONTENT_TYPE, request.content)
            .body(Body::from(request.body.clone()))?;
        let answer = self.client.send(sent).await.with_context(|| format!("{method} {path}"))?;
        let status = answer.status();
        let bytes = answer.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "{method} {path}: {status} {}", String::from_utf8_lossy(&bytes));
        Ok(bytes.into())
    }

    /// As [`Self::send`], with the answer as JSON.
    pub async fn ask(&self, request: &Prepared) -> Result<Value> {
        Ok(serde_json::from_slice(&self.send(request).await?)?)
    }

    /// Reads a path.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.ask(&Prepared::get(path.to_owned())).await
    }

    /// All objects of a collection, page by page.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>> {
        let mut items = Vec::new();
        let mut next = String::new();
        loop {
            let mut page = self.get(&format!("{path}?limit={PAGE}&continue={next}")).await?;
            if let Value::Array(more) = page["items"].take() {
                items.extend(more);
            }
            match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                Some(token) => token.clone_into(&mut next),
                None => return Ok(items),
            }
        }
    }
}
