//! The write transaction's hand on the space of the file: which pages a commit, an early write, a large
//! value and the free-space log get, and how far the file may grow for them.
//!
//! It has the writer's state (space map, free-space log, meta of the newest commit) from the begin of the
//! transaction to its end. Pages that it takes are in nobody's snapshot; until the commit stands they can
//! all be given back, and where that cannot be done in order the state is read again from the file.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::dirty::{Arena, Workspace, no_list, with_room};
use crate::env::checkpoint::MetaLock;
use crate::env::meta::{META_COUNT, Meta, RedoLog, StoredGeometry};
use crate::env::{EnvInner, WriterState, metas};
use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::platform::Purpose;
use crate::space::log::{Loaded, LogRoot, SegmentWriter};
use crate::space::{Delta, Extent, Policy, Retired, Space};
use crate::tree::compact::LowerRun;
use crate::tree::{Pages, Ref, RunRef, Snapshot, run};

use super::compact::Account;
use super::slow_readers::expire_beyond_bounds;
use super::writeback::{Allocated, Placed, write_padded};

/// Bytes of memory for changed pages that are kept for the next transaction, at most.
const KEPT_MAX: u64 = 256 << 20;

/// The end of the used part is lowered every so many commits, and when most of it is free.
const TRIM_PERIOD: u64 = 64;

/// Bounds of the file's size, in bytes, that this process sets in place of the geometry's.
#[derive(Clone, Copy, Debug)]
pub struct OwnLimit {
    /// What is stored.
    pub upper: u64,
    /// What changes may need.
    pub soft: u64,
    /// What a commit may take.
    pub hard: u64,
}

/// How a transaction of compaction differs from others.
#[derive(Clone, Copy, Default)]
struct Compaction {
    /// Pages are taken from below.
    low: bool,
    /// The free-space log begins anew with this commit.
    rebase: bool,
    /// There is something to commit even if no tree has changed: the end.
    cut: bool,
}

/// The space of the file in the hands of the write transaction.
pub(super) struct SpaceWriter {
    pub(super) env: Arc<EnvInner>,
    /// Given back at the end.
    state: Option<Box<WriterState>>,
    geometry: StoredGeometry,
    /// What it was when each open nesting level began.
    outer_geometries: Vec<StoredGeometry>,
    limit: Option<OwnLimit>,
    compaction: Compaction,
    /// Dirty memory at which finished pages are written early, in bytes.
    spill_at: u64,
    /// The state in memory is half-way and must be read again.
    forget: bool,
    /// The commit is not flushed: its pages are worth most where others were written a moment ago.
    unflushed: bool,
}

impl SpaceWriter {
    /// The newest state. The caller holds the writer lock. Also gives the arena that the last transaction
    /// left.
    pub(super) fn begin(env: &Arc<EnvInner>) -> Result<(SpaceWriter, Arena)> {
        let mut state = current_state(env)?;
        env.collect_pins(&mut state.pins);
        state.space.set_pins(&state.pins);
        if expire_beyond_bounds(env, &state.space) > 0 {
            env.collect_pins(&mut state.pins);
            state.space.set_pins(&state.pins);
        }
        let geometry = match env.options.geometry {
            Some(wish) if env.geometry_pending.load(Ordering::Relaxed) => wish.into(),
            _ => state.meta.geometry,
        };
        let arena = state.arena.take().unwrap_or_else(|| Arena::new(env.page_size()));
        let writer = SpaceWriter {
            env: Arc::clone(env),
            state: Some(state),
            geometry,
            outer_geometries: Vec::new(),
            limit: None,
            compaction: Compaction::default(),
            spill_at: env.dirty_limit,
            forget: false,
            unflushed: false,
        };
        Ok((writer, arena))
    }

    /// Takes the state back at the transaction's end. A transaction that is `broken` may have left it
    /// half-way.
    pub(super) fn end(&mut self, ws: Workspace, broken: bool) {
        let (mut arena, spilled) = ws.into_parts();
        arena.reset((self.env.dirty_limit.min(KEPT_MAX) >> self.env.shift) as usize);
        let Some(mut state) = self.state.take() else { return };
        if self.forget || broken {
            return;
        }
        spilled.into_iter().for_each(|extent| state.space.give_back(extent));
        if state.space.end() > state.meta.end {
            // Given up: nobody uses what it took beyond the newest commit's end. Were that kept as
            // free pages, the file could be cut below them, or bounded.
            state.space.trim_tail(state.meta.end);
        }
        state.arena = Some(arena);
        *self.env.writer() = Some(state);
    }

    pub(super) fn state(&self) -> Result<&WriterState> {
        self.state.as_deref().ok_or(Error::TxnBroken)
    }

    fn state_mut(&mut self) -> Result<&mut WriterState> {
        self.state.as_deref_mut().ok_or(Error::TxnBroken)
    }

    // ---- the commit ----

    /// The meta of the newest commit.
    pub(super) fn meta(&self) -> Result<&Meta> {
        self.state().map(|state| &state.meta)
    }

    /// The commit that wrote the base of the free-space log, of this commit once it is in the log.
    pub(super) fn log_base(&self) -> u64 {
        self.state().map_or(0, |state| state.log.base())
    }

    /// From here on the space map is half-way, until [`SpaceWriter::committed`].
    pub(super) fn begin_commit(&mut self) {
        self.forget = true;
    }

    /// The commit has ended: its space map is that of the file, or has to be read again.
    pub(super) fn end_commit(&mut self, whole: bool) {
        self.forget = !whole;
    }

    /// The meta of this commit is to have room for so much more.
    pub(super) fn leave_room(&mut self, bytes: usize) -> Result<()> {
        self.state_mut()?.log.leave_room(bytes);
        Ok(())
    }

    /// A commit of so many extents stands.
    /// The commit stands, with a record in the redo log or without.
    pub(super) fn committed(&mut self, meta: Meta, scattered: bool, is_record: bool) -> Result<()> {
        let state = self.state_mut()?;
        if !is_record {
            state.redo_since = meta.txn;
        }
        (state.meta, state.scattered) = (meta, scattered);
        Ok(())
    }

    /// Whether a commit has anything but trees to store.
    pub(super) fn has_changes(&self) -> bool {
        let stored = self.state.as_ref().map(|state| state.meta.geometry);
        self.compaction.cut || self.compaction.rebase || stored != Some(self.geometry)
    }

    /// Whether pages are in use, as the space map says.
    pub(super) fn is_used(&self, first: u64, count: u64) -> bool {
        self.state.as_ref().is_some_and(|state| state.space.is_used(first, count))
    }

    /// Readers may have ended since the transaction began. The snapshot it works on stays pinned
    /// until its successor is published.
    pub(super) fn look_for_pins(&mut self) -> Result<()> {
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        self.env.collect_pins(&mut state.pins);
        let base = state.meta.txn;
        if let Err(at) = state.pins.binary_search(&base) {
            state.pins.insert(at, base);
        }
        state.space.set_pins(&state.pins);
        Ok(())
    }

    /// The same before a commit, which now and then lowers the end.
    pub(super) fn renew_pins(&mut self) -> Result<()> {
        self.look_for_pins()?;
        if expire_beyond_bounds(&self.env, &self.state()?.space) > 0 {
            self.look_for_pins()?;
        }
        let low = self.compaction.low;
        let state = self.state_mut()?;
        // Now and then: what is set aside at the tail for the next commits should last.
        if state.meta.txn.is_multiple_of(TRIM_PERIOD)
            || low
            || state.space.free_pages() > state.space.end() / 2
        {
            state.space.trim_tail(META_COUNT);
        }
        Ok(())
    }

    /// The windows whose live pages are worth moving, before a commit of so many pages: none unless the
    /// last commit was scattered.
    pub(super) fn windows_to_clean(&mut self, pages: u64, size: u64) -> Result<Vec<Extent>> {
        let (low, sync) = (self.compaction.low, self.is_flushed());
        let state = self.state_mut()?;
        if low || !sync || !std::mem::take(&mut state.scattered) {
            return Ok(Vec::new());
        }
        Ok(state.space.windows(size, pages))
    }

    /// Whether a page is free, or was replaced.
    pub(super) fn is_free(&self, page: u64) -> bool {
        self.state.as_ref().is_none_or(|state| state.space.is_free(page))
    }

    // ---- bounds ----

    pub(super) fn set_geometry(&mut self, geometry: StoredGeometry) {
        self.geometry = geometry;
    }

    pub(super) fn set_limit(&mut self, limit: OwnLimit) {
        self.limit = Some(limit);
    }

    /// The geometry that bounds this transaction.
    fn bounds(&self) -> StoredGeometry {
        match self.limit {
            Some(limit) => StoredGeometry { upper: limit.hard, ..self.geometry },
            None => self.geometry,
        }
    }

    /// The geometry to store with the commit.
    pub(super) fn stored_geometry(&self) -> StoredGeometry {
        match self.limit {
            // A greater bound is another process's; the greatest means that there is none.
            Some(own) if self.geometry.upper < own.upper || self.geometry.upper == u64::MAX => {
                StoredGeometry { upper: own.upper, ..self.geometry }
            }
            _ => self.geometry,
        }
    }

    /// Bytes that the changes so far would still leave below the soft limit.
    pub(super) fn room(&self, ws: &Workspace) -> i64 {
        let Some(state) = self.state.as_ref() else { return 0 };
        let upper = self.limit.map_or(self.geometry.upper, |limit| limit.soft);
        let limit = self.env.page_limit(&StoredGeometry { upper, ..self.geometry }) as i64;
        let free = limit - state.space.end() as i64 + state.space.free_pages() as i64;
        let used = ws.arena().live() as i64 + ws.run_pages() as i64;
        (free - used) << self.env.shift
    }

    /// Bytes of dead pages that a snapshot still sees.
    pub(super) fn held_back(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.space.retired_pages()) << self.env.shift
    }

    // ---- compaction ----

    /// From now on pages are taken from below. Gives the account with free tail pages taken off.
    pub(super) fn begin_compaction(&mut self) -> Result<Account> {
        self.compaction.low = true;
        self.look_for_pins()?;
        let state = self.state_mut()?;
        state.space.trim_tail(META_COUNT);
        Ok(Account {
            end: state.space.end(),
            free: state.space.free_pages(),
            retired: state.space.retired_pages(),
            log_end: state.log.pages_end(),
        })
    }

    /// The free-space log is to begin anew, if there are free pages for it before page `end`.
    pub(super) fn rebase_log(&mut self, end: u64) {
        if let Some(state) = &mut self.state {
            // What the commit itself changes makes it longer.
            let pages = (state.space.encoded_len_bound() as u64 >> self.env.shift) + 2;
            self.compaction.rebase = state.space.free_below(end) >= pages;
        }
    }

    /// Whether the commit would lower the end; it will then, whatever else it does.
    pub(super) fn cut(&mut self) -> bool {
        self.compaction.cut =
            self.state.as_ref().is_some_and(|state| state.space.end() < state.meta.end);
        self.compaction.cut
    }

    // ---- pages ----

    /// Whether a flush follows.
    fn is_flushed(&self) -> bool {
        self.env.is_sync() && !self.unflushed
    }

    fn policy(&self) -> Policy {
        match (self.compaction.low, self.is_flushed()) {
            (true, _) => Policy::Low,
            (false, true) => Policy::Contiguous,
            (false, false) => Policy::Recent,
        }
    }

    // ---- the redo log ----

    /// The pages of the commit are not flushed.
    pub(super) fn set_unflushed(&mut self) {
        self.unflushed = true;
    }

    /// Whether a record of so many bytes can be appended to the log; none before the ring is that of a commit
    /// on disk.
    pub(super) fn has_room_for_record(
        &mut self,
        log: &RedoLog,
        bytes: u64,
    ) -> Result<Option<bool>> {
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        Ok(self.env.has_room(state, log, bytes))
    }

    /// All commits after this one have their records in the log.
    pub(super) fn logged_since(&self) -> Result<u64> {
        Ok(self.state()?.redo_since)
    }

    /// The place from which on records may be needed. To be asked after [`SpaceWriter::has_room_for_record`].
    pub(super) fn log_start(&self) -> Result<u64> {
        Ok(self.state()?.redo_start.1)
    }

    /// Whether this is a commit of compaction: the pages of a redo log would be in its way.
    pub(super) fn is_compacting(&self) -> bool {
        self.compaction.low
    }

    /// Pages that the store has, and that it may have.
    pub(super) fn extent_of_store(&self) -> Result<(u64, u64)> {
        Ok((self.state()?.space.end(), self.env.page_limit(&self.bounds())))
    }

    /// Whether the redo log could not be made longer before.
    pub(super) fn ring_stays(&self, log: &RedoLog) -> bool {
        self.state.as_ref().is_some_and(|state| state.redo_stays == log.birth)
    }

    /// Pages for a new redo log, written once with zeros; none where there are not so many.
    pub(super) fn take_ring(&mut self, bytes: u64) -> Result<Option<Extent>> {
        let geometry = self.bounds();
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let limit = self.env.page_limit(&geometry);
        let taken = state.space.allocate_run(bytes >> self.env.shift, limit);
        let fits = self.env.ensure_len(&geometry, state.space.end()).is_ok();
        let Some(extent) = taken.filter(|_| fits) else {
            // The commit can do without.
            taken.into_iter().for_each(|extent| state.space.give_back(extent));
            state.redo_stays = state.meta.redo.map_or(0, |log| log.birth);
            return Ok(None);
        };
        let zeros = vec![0; 64 << 10]; // Not on the stack, which may be small.
        let at = extent.first << self.env.shift;
        for offset in (0..bytes).step_by(zeros.len()) {
            let part = zeros.len().min((bytes - offset) as usize);
            let written = self.env.data.write_at(at + offset, &mut [IoSlice::new(&zeros[..part])]);
            written.map_err(Error::io_at("write the redo log of", self.env.data.path()))?;
        }
        Ok(Some(extent))
    }

    /// Adds the commit of `meta`, which wrote `allocated` and set `released` free, to the free-space
    /// log; gives the pages that this took.
    pub(super) fn log_commit(
        &mut self,
        meta: &mut Meta,
        allocated: Vec<Extent>,
        released: Vec<Retired>,
    ) -> Result<u64> {
        let (geometry, policy) = (self.bounds(), self.policy());
        let delta = Delta { txn: meta.txn, allocated, released, end: 0 };
        if self.env.options.slow_reader.is_some() {
            // Before the log begins: what it writes of the space map must not change meanwhile.
            let root = &meta.log;
            self.with_room(|space| space.find_room_for_log(root, &delta, &geometry))?;
        }
        let mut pages = LogPages { env: &self.env, geometry, policy };
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let WriterState { log, space, .. } = &mut **state;
        let written =
            log.append(&mut meta.log, space, delta, self.compaction.rebase, &mut pages)?;
        meta.end = space.end();
        // A map with gaps must not be written down.
        if space.lacks_memory() { Err(no_list()) } else { Ok(written) }
    }

    /// An error if the free-space log would find no room for this commit.
    fn find_room_for_log(
        &self,
        root: &LogRoot,
        delta: &Delta,
        geometry: &StoredGeometry,
    ) -> Result<()> {
        let WriterState { log, space, .. } = self.state()?;
        let wanted = log.pages_wanted(root, space, delta, self.compaction.rebase);
        let growth = self.env.page_limit(geometry).saturating_sub(space.end());
        match wanted <= space.free_pages() + growth {
            true => Ok(()),
            false => Err(self.env.full(geometry)),
        }
    }

    /// Pages for a commit or an early write. One run for everything if there is one; else large values
    /// get runs of their own. Where a flush follows, hot pages are kept apart from those that stay:
    /// holes in their region close soon, so both kinds find long runs.
    pub(super) fn allocate(&mut self, ws: &Workspace, pages: u64) -> Result<Allocated> {
        self.with_room(|space| space.allocate_once(ws, pages))
    }

    fn allocate_once(&mut self, ws: &Workspace, pages: u64) -> Result<Allocated> {
        let (geometry, policy) = (self.bounds(), self.policy());
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let limit = self.env.page_limit(&geometry);
        let sizes = ws.run_sizes()?;
        let hot = match policy {
            Policy::Contiguous if pages <= LARGE => ws.arena().hot() as u64,
            _ => 0,
        };
        let space = &mut state.space;
        let mut allocated = take(space, pages - hot, hot, policy, limit);
        if allocated.as_ref().is_some_and(|a| a.cold.len() > 1) && !sizes.is_empty() {
            give_back(space, allocated.take());
            let run_pages = sizes.iter().map(|(_, size)| size).sum::<u64>();
            allocated = take(space, pages - run_pages - hot, hot, policy, limit);
            allocated = allocated.and_then(|a| take_runs(space, a, &sizes, limit));
        }
        if space.lacks_memory() {
            return Err(no_list());
        }
        let allocated = allocated.ok_or_else(|| self.env.full(&geometry))?;
        if let Err(error) = self.env.ensure_len(&geometry, space.end()) {
            give_back(space, Some(allocated));
            return Err(error);
        }
        Ok(allocated)
    }

    /// Pages that nobody refers to: after an error, when a nesting level was undone, or used no more.
    pub(super) fn give_back(&mut self, extents: impl IntoIterator<Item = Extent>) {
        if let Some(state) = &mut self.state {
            extents.into_iter().for_each(|extent| state.space.give_back(extent));
        }
    }

    // ---- nesting ----

    pub(super) fn begin_level(&mut self) {
        self.outer_geometries.push(self.geometry);
    }

    /// Hands what the innermost level did to the level outside.
    pub(super) fn fold_level(&mut self) {
        self.outer_geometries.pop();
    }

    /// Undoes what the innermost level did, which has written pages early.
    pub(super) fn undo_level(&mut self, spilled: Vec<Extent>) {
        self.give_back(spilled);
        if let Some(outer) = self.outer_geometries.pop() {
            self.geometry = outer;
        }
    }

    // ---- early writes ----

    /// Whether so much memory is dirty that finished pages are to be written.
    #[inline]
    pub(super) fn is_due(&self, ws: &Workspace) -> bool {
        ws.dirty_bytes() > self.spill_at
    }

    /// Frees the memory of what was written early; what was allocated but not used goes back. After an
    /// error nothing has changed.
    pub(super) fn book_spilled(
        &mut self,
        ws: &mut Workspace,
        placed: &Placed,
        extents: &[Extent],
    ) -> Result<()> {
        // Neighbours in one extent are one, at least.
        let mut used: Vec<Extent> = with_room(extents.len()).ok_or_else(no_list)?;
        for (first, count) in placed.extents(ws) {
            match used.last_mut() {
                Some(last) if last.first + last.count == first => last.count += count,
                _ => {
                    used.try_reserve(1).map_err(|_| no_list())?;
                    used.push(Extent { first, count });
                }
            }
        }
        let unused = subtract(extents, &used)?;
        let end = self.state()?.space.end();
        ws.add_spilled(used)?;
        placed.forget(ws);
        self.give_back(unused);
        ws.extend(end);
        // What outer nesting levels own stays; do not try again for every record.
        let limit = self.env.dirty_limit;
        self.spill_at = limit.max(ws.dirty_bytes() + limit / 2);
        Ok(())
    }

    /// Pages that were written early and are no longer used can be used again at once, unless an
    /// outer nesting level could come back to them.
    pub(super) fn reuse_returned(&mut self, ws: &mut Workspace) -> Result<()> {
        if ws.level() > 1 || ws.returned().is_empty() {
            return Ok(());
        }
        let rest = subtract(ws.spilled(), ws.returned())?;
        if pages_of(&rest) + pages_of(ws.returned()) != pages_of(ws.spilled()) {
            return Err(Error::Corrupted {
                page: PageNo(ws.returned().first().map_or(0, |e| e.first)),
                reason: "a page of a tree claims to be of the transaction to come",
            });
        }
        self.give_back(ws.take_returned(rest));
        Ok(())
    }

    /// Writes a large value at once, without keeping it in memory.
    pub(super) fn write_run(&mut self, ws: &mut Workspace, value: &[u8]) -> Result<RunRef> {
        let pages = (value.len() as u64).div_ceil(1 << ws.page_shift());
        let geometry = self.bounds();
        let extent = self.with_room(|space| {
            let limit = space.env.page_limit(&geometry);
            let taken = space.state_mut()?.space.allocate_run(pages, limit);
            taken.ok_or_else(|| space.env.full(&geometry))
        })?;
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        ws.add_spilled([extent])?;
        self.env.ensure_len(&geometry, state.space.end())?;
        ws.extend(state.space.end());
        write_padded(&self.env, extent.first, value, Purpose::Value)?;
        let len = value.len() as u64;
        Ok(RunRef { first: extent.first, len, checksum: run::checksum(value), birth: ws.txn() })
    }

    /// Whether a large value is better written at once than kept for the commit.
    pub(super) fn writes_at_once(&self, len: usize) -> bool {
        len as u64 > (self.env.dirty_limit / 2).min(RUN_IN_MEMORY_MAX)
    }
}

/// Bytes of a large value that waits in memory for its commit, at most: to copy a longer one spares little.
const RUN_IN_MEMORY_MAX: u64 = 128 << 20;

/// Moves large values, which are written at once: they may be larger than memory.
impl LowerRun for SpaceWriter {
    fn lower(&mut self, ws: &mut Workspace, holder: Ref, old: &RunRef) -> Result<Option<RunRef>> {
        let (pages, geometry) = (old.pages(ws.page_shift()), self.bounds());
        let state = self.state.as_mut().ok_or(Error::TxnBroken)?;
        let Some(first) = state.space.take_below(pages, old.first) else { return Ok(None) };
        ws.add_spilled([Extent { first, count: pages }])?;
        self.env.ensure_len(&geometry, state.space.end())?;
        let view = ws.view();
        let value = view.run(holder, old)?;
        old.verify(value).map_err(Ref(old.first).damaged())?;
        write_padded(&self.env, first, value, Purpose::Value)?;
        let checksum = run::checksum(value);
        Ok(Some(RunRef { first, len: old.len, checksum, birth: ws.txn() }))
    }
}

/// Where the free-space log goes.
struct LogPages<'t> {
    env: &'t EnvInner,
    geometry: StoredGeometry,
    policy: Policy,
}

impl SegmentWriter for LogPages<'_> {
    fn place(&mut self, space: &mut Space, pages: u64) -> Result<Vec<Extent>> {
        let limit = self.env.page_limit(&self.geometry);
        let grow_to = grow_to(space, self.policy, pages);
        let placed = space.allocate(pages, self.policy, grow_to, limit);
        let placed = placed.ok_or_else(|| self.env.full(&self.geometry))?;
        self.env.ensure_len(&self.geometry, space.end())?;
        Ok(placed)
    }

    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        write_padded(self.env, first, bytes, Purpose::Log)
    }
}

/// The writer's state as of the newest commit: kept from the last transaction of this process, or
/// read from the file.
fn current_state(env: &Arc<EnvInner>) -> Result<Box<WriterState>> {
    let mut kept = env.writer().take();
    let newest = env.shared.newest();
    let whole =
        |state: &mut Box<WriterState>| state.meta.txn == newest && !state.space.lacks_memory();
    if let Some(state) = kept.take_if(whole) {
        return Ok(state);
    }
    let meta = newest_meta(env, newest)?;
    env.reach_out(meta.end)?;
    let mut pins = Vec::new();
    env.collect_pins(&mut pins);
    // SAFETY: the caller holds the writer lock, so no page of the newest commit is written.
    let snapshot = unsafe {
        let decrypting = env.decrypting.as_deref();
        Snapshot::new(env.data.base(), env.shift, meta.end, meta.txn, decrypting)
    };
    let mut arena = None;
    if let Some(mut state) = kept {
        let WriterState { space, log, meta: known, .. } = &mut *state;
        let (log_of, pages_max) = (meta.log_of(), env.plausible_pages());
        if log.catch_up(&snapshot, known.txn, &log_of, space, &pins, pages_max)? {
            state.redo_since = meta.txn;
            (state.meta, state.pins) = (meta, pins);
            return Ok(state);
        }
        arena = state.arena.take();
    }
    let Loaded { log, space, .. } = meta.load_log(&snapshot, &pins, env.plausible_pages())?;
    Ok(Box::new(WriterState {
        redo_since: meta.txn,
        space,
        meta,
        log,
        arena,
        scattered: false,
        pins,
        redo_start: (0, 0),
        redo_stays: 0,
    }))
}

fn newest_meta(env: &EnvInner, newest: u64) -> Result<Meta> {
    let _lock = MetaLock::take(&env.shared)?;
    let meta = metas::load(env.data.as_ref(), &env.shared, env.shift)?;
    if meta.txn != newest {
        return Err(Error::Corrupted {
            page: PageNo(0),
            reason: "the newest meta is not the one published",
        });
    }
    Ok(meta)
}

/// Pages for trees; none are taken when they do not fit.
fn take(space: &mut Space, cold: u64, hot: u64, policy: Policy, limit: u64) -> Option<Allocated> {
    if hot == 0 {
        let cold = space.allocate(cold, policy, grow_to(space, policy, cold + hot), limit)?;
        return Some(Allocated { cold, hot: None, runs: None });
    }
    let split = space.allocate_split(cold, hot, grow_to(space, policy, cold + hot), limit)?;
    Some(Allocated { cold: split.cold, hot: Some(split.hot), runs: None })
}

/// A run for each large value; when one finds none, all that was taken goes back.
fn take_runs(
    space: &mut Space,
    mut allocated: Allocated,
    sizes: &[(u32, u64)],
    limit: u64,
) -> Option<Allocated> {
    let Some(mut runs) = with_room(sizes.len()) else {
        space.lack_memory();
        return None;
    };
    for (index, size) in sizes {
        match space.allocate_run(*size, limit) {
            Some(extent) => runs.push((*index, extent)),
            None => {
                allocated.runs = Some(runs);
                give_back(space, Some(allocated));
                return None;
            }
        }
    }
    allocated.runs = Some(runs);
    Some(allocated)
}

fn give_back(space: &mut Space, allocated: Option<Allocated>) {
    match allocated.map(|a| a.all()) {
        Some(Ok(all)) => all.into_iter().for_each(|extent| space.give_back(extent)),
        Some(Err(_)) => space.lack_memory(),
        None => {}
    }
}

/// What a small store may have besides, in commits of the size at hand: where a commit replaces a
/// good part of all pages, no run falls free in less.
const SLACK_COMMITS: u64 = 16;
/// The same, bounded, in pages.
const SLACK_MAX: u64 = 2048;

/// Commits of more pages take runs of their own for hot and cold pages alike, and may leave more
/// space unused: in less, moving what lies between the holes would cost more than it saves.
const LARGE: u64 = 128;

/// How far the file may grow to keep runs long: half the live data more than that, or, for large commits,
/// three quarters and half of what readers hold back.
fn grow_to(space: &Space, policy: Policy, pages: u64) -> u64 {
    match policy {
        Policy::Contiguous => {
            let held = space.retired_pages();
            let live = space.end() - space.free_pages() - held;
            let room = if pages > LARGE { live / 4 * 3 + held / 2 } else { live / 2 };
            live + room + 64 + pages.saturating_mul(SLACK_COMMITS).min(SLACK_MAX)
        }
        Policy::Recent | Policy::Low => 0,
    }
}

fn pages_of(extents: &[Extent]) -> u128 {
    extents.iter().map(|e| u128::from(e.count)).sum()
}

/// The pages of `from` that are not in `taken`; both are lists of disjoint extents.
fn subtract(from: &[Extent], taken: &[Extent]) -> Result<Vec<Extent>> {
    let sorted = |list: &[Extent]| {
        let mut copy = with_room(list.len()).ok_or_else(no_list)?;
        copy.extend_from_slice(list);
        copy.sort_unstable_by_key(|e| e.first);
        Ok(copy)
    };
    // Each that is taken cuts one extent in two, at most.
    let mut rest = with_room(from.len() + taken.len()).ok_or_else(no_list)?;
    let mut taken = sorted(taken)?.into_iter().peekable();
    for extent in sorted(from)? {
        let (mut first, end) = (extent.first, extent.first + extent.count);
        while let Some(t) = taken.peek().copied().filter(|t| t.first < end) {
            if t.first > first {
                rest.push(Extent { first, count: t.first - first });
            }
            first = first.max(t.first + t.count);
            if t.first + t.count > end {
                break;
            }
            taken.next();
        }
        if first < end {
            rest.push(Extent { first, count: end - first });
        }
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtracting_extents_leaves_the_rest() {
        let subtract = |from: &[Extent], taken: &[Extent]| subtract(from, taken).unwrap();
        let e = |first, count| Extent { first, count };
        assert_eq!(subtract(&[e(0, 10)], &[]), [e(0, 10)]);
        assert_eq!(subtract(&[e(0, 10)], &[e(0, 10)]), []);
        assert_eq!(subtract(&[e(0, 10)], &[e(3, 2), e(9, 1)]), [e(0, 3), e(5, 4)]);
        assert_eq!(subtract(&[e(20, 5), e(0, 10)], &[e(8, 2), e(20, 1)]), [e(0, 8), e(21, 4)]);
        assert_eq!(subtract(&[e(0, 4), e(4, 4)], &[e(2, 4)]), [e(0, 2), e(6, 2)]);
    }
}
