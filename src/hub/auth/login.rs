//! Logging in and out, by a browser.
//!
//! Owns `/hub/login/`, `/hub/callback/` and `/hub/logout/`. What a login needs to go on is in a short-lived encrypted
//! cookie of its own, so that several tabs may log in at once and no other browser can finish one.

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum_extra::extract::cookie::PrivateCookieJar;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::error::AuthError;
use super::session::{self, Session};
use super::target::{self, target};
use super::token::{self, Expected, Fault};
use super::{Inner, identity};
use crate::hub::caller::{Caller, Credential};
use crate::hub::error::ApiError;
use crate::hub::pages::home;
use crate::hub::state::Hub;

/// What a login's own cookie begins with.
const NAME: &str = "__Secure-sites-login-";
/// Seconds that a person has to log in.
const PATIENCE: i64 = 15 * 60;
/// Logins at the same time in one browser.
const TABS: usize = 5;

/// The routes.
pub fn routes() -> Router<Hub> {
    Router::new()
        .route("/hub/login/", get(begin))
        .route("/hub/callback/", get(finish))
        .route("/hub/logout/", get(home::page).post(leave))
}

/// A login that was begun.
#[derive(Serialize, Deserialize)]
struct Pending {
    state: String,
    nonce: String,
    verifier: String,
    next: String,
    fresh: bool,
    at: i64,
}

/// Where to go after the login, and whether the password must be given anew.
#[derive(Deserialize)]
struct Wish {
    next: Option<String>,
    fresh: Option<String>,
}

/// `GET /hub/login/?next=/hub/…&fresh=1`: 303 to the provider.
async fn begin(State(hub): State<Hub>, Query(wish): Query<Wish>, headers: HeaderMap) -> Result<Response, ApiError> {
    let auth = &*hub.auth.0;
    let address = hub.settings.hub_url().ok_or(AuthError::NoAddress)?;
    let fresh = matches!(wish.fresh.as_deref(), Some("1" | "true"));
    let begun = auth.provider.begin(fresh)?;
    let next = target(wish.next.as_deref(), &address);
    let now = Timestamp::now().as_second();
    let pending = Pending { state: begun.state, nonce: begun.nonce, verifier: begun.verifier, next, fresh, at: now };
    let name = name(&pending.state);
    let value = serde_json::to_string(&pending).unwrap_or_default();
    let jar = room(auth.jar(&headers), now).add(session::cookie(name, value));
    Ok((jar, Redirect::to(begun.url.as_str())).into_response())
}

/// What the provider sends back.
#[derive(Deserialize)]
struct Answer {
    state: Option<String>,
    code: Option<String>,
}

/// `GET /hub/callback/?code=…&state=…`: 303 to where the person wanted to go.
async fn finish(State(hub): State<Hub>, Query(answer): Query<Answer>, headers: HeaderMap) -> Response {
    let auth = &*hub.auth.0;
    let mut jar = auth.jar(&headers);
    let state = answer.state.unwrap_or_default();
    let pending = pending(&jar, &state);
    // Used up, however this ends.
    jar = jar.remove(session::cookie(name(&state), String::new()));
    let code = answer.code.filter(|code| !code.is_empty());
    match auth.confirm(pending, code).await {
        Ok((session, next)) => {
            let (user, groups) = (session.user.clone(), session.groups.len());
            let (jar, left_out) = session.write(jar);
            if left_out > 0 {
                tracing::warn!(user, groups, left_out, "the groups are too many for a session: the last are left out");
            }
            tracing::info!(user, "logged in");
            (jar, Redirect::to(&next)).into_response()
        }
        Err(error) => {
            tracing::info!(%error, "a login failed");
            (jar, ApiError::from(error)).into_response()
        }
    }
}

/// `POST /hub/logout/`: ends the session everywhere, then 303 to the provider, which ends its own and sends people
/// back. By a session only: whoever comes with a token has none.
async fn leave(State(hub): State<Hub>, caller: Caller, headers: HeaderMap) -> Result<Response, ApiError> {
    let auth = &*hub.auth.0;
    if caller.credential() == Credential::Bearer {
        return Err(ApiError::BadRequest("a token has no session: it ends by itself".to_owned()));
    }
    let jar = auth.jar(&headers);
    if let Some(session) = Session::read(&jar, Timestamp::now().as_second()) {
        auth.sign_out(&session).await;
        tracing::info!(user = session.user, "logged out");
    }
    let end = auth.provider.end_session().await;
    let next = end.as_ref().map_or(target::DEFAULT, |url| url.as_str());
    let location = [(header::LOCATION, next.to_owned())];
    Ok((StatusCode::SEE_OTHER, Session::remove(jar), location).into_response())
}

impl Inner {
    /// Who has logged in, and where they wanted to go.
    async fn confirm(&self, pending: Option<Pending>, code: Option<String>) -> Result<(Session, String), AuthError> {
        let pending = pending.ok_or(AuthError::NotBegun)?;
        let text = self.provider.redeem(code.ok_or(AuthError::Refused)?, pending.verifier).await?;
        let oidc = &self.settings.oidc;
        let now = Timestamp::now().as_second();
        let expected = Expected { issuer: &oidc.issuer, audience: &oidc.client_id, now };
        let claims = self.verified(&text, &expected).await?;
        let said = |name: &str| claims.get(name).and_then(serde_json::Value::as_str);
        if said("nonce") != Some(&pending.nonce) {
            return Err(Fault::Nonce.into());
        }
        if said("azp").is_some_and(|party| party != oidc.client_id) {
            return Err(Fault::Audience.into());
        }
        let auth_time = token::seconds(&claims, "auth_time")?;
        if pending.fresh && auth_time.is_none_or(|at| at < pending.at - token::SKEW) {
            return Err(AuthError::NotFresh);
        }
        let person = identity::person(&claims, &oidc.groups_claim)?;
        let lifetime = i64::try_from(self.settings.hub.session_lifetime.get().as_secs()).unwrap_or_default();
        let session = Session {
            id: uuid::Uuid::new_v4().simple().to_string(),
            user: person.user,
            email: person.email,
            preferred_username: person.preferred_username,
            groups: person.groups,
            until: now + lifetime,
            auth_time,
        };
        Ok((session, pending.next))
    }

    /// A stolen copy of the cookie ends too.
    async fn sign_out(&self, session: &Session) {
        self.signed_out.insert(session.id.clone(), ()).await;
        let left = session.until - Timestamp::now().as_second();
        let left = std::time::Duration::from_secs(u64::try_from(left).unwrap_or_default().max(1));
        if self.cache.is_on() && self.cache.revoke(&self.namespace, &session.id, left).await.is_err() {
            tracing::warn!(user = session.user, "the sign-out is known to this replica only: the cache is down");
        }
    }
}

fn name(state: &str) -> String {
    let hash = Sha256::digest(state);
    format!("{NAME}{}", URL_SAFE_NO_PAD.encode(&hash[..9]))
}

/// The login that this answer is for.
fn pending(jar: &PrivateCookieJar, state: &str) -> Option<Pending> {
    let cookie = jar.get(&name(state))?;
    let pending: Pending = serde_json::from_str(cookie.value()).ok()?;
    let same = bool::from(pending.state.as_bytes().ct_eq(state.as_bytes()));
    (same && pending.at + PATIENCE > Timestamp::now().as_second()).then_some(pending)
}

/// The cookies with room for one more login: those that are too old go, then the oldest.
fn room(mut jar: PrivateCookieJar, now: i64) -> PrivateCookieJar {
    let mut begun: Vec<(i64, String)> = jar
        .iter()
        .filter(|cookie| cookie.name().starts_with(NAME))
        .map(|cookie| {
            let pending: Option<Pending> = serde_json::from_str(cookie.value()).ok();
            (pending.map_or(0, |pending| pending.at), cookie.name().to_owned())
        })
        .collect();
    begun.sort();
    let over = begun.len().saturating_sub(TABS - 1);
    for (number, (at, name)) in begun.into_iter().enumerate() {
        if number < over || at + PATIENCE <= now {
            jar = jar.remove(session::cookie(name, String::new()));
        }
    }
    jar
}
