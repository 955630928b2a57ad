//! `/tokens`: HTTP access tokens of the site.

use axum::extract::{Path, State};
use axum::response::Response;
use jiff::Timestamp;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use tracing::info;
use utoipa::ToSchema;

use super::Api;
use super::answer::{Success, ok};
use super::asked::{Asked, Json, join};
use super::error::{ApiError, Failure};
use crate::runtime::access::{AccessToken, Event, NewToken, Privilege, Wanted};

/// A token to be made.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"label": "documentation pipeline", "privilege": "read", "duration": 86_400}))]
pub struct TokenRequest {
    /// What it is for.
    #[schema(example = "documentation pipeline")]
    label: String,
    /// What it opens.
    privilege: Privilege,
    /// Seconds that it lives; absent means until it is revoked.
    duration: Option<i64>,
}

/// A new token. Its text is never shown again.
#[derive(Serialize, ToSchema)]
pub struct CreatedToken {
    /// What is kept of it.
    token: AccessToken,
    /// The token itself, for `Authorization: Bearer` or as the password of `WebDAV`.
    value: String,
    /// The same rights for S3 clients.
    s3: S3Key,
}

/// What an S3 client needs.
#[derive(Serialize, ToSchema)]
pub struct S3Key {
    /// The token's id.
    access_key_id: String,
    /// Belongs to the id.
    secret_access_key: String,
}

/// All tokens that are remembered.
#[derive(Serialize, ToSchema)]
pub struct TokenList {
    /// Newest first.
    tokens: Vec<AccessToken>,
}

/// One token.
#[derive(Serialize, ToSchema)]
pub struct OneToken {
    /// Without its text.
    token: AccessToken,
}

/// What happened to the site's tokens.
#[derive(Serialize, ToSchema)]
pub struct TokenHistory {
    /// Newest first.
    history: Vec<Event>,
}

/// Make a token.
#[utoipa::path(
    post, path = "/tokens", tag = "tokens", operation_id = "create_token",
    request_body = TokenRequest,
    responses(
        (status = 200, body = Success<CreatedToken>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 408, body = Failure), (status = 409, body = Failure), (status = 413, body = Failure),
        (status = 503, body = Failure),
    )
)]
pub async fn create(
    State(api): State<Api>,
    asked: Asked,
    body: Result<Json<TokenRequest>, ApiError>,
) -> Result<Response, ApiError> {
    let by = asked.allow(&api, Wanted::Administer).await?.to_string();
    let Json(TokenRequest { label, privilege, duration }) = body?;
    let new = NewToken { label, privilege, duration };
    let access = api.access.clone();
    let (token, value) = join(move || access.tokens.create(new, &by, Timestamp::now())).await??;
    info!(token = token.id, by = token.created_by, "access token made");
    let secret = api.access.s3_secret(&token.id).expose_secret().to_owned();
    let s3 = S3Key { access_key_id: token.id.clone(), secret_access_key: secret };
    Ok(ok(CreatedToken { token, value, s3 }))
}

/// List the tokens, also those that have ended.
#[utoipa::path(
    get, path = "/tokens", tag = "tokens", operation_id = "list_tokens",
    responses(
        (status = 200, body = Success<TokenList>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 503, body = Failure),
    )
)]
pub async fn list(State(api): State<Api>, asked: Asked) -> Result<Response, ApiError> {
    asked.allow(&api, Wanted::Administer).await?;
    let tokens = join(move || api.access.tokens.list(Timestamp::now())).await??;
    Ok(ok(TokenList { tokens }))
}

/// What happened to the tokens.
#[utoipa::path(
    get, path = "/tokens/history", tag = "tokens", operation_id = "get_token_history",
    responses(
        (status = 200, body = Success<TokenHistory>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 503, body = Failure),
    )
)]
pub async fn history(State(api): State<Api>, asked: Asked) -> Result<Response, ApiError> {
    asked.allow(&api, Wanted::Administer).await?;
    let history = join(move || api.access.tokens.history()).await??;
    Ok(ok(TokenHistory { history }))
}

/// Look at a token.
#[utoipa::path(
    get, path = "/tokens/{id}", tag = "tokens", operation_id = "get_token",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = Success<OneToken>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 503, body = Failure),
    )
)]
pub async fn get(State(api): State<Api>, asked: Asked, Path(id): Path<String>) -> Result<Response, ApiError> {
    asked.allow(&api, Wanted::Administer).await?;
    let token = join(move || api.access.tokens.get(&id, Timestamp::now())).await??;
    Ok(ok(OneToken { token }))
}

/// Revoke a token: from now on it is answered with 403.
#[utoipa::path(
    delete, path = "/tokens/{id}", tag = "tokens", operation_id = "revoke_token",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = Success<OneToken>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 503, body = Failure),
    )
)]
pub async fn revoke(State(api): State<Api>, asked: Asked, Path(id): Path<String>) -> Result<Response, ApiError> {
    let by = asked.allow(&api, Wanted::Administer).await?.to_string();
    let token = join(move || api.access.tokens.revoke(&id, &by, Timestamp::now())).await??;
    info!(token = token.id, "access token revoked");
    Ok(ok(OneToken { token }))
}
