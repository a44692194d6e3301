//! The write transaction: one at a time over all processes, seen by nobody until its commit.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::dirty::{Arena, Workspace};
use crate::env::checkpoint::{MetaLock, WriterLock, wipe_unpublished};
use crate::env::flusher;
use crate::env::meta::{Meta, StoredGeometry};
use crate::env::metas;
use crate::env::options::Geometry;
use crate::env::{EnvInner, Root, WriterState};
use crate::error::{Error, Result};
use crate::num::TxnId;
use crate::page::ValueKind;
use crate::space::log::Loaded;
use crate::tree::desc::OF_VALUES;
use crate::tree::insert::{Shape, put};
use crate::tree::{Snapshot, Tree, TreeDesc, lookup, remove};

use super::compact::Compaction;
use super::cursor::Cursors;
use super::limit::OwnLimit;
use super::nested::Savepoint;
use super::options::{TableOptions, builtin_tree, needs_comparator, unordered_tree};
use super::table::TableStats;
use super::write_table::WriteTable;

/// Bytes of memory for changed pages that are kept for the next transaction, at most.
const KEPT_MAX: u64 = 256 << 20;

/// The write transaction. Dropping it aborts it. It belongs to the thread that began it.
#[must_use = "a write transaction that is dropped is aborted"]
pub struct WriteTxn {
    pub(super) env: Arc<EnvInner>,
    /// Taken out at the end.
    pub(super) state: Option<Box<WriterState>>,
    pub(super) ws: Workspace,
    pub(super) base: Root,
    pub(super) main: Tree,
    pub(super) tables: Vec<OpenTable>,
    /// Where in `tables` a name was put last; to be believed only if it stands there.
    pub(super) names: HashMap<Box<[u8]>, usize>,
    pub(super) savepoints: Vec<Savepoint>,
    /// Levels that belong to the caller of the closure that runs now; 0 outside of closures.
    pub(super) floor: usize,
    pub(super) cursors: Cursors,
    pub(super) next_table: u32,
    pub(super) canary: [u64; 4],
    pub(super) geometry: StoredGeometry,
    /// An upper bound of this process's own in place of the geometry's.
    pub(super) limit: Option<OwnLimit>,
    /// An error left the trees unfinished.
    pub(super) broken: bool,
    /// Dirty memory at which finished pages are written early, in bytes.
    pub(super) spill_at: u64,
    /// Commit failed after which the state must be read again.
    pub(super) forget_state: bool,
    pub(super) compaction: Compaction,
    /// The writer lock must be released by its thread.
    _thread: PhantomData<*const ()>,
}

/// A named table that the transaction has opened.
pub(super) struct OpenTable {
    pub(super) name: Box<[u8]>,
    pub(super) tree: Tree,
    /// The tree has its orders: it was opened with its comparators, or needs none.
    pub(super) ordered: bool,
    /// The descriptor as it stands under the table's name.
    pub(super) stored: TreeDesc,
    /// Dropped or renamed away in this transaction.
    pub(super) gone: bool,
    /// Nesting level that has saved its own copy of this entry.
    pub(super) saved_level: u32,
}

/// Index of an open table; `MAIN` is the tree of names itself.
pub(super) const MAIN: usize = usize::MAX;

impl WriteTxn {
    pub(crate) fn begin(env: &Arc<EnvInner>, wait: bool) -> Result<Option<WriteTxn>> {
        env.check_writable()?;
        flusher::make_up(env)?;
        let Some(lock) = WriterLock::take(&env.shared, wait)? else { return Ok(None) };
        let txn = WriteTxn::begin_locked(env)?;
        // The transaction releases it.
        lock.keep();
        Ok(Some(txn))
    }

    fn begin_locked(env: &Arc<EnvInner>) -> Result<WriteTxn> {
        env.check_writable()?;
        wipe_unpublished(env)?;
        let mut state = current_state(env)?;
        env.collect_pins(&mut state.pins);
        state.space.set_pins(&state.pins);
        let meta = &state.meta;
        let base = Root::of(meta);
        let main = Tree::main(meta.main);
        let (next_table, canary) = (meta.next_table, meta.canary);
        let geometry = match env.options.geometry {
            Some(wish) if env.geometry_pending.load(Ordering::Relaxed) => wish.into(),
            _ => meta.geometry,
        };
        let arena = state.arena.take().unwrap_or_else(|| Arena::new(env.page_size()));
        // SAFETY: this is the writer: nobody else writes pages, and it writes none that the
        // snapshot it works on can reach; `current_state` checked that `end` is inside the map.
        let ws =
            unsafe { Workspace::new(env.data.base(), env.shift, base.end, base.txn + 1, arena) };
        Ok(WriteTxn {
            env: Arc::clone(env),
            state: Some(state),
            ws,
            base,
            main,
            tables: Vec::new(),
            names: HashMap::new(),
            savepoints: Vec::new(),
            floor: 0,
            cursors: Cursors::new(),
            next_table,
            canary,
            geometry,
            limit: None,
            broken: false,
            spill_at: env.dirty_limit,
            forget_state: false,
            compaction: Compaction::default(),
            _thread: PhantomData,
        })
    }

    /// The number this transaction will have when it commits.
    pub fn id(&self) -> TxnId {
        TxnId(self.base.txn + 1)
    }

    /// Bytes of memory that changed pages and values take.
    pub fn dirty_bytes(&self) -> u64 {
        self.ws.dirty_bytes()
    }

    /// Sets the bounds and steps of the file, from this commit on and for all processes.
    pub fn set_geometry(&mut self, geometry: Geometry) -> Result<()> {
        self.check()?;
        let used = self.base.end << self.env.shift;
        if geometry.lower > geometry.upper || geometry.upper < used {
            return Err(Error::Invalid(
                "the upper bound must not be below the lower one or what is in use",
            ));
        }
        self.geometry = geometry.into();
        Ok(())
    }

    /// Whether there is anything to commit.
    pub(super) fn has_changes(&self) -> bool {
        let stored = self.state.as_ref().map(|s| s.meta.geometry);
        self.main.desc != self.base.main
            || self.compaction.cut
            || self.compaction.rebase
            || self.canary != self.base.canary
            || stored != Some(self.geometry)
            || self.tables.iter().any(|t| !t.gone && t.tree.desc != t.stored)
    }

    /// Ends the transaction without a trace.
    pub fn abort(self) {}

    // ---- tables ----

    /// The table `name`, which must exist.
    pub fn table(&mut self, name: impl AsRef<[u8]>) -> Result<WriteTable<'_>> {
        let index = self.open_builtin(name.as_ref())?.ok_or(Error::NoSuchTable)?;
        Ok(WriteTable { txn: self, index })
    }

    /// The table `name`, which must exist and have been created with the same options; with the
    /// comparators that they hold.
    pub fn table_with(
        &mut self,
        name: impl AsRef<[u8]>,
        options: &TableOptions,
    ) -> Result<WriteTable<'_>> {
        let index = self.open_with(name.as_ref(), options)?.ok_or(Error::NoSuchTable)?;
        Ok(WriteTable { txn: self, index })
    }

    /// The table `name`, created with these options if there is none; if there is, it must have
    /// been created with the same.
    pub fn table_or_create_with(
        &mut self,
        name: impl AsRef<[u8]>,
        options: &TableOptions,
    ) -> Result<WriteTable<'_>> {
        let name = name.as_ref();
        let index = match self.open_with(name, options)? {
            Some(index) => index,
            None => self.new_table(name, options)?,
        };
        Ok(WriteTable { txn: self, index })
    }

    /// The table `name`, created with default options if there is none.
    pub fn table_or_create(&mut self, name: impl AsRef<[u8]>) -> Result<WriteTable<'_>> {
        let name = name.as_ref();
        let index = match self.open_builtin(name)? {
            Some(index) => index,
            None => self.new_table(name, &TableOptions::default())?,
        };
        Ok(WriteTable { txn: self, index })
    }

    /// Creates the table `name`.
    pub fn create_table(
        &mut self,
        name: impl AsRef<[u8]>,
        options: TableOptions,
    ) -> Result<WriteTable<'_>> {
        let name = name.as_ref();
        if self.open_table(name)?.is_some() {
            return Err(Error::TableExists);
        }
        let index = self.new_table(name, &options)?;
        Ok(WriteTable { txn: self, index })
    }

    /// The names of all tables, in order.
    pub fn tables(&self) -> Result<Vec<Vec<u8>>> {
        self.check()?;
        super::read::table_names(&self.ws.view(), &self.main.desc)
    }

    /// The options of the table `name`, without comparators.
    pub fn table_options(&mut self, name: impl AsRef<[u8]>) -> Result<TableOptions> {
        let index = self.open_table(name.as_ref())?.ok_or(Error::NoSuchTable)?;
        Ok(TableOptions::of_tree(self.tree(index)).without_comparators())
    }

    /// Figures of the table `name`, which may be in a caller's order.
    pub fn table_stats(&mut self, name: impl AsRef<[u8]>) -> Result<TableStats> {
        let index = self.open_table(name.as_ref())?.ok_or(Error::NoSuchTable)?;
        Ok(TableStats::of(&self.tree(index).desc))
    }

    /// Removes a table with all its records.
    pub fn drop_table(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        let name = name.as_ref();
        let index = self.open_table(name)?.ok_or(Error::NoSuchTable)?;
        self.change(index)?;
        self.reset_cursors(index);
        self.guarded(|txn| {
            let (ws, tree) = txn.parts(index);
            remove::clear(ws, tree)?;
            txn.forget_name(index)
        })
    }

    /// Gives a table another name, which must be free.
    pub fn rename_table(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        let to = to.as_ref();
        let index = self.open_table(from.as_ref())?.ok_or(Error::NoSuchTable)?;
        if self.open_table(to)?.is_some() {
            return Err(Error::TableExists);
        }
        self.check_key(to)?;
        self.change(index)?;
        let tree = self.parts(index).1.clone();
        self.guarded(|txn| {
            txn.forget_name(index)?;
            txn.store_desc(to, &tree.desc)
        })?;
        let ordered = self.tables.get(index).is_some_and(|t| t.ordered);
        let new = self.push_table(to, Tree::new(tree.desc, tree.order, tree.values), ordered);
        self.move_cursors(index, new);
        Ok(())
    }

    fn forget_name(&mut self, index: usize) -> Result<()> {
        self.save_main();
        if let Some(table) = self.tables.get_mut(index) {
            table.gone = true;
            remove::remove(&mut self.ws, &mut self.main, &table.name)?;
        }
        Ok(())
    }

    /// Index of a table whose orders are known without the caller, or have been told before.
    fn open_builtin(&mut self, name: &[u8]) -> Result<Option<usize>> {
        let Some(index) = self.open_table(name)? else { return Ok(None) };
        match self.tables.get(index) {
            Some(table) if !table.ordered => builtin_tree(table.tree.desc).map(|_| Some(index)),
            _ => Ok(Some(index)),
        }
    }

    /// Index of a table that was created with these options, now with their comparators.
    pub(super) fn open_with(
        &mut self,
        name: &[u8],
        options: &TableOptions,
    ) -> Result<Option<usize>> {
        let Some(index) = self.open_table(name)? else { return Ok(None) };
        if let Some(table) = self.tables.get_mut(index) {
            options.check_same(&table.tree.desc.options)?;
            if !table.ordered {
                table.tree = options.tree(table.tree.desc)?;
                table.ordered = true;
            }
        }
        Ok(Some(index))
    }

    /// Index of a table, opened now or before; its order may still be unknown.
    pub(super) fn open_table(&mut self, name: &[u8]) -> Result<Option<usize>> {
        self.check()?;
        if let Some(&index) = self.names.get(name)
            && self.tables.get(index).is_some_and(|t| !t.gone && *t.name == *name)
        {
            return Ok(Some(index));
        }
        let found = lookup::get_entry(&self.ws.view(), &self.main.desc, &self.main.order, name)?;
        let Some((at, entry)) = found else { return Ok(None) };
        if entry.kind != ValueKind::Tree {
            return Err(Error::Incompatible("the name belongs to a plain record, not to a table"));
        }
        let desc = TreeDesc::from_bytes(entry.value).map_err(at.damaged())?;
        let ordered = !needs_comparator(&desc.options);
        Ok(Some(self.push_table(name, unordered_tree(desc), ordered)))
    }

    fn push_table(&mut self, name: &[u8], tree: Tree, ordered: bool) -> usize {
        let saved_level = self.savepoints.len() as u32;
        let (name, stored): (Box<[u8]>, _) = (name.into(), tree.desc);
        self.names.insert(name.clone(), self.tables.len());
        self.tables.push(OpenTable { name, tree, ordered, stored, gone: false, saved_level });
        self.tables.len() - 1
    }

    pub(super) fn new_table(&mut self, name: &[u8], options: &TableOptions) -> Result<usize> {
        self.check_key(name)?;
        let desc = TreeDesc::empty(self.next_table, options.to_tree()?);
        let tree = options.tree(desc)?;
        let next = self.next_table.checked_add(1).filter(|next| next & OF_VALUES == 0);
        let next = next.ok_or(Error::Invalid("the store has no number left for a new table"))?;
        self.guarded(|txn| {
            txn.save_main();
            txn.next_table = next;
            txn.store_desc(name, &desc)
        })?;
        Ok(self.push_table(name, tree, true))
    }

    /// Stores a table's descriptor under its name.
    pub(super) fn store_desc(&mut self, name: &[u8], desc: &TreeDesc) -> Result<()> {
        let bytes = desc.to_bytes();
        put(&mut self.ws, &mut self.main, name, Shape::of(ValueKind::Tree, &bytes), true).map(drop)
    }

    // ---- guards ----

    pub(super) fn check(&self) -> Result<()> {
        self.env.check_alive()?;
        if self.broken { Err(Error::TxnBroken) } else { Ok(()) }
    }

    /// Runs an operation that may stop half-way; if it does, the transaction is broken.
    pub(super) fn guarded<T>(&mut self, op: impl FnOnce(&mut WriteTxn) -> Result<T>) -> Result<T> {
        // True while it runs: a panic on the way leaves a broken transaction too.
        self.broken = true;
        let result = op(self);
        self.broken = result.is_err();
        result
    }

    pub(super) fn parts(&mut self, index: usize) -> (&mut Workspace, &mut Tree) {
        match self.tables.get_mut(index) {
            Some(table) => (&mut self.ws, &mut table.tree),
            None => (&mut self.ws, &mut self.main),
        }
    }

    pub(super) fn tree(&self, index: usize) -> &Tree {
        self.tables.get(index).map_or(&self.main, |t| &t.tree)
    }

    /// To be called before a table's tree is changed: saves it for the running nested level, spills
    /// if memory is short.
    pub(super) fn change(&mut self, index: usize) -> Result<()> {
        self.check()?;
        if index == MAIN {
            self.save_main();
        } else {
            self.save_table(index);
        }
        if !self.cursors.slots.is_empty() {
            self.park_cursors(index)?;
        }
        if self.ws.dirty_bytes() > self.spill_at {
            self.park_all_cursors()?;
            self.guarded(|txn| txn.spill())?;
        }
        Ok(())
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
    let snapshot = unsafe { Snapshot::new(env.data.base(), env.shift, meta.end, meta.txn, None) };
    let mut arena = None;
    if let Some(mut state) = kept {
        let WriterState { space, log, meta: known, .. } = &mut *state;
        let (log_of, pages_max) = (meta.log_of(), env.believable_pages());
        if log.catch_up(&snapshot, known.txn, &log_of, space, &pins, pages_max)? {
            (state.meta, state.pins) = (meta, pins);
            return Ok(state);
        }
        arena = state.arena.take();
    }
    let Loaded { log, space, .. } = meta.load_log(&snapshot, &pins, env.believable_pages())?;
    Ok(Box::new(WriterState { space, meta, log, arena, scattered: false, pins }))
}

fn newest_meta(env: &EnvInner, newest: u64) -> Result<Meta> {
    let _lock = MetaLock::take(&env.shared)?;
    let meta = metas::load(env.data.as_ref(), &env.shared, env.shift)?;
    if meta.txn != newest {
        return Err(Error::Corrupted {
            page: crate::num::PageNo(0),
            reason: "the newest meta is not the one published",
        });
    }
    Ok(meta)
}

impl Drop for WriteTxn {
    fn drop(&mut self) {
        if self.env.is_forked() {
            // Lock and state are the parent's; leave everything as it is.
            return;
        }
        let mut arena = std::mem::replace(
            &mut self.ws,
            // SAFETY: the replacement sees no page at all.
            unsafe { Workspace::new(std::ptr::null(), self.env.shift, 0, 0, Arena::new(4096)) },
        );
        let spilled = std::mem::take(&mut arena.spilled);
        let mut arena = arena.into_arena();
        let keep = self.env.dirty_limit.min(KEPT_MAX) >> self.env.shift;
        arena.reset(keep as usize);
        if let Some(mut state) = self.state.take()
            && !self.forget_state
            && !self.broken
        {
            spilled.into_iter().for_each(|extent| state.space.give_back(extent));
            if state.space.end() > state.meta.end {
                // Given up: nobody uses what it took beyond the newest commit's end. Were that kept as
                // free pages, the file could be cut below them, or bounded.
                state.space.trim_tail(state.meta.end);
            }
            state.arena = Some(arena);
            *self.env.writer() = Some(state);
        }
        self.env.shared.unlock_writer();
    }
}
