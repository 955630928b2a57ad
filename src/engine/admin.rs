//! The admin port: health, readiness, metrics and what each actor knows. For the platform's own network only.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::context::Context;
use super::key::ObjectKey;
use super::reconciler::Reconciler;
use super::runtime::Inspector;

struct Admin<R: Reconciler> {
    context: Arc<Context<R>>,
    inspector: Inspector<R>,
    namespace: String,
}

/// Binds the port, says which, and answers until `stop`.
pub async fn serve<R: Reconciler>(
    address: SocketAddr,
    context: Arc<Context<R>>,
    inspector: Inspector<R>,
    namespace: String,
    stop: CancellationToken,
) -> io::Result<tokio::task::JoinHandle<()>> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    let model = context.reconciler.model();
    info!(address = %bound, "admin endpoint listening");
    let router = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready::<R>))
        .route("/metrics", get(metrics::<R>))
        .route(&format!("/debug/{model}"), get(list::<R>))
        .route(&format!("/debug/{model}/{{name}}"), get(describe::<R>))
        .with_state(Arc::new(Admin { context, inspector, namespace }));
    Ok(tokio::spawn(async move {
        let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await;
        if let Err(error) = served {
            warn!(%error, "admin endpoint ended");
        }
    }))
}

/// Ready once every first list is complete, as a standby too: leadership is not readiness.
async fn ready<R: Reconciler>(State(admin): State<Arc<Admin<R>>>) -> Response {
    if admin.context.synced() {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "first lists are not complete\n").into_response()
    }
}

async fn metrics<R: Reconciler>(State(admin): State<Arc<Admin<R>>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], admin.context.metrics.render()).into_response()
}

async fn list<R: Reconciler>(State(admin): State<Arc<Admin<R>>>) -> Response {
    match admin.inspector.list().await {
        Some(lines) => Json(json!({
            "synced": admin.context.synced(),
            "working": admin.context.open(),
            "objects": lines,
        }))
        .into_response(),
        None => busy(),
    }
}

async fn describe<R: Reconciler>(State(admin): State<Arc<Admin<R>>>, Path(name): Path<String>) -> Response {
    match admin.inspector.describe(ObjectKey::new(&admin.namespace, &name)).await {
        Some(knowledge) => Json(knowledge).into_response(),
        None => (StatusCode::NOT_FOUND, Json(json!({"status": "error", "message": "no actor of that name"})))
            .into_response(),
    }
}

fn busy() -> Response {
    (
        StatusCode::SERVICE_UNAVAILABLE,
        Json(json!({"status": "error", "message": "the registry did not answer in time"})),
    )
        .into_response()
}
