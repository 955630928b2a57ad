//! Who is who: sessions of browsers and tokens of programs.
//!
//! Owns the way from a request to a [`Caller`]. What the caller may do is decided in [`super::caller`].

mod csrf;
mod error;
mod identity;
mod keys;
pub mod login;
mod provider;
mod secrets;
mod session;
mod target;
mod token;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum_extra::extract::cookie::PrivateCookieJar;
use jiff::Timestamp;
use moka::future::Cache as Memory;
use sha2::{Digest, Sha256};

pub use self::csrf::harmless;
pub use self::error::AuthError;
use self::keys::Keys;
use self::provider::Provider;
use self::secrets::Secrets;
use self::session::Session;
use self::token::{Claims, Expected, Fault, Token};
use super::caller::{Caller, Credential};
use super::error::ApiError;
use super::limits::Limits;
use super::state::Hub;
use crate::cache::Cache;
use crate::domain::people::Person;
use crate::settings::Settings;

/// How long a token that was verified is not looked at again.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Tokens and signed-out sessions that are kept in memory at most.
const MOST: u64 = 10_000;

/// What is needed to recognise somebody; cheap to clone.
#[derive(Clone)]
pub struct Auth(Arc<Inner>);

struct Inner {
    settings: Arc<Settings>,
    namespace: Arc<str>,
    cache: Cache,
    secrets: Secrets,
    provider: Provider,
    keys: Keys,
    origin: Option<String>,
    /// People of verified tokens and when those end, by the tokens' hashes.
    known: Memory<[u8; 32], (Person, i64)>,
    /// Sessions that were signed out at this replica: all there is without Redis.
    signed_out: Memory<String, ()>,
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Auth")
    }
}

impl Auth {
    /// By the settings. `namespace` is the platform's.
    pub fn new(settings: &Arc<Settings>, namespace: &Arc<str>, cache: &Cache) -> Result<Self, AuthError> {
        let lifetime = settings.hub.session_lifetime.get();
        Ok(Self(Arc::new(Inner {
            secrets: Secrets::new(&settings.session.secret_key)?,
            provider: Provider::new(settings.clone(), cache.clone())?,
            keys: Keys::default(),
            origin: settings.hub_url().map(|hub| hub.trim_end_matches("/hub").to_owned()),
            known: Memory::builder().max_capacity(MOST).time_to_live(REMEMBERED).build(),
            signed_out: Memory::builder().max_capacity(MOST).time_to_live(lifetime).build(),
            settings: settings.clone(),
            namespace: namespace.clone(),
            cache: cache.clone(),
        })))
    }

    /// Puts the caller into a request, which a session's form comes out of without its token. 401 for a token that is
    /// refused: somebody who shows one wants to be recognised.
    async fn recognised(&self, mut request: Request, limits: &Limits) -> Result<Request, ApiError> {
        let auth = &*self.0;
        let peer = limits.peer(&request);
        let caller = if let Some(given) = request.headers().get(header::AUTHORIZATION) {
            // A scheme in any case, then the token.
            let token = given.to_str().ok().and_then(|given| given.split_once(' '));
            let token =
                token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
            let person = match token {
                Some(token) => auth.bearer(token, || limits.check_peer(peer)).await,
                None => Err(AuthError::from(Fault::Malformed).into()),
            };
            let person = match person {
                Ok(person) => person,
                Err(error) => {
                    limits.check_peer(peer)?;
                    return Err(error);
                }
            };
            auth.caller(person, Credential::Bearer, None)
        } else if let Some(session) = auth.session(request.headers()).await {
            let logged_in = session.auth_time.and_then(|seconds| Timestamp::from_second(seconds).ok());
            let token = auth.secrets.csrf_token(&session.id);
            let caller = auth.caller(session.person(), Credential::Session, logged_in).with_csrf_token(&token);
            let (origin, limit) = (auth.origin.as_deref(), auth.settings.hub.body_limit);
            request = csrf::check(request, &auth.secrets, &session.id, origin, limit).await?;
            caller
        } else {
            Caller::default()
        };
        match caller.person() {
            Some(person) => {
                tracing::Span::current().record("user", person.user.as_str());
                limits.check_user(&person.user)?;
            }
            None => limits.check_peer(peer)?,
        }
        request.extensions_mut().insert(caller);
        Ok(request)
    }
}

impl Inner {
    fn caller(&self, person: Person, credential: Credential, logged_in: Option<Timestamp>) -> Caller {
        let chosen = &self.settings.hub.platform_administrators;
        let administers = person.listed(&chosen.users, &chosen.groups);
        Caller::known(person, administers, credential, logged_in)
    }

    fn jar(&self, headers: &HeaderMap) -> PrivateCookieJar {
        PrivateCookieJar::from_headers(headers, self.secrets.cookies.clone())
    }

    /// The session of a request, unless it has ended or was signed out.
    async fn session(&self, headers: &HeaderMap) -> Option<Session> {
        let session = Session::read(&self.jar(headers), Timestamp::now().as_second())?;
        let out = self.signed_out.contains_key(&session.id)
            || self.cache.is_on() && self.cache.revoked(&self.namespace, &session.id).await;
        (!out).then_some(session)
    }

    /// The person of a token. `costs` is asked before somebody else has to be.
    async fn bearer(&self, token: &str, costs: impl FnOnce() -> Result<(), ApiError>) -> Result<Person, ApiError> {
        let (key, now) = (Sha256::digest(token).into(), Timestamp::now().as_second());
        if let Some((person, until)) = self.known.get(&key).await.filter(|(_, until)| *until + token::SKEW > now) {
            let _ = until;
            return Ok(person);
        }
        let oidc = &self.settings.oidc;
        let audience = self.settings.hub.audience.as_ref().unwrap_or(&oidc.client_id);
        let expected = Expected { issuer: &oidc.issuer, audience, now };
        let claims = if token.contains('.') {
            self.verified(token, &expected).await?
        } else {
            if !opaque(token) {
                return Err(AuthError::from(Fault::Malformed).into());
            }
            costs()?;
            let mut claims = self.provider.introspect(token).await?.ok_or(AuthError::from(Fault::Unknown))?;
            // A client's own token: in a JSON Web Token its subject is the client, here it may be left out.
            if let Some(client) = claims.get("client_id").cloned() {
                claims.entry("sub").or_insert(client);
            }
            token::check(&claims, &expected).map_err(AuthError::from)?;
            claims
        };
        let person = identity::person(&claims, &oidc.groups_claim).map_err(AuthError::from)?;
        let until = token::seconds(&claims, "exp").ok().flatten().unwrap_or(now);
        self.known.insert(key, (person.clone(), until)).await;
        Ok(person)
    }

    /// The claims of a token that is the provider's and for us.
    async fn verified(&self, text: &str, expected: &Expected<'_>) -> Result<Claims, AuthError> {
        let token = Token::read(text)?;
        token.check(expected)?;
        let (kept, old) = self.keys.kept();
        if let Some(claims) = kept.as_ref().and_then(|keys| token.verified(keys)).filter(|_| !old) {
            return Ok(claims.clone());
        }
        let newer = self.keys.newer(kept.as_ref(), || self.provider.keys()).await?;
        let keys = newer.or(kept.filter(|_| old)).ok_or(Fault::Signature)?;
        Ok(token.verified(&keys).cloned().ok_or(Fault::Signature)?)
    }
}

/// The characters and the length of a token that is no JSON Web Token.
fn opaque(token: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    (1..=2048).contains(&token.len()) && token.bytes().all(known)
}

/// Puts the [`Caller`] into each request.
pub async fn identify(State(hub): State<Hub>, request: Request, next: Next) -> Response {
    match hub.auth.recognised(request, &hub.limits).await {
        Ok(request) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}
