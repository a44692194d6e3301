//! A run in a process of its own, because some valid programs crash LMDB itself.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It came to its end.
    Well,
    /// What it says went wrong.
    Failed(String),
    /// A signal killed it, or it ended the process.
    Died(i32),
}

/// Runs a closure in a forked child.
pub fn isolated(run: impl FnOnce() -> Result<(), String>) -> End {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both ends.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0, "a pipe");
    // SAFETY: the child runs the closure only, which uses what it opens itself, and exits.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "a child process");
    // SAFETY: both descriptors were just made and are owned by nobody else.
    let (mut read, mut write) = unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
    if child == 0 {
        drop(read);
        let failed = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
            Ok(result) => result.err(),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                Some(format!("panic: {}", text.unwrap_or_else(|| "no text".into())))
            }
        };
        let written = failed.map_or(Ok(()), |why| write.write_all(why.as_bytes()));
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(i32::from(written.is_err())) };
    }
    drop(write);
    let mut why = String::new();
    let read = read.read_to_string(&mut why);
    let mut status = 0;
    // SAFETY: the child is ours; the status has room.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert!(waited == child && read.is_ok(), "the child's end");
    match (status, why.is_empty()) {
        (0, true) => End::Well,
        (0, false) => End::Failed(why),
        (status, _) => End::Died(status),
    }
}
