//! The comparator of the Hub's list: the same HTTP server with the same bytes, and nothing to find or to write.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

/// Folder of the answers: a file each.
pub const FOLDER: &str = "SITES_LOADTEST_FIXED";
/// Port to listen on.
pub const PORT: &str = "SITES_LOADTEST_PORT";

/// Answers until killed.
pub async fn run() -> Result<()> {
    let folder = PathBuf::from(std::env::var_os(FOLDER).context("the folder is not set")?);
    let mut answers = HashMap::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let bytes = axum::body::Bytes::from(std::fs::read(entry.path())?);
        answers.insert(entry.file_name().to_string_lossy().into_owned(), bytes);
    }
    let routes = Router::new().route("/{name}", get(answer)).with_state(Arc::new(answers));
    let port: u16 = std::env::var(PORT)?.parse()?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    Ok(axum::serve(listener, routes).await?)
}

async fn answer(
    State(answers): State<Arc<HashMap<String, axum::body::Bytes>>>,
    Path(name): Path<String>,
) -> impl IntoResponse {
    match answers.get(&name) {
        Some(bytes) => ([(header::CONTENT_TYPE, "application/json")], bytes.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
