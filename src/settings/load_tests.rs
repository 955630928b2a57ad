//! Tables for [`super`]: files and environments, and what is said of the wrong ones.

use super::*;

const MINIMAL: &str = "
session: {secret_key: hunter2-hunter2-hunter2-hunter2!}
routing: {}
oidc:
  issuer: https://id.example.org
  client_id: sites
  client_secret: hunter2
  login_url: https://id.example.org/auth
  redeem_url: https://id.example.org/token
  jwks_url: https://id.example.org/keys
";

/// The least that a settings file can say.
pub fn minimal() -> Settings {
    Settings::parse(MINIMAL, std::iter::empty()).unwrap()
}

fn with(yaml: &str, env: &[(&str, &str)]) -> Result<Settings, String> {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Settings::parse(&format!("{MINIMAL}{yaml}"), env).map_err(|error| error.to_string())
}

#[test]
fn the_minimal_file_has_defaults() {
    let settings = minimal();
    assert_eq!((settings.operator.worker_limit, settings.operator.retries, settings.site.replicas), (5, 5, 1));
}

#[test]
fn the_environment_overrides() {
    let settings = with(
        "operator: {worker_limit: 2, retries: 3}",
        &[
            ("SITES__OPERATOR__WORKER_LIMIT", "7"),
            ("SITES__OPERATOR__VOLUME_LABEL__UPDATE", "50ms"),
            ("SITES__SESSION__SECRET_KEY", "123456789012345678901234567890123456"),
            ("SITES__SITE__VERSION", "1.10"),
            ("SITES__SITE__IMAGES", r#"{"site-api": "r/sites"}"#),
            ("SITES__KUBERNETES__OLD_CLAIM_NAMES", "['{owner}']"),
            ("SITES__KUBERNETES__STORAGE_EXPANSION_SUPPORTED", "true"),
            ("SITES__REDIS__URL", "redis://cache"),
            ("SITES_TEST_KUBECONFIG", "/x"),
            ("PATH", "/bin"),
        ],
    )
    .unwrap();
    assert_eq!((settings.operator.worker_limit, settings.operator.retries), (7, 3));
    assert_eq!(settings.operator.volume_label.update.get().as_millis(), 50);
    assert_eq!(settings.site.version, "1.10");
    assert_eq!(settings.image("site-api"), "r/sites:1.10");
    assert_eq!(settings.kubernetes.old_claim_names, ["{owner}"]);
    assert!(settings.kubernetes.storage_expansion_supported && settings.redis.is_some());
}

#[test]
fn wrong_settings_name_the_key_and_what_to_do() {
    for (yaml, env, expected) in [
        ("operator: {worker_limt: 2}", None, "operator.worker_limt: unknown key; did you mean worker_limit?"),
        ("operater: {}", None, "operater: unknown key; did you mean operator?"),
        ("redis: {password: hunter2}", None, "redis.password: unknown key; known keys here: url"),
        ("redis: {}", None, "redis.url: is required; set it"),
        (
            "operator: {worker_limit: hunter2}",
            None,
            "operator.worker_limit: expected a whole number of 0 or more, found a text; correct the value",
        ),
        (
            "operator: {worker_limit: -1}",
            None,
            "operator.worker_limit: expected a whole number of 0 or more; correct the value",
        ),
        (
            "operator: {max_backoff: hunter2}",
            None,
            "operator.max_backoff: expected a length of time such as \"300s\", \"5m\" or \"500ms\"; correct the value",
        ),
        (
            "operator: {log_format: xml}",
            None,
            "operator.log_format: is none of the known words; expected `json` or `text`",
        ),
        ("operator: hunter2", None, "operator: expected a map of keys, found a text; correct the value"),
        (
            "migration: {enabled: maybe}",
            None,
            "migration.enabled: expected true or false, found a text; correct the value",
        ),
        (
            "kubernetes: {old_claim_names: hunter2}",
            None,
            "kubernetes.old_claim_names: expected a list, found a text; correct the value",
        ),
        (
            "site: {images: {site-api: [hunter2]}}",
            None,
            "site.images.site-api: expected a text, found sequence; correct the value",
        ),
        (
            "",
            Some(("SITES__OPERATOR__RETRIES", "hunter2")),
            "operator.retries: expected a whole number of 0 or more, found a text; correct the value (set by the environment variable SITES__OPERATOR__RETRIES)",
        ),
        (
            "",
            Some(("SITES__OPERATOR__RETRYS", "1")),
            "operator.retrys: unknown key; did you mean retries? (set by the environment variable SITES__OPERATOR__RETRYS)",
        ),
        (
            "",
            Some(("SITES__ROUTING", "hunter2")),
            "routing: expected a map of keys, found a text; correct the value (set by the environment variable SITES__ROUTING)",
        ),
    ] {
        let error = with(yaml, env.as_slice()).unwrap_err();
        assert_eq!(error, expected);
        assert!(!error.contains("hunter2"));
    }
}

#[test]
fn missing_sections_are_named() {
    for (yaml, expected) in [
        ("", "routing: is required; set it"),
        ("routing: {}", "session: is required; set it"),
        ("routing: {}\nsession: {}\n", "session.secret_key: is required; set it"),
        ("- a", "settings: expected a map of keys, found list; correct the value"),
    ] {
        assert_eq!(Settings::parse(yaml, std::iter::empty()).unwrap_err().to_string(), expected);
    }
}

#[test]
fn broken_files() {
    let error = with("operator: {secret: hunter2\n  x", &[]).unwrap_err();
    assert!(error.starts_with("settings file is not valid YAML at line ") && !error.contains("hunter2"), "{error}");
    let error = Settings::load(Path::new("/nowhere/sites.yaml"), std::iter::empty()).unwrap_err().to_string();
    assert!(error.starts_with("settings file /nowhere/sites.yaml: "), "{error}");
}

#[test]
fn secrets_are_not_printed() {
    assert!(!format!("{:?}", minimal()).contains("hunter2"));
    for yaml in ["session: [hunter2]", "session: {secret_key: {hunter2: 1}}", "session: {secret_key: [hunter2]}"] {
        let text = MINIMAL.replace("session: {secret_key: hunter2-hunter2-hunter2-hunter2!}", yaml);
        let error = Settings::parse(&text, std::iter::empty()).unwrap_err().to_string();
        assert!(error.starts_with("session") && !error.contains("hunter2"), "{error}");
    }
}
