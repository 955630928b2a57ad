//! Labels and annotations: their names, and the one function that turns any text into a label value.
//!
//! Owns the spelling of every label and annotation that the platform reads or writes. Must not decide
//! which object carries them: that is `render`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::site::Site;

/// Marks an object of the platform; the value is [`APP_VALUE`].
pub const APP: &str = "sites.ecmwf.int/app";
/// Value of [`APP`].
pub const APP_VALUE: &str = "site";
/// The Site's id. Children are found by the existence of this label.
pub const ID: &str = "sites.ecmwf.int/id";
/// The Site's space; empty for a Site without one.
pub const SPACE: &str = "sites.ecmwf.int/space";
/// The Site's name; empty for a Site without one.
pub const NAME: &str = "sites.ecmwf.int/name";
/// The Site's owner, as a label value.
pub const OWNER: &str = "sites.ecmwf.int/owner";
/// Kubernetes' own label for the writer of an object; the value is [`MANAGER`].
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY`].
pub const MANAGER: &str = "sites-operator";

/// Pod annotation: the pod was made from the operator's template. Pods without it are ignored.
pub const OPERATOR_BOUND: &str = "sites.ecmwf.int/operator_bound";
/// Pod template annotation: when the pods were last told to restart (RFC 3339). `kubectl rollout restart` writes it too.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
/// Pod template annotation: the change that the last restart was for, see [`super::change::stamp`].
pub const STAMPED_FOR: &str = "sites.ecmwf.int/stamped-for";
/// Site annotation: a fresh UUID here asks for a full render and restart (LIFE-09).
pub const UPGRADE_REQUEST: &str = "sites.ecmwf.int/upgrade-request";
/// Site annotation: `bulk` puts the change that wrote it behind people's edits.
pub const WORK_CLASS: &str = "sites.ecmwf.int/work-class";
/// Site annotation: W3C trace context of the change that wrote it.
pub const TRACEPARENT: &str = "sites.ecmwf.int/traceparent";
/// Site annotation that the replaced operator left: the configuration it handled last, as JSON.
pub const KOPF_LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

/// Longest label value that Kubernetes takes.
pub const MAX_VALUE: usize = 63;

/// What a hashed label value begins with. A valid text that looks like the hash form is hashed too.
const HASH_PREFIX: &str = "sha256-";
/// Hexadecimal digits of the hash that are kept: 160 bits.
const HASH_DIGITS: usize = 40;

/// A valid label value for any text: the text itself when it is one, else `sha256-<40 hex digits>`.
///
/// Total, the same each time, at most 63 characters, and distinct for distinct texts as far as a 160-bit hash
/// is: a valid text in the reserved form is hashed as well, so it never equals the hash of another. The empty
/// text is valid and kept. The original stays in the spec (B13).
#[must_use]
pub fn label_value(text: &str) -> String {
    if valid(text) && !reserved(text) {
        return text.to_owned();
    }
    let mut value = String::from(HASH_PREFIX);
    value.push_str(&hex(text.as_bytes())[..HASH_DIGITS]);
    value
}

/// The six labels of every object of a Site, and of its bound volume.
///
/// All six are always there: a Site without space or name has empty values, which Kubernetes allows, so that
/// an update that removes a name overwrites the label instead of leaving the old one behind.
#[must_use]
pub fn site_labels(site: &Site) -> BTreeMap<String, String> {
    let text = |value: &Option<String>| label_value(value.as_deref().unwrap_or_default());
    BTreeMap::from([
        (APP.to_owned(), APP_VALUE.to_owned()),
        (ID.to_owned(), label_value(&site.spec.id)),
        (SPACE.to_owned(), text(&site.spec.configuration.space)),
        (NAME.to_owned(), text(&site.spec.name)),
        (OWNER.to_owned(), label_value(&site.spec.owner)),
        (MANAGED_BY.to_owned(), MANAGER.to_owned()),
    ])
}

/// Lower-case hexadecimal SHA-256 of some bytes: 64 digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Kubernetes' own rule: empty, or at most 63 of `[-A-Za-z0-9_.]` that begin and end alphanumeric.
fn valid(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= MAX_VALUE && bytes.iter().copied().all(inner) && edge(bytes.first()) && edge(bytes.last())
}

fn reserved(text: &str) -> bool {
    text.strip_prefix(HASH_PREFIX).is_some_and(|rest| {
        rest.len() == HASH_DIGITS && rest.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn valid_values_are_kept() {
        for text in ["", "a", "riverbench_AIFL", "climate.pulse-2", &"x".repeat(63)] {
            assert_eq!(label_value(text), text);
        }
    }

    #[test]
    fn values_of_the_bug_list_are_valid_and_distinct() {
        let long = "9f".repeat(32);
        let texts = [
            "",
            "_ana@example.org",
            "-ana@example.org",
            ".ana@example.org",
            "Zoë",
            "Zoe",
            &long,
            &long[..63],
            "ana@example.org",
            "ana.example.org",
            "ana_example.org",
            "ana+example.org",
            "a b",
            "a\nb",
            &"x".repeat(64),
            &"x".repeat(65),
        ];
        let values: BTreeSet<String> = texts.iter().map(|text| label_value(text)).collect();
        assert_eq!(values.len(), texts.len());
        assert!(values.iter().all(|value| valid(value)), "{values:?}");
    }

    #[test]
    fn the_hash_form_is_reserved() {
        let hashed = label_value("Zoë");
        assert!(reserved(&hashed) && valid(&hashed));
        assert_ne!(label_value(&hashed), hashed);
        assert_eq!(label_value("sha256-abc"), "sha256-abc");
    }

    #[test]
    fn a_site_without_path_has_six_labels() {
        let mut site = Site::new("lonely", super::super::site::SiteSpec::default());
        site.spec.id = "lonely".to_owned();
        let labels = site_labels(&site);
        assert_eq!(labels.len(), 6);
        assert_eq!(labels[SPACE], "");
        assert_eq!(labels[ID], "lonely");
    }

    proptest! {
        #[test]
        fn total_and_valid(text in any::<String>()) {
            prop_assert!(valid(&label_value(&text)));
        }

        #[test]
        fn distinct_texts_have_distinct_values(a in "[-a-zA-Z@. _é]{0,70}", b in "[-a-zA-Z@. _é]{0,70}") {
            prop_assert_eq!(a == b, label_value(&a) == label_value(&b));
        }
    }
}
