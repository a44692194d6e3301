//! The write transaction: one at a time over all processes, seen by nobody until its commit.
//!
//! It is put together from parts that change nothing of one another: the workspace with its dirty pages,
//! the [`Catalogue`] of tables, the [`SpaceWriter`], the [`Cursors`], the [`Levels`], the [`Soundness`] of the
//! trees and the [`Attempt`] at a commit. Here they are begun and ended, and the tables are opened; `records` changes what is in them.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::dirty::Workspace;
use crate::env::checkpoint::{WriterLock, wipe_unpublished};
use crate::env::facade;
use crate::env::flusher;
use crate::env::log::Level;
use crate::env::options::Geometry;
use crate::env::{EnvInner, Root};
use crate::error::{Error, Result};
use crate::num::TxnId;
use crate::page::header::Origin;
use crate::redo::Op;
use crate::tree::{Tree, remove};

use super::catalogue::{Catalogue, TableRef, check_key};
use super::commit_times::CommitClock;
use super::cursor::Cursors;
use super::nested::Levels;
use super::options::TableOptions;
use super::redo::Notes;
use super::soundness::{Attempt, Soundness};
use super::space_writer::SpaceWriter;
use super::table::TableStats;
use super::write_table::WriteTable;
use super::writeback::{Allocated, Placed, Writeback};

/// The write transaction. Dropping it aborts it. It belongs to the thread that began it.
///
/// A [`WriteTable`] borrows it, so there is one at a time. To change several tables in turn, name them by
/// [`TableId`](crate::TableId)s, which borrow nothing.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// txn.table_or_create("people")?.put("7", "Ada")?;
/// txn.table_or_create("by name")?.put("Ada", "7")?;
/// txn.commit()?;
/// // Without `commit`, or after an error, nothing happens.
/// let mut txn = env.write()?;
/// txn.drop_table("people")?;
/// drop(txn);
/// assert_eq!(env.read()?.tables()?.len(), 2);
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[must_use = "a write transaction that is dropped is aborted"]
pub struct WriteTxn {
    pub(super) env: Arc<EnvInner>,
    pub(super) base: Root,
    pub(super) ws: Workspace,
    pub(super) catalogue: Catalogue,
    pub(super) space: SpaceWriter,
    pub(super) cursors: Cursors,
    pub(super) levels: Levels,
    pub(super) notes: Notes,
    pub(super) soundness: Soundness,
    pub(super) attempt: Attempt,
    /// The writer lock is another transaction's now.
    pub(super) handed_on: bool,
    pub(super) clock: CommitClock,
    /// The writer lock must be released by its thread.
    _thread: PhantomData<*const ()>,
}

impl WriteTxn {
    pub(crate) fn begin(env: &Arc<EnvInner>, wait: bool) -> Result<Option<WriteTxn>> {
        env.check_writable()?;
        flusher::make_up(env)?;
        let Some((lock, waited)) = WriterLock::take_timed(&env.shared, wait)? else {
            return Ok(None);
        };
        if let Some(waited) = waited {
            env.count_wait(waited);
            facade::wait(env, waited.as_secs_f64());
        }
        let txn = WriteTxn::begin_locked(env)?;
        // The transaction releases it.
        lock.keep();
        Ok(Some(txn))
    }

    /// For a commit that is made anew from the redo log.
    pub(super) fn begin_unlogged(env: &Arc<EnvInner>) -> Result<WriteTxn> {
        let busy = Error::Busy("the writer lock is taken");
        let mut txn = WriteTxn::begin(env, true)?.ok_or(busy)?;
        txn.notes = Notes::default();
        Ok(txn)
    }

    pub(super) fn begin_locked(env: &Arc<EnvInner>) -> Result<WriteTxn> {
        env.check_writable()?;
        wipe_unpublished(env)?;
        let (space, arena) = SpaceWriter::begin(env)?;
        let meta = space.meta()?;
        let (base, catalogue) = (Root::of(meta), Catalogue::of(meta));
        let by = Origin { birth: base.txn + 1, opening: env.opening() };
        // SAFETY: this is the writer: nobody else writes pages, and it writes none that the
        // snapshot it works on can reach; `SpaceWriter::begin` checked that `end` is inside the map.
        let ws = unsafe {
            let end = base.end;
            Workspace::new(env.data.base(), env.shift, end, by, arena, env.decrypting.clone())
        };
        Ok(WriteTxn {
            env: Arc::clone(env),
            base,
            ws,
            catalogue,
            space,
            cursors: Cursors::new(),
            levels: Levels::default(),
            notes: Notes::new(env.record_max()),
            soundness: Soundness::default(),
            attempt: Attempt::default(),
            handed_on: false,
            clock: CommitClock::default(),
            _thread: PhantomData,
        })
    }

    /// The number this transaction will have when it commits.
    pub fn id(&self) -> TxnId {
        TxnId(self.base.txn + 1)
    }

    /// Bytes of memory that changed pages and values take.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// for n in 0..1000u32 {
    ///     txn.table_or_create("t")?.put(n.to_be_bytes(), [7; 100])?;
    ///     if txn.dirty_bytes() > 64 << 20 {
    ///         txn.commit_and_continue()?;
    ///     }
    /// }
    /// txn.commit()?;
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn dirty_bytes(&self) -> u64 {
        self.ws.dirty_bytes()
    }

    /// Sets the bounds and steps of the file, from this commit on and for all processes.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut geometry = env.info()?.geometry;
    /// geometry.upper = 1 << 30;
    /// let mut txn = env.write()?;
    /// txn.set_geometry(geometry)?;
    /// txn.commit()?;
    /// assert_eq!(env.info()?.geometry.upper, 1 << 30);
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn set_geometry(&mut self, geometry: Geometry) -> Result<()> {
        self.check()?;
        let used = self.base.end << self.env.shift;
        if geometry.lower > geometry.upper || geometry.upper < used {
            return Err(Error::Invalid(
                "the upper bound must not be below the lower one or what is in use: Geometry::upper",
            ));
        }
        self.space.set_geometry(geometry.into());
        Ok(())
    }

    /// What the transaction sees.
    pub(super) fn seen(&self) -> (&Workspace, &Catalogue) {
        (&self.ws, &self.catalogue)
    }

    /// Whether there is anything to commit.
    pub(super) fn has_changes(&self) -> bool {
        self.catalogue.has_changes(&self.base) || self.space.has_changes()
    }

    /// Ends the transaction without a trace.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// txn.table_or_create("t")?.put("key", "value")?;
    /// // As dropping it does, but it is said.
    /// txn.abort();
    /// assert!(env.read()?.table("t").is_err());
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn abort(self) {}

    // ---- tables ----

    /// The table `name`, which must exist.
    pub fn table(&mut self, name: impl AsRef<[u8]>) -> Result<WriteTable<'_>> {
        let name = name.as_ref();
        let table = self.open_builtin(name)?.ok_or_else(|| Error::no_such_table(name))?;
        Ok(WriteTable { txn: self, table })
    }

    /// The table `name`, which must exist and have been created with the same options; with the
    /// comparators that they hold.
    ///
    /// ```
    /// use zubilo::{KeyOrder, TableOptions};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let hosts = TableOptions::new().key_order(KeyOrder::Reversed);
    /// let mut txn = env.write()?;
    /// assert!(txn.table_with("hosts", &hosts).is_err());
    /// txn.create_table("hosts", hosts.clone())?.put("www.example.org", "1.2.3.4")?;
    /// assert_eq!(txn.table_with("hosts", &hosts)?.len(), 1);
    /// // Options that differ are refused.
    /// assert!(txn.table_with("hosts", &TableOptions::new()).is_err());
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn table_with(
        &mut self,
        name: impl AsRef<[u8]>,
        options: &TableOptions,
    ) -> Result<WriteTable<'_>> {
        let name = name.as_ref();
        let table = self.open_with(name, options)?.ok_or_else(|| Error::no_such_table(name))?;
        Ok(WriteTable { txn: self, table })
    }

    /// The table `name`, created with these options if there is none; if there is, it must have
    /// been created with the same.
    pub fn table_or_create_with(
        &mut self,
        name: impl AsRef<[u8]>,
        options: &TableOptions,
    ) -> Result<WriteTable<'_>> {
        let name = name.as_ref();
        let table = match self.open_with(name, options)? {
            Some(table) => table,
            None => self.new_table(name, options)?,
        };
        Ok(WriteTable { txn: self, table })
    }

    /// The table `name`, created with default options if there is none.
    pub fn table_or_create(&mut self, name: impl AsRef<[u8]>) -> Result<WriteTable<'_>> {
        let name = name.as_ref();
        let table = match self.open_builtin(name)? {
            Some(table) => table,
            None => self.new_table(name, &TableOptions::default())?,
        };
        Ok(WriteTable { txn: self, table })
    }

    /// Creates the table `name`.
    pub fn create_table(
        &mut self,
        name: impl AsRef<[u8]>,
        options: TableOptions,
    ) -> Result<WriteTable<'_>> {
        let table = self.create(name.as_ref(), &options)?;
        Ok(WriteTable { txn: self, table })
    }

    /// The names of all tables, in order.
    pub fn tables(&self) -> Result<Vec<Vec<u8>>> {
        self.check()?;
        super::read::table_names(&self.ws.view(), &self.catalogue.main().desc)
    }

    /// The options of the table `name`, without comparators.
    pub fn table_options(&mut self, name: impl AsRef<[u8]>) -> Result<TableOptions> {
        let table = self.existing(name.as_ref())?;
        Ok(TableOptions::of_tree(self.tree(table)?).without_comparators())
    }

    /// Figures of the table `name`, which may be in a caller's order.
    pub fn table_stats(&mut self, name: impl AsRef<[u8]>) -> Result<TableStats> {
        let table = self.existing(name.as_ref())?;
        Ok(TableStats::of(&self.tree(table)?.desc))
    }

    /// Removes a table with all its records.
    pub fn drop_table(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        let table = self.existing(name.as_ref())?;
        self.drop_opened(table)
    }

    pub(super) fn drop_opened(&mut self, table: TableRef) -> Result<()> {
        self.change(table)?;
        self.cursors.reset(table);
        self.change(TableRef::CATALOGUE)?;
        // Before it is done, as the table is known now; half done it breaks the transaction.
        self.note(table, Some(Op::Drop));
        self.note(TableRef::CATALOGUE, None);
        self.guarded(|txn| txn.catalogue.drop_table(&mut txn.ws, table))
    }

    /// Gives a table another name, which must be free.
    ///
    /// ```
    /// use zubilo::TableOptions;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("store");
    /// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
    /// # let env = zubilo::Options::new().open(path)?;
    /// let mut txn = env.write()?;
    /// txn.create_table("new", TableOptions::new())?.put("key", "value")?;
    /// txn.rename_table("new", "current")?;
    /// assert_eq!(txn.table_stats("current")?.entries, 1);
    /// assert!(!txn.table_options("current")?.is_counted());
    /// # Ok(())
    /// # }
    /// # show(&path).unwrap();
    /// ```
    pub fn rename_table(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        let to = to.as_ref();
        let table = self.existing(from.as_ref())?;
        if self.open_table(to)?.is_some() {
            return Err(Error::TableExists { table: to.into() });
        }
        check_key(&self.ws, to)?;
        self.change(table)?;
        self.change(TableRef::CATALOGUE)?;
        let new = self.guarded(|txn| txn.catalogue.rename(&mut txn.ws, table, to))?;
        self.cursors.move_to(table, new);
        Ok(())
    }

    /// Removes all records of a table.
    pub(super) fn clear(&mut self, table: TableRef) -> Result<()> {
        self.change(table)?;
        self.cursors.reset(table);
        self.note(table, Some(Op::Clear));
        self.guarded(|txn| {
            let (ws, tree) = txn.parts(table)?;
            remove::clear(ws, tree)
        })
    }

    /// A table, opened now or before; its order may still be unknown.
    pub(super) fn open_table(&mut self, name: &[u8]) -> Result<Option<TableRef>> {
        self.check()?;
        self.catalogue.open(&self.ws, name)
    }

    /// The same of one that must exist.
    pub(super) fn existing(&mut self, name: &[u8]) -> Result<TableRef> {
        self.open_table(name)?.ok_or_else(|| Error::no_such_table(name))
    }

    fn open_builtin(&mut self, name: &[u8]) -> Result<Option<TableRef>> {
        self.check()?;
        self.catalogue.open_builtin(&self.ws, name)
    }

    /// A table that was created with these options, now with their comparators.
    pub(super) fn open_with(
        &mut self,
        name: &[u8],
        options: &TableOptions,
    ) -> Result<Option<TableRef>> {
        self.check()?;
        self.catalogue.open_with(&self.ws, name, options)
    }

    /// Creates a table, whose name must be free.
    pub(super) fn create(&mut self, name: &[u8], options: &TableOptions) -> Result<TableRef> {
        match self.open_table(name)? {
            Some(_) => Err(Error::TableExists { table: name.into() }),
            None => self.new_table(name, options),
        }
    }

    fn new_table(&mut self, name: &[u8], options: &TableOptions) -> Result<TableRef> {
        check_key(&self.ws, name)?;
        let new = self.catalogue.plan(options)?;
        self.change(TableRef::CATALOGUE)?;
        self.guarded(|txn| txn.catalogue.create(&mut txn.ws, name, new))
    }

    // ---- guards ----

    pub(super) fn check(&self) -> Result<()> {
        self.env.check_alive()?;
        self.soundness.check()
    }

    /// Runs an operation that may stop half-way; if it does, the transaction is broken.
    pub(super) fn guarded<T>(&mut self, op: impl FnOnce(&mut WriteTxn) -> Result<T>) -> Result<T> {
        // True while it runs: a panic on the way leaves a broken transaction too.
        self.soundness.lose();
        let result = op(self);
        if result.is_ok() {
            self.soundness.regain();
        }
        result
    }

    /// The workspace and a tree to change in it.
    #[inline(always)]
    pub(super) fn parts(&mut self, table: TableRef) -> Result<(&mut Workspace, &mut Tree)> {
        Ok((&mut self.ws, self.catalogue.tree_mut(table)?))
    }

    #[inline(always)]
    pub(super) fn tree(&self, table: TableRef) -> Result<&Tree> {
        self.catalogue.tree(table)
    }

    /// To be called before a table's tree is changed: cursors note their records, the tree is saved for the
    /// running nested level and gets a new version, and pages are spilled if memory is short.
    #[inline(always)]
    pub(super) fn change(&mut self, table: TableRef) -> Result<()> {
        self.check()?;
        self.notes.changing();
        self.cursors.note(&self.ws, &self.catalogue, table)?;
        self.catalogue.begin_change(&mut self.ws, table);
        if self.space.is_due(&self.ws) { self.relieve() } else { Ok(()) }
    }

    /// Memory is short.
    #[cold]
    fn relieve(&mut self) -> Result<()> {
        self.cursors.note_all(&self.ws, &self.catalogue)?;
        self.guarded(WriteTxn::spill)
    }

    /// For a transaction larger than memory: writes all dirty pages of the running nesting level but the
    /// roots. They stay invisible (nothing durable refers to them) and can be taken back.
    fn spill(&mut self) -> Result<()> {
        self.attempt.begin(&self.env.shared, self.id().0);
        self.catalogue.pages_moved(&mut self.ws);
        self.space.reuse_returned(&mut self.ws)?;
        let (txn, bytes) = (self.id(), self.ws.dirty_bytes());
        let what = format_args!("transaction {txn}: {bytes} bytes of changes, written early");
        self.env.log(Level::Info, what);
        let pages = self.ws.arena().live() as u64 + self.ws.run_pages();
        let allocated = self.space.allocate(&self.ws, pages)?;
        let extents = allocated.all()?;
        let written = self.write_early(allocated);
        self.ws.counts.spilled += pages;
        let booked = written.and_then(|p| self.space.book_spilled(&mut self.ws, &p, &extents));
        // Else an outer nesting level, which goes on, would miss them.
        booked.inspect_err(|_| self.space.give_back(extents))
    }

    fn write_early(&mut self, allocated: Allocated) -> Result<Placed> {
        let mut writeback = Writeback::new(&mut self.ws, allocated)?;
        self.catalogue.place_below_roots(&mut writeback)?;
        let mut placed = writeback.finish();
        placed.write(&self.env, &self.ws, (false, self.env.is_sync()))?;
        Ok(placed)
    }
}

impl WriteTxn {
    /// Gives the space map back for the next transaction.
    pub(super) fn end_space(&mut self) {
        let ws = std::mem::replace(&mut self.ws, Workspace::none(self.env.shift));
        self.space.end(ws, self.soundness.is_broken());
    }
}

impl Drop for WriteTxn {
    fn drop(&mut self) {
        if self.env.is_forked() {
            // Lock and state are the parent's; leave everything as it is.
            return;
        }
        if !self.handed_on {
            self.end_space();
            self.env.shared.unlock_writer();
        }
    }
}
