//! Sites that were written before the present definition: a second control plane where the rules can be taken away
//! for a moment. Sites with what the API server refuses today can be met there and nowhere else.

use std::sync::OnceLock;

use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::api::{ApiServer, documents, name_of};
use super::lab::{Lab, sites};
use super::wait::{SOON, eventually};
use super::world::World;
use xtask::cluster::Options;

/// One at a time: the definition belongs to all tests of this control plane.
static TURN: Mutex<()> = Mutex::const_new(());

/// The control plane, started by the first test that asks; it ends with the test process. None with a cluster that is
/// not ours: its definition is not to be touched.
pub async fn lab(test: &str) -> Option<Lab> {
    static LAB: OnceLock<Mutex<Option<Lab>>> = OnceLock::new();
    if std::env::var_os("SITES_TEST_KUBECONFIG").is_some() {
        eprintln!("{test}: skipped, it takes the rules of the definition away");
        return None;
    }
    let mut lab = LAB.get_or_init(Mutex::default).lock().await;
    if lab.is_none() {
        *lab = Some(Lab::own(Options::default()).await);
    }
    lab.clone()
}

/// Creates Sites, with the status they have, while the definition has no rules, then puts the rules back.
pub async fn write_before_the_rules(world: &World, objects: &[Value]) {
    without_rules(world, async || {
        for object in objects {
            world.api.create(&world.namespace, object).await.unwrap_or_else(|error| panic!("{object}: {error}"));
            if !object["status"].is_null() {
                let status = json!({"status": object["status"]});
                let name = name_of(object);
                world.api.merge("Site", &world.namespace, name, "status", &status).await.expect("its status");
            }
        }
    })
    .await;
}

/// Does something while the definition has no rules, then puts the rules back.
pub async fn without_rules(world: &World, change: impl AsyncFnOnce()) {
    let _turn = TURN.lock().await;
    let strict = documents(&sites(&["crd"]).await).remove(0);
    let mut loose = strict.clone();
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    for version in loose["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"] = json!({"openAPIV3Schema": {
            "type": "object", "properties": {"spec": anything, "status": anything},
        }});
    }
    world.api.apply("", &loose).await.expect("a definition without rules");
    rules_in_force(&world.api, &world.namespace, false).await;
    change().await;
    world.api.apply("", &strict).await.expect("the definition");
    rules_in_force(&world.api, &world.namespace, true).await;
}

async fn rules_in_force(api: &ApiServer, namespace: &str, wanted: bool) {
    let probe = json!({
        "apiVersion": "sites.ecmwf.int/v1", "kind": "Site", "metadata": {"name": "probe"}, "spec": {"id": "probe"},
    });
    let path = format!("/apis/sites.ecmwf.int/v1/namespaces/{namespace}/sites?dryRun=All");
    eventually("the definition is in force", SOON, || async {
        api.send("POST", &path, "application/json", &probe).await.is_err() == wanted
    })
    .await;
}

/// What the API server says when it refuses an object; nothing is stored either way.
pub async fn refusal(world: &World, site: &Value) -> Option<String> {
    let _turn = TURN.lock().await;
    let path = format!("/apis/sites.ecmwf.int/v1/namespaces/{}/sites?dryRun=All", world.namespace);
    match world.api.send("POST", &path, "application/json", site).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some(status.message.clone()),
        Err(error) => panic!("creating {site}: {error}"),
    }
}
