//! The verbs: create, read, replace, patch, delete and list, typed and untyped.
//!
//! Owns the form of each request and of its result. Retries nothing and must not know any particular kind.

use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use jiff::Timestamp;
use kube::api::ListParams;
use kube::client::Body;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::connect::Cluster;
use super::decode::{Slim, from_bytes};
use super::error::{Call, CallError};
use super::gate::retry_after;
use super::kind::{ApiObject, Kind, is_path_segment};
use super::reply::refusal;
use super::transport::Fault;
use super::watch::Metadata;

/// Objects per page of a list.
const PAGE: u32 = 500;
const JSON: &str = "application/json";
/// The metadata of what was written: the rest of the answer would be what was sent.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// What must still be true of an object for its deletion to happen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Precondition {
    /// Its uid, so that a namesake is left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Its resource version, so that it did not change since it was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Propagation {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// Where a call goes.
#[derive(Clone, Copy)]
struct Target<'a> {
    kind: &'a Kind,
    ns: Option<&'a str>,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
}

impl<'a> Target<'a> {
    fn object(kind: &'a Kind, ns: Option<&'a str>, name: &'a str) -> Self {
        Self { kind, ns, name: Some(name), subresource: None }
    }

    fn collection(kind: &'a Kind, ns: Option<&'a str>) -> Self {
        Self { kind, ns, name: None, subresource: None }
    }

    fn call(&self, verb: &'static str) -> Call {
        Call::new(verb, &self.kind.kind, self.ns.filter(|_| self.kind.namespaced), self.name)
    }

    fn path(&self) -> Option<String> {
        if [self.ns, self.name].into_iter().flatten().any(|segment| !is_path_segment(segment)) {
            return None;
        }
        let mut path = self.kind.path(self.ns);
        for segment in [self.name, self.subresource].into_iter().flatten() {
            path.push('/');
            path.push_str(segment);
        }
        Some(path)
    }
}

#[derive(Deserialize)]
struct Page<K> {
    #[serde(default)]
    metadata: PageMeta,
    items: Vec<K>,
}

#[derive(Deserialize, Default)]
struct PageMeta {
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

impl Cluster {
    /// Version of the API server, such as `v1.34.1`.
    pub async fn version(&self) -> Result<String, CallError> {
        let call = Call::new("get", "version", None, None);
        let answer: Value = self.get(&call, "/version").await?;
        Ok(answer["gitVersion"].as_str().unwrap_or("unknown").to_owned())
    }

    /// Creates `object`; the result is what the server stored.
    pub async fn create<K: ApiObject>(&self, ns: Option<&str>, object: &K) -> Result<K, CallError> {
        let name = object.meta().name.as_deref();
        let (call, answer) = self.post(&Kind::of::<K>(), ns, name, JSON, |call| body(call, object)).await?;
        decoded(call, &answer)
    }

    /// Reads one object; `None` if there is none.
    pub async fn read<K: ApiObject>(&self, ns: Option<&str>, name: &str) -> Result<Option<K>, CallError> {
        self.fetch(&Kind::of::<K>(), ns, name).await
    }

    /// Replaces the whole object. With a resource version in it, only if it is still the current one.
    pub async fn replace<K: ApiObject>(&self, ns: Option<&str>, name: &str, object: &K) -> Result<K, CallError> {
        let (call, answer) = self.put(&Kind::of::<K>(), ns, name, JSON, object).await?;
        decoded(call, &answer)
    }

    /// Applies a JSON merge patch. With `metadata.resourceVersion` in it, only on that version.
    pub async fn merge_patch<K: ApiObject>(&self, ns: Option<&str>, name: &str, patch: &Value) -> Result<K, CallError> {
        self.patch(Target::object(&Kind::of::<K>(), ns, name), patch).await
    }

    /// Applies a JSON merge patch to the status subresource.
    pub async fn patch_status<K: ApiObject>(
        &self,
        ns: Option<&str>,
        name: &str,
        patch: &Value,
    ) -> Result<K, CallError> {
        let kind = Kind::of::<K>();
        self.patch(Target { subresource: Some("status"), ..Target::object(&kind, ns, name) }, patch).await
    }

    /// Deletes one object if `guard` holds, else [`CallError::Conflict`]. `false`: there was none.
    pub async fn delete<K: ApiObject>(
        &self,
        ns: Option<&str>,
        name: &str,
        guard: &Precondition,
        propagation: Option<Propagation>,
    ) -> Result<bool, CallError> {
        self.delete_value(&Kind::of::<K>(), ns, name, guard, propagation).await
    }

    /// All objects that the label selector fits; the empty one fits all.
    pub async fn list<K: ApiObject>(&self, ns: Option<&str>, selector: &str) -> Result<Vec<K>, CallError> {
        let kind = Kind::of::<K>();
        let target = Target::collection(&kind, ns);
        let call = target.call("list");
        let path = target.path().ok_or_else(|| bad_name(&call))?;
        let mut parameters = ListParams::default().labels(selector).limit(PAGE);
        let mut items = Vec::new();
        loop {
            let request = kube::core::Request::new(path.clone())
                .list(&parameters)
                .map_err(|error| CallError::Other { call: call.clone(), code: 0, message: error.to_string() })?;
            let page: Page<K> = self.get(&call, &request.uri().to_string()).await?;
            items.extend(page.items);
            match page.metadata.next.filter(|next| !next.is_empty()) {
                Some(next) => parameters.continue_token = Some(next),
                None => return Ok(items),
            }
        }
    }

    /// The end of a container's log: at most `lines` lines and `bytes` bytes. `None`: no such pod.
    pub async fn log(
        &self,
        ns: &str,
        pod: &str,
        container: &str,
        lines: usize,
        bytes: usize,
        previous: bool,
    ) -> Result<Option<Bytes>, CallError> {
        let kind = Kind::new("", "v1", "Pod", "pods", true);
        let target = Target { subresource: Some("log"), ..Target::object(&kind, Some(ns), pod) };
        let call = target.call("log");
        let path = target.path().filter(|_| is_path_segment(container)).ok_or_else(|| bad_name(&call))?;
        // All of it is safe in a query: a checked segment, numbers and a truth value.
        let path = format!("{path}?container={container}&tailLines={lines}&limitBytes={bytes}&previous={previous}");
        match self.send(&call, Method::GET, &path, JSON, "text/plain, */*", Bytes::new()).await {
            Ok(text) => Ok(Some(text)),
            Err(CallError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// [`Self::create`] without a type. The result is the metadata that the object was stored with.
    pub async fn create_value(&self, kind: &Kind, ns: Option<&str>, object: &Value) -> Result<Metadata, CallError> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        self.create_text(kind, ns, name, object.to_string().into()).await
    }

    /// [`Self::create`] of an object that is JSON already. The result is the metadata that it was stored with.
    pub async fn create_text(
        &self,
        kind: &Kind,
        ns: Option<&str>,
        name: &str,
        text: Bytes,
    ) -> Result<Metadata, CallError> {
        let (call, answer) = self.post(kind, ns, Some(name), METADATA, |_| Ok(text)).await?;
        decoded(call, &answer).map(|Slim(meta)| meta.into())
    }

    /// [`Self::read`] without a type.
    pub async fn read_value(&self, kind: &Kind, ns: Option<&str>, name: &str) -> Result<Option<Value>, CallError> {
        self.fetch(kind, ns, name).await
    }

    /// [`Self::replace`] without a type. The result is the metadata that the object was stored with.
    pub async fn replace_value(
        &self,
        kind: &Kind,
        ns: Option<&str>,
        name: &str,
        object: &Value,
    ) -> Result<Metadata, CallError> {
        let (call, answer) = self.put(kind, ns, name, METADATA, object).await?;
        decoded(call, &answer).map(|Slim(meta)| meta.into())
    }

    /// [`Self::merge_patch`] without a type.
    pub async fn merge_patch_value(
        &self,
        kind: &Kind,
        ns: Option<&str>,
        name: &str,
        patch: &Value,
    ) -> Result<Value, CallError> {
        self.patch(Target::object(kind, ns, name), patch).await
    }

    /// [`Self::delete`] without a type.
    pub async fn delete_value(
        &self,
        kind: &Kind,
        ns: Option<&str>,
        name: &str,
        guard: &Precondition,
        propagation: Option<Propagation>,
    ) -> Result<bool, CallError> {
        let target = Target::object(kind, ns, name);
        let call = target.call("delete");
        let path = target.path().ok_or_else(|| bad_name(&call))?;
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if *guard != Precondition::default() {
            options["preconditions"] = json!(guard);
        }
        if let Some(propagation) = propagation {
            options["propagationPolicy"] = json!(propagation);
        }
        match self.send(&call, Method::DELETE, &path, JSON, JSON, body(&call, &options)?).await {
            Ok(_) => Ok(true),
            Err(CallError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn post(
        &self,
        kind: &Kind,
        ns: Option<&str>,
        name: Option<&str>,
        accept: &'static str,
        body: impl FnOnce(&Call) -> Result<Bytes, CallError>,
    ) -> Result<(Call, Bytes), CallError> {
        let target = Target::collection(kind, ns);
        let call = Target { name, ..target }.call("create");
        let path = target.path().ok_or_else(|| bad_name(&call))?;
        let answer = self.send(&call, Method::POST, &path, JSON, accept, body(&call)?).await?;
        Ok((call, answer))
    }

    async fn fetch<T: DeserializeOwned>(
        &self,
        kind: &Kind,
        ns: Option<&str>,
        name: &str,
    ) -> Result<Option<T>, CallError> {
        let target = Target::object(kind, ns, name);
        let call = target.call("get");
        let path = target.path().ok_or_else(|| bad_name(&call))?;
        match self.get(&call, &path).await {
            Ok(object) => Ok(Some(object)),
            Err(CallError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn put<T: Serialize>(
        &self,
        kind: &Kind,
        ns: Option<&str>,
        name: &str,
        accept: &'static str,
        object: &T,
    ) -> Result<(Call, Bytes), CallError> {
        let target = Target::object(kind, ns, name);
        let call = target.call("update");
        let path = target.path().ok_or_else(|| bad_name(&call))?;
        let answer = self.send(&call, Method::PUT, &path, JSON, accept, body(&call, object)?).await?;
        Ok((call, answer))
    }

    async fn patch<T: DeserializeOwned>(&self, target: Target<'_>, patch: &Value) -> Result<T, CallError> {
        let call = target.call("patch");
        let at = target.path().ok_or_else(|| bad_name(&call))?;
        let answer = self.send(&call, Method::PATCH, &at, MERGE_PATCH, JSON, body(&call, patch)?).await?;
        decoded(call, &answer)
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, call: &Call, path: &str) -> Result<T, CallError> {
        let answer = self.send(call, Method::GET, path, JSON, JSON, Bytes::new()).await?;
        decoded(call.clone(), &answer)
    }

    /// One request and its bytes, or the error. `kube::Client`'s own request methods are not used: they log
    /// the whole answer when it does not decode.
    async fn send(
        &self,
        call: &Call,
        method: Method,
        path: &str,
        content: &'static str,
        accept: &'static str,
        body: Bytes,
    ) -> Result<Bytes, CallError> {
        let mut request = Request::new(Body::from(body.clone()));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| bad_name(call))?;
        if !body.is_empty() {
            request.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content));
        }
        request.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static(accept));
        request.extensions_mut().insert(call.clone());
        let answer = self.client.send(request).await.map_err(|error| unanswered(call, &error))?;
        let (head, answer) = answer.into_parts();
        let bytes = answer.collect().await.map_err(|error| unanswered(call, &error))?.to_bytes();
        if head.status.is_success() {
            return Ok(bytes);
        }
        let wait = retry_after(&head.headers, Timestamp::now());
        Err(refusal(call.clone(), head.status.as_u16(), wait, &bytes, &body))
    }
}

/// The error of a request that got no answer.
fn unanswered(call: &Call, error: &kube::Error) -> CallError {
    let call = call.clone();
    match fault(error) {
        Some(Fault::Timeout) => CallError::Timeout { call },
        Some(Fault::NotLeader) => CallError::NotLeader { call },
        Some(Fault::Held(wait)) => CallError::TooMany { call, retry_after: Some(wait) },
        Some(other @ Fault::Connection(_)) => CallError::Transport { call, message: other.to_string() },
        None => CallError::Transport { call, message: error.to_string() },
    }
}

/// The transport's own error inside kube's.
pub(super) fn fault(error: &kube::Error) -> Option<Fault> {
    match error {
        kube::Error::Service(inner) => inner.downcast_ref::<Fault>().cloned(),
        _ => None,
    }
}

fn body<T: Serialize>(call: &Call, object: &T) -> Result<Bytes, CallError> {
    serde_json::to_vec(object)
        .map(Bytes::from)
        .map_err(|error| CallError::Decode { call: call.clone(), message: format!("not sent: {error}") })
}

fn decoded<T: DeserializeOwned>(call: Call, bytes: &[u8]) -> Result<T, CallError> {
    from_bytes(bytes).map_err(|message| CallError::Decode { call, message })
}

fn bad_name(call: &Call) -> CallError {
    CallError::Other { call: call.clone(), code: 0, message: "not sent: a name would address another path".to_owned() }
}

/// A limit shorter than the client's own.
pub(super) async fn within<T>(
    limit: Duration,
    call: Call,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    tokio::time::timeout(limit, work).await.unwrap_or(Err(CallError::Timeout { call }))
}
