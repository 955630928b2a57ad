//! What a handler left unread of a request's body.
//!
//! A client that is answered while it still sends is cut off by the proxies in between: over HTTP/2, curl then tells of a
//! broken stream instead of the answer. So a refusal waits for the rest of a small body.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use http::{Request, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};

/// Longest body that is waited for, in bytes: what fits into the buffers of proxies is what is cut off.
const MOST: usize = 1 << 20;
/// Longest wait for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A body that two may read, one after the other.
#[derive(Clone)]
struct Shared(Arc<Mutex<Body>>);

impl Shared {
    fn body(&self) -> MutexGuard<'_, Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpBody for Shared {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut *self.body()).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body().size_hint()
    }
}

/// The rest of a request's body.
pub(super) struct Rest(Option<Shared>);

/// Keeps a way to the rest of a request's body. A client that waits to be asked for its body is never asked for the
/// rest of it.
pub(super) fn kept(request: Request<Body>) -> (Request<Body>, Rest) {
    if request.body().is_end_stream() || request.headers().contains_key(header::EXPECT) {
        return (request, Rest(None));
    }
    let (head, body) = request.into_parts();
    let shared = Shared(Arc::new(Mutex::new(body)));
    (Request::from_parts(head, Body::new(shared.clone())), Rest(Some(shared)))
}

impl Rest {
    /// Reads a small rest and drops it.
    pub(super) async fn read(self) {
        if let Some(body) = self.0.filter(|body| body.size_hint().lower() <= MOST as u64) {
            drop_all(body, MOST, PATIENCE).await;
        }
    }
}

/// Reads a body that is not wanted, for a while, so that a client that writes before it reads gets its answer.
pub(super) async fn drain(body: Body) {
    drop_all(body, 64 << 20, Duration::from_secs(10)).await;
}

/// Reads and drops so much for so long. Whatever is left then, the connection is closed over it.
async fn drop_all(body: impl HttpBody<Data = Bytes, Error = axum::Error>, most: usize, patience: Duration) {
    let mut left = std::pin::pin!(Limited::new(body, most));
    let reading = async { while let Some(Ok(_)) = left.frame().await {} };
    let _ = tokio::time::timeout(patience, reading).await;
}
