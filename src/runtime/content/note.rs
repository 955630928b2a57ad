//! What a client of S3 gave with a file, or is told of it, and no file system keeps: its entity tag and metadata.
//!
//! Owns one extended attribute. It goes where the file goes, and is void once somebody else changes the file. Where a
//! file system has no attributes, nothing is kept. Whoever can write the file can write the attribute: what is read is
//! judged like any text of a user.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

const ATTRIBUTE: &str = "user.sites.s3";
/// More than one attribute of ours ever has, and what every file system with attributes takes.
const MAX_BYTES: usize = 4 << 10;
/// Most bytes of names and values of a file's metadata, as in S3.
pub const MAX_METADATA: usize = 2 << 10;
/// A folder that was asked for by name, and stays when the last file below it goes.
const MARKER: &[u8] = b"folder";

/// What is kept of a file.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Entity tag without quotes: the MD5 of the bytes, or `<MD5 of the parts' MD5s>-<number of parts>`.
    pub etag: String,
    /// User metadata; the names without `x-amz-meta-`.
    pub metadata: BTreeMap<String, String>,
}

/// A note, and the version of the file that it is about.
#[derive(Serialize, Deserialize)]
struct Kept {
    size: u64,
    seconds: i64,
    nanoseconds: i64,
    #[serde(flatten)]
    note: Note,
}

impl Note {
    /// Whether it is one that we would write.
    fn is_sound(&self) -> bool {
        let tag = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        let name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        !self.etag.is_empty()
            && self.etag.bytes().all(tag)
            && self
                .metadata
                .iter()
                .all(|(key, value)| !key.is_empty() && key.bytes().all(name) && !value.chars().any(char::is_control))
    }
}

/// Keeps a note of the file as it is now, if its file system can and it fits. Says whether it is kept.
pub(super) fn keep(file: &File, note: &Note) -> io::Result<bool> {
    let metadata = file.metadata()?;
    let (size, seconds, nanoseconds) = (metadata.size(), metadata.mtime(), metadata.mtime_nsec());
    let bytes = serde_json::to_vec(&Kept { size, seconds, nanoseconds, note: note.clone() })?;
    if bytes.len() > MAX_BYTES || !note.is_sound() {
        return Ok(false);
    }
    set(file, &bytes)
}

/// The note of an open file, if there is a true one.
pub(super) fn read(file: &File) -> Option<Note> {
    let mut bytes = vec![0; MAX_BYTES];
    let length = fgetxattr(file, ATTRIBUTE, bytes.as_mut_slice()).ok()?;
    let kept: Kept = serde_json::from_slice(bytes.get(..length)?).ok()?;
    let metadata = file.metadata().ok()?;
    let now = (metadata.size(), metadata.mtime(), metadata.mtime_nsec());
    (now == (kept.size, kept.seconds, kept.nanoseconds) && kept.note.is_sound()).then_some(kept.note)
}

/// Marks a folder as asked for.
pub(super) fn mark(folder: &impl AsFd) -> io::Result<bool> {
    set(folder, MARKER)
}

/// Takes the mark away.
pub(super) fn unmark(folder: &impl AsFd) {
    // It has none, or cannot have one: the same.
    let _ = fremovexattr(folder, ATTRIBUTE);
}

/// Whether a folder is marked.
pub(super) fn is_marked(folder: &impl AsFd) -> bool {
    let mut bytes = [0; MARKER.len()];
    fgetxattr(folder, ATTRIBUTE, bytes.as_mut_slice()).is_ok_and(|length| &bytes[..length] == MARKER)
}

fn set(handle: &impl AsFd, bytes: &[u8]) -> io::Result<bool> {
    match fsetxattr(handle, ATTRIBUTE, bytes, XattrFlags::empty()) {
        Ok(()) => Ok(true),
        // No attributes here, or none so long.
        Err(Errno::NOTSUP | Errno::RANGE | Errno::TOOBIG | Errno::NOSPC | Errno::DQUOT | Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_ends_with_the_version_it_is_about() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "one").unwrap();
        let file = File::open(&path).unwrap();
        let metadata = BTreeMap::from([("mtime".to_owned(), "1.5".to_owned())]);
        let note = Note { etag: "f97c5d29941bfb1b2fdab0874906ab82".to_owned(), metadata };
        if !keep(&file, &note).unwrap() {
            return;
        }
        assert_eq!(read(&file), Some(note.clone()));
        std::fs::rename(&path, folder.path().join("moved")).unwrap();
        assert_eq!(read(&file), Some(note), "it goes with the file");
        std::fs::write(folder.path().join("moved"), "longer").unwrap();
        assert_eq!(read(&file), None, "the file is another one");
    }

    #[test]
    fn what_others_wrote_is_judged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "one").unwrap();
        let file = File::open(&path).unwrap();
        for (etag, key, value) in [("", "a", "b"), ("x\"y", "a", "b"), ("ab", "A b", "c"), ("ab", "a", "b\r\nc: d")] {
            let metadata = BTreeMap::from([(key.to_owned(), value.to_owned())]);
            let note = Note { etag: etag.to_owned(), metadata };
            assert!(!keep(&file, &note).unwrap(), "{note:?}");
            let about = file.metadata().unwrap();
            let (size, seconds, nanoseconds) = (about.size(), about.mtime(), about.mtime_nsec());
            let forged = serde_json::to_vec(&Kept { size, seconds, nanoseconds, note }).unwrap();
            set(&file, &forged).unwrap();
            assert_eq!(read(&file), None, "{etag} {key} {value}");
        }
    }
}
