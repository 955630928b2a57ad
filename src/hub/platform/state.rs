//! The read-only switch: while it is on, nobody changes anything through the Hub.
//!
//! Owns the `ConfigMap` behind it, so that it holds for all replicas and survives them, and a short memory of it, so that
//! a write costs no extra call. Made on demand: no `ConfigMap` means that all may write. Owns the layer that asks too:
//! by the method, so that a route which is added later cannot forget it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::super::auth;
use super::super::error::ApiError;
use super::super::state::Hub;
use crate::cluster::{CallError, Kind};

/// Name of the `ConfigMap`.
const NAME: &str = "sites-platform-state";
/// How long a replica believes what it has read.
const FRESH: Duration = Duration::from_secs(5);
/// Longest message, in characters.
pub const MESSAGE: usize = 500;

/// Changes that a read-only platform takes: the switch itself, the end of a session, and the end of a bulk run, which
/// would otherwise go on without anybody who could stop it.
const ALWAYS: [&str; 3] = ["/platform/state/", "/runs/{id}/cancel/", "/hub/logout/"];

/// Whether the platform takes changes.
#[derive(Serialize, ToSchema, Clone, Debug, Default, PartialEq, Eq)]
pub struct PlatformState {
    /// Nobody changes anything while this is true.
    pub read_only: bool,
    /// Why, for those who are refused.
    pub message: String,
    /// Who switched it last.
    pub updated_by: Option<String>,
    /// When, RFC 3339.
    pub updated_at: Option<String>,
}

/// What this replica remembers of it.
#[derive(Clone, Debug, Default)]
pub struct Switch(Arc<Mutex<Option<(Instant, PlatformState)>>>);

impl Switch {
    fn remembered(&self) -> Option<PlatformState> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.as_ref().filter(|(at, _)| at.elapsed() < FRESH).map(|(_, state)| state.clone())
    }

    fn remember(&self, state: &PlatformState) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), state.clone()));
    }
}

/// Whether a request of this method to this route (its template) has to ask the switch.
#[must_use]
pub fn asks(method: &Method, route: &str) -> bool {
    let route = ["/hub/api/v2", "/hub/api/v1"].iter().find_map(|base| route.strip_prefix(base)).unwrap_or(route);
    !auth::harmless(method) && !ALWAYS.contains(&route)
}

/// The layer around every route: 503 for a change while the platform is read-only.
pub async fn guard(State(hub): State<Hub>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    if asks(request.method(), route)
        && let Err(refusal) = writable(&hub).await
    {
        return refusal.into_response();
    }
    next.run(request).await
}

/// Whether anything may be changed now, else 503 with the administrators' message.
async fn writable(hub: &Hub) -> Result<(), ApiError> {
    let state = match hub.switch.remembered() {
        Some(state) => state,
        None => read(hub).await?,
    };
    if !state.read_only {
        return Ok(());
    }
    let reason = if state.message.is_empty() { "try again later" } else { &state.message };
    Err(ApiError::Unavailable(format!("the platform is read-only: {reason}")))
}

/// The switch as it is now.
pub async fn read(hub: &Hub) -> Result<PlatformState, ApiError> {
    let map: Option<ConfigMap> = hub.cluster.read(Some(&hub.namespace), NAME).await?;
    let data = map.and_then(|map| map.data).unwrap_or_default();
    let text = |key: &str| data.get(key).cloned().filter(|text| !text.is_empty());
    let state = PlatformState {
        read_only: data.get("read_only").is_some_and(|text| text == "true"),
        message: text("message").unwrap_or_default(),
        updated_by: text("updated_by"),
        updated_at: text("updated_at"),
    };
    hub.switch.remember(&state);
    Ok(state)
}

/// Turns the switch.
pub async fn write(hub: &Hub, state: &PlatformState) -> Result<(), ApiError> {
    let kind = Kind::of::<ConfigMap>();
    let namespace = Some(&*hub.namespace);
    let data = json!({
        "read_only": state.read_only.to_string(),
        "message": state.message,
        "updated_by": state.updated_by.clone().unwrap_or_default(),
        "updated_at": state.updated_at.clone().unwrap_or_default(),
    });
    let patch = json!({ "data": data });
    match hub.cluster.merge_patch_value(&kind, namespace, NAME, &patch).await {
        Err(CallError::NotFound { .. }) => {
            let fresh: Value =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": data});
            match hub.cluster.create_value(&kind, namespace, &fresh).await {
                Ok(_) => {}
                // Another replica was first.
                Err(CallError::AlreadyExists { .. }) => {
                    hub.cluster.merge_patch_value(&kind, namespace, NAME, &patch).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        other => {
            other?;
        }
    }
    hub.switch.remember(state);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_ask_and_what_must_go_on_does_not() {
        for (method, route, answer) in [
            (Method::POST, "/hub/api/v2/sites/", true),
            (Method::DELETE, "/hub/api/v1/sites/-/{site_id}/", true),
            (Method::from_bytes(b"NEW").unwrap(), "/hub/api/v2/sites/", true),
            (Method::POST, "", true),
            (Method::GET, "/hub/api/v2/sites/", false),
            (Method::PUT, "/hub/api/v2/platform/state/", false),
            (Method::PUT, "/hub/api/v1/platform/state/", false),
            (Method::POST, "/hub/api/v2/runs/{id}/cancel/", false),
            (Method::POST, "/hub/logout/", false),
            (Method::GET, "/hub/callback/", false),
        ] {
            assert_eq!(asks(&method, route), answer, "{method} {route}");
        }
    }
}
