//! What may be printed of a value.
//!
//! Owns which field names look like secrets, and the cut of long values. Pure. A value is masked because of
//! its field's name at any depth, because of a `name`/`value` pair (environment variables), or because it is
//! the user information of a URL.

use serde_json::{Map, Value};

/// Longest printed value, in characters.
pub const LONGEST: usize = 120;
/// What stands in place of a secret.
pub const MASK: &str = "***";

/// Parts of field names, compared in lower case without `-` and `_`.
const SECRET_WORDS: [&str; 12] = [
    "secret",
    "token",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "privatekey",
    "apikey",
    "accesskey",
    "sessionkey",
    "cookie",
    "authorization",
];

/// Ends of names whose values say where a secret is, and are none: `secretName`, `secretKeyRef`.
const REFERENCES: [&str; 5] = ["name", "ref", "refs", "pullsecrets", "serviceaccounttoken"];

/// Whether a field's name says that its value is a secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let refers = REFERENCES.iter().any(|end| plain.ends_with(end));
    !refers && SECRET_WORDS.iter().any(|word| plain.contains(word))
}

/// A copy that may be printed: secrets masked, long texts cut.
#[must_use]
pub fn mask(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), field(map, key, value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(mask).collect()),
        Value::String(text) => Value::String(cut(text)),
        other => other.clone(),
    }
}

/// [`mask`] for a value whose field's path is known, such as `spec.configuration.tokens.master`.
#[must_use]
pub fn mask_at(path: &str, value: &Value) -> Value {
    if path.split(['.', '[', ']', '/']).any(is_secret_name) { masked(value) } else { mask(value) }
}

fn field(map: &Map<String, Value>, key: &str, value: &Value) -> Value {
    if is_secret_name(key) || is_value_of_secret(map, key) { masked(value) } else { mask(value) }
}

/// `{"name": "MASTER_TOKEN", "value": …}`
fn is_value_of_secret(map: &Map<String, Value>, key: &str) -> bool {
    key == "value" && map.get("name").and_then(Value::as_str).is_some_and(is_secret_name)
}

/// Below a secret name everything is secret; only that there is nothing may be seen.
fn masked(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        _ => Value::String(MASK.to_owned()),
    }
}

/// A text that may be printed: user information of URLs masked, cut at [`LONGEST`] characters.
#[must_use]
pub fn cut(text: &str) -> String {
    cut_to(&without_user_info(text), LONGEST)
}

/// The first `longest` characters, with an ellipsis where some are missing.
#[must_use]
pub fn cut_to(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// `https://user:password@host` as `https://***@host`, wherever it stands in the text.
#[must_use]
pub fn without_user_info(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || "/?#\"'<>,".contains(c)).unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            Some(user) => {
                out.push_str(MASK);
                &after[user..]
            }
            None => after,
        };
    }
    out + rest
}

/// The secret texts of a value, of eight characters or more: what must not appear elsewhere.
#[must_use]
pub fn secret_texts(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(value, false, &mut found);
    found.retain(|text| text.chars().count() >= 8);
    found
}

fn collect(value: &Value, secret: bool, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                collect(value, secret || is_secret_name(key) || is_value_of_secret(map, key), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, secret, found)),
        Value::String(text) if secret => found.push(text.clone()),
        Value::String(text) => found.extend(user_info(text)),
        _ => {}
    }
}

/// The parts of a URL's user information.
fn user_info(text: &str) -> Vec<String> {
    let Some((_, after)) = text.split_once("://") else { return Vec::new() };
    let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(Vec::new(), |(user, _)| user.split(':').map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names() {
        for secret in
            ["master_token", "MASTER_TOKEN", "cookie-secret", "clientSecret", "tokens", "session.secret_key", "apiKey"]
        {
            assert!(is_secret_name(secret), "{secret}");
        }
        for plain in [
            "owner",
            "quota",
            "key",
            "keys",
            "retention_date",
            "secretName",
            "secretKeyRef",
            "imagePullSecrets",
            "automountServiceAccountToken",
        ] {
            assert!(!is_secret_name(plain), "{plain}");
        }
    }

    #[test]
    fn secrets_are_masked_at_any_depth() {
        let value = json!({
            "owner": "anna",
            "list": [{"tokens": {"master": "m4rker"}}, {"source": "https://user:m4rker@host/x?y"}],
            "env": [{"name": "MASTER_TOKEN", "value": "m4rker"}, {"name": "SPACE", "value": "docs"}],
            "password": null,
        });
        assert_eq!(
            mask(&value),
            json!({
                "owner": "anna",
                "list": [{"tokens": "***"}, {"source": "https://***@host/x?y"}],
                "env": [{"name": "MASTER_TOKEN", "value": "***"}, {"name": "SPACE", "value": "docs"}],
                "password": null,
            })
        );
        assert_eq!(mask_at("spec.configuration.tokens.master", &json!("m4rker")), json!("***"));
        assert_eq!(mask_at("spec.owner", &json!("anna")), json!("anna"));
    }

    #[test]
    fn long_texts_are_cut_by_characters() {
        assert_eq!(cut(&"é".repeat(120)), "é".repeat(120));
        assert_eq!(cut(&"é".repeat(121)), "é".repeat(120) + "…");
    }

    #[test]
    fn user_information_is_masked_everywhere() {
        for (text, expected) in [
            ("redis://:pa@ss@host:6379, then https://a@b", "redis://***@host:6379, then https://***@b"),
            ("mail a@b.example", "mail a@b.example"),
            ("https://host/a@b", "https://host/a@b"),
            ("://", "://"),
        ] {
            assert_eq!(without_user_info(text), expected);
        }
    }

    #[test]
    fn secret_texts_are_found() {
        let value = json!({"tokens": ["long-enough", "short"], "url": "https://robot:long-password@host", "owner": "long-owner-name"});
        assert_eq!(secret_texts(&value), ["long-enough", "long-password"]);
    }
}
