//! Ctrl-C during long work: the work stops at its next step and tidies up. A second one, or one
//! while the command waits for input, ends it at once. The store needs no such care: a process that
//! ends leaves the last commit. What is owed is a word on what was committed.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::failure::{Code, Done, Failure};
use crate::output::{Progress, tell};

static CAME: AtomicBool = AtomicBool::new(false);
/// The command is inside a read of its input, which may last for ever.
static READING: AtomicBool = AtomicBool::new(false);
/// Records committed so far, for the last word.
static COMMITTED: AtomicU64 = AtomicU64::new(0);

/// How long the input may keep the command waiting after Ctrl-C.
const GRACE: Duration = Duration::from_millis(300);

/// From now on Ctrl-C (and a termination signal) is heard of by [`came`].
pub(crate) fn catch() -> Done<()> {
    ctrlc::set_handler(|| {
        if CAME.swap(true, Ordering::SeqCst) {
            end();
        }
        std::thread::sleep(GRACE);
        if READING.load(Ordering::SeqCst) {
            end();
        }
    })
    .map_err(|e| Failure::new(Code::Other, "listen for Ctrl-C", e.to_string()))
}

fn end() -> ! {
    tell(&format!("zubilo: interrupted: {}", committed(COMMITTED.load(Ordering::SeqCst))));
    std::process::exit(Code::Other as i32)
}

/// What is in the store after `records` of the input were committed.
pub(crate) fn committed(records: u64) -> String {
    match records {
        0 => "nothing was committed".to_string(),
        1 => "the first record was committed".to_string(),
        n => format!("the first {n} records were committed"),
    }
}

/// Whether to stop.
pub(crate) fn came() -> bool {
    CAME.load(Ordering::Relaxed)
}

/// To be told after each commit.
pub(crate) fn note_committed(records: u64) {
    COMMITTED.store(records, Ordering::SeqCst);
}

/// Input whose reading Ctrl-C can break off, and whose progress is shown.
pub(crate) struct Input<'p, R> {
    pub(crate) inner: R,
    /// Bytes read so far.
    pub(crate) read: u64,
    pub(crate) progress: &'p Progress,
}

impl<R: Read> Read for Input<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        READING.store(true, Ordering::SeqCst);
        let read = match came() {
            true => Err(io::Error::other("interrupted")),
            false => self.inner.read(into),
        };
        READING.store(false, Ordering::SeqCst);
        self.read += *read.as_ref().unwrap_or(&0) as u64;
        self.progress.set(self.read);
        read
    }
}
