//! What can go wrong with content. One enum; which answer it becomes is decided by each role.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

use super::path::PathError;

/// Why content could not be read or changed. Paths in it are relative to the site's root.
#[derive(Debug, Error)]
pub enum ContentError {
    /// The text is no path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Nothing there, or a link that leads nowhere or out of the site.
    #[error("'{0}' was not found")]
    NotFound(String),
    /// A file where a folder is needed.
    #[error("'{0}' is not a folder")]
    NotAFolder(String),
    /// A folder where a file is needed.
    #[error("'{0}' is a folder")]
    IsAFolder(String),
    /// A device, pipe or socket.
    #[error("'{0}' is neither a file nor a folder")]
    Special(String),
    /// Something is there that the request must not replace.
    #[error("'{path}' exists already: {advice}")]
    Exists {
        /// What exists.
        path: String,
        /// What to do.
        advice: &'static str,
    },
    /// The root itself was meant.
    #[error("the path is the site's root: {0}")]
    Root(&'static str),
    /// A link to itself, a folder into itself.
    #[error("'{0}' would contain itself")]
    Loop(String),
    /// The file is not the one that the client has seen.
    #[error("'{0}' was changed by somebody else")]
    Changed(String),
    /// More than the site may have.
    #[error("the site's quota does not suffice: {needed} bytes are needed, {free} of {limit} are free")]
    Quota {
        /// What the request needs.
        needed: u64,
        /// What is left.
        free: u64,
        /// What the site may have in all.
        limit: u64,
    },
    /// The volume is full.
    #[error("the site's volume is full")]
    VolumeFull,
    /// The file system refuses it to us.
    #[error("'{0}' may not be changed or read: it belongs to another owner")]
    NotPermitted(String),
    /// Anything else.
    #[error("{step} '{path}': {source}")]
    Io {
        /// What was being done.
        step: &'static str,
        /// To what.
        path: String,
        /// Why it failed.
        source: io::Error,
    },
}

impl ContentError {
    /// Names the failed step, and sorts what the client can do something about.
    pub fn io<P: ToString + ?Sized>(step: &'static str, path: &P, source: io::Error) -> Self {
        let path = path.to_string();
        let number = source.raw_os_error().map(Errno::from_raw_os_error);
        match (number, source.kind()) {
            // The last two: a way out of the root, as the kernel says it and as the library does.
            (Some(Errno::NOENT | Errno::LOOP | Errno::XDEV), _) | (None, io::ErrorKind::PermissionDenied) => {
                Self::NotFound(path)
            }
            (Some(Errno::NOTDIR), _) => Self::NotAFolder(path),
            (Some(Errno::ISDIR), _) => Self::IsAFolder(path),
            (Some(Errno::NOSPC | Errno::DQUOT), _) => Self::VolumeFull,
            (Some(Errno::ACCESS | Errno::PERM), _) => Self::NotPermitted(path),
            _ => Self::Io { step, path, source },
        }
    }
}
