//! The ground of the example operator: its resource, the rights that it asks for, and Tenants. Knows nothing of Sites.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use xtask::process::tied;

use super::api::{condition, documents, name_of};
use super::audit::{Calls, Mark};
use super::lab::Lab;
use super::operator::Operator;
use super::proxy::FaultProxy;
use super::wait::{SOON, eventually};
use super::world::{ACCOUNT, World};

/// The finalizer that the example uses unless it is told another.
pub const FINALIZER: &str = "myapp.example.com/finalizer";

/// A world for the example operator.
pub struct Tenants {
    pub world: World,
}

impl Tenants {
    /// The resource, and an identity with exactly the engine's rights plus what the example does with namespaces.
    pub async fn new(name: &str) -> Self {
        static DEFINITION: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
        let lab = Lab::get().await;
        let mut world = World::bare(lab, name).await;
        DEFINITION
            .get_or_init(|| async {
                for document in documents(&printed("crd").await) {
                    world.api.apply("", &document).await.expect("the API server takes the definition");
                    let name = name_of(&document);
                    eventually("the definition is established", SOON, || async {
                        let found = world.api.get("CustomResourceDefinition", "", name).await?;
                        (condition(&found, "Established")?["status"] == "True").then_some(())
                    })
                    .await;
                }
            })
            .await;
        let namespaces = json!([{
            "apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "create", "patch", "delete"],
        }]);
        let wide = format!("tenants-{}", world.namespace);
        for object in [
            role("Role", "tenants", &json!(rules().await)),
            binding("RoleBinding", "Role", "tenants", &world.namespace),
            role("ClusterRole", &wide, &namespaces),
            binding("ClusterRoleBinding", "ClusterRole", &wide, &world.namespace),
        ] {
            world.api.apply(&world.namespace, &object).await.expect("the API server takes the rights");
            if object["kind"].as_str().unwrap().starts_with("Cluster") {
                world.keep_wide(&object);
            }
        }
        Self { world }
    }

    /// Starts the example and waits until it is ready; `environment` is its configuration.
    pub async fn start(&self, environment: &[(&str, &str)]) -> Operator {
        let kubeconfig = self.world.kubeconfig().await;
        self.start_with(&kubeconfig, environment).await
    }

    /// As [`Self::start`], through a proxy.
    pub async fn start_through(&self, proxy: &FaultProxy, environment: &[(&str, &str)]) -> Operator {
        let kubeconfig = proxy.kubeconfig(&self.world).await;
        self.start_with(&kubeconfig, environment).await
    }

    async fn start_with(&self, kubeconfig: &Path, environment: &[(&str, &str)]) -> Operator {
        let mut command = tied(binary());
        command.env("KUBECONFIG", kubeconfig).env("NAMESPACE", &self.world.namespace).envs(environment.iter().copied());
        let operator = Operator::run(&format!("{} tenant", self.world.namespace), command);
        self.world.keep(&operator);
        operator.wait_ready().await;
        operator
    }

    /// Creates a Tenant.
    pub async fn create(&self, name: &str) -> Value {
        let tenant = json!({
            "apiVersion": "myapp.example.com/v1", "kind": "Tenant", "metadata": {"name": name}, "spec": {"name": name},
        });
        self.world.api.create(&self.world.namespace, &tenant).await.expect("a Tenant")
    }

    /// Changes a Tenant's spec.
    pub async fn rename(&self, name: &str, to: &str) -> Value {
        let patch = json!({"spec": {"name": to}});
        self.world.api.merge("Tenant", &self.world.namespace, name, "", &patch).await.expect("an edited Tenant")
    }

    /// Waits until `Ready` has a status for the present generation, and gives the Tenant.
    pub async fn wait(&self, name: &str, ready: &str) -> Value {
        eventually(&format!("Tenant {name} is Ready={ready}"), SOON, || async {
            let tenant = self.world.get("Tenant", name).await.ok_or("no such Tenant")?;
            let current = tenant["metadata"]["generation"] == tenant["status"]["observedGeneration"];
            let shown = condition(&tenant, "Ready").is_some_and(|condition| condition["status"] == ready);
            if current && shown { Ok(tenant) } else { Err(tenant["status"].to_string()) }
        })
        .await
    }

    /// The namespace that a Tenant was given.
    pub async fn given(&self, tenant: &Value) -> Option<Value> {
        self.world.api.get("Namespace", "", &given_name(tenant)).await
    }

    /// The passes that were begun for a Tenant since `mark`: each begins with reading its namespace.
    pub fn passes(&self, mark: Mark, tenant: &Value) -> Calls {
        let name = given_name(tenant);
        let calls = self.world.lab().audit().expect("an audit log").calls(mark).of("namespaces");
        calls.filter(|call| call.name == name && call.verb == "get" && call.user_agent.starts_with("tenant-operator"))
    }

    /// Waits for so many passes since `mark`, and for no more at that moment.
    pub async fn wait_passes(&self, mark: Mark, tenant: &Value, count: usize) {
        eventually(&format!("{count} passes"), SOON, || async {
            let passes = self.passes(mark, tenant);
            assert!(passes.count() <= count, "more than {count}:\n{}", passes.describe());
            if passes.count() == count { Ok(()) } else { Err(passes.describe()) }
        })
        .await;
    }

    /// Ends the operators, takes the finalizers away and removes everything.
    pub async fn end(self) {
        let Self { world } = self;
        let tenants = world.api.list("Tenant", &world.namespace, "").await;
        world
            .end_with(|api, namespace| async move {
                for tenant in tenants {
                    let patch = json!({"metadata": {"finalizers": null}});
                    // It may have gone with its operator.
                    let _ = api.merge("Tenant", &namespace, name_of(&tenant), "", &patch).await;
                    api.delete("Namespace", "", &given_name(&tenant)).await;
                }
            })
            .await;
    }
}

/// The name of the namespace that a Tenant is given.
pub fn given_name(tenant: &Value) -> String {
    format!("tenant-{}", tenant["metadata"]["uid"].as_str().unwrap())
}

/// The example's binary, which a plain `cargo test` builds with the tests; with `--test it` it stays as it is.
fn binary() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).expect("target/<profile>/deps");
    let binary = folder.join("examples/tenant");
    assert!(binary.exists(), "{} is not built: cargo build --workspace --example tenant", binary.display());
    binary
}

async fn printed(argument: &str) -> String {
    let output = tokio::process::Command::new(binary()).arg(argument).output();
    let output = tokio::time::timeout(Duration::from_secs(20), output).await.expect("an end").unwrap();
    assert!(output.status.success(), "`tenant {argument}` failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The rules that `tenant rbac` prints.
pub async fn rules() -> Vec<Value> {
    serde_saphyr::from_str(&printed("rbac").await).expect("a list of rules")
}

fn role(kind: &str, name: &str, rules: &Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "rules": rules})
}

fn binding(kind: &str, role: &str, name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    })
}
