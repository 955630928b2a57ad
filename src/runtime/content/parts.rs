//! Files that are uploaded in parts: each part is a file in the state folder until all are put together.
//!
//! Owns `.sites/parts/<id>/`: `about.json`, and `<number>-<MD5>` for each part. All of it counts. What nobody adds to
//! for a day is removed.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, OpenOptions, OpenOptionsExt};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::staging::Staged;
use super::write::Upload;
use super::{Content, ContentError, Note, SitePath, WriteOptions, Written, walk};

/// How long an upload waits for its next part.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// Most uploads at a time.
const MAX_UPLOADS: usize = 1000;
const ABOUT: &str = "about.json";
/// Behind the id of an upload that is being put together.
const CLOSING: &str = ".closing";

/// An upload in parts.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct PartedUpload {
    /// Names it.
    pub id: String,
    /// What it becomes.
    pub key: String,
    /// User metadata of the file.
    pub metadata: BTreeMap<String, String>,
    /// When it began.
    pub begun: Timestamp,
}

/// A part that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its place in the file.
    pub number: u32,
    /// Lower-case hexadecimal digits.
    pub md5: String,
    /// Bytes.
    pub size: u64,
    /// When it came.
    pub modified: Timestamp,
}

impl Part {
    fn name(number: u32, md5: &str) -> String {
        format!("{number:05}-{md5}")
    }
}

impl Content {
    /// Begins an upload in parts.
    pub fn begin_parts(
        &self,
        path: &SitePath,
        metadata: BTreeMap<String, String>,
    ) -> Result<PartedUpload, ContentError> {
        let failed = |error| ContentError::io("begin", path, error);
        if self.parted_uploads()?.len() >= MAX_UPLOADS {
            let advice = "there are too many uploads in parts: end some first";
            return Err(ContentError::Exists { path: path.to_string(), advice });
        }
        let id = uuid::Uuid::new_v4().simple().to_string();
        let upload = PartedUpload { id, key: path.to_string(), metadata, begun: Timestamp::now() };
        let bytes = serde_json::to_vec(&upload).map_err(|error| failed(error.into()))?;
        let length = bytes.len() as u64;
        self.reserve(length)?;
        let made = self.parts.create_dir_with(&upload.id, DirBuilder::new().mode(0o700)).and_then(|()| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600);
            let mut file = self.parts.open_dir(&upload.id)?.open_with(ABOUT, &options)?;
            file.write_all(&bytes)
        });
        if let Err(error) = made {
            let mut count = walk::Count::default();
            // Nothing of it need be there; what is left goes after a day.
            let _ = walk::remove(&self.parts, Path::new(&upload.id), &mut count);
            self.release(length);
            return Err(failed(error));
        }
        Ok(upload)
    }

    /// An upload in parts.
    pub fn parted_upload(&self, id: &str) -> Result<PartedUpload, ContentError> {
        about(&self.upload_folder(id)?, id)
    }

    /// All uploads in parts that wait for more, by key and beginning.
    pub fn parted_uploads(&self) -> Result<Vec<PartedUpload>, ContentError> {
        let failed = |error| ContentError::io("list", "the uploads", error);
        let mut uploads = Vec::new();
        for entry in self.parts.entries().map_err(failed)? {
            let Ok(id) = entry.map_err(failed)?.file_name().into_string() else { continue };
            // Ended meanwhile, or being put together: none.
            if let Ok(upload) = self.parted_upload(&id) {
                uploads.push(upload);
            }
        }
        uploads.sort_by(|one, other| (&one.key, one.begun, &one.id).cmp(&(&other.key, other.begun, &other.id)));
        Ok(uploads)
    }

    /// The parts of an upload, by number.
    pub fn parts(&self, id: &str) -> Result<Vec<Part>, ContentError> {
        list(&self.upload_folder(id)?).map_err(|error| ContentError::io("list", "the parts", error))
    }

    /// Begins a part, of `length` bytes if that is known.
    pub fn write_part(self: &Arc<Self>, id: &str, length: Option<u64>) -> Result<Upload, ContentError> {
        self.upload_folder(id)?;
        Ok(Upload::new(Staged::new(self.clone(), length)?, SitePath::root()))
    }

    /// Ends an upload; its parts are free again.
    pub fn abort_parts(&self, id: &str) -> Result<(), ContentError> {
        self.upload_folder(id)?;
        self.remove_upload(id)
    }

    /// Puts the chosen parts together, in their order, and moves the file into place. If that fails the upload is as it
    /// was. `etag` is what the file will have.
    pub fn complete_parts(
        self: &Arc<Self>,
        upload: &PartedUpload,
        chosen: &[Part],
        etag: String,
        options: &WriteOptions,
    ) -> Result<Written, ContentError> {
        let failed = |error| ContentError::io("close", "the upload", error);
        self.upload_folder(&upload.id)?;
        // Nobody adds to it, ends it or puts it together a second time.
        let closing = format!("{}{CLOSING}", upload.id);
        self.parts.rename(&upload.id, &self.parts, &closing).map_err(failed)?;
        let result = self.put_together(upload, &closing, chosen, etag, options);
        if result.is_ok() {
            self.remove_upload(&closing)?;
        } else if let Err(error) = self.parts.rename(&closing, &self.parts, &upload.id) {
            tracing::warn!(%error, "an upload in parts stays closed and goes after a day");
        }
        result
    }

    fn put_together(
        self: &Arc<Self>,
        upload: &PartedUpload,
        closing: &str,
        chosen: &[Part],
        etag: String,
        options: &WriteOptions,
    ) -> Result<Written, ContentError> {
        let path = SitePath::from_text(&upload.key)?;
        let failed = |error| ContentError::io("put together", &path, error);
        let total = chosen.iter().map(|part| part.size).sum();
        if self.available()? < total {
            return Err(ContentError::VolumeFull);
        }
        let folder = self.parts.open_dir(closing).map_err(failed)?;
        // Held for the parts already: it is not asked for twice.
        let mut whole = self.write(path.clone(), None)?;
        for part in chosen {
            let mut file = folder.open(Part::name(part.number, &part.md5)).map_err(failed)?.into_std();
            whole.written += std::io::copy(&mut file, &mut whole.staged.file).map_err(failed)?;
        }
        if whole.written != total {
            return Err(ContentError::Changed(upload.key.clone()));
        }
        self.ledger.book()?.add(total);
        whole.staged.reserved = total;
        whole.note(Note { etag, metadata: upload.metadata.clone() });
        whole.finish(options)
    }

    /// Removes uploads that nobody has added to for long.
    pub(super) fn clean_parts(&self, count: &mut walk::Count) -> Result<(), ContentError> {
        let failed = |error| ContentError::io("clean", "the uploads", error);
        for entry in self.parts.entries().map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let changed = self.parts.symlink_metadata(&name).and_then(|metadata| metadata.modified());
            let Ok(changed) = changed else { continue };
            if changed.into_std().elapsed().is_ok_and(|age| age > PATIENCE) {
                walk::gone(walk::remove(&self.parts, Path::new(&name), count)).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn upload_folder(&self, id: &str) -> Result<Dir, ContentError> {
        let unknown = || ContentError::NotFound(format!("the upload {id}"));
        if id.len() != 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(unknown());
        }
        match self.parts.open_dir(id) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(unknown()),
            folder => folder.map_err(|error| ContentError::io("open", "the upload", error)),
        }
    }

    fn remove_upload(&self, name: &str) -> Result<(), ContentError> {
        let mut count = walk::Count::default();
        let result = walk::gone(walk::remove(&self.parts, Path::new(name), &mut count));
        self.release(count.bytes);
        result.map_err(|error| ContentError::io("end", "the upload", error))
    }
}

impl Upload {
    /// Moves the bytes into place as a part. One of the same number is replaced.
    pub fn finish_part(mut self, id: &str, number: u32, md5: &str) -> Result<Part, ContentError> {
        let failed = |error| ContentError::io("write", "the part", error);
        self.settle().map_err(failed)?;
        let content = self.staged.content.clone();
        let mut book = content.ledger.book()?;
        let folder = content.upload_folder(id)?;
        let old = list(&folder).map_err(failed)?;
        content.staging.rename(&self.staged.name, &folder, Part::name(number, md5)).map_err(failed)?;
        self.staged.moved = true;
        book.subtract(self.staged.reserved - self.written);
        for part in old.into_iter().filter(|part| part.number == number) {
            if part.md5 != md5 {
                walk::gone(folder.remove_file(Part::name(number, &part.md5))).map_err(failed)?;
            }
            book.subtract(part.size);
        }
        Ok(Part { number, md5: md5.to_owned(), size: self.written, modified: Timestamp::now() })
    }
}

fn about(folder: &Dir, id: &str) -> Result<PartedUpload, ContentError> {
    let failed = |error| ContentError::io("look at", "the upload", error);
    let unknown = || ContentError::NotFound(format!("the upload {id}"));
    let bytes = match folder.read(ABOUT) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(unknown()),
        bytes => bytes.map_err(failed)?,
    };
    serde_json::from_slice(&bytes).map_err(|_| unknown())
}

fn list(folder: &Dir) -> std::io::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for entry in folder.entries()? {
        let entry = entry?;
        let name = entry.file_name();
        let Some((number, md5)) = name.to_str().and_then(|name| name.split_once('-')) else { continue };
        let Ok(number) = number.parse() else { continue };
        let Some(metadata) = walk::gone(entry.metadata().map(Some))? else { continue };
        let modified = super::entry::modified(&metadata);
        parts.push(Part { number, md5: md5.to_owned(), size: metadata.len(), modified });
    }
    parts.sort_by_key(|part| part.number);
    Ok(parts)
}
