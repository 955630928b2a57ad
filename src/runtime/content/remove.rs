//! Removing files, links and whole trees. Links are removed, never followed.

use std::path::Path;

use super::path::is_kept_apart;
use super::{Content, ContentError, Place, SitePath, walk};

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Files and links.
    pub files: u64,
    /// Bytes that are free again.
    pub bytes: u64,
}

impl Content {
    /// Removes what a path names, with all below it; of the root, all that it contains.
    ///
    /// A tree vanishes in one step and its space is free when this returns.
    pub fn remove(&self, path: &SitePath) -> Result<Removed, ContentError> {
        if path.is_root() {
            return self.remove_all();
        }
        self.remove_one(&self.place(path, "")?, path)
    }

    fn remove_all(&self) -> Result<Removed, ContentError> {
        let failed = |error| ContentError::io("remove", "", error);
        let mut removed = Removed::default();
        for entry in self.root.entries().map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if is_kept_apart(&name) {
                continue;
            }
            let place = Place {
                folder: self.root.try_clone().map_err(failed)?,
                name: name.into_string().map_err(|name| ContentError::NotPermitted(name.to_string_lossy().into()))?,
            };
            match self.remove_one(&place, &SitePath::root()) {
                Ok(one) => {
                    removed.files += one.files;
                    removed.bytes += one.bytes;
                }
                Err(ContentError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    fn remove_one(&self, place: &Place, path: &SitePath) -> Result<Removed, ContentError> {
        let failed = |error| ContentError::io("remove", path, error);
        let metadata = place.folder.symlink_metadata(&place.name).map_err(failed)?;
        let mut count = walk::Count::default();
        if metadata.is_dir() {
            let name = uuid::Uuid::new_v4().simple().to_string();
            {
                // No file is being moved into it while it goes.
                let _book = self.ledger.book()?;
                place.folder.rename(&place.name, &self.trash, &name).map_err(failed)?;
            }
            let result = walk::gone(walk::remove(&self.trash, Path::new(&name), &mut count));
            self.release(count.bytes);
            result.map_err(failed)?;
        } else {
            let mut book = self.ledger.book()?;
            walk::remove(&place.folder, Path::new(&place.name), &mut count).map_err(failed)?;
            book.subtract(count.bytes);
        }
        Ok(Removed { files: count.files, bytes: count.bytes })
    }
}
