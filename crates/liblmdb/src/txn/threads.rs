//! The rule that a thread reads in one transaction at a time, unless configured otherwise.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use crate::errors::{Code, Result};

/// That a thread reads in an environment, which may be closed by now.
struct Mark {
    token: Weak<()>,
    reads: Arc<AtomicBool>,
}

thread_local! {
    static MARKS: RefCell<Vec<Mark>> = const { RefCell::new(Vec::new()) };
}

/// Marks this thread as reading. Whoever ends the transaction, in whatever thread, takes the mark
/// away by [`release`].
pub(super) fn claim(token: &Arc<()>) -> Result<Arc<AtomicBool>> {
    let claimed = MARKS.try_with(|marks| {
        let mut marks = marks.borrow_mut();
        if let Some(mark) = marks.iter().find(|m| m.token.as_ptr() == Arc::as_ptr(token)) {
            return mark.reads.clone();
        }
        marks.retain(|mark| mark.token.strong_count() > 0);
        let reads = Arc::new(AtomicBool::new(false));
        marks.push(Mark { token: Arc::downgrade(token), reads: reads.clone() });
        reads
    });
    // A thread that is about to end has no marks any more.
    let reads = claimed.unwrap_or_default();
    if reads.swap(true, Ordering::AcqRel) { Err(Code::BAD_RSLOT) } else { Ok(reads) }
}

/// The transaction that made the mark reads no more.
pub(super) fn release(reads: &Option<Arc<AtomicBool>>) {
    if let Some(reads) = reads {
        reads.store(false, Ordering::Release);
    }
}
