//! What older platforms left on a volume, made to fit; and whether a volume is new.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use super::path::is_kept_apart;
use super::{Content, ContentError, Place, SitePath, link, walk};

/// What was changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Upgraded {
    /// Links that named the content by where it was mounted, and are relative now.
    pub links: u64,
    /// Names that could not be looked at or changed: they belong to another user.
    pub closed: u64,
}

impl Content {
    /// Whether there is no content at all.
    pub fn is_empty(&self) -> Result<bool, ContentError> {
        let failed = |error| ContentError::io("list", "", error);
        for entry in self.root.entries().map_err(failed)? {
            if !is_kept_apart(&entry.map_err(failed)?.file_name()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes links relative that name the content by a mount point. Those lead nowhere for a process that has the volume
    /// elsewhere, and out of the site for ours.
    pub fn upgrade_links(&self, mount_points: &[PathBuf]) -> Result<Upgraded, ContentError> {
        let mut upgraded = Upgraded::default();
        self.upgrade_folder(&self.root, true, mount_points, &mut upgraded)
            .map_err(|error| ContentError::io("upgrade", "", error))?;
        Ok(upgraded)
    }

    fn upgrade_folder(&self, folder: &Dir, top: bool, mounts: &[PathBuf], upgraded: &mut Upgraded) -> io::Result<()> {
        for entry in folder.entries()? {
            let entry = entry?;
            let name = entry.file_name();
            if top && is_kept_apart(&name) {
                continue;
            }
            let kind = entry.file_type()?;
            let result = if kind.is_dir() {
                walk::enter(folder, Path::new(&name))
                    .and_then(|below| self.upgrade_folder(&below, false, mounts, upgraded))
            } else if kind.is_symlink() {
                self.upgrade_link(folder, Path::new(&name), mounts).map(|done| upgraded.links += u64::from(done))
            } else {
                Ok(())
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => upgraded.closed += 1,
                result => walk::gone(result)?,
            }
        }
        Ok(())
    }

    fn upgrade_link(&self, folder: &Dir, name: &Path, mounts: &[PathBuf]) -> io::Result<bool> {
        let text = folder.read_link_contents(name)?;
        let below = mounts.iter().find_map(|mount| text.strip_prefix(mount).ok()).and_then(Path::to_str);
        let target = below.and_then(|below| SitePath::from_text(below).ok());
        let (Some(target), Some(name)) = (target, name.to_str()) else { return Ok(false) };
        let Ok(here) = self.within(folder, &SitePath::root()) else { return Ok(false) };
        let place = Place { folder: folder.try_clone()?, name: name.to_owned() };
        // Only the text changes: what it points to may come later.
        self.put_link(&place, &link::text(&here, &target), &here, true).map_err(io::Error::other)?;
        Ok(true)
    }
}
