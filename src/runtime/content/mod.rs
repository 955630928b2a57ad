//! The site's content: everything that reads or changes files below the content root, for every role.
//!
//! Owns the way from a [`SitePath`] to an open handle. All access goes through handles of folders that were opened
//! beneath the root (`openat2`), so that no spelling, link or renamed folder leads out of it; the folder `.sites` with
//! the site's state is never handed out. All calls block: roles run them on the blocking pool.

mod checksum;
mod entry;
mod error;
mod keys;
mod layout;
mod link;
mod list;
mod note;
mod parts;
mod path;
mod read;
mod remove;
mod staging;
mod state;
mod transfer;
mod usage;
mod walk;
mod write;

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt};

pub use checksum::Algorithm;
pub(crate) use checksum::hexadecimal;
pub use entry::{Entry, EntryType};
pub use error::ContentError;
pub use keys::{Key, KeyPage, KeyQuery};
pub use layout::Upgraded;
pub use list::{ListOptions, Listing, MAX_ENTRIES};
pub use note::{MAX_METADATA, Note};
pub use parts::{Part, PartedUpload};
pub use path::{PathError, STATE_FOLDER, SitePath};
pub use read::{Opened, plain as plain_etag};
pub use remove::Removed;
pub use state::{StateError, StateFile};
pub use usage::Usage;
pub use write::{Condition, Upload, WriteOptions, Written};

use usage::Ledger;

/// Mode of folders.
const FOLDER_MODE: u32 = 0o755;
/// Mode of files.
const FILE_MODE: u32 = 0o644;
/// How often a change is tried again when a folder vanishes under it.
const ATTEMPTS: usize = 8;

/// The content of one site.
pub struct Content {
    root: Dir,
    /// The root as the kernel calls it.
    root_path: PathBuf,
    state: Dir,
    /// Files that are being written.
    staging: Dir,
    /// Trees that are being removed.
    trash: Dir,
    /// Parts of files that are uploaded in parts.
    parts: Dir,
    ledger: Ledger,
}

/// A name in an open folder: what is done to it cannot be led elsewhere.
struct Place {
    folder: Dir,
    name: String,
}

impl Content {
    /// Opens the content root and makes the folders of the site's state where they are missing.
    ///
    /// `limit` is the quota in bytes. Counts the content first if nobody has yet.
    pub fn open(root: &Path, limit: u64) -> Result<Self, ContentError> {
        let failed = |step, source| ContentError::io(step, &root.display(), source);
        let dir = Dir::open_ambient_dir(root, ambient_authority()).map_err(|error| failed("open", error))?;
        let root_path = kernel_path(&dir).map_err(|error| failed("resolve", error))?;
        let state = folder(&dir, STATE_FOLDER)?;
        let content = Self {
            staging: folder(&state, "tmp")?,
            trash: folder(&state, "trash")?,
            parts: folder(&state, "parts")?,
            ledger: Ledger::open(&state, limit)?,
            root: dir,
            root_path,
            state,
        };
        if !content.ledger.is_counted()? {
            content.recount()?;
        }
        Ok(content)
    }

    /// Whether the volume answers.
    pub fn check(&self) -> Result<(), ContentError> {
        self.root
            .dir_metadata()
            .and_then(|_| self.state.dir_metadata())
            .map(drop)
            .map_err(|error| ContentError::io("look at", "", error))
    }

    /// Opens a folder, through links inside the site.
    fn folder(&self, path: &SitePath) -> Result<Dir, ContentError> {
        let dir = self.root.open_dir(path.to_relative()).map_err(|error| ContentError::io("open", path, error))?;
        self.within(&dir, path)?;
        Ok(dir)
    }

    /// The folder that a path names something in, which must exist.
    fn place(&self, path: &SitePath, root: &'static str) -> Result<Place, ContentError> {
        let (parent, name) = path.split().ok_or(ContentError::Root(root))?;
        Ok(Place { folder: self.folder(&parent)?, name: name.to_owned() })
    }

    /// The same, making the folders that are missing.
    fn place_made(&self, path: &SitePath, root: &'static str) -> Result<Place, ContentError> {
        let (parent, name) = path.split().ok_or(ContentError::Root(root))?;
        self.make_folders(&parent)?;
        Ok(Place { folder: self.folder(&parent)?, name: name.to_owned() })
    }

    /// Makes a folder and those above it; one that is there is left alone.
    pub fn make_folders(&self, path: &SitePath) -> Result<(), ContentError> {
        let mut made = SitePath::root();
        let mut folder = self.root.try_clone().map_err(|error| ContentError::io("open", "", error))?;
        for name in path.segments() {
            made = SitePath::from_text(&format!("{made}/{name}"))?;
            match folder.create_dir_with(name, DirBuilder::new().mode(FOLDER_MODE)) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(ContentError::io("make the folder", &made, error)),
            }
            // From the root again: a link may lead above the folder it is in.
            folder = match self.folder(&made) {
                Err(ContentError::NotFound(path)) if folder.symlink_metadata(name).is_ok() => {
                    Err(ContentError::NotAFolder(path))
                }
                opened => opened,
            }?;
        }
        Ok(())
    }

    /// Where an open folder or file really is, below the root; refuses the state folder.
    fn within(&self, handle: &impl AsRawFd, asked: &SitePath) -> Result<SitePath, ContentError> {
        let real = kernel_path(handle).map_err(|error| ContentError::io("resolve", asked, error))?;
        let below = real.strip_prefix(&self.root_path).map_err(|_| ContentError::NotFound(asked.to_string()))?;
        let text = below.to_str().ok_or_else(|| ContentError::NotFound(asked.to_string()))?;
        SitePath::from_text(text).map_err(|_| ContentError::NotFound(asked.to_string()))
    }
}

/// What the kernel calls an open file: no race between asking and opening.
fn kernel_path(handle: &impl AsRawFd) -> std::io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

fn folder(parent: &Dir, name: &str) -> Result<Dir, ContentError> {
    match parent.create_dir_with(name, DirBuilder::new().mode(0o700)) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(ContentError::io("make the folder", name, error));
        }
        _ => {}
    }
    parent.open_dir(name).map_err(|error| ContentError::io("open", name, error))
}
