//! Names of a Site's objects and the paths that it answers on.
//!
//! Owns how names are made from id, space and name. Must not know what the objects hold.

use super::labels;
use super::site::Site;

/// Longest name of a route: a DNS label, so that it may be copied into a label value as it is.
const MAX_ROUTE: usize = 63;
/// Hexadecimal digits of the pair's hash in a route name: 64 bits.
const ROUTE_DIGITS: usize = 16;

/// Name of the Secret with the cookie and client secret: `<id>-oauth2`.
#[must_use]
pub fn oauth2(id: &str) -> String {
    format!("{id}-oauth2")
}

/// Name of the ConfigMap with the nginx configuration and the error pages: `<id>-files`.
#[must_use]
pub fn files(id: &str) -> String {
    format!("{id}-files")
}

/// Name of a new route: a readable slug of space and name, then 16 hexadecimal digits over the exact pair.
///
/// Two claims of one path get one name, so they meet at the API server; two paths never share a name, though
/// their slugs may be equal (`Data.x` and `data-x`). A DNS label of at most 63 characters for any input.
#[must_use]
pub fn route(space: &str, name: &str) -> String {
    let hash = labels::hex(format!("{}:{space}/{name}", space.len()).as_bytes());
    let mut slug = slug(&format!("{space}-{name}"));
    slug.truncate(MAX_ROUTE - 1 - ROUTE_DIGITS);
    let slug = slug.trim_matches('-');
    let slug = if slug.is_empty() { "site" } else { slug };
    format!("{slug}-{}", &hash[..ROUTE_DIGITS])
}

/// Public path of a Site, `/<space>/<name>`; `None` without both.
#[must_use]
pub fn public_path(site: &Site) -> Option<String> {
    site.public_path().map(|(space, name)| format!("/{space}/{name}"))
}

/// Prefix of the login endpoints: `/<space>/<name>/oauth2`, or `/oauth2` for a Site without a public path.
#[must_use]
pub fn proxy_prefix(site: &Site) -> String {
    format!("{}/oauth2", public_path(site).unwrap_or_default())
}

/// Lower-case letters and digits, everything else one hyphen.
fn slug(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn dns_label(text: &str) -> bool {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=63).contains(&text.len()) && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
    }

    #[test]
    fn routes_are_readable() {
        assert!(route("user1", "riverbench_AIFL").starts_with("user1-riverbench-aifl-"));
        assert!(route("docs", "dev-section").starts_with("docs-dev-section-"));
    }

    #[test]
    fn pairs_that_look_alike_have_distinct_routes() {
        let pairs = [
            ("a", "b-c"),
            ("a-b", "c"),
            ("A", "b-c"),
            ("a", "b.c"),
            ("a", "b_c"),
            ("a.b", "c"),
            ("a", "b"),
            ("ab", ""),
            ("", "ab"),
            ("a/b", "c"),
            ("a", "b/c"),
            ("1:a", "b"),
        ];
        let names: BTreeSet<String> = pairs.iter().map(|(space, name)| route(space, name)).collect();
        assert_eq!(names.len(), pairs.len());
    }

    #[test]
    fn prefix_follows_the_public_path() {
        let mut site = Site::new("a", super::super::site::SiteSpec::default());
        assert_eq!(proxy_prefix(&site), "/oauth2");
        site.spec.name = Some("fdb".to_owned());
        assert_eq!(proxy_prefix(&site), "/oauth2");
        site.spec.configuration.space = Some("docs".to_owned());
        assert_eq!(proxy_prefix(&site), "/docs/fdb/oauth2");
        assert_eq!(public_path(&site).as_deref(), Some("/docs/fdb"));
    }

    proptest! {
        #[test]
        fn routes_are_dns_labels(space in any::<String>(), name in any::<String>()) {
            prop_assert!(dns_label(&route(&space, &name)));
        }

        #[test]
        fn routes_are_injective(a in "[aA._-]{1,4}", b in "[aA._-]{1,4}", c in "[aA._-]{1,4}", d in "[aA._-]{1,4}") {
            prop_assert_eq!((&a, &b) == (&c, &d), route(&a, &b) == route(&c, &d));
        }
    }
}
