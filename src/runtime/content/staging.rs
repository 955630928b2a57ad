//! Files that are being written: under a name of their own in the state folder, until they are complete.
//!
//! The length of such a file is what it has reserved of the quota, so that counting the volume counts reservations.
//! Its lock says that its writer lives; without it a later start removes it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};

use super::{Content, ContentError, FILE_MODE, walk};

/// Reserved at a time while the length is not known.
const STEP: u64 = 1 << 20;
/// A younger file may not have been locked yet by its writer.
const UNLOCKED_AGE: Duration = Duration::from_secs(60);

/// A file that is being written. Dropped before it is moved into place, it leaves nothing behind.
pub(super) struct Staged {
    pub content: Arc<Content>,
    pub name: String,
    pub file: File,
    pub reserved: u64,
    pub moved: bool,
}

impl Staged {
    pub(super) fn new(content: Arc<Content>, length: Option<u64>) -> Result<Self, ContentError> {
        let name = uuid::Uuid::new_v4().simple().to_string();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(FILE_MODE);
        let failed = |step, error| ContentError::io(step, "the new file", error);
        let file = content.staging.open_with(&name, &options).map_err(|error| failed("create", error))?.into_std();
        let mut staged = Self { content, name, file, reserved: 0, moved: false };
        staged.file.lock().map_err(|error| failed("lock", error))?;
        staged.hold(length.unwrap_or_default())?;
        Ok(staged)
    }

    /// Reserves what `length` bytes need beyond what is reserved.
    pub(super) fn hold(&mut self, length: u64) -> Result<(), ContentError> {
        let missing = length.saturating_sub(self.reserved);
        if missing == 0 {
            return Ok(());
        }
        let step = missing.max(if self.reserved == 0 { 0 } else { STEP });
        let taken = match self.content.reserve(step) {
            Ok(()) => step,
            // Near the end of the quota exactly what is needed may still fit.
            Err(_) if step > missing => self.content.reserve(missing).map(|()| missing)?,
            Err(error) => return Err(error),
        };
        self.reserved += taken;
        self.file.set_len(self.reserved).map_err(|error| ContentError::io("reserve", "the new file", error))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.moved {
            if let Err(error) = self.content.staging.remove_file(&self.name) {
                tracing::warn!(%error, "a file that was given up stays until the next start");
                return;
            }
            self.content.release(self.reserved);
        }
    }
}

impl Content {
    /// Removes what processes that have ended left half-done.
    pub fn clean(&self) -> Result<(), ContentError> {
        let failed = |error| ContentError::io("clean", "", error);
        let mut count = walk::Count::default();
        for entry in self.staging.entries().map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if walk::gone(abandoned(&self.staging, Path::new(&name))).map_err(failed)? {
                walk::gone(walk::remove(&self.staging, Path::new(&name), &mut count)).map_err(failed)?;
            }
        }
        for entry in self.trash.entries().map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            walk::gone(walk::remove(&self.trash, Path::new(&name), &mut count)).map_err(failed)?;
        }
        self.clean_parts(&mut count)?;
        if count.bytes > 0 {
            self.release(count.bytes);
        }
        Ok(())
    }
}

fn abandoned(staging: &Dir, name: &Path) -> std::io::Result<bool> {
    let file = staging.open(name)?.into_std();
    let age = file.metadata()?.modified()?.elapsed().unwrap_or_default();
    Ok(age > UNLOCKED_AGE && file.try_lock().is_ok())
}
