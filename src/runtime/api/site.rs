//! `/usage`, `/whoami` and `/health`.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::answer::{Done, Success, done, ok};
use super::asked::{Asked, blocking};
use super::error::{ApiError, Failure};
use crate::runtime::access::{Caller, Wanted};

/// What the site uses of its quota.
#[derive(Serialize, ToSchema)]
pub struct UsageAnswer {
    /// Bytes of all files, with what running uploads have reserved.
    used: u64,
    /// Bytes that can still be written.
    free: u64,
    /// Bytes that the site may have.
    quota: u64,
}

/// What the site uses of its quota.
#[utoipa::path(
    get, path = "/usage", tag = "site", operation_id = "get_usage",
    responses(
        (status = 200, body = Success<UsageAnswer>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 503, body = Failure),
    )
)]
pub async fn usage(State(api): State<Api>, asked: Asked) -> Result<Response, ApiError> {
    asked.allow(&api, Wanted::Read).await?;
    let content = api.content.clone();
    let usage = blocking(move || content.usage()).await?;
    Ok(ok(UsageAnswer { used: usage.used, free: usage.free, quota: usage.limit }))
}

/// Who the site takes the caller for.
#[derive(Serialize, ToSchema)]
pub struct Whoami {
    /// Such as `master token`, `access token <id>`, `user <name>`.
    caller: String,
    /// May read.
    read: bool,
    /// May write.
    write: bool,
    /// May manage tokens and URLs.
    administer: bool,
}

/// Who the site takes the caller for.
#[utoipa::path(
    get, path = "/whoami", tag = "site", operation_id = "whoami",
    responses(
        (status = 200, body = Success<Whoami>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 503, body = Failure),
    )
)]
pub async fn whoami(State(api): State<Api>, asked: Asked) -> Result<Response, ApiError> {
    let caller: Caller = asked.allow(&api, Wanted::Read).await?;
    let may = |wanted| caller.may(wanted, false, Some(&asked.path));
    Ok(ok(Whoami {
        read: may(Wanted::Read),
        write: may(Wanted::Write),
        administer: may(Wanted::Administer),
        caller: caller.to_string(),
    }))
}

/// Whether the site's volume answers. For everybody.
#[utoipa::path(
    get, path = "/health", tag = "site", operation_id = "get_health",
    security(()),
    responses((status = 200, body = Success<Done>), (status = 500, body = Failure))
)]
pub async fn health(State(api): State<Api>) -> Result<Response, ApiError> {
    let content = api.content.clone();
    blocking(move || content.check()).await?;
    Ok(done("healthy"))
}
