//! Why a Site cannot be rendered. Messages name the field and what to do; they never contain a secret.

use thiserror::Error;

/// Why a Site cannot be rendered.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum RenderError {
    /// The platform does not know its public host yet. The Site waits; nobody's edit can help.
    #[error("routing.host is not set: set the public host name of the sites in the platform's settings")]
    HostMissing,
    /// The Site was never stored, so nothing can be owned by it.
    #[error("metadata.uid is missing: objects can only be made for a Site that the API server has stored")]
    UidMissing,
    /// A text of the Site cannot be used.
    #[error("{field}: {rule}")]
    Field {
        /// Path of the field in the Site.
        field: String,
        /// The rule that it breaks, and so what to do.
        rule: String,
    },
    /// A response header of the Site cannot be served.
    #[error("spec.configuration.headers[{name:?}]: {rule}")]
    Header {
        /// Name of the header, as given.
        name: String,
        /// The rule that it breaks, and so what to do.
        rule: String,
    },
    /// A text of the platform's settings cannot be used.
    #[error("setting {key}: {rule}")]
    Setting {
        /// Path of the setting.
        key: String,
        /// The rule that it breaks, and so what to do.
        rule: String,
    },
    /// An object would be larger than the API server accepts. Trying again at once cannot help.
    #[error(
        "{object} would have {bytes} bytes, the limit is {limit}: shorten spec.configuration.headers or the lists in spec.configuration.share"
    )]
    TooLarge {
        /// Kind and name of the object.
        object: String,
        /// Size of its data.
        bytes: usize,
        /// Largest size that is accepted.
        limit: usize,
    },
    /// A template of ours is broken: a defect of the program, not of the Site.
    #[error("template {template}: {message}")]
    Template {
        /// Name of the template.
        template: String,
        /// What the template engine says.
        message: String,
    },
}

impl RenderError {
    /// A broken rule on a field of the Site.
    pub(crate) fn field(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::Field { field: field.into(), rule: rule.into() }
    }

    /// A broken rule on a setting of the platform.
    pub(crate) fn setting(key: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::Setting { key: key.into(), rule: rule.into() }
    }
}
