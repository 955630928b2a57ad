//! The names of all keys in Redis. Nobody else may write one.

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
}
