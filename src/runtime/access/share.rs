//! The Site's rules on people: the access file that the operator renders, and who it lets do what.
//!
//! Membership is exact. The file is read again when it has changed: a person who was taken off the list is out before
//! the pod restarts.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::Deserialize;
use thiserror::Error;

use super::identity::Identity;
use crate::domain::site::SiteType;

/// Why the access file cannot be used.
#[derive(Debug, Error)]
pub enum ShareError {
    /// It is not there.
    #[error("SITE_ACCESS_FILE: {path}: {source}")]
    Read {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("SITE_ACCESS_FILE: {path}: {source}")]
    Decode {
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// Who may do what.
#[derive(Deserialize, Clone, Debug, Default)]
pub struct Share {
    #[serde(default)]
    owner: String,
    #[serde(rename = "type")]
    site_type: SiteType,
    #[serde(default)]
    administrator_users: HashSet<String>,
    #[serde(default)]
    administrator_groups: HashSet<String>,
    #[serde(default)]
    view_users: HashSet<String>,
    #[serde(default)]
    view_groups: HashSet<String>,
}

impl Share {
    /// Whether everybody may see the site.
    #[must_use]
    pub fn is_public(&self) -> bool {
        self.site_type == SiteType::Public
    }

    /// Owner, administrator, or member of an administrators' group.
    #[must_use]
    pub fn is_administrator(&self, person: &Identity) -> bool {
        let owner = !self.owner.is_empty() && person.names().any(|name| name == self.owner);
        owner || listed(person, &self.administrator_users, &self.administrator_groups)
    }

    /// A private site is shared with this person.
    #[must_use]
    pub fn is_viewer(&self, person: &Identity) -> bool {
        !self.is_public() && listed(person, &self.view_users, &self.view_groups)
    }
}

fn listed(person: &Identity, users: &HashSet<String>, groups: &HashSet<String>) -> bool {
    person.names().any(|name| users.contains(name)) || person.groups.iter().any(|group| groups.contains(group))
}

/// The access file.
pub struct AccessFile {
    path: PathBuf,
    current: Mutex<(Option<SystemTime>, Arc<Share>)>,
}

impl AccessFile {
    /// Reads the file, which must be good at the start.
    pub fn open(path: &Path) -> Result<Self, ShareError> {
        let modified = modified(path);
        Ok(Self { path: path.to_owned(), current: Mutex::new((modified, Arc::new(load(path)?))) })
    }

    /// The rules now. A file that has become unreadable changes nothing.
    pub fn share(&self) -> Arc<Share> {
        let now = modified(&self.path);
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if now != current.0 {
            current.0 = now;
            match load(&self.path) {
                Ok(share) => current.1 = Arc::new(share),
                Err(error) => tracing::error!(%error, "the access file is bad; the rules stay as they were"),
            }
        }
        current.1.clone()
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn load(path: &Path) -> Result<Share, ShareError> {
    let bytes = std::fs::read(path).map_err(|source| ShareError::Read { path: path.to_owned(), source })?;
    serde_json::from_slice(&bytes).map_err(|source| ShareError::Decode { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(site_type: &str) -> Share {
        serde_json::from_value(serde_json::json!({
            "owner": "ana", "type": site_type,
            "administrator_users": ["ben@example.org"], "administrator_groups": ["ops"],
            "view_users": ["cleo"], "view_groups": ["staff"],
        }))
        .unwrap()
    }

    fn person(user: &str, email: &str, groups: &[&str]) -> Identity {
        Identity {
            user: user.to_owned(),
            email: email.to_owned(),
            preferred_username: String::new(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        }
    }

    #[test]
    fn membership_is_exact() {
        let share = share("private");
        for (user, email, groups, administrator, viewer) in [
            ("ana", "", &[][..], true, false),
            ("x", "ben@example.org", &[], true, false),
            ("x", "", &["ops"], true, false),
            ("cleo", "", &[], false, true),
            ("x", "", &["staff"], false, true),
            ("an", "", &[], false, false),
            ("anab", "", &[], false, false),
            ("ANA", "", &[], false, false),
            ("x", "ben@example.org.evil.org", &["op", "ops2", "staffs"], false, false),
            ("ops", "staff", &["ana", "cleo"], false, false),
            ("", "", &[""], false, false),
        ] {
            let person = person(user, email, groups);
            assert_eq!(share.is_administrator(&person), administrator, "{person:?}");
            assert_eq!(share.is_viewer(&person), viewer, "{person:?}");
        }
    }

    #[test]
    fn nobody_owns_a_site_without_an_owner() {
        let share = Share { owner: String::new(), ..share("public") };
        assert!(!share.is_administrator(&person("", "", &[])));
        assert!(!share.is_viewer(&person("cleo", "", &[])), "a public site has no viewers");
    }
}
