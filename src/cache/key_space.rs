//! The names of all keys in Redis. Nobody else may write one.
//!
//! Every key of a platform begins with `sites:<namespace>:`, so several platforms may share a server; only the
//! provider's description, which is the same for all, has the name that is fixed for it.

use sha2::{Digest, Sha256};

/// The cached answers about one Site, and the list that shows it. The names are fixed, so that clearing them
/// needs no scan.
#[must_use]
pub fn of_site(namespace: &str, id: &str) -> [String; 4] {
    [
        format!("sites:{namespace}:site:{id}:summary"),
        format!("sites:{namespace}:site:{id}:status"),
        format!("sites:{namespace}:site:{id}:health"),
        list(namespace),
    ]
}

/// The list of all Sites of a namespace.
#[must_use]
pub fn list(namespace: &str) -> String {
    format!("sites:{namespace}:sites")
}

/// What an OpenID provider says of itself.
#[must_use]
pub fn discovery(issuer: &str) -> String {
    let digest = Sha256::digest(issuer);
    digest.iter().fold("oidc-discovery_".to_owned(), |name, byte| format!("{name}{byte:02x}"))
}

/// Figures of the platform under a name of the code's own.
#[must_use]
pub fn statistics(namespace: &str, name: &str) -> String {
    format!("sites:{namespace}:statistics:{name}")
}

/// A session that was signed out.
#[must_use]
pub fn revocation(namespace: &str, session: &str) -> String {
    format!("sites:{namespace}:revoked:{session}")
}

/// A lock: `sites-bulk-upgrade` and the like.
#[must_use]
pub fn lock(namespace: &str, name: &str) -> String {
    format!("sites:{namespace}:lock:{name}")
}

/// The bulk runs that are remembered, by the time of their beginning.
#[must_use]
pub fn runs(namespace: &str) -> String {
    format!("sites:{namespace}:runs")
}

/// The keys of one bulk run.
#[derive(Clone, Debug)]
pub struct RunKeys {
    /// What was asked, and how it stands.
    pub record: String,
    /// How many Sites are in which state.
    pub counts: String,
    /// Each Site's result.
    pub results: String,
    /// What happened, in order.
    pub events: String,
    /// Who works on it.
    pub lease: String,
    /// Who wants it to end.
    pub cancel: String,
}

impl RunKeys {
    /// Those of a run.
    #[must_use]
    pub fn new(namespace: &str, run: &str) -> Self {
        let key = |part: &str| format!("sites:{namespace}:run:{run}:{part}");
        Self {
            record: key("record"),
            counts: key("counts"),
            results: key("results"),
            events: key("events"),
            lease: key("lease"),
            cancel: key("cancel"),
        }
    }
}

/// The reports that are remembered, by the time they were asked for.
#[must_use]
pub fn reports(namespace: &str) -> String {
    format!("sites:{namespace}:reports")
}

/// The reports that wait, oldest first.
#[must_use]
pub fn report_queue(namespace: &str) -> String {
    format!("sites:{namespace}:reports:queue")
}

/// What was asked of a report, and how it stands.
#[must_use]
pub fn report(namespace: &str, report: &str) -> String {
    format!("sites:{namespace}:report:{report}")
}

/// What a report found.
#[must_use]
pub fn report_rows(namespace: &str, report: &str) -> String {
    format!("sites:{namespace}:report:{report}:rows")
}

/// What the last probe of each Site said.
#[must_use]
pub fn probes(namespace: &str) -> String {
    format!("sites:{namespace}:probes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_has_exactly_these_keys() {
        assert_eq!(
            of_site("ns", "demo"),
            ["sites:ns:site:demo:summary", "sites:ns:site:demo:status", "sites:ns:site:demo:health", "sites:ns:sites"]
        );
    }

    #[test]
    fn names_that_others_know_are_fixed() {
        assert!(discovery("https://id.example.org").starts_with("oidc-discovery_"));
        assert_eq!(discovery("a").len(), "oidc-discovery_".len() + 64);
        assert_eq!(lock("ns", "sites-bulk-upgrade"), "sites:ns:lock:sites-bulk-upgrade");
    }
}
