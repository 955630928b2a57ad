//! Writing a file: complete under another name first, then moved into place in one step.

use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use cap_std::fs::MetadataExt;
use jiff::Timestamp;

use super::note::{self, Note};
use super::staging::Staged;
use super::{ATTEMPTS, Content, ContentError, FILE_MODE, Place, SitePath, read, walk};

const FILE_WANTED: &str = "name the file to write";

/// A file that is being written.
pub struct Upload {
    pub(super) staged: Staged,
    pub(super) path: SitePath,
    pub(super) written: u64,
    note: Option<Note>,
}

/// What must be true of the file that is replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    #[default]
    Any,
    /// There is none.
    Absent,
    /// It has this entity tag.
    Matches(String),
}

/// How a file is moved into place.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Keep the file that is replaced, as `<name>.backup-<UTC time>` beside it.
    pub backup: bool,
    /// What must be true of the file that is replaced.
    pub condition: Condition,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes.
    pub size: u64,
    /// Whether there was none before.
    pub created: bool,
    /// Where the replaced file is kept.
    pub backup: Option<String>,
    /// Entity tag of the new file.
    pub etag: String,
    /// Whether the upload's note is kept with it.
    pub noted: bool,
}

impl Content {
    /// Begins a file of `length` bytes, if that is known. What will surely be refused is refused now.
    pub fn write(self: &Arc<Self>, path: SitePath, length: Option<u64>) -> Result<Upload, ContentError> {
        if path.is_root() {
            return Err(ContentError::Root(FILE_WANTED));
        }
        match self.entry(&path) {
            Ok(found) if found.entry_type == super::EntryType::Directory => {
                return Err(ContentError::IsAFolder(path.to_string()));
            }
            Ok(_) | Err(ContentError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(Upload::new(Staged::new(self.clone(), length)?, path))
    }
}

impl Upload {
    pub(super) const fn new(staged: Staged, path: SitePath) -> Self {
        Self { staged, path, written: 0, note: None }
    }

    /// Keeps this with the file, where its file system can.
    pub fn note(&mut self, note: Note) {
        self.note = Some(note);
    }

    /// Adds bytes at the end.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), ContentError> {
        let end = self.written + bytes.len() as u64;
        self.staged.hold(end)?;
        self.staged.file.write_all(bytes).map_err(|error| ContentError::io("write", &self.path, error))?;
        self.written = end;
        Ok(())
    }

    /// Writes at any place, for clients that do not begin at the beginning.
    pub fn write_at(&mut self, position: u64, bytes: &[u8]) -> Result<(), ContentError> {
        let end = position.saturating_add(bytes.len() as u64);
        self.staged.hold(end)?;
        let failed = |error| ContentError::io("write", &self.path, error);
        self.staged.file.seek(SeekFrom::Start(position)).map_err(failed)?;
        self.staged.file.write_all(bytes).map_err(failed)?;
        self.written = self.written.max(end);
        Ok(())
    }

    /// Bytes so far.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Moves the file into place. Readers see the old file or the new one, never a part.
    pub fn finish(mut self, options: &WriteOptions) -> Result<Written, ContentError> {
        let failed = |path: &SitePath, error| ContentError::io("write", path, error);
        let noted = self.settle().map_err(|error| failed(&self.path, error))?;
        let file = &self.staged.file;
        let etag = read::etag_of(file).map_err(|error| failed(&self.path, error))?;
        let content = self.staged.content.clone();
        let mut attempt = 0;
        let (place, created, backup) = loop {
            attempt += 1;
            match self.place(&content, options) {
                // Somebody removed the folder between making and using it.
                Err(ContentError::NotFound(_)) if attempt < ATTEMPTS => {}
                result => break result?,
            }
        };
        // The name lasts as the bytes do.
        walk::sync(&place.folder).map_err(|error| failed(&self.path, error))?;
        Ok(Written { size: self.written, created, backup, etag, noted })
    }

    /// The bytes are complete: makes them last, and says whether the note is kept with them.
    pub(super) fn settle(&self) -> std::io::Result<bool> {
        let file = &self.staged.file;
        file.set_len(self.written)?;
        file.set_permissions(std::fs::Permissions::from_mode(FILE_MODE))?;
        // After the last change of the file: it is about this version.
        let noted = self.note.as_ref().map_or(Ok(false), |note| note::keep(file, note))?;
        file.sync_all()?;
        Ok(noted)
    }

    /// Under the ledger's lock, so that of two writers of one file each is counted against what it replaced.
    fn place(
        &mut self,
        content: &Content,
        options: &WriteOptions,
    ) -> Result<(Place, bool, Option<String>), ContentError> {
        let mut book = content.ledger.book()?;
        let place = content.place_made(&self.path, FILE_WANTED)?;
        let old = match place.folder.symlink_metadata(&place.name) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(ContentError::io("look at", &self.path, error)),
        };
        if old.as_ref().is_some_and(cap_std::fs::Metadata::is_dir) {
            return Err(ContentError::IsAFolder(self.path.to_string()));
        }
        match (&options.condition, &old) {
            (Condition::Absent, Some(_)) => {
                let advice = "the request asked for a new file";
                return Err(ContentError::Exists { path: self.path.to_string(), advice });
            }
            (Condition::Matches(wanted), old) => {
                let etag = old.as_ref().map(|old| read::etag(old.ino(), old.size(), old.mtime(), old.mtime_nsec()));
                if etag.as_ref() != Some(wanted) {
                    return Err(ContentError::Changed(self.path.to_string()));
                }
            }
            _ => {}
        }
        let old_file = old.as_ref().filter(|old| old.is_file());
        let backup = match old_file {
            Some(_) if options.backup => Some(keep(&place, &self.path)?),
            _ => None,
        };
        content
            .staging
            .rename(&self.staged.name, &place.folder, &place.name)
            .map_err(|error| ContentError::io("write", &self.path, error))?;
        self.staged.moved = true;
        book.subtract(self.staged.reserved - self.written);
        if let (Some(old), None) = (old_file, &backup) {
            book.subtract(old.len());
        }
        Ok((place, old.is_none(), backup))
    }
}

/// Gives the file that is about to be replaced a second name. It is never away: the first name stays until the new file
/// takes it.
fn keep(place: &Place, path: &SitePath) -> Result<String, ContentError> {
    let now = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let base: String = place
        .name
        .chars()
        .scan(0, |bytes, letter| {
            *bytes += letter.len_utf8();
            (*bytes <= 200).then_some(letter)
        })
        .collect();
    for number in 1..1000 {
        let more = if number == 1 { String::new() } else { format!("-{number}") };
        let name = format!("{base}.backup-{now}{more}");
        match place.folder.hard_link(&place.name, &place.folder, &name) {
            Ok(()) => {
                let parent = path.split().map(|(parent, _)| parent).unwrap_or_default();
                return Ok(SitePath::from_text(&format!("{parent}/{name}"))?.to_string());
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(ContentError::io("back up", path, error)),
        }
    }
    Err(ContentError::Exists { path: path.to_string(), advice: "there are too many backups of this second" })
}
