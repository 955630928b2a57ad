//! Who a person is to a Site.
//!
//! Owns membership: exact, never by substring, case or prefix. Must not know how a person was recognised.

use super::site::{Share, Site, SiteType};

/// A person, as the identity provider knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Person {
    /// Subject or user id; never empty.
    pub user: String,
    /// May be empty.
    pub email: String,
    /// May be empty.
    pub preferred_username: String,
    /// Exact names.
    pub groups: Vec<String>,
}

impl Person {
    /// All that lists of people may call them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = [&self.user, &self.email, &self.preferred_username];
        names.into_iter().map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Whether one of these lists names the person or a group of theirs.
    #[must_use]
    pub fn listed(&self, users: &[String], groups: &[String]) -> bool {
        self.names().any(|name| users.iter().any(|user| user == name))
            || self.groups.iter().any(|group| !group.is_empty() && groups.contains(group))
    }
}

/// What a person may do with a Site; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Nothing of it is theirs to see.
    Stranger,
    /// May read it.
    Viewer,
    /// May change it: owner, administrator user, member of an administrator group.
    Administrator,
}

/// What a person is to a Site; nobody is logged in without one.
#[must_use]
pub fn standing(site: &Site, person: Option<&Person>) -> Standing {
    let Share { administrator_users, administrator_groups, view_users, view_groups } = &site.spec.configuration.share;
    let public = site.spec.site_type == SiteType::Public;
    match person {
        Some(person) if owns(site, person) || person.listed(administrator_users, administrator_groups) => {
            Standing::Administrator
        }
        Some(person) if person.listed(view_users, view_groups) => Standing::Viewer,
        _ if public => Standing::Viewer,
        _ => Standing::Stranger,
    }
}

fn owns(site: &Site, person: &Person) -> bool {
    !site.spec.owner.is_empty() && person.names().any(|name| name == site.spec.owner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn membership_is_exact() {
        let site = |kind: &str| -> Site {
            serde_json::from_value(
                json!({"apiVersion": "sites.ecmwf.int/v1", "kind": "Site", "metadata": {"name": "a"},
                "spec": {"id": "a", "owner": "ana", "type": kind, "configuration": {"share": {
                    "administrator_users": ["ben@example.org"], "administrator_groups": ["ops", ""],
                    "view_users": ["cleo"], "view_groups": ["staff"]}}}}),
            )
            .unwrap()
        };
        for (user, email, groups, expected) in [
            ("ana", "", &[][..], Standing::Administrator),
            ("x", "ben@example.org", &[], Standing::Administrator),
            ("x", "", &["ops"], Standing::Administrator),
            ("cleo", "", &[], Standing::Viewer),
            ("x", "", &["staff"], Standing::Viewer),
            ("an", "", &[], Standing::Stranger),
            ("anab", "", &[], Standing::Stranger),
            ("ANA", "", &[], Standing::Stranger),
            ("x", "ben@example.org.evil.test", &["op", "ops2", "staffs", ""], Standing::Stranger),
            ("ops", "staff", &["ana", "cleo"], Standing::Stranger),
        ] {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            let person = Person { user: user.to_owned(), email: email.to_owned(), groups, ..Person::default() };
            assert_eq!(standing(&site("private"), Some(&person)), expected, "{person:?}");
            assert_eq!(standing(&site("public"), Some(&person)), expected.max(Standing::Viewer), "{person:?}");
        }
        assert_eq!(standing(&site("private"), None), Standing::Stranger);
        assert_eq!(standing(&site("public"), None), Standing::Viewer);
    }

    #[test]
    fn nobody_owns_a_site_without_an_owner() {
        let site = Site::new("a", crate::domain::site::SiteSpec::default());
        assert_eq!(standing(&site, Some(&Person::default())), Standing::Stranger);
    }
}
