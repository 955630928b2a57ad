//! Bad settings: `sites config check` and `sites operator` stop with the key, the kind of value expected and what to
//! do, and never repeat a value, since any may be secret.

use std::process::Output;

use serde_json::{Value, json};

use crate::support::api::merge_into;
use crate::support::world::base_settings;

/// In every secret of the settings.
const MARKER: &str = "s3cret-marker";

async fn run(arguments: &[&str], settings: &str, environment: &[(&str, &str)]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.yaml");
    std::fs::write(&path, settings).unwrap();
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_sites"));
    command.args(arguments).arg("--config").arg(&path).envs(environment.iter().copied());
    // Nothing of this may need a cluster.
    command.env("KUBECONFIG", "/nowhere").kill_on_drop(true);
    tokio::time::timeout(crate::support::SOON, command.output()).await.expect("it stops by itself").unwrap()
}

/// What both roles say on their way out.
async fn stopped(settings: &str, environment: &[(&str, &str)]) -> Vec<String> {
    let mut told = Vec::new();
    for arguments in [&["config", "check"][..], &["operator", "--namespace", "nowhere"]] {
        let out = run(arguments, settings, environment).await;
        let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert_eq!(out.status.code(), Some(1), "{arguments:?}: {text}");
        assert!(!text.contains(MARKER), "{arguments:?} tells a value: {text}");
        told.push(text);
    }
    told
}

fn settings(patch: &Value) -> String {
    let mut settings = base_settings();
    merge_into(&mut settings, &json!({"session": {"secret_key": MARKER}, "oidc": {"client_secret": MARKER}}));
    merge_into(&mut settings, patch);
    settings.to_string()
}

#[tokio::test]
async fn bad_input_in_settings_stops_the_start_with_key_kind_and_remedy() {
    for (patch, key, rule) in [
        (json!({"session": null}), "session", "is required; set it"),
        (json!({"session": {"secret_key": null}}), "session.secret_key", "is required; set it"),
        (json!({"session": {"secret_key": ""}}), "session.secret_key", "must not be empty; make one"),
        (json!({"session": {"secret_key": " \n"}}), "session.secret_key", "must not be empty; make one"),
        (json!({"session": {"secret_key": [MARKER]}}), "session.secret_key", "expected a text, found"),
        (json!({"oidc": {"issuer": null}}), "oidc.issuer", "is required; set it"),
        (json!({"oidc": {"issuer": MARKER}}), "oidc.issuer", "must be an address that begins with https://"),
        (json!({"redis": {"url": format!("http://u:{MARKER}@x")}}), "redis.url", "begins with redis://"),
        (
            json!({"operator": {"worker_limit": MARKER}}),
            "operator.worker_limit",
            "expected a whole number of 0 or more",
        ),
        (json!({"operator": {"worker_limit": 0}}), "operator.worker_limit", "must be 1 or more"),
        (json!({"operator": {"worker_limits": 3}}), "operator.worker_limits", "did you mean worker_limit?"),
        (json!({"operator": {"max_backoff": "soon"}}), "operator.max_backoff", "300s"),
        (json!({"operator": 3}), "operator", "expected a map of keys"),
        (json!({"routing": {"mode": "ingres"}}), "routing.mode", "expected"),
        (json!({"routing": {"host": "https://sites.example.test/"}}), "routing.host", "must be a host name such as"),
        (json!({"site": {"replicas": 0}}), "site.replicas", "must be 1 or more"),
        (json!({"hub": {"fresh_login": "0s"}}), "hub.fresh_login", "must be 1s or more, or no login is ever fresh"),
        (json!({"hub": {"site_address": format!("http://{MARKER}")}}), "hub.site_address", "such as http://{id}."),
        (json!({"notifications": {}}), "notifications", "must hold smtp or webhook, or be left out"),
        (
            json!({"notifications": {"webhook": {"url": format!("//u:{MARKER}@x"), "secret": MARKER}}}),
            "notifications.webhook.url",
            "must be an address that begins with https://",
        ),
        (
            json!({"notifications": {"webhook": {"url": "https://x", "secret": format!("{MARKER}\n")}}}),
            "notifications.webhook.secret",
            "must be one line",
        ),
        (
            json!({"notifications": {"smtp": {"host": "x", "port": 25, "from": "a@x.org", "password": MARKER}}}),
            "notifications.smtp.password",
            "must be set together with notifications.smtp.user",
        ),
        (json!({"notifications": {"smtp": {"port": "many"}}}), "notifications.smtp.port", "expected"),
        (
            json!({"jobs": {"notification_default_assignee": ""}}),
            "jobs.notification_default_assignee",
            "must not be empty",
        ),
        (json!({"unknown": MARKER}), "unknown", "unknown key; known keys here: "),
    ] {
        for told in stopped(&settings(&patch), &[]).await {
            assert!(told.contains(&format!("{key}: ")) && told.contains(rule), "{key} ({rule}): {told}");
        }
    }
}

#[tokio::test]
async fn bad_input_in_settings_is_told_all_at_once() {
    let patch = json!({"operator": {"worker_limit": 0}, "site": {"replicas": 0}, "oidc": {"scope": "email"}});
    for told in stopped(&settings(&patch), &[]).await {
        for key in ["operator.worker_limit: ", "site.replicas: ", "oidc.scope: "] {
            assert!(told.contains(key), "{key}: {told}");
        }
    }
}

#[tokio::test]
async fn bad_input_in_the_settings_file_itself_is_told() {
    for told in stopped(&format!("session:\n  secret_key: '{MARKER}\noidc: [\n"), &[]).await {
        assert!(
            told.contains("not valid YAML") && told.contains("line") && told.contains("correct the syntax"),
            "{told}"
        );
    }
    for told in stopped("", &[]).await {
        assert!(told.contains("is required; set it"), "{told}");
    }
    for arguments in [&["config", "check"][..], &["operator", "--namespace", "nowhere"]] {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_sites"));
        let out = command.args(arguments).args(["--config", "/nowhere/config.yaml"]).output().await.unwrap();
        let told = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success(), "{told}");
        assert!(told.contains("/nowhere/config.yaml") && told.contains("give a readable file with --config"), "{told}");
    }
}

#[tokio::test]
async fn bad_input_in_the_environment_names_the_variable() {
    let good = settings(&json!({}));
    assert!(run(&["config", "check"], &good, &[]).await.status.success());
    for told in stopped(&good, &[("SITES__OPERATOR__WORKER_LIMIT", MARKER)]).await {
        let expected = "operator.worker_limit: expected a whole number of 0 or more";
        assert!(told.contains(expected) && told.contains("SITES__OPERATOR__WORKER_LIMIT"), "{told}");
    }
    for told in stopped(&good, &[("SITES__OPERATOR__WORKR_LIMIT", "3")]).await {
        assert!(told.contains("operator.workr_limit: unknown key; did you mean worker_limit?"), "{told}");
    }
    // An override wins over the file, also over what is wrong there.
    let bad = settings(&json!({"operator": {"worker_limit": 0}, "session": {"secret_key": ""}}));
    let overrides = [("SITES__OPERATOR__WORKER_LIMIT", "7"), ("SITES__SESSION__SECRET_KEY", "0123")];
    let out = run(&["config", "check"], &bad, &overrides).await;
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(String::from_utf8_lossy(&out.stdout).contains("no problem found"));
}
