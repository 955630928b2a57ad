//! What the operator may do in a cluster, least privilege: the source of the chart's Role and of `sites rbac`.

use serde_json::{Value, json};

use super::objects::{every_policy_kind, policy_kind};
use crate::cluster::Kind;
use crate::domain::site::Site;
use crate::engine::rights::{self, rule};
use crate::render::route::HTTP_ROUTE;

/// Name of the operator's ServiceAccount, as on the platform that this one replaces.
pub const SERVICE_ACCOUNT: &str = "sites";
const ROLE: &str = "sites-application";
const CLUSTER_ROLE: &str = "sites-application-resources";

/// The ServiceAccount, the Role and `ClusterRole` with their bindings, in one namespace.
#[must_use]
pub fn manifests(namespace: &str) -> Vec<Value> {
    let cluster_role = format!("{CLUSTER_ROLE}-{namespace}");
    let subject = json!([{"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": namespace}]);
    let reference =
        |kind: &str, name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    let rbac = "rbac.authorization.k8s.io/v1";
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": SERVICE_ACCOUNT, "namespace": namespace}}),
        json!({"apiVersion": rbac, "kind": "Role", "metadata": {"name": ROLE, "namespace": namespace}, "rules": namespaced()}),
        json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": ROLE, "namespace": namespace},
            "roleRef": reference("Role", ROLE), "subjects": subject}),
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": cluster_role}, "rules": cluster_wide()}),
        json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": cluster_role},
            "roleRef": reference("ClusterRole", &cluster_role), "subjects": subject}),
    ]
}

/// As one YAML stream.
pub fn yaml(namespace: &str) -> Result<String, serde_saphyr::ser::Error> {
    let mut text = String::from("# Made by `sites rbac`; do not edit.\n");
    for manifest in manifests(namespace) {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(&manifest)?);
    }
    Ok(text)
}

fn namespaced() -> Vec<Value> {
    // Children are read, written and watched; only routes are ever deleted, the rest goes with its Site.
    let owned = ["get", "list", "watch", "create", "update"];
    let routes = ["get", "list", "watch", "create", "update", "delete"];
    let mut rules = rights::of_resource(&Kind::of::<Site>(), false);
    rules.extend([
        // Owner references that block a Site's foreground deletion need this where the cluster checks it.
        rule("sites.ecmwf.int", &["sites/finalizers"], &["update"]),
        rule("", &["secrets", "configmaps", "persistentvolumeclaims", "services"], &owned),
        rule("apps", &["statefulsets"], &owned),
        rule("", &["pods"], &["list", "watch", "delete"]),
        rule("networking.k8s.io", &["ingresses"], &routes),
        rule(HTTP_ROUTE.group, &[HTTP_ROUTE.plural], &routes),
    ]);
    for policy in every_policy_kind() {
        let kind = policy_kind(&policy);
        rules.push(rule(&kind.group, &[&kind.plural], &routes));
    }
    rules.extend(rights::of_process());
    rules
}

fn cluster_wide() -> Vec<Value> {
    vec![rule("", &["persistentvolumes"], &["list", "watch", "patch"])]
}
