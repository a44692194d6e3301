//! The file of an encrypted store, as the engine sees it: its pages at the usual places of a map, but readable only after
//! they were decrypted.
//!
//! There are two maps. The one of the file shows ciphertext, and the metas. The other one is memory of this process with
//! room for every page; the engine reads it. A word for each page says what is there: a part of the tag of
//! the ciphertext that was decrypted. If the file has another one now, the page was written since.
//!
//! What must hold, so that no page changes under those who read it: a page is decrypted into its place only when the file
//! has another one there than the place. The file changes a page only when no snapshot that is pinned needs it, and who
//! asks for a page has pinned a snapshot that has it. So nobody reads what is replaced, as long as only users of the store
//! write the file: an older page that somebody puts back while it is open is authentic, and replaces what others read
//! (SAFETY.md). Threads that ask for one page at once take turns by a lock; what they would decrypt is the same.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::platform::{Advice, DataFile, Decryption, FileId, Memory, Purpose, os_page_size};

use super::header::Header;
use super::keys::{DRAWN, Keys, NONCE, TRAILER, draw, purpose_of};
use super::layout::{Layout, METAS};

/// Locks for pages that are decrypted.
const LOCKS: usize = 64;
/// About so many bytes are encrypted before they are written.
const BATCH: usize = 256 << 10;

/// An encrypted file.
pub(crate) struct EncryptedFile(Arc<Inside>);

struct Inside {
    inner: Box<dyn DataFile>,
    keys: Keys,
    layout: Layout,
    /// Bytes of the store's address space.
    reserved: u64,
    /// The pages in readable form.
    plain: Memory,
    /// What is there: the state of each page.
    states: Memory,
    /// A buffer for a page behind each.
    locks: Box<[Mutex<Vec<u8>>]>,
}

impl EncryptedFile {
    /// The file with the keys of its header.
    pub(crate) fn new(inner: Box<dyn DataFile>, keys: Keys, shift: u32) -> Result<EncryptedFile> {
        let failed = || Error::io_at("reserve memory to decrypt", inner.path());
        let layout = Layout { shift };
        let mut reserved = layout.store_len(inner.reserved());
        let len = layout
            .store_len(inner.len().map_err(Error::io_at("find the length of", inner.path()))?);
        // Where the system has less address space, less has to do.
        let (plain, states) = loop {
            let pages = reserved >> shift;
            let states = (pages * 8).next_multiple_of(1 << 16);
            let made = Memory::reserve(reserved as usize)
                .and_then(|plain| Ok((plain, Memory::reserve(states as usize)?)));
            match made {
                Ok(made) => break made,
                Err(_) if reserved / 2 >= (2 * len).max(64 << 20) => {
                    reserved = (reserved / 2) >> 16 << 16;
                }
                Err(error) => return Err(failed()(error)),
            }
        };
        let locks = (0..LOCKS).map(|_| Mutex::new(Vec::new())).collect();
        Ok(EncryptedFile(Arc::new(Inside { inner, keys, layout, reserved, plain, states, locks })))
    }

    /// Writes the header of a file that is created.
    pub(crate) fn write_header(inner: &dyn DataFile, header: &Header) -> Result<()> {
        let layout = Layout { shift: header.shift };
        let io = |op| Error::io_at(op, inner.path());
        inner.grow(layout.file_len((METAS + 1) << header.shift), true).map_err(io("grow"))?;
        let page = header.page();
        let at = METAS << header.shift;
        inner.write_at(at, &mut [IoSlice::new(&page)]).map_err(io("write the header of"))?;
        inner.sync_data().map_err(io("flush"))
    }
}

impl Inside {
    /// The state of a page: zero, or what [`state_of`] says of the ciphertext that is there in readable form.
    fn state(&self, number: u64) -> &AtomicU64 {
        debug_assert!(number < self.reserved >> self.layout.shift);
        // SAFETY: the memory has a word for each page of the address space, aligned, and used as an atomic only.
        unsafe { &*self.states.base().as_ptr().cast::<AtomicU64>().add(number as usize) }
    }

    /// The trailer of a page inside the file.
    fn trailer(&self, number: u64) -> [u8; TRAILER] {
        let mut trailer = [0; TRAILER];
        let at = self.layout.place(number) + self.layout.page();
        // SAFETY: the place lies inside file and map. In a pinned snapshot nobody writes the page; if a damaged
        // reference led here, what is copied is checked by its tag, or is another state than the one that is known.
        unsafe {
            let from = self.inner.base().add(at as usize);
            std::ptr::copy_nonoverlapping(from, trailer.as_mut_ptr(), TRAILER);
        }
        trailer
    }

    /// The state of a page, but for its purpose, if it is in its place as the file has it now.
    #[inline]
    fn mark(&self, number: u64) -> u64 {
        let mut tag = [0; 8];
        let at = self.layout.place(number) + self.layout.page() + NONCE as u64;
        // SAFETY: as in `trailer`, of which this is a part.
        unsafe {
            let from = self.inner.base().add(at as usize);
            std::ptr::copy_nonoverlapping(from, tag.as_mut_ptr(), tag.len());
        }
        u64::from_le_bytes(tag) | PURPOSE
    }

    /// Decrypts a page into its place, or looks whether the file still has what is there. Gives its state.
    #[cold]
    fn fill(&self, number: u64, again: bool) -> Option<u64> {
        let size = self.layout.page() as usize;
        let lock = &self.locks[number as usize % LOCKS];
        let mut page = lock.lock().unwrap_or_else(|e| e.into_inner());
        let trailer = self.trailer(number);
        let known = self.state(number).load(Ordering::Acquire);
        // What was authentic before with this tag is so with this purpose only.
        let is_there = known | PURPOSE == state_of(&trailer) | PURPOSE && known != 0;
        if is_there && !again {
            return Some(known);
        }
        page.resize(size, 0);
        // SAFETY: as in `trailer`; the bytes are used only if their tag is right.
        unsafe {
            let from = self.inner.base().add(self.layout.place(number) as usize);
            std::ptr::copy_nonoverlapping(from, page.as_mut_ptr(), size);
        }
        if !self.keys.open(number, &mut page, &trailer) {
            return None;
        }
        if !is_there {
            self.put(number, &page, &trailer);
        }
        Some(state_of(&trailer))
    }

    /// Each of the pages, by `readable`: its state in its place.
    #[inline(always)]
    fn each(
        &self,
        first: u64,
        count: u64,
        purpose: Option<Purpose>,
        readable: impl Fn(u64) -> Option<u64>,
    ) -> std::result::Result<(), u64> {
        let all = self.reserved >> self.layout.shift;
        if first < METAS || first.checked_add(count).is_none_or(|end| end > all) {
            return Err(first);
        }
        for number in first..first + count {
            let state = readable(number).ok_or(number)?;
            if purpose.is_some_and(|purpose| state & PURPOSE != purpose as u64) {
                return Err(number);
            }
        }
        Ok(())
    }

    /// Puts a page into its place. The caller holds the page's lock.
    fn put(&self, number: u64, page: &[u8], trailer: &[u8; TRAILER]) {
        let state = self.state(number);
        state.store(0, Ordering::Release);
        // SAFETY: the place lies inside the memory. Nobody reads it: what was there belongs to no pinned snapshot, as
        // the file has something else there now or is about to; see the head of the module.
        unsafe {
            let to = self.plain.base().as_ptr().add((number as usize) << self.layout.shift);
            std::ptr::copy_nonoverlapping(page.as_ptr(), to, page.len());
        }
        state.store(state_of(trailer), Ordering::Release);
    }

    /// Encrypts whole pages, from `first` on, and writes them.
    fn write_pages(&self, first: u64, bufs: &[IoSlice<'_>], purpose: Purpose) -> io::Result<()> {
        let size = self.layout.page() as usize;
        let mut nonce = [0; NONCE];
        draw(&mut nonce[..DRAWN]).map_err(io::Error::other)?;
        let stride = size + TRAILER;
        let room = (BATCH / size).max(1);
        let mut batch = Vec::with_capacity(room * stride);
        let (mut number, mut start) = (first, first);
        // Bytes of the page under way that the batch has.
        let mut done = 0;
        for buf in bufs {
            let mut rest: &[u8] = buf;
            while !rest.is_empty() {
                let (part, more) = rest.split_at(rest.len().min(size - done));
                batch.extend_from_slice(part);
                (rest, done) = (more, done + part.len());
                if done < size {
                    continue;
                }
                let from = batch.len() - size;
                nonce[DRAWN..].copy_from_slice(&(number - first).to_le_bytes());
                let page = &mut batch[from..];
                let trailer = self.seal(number, nonce, page, purpose).map_err(io::Error::other)?;
                batch.extend_from_slice(&trailer);
                (number, done) = (number + 1, 0);
                if number - start == room as u64 {
                    self.inner.write_at(self.layout.place(start), &mut [IoSlice::new(&batch)])?;
                    batch.clear();
                    start = number;
                }
            }
        }
        if done > 0 {
            return Err(misplaced());
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.inner.write_at(self.layout.place(start), &mut [IoSlice::new(&batch)])
    }

    /// Encrypts a page in its place. If it was read before it stays readable, as what it becomes.
    fn seal(
        &self,
        number: u64,
        nonce: [u8; NONCE],
        page: &mut [u8],
        purpose: Purpose,
    ) -> Result<[u8; TRAILER]> {
        if self.state(number).load(Ordering::Relaxed) == 0 {
            return self.keys.seal(number, nonce, page, purpose);
        }
        let lock = &self.locks[number as usize % LOCKS];
        let mut readable = lock.lock().unwrap_or_else(|e| e.into_inner());
        readable.clear();
        readable.extend_from_slice(page);
        let trailer = self.keys.seal(number, nonce, page, purpose)?;
        self.put(number, &readable, &trailer);
        Ok(trailer)
    }
}

/// The part of a state that is the purpose of its page.
const PURPOSE: u64 = 0xff;

/// What a ciphertext with this trailer is known by, which is never zero if it is authentic: its purpose in the lowest
/// byte, and seven bytes of its tag.
fn state_of(trailer: &[u8; TRAILER]) -> u64 {
    let tag = trailer[NONCE..].first_chunk().copied().unwrap_or_default();
    u64::from_le_bytes(tag) & !PURPOSE | u64::from(purpose_of(trailer))
}

fn misplaced() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "only whole pages can be encrypted")
}

impl Decryption for Inside {
    #[inline]
    fn decrypt(
        &self,
        first: u64,
        count: u64,
        purpose: Option<Purpose>,
    ) -> std::result::Result<(), u64> {
        self.each(first, count, purpose, |number| {
            let known = self.state(number).load(Ordering::Acquire);
            match known != 0 && known | PURPOSE == self.mark(number) {
                true => Some(known),
                false => self.fill(number, false),
            }
        })
    }

    fn decrypt_again(
        &self,
        first: u64,
        count: u64,
        purpose: Option<Purpose>,
    ) -> std::result::Result<(), u64> {
        self.each(first, count, purpose, |number| self.fill(number, true))
    }

    fn authenticator(&self, meta: &[u8]) -> [u8; 32] {
        self.keys.proof(b"meta", meta)
    }

    fn blinded(&self, checksum: u64) -> u64 {
        let proof = self.keys.proof(b"checksum", &checksum.to_le_bytes());
        u64::from_le_bytes(proof.first_chunk().copied().unwrap_or_default())
    }
}

// SAFETY: both maps are made once and stay as long as the value, or anybody who decrypts by it, lives. The readable one
// has room for all of `reserved`, and changes as the trait says: see the head of the module.
unsafe impl DataFile for EncryptedFile {
    fn base(&self) -> *const u8 {
        self.0.plain.base().as_ptr()
    }

    fn metas_base(&self) -> *const u8 {
        self.0.inner.base()
    }

    fn decryption(&self) -> Option<Arc<dyn Decryption>> {
        Some(Arc::clone(&self.0) as Arc<dyn Decryption>)
    }

    fn reserved(&self) -> u64 {
        self.0.reserved
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.layout.store_len(self.0.inner.len()?))
    }

    fn is_fixed(&self) -> bool {
        self.0.inner.is_fixed()
    }

    fn write_at(&self, at: u64, bufs: &mut [IoSlice<'_>]) -> io::Result<()> {
        let Inside { inner, layout, reserved, .. } = &*self.0;
        let len = bufs.iter().map(|buf| buf.len() as u64).sum::<u64>();
        let end = at.checked_add(len).filter(|end| end <= reserved).ok_or_else(misplaced)?;
        if end <= METAS << layout.shift {
            return inner.write_at(at, bufs);
        }
        // Pages have a purpose.
        Err(misplaced())
    }

    fn write_pages_at(
        &self,
        at: u64,
        bufs: &mut [IoSlice<'_>],
        purpose: Purpose,
    ) -> io::Result<()> {
        let Inside { layout, reserved, .. } = &*self.0;
        let len = bufs.iter().map(|buf| buf.len() as u64).sum::<u64>();
        let fits = at.checked_add(len).is_some_and(|end| end <= *reserved);
        if !fits || at < METAS << layout.shift || !at.is_multiple_of(layout.page()) {
            return Err(misplaced());
        }
        self.0.write_pages(at >> layout.shift, bufs, purpose)
    }

    fn grow(&self, new_len: u64, zeroed_written: bool) -> io::Result<()> {
        let Inside { inner, layout, reserved, .. } = &*self.0;
        if new_len > *reserved {
            return Err(misplaced());
        }
        inner.grow(layout.file_len(new_len), zeroed_written)
    }

    fn truncate(&self, new_len: u64) -> io::Result<()> {
        self.0.inner.truncate(self.0.layout.file_len(new_len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.inner.sync_data()
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.0.inner.sync_directory()
    }

    fn writable(&self) -> Option<*mut u8> {
        None
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) -> io::Result<()> {
        let layout = self.0.layout;
        let start = layout.file_len(offset / layout.page() * layout.page());
        let end = layout.file_len(offset.saturating_add(len).min(self.0.reserved));
        self.0.inner.advise(start, end.saturating_sub(start), advice)
    }

    /// Of the ciphertext.
    fn resident(&self, at: u64, len: u64) -> io::Result<Vec<bool>> {
        let Inside { inner, layout, reserved, .. } = &*self.0;
        if at.checked_add(len).is_none_or(|end| end > *reserved) {
            return Err(misplaced());
        }
        let unit = os_page_size() as u64;
        let place = |at: u64| match at >> layout.shift {
            number if number < METAS => at,
            number => layout.place(number) + at % layout.page(),
        };
        let wanted: Vec<u64> = (at..at + len).step_by(unit as usize).map(place).collect();
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else {
            return Ok(Vec::new());
        };
        let start = first / unit * unit;
        let states = inner.resident(start, last + 1 - start)?;
        let state =
            |at: u64| states.get(((at - start) / unit) as usize).is_some_and(|state| *state);
        Ok(wanted.into_iter().map(state).collect())
    }

    fn id(&self) -> FileId {
        self.0.inner.id()
    }

    fn home(&self) -> u64 {
        self.0.inner.home()
    }

    fn stamp(&self) -> Option<u64> {
        self.0.inner.stamp()
    }

    fn path(&self) -> &Path {
        self.0.inner.path()
    }

    fn descriptor(&self) -> Option<i32> {
        self.0.inner.descriptor()
    }
}
