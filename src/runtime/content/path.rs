//! A path below the site's root: read once from a client's text, and from then on known to be harmless.
//!
//! Owns every rule on names. Must not touch the file system: what a path leads to is judged where it is opened.

use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use thiserror::Error;

/// Folder of the site's own state at the root of the volume. Reserved at every depth: the front door refuses it so too.
pub const STATE_FOLDER: &str = ".sites";
/// What a new ext4 volume has at its root, for nobody but the file system's own tools.
const VOLUME_FOLDER: &str = "lost+found";
/// Longest name of one file or folder, in bytes: what file systems take.
const MAX_SEGMENT: usize = 255;
/// Longest path, in bytes.
const MAX_PATH: usize = 2048;
/// Deepest folder.
const MAX_DEPTH: usize = 128;

/// Why a text is no path of the site.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PathError {
    /// `.` or `..`, in any spelling.
    #[error("the path has a '.' or '..' segment: give it relative to the site's root, without them")]
    DotSegment,
    /// A NUL, a line break or another control character.
    #[error("the path has a control character")]
    Control,
    /// The other slash.
    #[error("the path has a backslash: separate folders with '/'")]
    Backslash,
    /// Broken percent-encoding or not UTF-8.
    #[error("the path is not valid percent-encoded UTF-8")]
    Encoding,
    /// Too long or too deep.
    #[error(
        "the path is too long: {MAX_SEGMENT} bytes a name, {MAX_PATH} bytes and {MAX_DEPTH} folders in all are allowed"
    )]
    TooLong,
    /// The state folder.
    #[error("the name '{STATE_FOLDER}' is reserved for the site's own state")]
    Reserved,
}

/// Whether a name at the root of the volume is no content.
pub(super) fn is_kept_apart(name: &std::ffi::OsStr) -> bool {
    name == STATE_FOLDER || name == VOLUME_FOLDER
}

/// A path below the site's root, in names: no empty, dot, reserved or overlong one, no control character.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SitePath(Vec<String>);

impl SitePath {
    /// The site's root.
    #[must_use]
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// Reads a path as it stands in a request line: decoded once, so `%2F` separates and `%252F` is a name's text.
    pub fn from_encoded(text: &str) -> Result<Self, PathError> {
        let bytes = text.as_bytes();
        let broken = |at: usize| !bytes.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
        if bytes.iter().enumerate().any(|(at, byte)| *byte == b'%' && broken(at)) {
            return Err(PathError::Encoding);
        }
        Self::from_text(&percent_decode_str(text).decode_utf8().map_err(|_| PathError::Encoding)?)
    }

    /// Reads a path as people write it. Empty segments mean nothing; `.` alone is the root.
    pub fn from_text(text: &str) -> Result<Self, PathError> {
        if text.len() > MAX_PATH {
            return Err(PathError::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(PathError::Control);
        }
        if text.contains('\\') {
            return Err(PathError::Backslash);
        }
        let segments: Vec<&str> = text.split('/').filter(|segment| !segment.is_empty()).collect();
        if segments == ["."] {
            return Ok(Self::root());
        }
        if segments.len() > MAX_DEPTH || segments.iter().any(|segment| segment.len() > MAX_SEGMENT) {
            return Err(PathError::TooLong);
        }
        for segment in &segments {
            if [".", ".."].contains(segment) {
                return Err(PathError::DotSegment);
            }
            if segment.eq_ignore_ascii_case(STATE_FOLDER) {
                return Err(PathError::Reserved);
            }
        }
        Ok(Self(segments.into_iter().map(str::to_owned).collect()))
    }

    /// Whether it is the root.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, from the root on.
    #[must_use]
    pub fn segments(&self) -> &[String] {
        &self.0
    }

    /// The folder it is in, and its name there; `None` for the root.
    #[must_use]
    pub fn split(&self) -> Option<(Self, &str)> {
        let (name, parent) = self.0.split_last()?;
        Some((Self(parent.to_vec()), name))
    }

    /// Whether it is `folder` or below it.
    #[must_use]
    pub fn is_within(&self, folder: &Self) -> bool {
        self.0.starts_with(&folder.0)
    }

    /// For the file system, relative to the root; the root is `.`.
    #[must_use]
    pub fn to_relative(&self) -> PathBuf {
        if self.is_root() { PathBuf::from(".") } else { self.0.iter().collect() }
    }
}

/// Without slashes at the ends; the root is empty.
impl fmt::Display for SitePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &str) -> Result<String, PathError> {
        SitePath::from_encoded(text).map(|path| path.to_string())
    }

    #[test]
    fn spellings_of_one_place() {
        for text in ["", "/", ".", "./", "//"] {
            assert_eq!(SitePath::from_text(text), Ok(SitePath::root()), "{text:?}");
        }
        for text in ["a/b", "/a/b", "a/b/", "a//b", "//a///b//"] {
            assert_eq!(SitePath::from_text(text).unwrap().to_string(), "a/b", "{text:?}");
        }
    }

    #[test]
    fn decoded_once() {
        for (text, expected) in [
            ("%2Freports%2F2025%2Fa%20b.html", "reports/2025/a b.html"),
            ("a%252e%252e", "a%2e%2e"),
            ("a+b", "a+b"),
            ("%E2%82%AC#", "€#"),
            ("...", "..."),
            ("a..b/.keep", "a..b/.keep"),
        ] {
            assert_eq!(encoded(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn refused() {
        let long = "a".repeat(256);
        let deep = "a/".repeat(129);
        for (text, error) in [
            ("..", PathError::DotSegment),
            ("a/../b", PathError::DotSegment),
            ("a/./b", PathError::DotSegment),
            ("%2e%2e%2f", PathError::DotSegment),
            ("%2F..%2Fetc", PathError::DotSegment),
            ("a%00b", PathError::Control),
            ("a%0d%0aSet-Cookie:x", PathError::Control),
            ("a\u{7f}", PathError::Control),
            ("a%C2%85b", PathError::Control),
            ("a%5c..%5cb", PathError::Backslash),
            ("%zz", PathError::Encoding),
            ("a%2", PathError::Encoding),
            ("%ff", PathError::Encoding),
            (".sites/tokens.json", PathError::Reserved),
            ("a/.SITES", PathError::Reserved),
            (long.as_str(), PathError::TooLong),
            (deep.as_str(), PathError::TooLong),
        ] {
            assert_eq!(encoded(text), Err(error), "{text}");
        }
    }
}
