//! Reading a file: one open handle, so that whoever replaces it meanwhile changes nothing for this reader.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use cap_std::fs::{OpenOptions, OpenOptionsExt};
use jiff::Timestamp;
use rustix::fs::OFlags;

use super::note::{self, Note};
use super::{Content, ContentError, SitePath};

/// An open file.
#[derive(Debug)]
pub struct Opened {
    /// For reading, at its beginning.
    pub file: File,
    /// Bytes.
    pub size: u64,
    /// Last change.
    pub modified: Timestamp,
    /// Quoted entity tag: another one for every version of the file.
    pub etag: String,
}

impl Opened {
    /// What a client of S3 gave with this version of the file.
    #[must_use]
    pub fn note(&self) -> Option<Note> {
        note::read(&self.file)
    }

    /// Keeps another note of this version, where the file system can.
    pub fn keep(&self, note: &Note) -> Result<(), ContentError> {
        note::keep(&self.file, note).map(drop).map_err(|error| ContentError::io("describe", "the file", error))
    }

    /// Entity tag of S3, without quotes: the MD5 of the bytes where it is known, else one that nobody takes for an MD5.
    #[must_use]
    pub fn key_etag(&self) -> String {
        self.note().map_or_else(|| plain(&self.etag), |note| note.etag)
    }
}

impl Content {
    /// Opens a file, through links inside the site.
    pub fn read(&self, path: &SitePath) -> Result<Opened, ContentError> {
        let failed = |error| ContentError::io("read", path, error);
        let mut options = OpenOptions::new();
        // Not to wait for the writer of a pipe that somebody left here.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
        options.read(true).custom_flags(flags.cast_signed());
        let file = self.root.open_with(path.to_relative(), &options).map_err(failed)?;
        self.within(&file, path)?;
        opened(file.into_std(), path)
    }
}

fn opened(file: File, path: &SitePath) -> Result<Opened, ContentError> {
    let failed = |error| ContentError::io("look at", path, error);
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(ContentError::IsAFolder(path.to_string()));
    }
    if !metadata.is_file() {
        return Err(ContentError::Special(path.to_string()));
    }
    let modified = Timestamp::from_second(metadata.mtime()).unwrap_or(Timestamp::UNIX_EPOCH);
    Ok(Opened { size: metadata.len(), modified, etag: etag_of(&file).map_err(failed)?, file })
}

/// An entity tag of ours without quotes, of letters that S3 clients also send back without them.
#[must_use]
pub fn plain(etag: &str) -> String {
    etag.trim_matches('"').replace('.', "-")
}

pub(super) fn etag_of(file: &File) -> std::io::Result<String> {
    let metadata = file.metadata()?;
    Ok(etag(metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec()))
}

/// Of the file, its size and the time of its last change: a replacement is another file.
pub(super) fn etag(inode: u64, size: u64, seconds: i64, nanoseconds: i64) -> String {
    format!("\"{inode:x}-{size:x}-{seconds:x}.{nanoseconds:x}\"")
}
