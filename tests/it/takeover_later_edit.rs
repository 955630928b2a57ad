//! Take-over: the first qualifying change after it gives the Site a pod of ours, within what the API server lets
//! change of the old objects (B08), under the old route's name while the path is unchanged.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::api::{condition, name_of};
use crate::support::legacy::{ID, IMAGES, ROUTE};
use crate::support::{Legacy, Operator, SOON, World, eventually};

/// A world with the fixture, taken over.
async fn adopted(name: &str) -> (World, Operator) {
    let mut world = World::new(name).await;
    world.settings["site"]["legacy_image_patterns"] = json!([IMAGES]);
    world.settings["site"]["version"] = json!("9.9.9");
    Legacy::read().leave(&world).await;
    let operator = world.start_operator().await;
    world.wait_ready(ID).await;
    (world, operator)
}

/// Waits until the Site's only pod is none of `old` and ready.
async fn new_pod(world: &World, old: &[String]) -> Value {
    eventually("another pod runs", SOON, || async {
        let pod = world.pods(ID).await.into_iter().next().ok_or("no pod")?;
        let ready = condition(&pod, "Ready").is_some_and(|ready| ready["status"] == "True");
        if ready && !world.pod_uids(ID).await.iter().any(|uid| old.contains(uid)) {
            Ok(pod)
        } else {
            Err(format!("there is {} {}", pod["metadata"]["uid"], pod["status"]["phase"]))
        }
    })
    .await
}

fn images(pod: &Value) -> BTreeMap<String, String> {
    let lists = ["initContainers", "containers"].map(|list| pod["spec"][list].as_array().unwrap().clone());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    lists.iter().flatten().map(|container| (text(&container["name"]), text(&container["image"]))).collect()
}

#[tokio::test]
async fn takeover_gives_a_pod_of_our_images_at_the_next_change() {
    let (world, _operator) = adopted("edit-share").await;
    let (set, pods) = (world.stateful_set(ID).await, world.pod_uids(ID).await);
    let claim = world.claim(ID).await;
    let service = world.service(ID).await;

    world.edit_site(ID, json!({"spec": {"configuration": {"share": {"view_groups": ["readers"]}}}})).await;
    let site = world.wait_ready(ID).await;
    let pod = new_pod(&world, &pods).await;

    // The pod is ours, but for the image that its owner chose.
    let images = images(&pod);
    assert_eq!(images["site-custom"], "registry.example.org/team/fdb-search:0.9");
    let expected = ["site-api", "site-custom", "site-initializer", "site-oauth2", "site-proxy", "site-webdav"];
    assert_eq!(images.keys().collect::<Vec<_>>(), expected);
    assert!(images.values().all(|image| !image.contains("ecmwf-sites")), "{images:?}");
    assert!(images["site-api"].ends_with(":9.9.9"), "{images:?}");

    // What cannot change did not; the rest is ours; the object is the same one, written once.
    let now = world.stateful_set(ID).await;
    assert_eq!(now["metadata"]["uid"], set["metadata"]["uid"]);
    assert_eq!(now["metadata"]["generation"].as_i64(), set["metadata"]["generation"].as_i64().map(|before| before + 1));
    for field in ["selector", "serviceName", "podManagementPolicy"] {
        assert_eq!(now["spec"][field], set["spec"][field], "{field}");
    }
    assert_eq!(now["spec"]["template"]["metadata"]["labels"]["app"], ID, "the old selector's labels win");
    assert!(now["spec"]["template"]["metadata"]["annotations"]["sites.ecmwf.int/stamped-for"].is_string());
    assert_eq!(world.claim(ID).await["spec"]["volumeName"], claim["spec"]["volumeName"]);
    assert_eq!(world.claim(ID).await["metadata"]["uid"], claim["metadata"]["uid"]);

    // Every later step ran: the Service keeps its address and finds the pod, the route keeps its name.
    let service_now = world.service(ID).await;
    assert_eq!(service_now["spec"]["clusterIP"], service["spec"]["clusterIP"]);
    assert_eq!(service_now["spec"]["ports"].as_array().unwrap().len(), 1);
    assert_eq!(service_now["spec"]["ports"][0]["port"], 4180);
    let selector = service_now["spec"]["selector"].as_object().unwrap();
    assert_eq!(selector["app"], ID);
    assert!(selector.iter().all(|(label, value)| pod["metadata"]["labels"][label] == *value), "{selector:?}");
    let routes = world.ingresses(ID).await;
    assert_eq!(routes.len(), 1);
    assert_eq!(name_of(&routes[0]), ROUTE);
    let backend = &routes[0]["spec"]["rules"][0]["http"]["paths"][0]["backend"];
    assert_eq!(backend["service"], json!({"name": ID, "port": {"number": 4180}}));
    let annotations = &routes[0]["metadata"]["annotations"];
    assert_eq!(annotations["example.org/note"], "set by hand", "a foreign annotation stays");
    assert!(annotations["nginx.org/proxy-buffer-size"].is_null(), "one of the old platform's goes");
    let files = world.config_map("docs-fdb-files").await;
    assert!(files["data"]["nginx.conf"].is_string() && files["data"]["openresty.conf"].is_null());
    let secret = world.secret(ID).await;
    assert!(secret["data"]["MASTER_TOKEN"].is_string() && secret["data"]["API_SECRET"].is_null());

    let children = site["status"]["handled"]["children"].as_object().unwrap();
    assert!(children.values().all(|child| child["state"] == "applied"), "{children:?}");
    world.end().await;
}

#[tokio::test]
async fn takeover_renames_the_route_when_its_path_changes() {
    let (world, _operator) = adopted("edit-path").await;
    world.edit_site(ID, json!({"spec": {"name": "fdb-next"}})).await;
    let site = world.wait_ready(ID).await;
    assert_eq!(site["status"]["handled"]["path"], "/docs/fdb-next");
    let route = eventually("one route of the new path is left", SOON, || async {
        let mut routes = world.ingresses(ID).await;
        if routes.len() == 1 { Ok(routes.remove(0)) } else { Err(format!("there are {}", routes.len())) }
    })
    .await;
    assert_ne!(name_of(&route), ROUTE);
    assert_eq!(route["spec"]["rules"][0]["http"]["paths"][0]["path"], "/docs/fdb-next");
    world.end().await;
}

/// Half of our objects beside half of the old platform's would serve nothing: what is missing is made again together
/// with everything that belongs to it.
async fn lost(kind: &str, name: &str) {
    let (world, _operator) = adopted("lost").await;
    let pods = world.pod_uids(ID).await;
    assert!(world.api.delete(kind, &world.namespace, name).await);
    let site = world
        .wait_site(ID, "nothing adopted is left", |site| {
            let children = site["status"]["handled"]["children"].as_object().unwrap();
            children.len() >= 7 && children.values().all(|child| child["state"] == "applied")
        })
        .await;
    assert_eq!(condition(&site, "Ready").unwrap()["status"], "True");
    new_pod(&world, &pods).await;
    assert_eq!(world.service(ID).await["spec"]["ports"][0]["port"], 4180, "{kind}");
    let files = world.config_map("docs-fdb-files").await;
    assert!(files["data"]["nginx.conf"].is_string(), "{kind}");
    assert_eq!(world.ingresses(ID).await.len(), 1);
    world.end().await;
}

#[tokio::test]
async fn takeover_replaces_everything_when_the_pods_set_is_lost() {
    lost("StatefulSet", ID).await;
}

#[tokio::test]
async fn takeover_replaces_everything_when_a_config_map_is_lost() {
    lost("ConfigMap", "docs-fdb-files").await;
}

#[tokio::test]
async fn takeover_replaces_everything_when_the_route_is_lost() {
    lost("Ingress", ROUTE).await;
}
