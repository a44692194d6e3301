//! Ctrl-C during long work: the work stops at its next step, tidies up and ends with the code 130. A
//! second one ends the command at once. The store needs no such care: a process that ends leaves the last
//! commit. What is owed is a word on what was committed, and that nothing half-made is left.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::failure::{Code, Done, Failure};
use crate::output::{Progress, to_stderr};

static CAME: AtomicBool = AtomicBool::new(false);
/// Records committed so far, for the last word.
static COMMITTED: AtomicU64 = AtomicU64::new(0);
/// Files that are of no use to anybody before the command has ended well.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// How long input is waited for before Ctrl-C is looked for again.
const GLANCE: Duration = Duration::from_millis(100);

/// From now on Ctrl-C (and a termination signal) is heard of by [`came`].
pub(crate) fn catch() -> Done<()> {
    ctrlc::set_handler(|| {
        if CAME.swap(true, Ordering::SeqCst) {
            end();
        }
    })
    .map_err(|e| Failure::new(Code::Other, "listen for Ctrl-C", e.to_string()))
}

fn end() -> ! {
    for path in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        // Nobody waits for what cannot be removed.
        let _ = std::fs::remove_file(path);
    }
    to_stderr(&format!("zubilo: interrupted: {}", committed(COMMITTED.load(Ordering::SeqCst))));
    std::process::exit(Code::Interrupted as i32)
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

/// To be called after each commit.
pub(crate) fn note_committed(records: u64) {
    COMMITTED.store(records, Ordering::SeqCst);
}

/// New files that are removed if the command is ended before the guard is gone.
pub(crate) struct Unfinished(());

impl Unfinished {
    pub(crate) fn new(paths: impl IntoIterator<Item = PathBuf>) -> Unfinished {
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).extend(paths);
        Unfinished(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Input whose reading Ctrl-C breaks off, also while there is nothing to be read, and whose progress is
/// shown.
pub(crate) struct Input<'p> {
    pub(crate) inner: File,
    /// Bytes read so far.
    pub(crate) read: u64,
    pub(crate) progress: &'p Progress,
}

impl Read for Input<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !came() {
            if is_ready(&self.inner)? {
                let read = self.inner.read(into)?;
                self.read += read as u64;
                self.progress.set(self.read);
                return Ok(read);
            }
        }
        Err(io::Error::other("interrupted"))
    }
}

/// Whether a read will not wait, now or after a moment.
fn is_ready(file: &File) -> io::Result<bool> {
    let wait = Timespec { tv_sec: 0, tv_nsec: GLANCE.subsec_nanos().into() };
    // Everything else (an end, an error) comes from the read itself.
    match poll(&mut [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)], Some(&wait)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
