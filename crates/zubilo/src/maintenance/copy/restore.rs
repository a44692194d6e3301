//! A new file made of a copy and of the changes since: what [`super::changes`] wrote, applied.
//!
//! The file has another name until all is done and checked, so that there is a whole store of the name that was
//! asked for, or none. Nothing here trusts the streams: what they bring has to lie inside the store, what
//! they leave as it is has to be in the copy, each ends with a checksum, and the check of the whole
//! file has the last word.

use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use twox_hash::XxHash3_64;

use crate::env::EnvInner;
use crate::env::meta::{META_COUNT, META_SIZE, Meta};
use crate::error::{Error, Result};
use crate::num::{TxnId, load_u32, load_u64};
use crate::page::{HEADER, header};
use crate::txn::pinned;

use super::changes::{BLOCK, END, HEAD, MAGIC, PAGES, SAME, VERSION};
use super::{Progress, Sparse, create, flush_directory, meta_pages, plain};

/// Bytes read at once.
const CHUNK: u64 = 1 << 20;

/// A store that is not finished; dropped, it is removed.
pub(crate) struct Part {
    file: File,
    path: PathBuf,
    /// The name it is to have.
    to: PathBuf,
}

impl Drop for Part {
    fn drop(&mut self) {
        // The error that ended the work says more than one of the removal could.
        let _ = fs::remove_file(&self.path);
    }
}

impl Part {
    /// A new file beside `to`, with no more rights than those of the copy's file.
    pub(crate) fn create(copy: &EnvInner, to: &Path) -> Result<Part> {
        if fs::symlink_metadata(to).is_ok() {
            return Err(Error::io_at("create", to)(ErrorKind::AlreadyExists.into()));
        }
        let mut name = OsString::from(to);
        name.push("-part");
        let path = PathBuf::from(name);
        let file = create(copy, &path).map_err(Error::io_at("create", &path))?;
        Ok(Part { file, path, to: to.to_path_buf() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the newest commit of `copy` and the changes, in their order, and flushes. Gives the commit that
    /// came out and its pages.
    pub(crate) fn fill(
        &self,
        copy: &Arc<EnvInner>,
        changes: &mut [&mut dyn Read],
        progress: Progress<'_>,
    ) -> Result<(TxnId, u64)> {
        let (txn, meta) = pinned(copy)?;
        let page_size = copy.page_size();
        let mut sink = Sparse { file: &self.file, path: &self.path, page_size, sealer: None };
        let mut meta = plain::meta(meta);
        plain::run(&txn, &meta, &mut sink, progress)?;
        for stream in changes {
            let stream = Stream { input: *stream, sum: XxHash3_64::new(), since: 0 };
            meta = self.apply(&meta, stream, progress)?;
        }
        let io = |op| Error::io_at(op, &self.path);
        if let Some(log) = &meta.redo {
            // In the copy other pages may have been here.
            self.clear(log.first << meta.page_shift, log.bytes)?;
        }
        self.file.set_len(meta.end << meta.page_shift).map_err(io("set the length of"))?;
        self.file.sync_all().map_err(io("flush"))?;
        self.file.write_all_at(&meta_pages(&meta, None), 0).map_err(io("write"))?;
        self.file.sync_all().map_err(io("flush"))?;
        Ok((TxnId(meta.txn), meta.end))
    }

    /// Gives the file its name, if nothing has taken that meanwhile.
    pub(crate) fn finish(self) -> Result<()> {
        let named = match fs::hard_link(&self.path, &self.to) {
            // A file system without links.
            Err(error)
                if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) =>
            {
                match fs::symlink_metadata(&self.to) {
                    Ok(_) => Err(ErrorKind::AlreadyExists.into()),
                    Err(_) => fs::rename(&self.path, &self.to),
                }
            }
            linked => linked,
        };
        named.map_err(Error::io_at("create", &self.to))?;
        flush_directory(&self.to)
    }

    fn apply(&self, meta: &Meta, mut changes: Stream<'_>, progress: Progress<'_>) -> Result<Meta> {
        let new = changes.begin(meta)?;
        loop {
            // How long a stream is nobody knows: there is no more progress to show, but work to stop.
            if !progress(meta.end, meta.end) {
                return Err(Error::Stopped);
            }
            let sum = changes.sum.finish();
            match changes.block()? {
                [PAGES, first, count] => self.take(&mut changes, &new, first, count)?,
                [SAME, page, checksum] if self.has(&new, page, checksum)? => {}
                [SAME, ..] => {
                    let reason = "the copy holds other pages: it is compacted, or was written to";
                    return Err(changes.foreign(meta, reason));
                }
                [END, _, stored] if stored == sum => return Ok(new),
                _ => return Err(unreadable("their checksum is wrong")),
            }
        }
    }

    /// Takes pages of the stream.
    fn take(&self, changes: &mut Stream<'_>, new: &Meta, first: u64, count: u64) -> Result<()> {
        let end = first.checked_add(count).filter(|end| *end <= new.end && first >= META_COUNT);
        let Some(end) = end else { return Err(unreadable("they lead outside the store")) };
        let (mut at, end) = (first << new.page_shift, end << new.page_shift);
        let mut buffer = vec![0; CHUNK.min(end - at) as usize];
        while at < end {
            let part = CHUNK.min(end - at) as usize;
            let bytes = changes.read(&mut buffer[..part])?;
            self.file.write_all_at(bytes, at).map_err(Error::io_at("write", &self.path))?;
            at += part as u64;
        }
        Ok(())
    }

    /// Whether a page that stays is in the copy.
    fn has(&self, new: &Meta, page: u64, checksum: u64) -> Result<bool> {
        if page < META_COUNT || page >= new.end {
            return Err(unreadable("they lead outside the store"));
        }
        let mut bytes = [0; HEADER];
        match self.file.read_exact_at(&mut bytes, page << new.page_shift) {
            Ok(()) => Ok(header::number(&bytes) == page && header::checksum(&bytes) == checksum),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(Error::io_at("read", &self.path)(error)),
        }
    }

    fn clear(&self, at: u64, len: u64) -> Result<()> {
        let zeros = vec![0; CHUNK.min(len) as usize];
        for offset in (0..len).step_by(CHUNK as usize) {
            let part = &zeros[..CHUNK.min(len - offset) as usize];
            let written = self.file.write_all_at(part, at + offset);
            written.map_err(Error::io_at("write", &self.path))?;
        }
        Ok(())
    }
}

/// A stream of changes, and the checksum of what was read of it.
struct Stream<'r> {
    input: &'r mut dyn Read,
    sum: XxHash3_64,
    /// The commit it goes on from.
    since: u64,
}

impl Stream<'_> {
    fn read<'b>(&mut self, buffer: &'b mut [u8]) -> Result<&'b [u8]> {
        match self.input.read_exact(buffer) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(unreadable("they are cut off"));
            }
            Err(error) => return Err(Error::io("read the changes")(error)),
        }
        self.sum.write(buffer);
        Ok(buffer)
    }

    /// The meta of the commit that the stream leads to, from the one of `meta`.
    fn begin(&mut self, meta: &Meta) -> Result<Meta> {
        let mut head = [0; HEAD];
        self.read(&mut head)?;
        if head[..8] != MAGIC {
            return Err(unreadable("this is something else"));
        }
        if load_u32(&head, 8) != Some(VERSION) {
            return Err(unreadable("they are of another version"));
        }
        self.since = load_u64(&head, 16).unwrap_or_default();
        let mut page = vec![0; META_SIZE];
        self.read(&mut page)?;
        let new = Meta::decode(&page).map_err(|damage| unreadable(damage.0))?;
        if new.uuid != meta.uuid || new.page_shift != meta.page_shift {
            return Err(self.foreign(meta, "they are of another store"));
        }
        if self.since != meta.txn {
            return Err(self.foreign(meta, "it holds another commit"));
        }
        if new.txn < meta.txn {
            return Err(unreadable("they lead to an older commit"));
        }
        Ok(new)
    }

    fn block(&mut self) -> Result<[u64; 3]> {
        let mut block = [0; BLOCK];
        self.read(&mut block)?;
        Ok(std::array::from_fn(|i| load_u64(&block, i * 8).unwrap_or_default()))
    }

    fn foreign(&self, meta: &Meta, reason: &'static str) -> Error {
        Error::ForeignChanges { since: TxnId(self.since), commit: TxnId(meta.txn), reason }
    }
}

fn unreadable(reason: &'static str) -> Error {
    let source = io::Error::new(ErrorKind::InvalidData, reason);
    Error::Io { op: "read the changes", path: None, source }
}
