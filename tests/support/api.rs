//! Objects of the API server as JSON, by kind and name. No judgement about what they mean.

use http::Request;
use serde_json::Value;

/// Where a kind lives.
#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    prefix: &'static str,
    plural: &'static str,
    namespaced: bool,
}

const fn kind(name: &'static str, prefix: &'static str, plural: &'static str, namespaced: bool) -> Kind {
    Kind { name, prefix, plural, namespaced }
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const GATEWAY: &str = "/apis/gateway.networking.k8s.io/v1";
const ENVOY: &str = "/apis/gateway.envoyproxy.io/v1alpha1";

static KINDS: &[Kind] = &[
    kind("Site", "/apis/sites.ecmwf.int/v1", "sites", true),
    kind("Tenant", "/apis/myapp.example.com/v1", "tenants", true),
    kind("Secret", "/api/v1", "secrets", true),
    kind("ConfigMap", "/api/v1", "configmaps", true),
    kind("PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims", true),
    kind("PersistentVolume", "/api/v1", "persistentvolumes", false),
    kind("Service", "/api/v1", "services", true),
    kind("Pod", "/api/v1", "pods", true),
    kind("Event", "/api/v1", "events", true),
    kind("Namespace", "/api/v1", "namespaces", false),
    kind("Node", "/api/v1", "nodes", false),
    kind("ResourceQuota", "/api/v1", "resourcequotas", true),
    kind("ServiceAccount", "/api/v1", "serviceaccounts", true),
    kind("StatefulSet", "/apis/apps/v1", "statefulsets", true),
    kind("Deployment", "/apis/apps/v1", "deployments", true),
    kind("ControllerRevision", "/apis/apps/v1", "controllerrevisions", true),
    kind("Ingress", "/apis/networking.k8s.io/v1", "ingresses", true),
    kind("NetworkPolicy", "/apis/networking.k8s.io/v1", "networkpolicies", true),
    kind("HTTPRoute", GATEWAY, "httproutes", true),
    kind("Gateway", GATEWAY, "gateways", true),
    kind("GatewayClass", GATEWAY, "gatewayclasses", false),
    kind("SecurityPolicy", ENVOY, "securitypolicies", true),
    kind("BackendTrafficPolicy", ENVOY, "backendtrafficpolicies", true),
    kind("ClientTrafficPolicy", ENVOY, "clienttrafficpolicies", true),
    kind("HTTPRouteFilter", ENVOY, "httproutefilters", true),
    kind("Lease", "/apis/coordination.k8s.io/v1", "leases", true),
    kind("Role", RBAC, "roles", true),
    kind("RoleBinding", RBAC, "rolebindings", true),
    kind("ClusterRole", RBAC, "clusterroles", false),
    kind("ClusterRoleBinding", RBAC, "clusterrolebindings", false),
    kind("StorageClass", "/apis/storage.k8s.io/v1", "storageclasses", false),
    kind("CustomResourceDefinition", "/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", false),
];

/// The kinds that belong to a Site and carry its label.
pub const SITE_KINDS: &[&str] = &[
    "Secret",
    "ConfigMap",
    "PersistentVolumeClaim",
    "StatefulSet",
    "Service",
    "Ingress",
    "HTTPRoute",
    "SecurityPolicy",
    "BackendTrafficPolicy",
    "Pod",
    "PersistentVolume",
];

/// Finds a kind by name.
pub fn find_kind(name: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.name == name).unwrap_or_else(|| panic!("tests/support/api.rs does not know {name}"))
}

/// The API server, as whoever the client is.
#[derive(Clone)]
pub struct ApiServer {
    client: kube::Client,
}

impl ApiServer {
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    fn path(kind: &str, namespace: &str, name: &str) -> String {
        let kind = find_kind(kind);
        let name = if name.is_empty() { String::new() } else { format!("/{name}") };
        if kind.namespaced && !namespace.is_empty() {
            format!("{}/namespaces/{namespace}/{}{name}", kind.prefix, kind.plural)
        } else {
            format!("{}/{}{name}", kind.prefix, kind.plural)
        }
    }

    /// Any request with a JSON answer.
    pub async fn send(&self, method: &str, path: &str, content: &str, body: &Value) -> Result<Value, kube::Error> {
        let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
        let request = Request::builder().method(method).uri(path).header("content-type", content);
        self.client.request(request.body(bytes).unwrap()).await
    }

    /// One object, or none.
    pub async fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        match self.send("GET", &Self::path(kind, namespace, name), "application/json", &Value::Null).await {
            Ok(object) => Some(object),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("reading {kind} {namespace}/{name}: {error}"),
        }
    }

    /// The objects with a label selector (empty: all). A kind that is not served has none.
    pub async fn list(&self, kind: &str, namespace: &str, selector: &str) -> Vec<Value> {
        let path = format!("{}?labelSelector={selector}", Self::path(kind, namespace, ""));
        match self.send("GET", &path, "application/json", &Value::Null).await {
            Ok(mut list) => {
                let mut items = match list["items"].take() {
                    Value::Array(items) => items,
                    _ => Vec::new(),
                };
                for item in &mut items {
                    // Items of a list do not say what they are.
                    item["kind"] = kind.into();
                }
                items
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => panic!("listing {kind} in {namespace}: {error}"),
        }
    }

    /// Creates an object; its own namespace wins over `namespace`.
    pub async fn create(&self, namespace: &str, object: &Value) -> Result<Value, kube::Error> {
        let path = Self::path(kind_of(object), object["metadata"]["namespace"].as_str().unwrap_or(namespace), "");
        self.send("POST", &path, "application/json", object).await
    }

    /// Server-side apply, as `tests`, taking every field it names.
    pub async fn apply(&self, namespace: &str, object: &Value) -> Result<Value, kube::Error> {
        let name = object["metadata"]["name"].as_str().expect("an object has a name");
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(namespace);
        let path = Self::path(kind_of(object), namespace, name);
        let path = format!("{path}?fieldManager=tests&force=true");
        self.send("PATCH", &path, "application/apply-patch+yaml", object).await
    }

    /// JSON merge patch, optionally of a subresource (`status`).
    pub async fn merge(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        subresource: &str,
        patch: &Value,
    ) -> Result<Value, kube::Error> {
        let mut object = Self::path(kind, namespace, name);
        if !subresource.is_empty() {
            object = format!("{object}/{subresource}");
        }
        self.send("PATCH", &object, "application/merge-patch+json", patch).await
    }

    /// Replaces an object by the given one (its resourceVersion decides about conflicts).
    pub async fn replace(&self, namespace: &str, object: &Value) -> Result<Value, kube::Error> {
        let name = object["metadata"]["name"].as_str().expect("an object has a name");
        self.send("PUT", &Self::path(kind_of(object), namespace, name), "application/json", object).await
    }

    /// Deletes an object; false if there was none.
    pub async fn delete(&self, kind: &str, namespace: &str, name: &str) -> bool {
        match self.send("DELETE", &Self::path(kind, namespace, name), "application/json", &Value::Null).await {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if status.code == 404 => false,
            Err(error) => panic!("deleting {kind} {namespace}/{name}: {error}"),
        }
    }
}

/// The kind that an object says it is.
pub fn kind_of(object: &Value) -> &str {
    object["kind"].as_str().expect("an object has a kind")
}

/// The name of an object.
pub fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The status (`True`, `False`, `Unknown`) of a condition of an object.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// The objects of a YAML text of one or several documents.
pub fn documents(yaml: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).expect("valid YAML");
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

/// Writes `patch` over `base` as a JSON merge patch does.
pub fn merge_into(base: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *base = patch.clone();
        return;
    };
    if !base.is_object() {
        *base = Value::Object(serde_json::Map::new());
    }
    for (key, change) in changes {
        if change.is_null() {
            base.as_object_mut().unwrap().remove(key);
        } else {
            merge_into(&mut base[key.as_str()], change);
        }
    }
}
