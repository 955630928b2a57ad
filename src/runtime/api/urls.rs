//! `/signed-urls`, `/session-urls` and `/session`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::header::{CACHE_CONTROL, LOCATION, REFERRER_POLICY, SET_COOKIE};
use http::{HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use tracing::info;
use utoipa::{IntoParams, ToSchema};

use super::Api;
use super::answer::{Success, ok};
use super::asked::{Asked, Json, Options};
use super::error::{ApiError, Failure};
use crate::runtime::access::{MAX_TICKET_DURATION, Verdict, Wanted};
use crate::runtime::content::SitePath;

/// A URL to be signed.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"url": "/fdb/develop", "duration": 3600, "method": "GET"}))]
pub struct SignRequest {
    /// Address or path of content, or of a file below `s/api/v2/files/`; percent-encoded.
    #[schema(example = "/reports/2025/a%20b.pdf")]
    url: String,
    /// Seconds that it is good for: up to 30 days.
    duration: i64,
    /// GET (default; HEAD with it), PUT or DELETE.
    method: Option<String>,
}

/// An address that opens something for a time.
#[derive(Serialize, ToSchema)]
pub struct OpenUrl {
    /// The address.
    url: String,
    /// When it ends, RFC 3339.
    expires_at: String,
}

/// An address to look at.
#[derive(Deserialize, ToSchema)]
pub struct VerifyRequest {
    /// The signed address.
    url: String,
}

/// Sign a URL.
#[utoipa::path(
    post, path = "/signed-urls", tag = "urls", operation_id = "create_signed_url",
    request_body = SignRequest,
    responses(
        (status = 200, body = Success<OpenUrl>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 408, body = Failure), (status = 413, body = Failure), (status = 503, body = Failure),
    )
)]
pub async fn sign(
    State(api): State<Api>,
    asked: Asked,
    body: Result<Json<SignRequest>, ApiError>,
) -> Result<Response, ApiError> {
    let caller = asked.allow(&api, Wanted::Administer).await?;
    let Json(request) = body?;
    let method = match request.method.as_deref() {
        None => Method::GET,
        Some(method) => Method::from_bytes(method.as_bytes())
            .map_err(|_| ApiError::bad_request("method: give GET, PUT or DELETE"))?,
    };
    let (url, end) = api.access.urls.create(&request.url, &method, request.duration, Timestamp::now())?;
    info!(path = request.url, %method, expires_at = %end, %caller, "URL signed");
    Ok(ok(OpenUrl { url, expires_at: end.to_string() }))
}

/// Whether a signed URL is good.
#[utoipa::path(
    post, path = "/signed-urls/verify", tag = "urls", operation_id = "verify_signed_url",
    request_body = VerifyRequest,
    responses(
        (status = 200, body = Success<Verdict>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 408, body = Failure), (status = 413, body = Failure), (status = 503, body = Failure),
    )
)]
pub async fn verify(
    State(api): State<Api>,
    asked: Asked,
    body: Result<Json<VerifyRequest>, ApiError>,
) -> Result<Response, ApiError> {
    asked.allow(&api, Wanted::Read).await?;
    Ok(ok(api.access.urls.verify(&body?.0.url, Timestamp::now())))
}

/// A session URL to be made.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"path": "fdb", "duration": 3600}))]
pub struct SessionRequest {
    /// The folder that it opens, relative to the site's root; absent means all.
    #[serde(default)]
    path: String,
    /// Seconds that it is good for: up to one day.
    duration: i64,
}

/// Make a session URL: a browser that opens it may read the site, or a folder of it, for a time.
#[utoipa::path(
    post, path = "/session-urls", tag = "urls", operation_id = "create_session_url",
    request_body = SessionRequest,
    responses(
        (status = 200, body = Success<OpenUrl>),
        (status = 400, body = Failure), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 408, body = Failure), (status = 413, body = Failure), (status = 503, body = Failure),
    )
)]
pub async fn create_session(
    State(api): State<Api>,
    asked: Asked,
    body: Result<Json<SessionRequest>, ApiError>,
) -> Result<Response, ApiError> {
    let caller = asked.allow(&api, Wanted::Administer).await?;
    let Json(request) = body?;
    if !(1..=MAX_TICKET_DURATION).contains(&request.duration) {
        return Err(ApiError::bad_request(format!("duration: give 1 to {MAX_TICKET_DURATION} seconds")));
    }
    let folder = SitePath::from_text(&request.path).map_err(|error| ApiError::bad_request(format!("path: {error}")))?;
    let end = Timestamp::from_second(Timestamp::now().as_second() + request.duration).unwrap_or(Timestamp::MAX);
    let ticket = api.access.tickets.create(&folder, end);
    info!(path = %folder, expires_at = %end, %caller, "session URL made");
    let url = format!("{}s/api/v2/session?ticket={ticket}", api.config.public_url);
    Ok(ok(OpenUrl { url, expires_at: end.to_string() }))
}

/// The ticket of a session URL.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SessionOptions {
    /// From the session URL.
    ticket: String,
}

/// Open a session URL: the ticket becomes a cookie, and the browser goes to what it opens.
#[utoipa::path(
    get, path = "/session", tag = "urls", operation_id = "open_session",
    security(()),
    params(SessionOptions),
    responses(
        (status = 303, description = "To the folder that the session opens, with a cookie"),
        (status = 400, body = Failure), (status = 403, body = Failure),
    )
)]
pub async fn open_session(
    State(api): State<Api>,
    Options(options): Options<SessionOptions>,
) -> Result<Response, ApiError> {
    let now = Timestamp::now();
    let (folder, end) = api.access.tickets.check(&options.ticket, now).ok_or_else(|| {
        ApiError::new(StatusCode::FORBIDDEN, "forbidden: the session URL is not valid or has expired")
    })?;
    let value = |text: String| HeaderValue::from_str(&text).map_err(|error| ApiError::internal(&error));
    let prefix = &api.config.prefix;
    let folder = folder
        .segments()
        .iter()
        .fold(String::new(), |path, segment| path + &utf8_percent_encode(segment, NON_ALPHANUMERIC).to_string() + "/");
    let cookie = format!(
        "{}={}; Path={prefix}/; Max-Age={}; HttpOnly; Secure; SameSite=Lax",
        api.access.tickets.cookie_name(),
        options.ticket,
        end.as_second() - now.as_second(),
    );
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(LOCATION, value(format!("{prefix}/{folder}"))?);
    response.headers_mut().insert(SET_COOKIE, value(cookie)?);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}
