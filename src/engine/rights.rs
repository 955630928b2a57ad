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

/// What the objects of one account are called.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The `ServiceAccount`.
    pub account: &'a str,
    /// Its Role and the binding of it.
    pub role: &'a str,
    /// Its `ClusterRole` and the binding of it, before the namespace.
    pub cluster_role: &'a str,
}

/// The `ServiceAccount`, the Role and `ClusterRole` with their bindings, in one namespace.
#[must_use]
pub fn manifests(namespace: &str, names: &Names<'_>, namespaced: &[Value], cluster_wide: &[Value]) -> Vec<Value> {
    let Names { account, role, cluster_role } = names;
    let cluster_role = format!("{cluster_role}-{namespace}");
    let subject = json!([{"kind": "ServiceAccount", "name": account, "namespace": namespace}]);
    let reference =
        |kind: &str, name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    let rbac = "rbac.authorization.k8s.io/v1";
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": namespace}}),
        json!({"apiVersion": rbac, "kind": "Role", "metadata": {"name": role, "namespace": namespace}, "rules": namespaced}),
        json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": role, "namespace": namespace},
            "roleRef": reference("Role", role), "subjects": subject}),
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": cluster_role}, "rules": cluster_wide}),
        json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": cluster_role},
            "roleRef": reference("ClusterRole", &cluster_role), "subjects": subject}),
    ]
}

/// As one YAML stream.
pub fn yaml(manifests: &[Value]) -> Result<String, serde_saphyr::ser::Error> {
    let mut text = String::from("# Made by `sites rbac`; do not edit.\n");
    for manifest in manifests {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(manifest)?);
    }
    Ok(text)
}
