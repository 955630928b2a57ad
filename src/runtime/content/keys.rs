//! The content as a flat list of names in the order of their bytes, a page at a time: what S3 calls keys.
//!
//! A file is a key. A folder is a key that ends in a slash when it is empty or was asked for by name. A link to a file
//! counts as a file; a link to a folder is a folder that only those find who ask for what is below it, as in every
//! listing. Goes down only where keys of the page can be, and looks at files only when they are on it.

use std::path::Path;

use cap_std::fs::Dir;
use jiff::Timestamp;

use super::entry::EntryType;
use super::path::is_kept_apart;
use super::{Content, ContentError, STATE_FOLDER, SitePath, note, walk};

/// Entity tag of no bytes: the MD5 of nothing.
const EMPTY: &str = "d41d8cd98f00b204e9800998ecf8427e";

/// Which keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyQuery<'a> {
    /// They begin with this.
    pub prefix: &'a str,
    /// They come after this: the last one of the page before.
    pub after: &'a str,
    /// Those that have this behind the prefix are told as one; empty for none.
    pub delimiter: &'a str,
    /// At most so many.
    pub limit: usize,
}

/// One line of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// A file, or a folder as a key.
    Object {
        /// Its name from the root on.
        key: String,
        /// Bytes.
        size: u64,
        /// Last change.
        modified: Timestamp,
        /// Entity tag without quotes.
        etag: String,
    },
    /// What several keys begin with, the delimiter included.
    Prefix(String),
}

impl Key {
    /// The text that it is sorted by.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Object { key, .. } | Self::Prefix(key) => key,
        }
    }
}

/// A page.
#[derive(Debug, Default)]
pub struct KeyPage {
    /// In order.
    pub keys: Vec<Key>,
    /// Whether there are more.
    pub truncated: bool,
}

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Full,
}

struct Found {
    /// Name in its folder, with a slash behind a folder's.
    name: String,
    folder: bool,
    link: bool,
}

struct Walk<'a> {
    content: &'a Content,
    query: &'a KeyQuery<'a>,
    page: KeyPage,
}

impl Content {
    /// A page of keys.
    pub fn keys(&self, query: &KeyQuery<'_>) -> Result<KeyPage, ContentError> {
        let mut walk = Walk { content: self, query, page: KeyPage::default() };
        if query.limit == 0 {
            return Ok(walk.page);
        }
        // Everything is below the last folder that the prefix names.
        let base = query.prefix.rfind('/').map_or("", |at| &query.prefix[..=at]);
        let folder = match SitePath::from_text(base) {
            Ok(path) if base.is_empty() || format!("{path}/") == base => self.folder(&path),
            // No key begins so.
            _ => return Ok(walk.page),
        };
        match folder {
            Ok(folder) => {
                let walked = walk.folder(&folder, base);
                walked.map_err(|error| ContentError::io("list", base, error))?;
            }
            Err(ContentError::NotFound(_) | ContentError::NotAFolder(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(walk.page)
    }
}

impl Walk<'_> {
    /// What is in a folder whose keys begin with `base`.
    fn folder(&mut self, folder: &Dir, base: &str) -> std::io::Result<Flow> {
        let mut found = self.names(folder, base.is_empty())?;
        if !base.is_empty() {
            let marked = || walk::readable(folder).is_ok_and(|folder| note::is_marked(&folder));
            if (found.is_empty() || marked()) && self.offer(base, Some(folder)) == Flow::Full {
                return Ok(Flow::Full);
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        for Found { name, folder: is_folder, link } in found {
            let key = format!("{base}{name}");
            let flow = if !is_folder {
                self.offer(&key, None)
            } else if self.may_hold(&key) {
                match self.below(folder, &key, &name, link) {
                    // Gone, or closed to us: nothing to show.
                    Err(error) if is_closed(&error) => Flow::On,
                    flow => flow?,
                }
            } else {
                Flow::On
            };
            if flow == Flow::Full {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    /// The names in a folder that are content.
    fn names(&self, folder: &Dir, root: bool) -> std::io::Result<Vec<Found>> {
        let mut names = Vec::new();
        for entry in folder.entries()? {
            let entry = entry?;
            let name = entry.file_name();
            if name == STATE_FOLDER || root && is_kept_apart(&name) {
                continue;
            }
            // One that no request can name is none.
            let Ok(name) = name.into_string() else { continue };
            if !SitePath::from_text(&name).is_ok_and(|path| path.to_string() == name) {
                continue;
            }
            let kind = entry.file_type()?;
            let (seen, link) = if kind.is_symlink() {
                match walk::gone(self.content.described(folder, &name, String::new()).map(Some))? {
                    Some(entry) => (entry.entry_type, true),
                    None => continue,
                }
            } else if kind.is_dir() {
                (EntryType::Directory, false)
            } else if kind.is_file() {
                (EntryType::File, false)
            } else {
                continue;
            };
            match seen {
                EntryType::Directory => names.push(Found { name: name + "/", folder: true, link }),
                EntryType::File => names.push(Found { name, folder: false, link }),
                EntryType::Broken | EntryType::Other => {}
            }
        }
        Ok(names)
    }

    /// Whether keys of the page may be below a folder.
    fn may_hold(&self, key: &str) -> bool {
        let KeyQuery { prefix, after, .. } = *self.query;
        let fits = key.starts_with(prefix) || prefix.starts_with(key);
        fits && (key > after || after.starts_with(key))
    }

    fn below(&mut self, folder: &Dir, key: &str, name: &str, link: bool) -> std::io::Result<Flow> {
        let KeyQuery { prefix, after, delimiter, .. } = *self.query;
        // All of it is one line, unless only some of it comes after the page before.
        let one_line = delimiter == "/" && key.len() > prefix.len() && key.starts_with(prefix);
        if one_line && (key == after || !after.starts_with(key)) {
            return Ok(self.offer(key, Some(folder)));
        }
        let below = match link {
            true if !prefix.starts_with(key) && !one_line => return Ok(Flow::On),
            true => match SitePath::from_text(key).map(|path| self.content.folder(&path)) {
                Ok(Ok(folder)) => folder,
                _ => return Ok(Flow::On),
            },
            false => walk::enter(folder, Path::new(name.trim_end_matches('/')))?,
        };
        self.folder(&below, key)
    }

    /// Puts a key on the page if it belongs there. `folder` is the one that the key names.
    fn offer(&mut self, key: &str, folder: Option<&Dir>) -> Flow {
        let KeyQuery { prefix, after, delimiter, limit } = *self.query;
        let Some(rest) = key.strip_prefix(prefix).filter(|_| key > after) else { return Flow::On };
        let at = if delimiter.is_empty() { None } else { rest.find(delimiter) };
        let line = if let Some(at) = at {
            let common = &key[..prefix.len() + at + delimiter.len()];
            if common == after || self.page.keys.last().is_some_and(|last| last.text() == common) {
                return Flow::On;
            }
            Some(Key::Prefix(common.to_owned()))
        } else {
            self.object(key, folder)
        };
        let Some(line) = line else { return Flow::On };
        if self.page.keys.len() == limit {
            self.page.truncated = true;
            return Flow::Full;
        }
        self.page.keys.push(line);
        Flow::On
    }

    /// What is told of a key; `None` when it is gone or closed to us.
    fn object(&self, key: &str, folder: Option<&Dir>) -> Option<Key> {
        if let Some(folder) = folder {
            let modified = super::entry::modified(&folder.dir_metadata().ok()?);
            return Some(Key::Object { key: key.to_owned(), size: 0, modified, etag: EMPTY.to_owned() });
        }
        let opened = self.content.read(&SitePath::from_text(key).ok()?).ok()?;
        Some(Key::Object { key: key.to_owned(), size: opened.size, modified: opened.modified, etag: opened.key_etag() })
    }
}

fn is_closed(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied)
}
