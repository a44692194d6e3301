//! Mistakes in the use of the disk, planted at its interface: a flush that is left out, a failure that
//! nobody hears of, a file that is cut too short. The engine needs no branch for them. Mistakes that no
//! call shows are in `zubilo::planted`.

use std::sync::Arc;

use crate::disk::{Call, Event};

/// A mistake. One at a time is made, by all who use a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Flushes are left out.
    NotFlushed,
    /// The flush after the write of a meta is left out: acknowledged too early.
    AcknowledgedEarly,
    /// The flush of pages, before the meta that needs them, is left out.
    PagesNotFlushed,
    /// The flush of what the last users left in the kernel, before anything is written, is left out.
    OpenNotFlushed,
    /// The wipe of a meta that was not published is not flushed.
    WipeNotFlushed,
    /// The directory entry is not flushed.
    DirectoryNotFlushed,
    /// A flush that failed counts as one that succeeded.
    FailedFlushIgnored,
    /// More than the free tail of the file is cut off.
    CutTooFar,
}

/// What a write before a flush was.
#[derive(PartialEq, Eq)]
enum Last {
    Meta,
    Wipe,
    Page,
    Nothing,
}

/// The newest write in a log.
fn last(events: &[Arc<Event>]) -> Last {
    let write = events.iter().rev().find_map(|event| match &**event {
        Event::Write { data, .. } => Some(data),
        _ => None,
    });
    match write {
        None => Last::Nothing,
        Some(data) if data.get(8..16) == Some(b"ZUBILO\x1a\n") => Last::Meta,
        Some(data) if data.iter().all(|byte| *byte == 0) => Last::Wipe,
        Some(_) => Last::Page,
    }
}

impl Mistake {
    /// Whether a flush after these events and calls is left out.
    pub(crate) fn skips_flush(self, events: &[Arc<Event>], calls: &[Call]) -> bool {
        match self {
            Mistake::NotFlushed => true,
            Mistake::AcknowledgedEarly => last(events) == Last::Meta,
            Mistake::PagesNotFlushed => last(events) == Last::Page,
            Mistake::WipeNotFlushed => last(events) == Last::Wipe,
            Mistake::OpenNotFlushed => {
                !calls.iter().any(|call| matches!(call, Call::Write | Call::Grow | Call::Truncate))
            }
            _ => false,
        }
    }
}
