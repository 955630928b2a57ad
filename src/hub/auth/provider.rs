//! Talking to the OpenID provider: keys, codes, tokens that only it can read, and what it publishes of itself.
//!
//! Owns the HTTP client. It follows no redirect and reads no endless answer. Nothing that the provider says reaches a
//! log or an answer: it may repeat what was sent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use openidconnect::core::{CoreAuthPrompt, CoreAuthenticationFlow, CoreClient, CoreJsonWebKeySet};
use openidconnect::url::Url;
use openidconnect::{
    AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet, EndpointSet, HttpRequest,
    HttpResponse, IssuerUrl, Nonce, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope, TokenResponse, TokenUrl,
};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::AuthError;
use super::token::Claims;
use crate::cache::Cache;
use crate::settings::Settings;

/// Longest time of one exchange.
const LIMIT: Duration = Duration::from_secs(10);
/// Largest answer.
const LARGEST: usize = 1 << 20;
/// How long what a provider publishes is kept.
const KEPT: Duration = Duration::from_secs(3600);
/// How soon it is asked again after a failure: people wait for it.
const RETRY: Duration = Duration::from_secs(10);
/// Oldest password that an ordinary login goes by: asked for any age at all, a provider has to say when it was given
/// (`auth_time`), and a year asks practically nobody for it again.
const OLDEST: Duration = Duration::from_secs(365 * 24 * 3600);

type Client = CoreClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet, EndpointNotSet>;

/// What a provider publishes, as far as it is used. All other addresses are settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Discovery {
    issuer: String,
    end_session_endpoint: Option<String>,
    introspection_endpoint: Option<String>,
}

/// Where a login begins, and what must come back.
pub struct Begun {
    /// The provider's page.
    pub url: Url,
    /// Comes back with the code.
    pub state: String,
    /// Comes back in the ID token.
    pub nonce: String,
    /// Goes with the code.
    pub verifier: String,
}

/// The provider.
pub struct Provider {
    settings: Arc<Settings>,
    http: reqwest::Client,
    client: Option<Client>,
    cache: Cache,
    discovered: Mutex<Option<(Instant, Option<Arc<Discovery>>)>>,
}

impl Provider {
    /// By the settings.
    pub fn new(settings: Arc<Settings>, cache: Cache) -> Result<Self, AuthError> {
        // One of the process; somebody else may have chosen it already.
        let _already_chosen = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .user_agent(concat!("sites-hub/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .timeout(LIMIT)
            .build()
            .map_err(|_| AuthError::Setting("oidc: no HTTP client"))?;
        let client = settings.hub_url().map(|hub| client(&settings, &hub)).transpose()?;
        Ok(Self { settings, http, client, cache, discovered: Mutex::default() })
    }

    /// Begins a login. `fresh` asks for the password even of somebody whom the provider knows already; when it was given
    /// is asked in any case, so that who has just given it is not asked once more.
    pub fn begin(&self, fresh: bool) -> Result<Begun, AuthError> {
        let client = self.client.as_ref().ok_or(AuthError::NoAddress)?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = CoreAuthenticationFlow::AuthorizationCode;
        let mut request = client.authorize_url(flow, CsrfToken::new_random, Nonce::new_random);
        let scopes = self.settings.oidc.scope.split(' ').filter(|scope| !matches!(*scope, "" | "openid"));
        request = request.add_scopes(scopes.map(|scope| Scope::new(scope.to_owned()))).set_pkce_challenge(challenge);
        request = request.set_max_age(if fresh { Duration::ZERO } else { OLDEST });
        if fresh {
            request = request.add_prompt(CoreAuthPrompt::Login);
        }
        let (url, state, nonce) = request.url();
        Ok(Begun { url, state: state.into_secret(), nonce: nonce.secret().clone(), verifier: verifier.into_secret() })
    }

    /// The ID token for a code, not yet verified.
    pub async fn redeem(&self, code: String, verifier: String) -> Result<String, AuthError> {
        let client = self.client.as_ref().ok_or(AuthError::NoAddress)?;
        let own = self.http.clone();
        let http = move |request: HttpRequest| exchange(own.clone(), request);
        let exchange = client.exchange_code(AuthorizationCode::new(code));
        let answer = exchange.set_pkce_verifier(PkceCodeVerifier::new(verifier)).request_async(&http).await;
        let answer = answer.map_err(|error| match error {
            openidconnect::RequestTokenError::ServerResponse(_) => AuthError::Code,
            openidconnect::RequestTokenError::Request(error) => error,
            _ => AuthError::Provider("its token endpoint answered something else"),
        })?;
        answer.id_token().map(ToString::to_string).ok_or(AuthError::Provider("it gave no ID token"))
    }

    /// Its keys as they are now.
    pub async fn keys(&self) -> Result<CoreJsonWebKeySet, AuthError> {
        let keys: CoreJsonWebKeySet = self.json(self.http.get(&self.settings.oidc.jwks_url)).await?;
        if keys.keys().is_empty() { Err(AuthError::Provider("it has no keys")) } else { Ok(keys) }
    }

    /// What it says of a token that only it can read; none: it does not know it, or cannot be asked.
    pub async fn introspect(&self, token: &str) -> Result<Option<Claims>, AuthError> {
        let oidc = &self.settings.oidc;
        let published = async { self.discovery().await.and_then(|all| all.introspection_endpoint.clone()) };
        let Some(url) = or_else(oidc.introspection_url.clone(), published).await else { return Ok(None) };
        let request = self
            .http
            .post(url)
            .basic_auth(&oidc.client_id, Some(secret(&self.settings)))
            .form(&[("token", token), ("token_type_hint", "access_token")]);
        let claims: Claims = self.json(request).await?;
        Ok((claims.get("active") == Some(&true.into())).then_some(claims))
    }

    /// Where its own session is ended, and people are sent back to us.
    pub async fn end_session(&self) -> Option<Url> {
        let published = async { self.discovery().await.and_then(|all| all.end_session_endpoint.clone()) };
        let url = or_else(self.settings.oidc.logout_url.clone(), published).await?;
        let mut url = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "https" | "http"))?;
        let back = format!("{}/", self.settings.hub_url()?);
        let client = &self.settings.oidc.client_id;
        url.query_pairs_mut().append_pair("client_id", client).append_pair("post_logout_redirect_uri", &back);
        Some(url)
    }

    /// What it publishes, from memory, from Redis, or from itself. A failure is not kept, but costs nobody a wait
    /// for a few seconds.
    async fn discovery(&self) -> Option<Arc<Discovery>> {
        let held = || self.discovered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, known)) = &*held() {
            let fresh = if known.is_some() { KEPT } else { RETRY };
            if since.elapsed() < fresh {
                return known.clone();
            }
        }
        let issuer = &self.settings.oidc.issuer;
        let ours = |text: &str| {
            let found: Option<Discovery> = serde_json::from_str(text).ok();
            found.filter(|found| found.issuer == *issuer)
        };
        let mut found = self.cache.discovery(issuer).await.as_deref().and_then(ours);
        if found.is_none() {
            let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
            let text = self.bytes(self.http.get(url)).await.ok().and_then(|bytes| String::from_utf8(bytes).ok());
            found = text.as_deref().and_then(ours);
            if let (Some(_), Some(text)) = (&found, &text) {
                self.cache.keep_discovery(issuer, text, KEPT).await;
            } else {
                tracing::warn!(issuer, "the provider's own description cannot be read");
            }
        }
        let found = found.map(Arc::new);
        *held() = Some((Instant::now(), found.clone()));
        found
    }

    async fn json<T: DeserializeOwned>(&self, request: reqwest::RequestBuilder) -> Result<T, AuthError> {
        let bytes = self.bytes(request).await?;
        serde_json::from_slice(&bytes).map_err(|_| AuthError::Provider("it answered something else"))
    }

    async fn bytes(&self, request: reqwest::RequestBuilder) -> Result<Vec<u8>, AuthError> {
        let request = request.build().map_err(|_| AuthError::Provider("its address is malformed"))?;
        let answer = sent(&self.http, request).await?;
        if answer.status().is_success() {
            Ok(answer.into_body())
        } else {
            Err(AuthError::Provider("it answered with an error"))
        }
    }
}

async fn exchange(http: reqwest::Client, request: HttpRequest) -> Result<HttpResponse, AuthError> {
    sent(&http, request.try_into().map_err(|_| AuthError::Provider("its address is malformed"))?).await
}

async fn sent(http: &reqwest::Client, request: reqwest::Request) -> Result<HttpResponse, AuthError> {
    let mut answer = http.execute(request).await.map_err(|_| AuthError::Provider("no connection"))?;
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|_| AuthError::Provider("its answer broke off"))? {
        body.extend_from_slice(&piece);
        if body.len() > LARGEST {
            return Err(AuthError::Provider("its answer is too large"));
        }
    }
    let mut whole = HttpResponse::new(body);
    *whole.status_mut() = answer.status();
    *whole.headers_mut() = answer.headers().clone();
    Ok(whole)
}

fn client(settings: &Settings, hub: &str) -> Result<Client, AuthError> {
    let oidc = &settings.oidc;
    let wrong = |key: &'static str| move |_| AuthError::Setting(key);
    Ok(CoreClient::new(
        ClientId::new(oidc.client_id.clone()),
        IssuerUrl::new(oidc.issuer.clone()).map_err(wrong("oidc.issuer"))?,
        CoreJsonWebKeySet::default(),
    )
    .set_client_secret(ClientSecret::new(secret(settings).to_owned()))
    .set_auth_uri(AuthUrl::new(oidc.login_url.clone()).map_err(wrong("oidc.login_url"))?)
    .set_token_uri(TokenUrl::new(oidc.redeem_url.clone()).map_err(wrong("oidc.redeem_url"))?)
    .set_redirect_uri(RedirectUrl::new(format!("{hub}/callback/")).map_err(wrong("routing.hub_host"))?))
}

/// The client's secret; a file that it was read from may end in a new line.
fn secret(settings: &Settings) -> &str {
    settings.oidc.client_secret.expose_secret().trim_end_matches(['\r', '\n'])
}

async fn or_else<T>(first: Option<T>, second: impl Future<Output = Option<T>>) -> Option<T> {
    if first.is_some() { first } else { second.await }
}
