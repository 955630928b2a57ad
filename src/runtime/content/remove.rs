//! Removing files, links and whole trees. Links are removed, never followed.

use std::path::Path;

use super::path::is_kept_apart;
use super::{Content, ContentError, Place, SitePath, note, walk};

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

    /// Removes a file or link, and the folders that this leaves empty unless they were asked for; never a tree.
    ///
    /// Nothing there, or a folder: it is gone already. Says whether it was there.
    pub fn remove_key(&self, path: &SitePath) -> Result<bool, ContentError> {
        let failed = |error| ContentError::io("remove", path, error);
        let mut book = self.ledger.book()?;
        let place = match self.place(path, "name a file") {
            Err(ContentError::NotFound(_) | ContentError::NotAFolder(_)) => return Ok(false),
            place => place?,
        };
        let linked = |metadata: cap_std::fs::Metadata| if metadata.is_dir() { None } else { Some(()) };
        match place.folder.symlink_metadata(&place.name).map(linked) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Ok(None) => return Ok(false),
            found => found.map(drop).map_err(failed)?,
        }
        let mut count = walk::Count::default();
        walk::remove(&place.folder, Path::new(&place.name), &mut count).map_err(failed)?;
        book.subtract(count.bytes);
        self.prune(path);
        Ok(true)
    }

    /// Makes a folder that stays when the last file below it goes.
    pub fn make_marked_folder(&self, path: &SitePath) -> Result<(), ContentError> {
        // Nobody removes it for being empty between making and marking it.
        let _book = self.ledger.book()?;
        self.make_folders(path)?;
        note::mark(&self.open_folder(path)?).map(drop).map_err(|error| ContentError::io("mark", path, error))
    }

    /// Whether a path names a folder.
    #[must_use]
    pub fn is_folder(&self, path: &SitePath) -> bool {
        self.folder(path).is_ok()
    }

    /// Takes a folder's mark away, and the folder if it is empty.
    pub fn remove_marked_folder(&self, path: &SitePath) -> Result<(), ContentError> {
        let _book = self.ledger.book()?;
        match self.open_folder(path) {
            Ok(folder) => note::unmark(&folder),
            Err(ContentError::NotFound(_) | ContentError::NotAFolder(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
        if let Ok(place) = self.place(path, "")
            && place.folder.remove_dir(&place.name).is_ok()
        {
            self.prune(path);
        }
        Ok(())
    }

    /// Removes the folders above a path that are empty and were not asked for. Under the ledger's lock: nobody is
    /// moving a file into them.
    fn prune(&self, path: &SitePath) {
        let mut here = path.split().map(|(parent, _)| parent).unwrap_or_default();
        while let Ok(place) = self.place(&here, "") {
            let marked = self.open_folder(&here).is_ok_and(|folder| note::is_marked(&folder));
            // A link, or a folder that is not empty, stays; so does what is above it.
            if marked || place.folder.remove_dir(&place.name).is_err() {
                return;
            }
            here = here.split().map(|(parent, _)| parent).unwrap_or_default();
        }
    }

    /// A folder as a file: an open one may be one that only names can be looked up in.
    pub(super) fn open_folder(&self, path: &SitePath) -> Result<std::fs::File, ContentError> {
        walk::readable(&self.folder(path)?).map_err(|error| ContentError::io("open", path, error))
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
