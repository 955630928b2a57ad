//! What the operator says: who it is, what changed, and never a secret.

use serde_json::{Value, json};

use crate::support::api::condition;
use crate::support::operator::field;
use crate::support::{Act, FaultProxy, Lab, Match, Operator, SOON, Start, Times, World, eventually};

const TOKEN: &str = "hunter2-first-master-token";
const ROTATED: &str = "hunter3-second-master-token";

fn text<'a>(line: &'a Value, name: &str) -> &'a str {
    field(line, name).and_then(Value::as_str).unwrap_or_else(|| panic!("{name} in {line}"))
}

async fn line(operator: &Operator, message: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    eventually(&format!("a line {message:?}"), SOON, || async {
        operator.logs_with(message).into_iter().find(|line| wanted(line))
    })
    .await
}

#[tokio::test]
async fn logging_starts_with_the_versions_and_names_changed_paths() {
    let world = World::new("logging-info").await;
    let operator = world.start_operator().await;
    let start = line(&operator, "sites operator starts", |_| true).await;
    assert_eq!(start["level"], "INFO");
    assert_eq!(text(&start, "version"), env!("CARGO_PKG_VERSION"));
    assert!(text(&start, "kubernetes").starts_with("v1."), "{start}");
    assert!(!text(&start, "rust").is_empty() && !text(&start, "instance").is_empty(), "{start}");
    assert_eq!(operator.logs()[0], start, "it is the first line");

    world.site("one", json!({})).await;
    world.wait_ready("one").await;
    let patch =
        json!({"spec": {"owner": "somebody@example.test", "configuration": {"description": "said at debug only"}}});
    world.edit_site("one", patch).await;
    world.wait_ready("one").await;
    let changed = line(&operator, "Site changed", |_| true).await;
    assert_eq!((text(&changed, "site"), &changed["level"]), ("one", &json!("INFO")));
    assert_eq!(text(&changed, "paths"), "spec.configuration.description, spec.owner");
    assert!(operator.logs_with("changed value").is_empty());
    assert!(!operator.log_text().contains("said at debug only"));
    assert!(operator.logs().iter().all(|line| line.get("text").is_none()), "every line is JSON");
    operator.stop().await;
    world.end().await;
}

#[tokio::test]
async fn logging_at_debug_masks_and_cuts_values() {
    let world = World::new("logging-debug").await;
    let settings = json!({"operator": {"log_level": "DEBUG"}});
    let operator = world.start_operator_with(Start { settings, ..Start::default() }).await;
    line(&operator, "built from", |line| text(line, "packages").contains("kube")).await;
    world.site("one", json!({"configuration": {"description": "before", "tokens": {"master": TOKEN}}})).await;
    world.wait_ready("one").await;
    let long = "x".repeat(500);
    let patch = json!({"spec": {"owner": "somebody@example.test",
        "configuration": {"description": long, "tokens": {"master": ROTATED}}}});
    world.edit_site("one", patch).await;
    world.wait_ready("one").await;
    let of = |path: &'static str| line(&operator, "changed value", move |line| text(line, "path") == path);
    let owner = of("spec.owner").await;
    assert_eq!(owner["level"], "DEBUG");
    assert_eq!((text(&owner, "old"), text(&owner, "new")), ("ada@example.test", "somebody@example.test"));
    let description = of("spec.configuration.description").await;
    assert_eq!(text(&description, "old"), "before");
    assert_eq!(text(&description, "new").chars().count(), 120, "{description}");
    let token = of("spec.configuration.tokens.master").await;
    assert_eq!((text(&token, "old"), text(&token, "new")), ("[masked]", "[masked]"));
    operator.stop().await;
    world.end().await;
}

/// Whatever fails, at the loudest level: the master token is in no line, no status and no Event.
#[tokio::test]
async fn logging_the_master_token_appears_nowhere() {
    let lab = Lab::get().await;
    let world = World::on(lab, "logging-token").await;
    let proxy = FaultProxy::start(lab).await;
    let start = Start {
        kubeconfig: Some(proxy.kubeconfig(&world).await),
        settings: json!({"operator": {"log_level": "TRACE", "dependency_log_level": "TRACE"}}),
        ..Start::default()
    };
    let operator = world.start_operator_with(start).await;
    let refused = Act::Status {
        code: 422,
        reason: "Invalid".into(),
        message: format!("Secret \"one\" is invalid: data: Invalid value: \"{TOKEN}\""),
        retry_after: None,
    };
    let hits = proxy.fault(Match::on("create", "secrets"), refused, Times::Always);
    world.site("one", json!({"configuration": {"tokens": {"master": TOKEN}}})).await;
    world.wait_condition("one", "Ready", "False").await;
    eventually("it is tried again", SOON, || async { proxy.hits(hits) >= 2 }).await;
    proxy.heal();
    world.wait_ready("one").await;
    world.edit_site("one", json!({"spec": {"configuration": {"tokens": {"master": ROTATED}}}})).await;
    world.wait_ready("one").await;
    // One whose content cannot be read is told without its content.
    let events = eventually("the failure is an Event", SOON, || async {
        let events = world.api.list("Event", &world.namespace, "").await;
        events.iter().any(|event| event["involvedObject"]["kind"] == "Site").then_some(events)
    })
    .await;
    let site = world.must("Site", "one").await;
    assert!(condition(&site, "Ready").is_some());
    let pods = world.pods("one").await;
    let told = [
        ("the log", operator.log_text()),
        ("the status", site["status"].to_string()),
        ("an Event", Value::from(events).to_string()),
        ("a pod", Value::from(pods).to_string()),
        ("the StatefulSet", world.stateful_set("one").await.to_string()),
        ("a ConfigMap", world.config_map("one").await.to_string()),
        ("the debug page", operator.get("/debug/sites/one").await.to_string()),
    ];
    for (place, text) in &told {
        for secret in [TOKEN, ROTATED] {
            assert!(!text.contains(secret), "{place} has the master token: {text}");
        }
    }
    operator.stop().await;
    world.end().await;
}
