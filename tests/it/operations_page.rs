//! `docs/operations.md` is true: every reason, field, phase and number that it explains is one that a running operator
//! gives, in the situation that the page names.

use serde_json::{Value, json};

use crate::support::api::condition;
use crate::support::{Act, FaultProxy, Lab, Match, Operator, SOON, Start, Times, World, eventually};

const PAGE: &str = include_str!("../../docs/operations.md");

/// The words in backticks in the first column of the table under a heading.
fn first_column(heading: &str) -> Vec<String> {
    let rest = &PAGE[PAGE.find(heading).unwrap_or_else(|| panic!("no {heading}"))..];
    let rows = rest.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|')).skip(2);
    let words = rows.flat_map(|row| {
        let cell = row.split('|').nth(1).unwrap_or_default().to_owned();
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    });
    words.collect()
}

#[test]
fn operations_page_explains_every_reason() {
    let source = include_str!("../../src/domain/conditions.rs");
    let words = source.split("=> \"").skip(1).map(|rest| rest.split('"').next().unwrap());
    // Those of other conditions: the page explains the conditions.
    let mut reasons: Vec<&str> = words.filter(|word| !["ActorFailed", "Labelled", "Waiting"].contains(word)).collect();
    let column = first_column("## What the Site says");
    let mut told: Vec<&str> =
        column.iter().filter_map(|word| word.split_once(", ")).map(|(_, reason)| reason).collect();
    reasons.retain(|word| word.starts_with(char::is_uppercase) && !["True", "False", "Unknown"].contains(word));
    reasons.sort_unstable();
    told.sort_unstable();
    assert_eq!(told, reasons);
}

/// Waits until an actor is in a phase, and gives what it tells.
async fn phase(operator: &Operator, id: &str, wanted: &str) -> Value {
    let told = eventually(&format!("{id} is {wanted}"), SOON, || async {
        let (_, body) = operator.request(&format!("/debug/sites/{id}")).await?;
        let told: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
        if told["phase"] == wanted { Ok(told) } else { Err(body) }
    })
    .await;
    let word = wanted.replace("Queued(Change)", "Queued(class)");
    assert!(PAGE.contains(&format!("`{word}`")), "the page says nothing of {word}");
    told
}

/// Waits until `Ready` is False for a reason.
async fn not_ready(world: &World, id: &str, reason: &str) {
    let wanted = |site: &Value| condition(site, "Ready").is_some_and(|ready| ready["reason"] == reason);
    world.wait_site(id, reason, wanted).await;
}

#[tokio::test]
async fn operations_page_tells_what_the_debug_answers_say() {
    let lab = Lab::get().await;
    let world = World::on(lab, "operations").await;
    let proxy = FaultProxy::start(lab).await;
    let kubeconfig = Some(proxy.kubeconfig(&world).await);
    let settings = json!({"operator": {
        "worker_limit": 1, "retries": 2, "max_backoff": "2s", "route_conflict_delay": "600s", "call_timeout": "300s",
    }});
    let operator = world.start_operator_with(Start { kubeconfig, settings, ..Start::default() }).await;

    // All is well, and each field that the page explains is there.
    world.site("rests", json!({})).await;
    world.running(&operator, "rests").await;
    let told = phase(&operator, "rests", "Idle").await;
    let fields = first_column("## What `/debug/sites/{id}` says");
    assert!(fields.len() >= 10, "{fields:?}");
    for field in &fields {
        let found = field.split('.').try_fold(&told, |at, part| at.get(part));
        assert!(found.is_some(), "{field} is not in {told}");
    }
    let knows = &told["knows"];
    assert_eq!((&told["last_pass"]["outcome"], &knows["wanted"]), (&json!("ok"), &Value::Null));
    assert_eq!(knows["trigger"]["digest"], knows["handled"]["digest"]);
    assert_eq!(knows["children"]["Secret/rests"]["version"], knows["handled"]["children"]["Secret/rests"]["version"]);
    assert_eq!(knows["stateful_set"]["observed_generation"], knows["stateful_set"]["generation"]);
    let metrics = operator.metrics().await;
    for metric in first_column("## What the numbers say") {
        let name = metric.split('{').next().unwrap();
        assert!(metrics.lines().any(|line| line.starts_with(name)), "{name} is not in\n{metrics}");
    }

    // For a path.
    world.site("rival", json!({"name": "rests"})).await;
    not_ready(&world, "rival", "RouteConflict").await;
    let told = phase(&operator, "rival", "Waiting(Fixed)").await;
    assert!(
        told["last_pass"]["outcome"].as_str().unwrap().contains("rests") && told["next_retry"].is_string(),
        "{told}"
    );

    // For an edit.
    let people: Vec<String> = (0..2000).map(|number| format!("{number:06}-{}", "x".repeat(138))).collect();
    let share = json!({"view_users": people, "view_groups": people, "administrator_users": people});
    world.site("big", json!({"configuration": {"share": share, "quota": 1}})).await;
    world.edit_site("big", json!({"spec": {"configuration": {"share": {"administrator_groups": people}}}})).await;
    let told = phase(&operator, "big", "Waiting(Change)").await;
    assert_eq!(told["next_retry"], Value::Null);
    not_ready(&world, "big", "Invalid").await;

    // Attempts of one change are used up.
    proxy.fault(Match::on("get", "statefulsets").named("rests"), Act::status(500), Times::Always);
    world.edit_site("rests", json!({"spec": {"owner": "bo@example.test"}})).await;
    let told = phase(&operator, "rests", "Waiting(Exhausted)").await;
    not_ready(&world, "rests", "RetriesExhausted").await;
    let knows = &told["knows"];
    assert!(told["last_pass"]["outcome"].as_str().unwrap().contains("500"), "{told}");
    assert!(knows["wanted"].as_str().unwrap().contains("Full"), "{told}");
    assert_ne!(knows["trigger"]["digest"], knows["handled"]["digest"]);

    // A call fails, again and again.
    let refused = proxy.fault(Match::on("create", "services"), Act::status(500), Times::Always);
    world.site("fails", json!({})).await;
    let told = phase(&operator, "fails", "Waiting(Backoff)").await;
    assert!(told["next_retry"].is_string() && told["attempts"].as_u64() >= Some(1), "{told}");
    not_ready(&world, "fails", "ReconcileError").await;
    proxy.lift(refused);
    world.wait_ready("fails").await;

    // One works and one waits for its permit.
    proxy.fault(Match::on("create", "services"), Act::Hold, Times::Always);
    world.site("works", json!({})).await;
    phase(&operator, "works", "Running").await;
    world.site("waits", json!({})).await;
    phase(&operator, "waits", "Queued(Change)").await;
    let list = operator.get("/debug/sites").await;
    assert_eq!((&list["synced"], &list["working"]), (&json!(true), &json!(true)));
    let line =
        list["objects"].as_array().unwrap().iter().find(|line| line["key"].as_str().unwrap().ends_with("/waits"));
    for field in ["exists", "undecodable", "given_up", "queued"] {
        assert!(line.unwrap().get(field).is_some() && PAGE.contains(&format!("`{field}`")), "{field}: {list}");
    }
    assert_eq!(line.unwrap()["queued"], "change");
    proxy.heal();
    for id in ["works", "waits"] {
        world.wait_ready(id).await;
    }
    // Any change of the Site is another chance.
    world.edit_site("rests", json!({"spec": {"owner": "cy@example.test"}})).await;
    world.wait_ready("rests").await;
    world.end().await;
}
