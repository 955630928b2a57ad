//! Where a visitor without credentials is sent: oauth2-proxy's start page, which comes back to what was asked for.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Longest address to come back to; a longer one comes back to the site's first page.
const MAX_BACK: usize = 2000;
/// Everything but what RFC 3986 leaves alone.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `<prefix>/oauth2/start?rd=<back>`: on this origin whatever the target is.
///
/// oauth2-proxy refuses addresses with `//` or dot segments, so the second slash is encoded once more.
#[must_use]
pub fn login_url(prefix: &str, target: &str) -> String {
    let path = target.split('?').next().unwrap_or_default();
    let ours = target.len() <= MAX_BACK && path.starts_with('/') && !target.contains(['\\', '\r', '\n']);
    let mut back = if ours { target.to_owned() } else { format!("{prefix}/") };
    while back.contains("//") {
        back = back.replacen("//", "/%2F", 1);
    }
    for dots in ["/../", "/./"] {
        if back.contains(dots) {
            back = format!("{prefix}/");
        }
    }
    format!("{prefix}/oauth2/start?rd={}", utf8_percent_encode(&back, COMPONENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_to_this_site() {
        for (target, back) in [
            ("/team/plans/a%20b.html?x=1&y=2", "%2Fteam%2Fplans%2Fa%2520b.html%3Fx%3D1%26y%3D2"),
            ("/team/plans//a", "%2Fteam%2Fplans%2F%252Fa"),
            ("//evil.example.org/", "%2F%252Fevil.example.org%2F"),
            ("https://evil.example.org/", "%2Fteam%2Fplans%2F"),
            ("/a\r\nSet-Cookie: x", "%2Fteam%2Fplans%2F"),
            ("/\\evil.example.org", "%2Fteam%2Fplans%2F"),
            ("/a/../b", "%2Fteam%2Fplans%2F"),
            ("", "%2Fteam%2Fplans%2F"),
        ] {
            assert_eq!(login_url("/team/plans", target), format!("/team/plans/oauth2/start?rd={back}"), "{target}");
        }
        assert!(login_url("", &format!("/{}", "a".repeat(3000))).len() < 100);
    }
}
