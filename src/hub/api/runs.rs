//! `/sites/upgrade/`, `/sites/restart/` and `/runs/…`: bulk runs, for platform administrators.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::super::caller::Caller;
use super::super::error::{ApiError, ErrorBody};
use super::super::runs::Begun;
use super::super::state::Hub;
use super::bodies::StreamedEvent;
use super::query::Parameters;
use crate::cache::runs::{Run, RunEvent, RunKind, RunState, SiteResult, SiteState};

/// Runs of a list.
const LISTED: usize = 100;
/// Events that are read at once.
const EVENTS: usize = 1000;
/// Time between two looks for events.
const LOOK: Duration = Duration::from_millis(500);

/// The routes.
pub fn routes() -> OpenApiRouter<Hub> {
    OpenApiRouter::new()
        .routes(routes!(upgrade))
        .routes(routes!(restart))
        .routes(routes!(list))
        .routes(routes!(one))
        .routes(routes!(cancel))
        .routes(routes!(events))
}

/// A run has begun.
#[derive(Serialize, ToSchema, Debug)]
pub struct RunAccepted {
    /// Always `accepted`: the Sites follow in the background.
    pub status: &'static str,
    /// The run, to ask for with `/runs/{id}/`.
    #[schema(value_type = String)]
    pub run: Uuid,
    /// Sites whose turn will come.
    pub queued: usize,
    /// Sites with nothing to do.
    pub skipped: usize,
}

/// The runs that are remembered.
#[derive(Serialize, ToSchema, Debug)]
pub struct RunList {
    /// Newest first.
    pub runs: Vec<Run>,
}

/// A run with its Sites.
#[derive(Serialize, ToSchema, Debug)]
pub struct RunDetail {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// Each Site's result, by its id.
    pub sites: BTreeMap<String, SiteResult>,
}

fn accepted(Begun { run, queued, skipped }: Begun) -> (StatusCode, Json<RunAccepted>) {
    (StatusCode::ACCEPTED, Json(RunAccepted { status: "accepted", run, queued, skipped }))
}

/// Upgrades every Site whose images are not those of the platform's version.
///
/// One run at a time. Each Site is written behind people's edits and followed until the operator has handled it.
#[utoipa::path(
    post, path = "/sites/upgrade/", tag = "runs", operation_id = "upgrade_sites",
    params(("force" = Option<bool>, Query, description = "Also Sites that are up to date, and archived ones, which stay archived")),
    responses(
        (status = ACCEPTED, body = RunAccepted),
        (status = BAD_REQUEST, body = ErrorBody, description = "`force` is neither true nor false"),
        (status = FORBIDDEN, body = ErrorBody),
        (status = CONFLICT, body = ErrorBody, description = "A bulk upgrade is under way"),
        (status = SERVICE_UNAVAILABLE, body = ErrorBody, description = "Redis is down or off; no Site was written"),
    ),
)]
pub async fn upgrade(
    State(hub): State<Hub>,
    caller: Caller,
    mut given: Parameters,
) -> Result<(StatusCode, Json<RunAccepted>), ApiError> {
    let by = caller.platform_administrator()?.user.clone();
    caller.fresh(&hub.settings)?;
    let force = given.take_bool("force")?;
    given.nothing_else()?;
    hub.runs.begin(RunKind::Upgrade, force, &by).await.map(accepted)
}

/// Restarts the pods of every enabled Site.
///
/// Only pods that were made before the run began are deleted; each Site is followed until its new pods are ready.
#[utoipa::path(
    post, path = "/sites/restart/", tag = "runs", operation_id = "restart_sites",
    responses(
        (status = ACCEPTED, body = RunAccepted),
        (status = FORBIDDEN, body = ErrorBody),
        (status = CONFLICT, body = ErrorBody, description = "A bulk restart is under way"),
        (status = SERVICE_UNAVAILABLE, body = ErrorBody, description = "Redis is down or off; no pod was deleted"),
    ),
)]
pub async fn restart(State(hub): State<Hub>, caller: Caller) -> Result<(StatusCode, Json<RunAccepted>), ApiError> {
    let by = caller.platform_administrator()?.user.clone();
    caller.fresh(&hub.settings)?;
    hub.runs.begin(RunKind::Restart, false, &by).await.map(accepted)
}

/// The runs of the last seven days.
#[utoipa::path(
    get, path = "/runs/", tag = "runs", operation_id = "list_runs",
    responses(
        (status = OK, body = RunList),
        (status = FORBIDDEN, body = ErrorBody),
    ),
)]
pub async fn list(State(hub): State<Hub>, caller: Caller) -> Result<Json<RunList>, ApiError> {
    caller.platform_administrator()?;
    let mut runs = Vec::new();
    for id in hub.cache.runs(&hub.namespace, LISTED).await? {
        runs.extend(hub.cache.run_record(&hub.namespace, &id).await?);
    }
    Ok(Json(RunList { runs }))
}

/// A run: how it stands, exact counts, and each Site's result.
#[utoipa::path(
    get, path = "/runs/{id}/", tag = "runs", operation_id = "get_run",
    params(
        ("id" = String, Path, description = "The run"),
        ("state" = Option<SiteState>, Query, description = "Only Sites in this state"),
    ),
    responses(
        (status = OK, body = RunDetail),
        (status = BAD_REQUEST, body = ErrorBody),
        (status = FORBIDDEN, body = ErrorBody),
        (status = NOT_FOUND, body = ErrorBody),
    ),
)]
pub async fn one(
    State(hub): State<Hub>,
    caller: Caller,
    Path(id): Path<String>,
    mut given: Parameters,
) -> Result<Json<RunDetail>, ApiError> {
    caller.platform_administrator()?;
    let state =
        given.take("state")?.map(|word| serde_json::from_value::<SiteState>(word.into())).transpose().map_err(
            |_| ApiError::field("state", "must be one of queued, working, done, failed, skipped and cancelled"),
        )?;
    let run = known(&hub, &id).await?;
    let mut sites = hub.cache.run_results(&hub.namespace, &run.record.id.to_string()).await?;
    sites.retain(|_, site| state.is_none_or(|state| state == site.state));
    Ok(Json(RunDetail { run, sites }))
}

/// Ends a run: no further Site is begun; those that are written already are followed.
#[utoipa::path(
    post, path = "/runs/{id}/cancel/", tag = "runs", operation_id = "cancel_run",
    params(("id" = String, Path, description = "The run")),
    responses(
        (status = ACCEPTED, body = Run),
        (status = FORBIDDEN, body = ErrorBody),
        (status = NOT_FOUND, body = ErrorBody),
        (status = CONFLICT, body = ErrorBody, description = "The run has ended"),
    ),
)]
pub async fn cancel(
    State(hub): State<Hub>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Run>), ApiError> {
    let by = &caller.platform_administrator()?.user;
    let run = known(&hub, &id).await?;
    if run.record.state != RunState::Running {
        return Err(ApiError::conflict("the run has ended"));
    }
    hub.cache.cancel_run(&hub.namespace, &run.record.id.to_string(), by).await?;
    tracing::info!(run = %run.record.id, by, "a bulk run is to end");
    Ok((StatusCode::ACCEPTED, Json(Run { cancelling: true, ..run })))
}

/// What happens in a run, as server-sent events, from its beginning or behind `Last-Event-ID`, to its end.
///
/// `run`: a record of the run (its beginning, its end). `site`: `{"site": …}` and the fields of its result.
#[utoipa::path(
    get, path = "/runs/{id}/events/", tag = "runs", operation_id = "follow_run",
    params(
        ("id" = String, Path, description = "The run"),
        ("Last-Event-ID" = Option<String>, Header, description = "The last event that was received"),
    ),
    responses(
        (status = OK, body = StreamedEvent, content_type = "text/event-stream", description = "Events, one after the other"),
        (status = BAD_REQUEST, body = ErrorBody),
        (status = FORBIDDEN, body = ErrorBody),
        (status = NOT_FOUND, body = ErrorBody),
    ),
)]
pub async fn events(
    State(hub): State<Hub>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<>>, ApiError> {
    caller.platform_administrator()?;
    let run = known(&hub, &id).await?.record.id.to_string();
    let behind = match headers.get("last-event-id").map(|value| value.to_str().unwrap_or_default()) {
        None => "0".to_owned(),
        Some(text) if place(text) => text.to_owned(),
        Some(_) => return Err(ApiError::BadRequest("Last-Event-ID is not the id of an event of this run".to_owned())),
    };
    let begin = Following { hub, run, behind, ready: Vec::new().into_iter(), ended: false };
    let stream = futures::stream::unfold(begin, async |mut following| {
        let event = following.next().await?;
        Some((Ok(event), following))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

/// `<milliseconds>-<number>`, as Redis names them.
fn place(text: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.len() <= 20 && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('-').is_some_and(|(time, nth)| number(time) && number(nth))
}

struct Following {
    hub: Hub,
    run: String,
    behind: String,
    ready: std::vec::IntoIter<RunEvent>,
    ended: bool,
}

impl Following {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.next() {
                self.behind.clone_from(&event.id);
                return Some(told(event));
            }
            if self.ended {
                return None;
            }
            let (cache, namespace) = (&self.hub.cache, &self.hub.namespace);
            // The end is looked for first: what happened before it is then surely among the events.
            let run = cache.run_record(namespace, &self.run).await;
            match cache.run_events(namespace, &self.run, &self.behind, EVENTS).await {
                Ok(events) => {
                    let more = events.len() == EVENTS;
                    self.ended = !more && matches!(&run, Ok(run) if run.as_ref().is_none_or(ended));
                    let none = events.is_empty();
                    self.ready = events.into_iter();
                    if none && !self.ended {
                        tokio::time::sleep(LOOK).await;
                    }
                }
                // The client comes back with the last id that it has.
                Err(_) => return None,
            }
        }
    }
}

fn ended(run: &Run) -> bool {
    run.record.state != RunState::Running
}

fn told(event: RunEvent) -> Event {
    if event.of == "run" {
        return Event::default().id(event.id).event("run").data(event.text);
    }
    let mut result: serde_json::Value = serde_json::from_str(&event.text).unwrap_or_default();
    result["site"] = event.of.into();
    Event::default().id(event.id).event("site").data(result.to_string())
}

async fn known(hub: &Hub, id: &str) -> Result<Run, ApiError> {
    let missing = || ApiError::NotFound("the run");
    let id: Uuid = id.parse().map_err(|_| missing())?;
    hub.cache.run_record(&hub.namespace, &id.to_string()).await?.ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_two_numbers() {
        assert!(place("1780000000000-0"));
        for bad in ["", "0", "-", "1-", "1-x", "+", "(1-0"] {
            assert!(!place(bad), "{bad}");
        }
    }
}
