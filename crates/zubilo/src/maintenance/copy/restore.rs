//! A new file made of a copy and of the changes since: what [`super::changes`] wrote, applied.
//!
//! The file gets its name when all is done and checked. Nothing here trusts the streams: what they bring has to lie inside the store, what
//! they leave as it is has to be in the copy, each ends with a checksum, and the check of the whole
//! file has the last word.

use std::hash::Hasher;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use twox_hash::XxHash3_64;

use crate::env::EnvInner;
use crate::env::meta::{META_COUNT, META_SIZE, Meta};
use crate::error::{Error, Result};
use crate::maintenance::check::verify;
use crate::num::{TxnId, load_u32, load_u64};
use crate::page::{HEADER, header};
use crate::txn::pinned;

use super::changes::{BLOCK, END, HEAD, MAGIC, PAGES, SAME, VERSION};
use super::new_file::NewFile;
use super::{Progress, Sparse, meta_pages, plain};

/// Bytes read at once.
const CHUNK: u64 = 1 << 20;

/// A store that is not finished; dropped, it is removed.
pub(crate) struct Part(NewFile);

impl Part {
    /// A new file beside `to`, with no more rights than those of the copy's file.
    pub(crate) fn create(copy: &EnvInner, to: &Path) -> Result<Part> {
        NewFile::create(copy, to).map(Part)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.path
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
        let NewFile { file, path, .. } = &self.0;
        let mut sink = Sparse { file, path, page_size, sealer: None };
        let mut meta = plain::meta(meta);
        plain::run(&txn, &meta, &[], &mut sink, progress)?;
        for stream in changes {
            let stream = Stream { input: *stream, sum: XxHash3_64::new(), since: 0 };
            meta = self.apply(&meta, stream, progress)?;
        }
        let io = |op| Error::io_at(op, path);
        // What lies in the ring of a redo log, if there is one, is no record: the seed of one's checksum is in the meta.
        file.set_len(meta.end << meta.page_shift).map_err(io("set the length of"))?;
        file.sync_all().map_err(io("flush"))?;
        file.write_all_at(&meta_pages(&meta, None), 0).map_err(io("write"))?;
        file.sync_all().map_err(io("flush"))?;
        Ok((TxnId(meta.txn), meta.end))
    }

    /// Gives the file its name, if nothing has taken that meanwhile.
    pub(crate) fn finish(self) -> Result<()> {
        self.0.finish()
    }

    /// What the check of the new store has found, as the user is to hear it: if the copy is whole, what is wrong came with
    /// changes that are not of its history.
    pub(crate) fn blame(copy: &Arc<EnvInner>, changes: usize, error: Error) -> Error {
        if changes == 0 || !matches!(error, Error::Corrupted { .. }) {
            return error;
        }
        let judged = pinned(copy).and_then(|(txn, meta)| {
            verify(&txn, &meta, &mut |_, _| true)?;
            Ok(txn.id())
        });
        let reason = "pages below those that fit are others: the changes are of another history";
        match judged {
            Ok(commit) => Error::ForeignChanges { since: commit, commit, reason },
            Err(damage) => damage,
        }
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
            self.0.file.write_all_at(bytes, at).map_err(Error::io_at("write", &self.0.path))?;
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
        match self.0.file.read_exact_at(&mut bytes, page << new.page_shift) {
            Ok(()) => Ok(header::number(&bytes) == page && header::checksum(&bytes) == checksum),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(Error::io_at("read", &self.0.path)(error)),
        }
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
        if self.since < meta.txn {
            return Err(self.foreign(meta, "it holds a later commit than the one they go on from"));
        }
        if self.since > meta.txn {
            let reason = "it holds an earlier commit, and changes between the two are missing";
            return Err(self.foreign(meta, reason));
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
