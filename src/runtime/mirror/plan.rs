//! What to do about each file. Pure.

use jiff::Timestamp;

use super::record::{Record, Written};
use super::source::{Entries, Found};
use crate::runtime::content::Condition;

/// A file, folder or link on this side.
#[derive(Clone, Debug, Default)]
pub struct Local {
    pub folder: bool,
    pub size: u64,
    pub modified: Option<Timestamp>,
    /// Of a file its entity tag, of a link `link:<target>`.
    pub etag: String,
}

/// What to do about one path of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is here.
    Nothing,
    /// It is here from before the mirror began: from now on it counts as ours.
    Adopt {
        version: Option<String>,
        etag: String,
    },
    /// Somebody changed it on this side.
    Keep,
    MakeFolder,
    Link {
        target: String,
    },
    /// Ask for it, and write what comes unless the file here changes meanwhile.
    Copy {
        condition: Condition,
    },
}

/// What to do about a path of the source.
#[must_use]
pub fn step(found: &Found, known: Option<&Written>, local: Option<&Local>) -> Step {
    let ours = |local: &Local| known.is_some_and(|known| known.etag == local.etag);
    if let Some(target) = &found.target {
        return match local {
            Some(local) if local.etag == format!("link:{target}") => Step::Nothing,
            Some(local) if !local.etag.starts_with("link:") || !ours(local) => Step::Keep,
            _ => Step::Link { target: target.clone() },
        };
    }
    if found.folder {
        return match local {
            None => Step::MakeFolder,
            Some(local) if local.folder => Step::Nothing,
            Some(_) => Step::Keep,
        };
    }
    match local {
        None => Step::Copy { condition: Condition::Absent },
        Some(local) if local.folder => Step::Keep,
        Some(local) if ours(local) => {
            let unchanged =
                found.version.is_some() && known.and_then(|known| known.source.as_ref()) == found.version.as_ref();
            if unchanged { Step::Nothing } else { Step::Copy { condition: Condition::Matches(local.etag.clone()) } }
        }
        // A volume that was taken over has the files already, with their times.
        Some(local) if known.is_none() && same(found, local) => {
            Step::Adopt { version: found.version.clone(), etag: local.etag.clone() }
        }
        Some(_) => Step::Keep,
    }
}

fn same(found: &Found, local: &Local) -> bool {
    let times = found.modified.zip(local.modified);
    found.size == Some(local.size) && times.is_some_and(|(source, here)| source.as_second() == here.as_second())
}

/// What was written and is not at the source any more.
#[must_use]
pub fn deletions(record: &Record, entries: &Entries) -> Vec<String> {
    record.files.keys().filter(|path| !entries.contains_key(*path)).cloned().collect()
}

/// Most deletions of a cycle: a share of what was written, but one always.
#[must_use]
pub fn allowed_deletions(written: usize, percent: u8) -> usize {
    if percent == 0 { 0 } else { (written * usize::from(percent)).div_ceil(100) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: Option<&str>) -> Found {
        Found { version: version.map(str::to_owned), size: Some(3), ..Found::default() }
    }

    fn written(source: Option<&str>, etag: &str) -> Written {
        Written { source: source.map(str::to_owned), etag: etag.to_owned() }
    }

    fn local(etag: &str) -> Local {
        Local { etag: etag.to_owned(), size: 3, ..Local::default() }
    }

    #[test]
    fn files() {
        let copy = |condition| Step::Copy { condition };
        let matches = || copy(Condition::Matches("a".to_owned()));
        for (found, known, local, expected) in [
            (file(Some("1")), None, None, copy(Condition::Absent)),
            (file(Some("1")), Some(written(Some("1"), "a")), Some(local("a")), Step::Nothing),
            (file(Some("2")), Some(written(Some("1"), "a")), Some(local("a")), matches()),
            (file(None), Some(written(None, "a")), Some(local("a")), matches()),
            (file(Some("2")), Some(written(Some("1"), "a")), Some(local("b")), Step::Keep),
            (file(Some("1")), Some(written(Some("1"), "a")), None, copy(Condition::Absent)),
            (file(Some("1")), None, Some(local("b")), Step::Keep),
            (file(Some("1")), None, Some(Local { folder: true, ..Local::default() }), Step::Keep),
        ] {
            assert_eq!(step(&found, known.as_ref(), local.as_ref()), expected, "{found:?} {known:?} {local:?}");
        }
    }

    #[test]
    fn a_file_that_was_there_before_is_adopted_when_size_and_time_agree() {
        let time = Timestamp::from_second(1000).ok();
        let found = Found { modified: time, ..file(None) };
        let here = |size, seconds| Local { size, modified: Timestamp::from_second(seconds).ok(), ..local("b") };
        assert_eq!(step(&found, None, Some(&here(3, 1000))), Step::Adopt { version: None, etag: "b".to_owned() });
        assert_eq!(step(&found, None, Some(&here(4, 1000))), Step::Keep);
        assert_eq!(step(&found, None, Some(&here(3, 1001))), Step::Keep);
        assert_eq!(step(&found, Some(&written(None, "a")), Some(&here(3, 1000))), Step::Keep);
    }

    #[test]
    fn links_and_folders() {
        let link = Found { target: Some("develop".to_owned()), ..Found::default() };
        let to = Step::Link { target: "develop".to_owned() };
        assert_eq!(step(&link, None, None), to);
        assert_eq!(step(&link, None, Some(&local("link:develop"))), Step::Nothing);
        assert_eq!(step(&link, Some(&written(None, "link:master")), Some(&local("link:master"))), to);
        assert_eq!(step(&link, None, Some(&local("link:master"))), Step::Keep);
        assert_eq!(step(&link, None, Some(&local("a"))), Step::Keep);
        let folder = Found { folder: true, ..Found::default() };
        assert_eq!(step(&folder, None, None), Step::MakeFolder);
        assert_eq!(step(&folder, None, Some(&Local { folder: true, ..Local::default() })), Step::Nothing);
        assert_eq!(step(&folder, None, Some(&local("a"))), Step::Keep);
    }

    #[test]
    fn deletions_are_bounded() {
        for (written, percent, allowed) in
            [(0, 10, 0), (1, 10, 1), (10, 10, 1), (11, 10, 2), (1000, 10, 100), (50, 0, 0), (3, 100, 3)]
        {
            assert_eq!(allowed_deletions(written, percent), allowed, "{percent} % of {written}");
        }
        let record = Record { files: ["a", "b"].map(|path| (path.to_owned(), written(None, "x"))).into() };
        assert_eq!(deletions(&record, &Entries::from([("a".to_owned(), Found::default())])), ["b"]);
    }
}
