//! What people and programs send, bound once: JSON and form data give the same form, and every rule is checked
//! before anything is written.
//!
//! | module | owns |
//! |---|---|
//! | [`bind`] | from a body to a form, with the field in every message |
//! | [`body`] | the body of a request as fields |
//! | [`site`] | creating and editing a Site |

pub mod bind;
pub mod body;
pub mod site;

use std::fmt;

/// What is wrong with one field: `[quota] must be at least 1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldError {
    /// The field as the form names it; empty for the body as a whole.
    pub field: String,
    /// The rule and what to do.
    pub message: String,
}

impl FieldError {
    /// What is wrong with a field.
    #[must_use]
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() { f.write_str(&self.message) } else { write!(f, "[{}] {}", self.field, self.message) }
    }
}
