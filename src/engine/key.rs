//! The name under which an object, its actor and its facts meet.

use std::fmt;
use std::sync::Arc;

/// Namespace and name of an object. Cheap to clone: every queue, map and message carries one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey(Arc<(Box<str>, Box<str>)>);

impl ObjectKey {
    /// A key; `namespace` is empty for resources of the whole cluster.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self(Arc::new((namespace.into(), name.into())))
    }

    /// Namespace, empty for resources of the whole cluster.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.0.0
    }

    /// Name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.1
    }

    /// The namespace as the client takes it: `None` for resources of the whole cluster.
    #[must_use]
    pub fn scope(&self) -> Option<&str> {
        Some(self.namespace()).filter(|namespace| !namespace.is_empty())
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope() {
            Some(namespace) => write!(f, "{namespace}/{}", self.name()),
            None => f.write_str(self.name()),
        }
    }
}
