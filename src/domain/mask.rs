//! What a log line or an error may show of a Site's values.
//!
//! Owns which names look like secrets and how long a shown value may be. Must not log anything itself.

use serde_json::Value;

/// Shown instead of a secret.
pub const MASK: &str = "[masked]";

/// Characters of a value that are shown.
pub const MAX_SHOWN: usize = 120;

/// Parts of names whose values are secret, compared in lower case without `-`, `_` and `.`.
const SECRET_NAMES: [&str; 12] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "cookie",
    "signature",
];

/// Whether a field of this name may hold a secret.
#[must_use]
pub fn secret_name(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| !matches!(c, '-' | '_' | '.' | ' ')).map(|c| c.to_ascii_lowercase()).collect();
    SECRET_NAMES.iter().any(|part| plain.contains(part))
}

/// A value as a log may show it: credentials in addresses masked, control characters escaped, cut at 120 characters.
#[must_use]
pub fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    cut(&without_credentials(&text).chars().flat_map(escaped).collect::<String>())
}

/// At most 120 characters; a longer text ends in `…`.
#[must_use]
pub fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_SHOWN {
        return text.to_owned();
    }
    text.chars().take(MAX_SHOWN - 1).chain(['…']).collect()
}

fn escaped(character: char) -> impl Iterator<Item = char> {
    let (escape, plain) =
        if character.is_control() { (Some(character.escape_default()), None) } else { (None, Some(character)) };
    escape.into_iter().flatten().chain(plain)
}

/// Every `scheme://user:password@host` of a text without what stands before the `@`.
fn without_credentials(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://") {
        let (head, tail) = rest.split_at(start + 3);
        result.push_str(head);
        let end =
            tail.find(|c: char| matches!(c, '/' | '?' | '#' | '"' | '\'') || c.is_whitespace()).unwrap_or(tail.len());
        let (authority, after) = tail.split_at(end);
        match authority.rsplit_once('@') {
            Some((_, host)) => {
                result.push_str(MASK);
                result.push('@');
                result.push_str(host);
            }
            None => result.push_str(authority),
        }
        rest = after;
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_look_secret() {
        for name in ["tokens", "GITHUB_TOKEN", "client-secret", "Api-Key", "db.password", "Set-Cookie", "Authorization"]
        {
            assert!(secret_name(name), "{name}");
        }
        for name in ["owner", "X-Frame-Options", "quota", "image", "keywords"] {
            assert!(!secret_name(name), "{name}");
        }
    }

    #[test]
    fn credentials_in_addresses_are_masked() {
        for (text, expected) in [
            ("https://ana:hunter2@example.org/x?y=1", "https://[masked]@example.org/x?y=1"),
            ("redis://:p@ss@cache:6379", "redis://[masked]@cache:6379"),
            ("see https://example.org/a@b and http://u:p@h", "see https://example.org/a@b and http://[masked]@h"),
            ("ana@example.org", "ana@example.org"),
            ("a\nb", "a\\nb"),
        ] {
            assert_eq!(shown(&Value::from(text)), expected);
        }
    }

    proptest! {
        #[test]
        fn at_most_120_characters(text in any::<String>()) {
            let shown = shown(&Value::from(text));
            prop_assert!(shown.chars().count() <= MAX_SHOWN);
            prop_assert!(!shown.contains(char::is_control));
        }
    }
}
