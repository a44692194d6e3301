//! Writeback: from dirty pages to places in the file. Gives each dirty page of some trees its number,
//! children before parents and in key order, fixes references and checksums, and hands all to
//! the kernel.

use std::hash::Hasher;
use std::io::IoSlice;

use twox_hash::XxHash3_64;

use crate::dirty::{Workspace, no_list, with_room};
use crate::env::EnvInner;
use crate::error::{Error, Result};
use crate::page::{
    Branch, Damage, FLAG_DIRTY_RUNS, Leaf, Order, SearchKey, ValueKind, branch, header, leaf,
};
use crate::platform::{DataFile, PerProcess, Purpose};
use crate::space::Extent;
use crate::tree::{Pages, Path, Ref, RunRef, TreeDesc, any_dirty, lookup, rank, run};

/// Extents of the large values, by index of the value, when they have places of their own.
pub(super) type RunPlaces = Option<Vec<(u32, Extent)>>;

/// Pages for a commit or spill.
pub(super) struct Allocated {
    pub(super) cold: Vec<Extent>,
    /// Places of their own for hot pages.
    pub(super) hot: Option<Vec<Extent>>,
    pub(super) runs: RunPlaces,
}

impl Allocated {
    /// All extents, ascending.
    pub(super) fn all(&self) -> Result<Vec<Extent>> {
        let hot = self.hot.as_ref().map_or(0, Vec::len);
        let runs = self.runs.as_ref().map_or(0, Vec::len);
        let mut all = with_room(self.cold.len() + hot + runs).ok_or_else(no_list)?;
        all.extend_from_slice(&self.cold);
        all.extend(self.hot.iter().flatten());
        all.extend(self.runs.iter().flatten().map(|(_, extent)| *extent));
        all.sort_unstable_by_key(|e| e.first);
        Ok(all)
    }
}

/// Hands out page numbers from extents, in their order.
struct Places {
    extents: Vec<Extent>,
}

impl Places {
    fn new(mut extents: Vec<Extent>) -> Places {
        extents.sort_unstable_by_key(|e| std::cmp::Reverse(e.first));
        Places { extents }
    }

    /// The first of `count` adjacent pages.
    fn take(&mut self, count: u64) -> Result<u64> {
        let short = || Error::Invalid("fewer pages were allocated than the commit needs");
        let Some(extent) = self.extents.last_mut() else { return Err(short()) };
        if extent.count < count {
            return Err(short());
        }
        let first = extent.first;
        extent.first += count;
        extent.count -= count;
        if extent.count == 0 {
            self.extents.pop();
        }
        Ok(first)
    }
}

/// What is written at a place.
enum Content {
    Page(u32),
    Run(u32),
}

/// The writeback of some trees: their pages get places one by one.
pub(super) struct Writeback<'t> {
    ws: &'t mut Workspace,
    /// For pages that will stay, and for all where `hot` is none.
    places: Places,
    /// For pages that will be replaced soon.
    hot: Option<Places>,
    /// For runs, when the tree pages' extents are not one.
    run_places: RunPlaces,
    placed: Vec<(u64, Content)>,
    /// Only pages of the running nesting level are placed.
    level: u32,
}

impl<'t> Writeback<'t> {
    pub(super) fn new(ws: &'t mut Workspace, allocated: Allocated) -> Result<Writeback<'t>> {
        let level = ws.level();
        let Allocated { cold, hot, runs } = allocated;
        let (places, hot) = (Places::new(cold), hot.map(Places::new));
        let placed = with_room(ws.arena().live() + ws.runs()).ok_or_else(no_list)?;
        Ok(Writeback { ws, places, hot, run_places: runs, placed, level })
    }

    /// Places the tree under `root`, the root too; gives its new reference.
    pub(super) fn tree(&mut self, root: Ref, depth: u8) -> Result<Ref> {
        match root.slot() {
            Some(slot) if depth > 0 => self
                .subtree(slot, depth - 1)?
                .ok_or_else(|| root.damaged()(Damage("a page of an unfinished nested level"))),
            _ => Ok(root),
        }
    }

    /// Places what hangs below `root`, but not the root.
    pub(super) fn below(&mut self, root: Ref, depth: u8) -> Result<()> {
        match root.slot() {
            Some(slot) if self.ws.arena().level(slot) != self.level => {}
            Some(slot) if depth > 1 => drop(self.children(slot, depth - 1)?),
            Some(slot) if depth == 1 => drop(self.runs(slot)?),
            _ => {}
        }
        Ok(())
    }

    /// The new reference of a page; none when it must stay in memory, because it refers to what an
    /// outer nesting level owns.
    fn subtree(&mut self, slot: u32, level: u8) -> Result<Option<Ref>> {
        let done = if level > 0 { self.children(slot, level)? } else { self.runs(slot)? };
        if !done {
            return Ok(None);
        }
        let number = match &mut self.hot {
            Some(hot) if self.ws.arena().is_hot(slot) => hot.take(1)?,
            _ => self.places.take(1)?,
        };
        self.ws.seal(slot, number)?;
        self.placed.push((number, Content::Page(slot)));
        Ok(Some(Ref(number)))
    }

    /// Places the children of a branch; true when none is left in memory.
    fn children(&mut self, slot: u32, level: u8) -> Result<bool> {
        let at = Ref::dirty(slot);
        let mut done = true;
        let mut next = 0;
        // Most children are clean: those that are not are searched for in one sweep.
        while let Some((i, below)) = self.next_dirty(slot, next)? {
            next = i + 1;
            let new = match self.ws.arena().level(below) == self.level {
                true => self.subtree(below, level - 1)?,
                false => None,
            };
            match new {
                Some(new) => {
                    self.count(slot, i, below, level)?;
                    let page = self.ws.page_mut(slot)?;
                    branch::set_child(page, i, new.0).map_err(at.damaged())?;
                }
                None => done = false,
            }
        }
        Ok(done)
    }

    /// In a counted tree: stores in the branch how many records lie under a child that is placed.
    fn count(&mut self, slot: u32, i: usize, below: u32, level: u8) -> Result<()> {
        let at = Ref::dirty(slot);
        if !header::is_counted(self.ws.view().page(at)?) {
            return Ok(());
        }
        let child = Ref::dirty(below);
        let page = self.ws.view().page(child)?;
        let records = rank::records_of_page(page, level == 1).map_err(child.damaged())?;
        branch::set_records(self.ws.page_mut(slot)?, i, records).map_err(at.damaged())
    }

    /// The first dirty child of a branch from `from` on: its index and its slot.
    fn next_dirty(&self, slot: u32, from: usize) -> Result<Option<(usize, u32)>> {
        let at = Ref::dirty(slot);
        let branch = Branch::new(self.ws.view().page(at)?).map_err(at.damaged())?;
        let children = branch.children().get(from..).unwrap_or_default();
        let dirty = |child: &[u8; 8]| Ref(u64::from_le_bytes(*child)).slot();
        let (eights, _) = children.as_chunks::<8>();
        let clean = 8 * eights.iter().take_while(|eight| !any_dirty(&eight[..])).count();
        let mut rest = children.iter().enumerate().skip(clean);
        Ok(rest.find_map(|(i, c)| Some((from + i, dirty(c)?))))
    }

    /// Places the large values and the trees of values that a leaf refers to; true when none is
    /// left in memory.
    fn runs(&mut self, slot: u32) -> Result<bool> {
        let at = Ref::dirty(slot);
        let page = self.ws.view().page(at)?;
        let flags = header::flags(page);
        if flags & FLAG_DIRTY_RUNS == 0 {
            return Ok(true);
        }
        let mut done = true;
        for i in 0..Leaf::new(page).map_err(at.damaged())?.count() {
            done &= self.run_of(slot, i)? && self.values_of(slot, i)?;
        }
        if done {
            header::set_flags(self.ws.page_mut(slot)?, flags & !FLAG_DIRTY_RUNS);
        }
        Ok(done)
    }

    /// Places the value of one entry, if it is a run in memory; false when it must stay there,
    /// because an outer nesting level owns it.
    fn run_of(&mut self, slot: u32, i: usize) -> Result<bool> {
        let at = Ref::dirty(slot);
        let leaf = Leaf::new(self.ws.view().page(at)?).map_err(at.damaged())?;
        let entry = leaf.entry(i).map_err(at.damaged())?;
        if entry.kind != ValueKind::Run {
            return Ok(true);
        }
        let mut reference = RunRef::load(entry.value).map_err(at.damaged())?;
        let Some(index) = reference.slot() else { return Ok(true) };
        if !self.ws.owns_run(index) {
            return Ok(false);
        }
        let lost = || at.damaged()(Damage("a value in memory is lost"));
        let bytes = self.ws.dirty_run(index).ok_or_else(lost)?;
        reference.checksum = run::checksum(bytes);
        let pages = reference.pages(self.ws.page_shift());
        reference.first = match &self.run_places {
            Some(places) => {
                let at = places.binary_search_by_key(&index, |(i, _)| *i).map_err(|_| lost())?;
                places[at].1.first
            }
            None => self.places.take(pages)?,
        };
        let page = self.ws.page_mut(slot)?;
        let value = leaf::value_mut(page, i).map_err(at.damaged())?;
        reference.store(value).map_err(at.damaged())?;
        self.placed.push((reference.first, Content::Run(index)));
        Ok(true)
    }

    /// Places the values of one entry, if they are a tree in memory; false when it must stay there.
    fn values_of(&mut self, slot: u32, i: usize) -> Result<bool> {
        let at = Ref::dirty(slot);
        let page = self.ws.view().page(at)?;
        let entry = Leaf::new(page).and_then(|l| l.entry(i)).map_err(at.damaged())?;
        // The table of tables: a table is placed by its own descriptor.
        if entry.kind != ValueKind::Tree || header::table(page) == 0 {
            return Ok(true);
        }
        let mut desc = TreeDesc::from_bytes(entry.value).map_err(at.damaged())?;
        let Some(root) = desc.root.slot() else { return Ok(true) };
        if self.ws.arena().level(root) != self.level {
            return Ok(false);
        }
        let placed = self.subtree(root, desc.depth.saturating_sub(1))?;
        let Some(root) = placed else { return Ok(false) };
        desc.root = root;
        let page = self.ws.page_mut(slot)?;
        let value = leaf::value_mut(page, i).map_err(at.damaged())?;
        value.copy_from_slice(&desc.to_bytes());
        Ok(true)
    }

    /// Overwrites the value of `name` in a tree whose way to it is dirty already.
    pub(super) fn replace_value(
        &mut self,
        main: &TreeDesc,
        name: &[u8],
        bytes: &[u8],
    ) -> Result<()> {
        let lost = || Error::Invalid("a table's record is not where it was stored");
        let (view, order) = (self.ws.view(), Order::Bytes);
        let mut path = Path::default();
        let mut buf = Default::default();
        let key = SearchKey::new(&order, name, &mut buf);
        let found = lookup::descend(&view, main, &order, &key, &mut path)?;
        let step = path.last().filter(|_| found).ok_or_else(lost)?;
        let slot = step.page.slot().ok_or_else(lost)?;
        let damaged = Ref::dirty(slot).damaged();
        let page = self.ws.page_mut(slot)?;
        let value = leaf::value_mut(page, step.index as usize).map_err(damaged)?;
        if value.len() != bytes.len() {
            return Err(lost());
        }
        value.copy_from_slice(bytes);
        Ok(())
    }

    /// The references are right; the pages can be written.
    pub(super) fn finish(self) -> Placed {
        Placed { contents: self.placed }
    }
}

/// Pages with places, ready to be written.
pub(super) struct Placed {
    contents: Vec<(u64, Content)>,
}

impl Placed {
    /// Hands all pages to the kernel, or copies them through the writable map, in ascending
    /// order. With `digest`, gives the checksum over all of them; `flushed` says whether a flush follows.
    pub(super) fn write(
        &mut self,
        env: &EnvInner,
        ws: &Workspace,
        (digest, flushed): (bool, bool),
    ) -> Result<Option<u64>> {
        self.contents.sort_unstable_by_key(|(first, _)| *first);
        let mut hasher = digest.then(XxHash3_64::new);
        let mut batch = Batch::new(env, self.contents.len(), flushed)?;
        for (first, content) in &self.contents {
            let (bytes, purpose) = match content {
                Content::Page(slot) => (ws.arena().page(*slot), Purpose::Tree),
                Content::Run(index) => (ws.dirty_run(*index), Purpose::Value),
            };
            let lost = || Error::Invalid("a page to be written is lost");
            let bytes = bytes.ok_or_else(lost)?;
            let pad = padding(bytes.len(), env.page_size());
            if let Some(hasher) = &mut hasher {
                hasher.write(bytes);
                hasher.write(pad);
            }
            batch.add(*first << env.shift, bytes, purpose)?;
            if !pad.is_empty() {
                batch.add((*first << env.shift) + bytes.len() as u64, pad, purpose)?;
            }
        }
        batch.flush()?;
        Ok(hasher.map(|h| h.finish()))
    }

    /// The pages that each fills, ascending once written.
    pub(super) fn extents<'w>(
        &'w self,
        ws: &'w Workspace,
    ) -> impl Iterator<Item = (u64, u64)> + 'w {
        let bytes = |index| ws.dirty_run(index).map_or(0, <[u8]>::len) as u64;
        self.contents.iter().map(move |(first, content)| match content {
            Content::Page(_) => (*first, 1),
            Content::Run(index) => (*first, bytes(*index).div_ceil(1 << ws.page_shift())),
        })
    }

    /// Frees the memory of what was written.
    pub(super) fn forget(&self, ws: &mut Workspace) {
        for (_, content) in &self.contents {
            match content {
                Content::Page(slot) => ws.forget_slot(*slot),
                Content::Run(index) => ws.forget_run(*index),
            }
        }
    }
}

struct Zeros(Box<[u8]>);

impl Default for Zeros {
    fn default() -> Zeros {
        Zeros(vec![0; 65536].into_boxed_slice())
    }
}

/// The zeros that fill the last page of `len` bytes.
fn padding(len: usize, page_size: usize) -> &'static [u8] {
    // Made when first needed: as a constant they would be a twentieth of the library.
    static ZEROS: PerProcess<Zeros> = PerProcess::new();
    let Zeros(zeros) = ZEROS.get();
    zeros.get(..len.next_multiple_of(page_size) - len).unwrap_or_default()
}

/// As many adjacent bytes go by a system call also where there is a writable map: mostly to places
/// not touched before, where each page is a fault, and a dear one.
const BYTES_BY_CALL: u64 = 32 << 10;

/// Gathers adjacent bytes into one system call, or stores them through the writable map.
struct Batch<'w> {
    data: &'w dyn DataFile,
    map: Option<*mut u8>,
    /// Of an encrypted store, which keeps what its pages are written for.
    keeps_purpose: bool,
    purpose: Purpose,
    start: u64,
    end: u64,
    slices: Vec<IoSlice<'w>>,
}

impl<'w> Batch<'w> {
    /// For about so many slices.
    fn new(env: &'w EnvInner, slices: usize, flushed: bool) -> Result<Batch<'w>> {
        let data = env.data.as_ref();
        let slices = with_room(slices).ok_or_else(no_list)?;
        let (map, keeps_purpose) = (env.map_to_write(flushed), env.decrypting.is_some());
        Ok(Batch { data, map, keeps_purpose, purpose: Purpose::Tree, start: 0, end: 0, slices })
    }

    fn add(&mut self, at: u64, bytes: &'w [u8], purpose: Purpose) -> Result<()> {
        if at != self.end || self.keeps_purpose && purpose != self.purpose {
            self.flush()?;
            (self.start, self.purpose) = (at, purpose);
        }
        self.end = at + bytes.len() as u64;
        self.slices.try_reserve(1).map_err(|_| no_list())?;
        self.slices.push(IoSlice::new(bytes));
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if let Some(base) = self.map
            && self.end - self.start < BYTES_BY_CALL
        {
            let mut at = self.start as usize;
            for bytes in self.slices.drain(..) {
                // SAFETY: the pages were allocated and the file reaches past them (`ensure_len`), so
                // they lie inside the writable map; no snapshot can reach them.
                unsafe {
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), base.add(at), bytes.len());
                }
                at += bytes.len();
            }
        } else if !self.slices.is_empty() {
            let written = self.data.write_pages_at(self.start, &mut self.slices, self.purpose);
            self.slices.clear();
            written.map_err(Error::io_at("write pages", self.data.path()))?;
        }
        Ok(())
    }
}

/// Writes bytes of their own to allocated pages for a purpose, padded with zeros to whole pages.
pub(super) fn write_padded(
    env: &EnvInner,
    first: u64,
    bytes: &[u8],
    purpose: Purpose,
) -> Result<()> {
    let pad = padding(bytes.len(), env.page_size());
    let mut batch = Batch::new(env, 2, env.is_sync())?;
    batch.add(first << env.shift, bytes, purpose)?;
    if !pad.is_empty() {
        batch.add((first << env.shift) + bytes.len() as u64, pad, purpose)?;
    }
    batch.flush()
}
