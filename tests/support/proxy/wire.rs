//! The proxy's connections: accepts TLS, speaks HTTP/1.1 on both sides, does what the rules say. Decides nothing.
//!
//! It runs on a thread of its own: a test that blocks its runtime must not stop the operator's traffic.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::client::ConfigExt;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use super::bodies::{Flow, Twist};
use super::rules::with_limit;
use super::{Act, Asked, Shared};

/// One concrete type: a boxed error makes the compiler lose sight of what may be sent between threads.
pub(super) type Fault = std::io::Error;
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

/// A client's connection, for those who may have to reset it: a second handle on the same socket.
pub(super) struct Socket(TcpStream);

impl Socket {
    /// The connection will end with a RST instead of an orderly end, as soon as it is dropped.
    pub(super) fn reset(&self) {
        self.0.set_zero_linger().expect("a socket that takes options");
    }
}

async fn connection(stream: TcpStream, tls: TlsAcceptor, upstream: Upstream, shared: Arc<Shared>) {
    let Ok(stream) = stream.into_std() else { return };
    let Ok(socket) = stream.try_clone().and_then(TcpStream::from_std) else { return };
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    let Ok(stream) = tls.accept(stream).await else { return };
    let socket = Arc::new(Socket(socket));
    let service = hyper::service::service_fn(move |request| -> BoxFuture<'static, Result<Response<Answer>, Fault>> {
        Box::pin(exchange(request, Arc::clone(&upstream), Arc::clone(&shared), Arc::clone(&socket)))
    });
    // An error from the service ends the connection without an answer.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn exchange(
    mut request: Request<Incoming>,
    upstream: Upstream,
    shared: Arc<Shared>,
    socket: Arc<Socket>,
) -> Result<Response<Answer>, Fault> {
    let asked = Asked::read(&request);
    let target = request.uri().clone();
    let arrival = shared.arrive(asked.clone());
    let fault = arrival.fault.clone();
    match &fault {
        Some(Act::Status { code, reason, message, retry_after }) => {
            // The body is read first: closing on a client that still sends would be another fault.
            let _ = request.into_body().collect().await;
            arrival.done();
            return Ok(status(*code, reason, message, *retry_after));
        }
        Some(Act::WatchError(code)) => {
            arrival.done();
            return Ok(json(StatusCode::OK, error_event(*code)));
        }
        Some(Act::Reset) => {
            socket.reset();
            arrival.done();
            return Err(Fault::other("reset by rule"));
        }
        Some(Act::Delay(time)) => tokio::time::sleep(*time).await,
        Some(Act::Hold) => arrival.lifted().await,
        Some(Act::Pages(size)) if asked.verb == "list" => *request.uri_mut() = with_limit(request.uri(), *size),
        Some(Act::Stale) => {
            if let Some(old) = arrival.kept(&target) {
                arrival.done();
                return Ok(json(StatusCode::OK, old));
            }
        }
        _ => {}
    }
    let response = upstream(without_hop_headers(request)).await.map_err(Fault::other)?;
    arrival.answered(response.status().as_u16());
    if matches!(fault, Some(Act::LoseAnswer)) {
        return Err(Fault::other("answer lost by rule"));
    }
    let (mut head, body) = response.into_parts();
    remove_hop_headers(&mut head.headers);
    if matches!(fault, Some(Act::Stale)) && head.status == StatusCode::OK {
        let bytes = body.collect().await.map_err(Fault::other)?.to_bytes();
        arrival.keep(&target, bytes.clone());
        return Ok(json(StatusCode::OK, bytes));
    }
    let twist = match fault {
        Some(Act::Silence) => Twist::Silence,
        Some(Act::CutAfter(time)) => Twist::CutAfter(Box::pin(tokio::time::sleep(time))),
        Some(Act::ResetAt(bytes)) => Twist::ResetAt(bytes, socket, Box::pin(tokio::time::sleep(Duration::ZERO))),
        Some(Act::Slow(pause)) => Twist::Slow(pause, Box::pin(tokio::time::sleep(pause))),
        _ => Twist::None,
    };
    if matches!(twist, Twist::Silence | Twist::CutAfter(_)) {
        head.headers.remove(header::CONTENT_LENGTH);
    }
    let body = Flow { body, stream: shared.streams.open(asked), twist, over: false }.boxed_unsync();
    Ok(Response::from_parts(head, body))
}

/// An ERROR event of a watch.
pub(super) fn error_event(code: u16) -> Bytes {
    let Act::Status { reason, message, .. } = Act::status(code) else { unreachable!("a status is one") };
    let object = status_body(code, &reason, &message, None);
    Bytes::from(format!("{}\n", serde_json::json!({"type": "ERROR", "object": object})))
}

fn json(code: StatusCode, bytes: Bytes) -> Response<Answer> {
    let mut response = Response::new(Full::new(bytes).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

fn status_body(code: u16, reason: &str, message: &str, retry_after: Option<u32>) -> serde_json::Value {
    let mut body = serde_json::json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message,
    });
    if let Some(seconds) = retry_after {
        body["details"] = serde_json::json!({"retryAfterSeconds": seconds});
    }
    body
}

/// A Kubernetes Status as an answer.
fn status(code: u16, reason: &str, message: &str, retry_after: Option<u32>) -> Response<Answer> {
    let body = status_body(code, reason, message, retry_after);
    let mut response = json(StatusCode::from_u16(code).unwrap(), Bytes::from(body.to_string()));
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
