//! Symbolic links inside the site. Clients name targets relative to the site's root; on the volume a link is relative
//! to its own folder, so that it means the same for every process that has the volume, wherever it is mounted.

use std::io;
use std::path::{Component, Path, PathBuf};

use cap_std::fs::Dir;

use super::{Content, ContentError, Place, SitePath};

const LINK_WANTED: &str = "name the link";
/// Links that may be passed on the way to a target, as in the kernel.
const MAX_LINKS: usize = 40;

/// What a link points to, relative to the root; `None` when that is outside or absolute.
pub(super) fn read(content: &Content, folder: &Dir, name: &str) -> io::Result<Option<SitePath>> {
    let text = folder.read_link_contents(name)?;
    let Ok(real) = content.within(folder, &SitePath::root()) else { return Ok(None) };
    let mut segments = real.segments().to_vec();
    for component in text.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if segments.pop().is_some() => {}
            Component::Normal(name) => segments.push(name.to_string_lossy().into_owned()),
            _ => return Ok(None),
        }
    }
    Ok(SitePath::from_text(&segments.join("/")).ok())
}

/// The text of a link in `folder` to `target`.
pub(super) fn text(folder: &SitePath, target: &SitePath) -> PathBuf {
    let (from, to) = (folder.segments(), target.segments());
    let same = from.iter().zip(to).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n("..", from.len() - same);
    let text: PathBuf = up.chain(to[same..].iter().map(String::as_str)).collect();
    if text.as_os_str().is_empty() { PathBuf::from(".") } else { text }
}

impl Content {
    /// Makes a link. The target must exist. With `force` a link that is there is pointed elsewhere in one step; a file
    /// or folder never is replaced.
    pub fn link(&self, path: &SitePath, target: &SitePath, force: bool) -> Result<(), ContentError> {
        let _book = self.ledger.book()?;
        let led = self
            .root
            .canonicalize(target.to_relative())
            .map_err(|error| ContentError::io("find the target", target, error))?;
        let led =
            SitePath::from_text(&led.to_string_lossy()).map_err(|_| ContentError::NotFound(target.to_string()))?;
        let place = self.place_made(path, LINK_WANTED)?;
        let folder = self.within(&place.folder, path)?;
        let own = SitePath::from_text(&format!("{folder}/{}", place.name))?;
        if own.is_within(&led) || target.is_within(path) || target.is_within(&own) || self.leads_to(target, &own) {
            return Err(ContentError::Loop(path.to_string()));
        }
        self.put_link(&place, &text(&folder, target), path, force)
    }

    pub(super) fn put_link(
        &self,
        place: &Place,
        text: &Path,
        path: &SitePath,
        force: bool,
    ) -> Result<(), ContentError> {
        let failed = |error| ContentError::io("link", path, error);
        let exists = |advice| Err(ContentError::Exists { path: path.to_string(), advice });
        match place.folder.symlink_metadata(&place.name) {
            Ok(old) if !old.is_symlink() => exists("it is no link; delete it first if it may go"),
            Ok(_) if !force => exists("use force=true to point the link elsewhere"),
            Ok(_) => {
                let name = uuid::Uuid::new_v4().simple().to_string();
                self.staging.symlink_contents(text, &name).map_err(failed)?;
                self.staging.rename(&name, &place.folder, &place.name).map_err(failed)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                place.folder.symlink_contents(text, &place.name).map_err(failed)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// What a link points to; not found if there is no link.
    pub fn link_target(&self, path: &SitePath) -> Result<Option<SitePath>, ContentError> {
        let place = self.place(path, LINK_WANTED)?;
        match read(self, &place.folder, &place.name) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(ContentError::NotFound(path.to_string())),
            result => result.map_err(|error| ContentError::io("read the link", path, error)),
        }
    }

    /// Whether a chain of links that begins at `from` comes to `own`.
    fn leads_to(&self, from: &SitePath, own: &SitePath) -> bool {
        let mut here = from.clone();
        for _ in 0..MAX_LINKS {
            if here == *own {
                return true;
            }
            match self.link_target(&here) {
                Ok(Some(next)) => here = next,
                _ => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        for (folder, target, expected) in [
            ("fdb", "fdb/develop", "develop"),
            ("", "develop", "develop"),
            ("a/b", "c", "../../c"),
            ("a/b", "a/c/d", "../c/d"),
            ("a", "a", "."),
        ] {
            let path = |text| SitePath::from_text(text).unwrap();
            assert_eq!(text(&path(folder), &path(target)), Path::new(expected), "{folder} {target}");
        }
    }
}
