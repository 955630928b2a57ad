//! Whether settings that have the right types also make sense together.
//!
//! Owns the consistency rules. Every broken one is reported, not the first only. Must not print a secret.

mod people;

use std::fmt;
use std::time::Duration;

use secrecy::ExposeSecret;

use super::Settings;

/// More of them than any platform has: an address, or a count of something else.
const MOST_PROXIES: usize = 16;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Such as `operator.worker_limit`.
    pub key: String,
    /// What is expected and what to do.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

/// Broken rules, in the order of the keys in the types. Empty for settings that can be used.
#[must_use]
pub fn violations(settings: &Settings) -> Vec<Violation> {
    let mut found = Vec::new();
    operator(settings, &mut found);
    hub(settings, &mut found);
    kubernetes(settings, &mut found);
    routing(settings, &mut found);
    site(settings, &mut found);
    access(settings, &mut found);
    people::check(settings, &mut found);
    found
}

fn expect(found: &mut Vec<Violation>, holds: bool, key: &str, message: &str) {
    if !holds {
        found.push(Violation { key: key.to_owned(), message: message.to_owned() });
    }
}

fn operator(settings: &Settings, found: &mut Vec<Violation>) {
    let operator = &settings.operator;
    expect(
        found,
        operator.worker_limit >= 1,
        "operator.worker_limit",
        "must be 1 or more, or no Site is ever worked on",
    );
    expect(found, operator.max_retries >= 1, "operator.max_retries", "must be 1 or more, or no status is ever written");
    expect(
        found,
        !operator.max_backoff.get().is_zero(),
        "operator.max_backoff",
        "must be more than 0, or a failing Site is tried without a pause",
    );
    let label = &operator.volume_label;
    expect(
        found,
        label.create_min <= label.create_max,
        "operator.volume_label.create_min",
        "must not be more than operator.volume_label.create_max",
    );
    let lease = &operator.lease;
    expect(
        found,
        lease.renew_period < lease.duration,
        "operator.lease.renew_period",
        "must be less than operator.lease.duration, or leadership is lost between two renewals",
    );
    expect(found, !lease.renew_period.get().is_zero(), "operator.lease.renew_period", "must be more than 0");
    expect(found, dns_name(&lease.name), "operator.lease.name", "must be a DNS name such as sites-operator");
    expect(found, operator.calls_per_second >= 1, "operator.calls_per_second", "must be 1 or more");
    expect(found, !operator.call_timeout.get().is_zero(), "operator.call_timeout", "must be more than 0");
    let watch = operator.watch_timeout.get();
    expect(
        found,
        (Duration::from_secs(1)..=Duration::from_secs(290)).contains(&watch) && watch.subsec_nanos() == 0,
        "operator.watch_timeout",
        "must be whole seconds from 1s to 290s: the API server counts in seconds, and the client takes no more",
    );
    for (key, value) in
        [("operator.dependency_log_level", &operator.dependency_log_level), ("operator.log_level", &operator.log_level)]
    {
        expect(found, log_level(value), key, "must be TRACE, DEBUG, INFO, WARN, ERROR or OFF");
    }
}

fn log_level(level: &str) -> bool {
    matches!(level.to_ascii_uppercase().as_str(), "TRACE" | "DEBUG" | "INFO" | "WARN" | "WARNING" | "ERROR" | "OFF")
}

fn hub(settings: &Settings, found: &mut Vec<Violation>) {
    let hub = &settings.hub;
    for (key, value) in [("hub.dependency_log_level", &hub.dependency_log_level), ("hub.log_level", &hub.log_level)] {
        expect(found, log_level(value), key, "must be TRACE, DEBUG, INFO, WARN, ERROR or OFF");
    }
    let session = hub.session_lifetime.get();
    expect(
        found,
        (Duration::from_secs(1)..=Duration::from_secs(12 * 3600)).contains(&session),
        "hub.session_lifetime",
        "must be from 1s to 12h",
    );
    expect(found, hub.requests_per_second >= 1, "hub.requests_per_second", "must be 1 or more");
    for (key, period) in [
        ("hub.request_timeout", hub.request_timeout),
        ("hub.site_api_timeout", hub.site_api_timeout),
        ("hub.bulk.answer_timeout", hub.bulk.answer_timeout),
    ] {
        expect(found, !period.get().is_zero(), key, "must be more than 0, such as 10s");
    }
    expect(
        found,
        hub.fresh_login.get() >= Duration::from_secs(1),
        "hub.fresh_login",
        "must be 1s or more, or no login is ever fresh",
    );
    expect(
        found,
        hub.trusted_proxies <= MOST_PROXIES,
        "hub.trusted_proxies",
        "must be the number of proxies in front of the Hub, from 0 to 16",
    );
    expect(found, hub.body_limit >= 1024, "hub.body_limit", "must be 1024 bytes or more");
    let people = &hub.platform_administrators;
    for (key, names) in
        [("hub.platform_administrators.users", &people.users), ("hub.platform_administrators.groups", &people.groups)]
    {
        expect(found, !names.iter().any(String::is_empty), key, "must not have an empty name");
    }
    let audience = hub.audience.as_deref();
    expect(found, audience.is_none_or(|audience| !audience.is_empty()), "hub.audience", "must not be empty");
    let bulk = &hub.bulk;
    expect(found, bulk.rate >= 1, "hub.bulk.rate", "must be 1 or more, or a run never ends");
    expect(found, bulk.backlog >= 1, "hub.bulk.backlog", "must be 1 or more, or a run never ends");
    expect(
        found,
        (1..=100).contains(&bulk.unavailable_percent),
        "hub.bulk.unavailable_percent",
        "must be a share in percent, from 1 to 100",
    );
    // A lock is renewed three times in its life, by calls that may take a second.
    for (key, period) in [("hub.bulk.lock_ttl", bulk.lock_ttl), ("hub.bulk.lease", bulk.lease)] {
        expect(
            found,
            period.get() >= Duration::from_secs(1),
            key,
            "must be 1s or more, or it ends between two renewals",
        );
    }
    expect(
        found,
        url(&hub.site_address, &["https://", "http://"])
            && hub.site_address.contains("{id}")
            && placeholders(&hub.site_address, &["{id}", "{namespace}"]),
        "hub.site_address",
        "must be an address such as http://{id}.{namespace}.svc:4180",
    );
    let templates = hub.templates_path.as_deref();
    expect(
        found,
        templates.is_none_or(|path| !path.as_os_str().is_empty()),
        "hub.templates_path",
        "must be the path of a folder, or be left out",
    );
}

fn kubernetes(settings: &Settings, found: &mut Vec<Violation>) {
    const MODES: [&str; 4] = ["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod", "ReadOnlyMany"];
    let kubernetes = &settings.kubernetes;
    let mode = kubernetes.storage_access_mode.as_deref();
    expect(
        found,
        mode.is_none_or(|mode| MODES.contains(&mode)),
        "kubernetes.storage_access_mode",
        "must be ReadWriteOnce, ReadWriteMany, ReadWriteOncePod or ReadOnlyMany",
    );
    for (index, template) in kubernetes.old_claim_names.iter().enumerate() {
        let key = format!("kubernetes.old_claim_names[{index}]");
        let holds = placeholders(template, &["{id}", "{owner}"]);
        expect(
            found,
            holds,
            &key,
            "must be a template over {id} and {owner} with at least one of them, such as {owner}",
        );
    }
}

fn routing(settings: &Settings, found: &mut Vec<Violation>) {
    let routing = &settings.routing;
    for (key, host) in [("routing.host", &routing.host), ("routing.hub_host", &routing.hub_host)] {
        let holds = host.as_deref().is_none_or(|host| host.is_empty() || dns_name(host));
        expect(found, holds, key, "must be a host name such as sites.example.org, without scheme, port or path");
    }
    expect(
        found,
        nginx_time(&routing.ingress.proxy_timeout),
        "routing.ingress.proxy_timeout",
        "must be an nginx time such as 600s or 10m",
    );
    expect(
        found,
        gateway_duration(&routing.gateway.request_timeout),
        "routing.gateway.request_timeout",
        "must be a Gateway API duration such as 600s or 1h30m",
    );
    expect(found, dns_name(&routing.gateway.name), "routing.gateway.name", "must be the name of a Gateway, a DNS name");
}

fn site(settings: &Settings, found: &mut Vec<Violation>) {
    let site = &settings.site;
    expect(found, site.replicas >= 1, "site.replicas", "must be 1 or more; archive a Site to stop its pods");
    expect(found, tag(&site.version), "site.version", "must be an image tag such as 1.4.0");
    for (name, image) in &site.images {
        let holds = !image.is_empty() && image.bytes().all(|byte| byte.is_ascii_graphic());
        expect(
            found,
            holds,
            &format!("site.images.{name}"),
            "must be repository[:tag] without spaces, such as registry.example.org/sites",
        );
    }
    for (index, pattern) in site.legacy_image_patterns.iter().enumerate() {
        let holds = regex::Regex::new(&format!("^(?:{pattern})$")).is_ok();
        expect(found, holds, &format!("site.legacy_image_patterns[{index}]"), "must be a regular expression");
    }
    let policy = matches!(site.image_pull_policy.as_str(), "Always" | "IfNotPresent" | "Never");
    expect(found, policy, "site.image_pull_policy", "must be Always, IfNotPresent or Never");
    for (key, value) in
        [("site.custom_limits.cpu", &site.custom_limits.cpu), ("site.custom_limits.memory", &site.custom_limits.memory)]
    {
        expect(found, quantity(value), key, "must be a Kubernetes quantity above 0, such as 500m or 512Mi");
    }
    expect(found, site.user_id >= 1, "site.user_id", "must be 1 or more: no process of a Site runs as root");
    expect(found, site.termination_grace_seconds >= 0, "site.termination_grace_seconds", "must be 0 or more");
    expect(found, site.default_quota >= 1, "site.default_quota", "must be 1 Gi or more");
    expect(found, !site.brand.contains(char::is_control), "site.brand", "must not have control characters");
}

fn access(settings: &Settings, found: &mut Vec<Violation>) {
    let secret = settings.session.secret_key.expose_secret();
    expect(
        found,
        !secret.trim().is_empty(),
        "session.secret_key",
        "must not be empty; make one, for example with: openssl rand -base64 32",
    );
    let oidc = &settings.oidc;
    for (key, value) in [
        ("oidc.issuer", &oidc.issuer),
        ("oidc.login_url", &oidc.login_url),
        ("oidc.redeem_url", &oidc.redeem_url),
        ("oidc.jwks_url", &oidc.jwks_url),
    ] {
        expect(
            found,
            url(value, &["https://", "http://"]),
            key,
            "must be an address that begins with https:// or http://",
        );
    }
    for (key, value) in [("oidc.logout_url", &oidc.logout_url), ("oidc.introspection_url", &oidc.introspection_url)] {
        expect(
            found,
            value.as_deref().is_none_or(|value| url(value, &["https://", "http://"])),
            key,
            "must be an address that begins with https:// or http://",
        );
    }
    expect(found, !oidc.client_id.is_empty(), "oidc.client_id", "must not be empty");
    expect(found, !oidc.client_secret.expose_secret().is_empty(), "oidc.client_secret", "must not be empty");
    expect(found, oidc.scope.split(' ').any(|scope| scope == "openid"), "oidc.scope", "must hold openid");
    if let Some(redis) = &settings.redis {
        let holds = url(redis.url.expose_secret(), &["redis://", "rediss://"]);
        expect(found, holds, "redis.url", "must be an address that begins with redis:// or rediss://");
    }
    let migration = &settings.migration;
    expect(
        found,
        !migration.enabled || migration.source.is_some(),
        "migration.source",
        "is required while migration.enabled is true",
    );
    if let Some(source) = &migration.source {
        let holds = placeholders(source, &["{space}", "{name}"]);
        expect(
            found,
            holds,
            "migration.source",
            "must be a template over {space} and {name}, such as https://old.example.org/{space}/{name}",
        );
    }
}

/// A DNS subdomain: labels of `a-z 0-9 -` joined by dots, at most 253 characters.
fn dns_name(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

fn url(text: &str, schemes: &[&str]) -> bool {
    let plain = !text.contains(|c: char| c.is_control() || c.is_whitespace());
    plain
        && schemes
            .iter()
            .any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/')))
}

/// Digits with a unit of nginx, or without one (seconds).
fn nginx_time(text: &str) -> bool {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && matches!(unit, "" | "ms" | "s" | "m" | "h" | "d")
}

/// GEP-2257: one to four parts of one to five digits and `h`, `m`, `s` or `ms`.
fn gateway_duration(text: &str) -> bool {
    let mut parts = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let after = &rest[digits..];
        let unit = ["ms", "h", "m", "s"].into_iter().find(|unit| after.starts_with(unit));
        let Some(unit) = unit.filter(|_| (1..=5).contains(&digits)) else { return false };
        rest = &after[unit.len()..];
        parts += 1;
    }
    (1..=4).contains(&parts)
}

fn tag(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=128).contains(&text.len()) && text.bytes().all(inner) && !text.starts_with(['.', '-'])
}

/// A decimal number above zero with a suffix that Kubernetes knows.
fn quantity(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let known =
        matches!(suffix, "" | "m" | "k" | "M" | "G" | "T" | "P" | "E" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei");
    known && number.parse::<f64>().is_ok_and(|number| number > 0.0)
}

/// Whether a template holds at least one of the placeholders and no other braces.
fn placeholders(template: &str, known: &[&str]) -> bool {
    let rest = known.iter().fold(template.to_owned(), |rest, placeholder| rest.replace(placeholder, ""));
    rest != template && !rest.contains(['{', '}'])
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::super::load::tests::minimal;
    use super::super::types::Redis;
    use super::super::{Period, Settings};
    use super::*;

    #[test]
    fn each_rule() {
        type Break = fn(&mut Settings);
        let table: &[(&str, Break)] = &[
            ("operator.worker_limit", |all| all.operator.worker_limit = 0),
            ("operator.max_retries", |all| all.operator.max_retries = 0),
            ("operator.watch_timeout", |all| all.operator.watch_timeout = Period::seconds(295)),
            ("operator.max_backoff", |all| all.operator.max_backoff = Period::seconds(0)),
            ("operator.volume_label.create_min", |all| all.operator.volume_label.create_min = Period::seconds(41)),
            ("operator.lease.renew_period", |all| all.operator.lease.renew_period = Period::seconds(15)),
            ("operator.lease.name", |all| all.operator.lease.name = "A".to_owned()),
            ("operator.calls_per_second", |all| all.operator.calls_per_second = 0),
            ("operator.log_level", |all| all.operator.log_level = "loud".to_owned()),
            ("operator.dependency_log_level", |all| all.operator.dependency_log_level = String::new()),
            ("hub.log_level", |all| all.hub.log_level = "loud".to_owned()),
            ("hub.session_lifetime", |all| all.hub.session_lifetime = Period::seconds(12 * 3600 + 1)),
            ("hub.requests_per_second", |all| all.hub.requests_per_second = 0),
            ("hub.request_timeout", |all| all.hub.request_timeout = Period::seconds(0)),
            ("hub.site_api_timeout", |all| all.hub.site_api_timeout = Period::seconds(0)),
            ("hub.fresh_login", |all| all.hub.fresh_login = Period::seconds(0)),
            ("hub.trusted_proxies", |all| all.hub.trusted_proxies = 17),
            ("hub.templates_path", |all| all.hub.templates_path = Some("".into())),
            ("hub.body_limit", |all| all.hub.body_limit = 0),
            ("hub.platform_administrators.groups", |all| {
                all.hub.platform_administrators.groups.push(String::new());
            }),
            ("hub.audience", |all| all.hub.audience = Some(String::new())),
            ("hub.bulk.rate", |all| all.hub.bulk.rate = 0),
            ("hub.bulk.backlog", |all| all.hub.bulk.backlog = 0),
            ("hub.bulk.unavailable_percent", |all| all.hub.bulk.unavailable_percent = 0),
            ("hub.bulk.lease", |all| all.hub.bulk.lease = Period::seconds(0)),
            ("hub.bulk.answer_timeout", |all| all.hub.bulk.answer_timeout = Period::seconds(0)),
            ("hub.site_address", |all| all.hub.site_address = "http://pods.example.org".to_owned()),
            ("hub.site_address", |all| all.hub.site_address = "http://{id}.{zone}.svc".to_owned()),
            ("kubernetes.storage_access_mode", |all| all.kubernetes.storage_access_mode = Some("RWX".to_owned())),
            ("kubernetes.old_claim_names[0]", |all| all.kubernetes.old_claim_names = vec!["{space}-{id}".to_owned()]),
            ("routing.host", |all| all.routing.host = Some("https://x".to_owned())),
            ("routing.hub_host", |all| all.routing.hub_host = Some("x:80".to_owned())),
            ("routing.ingress.proxy_timeout", |all| all.routing.ingress.proxy_timeout = "10 min".to_owned()),
            ("routing.gateway.request_timeout", |all| all.routing.gateway.request_timeout = "1d".to_owned()),
            ("site.replicas", |all| all.site.replicas = 0),
            ("site.version", |all| all.site.version = "a:b".to_owned()),
            ("site.images.site-api", |all| {
                all.site.images.insert("site-api".to_owned(), "a b".to_owned());
            }),
            ("site.legacy_image_patterns[0]", |all| all.site.legacy_image_patterns = vec!["(".to_owned()]),
            ("site.image_pull_policy", |all| all.site.image_pull_policy = "Sometimes".to_owned()),
            ("site.custom_limits.cpu", |all| all.site.custom_limits.cpu = "0".to_owned()),
            ("site.custom_limits.memory", |all| all.site.custom_limits.memory = "1 Gi".to_owned()),
            ("site.user_id", |all| all.site.user_id = 0),
            ("site.default_quota", |all| all.site.default_quota = 0),
            ("site.brand", |all| all.site.brand = "a\nb".to_owned()),
            ("session.secret_key", |all| all.session.secret_key = SecretString::from("")),
            ("session.secret_key", |all| all.session.secret_key = SecretString::from(" \n")),
            ("oidc.issuer", |all| all.oidc.issuer = "id.example.org".to_owned()),
            ("oidc.jwks_url", |all| all.oidc.jwks_url = "https://".to_owned()),
            ("oidc.logout_url", |all| all.oidc.logout_url = Some("/logout".to_owned())),
            ("oidc.scope", |all| all.oidc.scope = "email".to_owned()),
            ("redis.url", |all| all.redis = Some(Redis { url: SecretString::from("http://u:p@x") })),
            ("migration.source", |all| all.migration.enabled = true),
        ];
        assert_eq!(violations(&minimal()), []);
        for (key, break_it) in table {
            let mut settings = minimal();
            break_it(&mut settings);
            let keys: Vec<String> = violations(&settings).into_iter().map(|violation| violation.key).collect();
            assert_eq!(keys, [*key]);
        }
    }

    #[test]
    fn all_are_reported() {
        let mut settings = minimal();
        settings.operator.worker_limit = 0;
        settings.site.replicas = 0;
        assert_eq!(violations(&settings).len(), 2);
    }

    #[test]
    fn times() {
        assert!(["600s", "10m", "5", "300ms"].into_iter().all(nginx_time));
        assert!(!["", "s", "1.5s", "10min"].into_iter().any(nginx_time));
        assert!(["600s", "1h30m", "5ms"].into_iter().all(gateway_duration));
        assert!(!["", "600", "1.5h", "123456s", "1h1m1s1ms1h"].into_iter().any(gateway_duration));
    }
}
