//! What the operator may do in a cluster, least privilege: the source of the chart's Role and of `sites rbac`.

use serde_json::Value;

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
    let names = rights::Names { account: SERVICE_ACCOUNT, role: ROLE, cluster_role: CLUSTER_ROLE };
    rights::manifests(namespace, &names, &namespaced(), &cluster_wide())
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
