//! LIFE-04: an archived Site has no pods, its route leads to the Hub's "gone" page, its data stay.

use serde_json::{Value, json};

use crate::support::api::name_of;
use crate::support::belongings::{gateway_mode, generation, uid};
use crate::support::{Lab, SOON, Start, World, eventually};

const GONE: &str = "/hub/error/page/410/";

fn enabled(value: bool) -> Value {
    json!({"spec": {"configuration": {"enabled": value}}})
}

/// Whether the route of a Site answers everything with 302 to the Hub's page, and whether it leads to the Site.
fn redirects(route: &Value) -> (bool, bool) {
    if route["kind"] == "Ingress" {
        let snippet = route["metadata"]["annotations"]["nginx.org/location-snippets"].as_str().unwrap_or_default();
        return (snippet == format!("return 302 {GONE};"), !snippet.contains("return"));
    }
    let rule = &route["spec"]["rules"][0];
    let redirect = &rule["filters"][0]["requestRedirect"];
    let gone = redirect["statusCode"] == 302
        && redirect["path"] == json!({"type": "ReplaceFullPath", "replaceFullPath": GONE})
        && rule.get("backendRefs").is_none();
    (gone, rule["backendRefs"][0]["name"].is_string() && rule.get("filters").is_none())
}

async fn archived_and_back(settings: Value, kind: &str) {
    let world = World::new("life-04").await;
    let operator = world.start_operator_with(Start { settings, ..Start::default() }).await;
    world.site("plain", json!({})).await;
    world.running(&operator, "plain").await;
    let (claim, volume) = (world.claim("plain").await, world.volume("plain").await.unwrap());
    let route = world.of_site(kind, "plain").await.remove(0);
    assert_eq!(redirects(&route), (false, true), "{route}");

    world.edit_site("plain", enabled(false)).await;
    world.wait_phase("plain", "Disabled").await;
    eventually("no pod is left", SOON, || async { world.pods("plain").await.is_empty() }).await;
    let site = world.settled(&operator, "plain").await;
    assert_eq!(site["status"]["phase"], "Disabled");
    assert_eq!(site["status"]["all_steps_started"], false);
    assert_eq!(world.stateful_set("plain").await["spec"]["replicas"], 0);
    let archived = world.of_site(kind, "plain").await;
    assert_eq!((archived.len(), uid(&archived[0])), (1, uid(&route)), "the route is kept");
    assert_eq!(redirects(&archived[0]), (true, false), "{}", archived[0]);
    assert_same_data(&world, &claim, &volume).await;

    world.edit_site("plain", enabled(true)).await;
    world.running(&operator, "plain").await;
    assert_eq!(world.stateful_set("plain").await["spec"]["replicas"], 1);
    assert_eq!(world.pods("plain").await.len(), 1);
    let back = world.of_site(kind, "plain").await.remove(0);
    assert_eq!((uid(&back), redirects(&back)), (uid(&route), (false, true)), "{back}");
    assert_same_data(&world, &claim, &volume).await;
    world.end().await;
}

async fn assert_same_data(world: &World, claim: &Value, volume: &Value) {
    let now = world.claim("plain").await;
    assert_eq!(uid(&now), uid(claim), "the same claim");
    assert!(now["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(now["status"]["phase"], "Bound");
    let bound = world.volume("plain").await.unwrap();
    assert_eq!((name_of(&bound), &bound["status"]["phase"]), (name_of(volume), &json!("Bound")), "the same volume");
}

#[tokio::test]
async fn life_04_archived_and_back_in_ingress_mode() {
    archived_and_back(json!({}), "Ingress").await;
}

#[tokio::test]
async fn life_04_archived_and_back_in_gateway_mode() {
    archived_and_back(gateway_mode(), "HTTPRoute").await;
}

/// A forced upgrade, a rollout restart and a restart of the operator bring no pod of an archived Site back.
#[tokio::test]
async fn life_04_restarting_an_archived_site_does_nothing() {
    let lab = Lab::get().await;
    let Some(audit) = lab.audit_or_skip("life_04_restarting_an_archived_site_does_nothing") else { return };
    let world = World::new("life-04-restart").await;
    let operator = world.start_operator().await;
    // Archived from its first day: it has everything but pods.
    world.site("plain", enabled(false)["spec"].clone()).await;
    world.wait_phase("plain", "Disabled").await;
    world.wait_ready("plain").await;
    let claim = eventually("the claim is bound", SOON, || async {
        let claim = world.get("PersistentVolumeClaim", "plain").await?;
        (claim["status"]["phase"] == "Bound").then_some(claim)
    })
    .await;
    eventually("the volume is labelled", SOON, || async {
        (world.volume("plain").await?["metadata"]["labels"]["sites.ecmwf.int/id"] == "plain").then_some(())
    })
    .await;
    world.settled(&operator, "plain").await;
    assert_eq!(redirects(&world.ingresses("plain").await.remove(0)), (true, false));

    let request = json!({"metadata": {"annotations": {"sites.ecmwf.int/upgrade-request": "first"}}});
    world.edit_site("plain", request).await;
    world
        .wait_site("plain", "the request is handled", |site| site["status"]["handled"]["upgrade_request"] == "first")
        .await;
    let rollout = json!({"spec": {"template": {"metadata": {"annotations": {
        "kubectl.kubernetes.io/restartedAt": "2030-01-01T00:00:00Z",
    }}}}});
    world.api.merge("StatefulSet", &world.namespace, "plain", "", &rollout).await.unwrap();
    eventually("the StatefulSet's controller has seen the restart", SOON, || async {
        let set = world.stateful_set("plain").await;
        (set["status"]["observedGeneration"].as_i64() == Some(generation(&set))).then_some(())
    })
    .await;
    let site = world.settled(&operator, "plain").await;
    assert_eq!(site["status"]["phase"], "Disabled");
    operator.stop().await;

    let mark = audit.mark();
    let operator = world.start_operator().await;
    let site = world.settled(&operator, "plain").await;
    world.audit_is_complete().await;
    let writes = world.calls(mark).of_passes().writes();
    assert_eq!(writes.count(), 0, "{}", writes.describe());
    assert_eq!(site["status"]["phase"], "Disabled");
    let set = world.stateful_set("plain").await;
    assert_eq!((&set["spec"]["replicas"], set["status"]["replicas"].as_i64().unwrap_or_default()), (&json!(0), 0));
    assert!(world.pods("plain").await.is_empty());
    assert_eq!(uid(&world.claim("plain").await), uid(&claim));
    world.end().await;
}
