//! How a Site does: its status, its pods, the end of a log.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::caller::Caller;
use super::super::error::{ApiError, ErrorBody};
use super::super::sites::address::Address;
use super::super::sites::find;
use super::super::sites::pods::{self, PodView};
use super::super::state::Hub;
use super::query::Parameters;
use crate::domain::change::digest;
use crate::domain::labels;
use crate::domain::site::{Phase, Site};

/// Lines of a log without `tail`, and the most.
const LINES: usize = 200;
const MOST_LINES: usize = 2000;

/// What is below one Site.
pub fn routes() -> OpenApiRouter<Hub> {
    OpenApiRouter::new().routes(routes!(status)).routes(routes!(pods)).routes(routes!(logs))
}

/// How a Site does, as the operator reported it.
#[derive(Serialize, ToSchema, Debug)]
pub struct StatusView {
    /// State of the pods in one word.
    #[schema(value_type = Option<String>, example = "Running")]
    pub phase: Option<Phase>,
    /// Whether every step has started.
    pub all_steps_started: bool,
    /// `Ready`, and others when they say something.
    pub conditions: Vec<ConditionView>,
    /// What keeps containers from running.
    pub problems: Vec<ProblemView>,
    /// Generation of the Site that the status speaks of.
    pub observed_generation: Option<i64>,
    /// Generation of the Site as it is now.
    pub generation: Option<i64>,
    /// Whether the newest edit has been carried out.
    pub handled: bool,
}

/// A condition.
#[derive(Serialize, ToSchema, Debug)]
pub struct ConditionView {
    /// Its name.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word.
    pub reason: String,
    /// For a person.
    pub message: String,
    /// Since when, RFC 3339.
    pub since: String,
}

/// Why a container does not run.
#[derive(Serialize, ToSchema, Debug)]
pub struct ProblemView {
    /// The container, or the pod.
    pub name: String,
    /// `waiting`, `terminated`, `running` (not ready) or `scheduling`.
    pub kind: String,
    /// One word.
    pub reason: String,
    /// The node's own text, may be empty.
    pub message: String,
}

impl StatusView {
    fn of(site: &Site) -> Self {
        let status = site.status.clone().unwrap_or_default();
        let request = site.metadata.annotations.as_ref().and_then(|all| all.get(labels::UPGRADE_REQUEST));
        let handled = status.handled.as_ref().is_some_and(|handled| {
            handled.digest == digest(site)
                && request.is_none_or(|asked| handled.upgrade_request.as_ref() == Some(asked))
        });
        let conditions = status.conditions.into_iter().map(|one| ConditionView {
            kind: one.type_,
            status: one.status,
            reason: one.reason,
            message: one.message,
            since: one.last_transition_time.0.to_string(),
        });
        let problems = status.container_problems.into_iter().map(|one| ProblemView {
            name: one.name,
            kind: one.kind,
            reason: one.reason,
            message: one.message,
        });
        Self {
            phase: status.phase,
            all_steps_started: status.all_steps_started,
            conditions: conditions.collect(),
            problems: problems.collect(),
            observed_generation: status.observed_generation,
            generation: site.metadata.generation,
            handled: handled && status.observed_generation >= site.metadata.generation,
        }
    }
}

/// The pods of a Site.
#[derive(Serialize, ToSchema, Debug)]
pub struct PodList {
    /// By name.
    pub pods: Vec<PodView>,
}

/// How the Site does.
#[utoipa::path(get, path = "/status/", tag = "site", responses(
    (status = 200, body = StatusView),
    (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
))]
pub async fn status(State(hub): State<Hub>, caller: Caller, address: Address) -> Result<Json<StatusView>, ApiError> {
    let site = find::administered(&hub, &caller, &address).await?;
    Ok(Json(StatusView::of(&site)))
}

/// The Site's pods and their containers.
#[utoipa::path(get, path = "/pods/", tag = "site", responses(
    (status = 200, body = PodList),
    (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
))]
pub async fn pods(State(hub): State<Hub>, caller: Caller, address: Address) -> Result<Json<PodList>, ApiError> {
    let site = find::administered(&hub, &caller, &address).await?;
    Ok(Json(PodList { pods: pods::list(&hub, &site).await? }))
}

/// The end of a container's log: at most 2,000 lines and 1 MiB.
#[utoipa::path(get, path = "/logs/", tag = "site",
    params(
        ("container" = Option<String>, Query, description = "Needed when the pod has more than one"),
        ("pod" = Option<String>, Query, description = "Default: the newest pod of the Site"),
        ("tail" = Option<usize>, Query, description = "Lines, from 1 to 2000. Default 200", minimum = 1, maximum = 2000),
        ("previous" = Option<bool>, Query, description = "Of the run before this one"),
    ),
    responses(
    (status = 200, body = String, content_type = "text/plain"),
    (status = 400, body = ErrorBody), (status = 403, body = ErrorBody),
    (status = 404, body = ErrorBody, description = "There is no such site or pod, or no log yet"),
))]
pub async fn logs(
    State(hub): State<Hub>,
    caller: Caller,
    address: Address,
    mut given: Parameters,
) -> Result<Response, ApiError> {
    let (container, pod) = (given.take("container")?, given.take("pod")?);
    let lines = given.take_number("tail")?.unwrap_or(LINES);
    let previous = given.take_bool("previous")?;
    given.nothing_else()?;
    if lines == 0 || lines > MOST_LINES {
        return Err(ApiError::field("tail", format!("must be from 1 to {MOST_LINES}")));
    }
    let site = find::administered(&hub, &caller, &address).await?;
    let text = pods::log(&hub, &site, pod.as_deref(), container.as_deref(), lines, previous).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}
