//! Serving HTTP on loopback, for every role: bounds on what a connection may hold, and a stop that finishes.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::body::Body;
use futures::FutureExt;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tracing::{debug, error, info, warn};

use super::rest;

/// Connections at a time. nginx keeps 32 and opens more under load.
const MAX_CONNECTIONS: usize = 1024;
/// Longest wait for a request's head. Longer than nginx keeps an idle connection, so that it is nginx that closes.
const HEAD_PATIENCE: Duration = Duration::from_secs(120);
/// Time for running requests on stop: less than the pod has (30 s).
const GRACE: Duration = Duration::from_secs(25);

/// Answers requests at an address until SIGTERM or SIGINT, then finishes those that run.
///
/// A handler that panics is answered by `broken`, and the others go on.
pub async fn serve<H, F>(
    address: SocketAddr,
    name: &'static str,
    handler: H,
    broken: fn() -> Response<Body>,
) -> anyhow::Result<()>
where
    H: Fn(Request<Body>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let graceful = GracefulShutdown::new();
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE);
    info!(address = %listener.local_addr()?, version = env!("CARGO_PKG_VERSION"), "sites runtime {name} serves");
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &slots) => accepted,
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        };
        let Some((stream, slot)) = accepted else { continue };
        let handler = handler.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (request, rest) = rest::kept(request.map(Body::new));
            let answer = AssertUnwindSafe(handler(request)).catch_unwind();
            async move {
                let answer = answer.await.unwrap_or_else(|_| {
                    error!("a request failed in an unforeseen way");
                    broken()
                });
                if answer.status().is_client_error() || answer.status().is_server_error() {
                    rest.read().await;
                }
                Ok::<_, Infallible>(answer)
            }
        });
        let connection = graceful.watch(server.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                debug!(%error, "a connection ended early");
            }
            drop(slot);
        });
    }
    drop(listener);
    info!("sites runtime {name} stops");
    if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
        warn!("requests that did not end in time are cut off");
    }
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let slot = slots.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // A failure only costs time.
            let _ = stream.set_nodelay(true);
            Some((stream, slot))
        }
        Err(error) => {
            warn!(%error, "a connection could not be taken");
            // Out of descriptors: waiting is all that helps.
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}
