//! Bad input that the API server did not refuse, because it was written before the rules: the Site says what is wrong
//! in the API server's words, gets none of its objects, costs nothing and delays nobody.

use serde_json::{Value, json};

use crate::bad_input_refused::{Case, cases};
use crate::support::api::{condition, name_of};
use crate::support::older::{lab, refusal, without_rules, write_before_the_rules};
use crate::support::operator::field;
use crate::support::{Operator, SOON, World, calls_about, eventually};

/// The lines at ERROR that speak of a Site.
fn errors(operator: &Operator, id: &str) -> Vec<Value> {
    let names = |line: &Value| {
        [("site", id.to_owned()), ("key", format!("/{id}"))]
            .iter()
            .any(|(name, end)| field(line, name).and_then(Value::as_str).is_some_and(|text| text.ends_with(end)))
    };
    operator.logs().into_iter().filter(|line| line["level"] == "ERROR" && names(line)).collect()
}

async fn wait_invalid(world: &World, name: &str) -> String {
    let site = world.wait_condition(name, "Ready", "False").await;
    let ready = condition(&site, "Ready").unwrap();
    assert_eq!(ready["reason"], "Invalid", "{name}: {ready}");
    ready["message"].as_str().unwrap().to_owned()
}

async fn wait_event(world: &World, name: &str) -> String {
    eventually(&format!("an Event tells about {name}"), SOON, || async {
        let events = world.api.list("Event", &world.namespace, "").await;
        let event = events.iter().find(|event| event["involvedObject"]["name"] == name && event["reason"] == "Invalid");
        let said = event.and_then(|event| event["message"].as_str().map(str::to_owned));
        // A server that has not yet taken up the stricter rules lets the status pass.
        let site = world.must("Site", name).await;
        let status = condition(&site, "Ready").and_then(|ready| ready["message"].as_str().map(str::to_owned));
        said.or(status)
    })
    .await
}

#[tokio::test]
async fn bad_input_that_slipped_through_is_told_and_costs_nothing() {
    let Some(lab) = lab("bad_input_that_slipped_through_is_told_and_costs_nothing").await else { return };
    let mut world = World::on(&lab, "slipped").await;
    // Resyncs must not make it work again.
    world.settings["operator"]["resync_period"] = json!("1s");
    let cases: Vec<(Value, Case)> = cases()
        .into_iter()
        .enumerate()
        .map(|(number, case)| (case.site(&world, &format!("bad-{number}")), case))
        .collect();
    let sites: Vec<Value> = cases.iter().map(|(site, _)| site.clone()).collect();
    write_before_the_rules(&world, &sites).await;
    world.site("good", json!({})).await;

    let mark = lab.audit().unwrap().mark();
    let operator = world.start_operator().await;
    world.wait_phase("good", "Running").await;
    for (site, case) in &cases {
        let name = name_of(site);
        let message = if case.speechless { wait_event(&world, name).await } else { wait_invalid(&world, name).await };
        assert!(message.contains(case.field), "{name}: {message}");
        if case.ours {
            let refused = refusal(&world, site).await.expect("the API server refuses it now");
            let told = message.split_once(": ").expect("field and rule").1;
            assert!(refused.contains(told), "{name}: the API server says {refused}, the status {message}");
        }
    }
    for (site, case) in &cases {
        let name = name_of(site);
        for id in [name, site["spec"]["id"].as_str().unwrap()] {
            let objects = world.objects_of(id).await;
            assert!(objects.is_empty(), "{name} has {} objects", objects.len());
        }
        let calls = world.calls(mark).of_passes().filter(|call| call.name == name);
        assert!(calls.count() <= 2, "{name}: {}", calls.describe());
        let refused = calls.0.iter().filter(|call| call.subresource != "status" || call.code >= 300).count();
        assert!(refused <= usize::from(case.speechless), "{}", calls.describe());
        assert_eq!(errors(&operator, name).len(), 1, "{name}: {:?}", errors(&operator, name));
    }
    world.end().await;
}

#[tokio::test]
async fn bad_input_that_cannot_be_read_stops_nobody_and_is_mended() {
    let Some(lab) = lab("bad_input_that_cannot_be_read_stops_nobody_and_is_mended").await else { return };
    let world = World::on(&lab, "unreadable").await;
    let broken = json!({"configuration": {"quota": "ten"}});
    let enumeration = json!({"type": "secret"});
    let sites = [
        world.site_object("alpha", &json!({})),
        world.site_object("bravo", &broken),
        world.site_object("charlie", &json!({})),
        world.site_object("delta", &enumeration),
    ];
    write_before_the_rules(&world, &sites).await;
    let operator = world.start_operator().await;
    world.wait_phase("alpha", "Running").await;
    world.wait_phase("charlie", "Running").await;
    let message = wait_invalid(&world, "bravo").await;
    let quota = "spec.configuration.quota: invalid type: string, expected a whole number of 0 or more";
    assert_eq!(message, quota);
    let message = wait_invalid(&world, "delta").await;
    assert_eq!(message, "spec.type: unknown variant, expected `private` or `public`");

    // Later edits of the others apply.
    world.edit_site("charlie", json!({"spec": {"owner": "bo@example.test"}})).await;
    world.wait_ready("charlie").await;
    let mark = lab.audit().unwrap().mark();
    assert_eq!(calls_about(&world, mark, "bravo").await.count(), 0);
    assert!(world.objects_of("bravo").await.is_empty() && world.objects_of("delta").await.is_empty());
    assert_eq!((errors(&operator, "bravo").len(), errors(&operator, "delta").len()), (1, 1));

    // Another mistake instead is told; mending it is all that is needed.
    without_rules(&world, async || {
        let patch = json!({"spec": {"configuration": {"quota": 2, "enabled": "no"}}});
        world.edit_site("bravo", patch).await;
    })
    .await;
    eventually("the new mistake is told", SOON, || async {
        let message = wait_invalid(&world, "bravo").await;
        if message.starts_with("spec.configuration.enabled: ") { Ok(()) } else { Err(message) }
    })
    .await;
    world.edit_site("bravo", json!({"spec": {"configuration": {"enabled": true}}})).await;
    world.edit_site("delta", json!({"spec": {"type": "private"}})).await;
    for id in ["bravo", "delta"] {
        world.wait_ready(id).await;
        world.wait_phase(id, "Running").await;
    }
    world.end().await;
}

#[tokio::test]
async fn bad_input_leaves_what_runs_of_a_site_that_becomes_unreadable() {
    let Some(lab) = lab("bad_input_leaves_what_runs_of_a_site_that_becomes_unreadable").await else { return };
    let world = World::on(&lab, "becomes").await;
    world.site("alpha", json!({})).await;
    let operator = world.start_operator().await;
    world.wait_ready("alpha").await;
    world.wait_phase("alpha", "Running").await;
    let pods = world.pod_uids("alpha").await;
    without_rules(&world, async || {
        world.edit_site("alpha", json!({"spec": {"configuration": {"share": "everybody"}}})).await;
    })
    .await;
    let message = wait_invalid(&world, "alpha").await;
    assert!(message.starts_with("spec.configuration.share: "), "{message}");
    // Nor does it lose anything by a restart of the operator.
    operator.stop().await;
    let mark = lab.audit().unwrap().mark();
    let _operator = world.start_operator().await;
    let calls = calls_about(&world, mark, "alpha").await.writes();
    assert!(calls.0.iter().all(|call| call.subresource == "status"), "{}", calls.describe());
    assert_eq!(world.pod_uids("alpha").await, pods);
    assert_eq!(world.ingresses("alpha").await.len(), 1);
    let share = json!({"spec": {"configuration": {"share": {"view_users": ["bo"]}}}});
    world.edit_site("alpha", share).await;
    world.wait_ready("alpha").await;
    eventually("the edit reaches the pods", SOON, || async { world.pod_uids("alpha").await != pods }).await;
    world.end().await;
}
