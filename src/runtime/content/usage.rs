//! How much the site uses, and that nobody goes beyond what it may have.
//!
//! Owns the ledger: one small file that all processes of the site change under one lock, so that writers of several
//! roles and pods cannot overrun the quota together. It counts the apparent size of every file, those that are being
//! written with what they have reserved. What changes behind its back (a custom application's files) is found by
//! counting anew: before anything is refused, and from time to time.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cap_std::fs::{Dir, OpenOptions};
use rustix::fs::fstatvfs;

use super::{Content, ContentError, walk};

/// Kept free for the site's own state: a token can be revoked on a full volume.
const HEADROOM: u64 = 8 << 20;
/// Shortest time between two counts that refusals ask for.
const RECOUNT_INTERVAL: Duration = Duration::from_secs(5);
/// Begins the ledger of this form.
const MAGIC: [u8; 8] = *b"sites-u1";

/// What the site uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of all files, with what running uploads have reserved.
    pub used: u64,
    /// Bytes that can still be written.
    pub free: u64,
    /// Bytes that the site may have.
    pub limit: u64,
}

/// The ledger's file.
pub(super) struct Ledger {
    file: Mutex<File>,
    limit: u64,
    recounted: Mutex<Option<Instant>>,
}

/// The ledger, open and locked. Written back when it is dropped.
pub(super) struct Book<'a> {
    file: MutexGuard<'a, File>,
    used: u64,
    changes: u64,
    counted: bool,
    dirty: bool,
}

impl Ledger {
    pub(super) fn open(state: &Dir, limit: u64) -> Result<Self, ContentError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let file = state.open_with("usage", &options).map_err(|error| ContentError::io("open", "usage", error))?;
        Ok(Self { file: Mutex::new(file.into_std()), limit, recounted: Mutex::new(None) })
    }

    /// Waits for its turn.
    pub(super) fn book(&self) -> Result<Book<'_>, ContentError> {
        let failed = |step, error| ContentError::io(step, "usage", error);
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.lock().map_err(|error| failed("lock", error))?;
        let mut bytes = [0; 24];
        let read = file.read_at(&mut bytes, 0).map_err(|error| failed("read", error))?;
        let counted = read == bytes.len() && bytes[..8] == MAGIC;
        let number = |at: usize| bytes[at..at + 8].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let (used, changes) = if counted { (number(8), number(16)) } else { (0, 0) };
        Ok(Book { file, used, changes, counted, dirty: false })
    }

    pub(super) fn is_counted(&self) -> Result<bool, ContentError> {
        Ok(self.book()?.counted)
    }

    /// Whether counting anew may change a refusal, and is not asked for too often.
    fn may_recount(&self) -> bool {
        let mut last = self.recounted.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|at| at.elapsed() >= RECOUNT_INTERVAL);
        if due {
            *last = Some(Instant::now());
        }
        due
    }
}

impl Book<'_> {
    pub(super) fn add(&mut self, bytes: u64) {
        self.used = self.used.saturating_add(bytes);
        self.touch();
    }

    pub(super) fn subtract(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
        self.touch();
    }

    fn touch(&mut self) {
        self.changes = self.changes.wrapping_add(1);
        self.dirty = true;
    }
}

impl Drop for Book<'_> {
    fn drop(&mut self) {
        // One never counted stays so: whoever counts it takes what is there.
        if self.dirty && self.counted {
            let mut bytes = [0; 24];
            bytes[..8].copy_from_slice(&MAGIC);
            bytes[8..16].copy_from_slice(&self.used.to_le_bytes());
            bytes[16..].copy_from_slice(&self.changes.to_le_bytes());
            if let Err(error) = self.file.write_all_at(&bytes, 0) {
                tracing::warn!(%error, "the usage could not be written; it is counted anew from time to time");
            }
        }
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "the usage could not be unlocked");
        }
    }
}

impl Content {
    /// What the site uses now.
    pub fn usage(&self) -> Result<Usage, ContentError> {
        let used = self.ledger.book()?.used;
        let limit = self.ledger.limit;
        Ok(Usage { used, free: limit.saturating_sub(used).min(self.available()?), limit })
    }

    /// Takes bytes of the quota, or says that there are not so many.
    pub(super) fn reserve(&self, bytes: u64) -> Result<(), ContentError> {
        loop {
            let refused = {
                let mut book = self.ledger.book()?;
                let available = self.available()?;
                if book.used.saturating_add(bytes) <= self.ledger.limit {
                    if bytes > available {
                        return Err(ContentError::VolumeFull);
                    }
                    book.add(bytes);
                    return Ok(());
                }
                let limit = self.ledger.limit;
                ContentError::Quota { needed: bytes, free: limit.saturating_sub(book.used), limit }
            };
            if !self.ledger.may_recount() {
                return Err(refused);
            }
            self.recount()?;
        }
    }

    /// Gives reserved bytes back.
    pub(super) fn release(&self, bytes: u64) {
        match self.ledger.book() {
            Ok(mut book) => book.subtract(bytes),
            Err(error) => tracing::warn!(%error, "the usage is too high until it is counted anew"),
        }
    }

    /// Counts anew. A count during which somebody wrote is not taken: the ledger has followed, the count has not.
    pub fn recount(&self) -> Result<(), ContentError> {
        for _ in 0..3 {
            let before = self.ledger.book()?.changes;
            let failed = |error| ContentError::io("count", "", error);
            let bytes = walk::size(&self.root, true).map_err(failed)?
                + walk::size(&self.staging, false).map_err(failed)?
                + walk::size(&self.trash, false).map_err(failed)?
                + walk::size(&self.parts, false).map_err(failed)?;
            let mut book = self.ledger.book()?;
            if book.changes == before || !book.counted {
                book.used = bytes;
                book.counted = true;
                book.touch();
                return Ok(());
            }
        }
        Ok(())
    }

    pub(super) fn available(&self) -> Result<u64, ContentError> {
        let volume = fstatvfs(&self.root).map_err(|error| ContentError::io("look at", "the volume", error.into()))?;
        Ok(volume.f_bavail.saturating_mul(volume.f_frsize).saturating_sub(HEADROOM))
    }
}
