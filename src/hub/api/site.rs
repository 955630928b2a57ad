//! One Site: reading, editing, deleting.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::super::caller::Caller;
use super::super::error::{ApiError, ErrorBody};
use super::super::forms::body::Fields;
use super::super::forms::site::{Edit, Method, SiteForm};
use super::super::sites::address::Address;
use super::super::sites::view::SiteView;
use super::super::sites::{find, write};
use super::super::state::Hub;
use super::super::trace::Trace;
use crate::domain::people::Standing;
use crate::domain::site::Site;

/// What was done, in words.
#[derive(Serialize, ToSchema, Debug)]
pub struct Done {
    /// Always `OK`.
    pub status: &'static str,
    /// What happens now.
    pub message: String,
}

/// Says what was done.
pub(super) fn done(message: impl Into<String>) -> Json<Done> {
    Json(Done { status: "OK", message: message.into() })
}

/// A Site with its entity tag.
pub(super) fn shown(hub: &Hub, caller: &Caller, site: &Site, message: Option<String>) -> Response {
    let administers = caller.standing(site) == Standing::Administrator;
    let view = SiteView { message, ..SiteView::of(site, hub.settings.host(), administers) };
    let mut answer = Json(&view).into_response();
    if let Ok(tag) = HeaderValue::from_str(&view.etag) {
        answer.headers_mut().insert(header::ETAG, tag);
    }
    answer
}

/// One Site; its form is shown to its administrators.
#[utoipa::path(get, path = "/", tag = "site", responses(
    (status = 200, body = SiteView, headers(("ETag" = String))),
    (status = 400, body = ErrorBody, description = "The address names no site"),
    (status = 404, body = ErrorBody, description = "There is none, or it is not yours to see"),
))]
pub async fn get(State(hub): State<Hub>, caller: Caller, address: Address) -> Result<Response, ApiError> {
    let site = find::visible(&hub, &caller, &address).await?;
    Ok(shown(&hub, &caller, &site, None))
}

macro_rules! edits {
    ($name:ident, $verb:ident, $method:expr, $doc:literal) => {
        #[doc = $doc]
        #[utoipa::path($verb, path = "/", tag = "site",
            params(("If-Match" = Option<String>, Header, description = "The version that was read; the field `etag` does the same")),
            request_body(content((SiteForm = "application/json"), (SiteForm = "application/x-www-form-urlencoded"))),
            responses(
                (status = 200, body = SiteView, headers(("ETag" = String))),
                (status = 400, body = ErrorBody, description = "Fields are wrong, each is named"),
                (status = 403, body = ErrorBody, description = "Only administrators of the site may do this"),
                (status = 404, body = ErrorBody, description = "There is none, or it is not yours to see"),
                (status = 409, body = ErrorBody, description = "Somebody else changed it meanwhile, each field is named; or the address is taken"),
                (status = 413, body = ErrorBody, description = "The body is too large"),
                (status = 415, body = ErrorBody, description = "The body is neither JSON nor form data"),
            ))]
        pub async fn $name(
            State(hub): State<Hub>,
            caller: Caller,
            trace: Trace,
            address: Address,
            headers: HeaderMap,
            fields: Fields,
        ) -> Result<Response, ApiError> {
            edit(&hub, &caller, &trace, &address, &headers, fields, $method).await
        }
    };
}

edits!(patch, patch, Method::Patch, "Changes the fields that are sent.");
edits!(
    put,
    put,
    Method::Put,
    "Replaces the form: fields left out get their defaults, but for address, owner and type."
);

async fn edit(
    hub: &Hub,
    caller: &Caller,
    trace: &Trace,
    address: &Address,
    headers: &HeaderMap,
    mut fields: Fields,
    method: Method,
) -> Result<Response, ApiError> {
    let site = find::administered(hub, caller, address).await?;
    let tag = tag(headers, &mut fields)?;
    let Edit { site, reverted, .. } = write::edit(hub, caller, site, &fields.0, method, tag.as_deref(), trace).await?;
    let message = reverted.then(|| {
        "the site has a custom application image and is private now: a public site runs the platform's images only"
            .to_owned()
    });
    Ok(shown(hub, caller, &site, message))
}

/// The version that the caller saw: by header, or by the form's field.
fn tag(headers: &HeaderMap, fields: &mut Fields) -> Result<Option<String>, ApiError> {
    let field = fields.take_text("etag")?;
    let Some(header) = headers.get(header::IF_MATCH) else { return Ok(field) };
    let text = header.to_str().map_err(|_| ApiError::field("etag", "If-Match is no entity tag"))?;
    Ok(Some(text.to_owned()))
}

/// Deletes a Site with its content. The volume stays until the platform team releases it.
#[utoipa::path(delete, path = "/", tag = "site",
    params(("If-Match" = Option<String>, Header, description = "The version that was read")),
    responses(
        (status = 202, body = Done, description = "It goes"),
        (status = 400, body = ErrorBody, description = "The address names no site"),
        (status = 403, body = ErrorBody, description = "Only administrators of the site may do this, after a fresh login"),
        (status = 404, body = ErrorBody, description = "There is none, or it is not yours to see"),
        (status = 409, body = ErrorBody, description = "Somebody else changed it meanwhile"),
    ))]
pub async fn delete(
    State(hub): State<Hub>,
    caller: Caller,
    address: Address,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let site = find::administered(&hub, &caller, &address).await?;
    caller.fresh(&hub.settings)?;
    write::delete(&hub, &caller, &site, tag(&headers, &mut Fields::default())?.as_deref()).await?;
    Ok((StatusCode::ACCEPTED, done("the site and what belongs to it are being deleted")).into_response())
}
