//! What a Site has in the cluster, and when an operator has nothing left to do for it. The list is the tests' own.

use std::collections::BTreeMap;

use futures::StreamExt;
use serde_json::{Value, json};

use super::api::{SITE_KINDS, kind_of, name_of};
use super::audit::Mark;
use super::operator::Operator;
use super::wait::{LONG, SOON, eventually};
use super::world::{CASCADE, World};

/// The labels that every object of a Site carries.
pub const LABELS: [&str; 6] = [
    "sites.ecmwf.int/app",
    "sites.ecmwf.int/id",
    "sites.ecmwf.int/space",
    "sites.ecmwf.int/name",
    "sites.ecmwf.int/owner",
    "app.kubernetes.io/managed-by",
];

/// The template annotation that says which change the pods were restarted for.
pub const STAMP: &str = "sites.ecmwf.int/stamped-for";

/// Kind and name of the objects of every Site, in the order in which they are made; the route comes after them.
pub fn before_the_route(id: &str) -> Vec<(&'static str, String)> {
    vec![
        ("Secret", id.to_owned()),
        ("Secret", format!("{id}-oauth2")),
        ("ConfigMap", id.to_owned()),
        ("ConfigMap", format!("{id}-files")),
        ("PersistentVolumeClaim", id.to_owned()),
        ("StatefulSet", id.to_owned()),
        ("Service", id.to_owned()),
    ]
}

/// The settings of gateway mode with a provider that has policies and whose definitions the cluster has.
pub fn gateway_mode() -> Value {
    json!({"routing": {"mode": "gateway", "gateway": {"provider": "envoy-gateway"}}})
}

/// The kinds of a route in both modes, the route itself first.
pub const INGRESS_ROUTE: &[&str] = &["Ingress"];
pub const GATEWAY_ROUTE: &[&str] = &["HTTPRoute", "BackendTrafficPolicy"];

/// The stamp in the template of a StatefulSet.
pub fn stamp(stateful_set: &Value) -> &str {
    stateful_set["spec"]["template"]["metadata"]["annotations"][STAMP].as_str().unwrap_or_default()
}

/// How often the spec of an object has been written.
pub fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().expect("an object with a generation")
}

/// The uid of an object.
pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().expect("an object has a uid")
}

/// The reference that every object of a Site has.
pub fn owner_reference_to<'a>(object: &'a Value, site: &Value) -> Result<&'a Value, String> {
    let references = object["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
    match references {
        [one]
            if one["uid"] == site["metadata"]["uid"]
                && one["kind"] == "Site"
                && one["apiVersion"] == "sites.ecmwf.int/v1"
                && one["name"] == site["metadata"]["name"] =>
        {
            Ok(one)
        }
        other => Err(format!("{}/{} has the owners {other:?}", kind_of(object), name_of(object))),
    }
}

impl World {
    /// Waits until the operator has seen the Site as it is now and has nothing left to do for it: no pass, no status
    /// write, no timer. What it does after this moment, it does for another reason.
    pub async fn settled(&self, operator: &Operator, id: &str) -> Value {
        eventually(&format!("nothing is left to do for Site {id}"), SOON, || async {
            let site = self.get("Site", id).await.ok_or("there is no such Site")?;
            let (code, body) = operator.request(&format!("/debug/sites/{id}")).await?;
            let told: Value = serde_json::from_str(&body).map_err(|error| format!("{code} {error}"))?;
            let knows = &told["knows"];
            let rests = told["phase"] == "Idle"
                && told["status_outstanding"] == false
                && told["resource_version"] == site["metadata"]["resourceVersion"]
                && knows["wanted"].is_null()
                && knows["looks_again_in_seconds"].is_null()
                && !knows["handled"].is_null();
            if rests { Ok(site) } else { Err(told.to_string()) }
        })
        .await
    }

    /// Waits until the Site runs, its volume carries its label, and the operator rests.
    pub async fn running(&self, operator: &Operator, id: &str) -> Value {
        self.wait_phase(id, "Running").await;
        self.wait_ready(id).await;
        eventually(&format!("the volume of Site {id} is labelled"), SOON, || async {
            let volume = self.volume(id).await?;
            (volume["metadata"]["labels"][super::world::ID_LABEL] == id).then_some(())
        })
        .await;
        self.settled(operator, id).await
    }

    /// Creates many Sites, `s000` and so on, and waits until each runs with a labelled volume and the operator rests.
    pub async fn crowd(&self, operator: &Operator, count: usize) -> Vec<String> {
        let ids: Vec<String> = (0..count).map(|number| format!("s{number:03}")).collect();
        futures::stream::iter(&ids).for_each_concurrent(20, |id| async { drop(self.site(id, json!({})).await) }).await;
        eventually(&format!("{count} Sites run"), LONG, || async {
            let sites = self.api.list("Site", &self.namespace, "").await;
            let running = sites.iter().filter(|site| site["status"]["phase"] == "Running").count();
            let volumes = self.api.list("PersistentVolume", "", super::world::ID_LABEL).await;
            let ours = |volume: &&Value| volume["spec"]["claimRef"]["namespace"] == self.namespace.as_str();
            let labelled = volumes.iter().filter(ours).count();
            if (running, labelled) == (count, count) {
                Ok(())
            } else {
                Err(format!("{running} run, {labelled} labels"))
            }
        })
        .await;
        for id in &ids {
            self.settled(operator, id).await;
        }
        ids
    }

    /// Every StatefulSet's generation and every pod's uid: equal before and after means that nothing was restarted.
    pub async fn workloads(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for set in self.api.list("StatefulSet", &self.namespace, "").await {
            all.insert(format!("StatefulSet/{}", name_of(&set)), generation(&set).to_string());
        }
        for pod in self.api.list("Pod", &self.namespace, "").await {
            all.insert(format!("Pod/{}", name_of(&pod)), uid(&pod).to_owned());
        }
        all
    }

    /// Fails if an operator has asked for more than watches, first lists and its Lease since `mark`.
    pub async fn assert_costs_nothing(&self, mark: Mark, what: &str) {
        self.audit_is_complete().await;
        let calls = self.calls(mark).of_passes();
        assert_eq!(calls.count(), 0, "{what}\n{}", calls.describe());
    }

    /// Deletes every Site with one request.
    pub async fn delete_all_sites(&self) {
        let path = format!("/apis/sites.ecmwf.int/v1/namespaces/{}/sites", self.namespace);
        self.api.send("DELETE", &path, "application/json", &Value::Null).await.expect("the Sites are deleted");
    }

    /// Waits until there is no Site and nothing that carried the label of one, volumes excepted.
    pub async fn wait_nothing_left(&self) {
        eventually("nothing is left", CASCADE * 2, || async {
            let mut left = Vec::new();
            for kind in SITE_KINDS.iter().copied().chain(["Site"]).filter(|kind| *kind != "PersistentVolume") {
                let selector = if kind == "Site" { "" } else { super::world::ID_LABEL };
                let count = self.api.list(kind, &self.namespace, selector).await.len();
                if count > 0 {
                    left.push(format!("{count} {kind}"));
                }
            }
            if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
        })
        .await;
    }

    /// Waits until the garbage collector removes what belongs to a deleted Site. No operator may run yet.
    pub async fn cascade_works(&self) {
        let site = self.site("cascade-probe", json!({})).await;
        let owner = json!([{
            "apiVersion": "sites.ecmwf.int/v1", "kind": "Site", "name": "cascade-probe", "uid": site["metadata"]["uid"],
        }]);
        let meta = json!({"name": "cascade-probe", "ownerReferences": owner});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta});
        self.api.create(&self.namespace, &map).await.expect("a ConfigMap");
        self.delete_site("cascade-probe").await;
        eventually("the garbage collector knows Sites", CASCADE, || async {
            self.get("ConfigMap", "cascade-probe").await.is_none()
        })
        .await;
    }

    /// Waits until everything that the API server has answered up to now stands in its audit log.
    pub async fn audit_is_complete(&self) -> Mark {
        let audit = self.lab().audit().expect("an audit log");
        let from = audit.mark();
        let name = format!("barrier-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]);
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        self.api.create(&self.namespace, &map).await.expect("a ConfigMap");
        eventually("the audit log has the last request", SOON, || async {
            audit.calls(from).0.iter().any(|call| call.name == name).then_some(())
        })
        .await;
        audit.mark()
    }
}

impl Operator {
    /// Waits until it looks after no Site any more.
    pub async fn forgets_all(&self) {
        eventually("the operator has forgotten every Site", SOON, || async {
            let told = self.get("/debug/sites").await;
            if told["objects"].as_array().is_some_and(Vec::is_empty) { Ok(()) } else { Err(told.to_string()) }
        })
        .await;
    }
}
