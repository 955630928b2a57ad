//! What the engine may do in a cluster on behalf of any resource: RBAC rules, for export.

use serde_json::{Value, json};

use crate::cluster::Kind;

/// One rule of a Role.
#[must_use]
pub fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// On the resource itself: it is watched and its status written; with a finalizer its metadata too.
#[must_use]
pub fn of_resource(kind: &Kind, finalizer: bool) -> Vec<Value> {
    let plural = &*kind.plural;
    let verbs: &[&str] = if finalizer { &["get", "list", "watch", "patch"] } else { &["get", "list", "watch"] };
    vec![rule(&kind.group, &[plural], verbs), rule(&kind.group, &[&format!("{plural}/status")], &["patch"])]
}

/// On what every operator needs: its Lease, and Events.
#[must_use]
pub fn of_process() -> Vec<Value> {
    vec![
        rule("coordination.k8s.io", &["leases"], &["get", "create", "update"]),
        rule("events.k8s.io", &["events"], &["create", "patch"]),
    ]
}
