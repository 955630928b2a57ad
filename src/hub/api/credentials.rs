//! Credentials of a Site: tokens and addresses that its own API makes, and its master token. The Hub keeps none.

use std::collections::HashMap;

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::Method;
use axum::http::request::Parts;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::caller::Caller;
use super::super::error::{ApiError, ErrorBody};
use super::super::forms::body::Fields;
use super::super::sites::address::Address;
use super::super::sites::{find, master_token};
use super::super::state::Hub;
use super::super::trace::Trace;
use super::bodies::{SessionForm, SignForm, TokenForm, VerifyForm};
use crate::domain::forms;

/// What is below one Site.
pub fn routes() -> OpenApiRouter<Hub> {
    OpenApiRouter::new()
        .routes(routes!(tokens, create_token))
        .routes(routes!(history))
        .routes(routes!(token, revoke))
        .routes(routes!(sign))
        .routes(routes!(verify))
        .routes(routes!(open_session))
        .routes(routes!(master))
        .routes(routes!(regenerate))
}

/// The master token.
#[derive(Serialize, ToSchema)]
pub struct MasterToken {
    /// Always `OK`.
    pub status: &'static str,
    /// The token; null when there is none.
    pub token: Option<String>,
    /// Said when there is something to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'static str>,
}

/// The id of a token, from the path.
pub struct TokenId(String);

impl<S: Send + Sync> FromRequestParts<S> for TokenId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let given = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
        let id = given.ok().and_then(|Path(mut given)| given.remove("token_id")).filter(|id| forms::segment(id));
        id.map(Self).ok_or_else(|| ApiError::field("id", "is no id of a token"))
    }
}

macro_rules! proxied {
    (
        $name:ident, $verb:ident, $method:ident, $path:literal, [$($segment:literal),*], $($form:ident)?, $site:expr,
        $doc:literal
    ) => {
        #[doc = $doc]
        #[utoipa::path($verb, path = $path, tag = "credentials",
            $(request_body(content(($form = "application/json"), ($form = "application/x-www-form-urlencoded"))),)?
            responses(
            (status = 200, body = Value, description = "The answer of the site's own API"),
            (status = 400, body = ErrorBody, description = "The site's API says what is wrong with the request"),
            (status = 403, body = ErrorBody), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
            (status = 410, body = ErrorBody, description = "The site is archived"), (status = 413, body = ErrorBody),
            (status = 415, body = ErrorBody),
            (status = 500, body = ErrorBody, description = "The site's API failed, in its own words"),
            (status = 503, body = ErrorBody, description = "The site does not answer, or the cluster does not"),
        ))]
        pub async fn $name(
            State(hub): State<Hub>,
            caller: Caller,
            address: Address,
            fields: Fields,
        ) -> Result<Json<Value>, ApiError> {
            let site = find::enabled(&hub, &caller, &address, $site).await?;
            let body = (Method::$method != Method::GET).then_some(&fields.0);
            Ok(Json(hub.site_api.call(&site, Method::$method, &[$($segment),*], body).await?))
        }
    };
}

const NO_TOKENS: &str = "it has no tokens while it is off";
const NO_URLS: &str = "nothing of it can be opened";

proxied!(tokens, get, GET, "/tokens/", ["tokens"], , NO_TOKENS, "The Site's access tokens, without their texts.");
proxied!(
    create_token,
    post,
    POST,
    "/tokens/",
    ["tokens"],
    TokenForm,
    NO_TOKENS,
    "Makes an access token. Its text is shown this once."
);
proxied!(
    history,
    get,
    GET,
    "/tokens/history/",
    ["tokens", "history"],
    ,
    NO_TOKENS,
    "What happened to the Site's tokens."
);
proxied!(sign, post, POST, "/signed-urls/", ["signed-urls"], SignForm, NO_URLS, "Signs an address of content.");
proxied!(
    verify,
    post,
    POST,
    "/signed-urls/verify/",
    ["signed-urls", "verify"],
    VerifyForm,
    NO_URLS,
    "Whether a signed address is good: `url`; `valid`, and if it is not, `reason`."
);
proxied!(
    open_session,
    post,
    POST,
    "/session-urls/",
    ["session-urls"],
    SessionForm,
    NO_URLS,
    "Makes an address that lets a browser read the Site for a time."
);

macro_rules! of_token {
    ($name:ident, $verb:ident, $method:ident, $doc:literal) => {
        #[doc = $doc]
        #[utoipa::path($verb, path = "/tokens/{token_id}/", tag = "credentials",
            params(("token_id" = String, Path, description = "Id of the token", pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")),
            responses(
            (status = 200, body = Value, description = "The answer of the site's own API"),
            (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
            (status = 409, body = ErrorBody), (status = 410, body = ErrorBody, description = "The site is archived"),
            (status = 500, body = ErrorBody, description = "The site's API failed, in its own words"),
            (status = 503, body = ErrorBody, description = "The site does not answer, or the cluster does not"),
        ))]
        pub async fn $name(
            State(hub): State<Hub>,
            caller: Caller,
            address: Address,
            TokenId(id): TokenId,
        ) -> Result<Json<Value>, ApiError> {
            let site = find::enabled(&hub, &caller, &address, NO_TOKENS).await?;
            Ok(Json(hub.site_api.call(&site, Method::$method, &["tokens", &id], None).await?))
        }
    };
}

of_token!(token, get, GET, "One access token, without its text.");
of_token!(revoke, delete, DELETE, "Revokes an access token.");

/// The Site's master token: it opens everything of the Site.
#[utoipa::path(get, path = "/master-token/", tag = "credentials", responses(
    (status = 200, body = MasterToken),
    (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
))]
pub async fn master(State(hub): State<Hub>, caller: Caller, address: Address) -> Result<Json<MasterToken>, ApiError> {
    let site = find::administered(&hub, &caller, &address).await?;
    caller.fresh(&hub.settings)?;
    Ok(Json(MasterToken { status: "OK", token: master_token::of(&site).map(str::to_owned), message: None }))
}

/// Replaces the Site's master token; the answer has the new one.
#[utoipa::path(post, path = "/master-token/regenerate/", tag = "credentials", responses(
    (status = 200, body = MasterToken, description = "The new token; null for an archived site"),
    (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    (status = 409, body = ErrorBody),
))]
pub async fn regenerate(
    State(hub): State<Hub>,
    caller: Caller,
    trace: Trace,
    address: Address,
) -> Result<Json<MasterToken>, ApiError> {
    let site = find::administered(&hub, &caller, &address).await?;
    caller.fresh(&hub.settings)?;
    let token = master_token::regenerate(&hub, &caller, site, &trace).await?;
    let message = token.is_none().then_some("the site is archived: its master token stays as it is");
    Ok(Json(MasterToken { status: "OK", token, message }))
}
