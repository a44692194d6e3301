//! Stands in for what listens for Ctrl-C, which a process can set up once only: none comes.

use std::io::{self, Read};

use crate::failure::Done;
use crate::output::Progress;

pub(crate) fn catch() -> Done<()> {
    Ok(())
}

pub(crate) fn came() -> bool {
    false
}

pub(crate) fn committed(records: u64) -> String {
    format!("{records} committed")
}

pub(crate) fn note_committed(_records: u64) {}

/// The input, whose progress is shown.
pub(crate) struct Input<'p, R> {
    pub(crate) inner: R,
    pub(crate) read: u64,
    pub(crate) progress: &'p Progress,
}

impl<R: Read> Read for Input<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.read += read as u64;
        self.progress.set(self.read);
        Ok(read)
    }
}
