//! The damaged file: found out by its own bytes, read page by page, never mapped and never changed.
//!
//! A page is used only if its number and checksum are right. The scan lists all such leaves, those
//! of older commits too, by table and newest first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::crypt::{Sealer, Secret};
use crate::dirty::with_room;
use crate::env::meta::{META_COUNT, META_SIZE, Meta, Reading};
use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::page::header;
use crate::platform::Purpose;
use crate::tree::RunRef;

/// Pages of which each possible size must be distinguished from the others where no meta is left.
const PROBE: u64 = 16 << 20;
/// Bytes read at once by the scan.
const CHUNK: u64 = 1 << 20;

enum Bytes {
    File(File),
    Memory(Vec<u8>),
}

/// A leaf that the scan found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) birth: u64,
    pub(super) page: u64,
}

pub(super) struct Source {
    bytes: Bytes,
    /// Bytes of the store.
    len: u64,
    /// Of an encrypted one.
    sealer: Option<Sealer>,
    shift: u32,
    /// Whole metas of the newest identity, newest first.
    pub(super) metas: Vec<Meta>,
    /// Leaves by table, newest first.
    leaves: BTreeMap<u32, Vec<Found>>,
    /// A meta page cannot be read because it is damaged: it may have been the newest.
    pub(super) lost_meta: bool,
    /// The table of tables' page that was written last, the highest of its commit: its birth, number and
    /// level.
    pub(super) last_root: Option<(u64, u64, u8)>,
    /// Pages of trees with right checksums.
    pub(super) pages: u64,
    /// Something was not read that may be whole.
    lacked_memory: AtomicBool,
}

impl Source {
    pub(super) fn open(path: &Path, secret: Option<&Secret>) -> Result<Source> {
        let kind = std::fs::metadata(path).map_err(Error::io_at("open", path))?.file_type();
        if !kind.is_file() {
            // To open a pipe would wait for its other end.
            let found = if kind.is_dir() { "a directory" } else { "a pipe, socket or device" };
            return Err(Error::NotAStore { path: Box::new(path.to_path_buf()), found });
        }
        let file = File::open(path).map_err(Error::io_at("open", path))?;
        let len = file.metadata().map_err(Error::io_at("find the length of", path))?.len();
        Source::start(Bytes::File(file), len, path, secret)
    }

    pub(super) fn of_bytes(bytes: Vec<u8>) -> Result<Source> {
        let len = bytes.len() as u64;
        Source::start(Bytes::Memory(bytes), len, Path::new("memory"), None)
    }

    fn start(bytes: Bytes, len: u64, path: &Path, secret: Option<&Secret>) -> Result<Source> {
        let (metas, leaves, lacked_memory) = (Vec::new(), BTreeMap::new(), AtomicBool::new(false));
        let mut source = Source {
            bytes,
            len,
            sealer: None,
            shift: 12,
            metas,
            leaves,
            lost_meta: false,
            last_root: None,
            pages: 0,
            lacked_memory,
        };
        source.find_metas();
        source.unlock(secret)?;
        if source.metas.is_empty() && source.sealer.is_none() && !source.find_page_size() {
            let found = "no page of it is a store's";
            return Err(Error::NotAStore { path: Box::new(path.to_path_buf()), found });
        }
        source.scan();
        source.had_memory()?;
        Ok(source)
    }

    pub(super) fn page_size(&self) -> usize {
        1 << self.shift
    }

    /// An error if anything could not be read for want of memory: it is not lost.
    pub(super) fn had_memory(&self) -> Result<()> {
        if self.lacked_memory.load(Ordering::Relaxed) {
            Err(Error::no_memory("read what is left of a store"))
        } else {
            Ok(())
        }
    }

    /// Finds the key of an encrypted store, from its header. Metas that nobody with the key has written are none.
    fn unlock(&mut self, secret: Option<&Secret>) -> Result<()> {
        let Some(secret) = secret else {
            let is_encrypted = self.metas.iter().any(|meta| meta.authenticator.is_some());
            return if is_encrypted { Err(Error::KeyMissing) } else { Ok(()) };
        };
        let found = (12..=16).find_map(|shift| {
            let page = self.raw(META_COUNT << shift, 1 << shift)?;
            Sealer::of_header(&page, shift, secret).map(|sealer| (sealer, shift))
        });
        let Some((sealer, shift)) = found else {
            return match self.metas.iter().all(|meta| meta.authenticator.is_none()) {
                true => Err(Error::NotEncrypted),
                false => Err(Error::Corrupted {
                    page: PageNo(META_COUNT),
                    reason: "the header of the encrypted store is damaged, and with it the way to its key",
                }),
            };
        };
        let sealer = sealer?;
        let of = |meta: &Meta| sealer.authenticator(meta.to_authenticate().as_slice());
        self.metas.retain(|meta| meta.authenticator == Some(of(meta)));
        (self.len, self.shift) = (sealer.store_len(self.len), shift);
        self.sealer = Some(sealer);
        Ok(())
    }

    /// Bytes of the store; none where it ends before, or where they cannot be read or decrypted.
    fn read(&self, at: u64, len: usize, purpose: Purpose) -> Option<Vec<u8>> {
        let Some(sealer) = self.sealer.as_ref().filter(|_| at >= META_COUNT << self.shift) else {
            return self.raw(at, len);
        };
        if at.checked_add(len as u64)? > self.len {
            return None;
        }
        let mut out = self.room(len)?;
        for number in at >> self.shift.. {
            if out.len() >= len {
                break;
            }
            let sealed = self.raw(sealer.place(number), sealer.stride())?;
            let page = sealer.open(number, sealed, purpose)?;
            out.extend_from_slice(page.get(..page.len().min(len - out.len()))?);
        }
        Some(out)
    }

    /// Bytes of the file; none where it ends before or cannot be read.
    fn raw(&self, at: u64, len: usize) -> Option<Vec<u8>> {
        let end = at.checked_add(len as u64)?;
        if self.sealer.is_none() && end > self.len {
            return None;
        }
        match &self.bytes {
            Bytes::Memory(bytes) => {
                let mut out = self.room(len)?;
                out.extend_from_slice(bytes.get(at as usize..end as usize)?);
                Some(out)
            }
            Bytes::File(file) => {
                let mut out = self.room(len)?;
                out.resize(len, 0);
                // A sector that cannot be read is a page that is lost.
                file.read_exact_at(&mut out, at).ok()?;
                Some(out)
            }
        }
    }

    fn room(&self, len: usize) -> Option<Vec<u8>> {
        let room = with_room(len);
        self.lacked_memory.fetch_or(room.is_none(), Ordering::Relaxed);
        room
    }

    fn find_metas(&mut self) {
        for shift in 12..=16 {
            for i in 0..META_COUNT {
                let page = self.raw(i << shift, META_SIZE);
                if let Some(Ok(meta)) = page.map(|page| Meta::decode(&page))
                    && meta.page_shift == shift
                {
                    self.metas.push(meta);
                }
            }
        }
        self.metas.sort_by_key(|meta| std::cmp::Reverse(meta.txn));
        if let Some(newest) = self.metas.first() {
            let (uuid, shift) = (newest.uuid, newest.page_shift);
            self.metas.retain(|meta| meta.uuid == uuid && meta.page_shift == shift);
            self.shift = shift;
        }
        let page = |i| self.raw(i << self.shift, META_SIZE);
        let is_lost = |page: Vec<u8>| matches!(Meta::read(&page), Reading::Damaged(..));
        self.lost_meta = (0..META_COUNT).any(|i| page(i).is_none_or(is_lost));
    }

    /// Without metas: the size at which most pages are whole.
    fn find_page_size(&mut self) -> bool {
        let mut best = 0;
        for shift in 12..=16 {
            let pages = PROBE.min(self.len) >> shift;
            let page = |n: u64| self.raw(n << shift, 1 << shift);
            let whole = |n: &u64| page(*n).is_some_and(|page| header::verify(&page, *n).is_ok());
            let bytes = ((META_COUNT..pages).filter(whole).count() as u64) << shift;
            if bytes > best {
                (best, self.shift) = (bytes, shift);
            }
        }
        best > 0
    }

    fn scan(&mut self) {
        let size = self.page_size();
        let (pages, step) = (self.len >> self.shift, CHUNK >> self.shift);
        let mut next = META_COUNT;
        while next < pages {
            let count = step.min(pages - next);
            match self.read(next << self.shift, (count as usize) << self.shift, Purpose::Tree) {
                Some(chunk) => {
                    let found = chunk.chunks_exact(size).zip(next..);
                    found.for_each(|(page, n)| self.note(page, n));
                }
                None => {
                    // One bad sector must not cost its neighbours.
                    for n in next..next + count {
                        if let Some(page) = self.read(n << self.shift, size, Purpose::Tree) {
                            self.note(&page, n);
                        }
                    }
                }
            }
            next += count;
        }
        for found in self.leaves.values_mut() {
            found.sort_by_key(|found| std::cmp::Reverse(found.birth));
        }
    }

    fn note(&mut self, page: &[u8], n: u64) {
        // Cheap first: most of what is no page of a tree bears another number.
        if header::number(page) != n || header::verify(page, n).is_err() {
            return;
        }
        self.pages += 1;
        if header::table(page) == 0 {
            let (birth, level) = (header::birth(page), header::level(page));
            let later = |(last, _, top): (u64, u64, u8)| (birth, level) > (last, top);
            if self.last_root.is_none_or(later) {
                self.last_root = Some((birth, n, level));
            }
        }
        if header::level(page) == 0 {
            let found = Found { birth: header::birth(page), page: n };
            let list = self.leaves.entry(header::table(page)).or_default();
            match list.try_reserve(1) {
                Ok(()) => list.push(found),
                Err(_) => self.lacked_memory.store(true, Ordering::Relaxed),
            }
        }
    }

    /// A page of a tree that is whole, of this table, and not younger than `birth`.
    pub(super) fn page(&self, n: u64, table: u32, birth: u64) -> Option<Vec<u8>> {
        if n < META_COUNT || n >= self.len >> self.shift {
            return None;
        }
        let page = self.read(n << self.shift, self.page_size(), Purpose::Tree)?;
        let fits = header::verify(&page, n).is_ok()
            && header::table(&page) == table
            && header::birth(&page) <= birth;
        fits.then_some(page)
    }

    /// A large value, if its checksum is right.
    pub(super) fn run(&self, run: &RunRef, birth: u64) -> Option<Vec<u8>> {
        if run.birth > birth || run.first >= self.len >> self.shift || run.len > self.len {
            return None;
        }
        let value = self.read(run.first << self.shift, run.len as usize, Purpose::Value)?;
        run.verify(&value).ok().map(|()| value)
    }

    /// The leaves of a table, newest first.
    pub(super) fn leaves(&self, table: u32) -> &[Found] {
        self.leaves.get(&table).map_or(&[], Vec::as_slice)
    }

    /// The tables of which there are leaves.
    pub(super) fn tables(&self) -> BTreeSet<u32> {
        self.leaves.keys().copied().collect()
    }
}
