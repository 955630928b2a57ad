//! `/sites/`: the list, and new Sites.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::super::caller::Caller;
use super::super::catalog::page::{LIMIT, MOST, Start, page};
use super::super::catalog::query::{Query, SortBy};
use super::super::error::{ApiError, ErrorBody};
use super::super::forms::body::Fields;
use super::super::forms::site::SiteForm;
use super::super::sites::view::{SiteLine, SiteView};
use super::super::sites::write;
use super::super::state::Hub;
use super::super::trace::Trace;
use super::query::Parameters;
use crate::domain::site::SiteType;

/// A page of the list.
#[derive(Serialize, ToSchema, Debug)]
pub struct SitePage {
    /// The Sites of this page.
    pub sites: Vec<SiteLine>,
    /// How many fit in all.
    pub count: usize,
    /// Continues behind this page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// The Sites that the caller may see.
#[utoipa::path(get, path = "/sites/", tag = "sites",
    params(
        ("name" = Option<String>, Query, description = "Exact name"),
        ("space" = Option<String>, Query, description = "Exact space"),
        ("owner" = Option<String>, Query, description = "Exact owner"),
        ("type" = Option<String>, Query, description = "`private` or `public`", pattern = "^(private|public)$"),
        ("q" = Option<String>, Query, description = "Part of the path, id, owner or description, in any case"),
        ("enabled_only" = Option<bool>, Query, description = "No archived Sites"),
        ("sort_by" = Option<String>, Query, description = "`name` (default), `space`, `owner`, `type`, \
            `registered_date`, `retention_date`, `updated_date`, `quota` or `phase`",
            pattern = "^(name|space|owner|type|registered_date|retention_date|updated_date|quota|phase)$"),
        ("order_by" = Option<String>, Query, description = "`asc` (default) or `desc`", pattern = "^(asc|desc)$"),
        ("limit" = Option<u32>, Query, description = "Sites of the page, 50 by default, at most 500",
            minimum = 1, maximum = 500),
        ("offset" = Option<u32>, Query, description = "Begins behind so many; not with a token"),
        ("continuation_token" = Option<String>, Query, description = "Begins where another page ended"),
    ),
    responses(
        (status = 200, body = SitePage),
        (status = 400, body = ErrorBody, description = "A parameter is wrong"),
        (status = 401, body = ErrorBody, description = "The token is not valid"),
    ))]
pub async fn list(State(hub): State<Hub>, caller: Caller, mut given: Parameters) -> Result<Response, ApiError> {
    let (query, start, limit) = question(&mut given)?;
    given.nothing_else()?;
    let found = hub.catalog.read().find(&caller.viewer(), &query);
    let page =
        page(&found, &query, &start, limit).map_err(|error| ApiError::field("continuation_token", error.advice()))?;
    // Each line was written once, when its Site changed.
    let mut body = Vec::with_capacity(page.sites.iter().map(|entry| entry.line().len() + 1).sum::<usize>() + 256);
    body.extend_from_slice(b"{\"sites\":[");
    for (index, entry) in page.sites.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(entry.line());
    }
    body.extend_from_slice(format!("],\"count\":{}", page.count).as_bytes());
    if let Some(token) = page.token {
        body.extend_from_slice(format!(",\"continuation_token\":\"{token}\"").as_bytes());
    }
    body.push(b'}');
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

fn question(given: &mut Parameters) -> Result<(Query, Start, usize), ApiError> {
    let site_type = match given.take("type")?.as_deref() {
        None => None,
        Some("private") => Some(SiteType::Private),
        Some("public") => Some(SiteType::Public),
        Some(_) => return Err(ApiError::field("type", "must be private or public")),
    };
    let sort_by = given.take("sort_by")?.map(|word| {
        let words: Vec<&str> = SortBy::ALL.iter().map(|order| order.word()).collect();
        SortBy::from_word(&word)
            .ok_or_else(|| ApiError::field("sort_by", format!("must be one of {}", words.join(", "))))
    });
    let descending = match given.take("order_by")?.as_deref() {
        None | Some("asc") => false,
        Some("desc") => true,
        Some(_) => return Err(ApiError::field("order_by", "must be asc or desc")),
    };
    let query = Query {
        name: given.take("name")?,
        space: given.take("space")?,
        owner: given.take("owner")?,
        site_type,
        text: given.take("q")?.filter(|text| !text.is_empty()),
        enabled_only: given.take_bool("enabled_only")?,
        sort_by: sort_by.transpose()?.unwrap_or_default(),
        descending,
    };
    let limit = given.take_number("limit")?.unwrap_or(LIMIT);
    if limit == 0 || limit > MOST {
        return Err(ApiError::field("limit", format!("must be from 1 to {MOST}")));
    }
    let offset = given.take_number("offset")?;
    let start = match (given.take("continuation_token")?, offset) {
        (Some(_), Some(_)) => return Err(ApiError::field("offset", "is given beside a continuation_token")),
        (Some(token), None) => Start::Token(token),
        (None, offset) => Start::Offset(offset.unwrap_or_default()),
    };
    Ok((query, start, limit))
}

/// Creates a Site. Its pod comes up after the answer: see its status.
#[utoipa::path(post, path = "/sites/", tag = "sites",
    params(("template" = Option<String>, Query, description = "Template whose fields lie under those sent")),
    request_body(content(
        (SiteForm = "application/json", example = json!({"space": "team", "name": "plans", "quota": 2})),
        (SiteForm = "application/x-www-form-urlencoded", example = json!({"space": "team", "name": "reports"})),
    )),
    responses(
        (status = 201, body = SiteView, description = "Created",
            headers(("Location" = String), ("ETag" = String))),
        (status = 400, body = ErrorBody, description = "Fields are wrong, each is named"),
        (status = 403, body = ErrorBody, description = "The CSRF token is missing"),
        (status = 404, body = ErrorBody, description = "There is no such template"),
        (status = 409, body = ErrorBody, description = "The address is taken"),
        (status = 413, body = ErrorBody, description = "The body is too large"),
        (status = 415, body = ErrorBody, description = "The body is neither JSON nor form data"),
    ))]
pub async fn create(
    State(hub): State<Hub>,
    caller: Caller,
    trace: Trace,
    mut given: Parameters,
    fields: Fields,
) -> Result<Response, ApiError> {
    caller.somebody()?;
    let template = match given.take("template")? {
        Some(name) => Some(super::super::templates::load(&hub, &name).await?),
        None => None,
    };
    given.nothing_else()?;
    let site = write::create(&hub, &caller, fields.0, template, &trace).await?;
    let view = SiteView::of(&site, hub.settings.host(), true);
    let location = match site.public_path() {
        Some((space, name)) => format!("/hub/api/v2/sites/{space}/{name}/"),
        None => format!("/hub/api/v2/sites/-/{}/", site.spec.id),
    };
    let mut answer = (StatusCode::CREATED, Json(&view)).into_response();
    for (name, text) in [(header::LOCATION, &location), (header::ETAG, &view.etag)] {
        if let Ok(value) = HeaderValue::from_str(text) {
            answer.headers_mut().insert(name, value);
        }
    }
    Ok(answer)
}
