//! B12: an id of 52 characters runs; a longer one is refused, by the operator too, before anything is made.

use serde_json::json;

use crate::support::api::condition;
use crate::support::older::{lab, refusal, write_before_the_rules};
use crate::support::{OpenId, SOON, World, eventually};

fn id(length: usize) -> String {
    format!("a{}z", "-long-".repeat(20).get(..length - 2).unwrap())
}

#[tokio::test]
async fn b12_an_id_of_52_characters_runs_and_longer_ones_are_refused() {
    let world = World::new("b12").await;
    let _operator = world.start_operator().await;
    let longest = id(52);
    world.site(&longest, json!({})).await;
    world.wait_ready(&longest).await;
    world.wait_phase(&longest, "Running").await;
    let pod = world.pods(&longest).await.remove(0);
    let revision = pod["metadata"]["labels"]["controller-revision-hash"].as_str().unwrap();
    assert!(revision.len() <= 63 && revision.starts_with(&longest), "{revision}");
    for length in [53, 63] {
        let told = refusal(&world, &world.site_object(&id(length), &json!({}))).await.expect("it is refused");
        assert!(told.contains("spec.id must be 1 to 52 of a-z 0-9 -"), "{told}");
    }
    world.end().await;
}

#[tokio::test]
async fn b12_a_long_id_that_slipped_through_gets_no_object() {
    let Some(lab) = lab("b12_a_long_id_that_slipped_through_gets_no_object").await else { return };
    let world = World::on(&lab, "b12-slipped").await;
    let sites = [53, 63].map(|length| world.site_object(&id(length), &json!({})));
    write_before_the_rules(&world, &sites).await;
    let _operator = world.start_operator().await;
    for length in [53, 63] {
        let site = world.wait_condition(&id(length), "Ready", "False").await;
        let ready = condition(&site, "Ready").unwrap();
        assert_eq!(ready["reason"], "Invalid");
        assert!(ready["message"].as_str().unwrap().starts_with("spec.id: spec.id must be 1 to 52 of"), "{ready}");
        assert!(world.objects_of(&id(length)).await.is_empty());
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b12_the_hub_gives_ids_that_run_and_takes_none() {
    let world = World::new("b12-hub").await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let carol = openid.token("carol-admin");
    for length in [52, 53, 63] {
        let body = json!({"space": "docs", "name": "fdb", "id": id(length)});
        let told = hub.json("POST", "/hub/api/v2/sites/", &carol, &body).await;
        assert_eq!(told.status, 400, "{}", told.text());
        assert!(told.json()["errors"][0].as_str().unwrap().starts_with("[id] "), "{}", told.text());
    }
    let told = hub.json("POST", "/hub/api/v2/sites/", &carol, &json!({"space": "docs", "name": "fdb"})).await;
    assert_eq!(told.status, 201, "{}", told.text());
    assert!(told.json()["id"].as_str().unwrap().len() <= 52);

    // By its id: the longest is found, a longer one is told so and looked up nowhere.
    world.site(&id(52), json!({})).await;
    eventually("the Hub finds it", SOON, || async {
        let told = hub.get(&format!("/hub/api/v2/sites/-/{}/", id(52)), &carol).await;
        if told.status == 200 { Ok(()) } else { Err(told.text()) }
    })
    .await;
    for length in [53, 63] {
        let told = hub.get(&format!("/hub/api/v2/sites/-/{}/", id(length)), &carol).await;
        assert_eq!(told.status, 400, "{}", told.text());
        assert!(told.json()["errors"][0].as_str().unwrap().starts_with("[id] "), "{}", told.text());
    }
    world.end().await;
}
