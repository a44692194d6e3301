//! The workspace of a write transaction: every change of a page goes through it.
//!
//! It knows which nesting level runs, copies a page before that level changes it, and books what
//! was set free: pages of the snapshot (they die with this commit), pages this transaction itself
//! had already written (spilled; they go straight back to free space), slots of outer levels
//! (dropped only if the inner level commits).
//!
//! Invariant: a page of the file is verified before it is replaced or freed ([`Workspace::touch`],
//! [`Workspace::drop_page`]). What is copied gets a new checksum, which would hide damage for good; what is
//! freed shows by its birth who may still read it.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::page::header::Origin;
use crate::page::{self, Branch, Damage, FLAG_DIRTY_RUNS, Kind, header};
use crate::space::Extent;
use crate::tree::verify::Verifier;
use crate::tree::{Pages, Ref, RunRef, Snapshot, any_dirty};

use super::arena::{Arena, Level};

/// A leaf whose last version is at most this many commits old is likely to change again soon.
/// Branches are taken for hot anyway: each change of a leaf below replaces them.
const HOT_AGE: u64 = 64;

/// Pages of the snapshot that the transaction no longer refers to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freed {
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) birth: u64,
}

/// What a transaction has done with pages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PageCounts {
    /// Pages copied to be changed.
    pub(crate) copied: u64,
    /// Pages that are there because another one was full.
    pub(crate) split: u64,
    /// Pages joined with a neighbour.
    pub(crate) merged: u64,
    /// Pages written before the commit.
    pub(crate) spilled: u64,
}

/// A large value that is still in memory.
struct DirtyRun {
    bytes: Box<[u8]>,
    level: Level,
}

/// What a nesting level must remember to be undone or handed over.
struct Nested {
    owned: Vec<u32>,
    superseded: Vec<u32>,
    owned_runs: Vec<u32>,
    superseded_runs: Vec<u32>,
    freed: usize,
    returned: usize,
    spilled: usize,
}

/// Where the map of the file is; `Snapshot`s are made of it on demand.
#[derive(Clone, Copy)]
pub(crate) struct MapView {
    base: *const u8,
    shift: u32,
    end: u64,
}

// SAFETY: the pointer is followed by way of `Workspace::view` only, whose snapshot is bounded and shows
// pages that nobody writes, whatever thread reads them.
unsafe impl Sync for MapView {}

/// The dirty half of a write transaction.
pub(crate) struct Workspace {
    map: MapView,
    /// Decrypts the pages of an encrypted store.
    decrypting: Option<Arc<Verifier>>,
    txn: u64,
    /// The number of the open it is written in.
    opening: u32,
    arena: Arena,
    runs: Vec<Option<DirtyRun>>,
    run_bytes: u64,
    levels: Vec<Nested>,
    /// Changes so far of any tree; see `Tree::version`.
    changes: u64,
    /// Pages of the snapshot that died.
    freed: Vec<Freed>,
    /// Pages written by this transaction before its commit.
    spilled: Vec<Extent>,
    /// Of those, the ones no longer in use.
    returned: Vec<Extent>,
    /// What was done so far, be it undone since.
    pub(crate) counts: PageCounts,
    /// A buffer for the tree code.
    pub(crate) separator: Vec<u8>,
}

/// The transaction's view: dirty pages from the arena, clean ones from the map.
#[derive(Clone, Copy)]
pub(crate) struct View<'w> {
    snapshot: Snapshot<'w>,
    ws: &'w Workspace,
}

impl View<'_> {
    /// Asks the CPU to fetch a page from end to end, also one in memory: for pages that a change
    /// searches and moves about.
    #[inline]
    pub(crate) fn prefetch_to_change(&self, at: Ref) {
        match at.slot().and_then(|slot| self.ws.arena.page(slot)) {
            Some(page) => page::prefetch_page(page.as_ptr(), page.len()),
            None => self.prefetch_page(at),
        }
    }
}

impl<'w> Pages<'w> for View<'w> {
    #[inline]
    fn page(&self, at: Ref) -> Result<&'w [u8]> {
        match at.slot() {
            None => self.snapshot.page(at),
            Some(slot) => self.ws.arena.page(slot).ok_or_else(|| {
                at.damaged()(Damage("a reference to an unwritten page in a written one"))
            }),
        }
    }

    #[inline]
    fn page_again(&self, at: Ref) -> Option<&'w [u8]> {
        match at.slot() {
            None => self.snapshot.page_again(at),
            Some(slot) => self.ws.arena.page(slot),
        }
    }

    fn run(&self, holder: Ref, run: &RunRef) -> Result<&'w [u8]> {
        match run.slot() {
            None => self.snapshot.run(holder, run),
            Some(slot) => self.ws.dirty_run(slot).ok_or_else(|| {
                holder.damaged()(Damage("a reference to an unwritten value in a written page"))
            }),
        }
    }

    #[inline]
    fn prefetch(&self, at: Ref) {
        if at.slot().is_none() {
            self.snapshot.prefetch(at);
        }
    }

    #[inline]
    fn prefetch_page(&self, at: Ref) {
        if at.slot().is_none() {
            self.snapshot.prefetch_page(at);
        }
    }

    #[inline]
    fn prefetch_heap(&self, at: Ref) {
        if at.slot().is_none() {
            self.snapshot.prefetch_heap(at);
        }
    }
}

impl Workspace {
    /// A workspace for a transaction on top of a snapshot whose pages end at `end`.
    ///
    /// # Safety
    /// As [`Snapshot::new`], for the life of the workspace: the pages below `end`, and those
    /// that [`Workspace::extend`] adds, stay mapped, inside the file and unchanged.
    pub(crate) unsafe fn new(
        base: *const u8,
        shift: u32,
        end: u64,
        Origin { birth: txn, opening }: Origin,
        arena: Arena,
        decrypting: Option<Arc<Verifier>>,
    ) -> Workspace {
        Workspace {
            map: MapView { base, shift, end },
            decrypting,
            txn,
            opening,
            arena,
            runs: Vec::new(),
            run_bytes: 0,
            levels: Vec::new(),
            changes: 0,
            // A small transaction replaces about so many pages.
            freed: Vec::with_capacity(16),
            spilled: Vec::new(),
            returned: Vec::new(),
            counts: PageCounts::default(),
            separator: Vec::new(),
        }
    }

    /// Counts a change; gives the version of the tree that it makes.
    #[inline]
    pub(crate) fn count_change(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }

    /// The arena, for the next transaction, and what was written early.
    pub(crate) fn into_parts(self) -> (Arena, Vec<Extent>) {
        (self.arena, self.spilled)
    }

    /// One of no transaction, without a page.
    pub(crate) fn none(shift: u32) -> Workspace {
        let nobody = Origin { birth: 0, opening: 0 };
        // SAFETY: it sees no page at all.
        unsafe { Workspace::new(std::ptr::null(), shift, 0, nobody, Arena::new(4096), None) }
    }

    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    pub(crate) fn txn(&self) -> u64 {
        self.txn
    }

    pub(crate) fn page_size(&self) -> usize {
        1 << self.map.shift
    }

    pub(crate) fn page_shift(&self) -> u32 {
        self.map.shift
    }

    /// Pages written early may lie past the snapshot's end; the view follows.
    pub(crate) fn extend(&mut self, end: u64) {
        self.map.end = self.map.end.max(end);
    }

    /// No tree has more pages than this.
    pub(crate) fn page_bound(&self) -> u64 {
        self.map.end + self.arena.live() as u64
    }

    /// What the transaction sees.
    #[inline]
    pub(crate) fn view(&self) -> View<'_> {
        // SAFETY: promised to `new`; the borrow of self bounds the view's life.
        let snapshot = unsafe {
            let MapView { base, shift, end } = self.map;
            Snapshot::new(base, shift, end, self.txn, self.decrypting.as_deref())
        };
        View { snapshot, ws: self }
    }

    /// Nesting level that runs: 1 for the transaction itself.
    pub(crate) fn level(&self) -> Level {
        self.levels.len() as Level + 1
    }

    /// Whether the page or value at an address is one that this transaction made: not in the map, or
    /// written early. What was written early can be taken back and written again.
    pub(crate) fn is_dirty(&self, at: *const u8) -> bool {
        let page = (at as usize).checked_sub(self.map.base as usize);
        match page.map(|offset| offset as u64 >> self.map.shift).filter(|p| *p < self.map.end) {
            Some(page) => self.spilled.iter().any(|e| (e.first..e.first + e.count).contains(&page)),
            None => true,
        }
    }

    /// Bytes of memory that dirty pages and values take.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        ((self.arena.live() as u64) << self.map.shift) + self.run_bytes
    }

    // ---- pages ----

    /// The bytes of a dirty page of the running level.
    #[inline]
    pub(crate) fn page_mut(&mut self, slot: u32) -> Result<&mut [u8]> {
        self.arena.page_mut(slot).ok_or_else(lost_slot)
    }

    /// Changes a dirty page of the running level.
    #[inline(always)]
    pub(crate) fn edit<'w, T>(
        &'w mut self,
        at: Ref,
        change: impl FnOnce(&'w mut [u8]) -> Result<T, Damage>,
    ) -> Result<T> {
        let page = at.slot().and_then(|slot| self.arena.page_mut(slot)).ok_or_else(lost_slot)?;
        change(page).map_err(at.damaged())
    }

    pub(crate) fn pair_mut(&mut self, a: u32, b: u32) -> Result<(&mut [u8], &mut [u8])> {
        self.arena.pair_mut(a, b).ok_or_else(lost_slot)
    }

    /// A dirty page to change and any other page to read from.
    pub(crate) fn change_from(&mut self, slot: u32, from: Ref) -> Result<(&mut [u8], &[u8])> {
        if let Some(other) = from.slot() {
            let (a, b) = self.pair_mut(slot, other)?;
            return Ok((a, b));
        }
        // SAFETY: promised to `new`; the borrow of self bounds the bytes' life, and pages of the
        // map never alias the arena.
        let snapshot = unsafe {
            let MapView { base, shift, end } = self.map;
            Snapshot::new(base, shift, end, self.txn, self.decrypting.as_deref())
        };
        let source = snapshot.page(from)?;
        check_clean(from, source)?;
        Ok((self.arena.page_mut(slot).ok_or_else(lost_slot)?, source))
    }

    /// A new page of the running level. The caller initialises it.
    pub(crate) fn new_page(&mut self) -> Result<u32> {
        let level = self.level();
        let slot = self.arena.alloc(level)?;
        if let Some(nested) = self.levels.last_mut() {
            push(&mut nested.owned, slot).ok_or_else(no_list)?;
        }
        Ok(slot)
    }

    /// True when the running level may change the page as it is.
    #[inline]
    pub(crate) fn owns(&self, at: Ref) -> bool {
        at.slot().is_some_and(|slot| self.arena.level(slot) == self.level())
    }

    /// The slot of a page that the running level may change.
    #[inline]
    pub(crate) fn owned_slot(&self, at: Ref) -> Option<u32> {
        at.slot().filter(|slot| self.arena.level(*slot) == self.level())
    }

    /// Makes a page changeable by the running level; gives its slot.
    #[inline]
    pub(crate) fn touch(&mut self, at: Ref) -> Result<u32> {
        match at.slot() {
            Some(slot) if self.arena.level(slot) == self.level() => Ok(slot),
            Some(slot) => self.copy_outer(slot),
            None => self.copy_clean(at),
        }
    }

    fn copy_outer(&mut self, old: u32) -> Result<u32> {
        let slot = self.new_page()?;
        let (to, from) = self.pair_mut(slot, old)?;
        to.copy_from_slice(from);
        if self.arena.is_hot(old) {
            self.arena.set_hot(slot);
        }
        if let Some(nested) = self.levels.last_mut() {
            push(&mut nested.superseded, old).ok_or_else(no_list)?;
        }
        Ok(slot)
    }

    fn copy_clean(&mut self, at: Ref) -> Result<u32> {
        let slot = self.new_page()?;
        let known = self.arena.recent.knows(at.0);
        let (to, from) = self.change_from(slot, at)?;
        to.copy_from_slice(from);
        if !known {
            header::verify(to, at.0).map_err(at.damaged())?;
        }
        let (birth, level) = (header::birth(to), header::level(to));
        if level > 0 || self.txn - birth <= HOT_AGE {
            self.arena.set_hot(slot);
        }
        self.free_clean(at.0, 1, birth)?;
        self.counts.copied += 1;
        Ok(slot)
    }

    /// Gives a dirty page its place in the file, where it is written next.
    pub(crate) fn seal(&mut self, slot: u32, number: u64) -> Result<()> {
        let by = Origin { birth: self.txn, opening: self.opening };
        header::seal(self.arena.page_mut(slot).ok_or_else(lost_slot)?, number, by);
        self.arena.recent.note(number);
        Ok(())
    }

    /// Drops a page that nothing refers to any more.
    pub(crate) fn drop_page(&mut self, at: Ref) -> Result<()> {
        let Some(slot) = at.slot() else {
            let known = self.arena.recent.knows(at.0);
            let page = self.view().page(at)?;
            if !known {
                header::verify(page, at.0).map_err(at.damaged())?;
            }
            return self.free_clean(at.0, 1, header::birth(page));
        };
        let level = self.level();
        match self.levels.last_mut() {
            Some(nested) if self.arena.level(slot) != level => {
                push(&mut nested.superseded, slot).ok_or_else(no_list)?;
            }
            _ => self.arena.release(slot),
        }
        Ok(())
    }

    /// Books pages of the file as no longer in use.
    fn free_clean(&mut self, first: u64, count: u64, birth: u64) -> Result<()> {
        let booked = if birth == self.txn {
            push(&mut self.returned, Extent { first, count })
        } else {
            push(&mut self.freed, Freed { first, count, birth })
        };
        booked.ok_or_else(no_list)
    }

    // ---- what was set free, and what was written early ----

    /// The pages of the snapshot that died, ascending.
    pub(crate) fn freed(&mut self) -> &[Freed] {
        // Sorted here once, as the free-space log wants them, instead of there for each use.
        self.freed.sort_unstable_by_key(|freed| freed.first);
        &self.freed
    }

    /// Takes them.
    pub(crate) fn take_freed(&mut self) -> Vec<Freed> {
        std::mem::take(&mut self.freed)
    }

    /// Pages that this transaction wrote before its commit.
    pub(crate) fn spilled(&self) -> &[Extent] {
        &self.spilled
    }

    /// Adds some.
    pub(crate) fn add_spilled(&mut self, extents: impl AsRef<[Extent]>) -> Result<()> {
        self.spilled.try_reserve(extents.as_ref().len()).map_err(|_| no_list())?;
        self.spilled.extend_from_slice(extents.as_ref());
        Ok(())
    }

    /// Takes them, at the commit.
    pub(crate) fn take_spilled(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.spilled)
    }

    /// Of those written early, the ones no longer in use.
    pub(crate) fn returned(&self) -> &[Extent] {
        &self.returned
    }

    /// Takes them; `rest` is what is still in use.
    pub(crate) fn take_returned(&mut self, rest: Vec<Extent>) -> Vec<Extent> {
        self.spilled = rest;
        std::mem::take(&mut self.returned)
    }

    // ---- value runs ----

    /// Keeps a large value of `len` bytes in memory: `value` and zeros after it, which the caller fills.
    pub(crate) fn new_run(&mut self, len: usize, value: &[u8]) -> Result<RunRef> {
        let index = u32::try_from(self.runs.len())
            .map_err(|_| Error::Invalid("a transaction holds at most 2^32 large values"))?;
        let level = self.level();
        let lack = || Error::no_memory("keep a large value");
        let listed = self.levels.last_mut().is_none_or(|l| l.owned_runs.try_reserve(1).is_ok());
        if !listed {
            return Err(lack());
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| lack())?;
        bytes.extend_from_slice(value);
        bytes.resize(len, 0);
        let run = DirtyRun { bytes: bytes.into_boxed_slice(), level };
        push(&mut self.runs, Some(run)).ok_or_else(lack)?;
        self.run_bytes += len as u64;
        if let Some(nested) = self.levels.last_mut() {
            nested.owned_runs.push(index);
        }
        Ok(RunRef::dirty(index, len as u64, self.txn))
    }

    pub(crate) fn dirty_run(&self, index: u32) -> Option<&[u8]> {
        Some(&self.runs.get(index as usize)?.as_ref()?.bytes)
    }

    pub(crate) fn dirty_run_mut(&mut self, index: u32) -> Option<&mut [u8]> {
        Some(&mut self.runs.get_mut(index as usize)?.as_mut()?.bytes)
    }

    /// True when the running level put the value there itself.
    pub(crate) fn owns_run(&self, index: u32) -> bool {
        let run = self.runs.get(index as usize).and_then(Option::as_ref);
        run.is_some_and(|r| r.level == self.level())
    }

    /// Drops a large value that no record refers to any more.
    pub(crate) fn drop_run(&mut self, run: &RunRef) -> Result<()> {
        let Some(index) = run.slot() else {
            let pages = run.pages(self.map.shift);
            return if pages > 0 { self.free_clean(run.first, pages, run.birth) } else { Ok(()) };
        };
        let owned = self.owns_run(index);
        match self.levels.last_mut() {
            Some(nested) if !owned => {
                push(&mut nested.superseded_runs, index).ok_or_else(no_list)?;
            }
            _ => self.forget_run(index),
        }
        Ok(())
    }

    /// Frees the memory of a run, which is written or dropped.
    pub(crate) fn forget_run(&mut self, index: u32) {
        if let Some(run) = self.runs.get_mut(index as usize).and_then(Option::take) {
            self.run_bytes -= run.bytes.len() as u64;
        }
    }

    /// Pages that the runs in memory will fill.
    pub(crate) fn run_pages(&self) -> u64 {
        self.each_run_size().map(|(_, pages)| pages).sum()
    }

    /// Values in memory, at most.
    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Index and pages of each run in memory, by index.
    pub(crate) fn run_sizes(&self) -> Result<Vec<(u32, u64)>> {
        let runs = self.runs.iter().flatten().count();
        let mut sizes = with_room(runs).ok_or_else(no_list)?;
        sizes.extend(self.each_run_size());
        Ok(sizes)
    }

    fn each_run_size(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.runs.iter().enumerate().filter_map(|(i, run)| {
            let len = run.as_ref()?.bytes.len() as u64;
            Some((i as u32, len.div_ceil(1 << self.map.shift)))
        })
    }

    /// Frees a slot whose page was written early.
    pub(crate) fn forget_slot(&mut self, slot: u32) {
        self.arena.release(slot);
    }

    // ---- nesting ----

    /// Opens a nesting level.
    pub(crate) fn begin_level(&mut self) {
        self.levels.push(Nested {
            owned: Vec::new(),
            superseded: Vec::new(),
            owned_runs: Vec::new(),
            superseded_runs: Vec::new(),
            freed: self.freed.len(),
            returned: self.returned.len(),
            spilled: self.spilled.len(),
        });
    }

    /// Hands the level's pages to the one outside. False if there is no memory for its lists: then the
    /// level outside can only be undone.
    pub(crate) fn commit_level(&mut self) -> bool {
        let Some(inner) = self.levels.pop() else { return true };
        if let Some(nested) = self.levels.last_mut() {
            let room = nested.owned.try_reserve(inner.owned.len()).is_ok()
                && nested.owned_runs.try_reserve(inner.owned_runs.len()).is_ok()
                && nested.superseded.try_reserve(inner.superseded.len()).is_ok()
                && nested.superseded_runs.try_reserve(inner.superseded_runs.len()).is_ok();
            if !room {
                return false;
            }
        }
        let outer = self.level();
        for slot in inner.superseded {
            self.drop_for(slot, outer);
        }
        for index in inner.superseded_runs {
            match self.levels.last_mut() {
                Some(nested)
                    if self
                        .runs
                        .get(index as usize)
                        .and_then(Option::as_ref)
                        .is_some_and(|r| r.level != outer) =>
                {
                    nested.superseded_runs.push(index);
                }
                _ => self.forget_run(index),
            }
        }
        for &slot in &inner.owned {
            if self.arena.level(slot) > outer {
                self.arena.set_level(slot, outer);
            }
        }
        for &index in &inner.owned_runs {
            if let Some(Some(run)) = self.runs.get_mut(index as usize) {
                run.level = outer;
            }
        }
        if let Some(nested) = self.levels.last_mut() {
            nested.owned.extend(inner.owned);
            nested.owned_runs.extend(inner.owned_runs);
        }
        true
    }

    fn drop_for(&mut self, slot: u32, level: Level) {
        match self.levels.last_mut() {
            Some(nested) if self.arena.level(slot) != level => nested.superseded.push(slot),
            _ => self.arena.release(slot),
        }
    }

    /// Undoes what the level did; gives the pages that it had written early, which nobody refers to.
    pub(crate) fn abort_level(&mut self) -> Vec<Extent> {
        let running = self.level();
        let Some(inner) = self.levels.pop() else { return Vec::new() };
        for slot in inner.owned {
            if self.arena.level(slot) == running {
                self.arena.release(slot);
            }
        }
        for index in inner.owned_runs {
            self.forget_run(index);
        }
        self.freed.truncate(inner.freed);
        self.returned.truncate(inner.returned);
        self.spilled.split_off(inner.spilled)
    }
}

/// A page from the file must not carry what only dirty pages carry: it would alias the arena.
fn check_clean(at: Ref, bytes: &[u8]) -> Result<()> {
    if header::flags(bytes) & FLAG_DIRTY_RUNS != 0 {
        return Err(at.damaged()(Damage("a written page with an unwritten value")));
    }
    if matches!(page::header::kind(bytes), Ok(Kind::Branch)) {
        let branch = Branch::new(bytes).map_err(at.damaged())?;
        if any_dirty(branch.children()) {
            return Err(at.damaged()(Damage("a written branch with an unwritten child")));
        }
    }
    Ok(())
}

/// A list with room for so many; none if there is no memory for it.
pub(crate) fn with_room<T>(items: usize) -> Option<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(items).ok()?;
    Some(list)
}

/// Appends; none if there is no memory for it.
#[inline]
fn push<T>(list: &mut Vec<T>, item: T) -> Option<()> {
    list.try_reserve(1).ok()?;
    list.push(item);
    Some(())
}

#[cold]
pub(crate) fn no_list() -> Error {
    Error::no_memory("list the pages of a transaction")
}

#[cold]
fn lost_slot() -> Error {
    Error::Corrupted { page: PageNo(0), reason: "a dirty page is referred to twice or not at all" }
}
