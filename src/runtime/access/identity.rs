//! Who a visitor is: asked of oauth2-proxy on loopback, with the visitor's own cookie or token.
//!
//! Owns the question and its short memory. Only answers are remembered, no failures.

use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use moka::future::Cache;
use sha2::{Digest, Sha256};

use super::refusal::Refusal;

/// How long an answer counts.
const MEMORY: Duration = Duration::from_secs(5);
/// Most answers that are remembered.
const MEMORIES: u64 = 10_000;
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
const UNAVAILABLE: Refusal = Refusal::Unavailable("the login service does not answer");

/// A person, as the identity provider knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Subject or user id; never empty.
    pub user: String,
    /// May be empty.
    pub email: String,
    /// May be empty.
    pub preferred_username: String,
    /// Exact names.
    pub groups: Vec<String>,
}

impl Identity {
    /// All that lists of people may call them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [&self.user, &self.email, &self.preferred_username].into_iter().map(String::as_str).filter(|n| !n.is_empty())
    }

    fn read(headers: &HeaderMap) -> Option<Self> {
        let text = |name: &str| {
            let value = headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
            value.unwrap_or_default().trim().to_owned()
        };
        let user = text("x-auth-request-user");
        let groups = text("x-auth-request-groups");
        let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty()).map(str::to_owned).collect();
        let email = text("x-auth-request-email");
        let preferred_username = text("x-auth-request-preferred-username");
        (!user.is_empty()).then_some(Self { user, email, preferred_username, groups })
    }
}

/// oauth2-proxy's `/oauth2/auth`.
pub struct IdentitySource {
    url: Uri,
    client: Client<HttpConnector, Empty<Bytes>>,
    known: Cache<[u8; 32], Option<Arc<Identity>>>,
}

impl IdentitySource {
    /// Asks at this address.
    #[must_use]
    pub fn new(url: Uri) -> Self {
        Self {
            url,
            client: Client::builder(TokioExecutor::new()).pool_idle_timeout(Duration::from_secs(30)).build_http(),
            known: Cache::builder().max_capacity(MEMORIES).time_to_live(MEMORY).build(),
        }
    }

    /// Who has this session or token of the provider; `None` if it is good for nobody.
    pub async fn ask(
        &self,
        cookie: Option<HeaderValue>,
        bearer: Option<HeaderValue>,
    ) -> Result<Option<Arc<Identity>>, Refusal> {
        let mut digest = Sha256::new();
        for part in [&cookie, &bearer] {
            let bytes = part.as_ref().map(HeaderValue::as_bytes).unwrap_or_default();
            digest.update((bytes.len() as u64).to_le_bytes());
            digest.update(bytes);
        }
        let asked = self.known.try_get_with(digest.finalize().into(), self.fetch(cookie, bearer));
        asked.await.map_err(|refusal| Refusal::clone(&refusal))
    }

    async fn fetch(
        &self,
        cookie: Option<HeaderValue>,
        bearer: Option<HeaderValue>,
    ) -> Result<Option<Arc<Identity>>, Refusal> {
        let mut request = Request::get(self.url.clone()).body(Empty::new()).map_err(|_| UNAVAILABLE)?;
        request.headers_mut().extend(cookie.map(|cookie| (COOKIE, cookie)));
        request.headers_mut().extend(bearer.map(|bearer| (AUTHORIZATION, bearer)));
        let answer = tokio::time::timeout(PATIENCE, self.client.request(request)).await;
        let answer = answer.map_err(|_| UNAVAILABLE)?.map_err(|error| {
            tracing::warn!(%error, "oauth2-proxy does not answer");
            UNAVAILABLE
        })?;
        match answer.status() {
            StatusCode::ACCEPTED | StatusCode::OK => Ok(Identity::read(answer.headers()).map(Arc::new)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Ok(None),
            status => {
                tracing::warn!(%status, "oauth2-proxy answers oddly");
                Err(UNAVAILABLE)
            }
        }
    }
}
