//! What a resource is called, and where it lives below the API server's root.
//!
//! Owns the paths of requests; must not send anything.

use std::borrow::Cow;
use std::fmt::{self, Debug};

use kube::Resource;
use kube::api::ApiResource;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Any typed object that the API server can store: implemented for all that fit.
pub trait ApiObject:
    Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
}

impl<K> ApiObject for K where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
}

/// A kind of resource, for the calls that have no Rust type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// Version within the group, such as `v1`.
    pub version: Cow<'static, str>,
    /// Name in the singular, as in manifests: `StatefulSet`.
    pub kind: Cow<'static, str>,
    /// Name in paths: `statefulsets`.
    pub plural: Cow<'static, str>,
    /// Whether objects live in a namespace; the namespace of a call is ignored otherwise.
    pub namespaced: bool,
}

impl Kind {
    /// A kind known when the program is written.
    #[must_use]
    pub const fn new(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
        namespaced: bool,
    ) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            kind: Cow::Borrowed(kind),
            plural: Cow::Borrowed(plural),
            namespaced,
        }
    }

    /// The kind of a type. Whether it is namespaced cannot be asked of a type: it counts as namespaced, and
    /// a call without a namespace goes to the cluster-wide path, which is what a cluster-scoped kind needs.
    #[must_use]
    pub fn of<K: Resource<DynamicType = ()>>() -> Self {
        Self {
            group: Cow::Owned(K::group(&()).into_owned()),
            version: Cow::Owned(K::version(&()).into_owned()),
            kind: Cow::Owned(K::kind(&()).into_owned()),
            plural: Cow::Owned(K::plural(&()).into_owned()),
            namespaced: true,
        }
    }

    /// `apps/v1`, or `v1` in the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Path of the kind's collection, without a query.
    #[must_use]
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = self.version_path();
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }

    /// Path that lists what the API server serves of the kind's group and version.
    #[must_use]
    pub fn version_path(&self) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        format!("{root}/{}", self.api_version())
    }

    pub(super) fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.to_string(),
            version: self.version.to_string(),
            api_version: self.api_version(),
            kind: self.kind.to_string(),
            plural: self.plural.to_string(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.api_version(), self.kind)
    }
}

/// Whether a text may stand as one segment of a path: nothing that would address another resource.
pub(super) fn is_path_segment(text: &str) -> bool {
    !text.is_empty()
        && text != "."
        && text != ".."
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':'))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::StatefulSet;
    use k8s_openapi::api::core::v1::PersistentVolume;

    use super::*;

    #[test]
    fn paths() {
        let set = Kind::of::<StatefulSet>();
        assert_eq!(set.path(Some("a")), "/apis/apps/v1/namespaces/a/statefulsets");
        assert_eq!(Kind::of::<PersistentVolume>().path(None), "/api/v1/persistentvolumes");
        let class = Kind::new("gateway.networking.k8s.io", "v1", "GatewayClass", "gatewayclasses", false);
        assert_eq!(class.path(Some("a")), "/apis/gateway.networking.k8s.io/v1/gatewayclasses");
    }

    #[test]
    fn a_name_cannot_leave_its_segment() {
        for bad in ["", ".", "..", "a/b", "a%2fb", "a?b", "a#b", "a b", "é", "a\\b", "a\0"] {
            assert!(!is_path_segment(bad), "{bad:?}");
        }
        for good in ["a", "a-b.c", "system:auth", "demo_1"] {
            assert!(is_path_segment(good), "{good:?}");
        }
    }
}
