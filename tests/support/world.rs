//! A world of a test's own: a namespace, an identity with the operator's rights, settings, and the Sites in it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::api::{ApiServer, SITE_KINDS, condition, documents, kind_of, merge_into, name_of};
use super::audit::{Calls, Mark};
use super::lab::{Lab, sites};
use super::operator::{Operator, Shared, Start};
use super::proxy::FaultProxy;
use super::redis::Redis;
use super::wait::{SOON, eventually};

/// The name of the operator's service account.
pub const ACCOUNT: &str = "sites";

/// A garbage collector that has just started learns of a new kind of owner after 30 s.
pub const CASCADE: Duration = Duration::from_secs(90);

/// The label that ties an object to a Site.
pub const ID_LABEL: &str = "sites.ecmwf.int/id";

/// A namespace for one test. Dropping it ends its operators and removes it in the background.
pub struct World {
    /// The namespace.
    pub namespace: String,
    /// The settings that the next operator is started with.
    pub settings: Value,
    /// A client of the administrator.
    pub client: kube::Client,
    /// The API server as the administrator sees it.
    pub api: ApiServer,
    lab: Lab,
    dir: tempfile::TempDir,
    operators: Mutex<Vec<Arc<Shared>>>,
    /// Cluster-wide objects made for this world: kind and name.
    wide: Vec<(String, String)>,
}

impl World {
    /// A world in the shared control plane, with the Site's definition and the operator's rights.
    pub async fn new(name: &str) -> Self {
        Self::on(Lab::get().await, name).await
    }

    /// A world in a given control plane.
    pub async fn on(lab: &Lab, name: &str) -> Self {
        lab.install_definition().await;
        let mut world = Self::bare(lab, name).await;
        for document in documents(&sites(&["rbac", "--namespace", &world.namespace]).await) {
            let kind = kind_of(&document).to_owned();
            if kind.starts_with("Cluster") {
                world.wide.push((kind, name_of(&document).to_owned()));
            }
            world.api.apply(&world.namespace, &document).await.expect("the API server takes the rights");
        }
        world
    }

    /// A world without the definition of the Site and without rights for an operator.
    pub async fn bare(lab: &Lab, name: &str) -> Self {
        let client = lab.client().await;
        let api = ApiServer::new(client.clone());
        let random = uuid::Uuid::new_v4().simple().to_string();
        let namespace = format!("{name}-{}", &random[..6]);
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        api.create("", &object).await.expect("a namespace");
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
        api.apply(&namespace, &account).await.expect("a service account");
        Self {
            namespace,
            settings: base_settings(),
            client,
            api,
            lab: lab.clone(),
            dir: tempfile::tempdir().unwrap(),
            operators: Mutex::default(),
            wide: Vec::new(),
        }
    }

    /// The control plane it is in.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// The name under which the API server knows the operator.
    pub fn operator_user(&self) -> String {
        format!("system:serviceaccount:{}:{ACCOUNT}", self.namespace)
    }

    /// What the operators of this world asked for since `mark`; the cluster must have an audit log.
    pub fn calls(&self, mark: Mark) -> Calls {
        self.lab.audit().expect("an audit log").calls(mark).by_user(&self.operator_user())
    }

    /// The same of this world's Hubs.
    pub fn hub_calls(&self, mark: Mark) -> Calls {
        let user = format!("system:serviceaccount:{}:{}", self.namespace, sites::hub::rights::SERVICE_ACCOUNT);
        self.lab.audit().expect("an audit log").calls(mark).by_user(&user)
    }

    /// A token of the operator's service account.
    pub async fn token(&self) -> String {
        self.token_of(ACCOUNT).await
    }

    /// A token of a service account.
    async fn token_of(&self, account: &str) -> String {
        let path = format!("/api/v1/namespaces/{}/serviceaccounts/{account}/token", self.namespace);
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200},
        });
        let answer = self.api.send("POST", &path, "application/json", &request).await.expect("a token");
        answer["status"]["token"].as_str().unwrap().to_owned()
    }

    /// The operator's kubeconfig.
    pub async fn kubeconfig(&self) -> PathBuf {
        let path = self.dir.path().join("operator.kubeconfig");
        std::fs::write(&path, self.lab.kubeconfig_for(None, None, &self.token().await)).unwrap();
        path
    }

    /// The Hub's kubeconfig.
    pub async fn hub_kubeconfig(&self) -> PathBuf {
        let path = self.dir.path().join("hub.kubeconfig");
        let token = self.token_of(sites::hub::rights::SERVICE_ACCOUNT).await;
        std::fs::write(&path, self.lab.kubeconfig_for(None, None, &token)).unwrap();
        path
    }

    /// As [`World::hub_kubeconfig`], through a proxy.
    pub async fn hub_kubeconfig_through(&self, proxy: &FaultProxy) -> PathBuf {
        let path = self.dir.path().join("hub-through-proxy.kubeconfig");
        let token = self.token_of(sites::hub::rights::SERVICE_ACCOUNT).await;
        std::fs::write(&path, self.lab.kubeconfig_for(Some(&proxy.url()), Some(&proxy.ca()), &token)).unwrap();
        path
    }

    /// Points the settings to a Redis.
    pub fn with_redis(&mut self, redis: &Redis) {
        self.settings["redis"] = json!({"url": redis.url()});
    }

    /// Starts an operator and waits until it is ready.
    pub async fn start_operator(&self) -> Operator {
        self.start_operator_with(Start::default()).await
    }

    /// Starts an operator that differs from the usual.
    pub async fn start_operator_with(&self, start: Start) -> Operator {
        let kubeconfig = match &start.kubeconfig {
            Some(kubeconfig) => kubeconfig.clone(),
            None => self.kubeconfig().await,
        };
        let mut settings = self.settings.clone();
        if !start.settings.is_null() {
            merge_into(&mut settings, &start.settings);
        }
        let number = self.operators.lock().unwrap().len();
        let path = self.write_settings(&settings);
        let name = format!("{}#{number}", self.namespace);
        let operator = Operator::spawn(&name, &self.namespace, &kubeconfig, &path, &start.environment);
        self.operators.lock().unwrap().push(operator.shared());
        if !start.do_not_wait {
            operator.wait_ready().await;
        }
        operator
    }

    /// A settings file for a process of this world.
    pub(super) fn write_settings(&self, settings: &Value) -> PathBuf {
        let path = self.dir.path().join(format!("settings-{}.yaml", uuid::Uuid::new_v4().simple()));
        // JSON is YAML.
        std::fs::write(&path, format!("{settings:#}\n")).unwrap();
        path
    }

    /// Ends this operator with the world.
    pub(super) fn keep(&self, operator: &Operator) -> usize {
        let mut operators = self.operators.lock().unwrap();
        operators.push(operator.shared());
        operators.len()
    }

    /// Removes this cluster-wide object with the world.
    pub(super) fn keep_wide(&mut self, object: &Value) {
        self.wide.push((kind_of(object).to_owned(), name_of(object).to_owned()));
    }

    /// Applies objects given as YAML text.
    pub async fn apply(&self, yaml: &str) -> Vec<Value> {
        let mut applied = Vec::new();
        for document in documents(yaml) {
            let result = self.api.apply(&self.namespace, &document).await;
            applied.push(result.unwrap_or_else(|error| panic!("applying {document}: {error}")));
        }
        applied
    }

    /// The Site that [`World::site`] would create.
    pub fn site_object(&self, id: &str, spec: &Value) -> Value {
        let mut site = json!({
            "apiVersion": "sites.ecmwf.int/v1",
            "kind": "Site",
            "metadata": {"name": id, "namespace": self.namespace},
            "spec": {
                "id": id,
                "name": id,
                "owner": "ada@example.test",
                "type": "private",
                "configuration": {
                    "space": "lab",
                    "enabled": true,
                    "quota": 1,
                    "applications": [{"name": "site-admin"}, {"name": "site-webdav"}],
                },
            },
        });
        merge_into(&mut site["spec"], spec);
        site
    }

    /// Creates a Site: sensible defaults with `spec` written over them.
    pub async fn site(&self, id: &str, spec: Value) -> Value {
        self.try_site(id, spec).await.unwrap_or_else(|error| panic!("creating Site {id}: {error}"))
    }

    /// As [`World::site`], giving the API server's refusal.
    pub async fn try_site(&self, id: &str, spec: Value) -> Result<Value, kube::Error> {
        self.api.create(&self.namespace, &self.site_object(id, &spec)).await
    }

    /// Merge-patches a Site, such as `json!({"spec": {"type": "public"}})`.
    pub async fn edit_site(&self, id: &str, patch: Value) -> Value {
        let edited = self.api.merge("Site", &self.namespace, id, "", &patch).await;
        edited.unwrap_or_else(|error| panic!("editing Site {id}: {error}"))
    }

    /// Deletes a Site.
    pub async fn delete_site(&self, id: &str) {
        assert!(self.api.delete("Site", &self.namespace, id).await, "Site {id} exists");
    }

    /// Waits until the Site is gone and so is everything that carried its label, volumes excepted.
    pub async fn wait_gone(&self, id: &str) {
        eventually("nothing of the Site is left", CASCADE, || async {
            if self.get("Site", id).await.is_some() {
                return Err("the Site is still there".to_owned());
            }
            let mut left = self.objects_of(id).await;
            left.retain(|object| kind_of(object) != "PersistentVolume");
            let left: Vec<_> = left.iter().map(|object| format!("{}/{}", kind_of(object), name_of(object))).collect();
            if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
        })
        .await;
    }

    /// Waits for `.status.phase` and gives the Site.
    pub async fn wait_phase(&self, id: &str, phase: &str) -> Value {
        self.wait_site(id, &format!("phase {phase}"), |site| site["status"]["phase"] == phase).await
    }

    /// Waits until `Ready` is True for the Site's current generation and gives the Site.
    pub async fn wait_ready(&self, id: &str) -> Value {
        self.wait_condition(id, "Ready", "True").await
    }

    /// Waits until a condition has a status for the Site's current generation and gives the Site.
    pub async fn wait_condition(&self, id: &str, kind: &str, status: &str) -> Value {
        self.wait_site(id, &format!("condition {kind}={status}"), |site| {
            let current = site["metadata"]["generation"].as_i64();
            let seen = site["status"]["observedGeneration"].as_i64();
            seen >= current && condition(site, kind).is_some_and(|condition| condition["status"] == status)
        })
        .await
    }

    /// Waits until a Site is as wanted and gives it.
    pub async fn wait_site(&self, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("Site {id}: {what}"), SOON, || async {
            let site = self.get("Site", id).await.ok_or("there is no such Site")?;
            if wanted(&site) { Ok(site) } else { Err(format!("its status is {}", site["status"])) }
        })
        .await
    }

    /// An object of this namespace.
    pub async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        self.api.get(kind, &self.namespace, name).await
    }

    /// An object of this namespace that must exist.
    pub async fn must(&self, kind: &str, name: &str) -> Value {
        self.get(kind, name).await.unwrap_or_else(|| panic!("there is no {kind} {name}"))
    }

    /// The objects of a kind with the label of a Site; volumes are found by their claim's namespace too.
    pub async fn of_site(&self, kind: &str, id: &str) -> Vec<Value> {
        let mut objects = self.api.list(kind, &self.namespace, &format!("{ID_LABEL}={id}")).await;
        if kind == "PersistentVolume" {
            objects.retain(|volume| volume["spec"]["claimRef"]["namespace"] == self.namespace.as_str());
        }
        objects
    }

    /// Every object that carries the label of a Site.
    pub async fn objects_of(&self, id: &str) -> Vec<Value> {
        let mut objects = Vec::new();
        for kind in SITE_KINDS {
            objects.extend(self.of_site(kind, id).await);
        }
        objects
    }

    pub async fn stateful_set(&self, id: &str) -> Value {
        self.must("StatefulSet", id).await
    }

    pub async fn secret(&self, name: &str) -> Value {
        self.must("Secret", name).await
    }

    pub async fn config_map(&self, name: &str) -> Value {
        self.must("ConfigMap", name).await
    }

    pub async fn claim(&self, id: &str) -> Value {
        self.must("PersistentVolumeClaim", id).await
    }

    pub async fn service(&self, id: &str) -> Value {
        self.must("Service", id).await
    }

    pub async fn pods(&self, id: &str) -> Vec<Value> {
        self.of_site("Pod", id).await
    }

    pub async fn ingresses(&self, id: &str) -> Vec<Value> {
        self.of_site("Ingress", id).await
    }

    pub async fn http_routes(&self, id: &str) -> Vec<Value> {
        self.of_site("HTTPRoute", id).await
    }

    /// The volume that a Site's claim is bound to.
    pub async fn volume(&self, id: &str) -> Option<Value> {
        let claim = self.get("PersistentVolumeClaim", id).await?;
        self.api.get("PersistentVolume", "", claim["spec"]["volumeName"].as_str()?).await
    }

    /// The uids of a Site's pods, sorted: equal before and after means no pod was restarted.
    pub async fn pod_uids(&self, id: &str) -> Vec<String> {
        let pods = self.pods(id).await;
        let mut uids: Vec<_> = pods.iter().map(|pod| pod["metadata"]["uid"].as_str().unwrap().to_owned()).collect();
        uids.sort();
        uids
    }

    /// Makes a Site's running pods show an outcome: `ok`, `hang`, `crash`, `init-crash`, `unready`, `fail`
    /// (see `tests/cluster/stages/pods.yaml`). A pod that replaces them is ok again.
    pub async fn show(&self, id: &str, outcome: &str) {
        let patch = json!({"metadata": {"annotations": {"sites.test/outcome": outcome}}});
        eventually(&format!("the pods of {id} are told to show {outcome}"), SOON, || async {
            let pods = self.pods(id).await;
            for pod in &pods {
                // A pod that is replaced meanwhile is found by the next try.
                if let Err(error) = self.api.merge("Pod", &self.namespace, name_of(pod), "", &patch).await {
                    return Err(error.to_string());
                }
            }
            Ok(())
        })
        .await;
    }

    /// Ends the operators and removes the namespace with its volumes; returns when the API server has the orders.
    pub async fn end(mut self) {
        self.kill_operators();
        remove(&self.api, &std::mem::take(&mut self.namespace), &std::mem::take(&mut self.wide)).await;
    }

    /// As [`World::end`], with something to do after the operators have ended and before everything goes.
    pub(super) async fn end_with<F, T>(self, last: F)
    where
        F: FnOnce(ApiServer, String) -> T,
        T: Future<Output = ()>,
    {
        self.kill_operators();
        last(self.api.clone(), self.namespace.clone()).await;
        self.end().await;
    }

    fn kill_operators(&self) {
        for operator in self.operators.lock().unwrap().drain(..) {
            operator.kill();
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.namespace.is_empty() {
            return;
        }
        self.kill_operators();
        let (lab, namespace, wide) =
            (self.lab.clone(), std::mem::take(&mut self.namespace), std::mem::take(&mut self.wide));
        // The test's runtime may be about to end: a thread with one of its own.
        std::thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                let removal = async { remove(&lab.api().await, &namespace, &wide).await };
                let _ = tokio::time::timeout(Duration::from_secs(20), removal).await;
            });
        });
    }
}

async fn remove(api: &ApiServer, namespace: &str, wide: &[(String, String)]) {
    api.delete("Namespace", "", namespace).await;
    for (kind, name) in wide {
        api.delete(kind, "", name).await;
    }
    for volume in api.list("PersistentVolume", "", "").await {
        if volume["spec"]["claimRef"]["namespace"] == namespace {
            api.delete("PersistentVolume", "", name_of(&volume)).await;
        }
    }
}

/// Settings with the short delays that tests need; a test changes what it is about.
pub fn base_settings() -> Value {
    json!({
        "operator": {
            "worker_limit": 5,
            "retries": 5,
            "max_backoff": "5s",
            "resync_period": "300s",
            "status_min_interval": "100ms",
            "route_conflict_delay": "2s",
            "other_mode_delay": "1s",
            "volume_label": {"create_min": "500ms", "create_max": "1s", "update": "500ms"},
            "admin_address": "127.0.0.1:0",
            "lease": {"duration": "5s", "renew_period": "1s"},
            "log_format": "json",
        },
        "kubernetes": {"storage_class": "kwok-volume", "storage_expansion_supported": false},
        "routing": {"mode": "ingress", "host": "sites.example.test"},
        "site": {"replicas": 1, "version": "1.0.0"},
        "session": {"secret_key": "test-session-key-0123456789"},
        "oidc": {
            "issuer": "https://id.example.test",
            "client_id": "sites",
            "client_secret": "not-a-secret",
            "login_url": "https://id.example.test/auth",
            "redeem_url": "https://id.example.test/token",
            "jwks_url": "https://id.example.test/jwks",
        },
    })
}
