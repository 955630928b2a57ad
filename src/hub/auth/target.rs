//! Where a browser may be sent after a login: a page of the Hub, never elsewhere.
//!
//! Pure. A target is read as a browser reads it, and what is sent is what was read.

use openidconnect::url::{Position, Url};

/// Where people land without a target of ours.
pub const DEFAULT: &str = "/hub/";
/// Longest target.
const LONGEST: usize = 2048;
/// Sent there, a browser would go in circles or be signed out.
const CIRCLES: [&str; 3] = ["/hub/login", "/hub/logout", "/hub/callback"];

/// The target if it is a page of the Hub, as path, query and fragment; else the default page. `hub` is the Hub's
/// public address, such as `https://sites.example.org/hub`.
#[must_use]
pub fn target(wanted: Option<&str>, hub: &str) -> String {
    wanted.and_then(|wanted| ours(wanted, hub)).unwrap_or_else(|| DEFAULT.to_owned())
}

fn ours(wanted: &str, hub: &str) -> Option<String> {
    // A path: what is relative to the page at hand means nothing later.
    if !wanted.starts_with('/') || wanted.len() > LONGEST {
        return None;
    }
    let home = Url::parse(hub).ok()?;
    let url = home.join(wanted).ok()?;
    let path = url.path();
    let circles = CIRCLES.iter().any(|circle| path.trim_end_matches('/') == *circle);
    let ours = url.origin() == home.origin() && path.starts_with("/hub/") && !path.contains("//") && !circles;
    ours.then(|| url[Position::BeforePath..].to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HUB: &str = "https://sites.example.test/hub";

    #[test]
    fn only_pages_of_the_hub() {
        for (wanted, lands) in [
            ("/hub/sites/a/b?x=1#y", "/hub/sites/a/b?x=1#y"),
            ("/hub/", "/hub/"),
            ("/hub/a/../b", "/hub/b"),
            ("/hub/\u{e9}", "/hub/%C3%A9"),
            ("", DEFAULT),
            ("hub/x", DEFAULT),
            ("//evil.test", DEFAULT),
            ("///evil.test", DEFAULT),
            ("/\\evil.test", DEFAULT),
            ("/%5cevil.test", DEFAULT),
            ("%2f%2fevil.test", DEFAULT),
            ("https:evil.test", DEFAULT),
            ("https://evil.test/hub/", DEFAULT),
            ("/\t/evil.test", DEFAULT),
            ("/\n/evil.test/hub/", DEFAULT),
            ("/hub/../..//evil.test", DEFAULT),
            ("/hub/../docs/fdb/", DEFAULT),
            ("/hub/%2e%2e/docs/", DEFAULT),
            ("/hub//evil.test", DEFAULT),
            ("//sites.example.test:444/hub/", DEFAULT),
            ("/hub/login/?next=/hub/", DEFAULT),
            ("/hub/logout", DEFAULT),
            ("/hubris/", DEFAULT),
        ] {
            assert_eq!(target(Some(wanted), HUB), lands, "{wanted:?}");
        }
        assert_eq!(target(None, HUB), DEFAULT);
    }

    proptest! {
        /// Whatever is sent, a browser that resolves it stays in the Hub.
        #[test]
        fn nothing_leads_elsewhere(wanted in "(/hub)?[/\\\\%.a:@?#\t\n 25cCfFe-]{0,16}(evil\\.test)?[/.\\\\]{0,3}") {
            let base = Url::parse("https://sites.example.test/hub/callback/").unwrap();
            let resolved = base.join(&target(Some(&wanted), HUB)).unwrap();
            prop_assert_eq!(resolved.origin(), base.origin());
            prop_assert!(resolved.path().starts_with("/hub/"));
        }
    }
}
