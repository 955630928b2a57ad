//! What the Hub may do in a cluster, least privilege: the source of the chart's Role and of `sites rbac`.

use serde_json::Value;

use crate::engine::rights::{self, rule};

/// Name of the Hub's `ServiceAccount`.
pub const SERVICE_ACCOUNT: &str = "sites-hub";

/// The `ServiceAccount`, the Role and `ClusterRole` with their bindings, in one namespace.
#[must_use]
pub fn manifests(namespace: &str) -> Vec<Value> {
    let names = rights::Names { account: SERVICE_ACCOUNT, role: "sites-hub", cluster_role: "sites-hub-resources" };
    rights::manifests(namespace, &names, &namespaced(), &cluster_wide())
}

/// It writes Sites and never what they are turned into, and reads no Secret.
fn namespaced() -> Vec<Value> {
    vec![
        rule("sites.ecmwf.int", &["sites"], &["get", "list", "watch", "create", "patch", "delete"]),
        rule("", &["pods"], &["get", "list", "delete"]),
        rule("", &["pods/log"], &["get"]),
        // The read-only switch and saved templates.
        rule("", &["configmaps"], &["get", "list", "create", "update", "patch", "delete"]),
        rule("", &["resourcequotas"], &["get", "list"]),
    ]
}

/// Volumes that deleted Sites have left.
fn cluster_wide() -> Vec<Value> {
    vec![rule("", &["persistentvolumes"], &["get", "list", "delete"])]
}
