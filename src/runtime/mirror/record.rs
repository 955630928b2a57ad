//! What the mirror wrote: its only licence to write over or delete a file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Everything that was written, by path.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Files and links.
    #[serde(default)]
    pub files: BTreeMap<String, Written>,
}

/// One file.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The source's version: its entity tag, or its date of change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Our entity tag of what was written; `link:<target>` of a link.
    pub etag: String,
}
