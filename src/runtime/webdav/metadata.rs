//! What `WebDAV` is told about a name.

use std::time::SystemTime;

use dav_server::fs::{DavDirEntry, DavMetaData, FsFuture, FsResult};
use jiff::Timestamp;

use crate::runtime::content::{Entry, EntryType};

/// What is known of a name.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub folder: bool,
    pub link: bool,
    pub size: u64,
    pub modified: Timestamp,
    pub etag: Option<String>,
}

impl Seen {
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            folder: entry.entry_type == EntryType::Directory,
            link: entry.target.is_some() || entry.entry_type == EntryType::Broken,
            size: entry.size,
            modified: entry.modified.parse().unwrap_or(Timestamp::UNIX_EPOCH),
            etag: entry.etag.clone(),
        }
    }
}

impl DavMetaData for Seen {
    fn len(&self) -> u64 {
        self.size
    }

    fn modified(&self) -> FsResult<SystemTime> {
        Ok(SystemTime::from(self.modified))
    }

    fn is_dir(&self) -> bool {
        self.folder
    }

    fn is_symlink(&self) -> bool {
        self.link
    }

    fn etag(&self) -> Option<String> {
        self.etag.as_ref().map(|tag| tag.trim_matches('"').to_owned())
    }
}

/// One name in a folder.
pub(super) struct Named {
    pub name: String,
    pub seen: Seen,
}

impl DavDirEntry for Named {
    fn name(&self) -> Vec<u8> {
        self.name.clone().into_bytes()
    }

    fn metadata(&'_ self) -> FsFuture<'_, Box<dyn DavMetaData>> {
        let seen: Box<dyn DavMetaData> = Box::new(self.seen.clone());
        Box::pin(async { Ok(seen) })
    }
}
