//! The kinds of objects that a Site owns, and the key under which the status remembers each.
//!
//! Owns `"<Kind>/<name>"`, the text used in `status.handled.children`. Must not know API paths or clients.

use std::fmt;
use std::str::FromStr;

/// A kind of object that a Site owns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChildKind {
    /// Core `Secret`.
    Secret,
    /// Core `ConfigMap`.
    ConfigMap,
    /// Core `PersistentVolumeClaim`. Has no entry in the status: its controller rewrites it.
    PersistentVolumeClaim,
    /// `apps` `StatefulSet`.
    StatefulSet,
    /// Core `Service`.
    Service,
    /// `networking.k8s.io` `Ingress`.
    Ingress,
    /// `gateway.networking.k8s.io` `HTTPRoute`.
    HttpRoute,
    /// A gateway controller's own policy, named by group and kind.
    Policy {
        /// API group, such as `gateway.envoyproxy.io`.
        group: String,
        /// Kind, such as `BackendTrafficPolicy`.
        kind: String,
    },
}

impl ChildKind {
    /// The kind as the API spells it.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::StatefulSet => "StatefulSet",
            Self::Service => "Service",
            Self::Ingress => "Ingress",
            Self::HttpRoute => "HTTPRoute",
            Self::Policy { kind, .. } => kind,
        }
    }

    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        match self {
            Self::Secret | Self::ConfigMap | Self::PersistentVolumeClaim | Self::Service => "",
            Self::StatefulSet => "apps",
            Self::Ingress => "networking.k8s.io",
            Self::HttpRoute => "gateway.networking.k8s.io",
            Self::Policy { group, .. } => group,
        }
    }

    /// The kind for a spelling of the API. Policies of a known group only by both; an unknown pair is a policy.
    #[must_use]
    pub fn from_group_kind(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("", "Secret") => Self::Secret,
            ("", "ConfigMap") => Self::ConfigMap,
            ("", "PersistentVolumeClaim") => Self::PersistentVolumeClaim,
            ("", "Service") => Self::Service,
            ("apps", "StatefulSet") => Self::StatefulSet,
            ("networking.k8s.io", "Ingress") => Self::Ingress,
            ("gateway.networking.k8s.io", "HTTPRoute") => Self::HttpRoute,
            _ => Self::Policy { group: group.to_owned(), kind: kind.to_owned() },
        }
    }
}

impl fmt::Display for ChildKind {
    /// The kind alone; a policy as `<Kind>.<group>`, because two controllers may use one kind name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy { group, kind } => write!(f, "{kind}.{group}"),
            other => f.write_str(other.kind()),
        }
    }
}

/// One child object within the Site's namespace. Its text form is `"<Kind>/<name>"`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChildKey {
    /// What it is.
    pub kind: ChildKind,
    /// `metadata.name`.
    pub name: String,
}

impl ChildKey {
    /// The key of one object.
    #[must_use]
    pub fn new(kind: ChildKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into() }
    }
}

impl fmt::Display for ChildKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// A text in `status.handled.children` that is not `"<Kind>/<name>"`: the entry counts as absent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a child key: expected \"<Kind>/<name>\"")]
pub struct ChildKeyError(pub String);

impl FromStr for ChildKey {
    type Err = ChildKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ChildKeyError(text.to_owned());
        let (kind, name) = text.split_once('/').filter(|(_, name)| !name.is_empty()).ok_or_else(refuse)?;
        let kind = match kind {
            "Secret" => ChildKind::Secret,
            "ConfigMap" => ChildKind::ConfigMap,
            "PersistentVolumeClaim" => ChildKind::PersistentVolumeClaim,
            "StatefulSet" => ChildKind::StatefulSet,
            "Service" => ChildKind::Service,
            "Ingress" => ChildKind::Ingress,
            "HTTPRoute" => ChildKind::HttpRoute,
            policy => {
                let (kind, group) = policy.split_once('.').ok_or_else(refuse)?;
                ChildKind::Policy { group: group.to_owned(), kind: kind.to_owned() }
            }
        };
        Ok(Self::new(kind, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_read_back() {
        let policy = ChildKind::from_group_kind("gateway.envoyproxy.io", "BackendTrafficPolicy");
        for kind in [
            ChildKind::Secret,
            ChildKind::ConfigMap,
            ChildKind::PersistentVolumeClaim,
            ChildKind::StatefulSet,
            ChildKind::Service,
            ChildKind::Ingress,
            ChildKind::HttpRoute,
            policy,
        ] {
            let key = ChildKey::new(kind.clone(), "a-files");
            assert_eq!(key.to_string().parse(), Ok(key.clone()));
            assert_eq!(ChildKind::from_group_kind(kind.group(), kind.kind()), kind);
        }
        assert_eq!(ChildKey::new(ChildKind::ConfigMap, "a-files").to_string(), "ConfigMap/a-files");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "Secret", "Secret/", "Pod/a", "/a"] {
            assert!(text.parse::<ChildKey>().is_err(), "{text}");
        }
    }
}
