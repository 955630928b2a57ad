//! The road of every request to the API server, watches and Leases included.
//!
//! Owns, in this order: the rate limit, the wait for Retry-After, the leadership gate right before a write
//! leaves, the token and its one repetition after a 401, the time limit, and one span and one metric.
//! Repeats nothing else: whoever made the call decides about a retry.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use jiff::Timestamp;
use kube::Config;
use kube::client::{Body, ConfigExt};
use thiserror::Error;
use tower::util::BoxCloneService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};
use tracing::Instrument;

use super::gate::{Gate, retry_after};
use super::guard::{Guarded, closed_gate, guarded};
use super::leadership::Leadership;
use super::request::Traits;
use super::token::TokenFile;
use crate::telemetry::Metrics;

/// A closed gate up to here is waited for; beyond, a call fails at once so that it holds no permit.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time for the TCP connection alone.
const CONNECT: Duration = Duration::from_secs(10);
/// Silence after which the kernel asks whether the peer is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

type Answer = Response<Either<Full<Bytes>, Incoming>>;
type Inner = BoxCloneService<Request<Body>, Response<Incoming>, BoxError>;

/// Why a request got no answer.
#[derive(Clone, Debug, Error)]
pub(super) enum Fault {
    #[error("no answer within the time limit")]
    Timeout,
    #[error("not sent: this process does not lead")]
    NotLeader,
    #[error("not sent: the API server asked to wait")]
    Held(Duration),
    #[error("connection: {0}")]
    Connection(String),
}

/// What all requests of one [`super::Cluster`] share.
#[derive(Debug)]
pub(super) struct Road {
    pub(super) leadership: Leadership,
    pub(super) metrics: Metrics,
    agent: HeaderValue,
    token: Option<TokenFile>,
    call_timeout: Duration,
    gate: Gate,
    rate: DefaultDirectRateLimiter,
    /// Plural to kind, for the label of watches, whose requests kube builds.
    kinds: RwLock<BTreeMap<String, String>>,
}

impl Road {
    pub(super) fn new(
        agent: HeaderValue,
        token: Option<TokenFile>,
        call_timeout: Duration,
        rate: NonZeroU32,
        metrics: Metrics,
    ) -> Self {
        Self {
            leadership: Leadership::closed(),
            metrics,
            agent,
            token,
            call_timeout,
            gate: Gate::default(),
            rate: RateLimiter::direct(Quota::per_second(rate)),
            kinds: RwLock::default(),
        }
    }

    /// Makes the metric of a watch name the kind instead of its plural.
    pub(super) fn name_kind(&self, plural: &str, kind: &str) {
        let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        kinds.insert(plural.to_owned(), kind.to_owned());
    }

    async fn pass_gates(&self, traits: &Traits) -> Result<(), Fault> {
        // A renewal of the Lease must not queue behind a burst of other calls.
        if !traits.lease {
            self.rate.until_ready().await;
        }
        if let Some(key) = &traits.watch
            && let Some(wait) = self.gate.pace_watch(key.clone(), Instant::now())
        {
            tokio::time::sleep(wait).await;
        }
        while let Some(wait) = self.gate.wait(Instant::now()) {
            if traits.watch.is_none() && wait > PATIENCE {
                return Err(Fault::Held(wait));
            }
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }

    fn kind_of(&self, plural: &str) -> String {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        kinds.get(plural).cloned().unwrap_or_else(|| plural.to_owned())
    }
}

/// The service below `kube::Client`.
#[derive(Clone)]
pub(super) struct Transport {
    inner: Inner,
    road: Arc<Road>,
}

impl Transport {
    pub(super) fn new(inner: Inner, road: Arc<Road>) -> Self {
        Self { inner, road }
    }

    async fn carry(self, request: Request<Body>) -> Result<Answer, Fault> {
        let traits = Traits::of(&request, |plural| self.road.kind_of(plural));
        let span = tracing::info_span!(
            "kube_call",
            verb = traits.call.verb(),
            kind = traits.call.kind(),
            namespace = traits.call.namespace(),
            // Not `name`: in JSON lines that is the span's own.
            object = traits.call.name(),
            code = tracing::field::Empty,
        );
        let road = Arc::clone(&self.road);
        let (result, took) = async {
            // Waiting at the gates is not the server's time.
            let passed = road.pass_gates(&traits).await;
            let begun = Instant::now();
            let result = match passed {
                Ok(()) => self.send_in_time(request, &traits).await,
                Err(fault) => Err(fault),
            };
            (result, begun.elapsed())
        }
        .instrument(span.clone())
        .await;
        let code = match &result {
            Ok(answer) => answer.status().as_str().to_owned(),
            Err(Fault::Timeout) => "timeout".to_owned(),
            Err(Fault::NotLeader) => "not_leader".to_owned(),
            Err(Fault::Held(_)) => "held".to_owned(),
            Err(Fault::Connection(_)) => "connection".to_owned(),
        };
        span.record("code", &code);
        road.metrics.kube_call(traits.call.verb(), traits.call.kind(), &code, took);
        result
    }

    async fn send_in_time(mut self, request: Request<Body>, traits: &Traits) -> Result<Answer, Fault> {
        let limit = self.road.call_timeout;
        tokio::time::timeout(limit, self.send(request, traits)).await.map_err(|_| Fault::Timeout)?
    }

    async fn send(&mut self, mut request: Request<Body>, traits: &Traits) -> Result<Answer, Fault> {
        request.headers_mut().insert(USER_AGENT, self.road.agent.clone());
        let road = Arc::clone(&self.road);
        let Some(token) = &road.token else { return self.exchange(request, traits).await };
        let used = token.header().await;
        request.headers_mut().insert(AUTHORIZATION, used.clone());
        let copy = copy_of(&request);
        let answer = self.exchange(request, traits).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        // A request that was refused for its token has done nothing yet: also a write may be repeated.
        match (token.other_than(&used).await, copy) {
            (Some(newer), Some(mut again)) => {
                tracing::info!("the token changed after a 401, the call is repeated once with the new one");
                again.headers_mut().insert(AUTHORIZATION, newer);
                self.exchange(again, traits).await
            }
            _ => Ok(answer),
        }
    }

    async fn exchange(&mut self, mut request: Request<Body>, traits: &Traits) -> Result<Answer, Fault> {
        let inner = self.inner.ready().await.map_err(|error| Fault::Connection(chain(&*error)))?;
        if traits.gated && !self.road.leadership.valid() {
            return Err(Fault::NotLeader);
        }
        if traits.gated {
            // Looked at again when the bytes leave.
            request.extensions_mut().insert(self.road.leadership.clone());
        }
        let answer = inner
            .call(request)
            .await
            .map_err(|error| if closed_gate(&*error) { Fault::NotLeader } else { Fault::Connection(chain(&*error)) })?;
        let status = answer.status();
        let wait = retry_after(answer.headers(), Timestamp::now());
        self.road.gate.learn(status, wait, Instant::now());
        let (head, body) = answer.into_parts();
        if traits.watch.is_some() && status.is_success() {
            return Ok(Response::from_parts(head, Either::Right(body)));
        }
        let bytes = body.collect().await.map_err(|error| Fault::Connection(chain(&error)))?.to_bytes();
        Ok(Response::from_parts(head, Either::Left(Full::new(bytes))))
    }
}

impl Service<Request<Body>> for Transport {
    type Response = Answer;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Readiness of the connection pool is awaited in `exchange`, after the gates.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { this.carry(request).await.map_err(BoxError::from) })
    }
}

fn copy_of(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

/// An error with its causes; hyper says only the outermost.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = text + ": " + &error.to_string();
        cause = error.source();
    }
    text
}

/// The plain HTTP/1.1 client with TLS, credentials other than a token file, and impersonation headers.
/// kube's own stack is not used: it repeats POSTs after a 503 and logs each 5xx as an error.
pub(super) fn http_client(config: &Config) -> kube::Result<Inner> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT));
    tcp.set_keepalive(Some(KEEP_ALIVE));
    let tls = config.rustls_https_connector_with_connector(tcp)?;
    let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .build::<_, Guarded>(tls);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .map_request(guarded)
        .service(client);
    Ok(BoxCloneService::new(service.map_err(BoxError::from)))
}
