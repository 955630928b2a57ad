//! How many objects still have a status to write: a graceful stop waits for none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One object's share of the count; given back when its actor ends.
#[derive(Debug)]
pub struct Outstanding {
    total: Arc<AtomicUsize>,
    counted: bool,
}

impl Outstanding {
    /// Not counted yet.
    #[must_use]
    pub const fn new(total: Arc<AtomicUsize>) -> Self {
        Self { total, counted: false }
    }

    /// Counts this object, or not any more.
    pub fn set(&mut self, outstanding: bool) {
        match (self.counted, outstanding) {
            (false, true) => self.total.fetch_add(1, Ordering::AcqRel),
            (true, false) => self.total.fetch_sub(1, Ordering::AcqRel),
            _ => return,
        };
        self.counted = outstanding;
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.set(false);
    }
}
