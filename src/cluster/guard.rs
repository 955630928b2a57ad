//! The leadership gate once more, where a write's bytes leave: a connection may have to be made after the first look,
//! and a process may be paused in between.
//!
//! Owns a body that refuses to be read when the gate has closed. hyper asks for the body before it sends the head,
//! so a refused request leaves not one byte on the wire.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Request;
use hyper::body::{Bytes, Frame, SizeHint};
use kube::client::Body;
use thiserror::Error;

use super::leadership::Leadership;

#[derive(Clone, Copy, Debug, Error)]
#[error("not sent: this process does not lead any more")]
struct Closed;

/// A body that can be read only while its gate, where it has one, is open.
pub(super) struct Guarded {
    body: Body,
    gate: Option<Leadership>,
}

/// The request as it is sent. A [`Leadership`] among its extensions guards it.
pub(super) fn guarded(mut request: Request<Body>) -> Request<Guarded> {
    let gate = request.extensions_mut().remove();
    request.map(|body| Guarded { body, gate })
}

/// Whether a request failed because the gate was closed.
pub(super) fn closed_gate(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<Closed>() {
            return true;
        }
        cause = error.source();
    }
    false
}

impl hyper::body::Body for Guarded {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.gate.as_ref().is_some_and(|gate| !gate.valid()) {
            return Poll::Ready(Some(Err(Closed.into())));
        }
        Pin::new(&mut self.body).poll_frame(context).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use hyper_util::client::legacy::Client;
    use hyper_util::rt::TokioExecutor;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// What a server receives of a write whose gate is open or closed when its connection is there.
    async fn received(gate: Leadership) -> (usize, Result<(), bool>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = vec![0; 4096];
            let count = stream.read(&mut buffer).await.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
            count
        });
        let client = Client::builder(TokioExecutor::new()).build_http::<Guarded>();
        let request = Request::post(format!("http://{address}/")).extension(gate);
        let answer = client.request(guarded(request.body(Body::from(b"{}".to_vec())).unwrap())).await;
        let answer = answer.map(|_| ()).map_err(|error| closed_gate(&error));
        drop(client);
        (server.await.unwrap(), answer)
    }

    #[tokio::test]
    async fn no_byte_leaves_behind_a_closed_gate() {
        assert_eq!(received(Leadership::closed()).await, (0, Err(true)));
        let open = Leadership::closed();
        open.open_until(Instant::now() + Duration::from_secs(600));
        let (bytes, answer) = received(open).await;
        assert!(bytes > 0 && answer.is_ok());
    }
}
