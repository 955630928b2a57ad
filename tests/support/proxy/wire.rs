//! The proxy's connections: accepts TLS, speaks HTTP/1.1 on both sides, does what the rules say. Decides nothing.
//!
//! It runs on a thread of its own: a test that blocks its runtime must not stop the operator's traffic.

use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::client::ConfigExt;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use super::{Act, Asked, Shared};

/// One concrete type: a boxed error makes the compiler lose sight of what may be sent between threads.
type Fault = std::io::Error;
type Answer = http_body_util::combinators::UnsyncBoxBody<Bytes, Fault>;
type Upstream = Arc<dyn Fn(Request<Incoming>) -> ResponseFuture + Send + Sync>;

/// Starts the proxy's thread; gives the address it listens on.
pub(super) fn serve(shared: Arc<Shared>, config: kube::Config, ca: &Path, end: oneshot::Receiver<()>) -> SocketAddr {
    let acceptor = acceptor(ca);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let server = config.cluster_url.clone();
            let client = Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .build(config.rustls_https_connector().expect("a connector"));
            let upstream: Upstream = Arc::new(move |mut request| {
                let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
                let uri = format!("{}{path}", server.to_string().trim_end_matches('/'));
                *request.uri_mut() = uri.parse().expect("an address");
                client.request(request)
            });
            let listener = TcpListener::from_std(listener).unwrap();
            let accepting = async {
                while let Ok((stream, _)) = listener.accept().await {
                    let _ = stream.set_nodelay(true);
                    tokio::spawn(connection(stream, acceptor.clone(), Arc::clone(&upstream), Arc::clone(&shared)));
                }
            };
            tokio::select! { () = accepting => {}, _ = end => {} }
        });
    });
    address
}

/// Makes an authority for this proxy, writes its certificate to `ca` and gives what accepts connections in its name.
fn acceptor(ca: &Path) -> TlsAcceptor {
    let ca_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, "fault proxy");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    std::fs::write(ca, params.self_signed(&ca_key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(params, ca_key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn connection(stream: tokio::net::TcpStream, tls: TlsAcceptor, upstream: Upstream, shared: Arc<Shared>) {
    let Ok(stream) = tls.accept(stream).await else { return };
    let service = hyper::service::service_fn(move |request| -> BoxFuture<'static, Result<Response<Answer>, Fault>> {
        Box::pin(exchange(request, Arc::clone(&upstream), Arc::clone(&shared)))
    });
    // An error from the service ends the connection without an answer: that is how a reset is made.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn exchange(
    request: Request<Incoming>,
    upstream: Upstream,
    shared: Arc<Shared>,
) -> Result<Response<Answer>, Fault> {
    let asked = Asked::read(&request);
    let agent = request.headers().get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let (place, fault) = shared.arrive(asked, agent.to_owned());
    match fault {
        Some(Act::Status { code, reason, message, retry_after }) => {
            // The body is read first: closing on a client that still sends would be another fault.
            let _ = request.into_body().collect().await;
            return Ok(status(code, &reason, &message, retry_after));
        }
        Some(Act::Reset) => return Err(Fault::other("reset by rule")),
        Some(Act::Delay(time)) => tokio::time::sleep(time).await,
        _ => {}
    }
    let response = upstream(without_hop_headers(request)).await.map_err(Fault::other)?;
    shared.answered(place, response.status().as_u16());
    if matches!(fault, Some(Act::LoseAnswer)) {
        return Err(Fault::other("answer lost by rule"));
    }
    let (mut head, body) = response.into_parts();
    remove_hop_headers(&mut head.headers);
    let body = match fault {
        Some(Act::Silence) => {
            head.headers.remove(header::CONTENT_LENGTH);
            Silent(body).boxed_unsync()
        }
        Some(Act::CutAfter(time)) => {
            head.headers.remove(header::CONTENT_LENGTH);
            Cut { body, end: Box::pin(tokio::time::sleep(time)) }.boxed_unsync()
        }
        _ => body.map_err(Fault::other).boxed_unsync(),
    };
    Ok(Response::from_parts(head, body))
}

/// A Kubernetes Status as an answer.
fn status(code: u16, reason: &str, message: &str, retry_after: Option<u32>) -> Response<Answer> {
    let mut body = serde_json::json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message,
    });
    if let Some(seconds) = retry_after {
        body["details"] = serde_json::json!({"retryAfterSeconds": seconds});
    }
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn without_hop_headers(mut request: Request<Incoming>) -> Request<Incoming> {
    remove_hop_headers(request.headers_mut());
    request.headers_mut().remove(header::HOST);
    request
}

fn remove_hop_headers(headers: &mut HeaderMap) {
    for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE, header::TE] {
        headers.remove(name);
    }
}

/// A body that keeps the server's open and shows nothing of it.
struct Silent(Incoming);

impl Body for Silent {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        Poll::Pending
    }
}

/// A body that breaks at a moment.
struct Cut {
    body: Incoming,
    end: Pin<Box<tokio::time::Sleep>>,
}

impl Body for Cut {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(Fault::other("cut by rule"))));
        }
        Pin::new(&mut self.body).poll_frame(context).map_err(Fault::other)
    }
}
