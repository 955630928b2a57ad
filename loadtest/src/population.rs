//! The Sites of a run, their pods, and their making at a given number in flight.

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use sites::domain::site::Site;

use crate::ground::{Ground, NAMESPACE};
use crate::server::{Prepared, Server};

/// Requests in flight while a run is prepared.
pub const PREPARING: usize = 16;
/// Where Sites live.
pub const SITES: &str = "/apis/sites.ecmwf.int/v1/namespaces/load/sites";
/// Where `ConfigMap`s live.
pub const CONFIGMAPS: &str = "/api/v1/namespaces/load/configmaps";
/// Where pods live.
pub const PODS: &str = "/api/v1/namespaces/load/pods";

/// Name of the Site with this number.
#[must_use]
pub fn name(number: usize) -> String {
    format!("load-{number:05}")
}

/// A private Site with an administration page and `WebDAV`: eight objects in ingress mode.
#[must_use]
pub fn site(name: &str) -> Value {
    json!({
        "apiVersion": "sites.ecmwf.int/v1",
        "kind": "Site",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "id": name,
            "name": name,
            "owner": "ada@example.test",
            "type": "private",
            "configuration": {
                "space": "load",
                "enabled": true,
                "quota": 1,
                "applications": [{"name": "site-admin"}, {"name": "site-webdav"}],
                "share": {"view_groups": ["readers"]},
            },
        },
    })
}

/// Sends requests, so many in flight, in order. Answers are dropped.
pub async fn send_all(server: &Server, requests: Vec<Prepared>, in_flight: usize) -> Result<()> {
    stream::iter(requests.into_iter().map(Ok))
        .try_for_each_concurrent(in_flight, |request| async move { server.send(&request).await.map(|_| ()) })
        .await
}

/// Creates the Sites with these numbers and gives them as the server stored them.
pub async fn create(ground: &Ground, numbers: std::ops::Range<usize>) -> Result<Vec<Site>> {
    let server = &ground.admin;
    stream::iter(numbers.map(|number| Prepared::post(SITES.to_owned(), &site(&name(number)))))
        .map(|request| async move { Ok(serde_json::from_slice(&server.send(&request).await?)?) })
        .buffered(PREPARING)
        .try_collect()
        .await
}

/// A pod of a Site, as far as the operator looks at pods; no controller has to make it.
#[must_use]
pub fn pod(site: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{site}-0"),
            "namespace": NAMESPACE,
            "labels": {"sites.ecmwf.int/app": "site", "sites.ecmwf.int/id": site},
            "annotations": {"sites.ecmwf.int/operator_bound": "true"},
        },
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [{"name": "site-proxy", "image": "sites"}],
        },
    })
}

/// The patch after which a Site's pod runs and is ready, or does not run.
#[must_use]
pub fn flip(site: &str, running: bool) -> Prepared {
    let status = if running { "True" } else { "False" };
    let now = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_default().to_string();
    let condition = |kind: &str| json!({"type": kind, "status": status, "lastTransitionTime": now});
    let patch = json!({"status": {
        "phase": if running { "Running" } else { "Pending" },
        "conditions": [condition("ContainersReady"), condition("Ready")],
    }});
    Prepared::merge(format!("{PODS}/{site}-0/status"), &patch)
}

/// The phase that a Site has after [`flip`].
#[must_use]
pub const fn phase(running: bool) -> &'static str {
    if running { "Running" } else { "Pending" }
}
