//! Going down a tree without following a link: its size, and its removal.

use std::fs::File;
use std::io;
use std::path::Path;

use cap_std::fs::Dir;
use rustix::fs::{Mode, OFlags, openat};

use super::path::is_kept_apart;

/// Opens a folder by its name in an open one; a link is an error.
pub(super) fn enter(folder: &Dir, name: &Path) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(Dir::from_std_file(File::from(openat(folder, name, flags, Mode::empty())?)))
}

/// Makes the names in a folder last. An open folder may be one that only names can be looked up in.
pub(super) fn sync(folder: &Dir) -> io::Result<()> {
    readable(folder)?.sync_all()
}

/// An open folder once more, as a file.
pub(super) fn readable(folder: &Dir) -> io::Result<File> {
    Ok(File::from(openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
}

/// What vanishes while we look was not there.
pub(super) fn gone<T: Default>(result: io::Result<T>) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        result => result,
    }
}

/// Bytes of all files in a tree, each name counted; at its root the state folder is left out.
pub(super) fn size(folder: &Dir, root: bool) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in folder.entries()? {
        let entry = entry?;
        let name = entry.file_name();
        if root && is_kept_apart(&name) {
            continue;
        }
        bytes += gone(one(folder, Path::new(&name)))?;
    }
    Ok(bytes)
}

fn one(folder: &Dir, name: &Path) -> io::Result<u64> {
    let metadata = folder.symlink_metadata(name)?;
    match (metadata.is_dir(), metadata.is_file()) {
        (true, _) => match enter(folder, name).and_then(|below| size(&below, false)) {
            // Somebody closed it to us: it is not ours to count.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(0),
            size => size,
        },
        (_, true) => Ok(metadata.len()),
        _ => Ok(0),
    }
}

/// Counts what [`remove`] removed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    /// Names that are no folders.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Removes a name and all below it. What was removed is in `count` even when it fails half-way.
pub(super) fn remove(folder: &Dir, name: &Path, count: &mut Count) -> io::Result<()> {
    let metadata = folder.symlink_metadata(name)?;
    if metadata.is_dir() {
        let below = enter(folder, name)?;
        for entry in below.entries()? {
            gone(remove(&below, Path::new(&entry?.file_name()), count))?;
        }
        return gone(folder.remove_dir(name));
    }
    folder.remove_file(name)?;
    count.files += 1;
    count.bytes += if metadata.is_file() { metadata.len() } else { 0 };
    Ok(())
}
