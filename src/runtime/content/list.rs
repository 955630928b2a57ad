//! Listing a folder, and looking at one name.

use std::io::ErrorKind;
use std::path::Path;

use cap_std::fs::{Dir, MetadataExt};

use super::entry::{Entry, EntryType, modified};
use super::path::is_kept_apart;
use super::{Content, ContentError, STATE_FOLDER, SitePath, link, read, walk};

/// Most entries in one answer.
pub const MAX_ENTRIES: usize = 200_000;
/// Folders that a recursive listing goes down: deeper ones than a path can name are not ours.
const MAX_DEPTH: usize = 128;

/// What to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListOptions {
    /// Go down into folders; never through links.
    pub recursive: bool,
    /// Only this type.
    pub only: Option<EntryType>,
    /// At most so many entries; more than [`MAX_ENTRIES`] never.
    pub limit: Option<usize>,
}

/// What is in a folder, by name.
#[derive(Debug, Default)]
pub struct Listing {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Whether there are more than the limit allows.
    pub truncated: bool,
}

impl Content {
    /// Lists a folder. The state folder is not in it.
    pub fn list(&self, path: &SitePath, options: &ListOptions) -> Result<Listing, ContentError> {
        let folder = self.folder(path)?;
        let limit = options.limit.unwrap_or(MAX_ENTRIES).min(MAX_ENTRIES);
        let mut listing = Listing::default();
        self.collect(&folder, "", MAX_DEPTH, options, limit, &mut listing)
            .map_err(|error| ContentError::io("list", path, error))?;
        listing.entries.sort_by(|one, other| one.path.cmp(&other.path));
        if listing.entries.len() > limit {
            listing.entries.truncate(limit);
            listing.truncated = true;
        }
        Ok(listing)
    }

    /// Looks at one name, through links.
    pub fn entry(&self, path: &SitePath) -> Result<Entry, ContentError> {
        let Some((parent, name)) = path.split() else {
            let metadata = self.root.dir_metadata().map_err(|error| ContentError::io("look at", "", error))?;
            return Ok(seen(String::new(), &metadata));
        };
        let folder = self.folder(&parent)?;
        self.described(&folder, name, name.to_owned()).map_err(|error| ContentError::io("look at", path, error))
    }

    fn collect(
        &self,
        folder: &Dir,
        prefix: &str,
        depth: usize,
        options: &ListOptions,
        limit: usize,
        listing: &mut Listing,
    ) -> std::io::Result<()> {
        for found in folder.entries()? {
            let found = found?;
            let name = found.file_name();
            if is_kept_apart(&name) && (name == STATE_FOLDER || prefix.is_empty()) {
                continue;
            }
            let name = name.to_string_lossy().into_owned();
            let entry = match self.described(folder, &name, format!("{prefix}{name}")) {
                Ok(entry) => entry,
                // Gone while we looked, or a name that is not UTF-8 and that no client could ask for.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let real_folder = entry.entry_type == EntryType::Directory && !found.file_type()?.is_symlink();
            let below = (options.recursive && real_folder && depth > 0).then(|| format!("{}/", entry.path));
            if options.only.is_none_or(|only| only == entry.entry_type) {
                listing.entries.push(entry);
            }
            // In full, so that the cut is by name; a recursive listing of a huge tree ends where it is cut anyway.
            if listing.entries.len() > limit.max(MAX_ENTRIES) {
                listing.truncated = true;
                return Ok(());
            }
            if let Some(below) = below {
                match walk::enter(folder, Path::new(&name)) {
                    Ok(folder) => self.collect(&folder, &below, depth - 1, options, limit, listing)?,
                    // Gone, or closed to us: nothing to show.
                    Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    pub(super) fn described(&self, folder: &Dir, name: &str, path: String) -> std::io::Result<Entry> {
        let metadata = folder.symlink_metadata(name)?;
        if !metadata.is_symlink() {
            return Ok(seen(path, &metadata));
        }
        let target = link::read(self, folder, name)?;
        // Through the root: a link may lead above the folder it is in.
        let led = target.as_ref().and_then(|target| self.root.metadata(target.to_relative()).ok());
        let target = target.map(|target| target.to_string());
        Ok(match led {
            Some(led) => Entry { target, ..seen(path, &led) },
            None => Entry { target, entry_type: EntryType::Broken, size: 0, ..seen(path, &metadata) },
        })
    }
}

fn seen(path: String, metadata: &cap_std::fs::Metadata) -> Entry {
    let entry_type = EntryType::of(metadata);
    let size = if entry_type == EntryType::File { metadata.len() } else { 0 };
    let tag = || read::etag(metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec());
    let etag = (entry_type == EntryType::File).then(tag);
    Entry { path, entry_type, size, modified: modified(metadata).to_string(), etag, target: None }
}
