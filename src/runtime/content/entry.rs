//! One file, folder or link, as it is told to clients.

use std::time::SystemTime;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

/// One file, folder or link.
#[derive(Serialize, ToSchema, Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name, relative to the folder that was asked for; no slash at either end.
    pub path: String,
    /// What it is, or what it leads to.
    #[serde(rename = "type")]
    pub entry_type: EntryType,
    /// Bytes; 0 for folders and broken links.
    pub size: u64,
    /// Last change of the content, RFC 3339.
    pub modified: String,
    /// Quoted entity tag of a file: another one for every version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// Of a link: what it points to, relative to the site's root. Absent when that is outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// What an entry is. A link counts as what it leads to.
#[derive(Serialize, ToSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum EntryType {
    /// A regular file.
    File,
    /// A folder.
    Directory,
    /// A link that leads nowhere or out of the site.
    Broken,
    /// A device, pipe or socket.
    Other,
}

impl EntryType {
    /// Of something that is no link.
    pub(super) fn of(metadata: &cap_std::fs::Metadata) -> Self {
        if metadata.is_dir() {
            Self::Directory
        } else if metadata.is_file() {
            Self::File
        } else {
            Self::Other
        }
    }
}

/// RFC 3339; a time that the calendar does not have is its beginning.
pub(super) fn modified(metadata: &cap_std::fs::Metadata) -> Timestamp {
    let time = metadata.modified().map_or(SystemTime::UNIX_EPOCH, cap_std::time::SystemTime::into_std);
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    Timestamp::from_second(time.as_second()).unwrap_or(Timestamp::UNIX_EPOCH)
}
