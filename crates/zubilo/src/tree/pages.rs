//! From a reference to the bytes of a page.
//!
//! [`Ref`] names a page: by its number when it is in the file, by its arena slot while it is
//! dirty. [`Pages`] resolves both. [`Snapshot`] is the reader's view: the map, bounded by the end
//! of its snapshot; every reference from the file passes its bounds check, so no damaged
//! reference leads out of the map.

use std::marker::PhantomData;

use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::page::row::Node;
use crate::page::{self, Branch, Damage, Leaf, LeafPage, header};
use crate::platform::Purpose;

use super::RunRef;
use super::located::Located;
use super::verify::Verifier;

/// Reference to a page: its number, or its arena slot with the top bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Ref(pub(crate) u64);

const DIRTY: u64 = 1 << 63;

impl Ref {
    /// No page: the root of an empty tree. (Page 0 is a meta, never part of a tree.)
    pub(crate) const NONE: Ref = Ref(0);

    /// The page in arena slot `slot`.
    #[inline]
    pub(crate) fn dirty(slot: u32) -> Ref {
        Ref(DIRTY | u64::from(slot))
    }

    /// The arena slot, if the page is dirty.
    #[inline]
    pub(crate) fn slot(self) -> Option<u32> {
        (self.0 & DIRTY != 0).then_some(self.0 as u32)
    }

    /// The page number to name in an error; dirty pages have none yet.
    pub(crate) fn page_no(self) -> PageNo {
        PageNo(if self.0 & DIRTY != 0 { 0 } else { self.0 })
    }

    /// Turns the damage of this page into the public error.
    #[inline]
    pub(crate) fn damaged(self) -> impl FnOnce(Damage) -> Error {
        move |damage| corrupted(self, damage)
    }
}

/// Whether a child of a branch is dirty. One sum over all instead of a question for each: the mark of
/// one shows in it.
#[inline]
pub(crate) fn any_dirty(children: &[[u8; 8]]) -> bool {
    Ref(children.iter().fold(0, |all, c| all | u64::from_le_bytes(*c))).slot().is_some()
}

#[cold]
fn corrupted(at: Ref, damage: Damage) -> Error {
    Error::Corrupted { page: at.page_no(), reason: damage.0 }
}

/// A source of pages. `'p` is the life of the bytes it hands out.
pub(crate) trait Pages<'p>: Copy {
    /// The bytes of a page; its number and age have been checked, its contents have not.
    fn page(&self, at: Ref) -> Result<&'p [u8]>;
    /// As `page`, without saying what is wrong: whether all is as usual, and the page if so. (No
    /// `Option`: the compiler would compare the address of each page with null.)
    #[inline(always)]
    fn quick_page(&self, at: Ref) -> (bool, &'p [u8]) {
        match self.page(at) {
            Ok(page) => (true, page),
            Err(_) => (false, &[]),
        }
    }
    /// The same of a page that was looked at before and has not changed since.
    fn page_again(&self, at: Ref) -> Option<&'p [u8]>;
    /// The bytes of a value run.
    fn run(&self, holder: Ref, run: &RunRef) -> Result<&'p [u8]>;
    /// Asks the CPU to fetch the start of a page that is needed soon.
    fn prefetch(&self, at: Ref);
    /// Asks the CPU to fetch the heap of a page, whose header has been asked for before.
    fn prefetch_heap(&self, at: Ref);
    /// Asks the CPU to fetch a page from end to end.
    fn prefetch_page(&self, at: Ref);

    /// The branch at `at`, which must be on `level`.
    #[inline(always)]
    fn branch(&self, at: Ref, level: u8) -> Result<Located<Branch<'p>>> {
        Located::new(at, Branch::on_level(self.page(at)?, level))
    }

    /// The leaf at `at`.
    #[inline(always)]
    fn leaf(&self, at: Ref) -> Result<Located<Leaf<'p>>> {
        self.leaf_of_kind(at)
    }

    /// The leaf at `at`, of a kind that the caller knows.
    #[inline(always)]
    fn leaf_of_kind<L: LeafPage<'p>>(&self, at: Ref) -> Result<Located<L>> {
        Located::new(at, L::parse(self.page(at)?))
    }

    /// The same of a page that was looked at before and has not changed since.
    #[inline(always)]
    fn leaf_again<L: LeafPage<'p>>(&self, at: Ref) -> Result<Located<L>> {
        match self.page_again(at) {
            Some(page) => Located::new(at, L::parse(page)),
            None => self.leaf_of_kind(at),
        }
    }

    /// The page at `at`, of whatever kind, which must be on `level`.
    fn node(&self, at: Ref, level: u8) -> Result<Located<Node<'p>>> {
        Located::new(at, Node::on_level(self.page(at)?, level))
    }
}

/// The pages of one snapshot in the map.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot<'p> {
    base: *const u8,
    end: u64,
    txn: u64,
    shift: u32,
    /// Bytes of a page.
    size: usize,
    verifier: Option<&'p Verifier>,
    life: PhantomData<&'p [u8]>,
}

// SAFETY: a snapshot is a bounded view of pages that nobody writes while it lives (see `new`);
// reading shared immutable bytes from any thread is sound.
unsafe impl Send for Snapshot<'_> {}
// SAFETY: as above.
unsafe impl Sync for Snapshot<'_> {}

impl<'p> Snapshot<'p> {
    /// A view of the pages below `end` of the map at `base`, in the state of transaction `txn`.
    ///
    /// # Safety
    /// For the life `'p`, `end << shift` bytes from `base` must stay mapped and inside the file,
    /// and no page that is reachable in snapshot `txn` may be written.
    pub(crate) unsafe fn new(
        base: *const u8,
        shift: u32,
        end: u64,
        txn: u64,
        verifier: Option<&'p Verifier>,
    ) -> Snapshot<'p> {
        let size = 1 << shift;
        Snapshot { base, end, txn, shift, size, verifier, life: PhantomData }
    }

    /// The same pages, each verified by `verifier`, which belongs to the same file.
    pub(crate) fn verified_by<'s>(self, verifier: &'s Verifier) -> Snapshot<'s>
    where
        'p: 's,
    {
        Snapshot { verifier: Some(verifier), life: PhantomData, ..self }
    }

    /// Bytes of a page.
    pub(crate) fn page_size(&self) -> usize {
        1 << self.shift
    }

    /// Any `len` bytes at the start of page `first`, bounded by the snapshot's end. In an encrypted store they must
    /// have been written for the purpose, if one is named.
    #[inline(always)]
    pub(crate) fn bytes(&self, first: u64, len: u64, purpose: Option<Purpose>) -> Option<&'p [u8]> {
        if !self.has(first, len) {
            return None;
        }
        if let Some(verifier) = self.verifier {
            verifier.decrypt(first, len.div_ceil(self.size as u64), purpose).ok()?;
        }
        self.readable(first, len)
    }

    /// The same of pages that are readable already.
    #[inline(always)]
    fn readable(&self, first: u64, len: u64) -> Option<&'p [u8]> {
        if !self.has(first, len) {
            return None;
        }
        let start = first << self.shift;
        // SAFETY: start + len <= end << shift, which `new` promises to be mapped and unchanging
        // for 'p; `end` is bounded by the reservation, so no shift overflows.
        Some(unsafe { std::slice::from_raw_parts(self.base.add(start as usize), len as usize) })
    }

    /// Whether `len` bytes from page `first` on lie inside the snapshot.
    #[inline(always)]
    pub(crate) fn has(&self, first: u64, len: u64) -> bool {
        first < self.end && len <= (self.end - first) << self.shift
    }

    /// What is to be done before a page below the end is looked at.
    #[cold]
    #[inline(never)]
    fn prepare(&self, verifier: &Verifier, at: Ref) -> Result<()> {
        verifier.decrypt(at.0, 1, Some(Purpose::Tree)).map_err(at.damaged())?;
        let bytes = self.readable(at.0, self.size as u64).ok_or_else(|| self.stray(at))?;
        match header::number(bytes) == at.0 {
            true => verifier.page(at.0, bytes).map_err(at.damaged()),
            // What is wrong with it is said by who looks at it.
            false => Ok(()),
        }
    }

    #[cold]
    fn stray(&self, at: Ref) -> Error {
        corrupted(at, Damage("a reference leads outside the store"))
    }
}

impl<'p> Pages<'p> for Snapshot<'p> {
    #[inline(always)]
    fn page(&self, at: Ref) -> Result<&'p [u8]> {
        if at.0 >= self.end {
            return Err(self.stray(at));
        }
        if let Some(verifier) = self.verifier {
            self.prepare(verifier, at)?;
        }
        // SAFETY: as in `bytes`: the page lies below `end`.
        let bytes = unsafe {
            let start = self.base.add((at.0 as usize) << self.shift);
            std::slice::from_raw_parts(start, self.size)
        };
        // Never: but it spares the checks of each field of the header.
        if bytes.len() < page::HEADER {
            return Err(self.stray(at));
        }
        if header::number(bytes) != at.0 || header::birth(bytes) > self.txn {
            return Err(corrupted(at, Damage("the page is not the one referred to")));
        }
        Ok(bytes)
    }

    #[inline(always)]
    fn quick_page(&self, at: Ref) -> (bool, &'p [u8]) {
        // Where pages are to be verified or decrypted nothing is usual.
        if self.size < page::SMALLEST || self.verifier.is_some() || at.0 >= self.end {
            return (false, &[]);
        }
        // SAFETY: as in `page`.
        let bytes = unsafe {
            let start = self.base.add((at.0 as usize) << self.shift);
            std::slice::from_raw_parts(start, self.size)
        };
        if header::number(bytes) != at.0 || header::birth(bytes) > self.txn {
            return (false, &[]);
        }
        (true, bytes)
    }

    #[inline(always)]
    fn page_again(&self, at: Ref) -> Option<&'p [u8]> {
        if at.0 >= self.end {
            return None;
        }
        // SAFETY: as in `page`. What was looked at before was decrypted then, and has not changed since.
        Some(unsafe {
            std::slice::from_raw_parts(self.base.add((at.0 as usize) << self.shift), self.size)
        })
    }

    fn run(&self, holder: Ref, run: &RunRef) -> Result<&'p [u8]> {
        let stray = || corrupted(holder, Damage("a value run leads outside the store"));
        let is_inside = run.birth <= self.txn && self.has(run.first, run.len);
        let pages = is_inside.then(|| run.len.div_ceil(self.size as u64)).ok_or_else(stray)?;
        if let Some(verifier) = self.verifier {
            let readable = verifier.decrypt(run.first, pages, Some(Purpose::Value));
            readable.map_err(Ref(run.first).damaged())?;
        }
        let bytes = self.readable(run.first, run.len).ok_or_else(stray)?;
        if let Some(verifier) = self.verifier {
            verifier.run(run, bytes).map_err(Ref(run.first).damaged())?;
        }
        Ok(bytes)
    }

    #[inline(always)]
    fn prefetch(&self, at: Ref) {
        page::prefetch(self.base.wrapping_add((at.0 as usize) << self.shift));
    }

    #[inline]
    fn prefetch_page(&self, at: Ref) {
        page::prefetch_page(self.base.wrapping_add((at.0 as usize) << self.shift), self.size);
    }

    #[inline]
    fn prefetch_heap(&self, at: Ref) {
        if let Some(bytes) = self.bytes(at.0, 1 << self.shift, Some(Purpose::Tree)) {
            page::prefetch_heap(bytes);
        }
    }
}
