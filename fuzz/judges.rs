//! What must hold for any input: shared by the fuzz targets and, on their corpus and on generated inputs, by
//! the ordinary tests. Each judge panics if its rule is broken.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use sites::domain::labels::{MAX_VALUE, label_value};
use sites::domain::pod_health::{PodFact, report};
use sites::domain::site::{Phase, Site};
use sites::domain::{change, rules};
use sites::render::{Observed, RenderError, Restart, render};
use sites::settings::Settings;

#[path = "../src/render/tests/words.rs"]
#[allow(dead_code)]
mod words;

/// Any bytes: they decode or are refused with a message; what decodes can be judged and compared; what breaks no
/// rule renders.
pub fn site_decoding(data: &[u8]) {
    let mut site = match serde_json::from_slice::<Site>(data) {
        Ok(site) => site,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert_eq!(change::digest(&site), change::digest(&site.clone()));
    let violations = rules::violations(&site);
    for violation in &violations {
        assert!(violation.field.starts_with("spec") || violation.field.starts_with("metadata"), "{violation:?}");
        assert!(!violation.message.is_empty());
    }
    assert!(change::changed_paths(&site, &site).is_empty());
    if violations.is_empty() {
        site.metadata.uid = Some("0".to_owned());
        match rendered_nginx(&site) {
            Ok(_) | Err(RenderError::TooLarge { .. }) => {}
            Err(error) => panic!("breaks no rule and does not render: {error}"),
        }
    }
}

/// A text in every field that reaches the nginx configuration: refused, or the configuration has the directives of
/// a benign Site, with the same number of words each.
pub fn nginx_rendering(data: &[u8]) {
    // A value of blanks is no header at all, and a long one is given in several pieces: the shapes would differ.
    let Some(text) = std::str::from_utf8(data).ok().filter(|text| !text.trim().is_empty() && text.len() < 500) else {
        return;
    };
    let fields: [(&str, Value, Value); 3] = [
        ("/spec/configuration/headers", json!({"X-Text": text}), json!({"X-Text": "benign"})),
        (
            "/spec/configuration/settings/error_handling/not_found_page",
            json!(format!("/{text}")),
            json!("/benign.html"),
        ),
        ("/spec/name", json!(text), json!("benign")),
    ];
    for (pointer, hostile, benign) in fields {
        let with = |value: Value| -> Site {
            let mut site = sample();
            if let Some(field) = site.pointer_mut(pointer) {
                *field = value;
            }
            serde_json::from_value(site).unwrap_or_else(|error| panic!("{pointer}: {error}"))
        };
        let hostile = with(hostile);
        if !rules::violations(&hostile).is_empty() {
            continue;
        }
        let nginx = rendered_nginx(&hostile).unwrap_or_else(|error| panic!("{pointer}: {error}"));
        let expected = rendered_nginx(&with(benign)).unwrap_or_else(|error| panic!("{error}"));
        let different = skeleton(&nginx).into_iter().zip(skeleton(&expected)).find(|(one, other)| one != other);
        assert_eq!(different, None, "{pointer}: {text:?}");
        assert_eq!(skeleton(&nginx).len(), skeleton(&expected).len(), "{pointer}: {text:?}");
    }
}

/// Any text has a valid label value, the same each time; a valid one that is not in the reserved form is kept.
pub fn labels(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let value = label_value(&text);
    assert!(value.len() <= MAX_VALUE, "{value}");
    assert!(value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)), "{value}");
    let edges = [value.chars().next(), value.chars().last()];
    assert!(edges.iter().flatten().all(char::is_ascii_alphanumeric), "{value}");
    assert_eq!(value, label_value(&text));
    // A value of one text is never the value of another: not even of the value itself, if it was made.
    if value != text {
        assert_ne!(label_value(&value), value);
    }
}

/// Any pods: the report does not depend on their order, and "started" is never said of a pod with a problem.
pub fn pod_status(data: &[u8]) {
    let Ok(pods) = serde_json::from_slice::<Vec<Pod>>(data) else { return };
    let mut facts: Vec<PodFact> = pods.iter().map(PodFact::from).collect();
    // The API server gives no uid twice.
    facts.sort_by(|a, b| a.uid.cmp(&b.uid));
    facts.dedup_by(|a, b| a.uid == b.uid);
    let forward = report(true, &facts);
    facts.reverse();
    assert_eq!(forward, report(true, &facts));
    if forward.all_steps_started {
        assert_eq!(forward.phase, Phase::Running);
        assert!(forward.container_problems.is_empty());
    }
    assert_eq!(report(false, &facts).phase, Phase::Disabled);
    assert!(!report(false, &facts).all_steps_started);
}

fn sample() -> Value {
    json!({
        "apiVersion": "sites.ecmwf.int/v1", "kind": "Site",
        "metadata": {"name": "fdb", "namespace": "sites", "uid": "0"},
        "spec": {"id": "fdb", "name": "fdb", "owner": "ana", "type": "private", "configuration": {
            "space": "docs", "headers": {"X-Text": "benign"}, "settings": {"error_handling": {"not_found_page": "/404.html"}}}},
    })
}

fn rendered_nginx(site: &Site) -> Result<String, RenderError> {
    let settings: Settings = serde_json::from_value(json!({
        "routing": {"host": "sites.example.org"},
        "session": {"secret_key": "a session key of the judges"},
        "oidc": {"issuer": "https://id.example.org", "client_id": "sites", "client_secret": "none",
            "login_url": "https://id.example.org/auth", "redeem_url": "https://id.example.org/token",
            "jwks_url": "https://id.example.org/keys"},
    }))
    .unwrap_or_else(|error| panic!("{error}"));
    let observed = Observed {
        namespace: "sites".to_owned(),
        route_name: None,
        restart: Restart { restarted_at: "2026-01-01T00:00:00Z".to_owned(), stamped_for: "v1:0/".to_owned() },
        volume: None,
    };
    let desired = render(site, &settings, &observed)?;
    Ok(desired.files.data.and_then(|mut data| data.remove("nginx.conf")).unwrap_or_default())
}

/// Every directive by name, number of words and depth, as nginx reads the text.
fn skeleton(text: &str) -> Vec<String> {
    let configuration = words::read(text).unwrap_or_else(|error| panic!("nginx would refuse it: {error}"));
    let mut shape = Vec::new();
    configuration.shape(0, &mut shape);
    shape
}
