//! One question to a Site's own pod, by the Site's Service inside the cluster.
//!
//! What stands behind the Service is its owner's: no redirect is followed, the time and the bytes of an answer are
//! bounded, and nothing of it is repeated but its status.

use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::Timestamp;
use reqwest::redirect::Policy;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

use crate::domain::names;
use crate::domain::site::Site;

/// Longest time of a whole answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes of an answer that are read.
const BYTES: usize = 64 * 1024;

/// Why a pod gave no answer that counts. The words name no address.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The client could not be made.
    #[error("no client for the Sites' pods: {0}")]
    Client(#[from] reqwest::Error),
    /// Nobody answers at the Service.
    #[error("no connection")]
    Connection,
    /// It took too long.
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Timeout,
    /// It is larger than what is read.
    #[error("an answer of more than {BYTES} bytes")]
    TooLarge,
    /// It is not HTTP.
    #[error("not a complete HTTP answer")]
    Broken,
}

/// What a probe said.
#[derive(Serialize, Deserialize, ToSchema, Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Whether the Site answers, if only with a login: a status below 500.
    pub ok: bool,
    /// The status, or why there is none.
    pub outcome: String,
    /// Time until the answer was complete.
    pub milliseconds: u64,
}

/// The way to the Sites' pods; cheap to clone.
#[derive(Clone, Debug)]
pub struct Pods {
    client: reqwest::Client,
    address: String,
    namespace: String,
}

impl Pods {
    /// By the template of the address.
    pub fn new(address: &str, namespace: &str) -> Result<Self, ProbeError> {
        let client = reqwest::Client::builder()
            .redirect(Policy::none())
            .timeout(PATIENCE)
            .no_proxy()
            .user_agent(concat!("sites-hub/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { client, address: address.to_owned(), namespace: namespace.to_owned() })
    }

    /// `GET` of a path below the Site's own: status and body.
    pub async fn get(
        &self,
        site: &Site,
        path: &str,
        token: Option<&SecretString>,
    ) -> Result<(u16, Vec<u8>), ProbeError> {
        let base = self.address.replace("{id}", &site.spec.id).replace("{namespace}", &self.namespace);
        let prefix = names::public_path(site).unwrap_or_default();
        let mut request = self.client.get(format!("{base}{prefix}{path}"));
        if let Some(token) = token {
            request = request.bearer_auth(token.expose_secret());
        }
        let answer = request.send().await.map_err(|error| told(&error))?;
        let status = answer.status().as_u16();
        let mut body = Vec::new();
        let mut parts = answer.bytes_stream();
        while let Some(part) = parts.next().await {
            body.extend_from_slice(&part.map_err(|error| told(&error))?);
            if body.len() > BYTES {
                return Err(ProbeError::TooLarge);
            }
        }
        Ok((status, body))
    }

    /// Whether the front page answers. A page that is larger than what is read is an answer.
    pub async fn probe(&self, site: &Site) -> Probe {
        let (at, begun) = (Timestamp::now(), Instant::now());
        let answer = self.get(site, "/", None).await;
        let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (ok, outcome) = match answer {
            Ok((status, _)) => (status < 500, status.to_string()),
            Err(error @ ProbeError::TooLarge) => (true, error.to_string()),
            Err(error) => (false, error.to_string()),
        };
        Probe { at, ok, outcome, milliseconds }
    }
}

fn told(error: &reqwest::Error) -> ProbeError {
    if error.is_timeout() {
        ProbeError::Timeout
    } else if error.is_connect() {
        ProbeError::Connection
    } else {
        ProbeError::Broken
    }
}
