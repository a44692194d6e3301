//! Where the bytes come from: a file, or memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that can be read from anywhere.
pub trait Source {
    /// Number of bytes.
    fn size(&self) -> io::Result<u64>;

    /// Fills `into` with the bytes from `offset` on.
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

impl Source for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(into, offset)
    }
}

impl Source for &[u8] {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).ok();
        let part = from.and_then(|from| self.get(from..from.checked_add(into.len())?));
        into.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
