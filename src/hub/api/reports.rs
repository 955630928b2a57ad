//! `/reports/`: asked for, made in the background, read as JSON or CSV; for platform administrators.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::caller::Caller;
use super::super::error::{ApiError, ErrorBody};
use super::super::forms::bind;
use super::super::forms::body::Fields;
use super::super::reports::csv::csv;
use super::super::reports::{Report, ReportKind, ReportState};
use super::super::state::Hub;
use super::query::Parameters;

/// The routes.
pub fn routes() -> OpenApiRouter<Hub> {
    OpenApiRouter::new().routes(routes!(list, ask)).routes(routes!(one))
}

/// Which report.
#[derive(Deserialize, ToSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct ReportForm {
    /// What it is about.
    pub kind: ReportKind,
}

/// The reports that are remembered.
#[derive(Serialize, ToSchema, Debug)]
pub struct ReportList {
    /// Newest first.
    pub reports: Vec<Report>,
}

/// A report with its rows.
#[derive(Serialize, ToSchema, Debug)]
pub struct ReportDetail {
    /// What was asked, and how it stands.
    #[serde(flatten)]
    pub report: Report,
    /// Names of the columns, in their order; none before the report is made.
    pub columns: Vec<String>,
    /// One object a Site: what is not known is null.
    #[schema(value_type = Vec<Object>)]
    pub rows: Vec<Map<String, Value>>,
}

/// The reports of the last seven days.
#[utoipa::path(
    get, path = "/reports/", tag = "reports", operation_id = "list_reports",
    responses(
        (status = OK, body = ReportList),
        (status = FORBIDDEN, body = ErrorBody),
    ),
)]
pub async fn list(State(hub): State<Hub>, caller: Caller) -> Result<Json<ReportList>, ApiError> {
    caller.platform_administrator()?;
    Ok(Json(ReportList { reports: hub.reports.list().await? }))
}

/// Asks for a report. Reports are made one at a time, in the order they were asked for.
#[utoipa::path(
    post, path = "/reports/", tag = "reports", operation_id = "ask_report",
    request_body(content((ReportForm = "application/json"), (ReportForm = "application/x-www-form-urlencoded"))),
    responses(
        (status = ACCEPTED, body = Report),
        (status = BAD_REQUEST, body = ErrorBody),
        (status = FORBIDDEN, body = ErrorBody),
        (status = PAYLOAD_TOO_LARGE, body = ErrorBody),
        (status = UNSUPPORTED_MEDIA_TYPE, body = ErrorBody),
    ),
)]
pub async fn ask(
    State(hub): State<Hub>,
    caller: Caller,
    Fields(fields): Fields,
) -> Result<(StatusCode, Json<Report>), ApiError> {
    let by = caller.platform_administrator()?.user.clone();
    let form: ReportForm = bind::value_into(fields)?;
    Ok((StatusCode::ACCEPTED, Json(hub.reports.ask(form.kind, &by).await?)))
}

/// A report: JSON, or CSV by `Accept: text/csv` or `?format=csv`.
#[utoipa::path(
    get, path = "/reports/{id}/", tag = "reports", operation_id = "get_report",
    params(
        ("id" = String, Path, description = "The report"),
        ("format" = Option<String>, Query, description = "`json` or `csv`; outweighs `Accept`", pattern = "^(json|csv)$"),
    ),
    responses(
        (status = OK, content((ReportDetail = "application/json"), (String = "text/csv"))),
        (status = BAD_REQUEST, body = ErrorBody),
        (status = FORBIDDEN, body = ErrorBody),
        (status = NOT_FOUND, body = ErrorBody),
        (status = CONFLICT, body = ErrorBody, description = "It is not made yet, and CSV has no place to say so"),
    ),
)]
pub async fn one(
    State(hub): State<Hub>,
    caller: Caller,
    Path(id): Path<String>,
    mut given: Parameters,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.platform_administrator()?;
    let as_csv = wants_csv(&mut given, &headers)?;
    let (report, table) = hub.reports.get(&id).await?;
    if !as_csv {
        let table = table.unwrap_or_default();
        let rows = table.objects();
        return Ok(Json(ReportDetail { report, columns: table.columns, rows }).into_response());
    }
    let Some(table) = table else {
        return Err(ApiError::conflict(match report.state {
            ReportState::Failed => "the report could not be made: ask for another",
            _ => "the report is not made yet: try again in a moment",
        }));
    };
    let name = format!("attachment; filename=\"{:?}-{}.csv\"", report.kind, report.asked_at.strftime("%Y-%m-%d"));
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8; header=present".to_owned()),
        (header::CONTENT_DISPOSITION, name.to_lowercase()),
    ];
    Ok((headers, csv(&table)).into_response())
}

fn wants_csv(given: &mut Parameters, headers: &HeaderMap) -> Result<bool, ApiError> {
    match given.take("format")?.as_deref() {
        Some("csv") => Ok(true),
        Some("json") => Ok(false),
        Some(_) => Err(ApiError::field("format", "must be json or csv")),
        None => {
            let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
            Ok(accept.split(',').any(|part| part.split(';').next().unwrap_or_default().trim() == "text/csv"))
        }
    }
}
