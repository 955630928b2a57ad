//! Moving and copying inside the site.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, OpenOptions, OpenOptionsExt};
use rustix::fs::{RenameFlags, renameat_with};

use super::{Condition, Content, ContentError, FILE_MODE, FOLDER_MODE, Place, SitePath, WriteOptions, link, walk};

const NAME_WANTED: &str = "name a file or folder below it";
const REPLACE: &str = "give another destination, or overwrite=true to replace a file";
/// Bytes per read.
const BLOCK: usize = 256 << 10;

impl Content {
    /// Moves a file, link or folder. An existing file is replaced with `overwrite` only, an existing folder never.
    pub fn rename(&self, source: &SitePath, destination: &SitePath, overwrite: bool) -> Result<(), ContentError> {
        let mut book = self.ledger.book()?;
        let from = self.place(source, NAME_WANTED)?;
        let metadata = found(&from, source)?;
        refuse_loop(source, destination)?;
        let to = self.place_made(destination, NAME_WANTED)?;
        let failed = |error| ContentError::io("move", source, error);
        if metadata.is_dir() && self.within(&to.folder, destination)?.is_within(&self.real(&from, source)?) {
            return Err(ContentError::Loop(destination.to_string()));
        }
        if metadata.is_symlink() {
            let old = from.folder.read_link_contents(&from.name).map_err(failed)?;
            let text = self.moved_text(&from, &to, destination)?.unwrap_or(old);
            self.put_link(&to, &text, destination, overwrite)?;
            return from.folder.remove_file(&from.name).map_err(failed);
        }
        let moved = renameat_with(&from.folder, &from.name, &to.folder, &to.name, RenameFlags::NOREPLACE);
        match moved.map_err(io::Error::from) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map_err(failed),
        }
        let old = found(&to, destination)?;
        if old.is_dir() || metadata.is_dir() || !overwrite {
            return Err(ContentError::Exists { path: destination.to_string(), advice: REPLACE });
        }
        from.folder.rename(&from.name, &to.folder, &to.name).map_err(failed)?;
        book.subtract(if old.is_file() { old.len() } else { 0 });
        Ok(())
    }

    /// Copies a file, link or folder, with all in it. Existing ones as in [`Content::rename`].
    pub fn copy(
        self: &Arc<Self>,
        source: &SitePath,
        destination: &SitePath,
        overwrite: bool,
    ) -> Result<(), ContentError> {
        refuse_loop(source, destination)?;
        let from = self.place(source, NAME_WANTED)?;
        let metadata = found(&from, source)?;
        if metadata.is_symlink() {
            let _book = self.ledger.book()?;
            let to = self.place_made(destination, NAME_WANTED)?;
            let text = self.moved_text(&from, &to, destination)?;
            let text = text.ok_or_else(|| ContentError::NotFound(source.to_string()))?;
            return self.put_link(&to, &text, destination, overwrite);
        }
        if metadata.is_dir() {
            return self.copy_folder(&from, source, destination);
        }
        let mut opened = self.read(source)?;
        let mut upload = self.write(destination.clone(), Some(opened.size))?;
        let mut block = vec![0; BLOCK];
        loop {
            match opened.file.read(&mut block).map_err(|error| ContentError::io("read", source, error))? {
                0 => break,
                read => upload.append(&block[..read])?,
            }
        }
        let condition = if overwrite { Condition::Any } else { Condition::Absent };
        upload.finish(&WriteOptions { backup: false, condition }).map(drop)
    }

    /// Complete in the staging folder first: nobody sees a half copy.
    fn copy_folder(&self, from: &Place, source: &SitePath, destination: &SitePath) -> Result<(), ContentError> {
        let name = uuid::Uuid::new_v4().simple().to_string();
        let failed = |error| ContentError::io("copy", source, error);
        self.staging.create_dir_with(&name, DirBuilder::new().mode(FOLDER_MODE)).map_err(failed)?;
        let result = walk::enter(&self.staging, Path::new(&name)).map_err(failed).and_then(|staged| {
            // As with files: the lock says that somebody is at work. Not every file system locks folders.
            let lock = File::from(rustix::io::dup(&staged).map_err(|error| failed(error.into()))?);
            let _unsupported = lock.lock_shared();
            let below = walk::enter(&from.folder, Path::new(&from.name)).map_err(failed)?;
            self.copy_tree(&below, &staged, source)?;
            let _book = self.ledger.book()?;
            let to = self.place_made(destination, NAME_WANTED)?;
            match renameat_with(&self.staging, &name, &to.folder, &to.name, RenameFlags::NOREPLACE) {
                Err(rustix::io::Errno::EXIST) => {
                    Err(ContentError::Exists { path: destination.to_string(), advice: REPLACE })
                }
                result => result.map_err(|error| failed(error.into())),
            }
        });
        if result.is_err() {
            let mut count = walk::Count::default();
            if let Err(error) = walk::remove(&self.staging, Path::new(&name), &mut count) {
                tracing::warn!(%error, "a copy that was given up stays until the next start");
            }
            self.release(count.bytes);
        }
        result
    }

    fn copy_tree(&self, from: &Dir, to: &Dir, source: &SitePath) -> Result<(), ContentError> {
        let failed = |error| ContentError::io("copy", source, error);
        for entry in from.entries().map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = Path::new(&name);
            let metadata = match from.symlink_metadata(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                result => result.map_err(failed)?,
            };
            if metadata.is_dir() {
                to.create_dir_with(name, DirBuilder::new().mode(FOLDER_MODE)).map_err(failed)?;
                let below = walk::enter(to, name).map_err(failed)?;
                self.copy_tree(&walk::enter(from, name).map_err(failed)?, &below, source)?;
            } else if metadata.is_symlink() {
                // Links inside the tree go on working; one that leads out of it may lead nowhere in its new place.
                let text = from.read_link_contents(name).map_err(failed)?;
                to.symlink_contents(text, name).map_err(failed)?;
            } else if metadata.is_file() {
                self.reserve(metadata.len())?;
                let mut options = OpenOptions::new();
                options.write(true).create_new(true).mode(FILE_MODE);
                let mut copy = to.open_with(name, &options).map_err(failed)?.into_std();
                // What it grows meanwhile was not reserved.
                let mut read = from.open(name).map_err(failed)?.into_std().take(metadata.len());
                copy.set_len(metadata.len()).map_err(failed)?;
                io::copy(&mut read, &mut copy).map_err(failed)?;
                copy.sync_all().map_err(failed)?;
            }
        }
        Ok(())
    }

    fn real(&self, place: &Place, path: &SitePath) -> Result<SitePath, ContentError> {
        let folder = self.within(&place.folder, path)?;
        Ok(SitePath::from_text(&format!("{folder}/{}", place.name))?)
    }

    /// The text of a link in another folder to the same target.
    fn moved_text(
        &self,
        from: &Place,
        to: &Place,
        destination: &SitePath,
    ) -> Result<Option<std::path::PathBuf>, ContentError> {
        let target = link::read(self, &from.folder, &from.name)
            .map_err(|error| ContentError::io("read the link", destination, error))?;
        let folder = self.within(&to.folder, destination)?;
        Ok(target.map(|target| link::text(&folder, &target)))
    }
}

fn found(place: &Place, path: &SitePath) -> Result<cap_std::fs::Metadata, ContentError> {
    place.folder.symlink_metadata(&place.name).map_err(|error| ContentError::io("look at", path, error))
}

fn refuse_loop(source: &SitePath, destination: &SitePath) -> Result<(), ContentError> {
    if destination.is_within(source) {
        return Err(ContentError::Loop(destination.to_string()));
    }
    Ok(())
}
