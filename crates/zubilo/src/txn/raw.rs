//! Transactions for callers that cannot hold borrows, such as the C interface: tables by number,
//! comparators exchanged at any time, nested levels begun and ended by calls.
//!
//! The tree of names itself can be used as a table (`NAMES`): its plain records are the caller's,
//! the records of tables are left to the engine. Slices that come from a write transaction hold
//! until its next change; here nothing but the borrow says so, callers that drop it must.

use crate::copy::pinned;
use crate::env::meta::StoredGeometry;
use crate::env::{Env, ledger};
use crate::error::{Error, Result};
use crate::page::{Compare, Entry, Order, ValueKind};
use crate::tree::batch;
use crate::tree::cursor::Cursor;
use crate::tree::desc::ORDER_CUSTOM;
use crate::tree::{Pages, Ref, Tree, TreeDesc, lookup, remove};

use super::options::{TableOptions, unordered_tree};
use super::read::ReadTxn;
use super::table::{TableStats, values_of_key};
use super::write::{MAIN, WriteTxn};

pub use super::write::OwnLimit;

/// The number of the tree of names in every write transaction.
pub const NAMES: usize = MAIN;

/// A caller's comparison.
pub type RawCompare = Compare;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<T> {
    /// Nothing.
    Nothing,
    /// A plain record.
    Record,
    /// A table.
    Table(T),
}

/// What is known of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableInfo {
    /// Figures.
    pub stats: TableStats,
    /// Order of keys: 0 bytes, 1 reversed, 2 integers, 3 a caller's.
    pub key_order: u8,
    /// Order of the values of a key, likewise.
    pub value_order: u8,
    /// Many values under a key.
    pub duplicates: bool,
    /// All values of one size.
    pub fixed: bool,
    /// The table's persistent sequence.
    pub sequence: u64,
    /// Branches count records.
    pub counted: bool,
    /// To how many bytes values are aligned.
    pub alignment: u8,
}

impl TableInfo {
    fn of(desc: &TreeDesc) -> TableInfo {
        TableInfo {
            stats: TableStats::of(desc),
            key_order: desc.options.order,
            value_order: desc.options.value_order_code(),
            duplicates: desc.options.has_duplicates(),
            fixed: desc.options.is_fixed(),
            sequence: desc.sequence,
            counted: desc.options.is_counted(),
            alignment: desc.options.align,
        }
    }
}

/// A table of a read transaction; good as long as the transaction shows the same snapshot.
#[derive(Clone)]
pub struct RawTable {
    tree: Tree,
}

impl RawTable {
    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What is known of it.
    pub fn info(&self) -> TableInfo {
        TableInfo::of(&self.tree.desc)
    }

    /// Takes comparators, where the table was made for a caller's; without one such a table is in
    /// byte order for look-ups.
    pub fn set_orders(&mut self, keys: Option<RawCompare>, values: Option<RawCompare>) {
        set_orders(&mut self.tree, keys, values);
    }
}

fn set_orders(tree: &mut Tree, keys: Option<RawCompare>, values: Option<RawCompare>) {
    let custom = |compare: Option<RawCompare>| {
        Order::Custom(compare.unwrap_or_else(|| std::sync::Arc::new(|a: &[u8], b: &[u8]| a.cmp(b))))
    };
    if tree.desc.options.order == ORDER_CUSTOM {
        tree.order = custom(keys);
    }
    if tree.desc.options.value_order_code() == ORDER_CUSTOM {
        tree.values = custom(values);
    }
    tree.finger.reset();
}

/// The value of an entry; of a table's record in the tree of names, its bytes as they are stored.
#[inline]
fn value_of<'p, P: Pages<'p>>(
    pages: &P,
    tree: &Tree,
    at: Ref,
    entry: &Entry<'p>,
) -> Result<&'p [u8]> {
    if entry.kind == ValueKind::Tree && !tree.desc.options.has_duplicates() {
        return Ok(entry.value);
    }
    lookup::value_of(pages, at, entry)
}

/// The last key of a tree.
fn last_key<'p, P: Pages<'p>>(pages: &P, desc: &TreeDesc) -> Result<Option<&'p [u8]>> {
    if desc.depth == 0 {
        return Ok(None);
    }
    let mut at = desc.root;
    for level in (1..desc.depth).rev() {
        let branch = lookup::branch_at(pages, at, level)?;
        let last = branch.count().saturating_sub(1);
        at = Ref(branch.child(last).map_err(at.damaged())?);
    }
    let leaf = lookup::leaf_at(pages, at)?;
    let last = leaf.count().saturating_sub(1);
    leaf.key(last).map_err(at.damaged()).map(Some)
}

/// What `name` stands for in the tree of names.
fn find<'p, P: Pages<'p>>(pages: &P, names: &Tree, name: &[u8]) -> Result<Named<TreeDesc>> {
    match lookup::get_entry(pages, &names.desc, &names.order, name)? {
        None => Ok(Named::Nothing),
        Some((at, entry)) if entry.kind == ValueKind::Tree => {
            TreeDesc::from_bytes(entry.value).map_err(at.damaged()).map(Named::Table)
        }
        Some(_) => Ok(Named::Record),
    }
}

impl ReadTxn {
    /// As [`WriteTxn::raw_mark`].
    pub fn raw_mark(&self) -> u64 {
        self.root().main.sequence
    }

    /// The tree of names.
    pub fn raw_names(&self) -> RawTable {
        RawTable { tree: Tree::main(self.root().main) }
    }

    /// Hands out the plain records of the tree of names, in order.
    pub fn raw_records<E: From<Error>>(
        &self,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let pages = self.snapshot();
        let mut cursor = Cursor::new(pages, &self.root().main, Order::Bytes);
        cursor.first()?;
        while let Some((at, entry)) = cursor.entry()? {
            if entry.kind != ValueKind::Tree {
                each(entry.key, lookup::value_of(&pages, at, &entry)?)?;
            }
            cursor.next()?;
        }
        Ok(())
    }

    /// What `name` stands for.
    pub fn raw_find(&self, name: &[u8]) -> Result<Named<RawTable>> {
        let names = Tree::main(self.root().main);
        Ok(match find(&self.snapshot(), &names, name)? {
            Named::Nothing => Named::Nothing,
            Named::Record => Named::Record,
            Named::Table(desc) => {
                let mut tree = unordered_tree(desc);
                set_orders(&mut tree, None, None);
                Named::Table(RawTable { tree })
            }
        })
    }

    /// The value under `key`, of several the first.
    #[inline]
    pub fn raw_get(&self, table: &RawTable, key: &[u8]) -> Result<Option<&[u8]>> {
        let (pages, tree) = (self.snapshot(), &table.tree);
        match lookup::get_entry(&pages, &tree.desc, &tree.order, key)? {
            Some((at, entry)) => value_of(&pages, tree, at, &entry).map(Some),
            None => Ok(None),
        }
    }

    /// Looks many keys up at once and hands each value to `found` with the index of its key.
    pub fn raw_get_many<'t>(
        &'t self,
        table: &RawTable,
        keys: &[&[u8]],
        found: impl FnMut(usize, Option<&'t [u8]>),
    ) -> Result<()> {
        let tree = &table.tree;
        batch::get_many(&self.snapshot(), &tree.desc, &tree.order, keys, found)
    }

    /// Bytes up to the last page ever used.
    pub fn raw_used(&self) -> u64 {
        self.root().end << self.env().shift
    }

    /// Ends the pin of the snapshot and keeps the reader slot, until [`ReadTxn::raw_renew`].
    pub fn raw_park(&mut self) {
        self.park();
    }

    /// After [`ReadTxn::raw_park`]: the newest commit. An error leaves it parked.
    pub fn raw_renew(&mut self) -> Result<()> {
        self.repin().inspect_err(|_| self.park())
    }
}

impl WriteTxn {
    /// What `name` stands for; a table gets a number, which it keeps in this transaction.
    pub fn raw_find(&mut self, name: &[u8]) -> Result<Named<usize>> {
        match find(&self.ws.view(), &self.main, name)? {
            Named::Nothing => return Ok(Named::Nothing),
            Named::Record => return Ok(Named::Record),
            Named::Table(_) => {}
        }
        let index = self.open_table(name)?.ok_or(Error::NoSuchTable)?;
        self.raw_set_orders(index, None, None)?;
        Ok(Named::Table(index))
    }

    /// Creates a table.
    pub fn raw_create(&mut self, name: &[u8], options: &TableOptions) -> Result<usize> {
        if self.open_table(name)?.is_some() {
            return Err(Error::TableExists);
        }
        self.new_table(name, options)
    }

    /// What is known of a table.
    pub fn raw_info(&self, table: usize) -> TableInfo {
        TableInfo::of(&self.tree(table).desc)
    }

    /// As [`RawTable::set_orders`].
    pub fn raw_set_orders(
        &mut self,
        table: usize,
        keys: Option<RawCompare>,
        values: Option<RawCompare>,
    ) -> Result<()> {
        self.check()?;
        set_orders(self.parts(table).1, keys, values);
        if let Some(open) = self.tables.get_mut(table) {
            open.ordered = true;
        }
        Ok(())
    }

    /// Fixes the options of an empty table anew.
    pub fn raw_set_options(&mut self, table: usize, options: &TableOptions) -> Result<()> {
        self.change(table)?;
        let tree = self.parts(table).1;
        if tree.desc.depth > 0 || table == NAMES {
            return Err(Error::Invalid("only an empty table can have its options changed"));
        }
        let mut desc = tree.desc;
        desc.options = options.to_tree()?;
        *tree = options.tree(desc)?;
        Ok(())
    }

    /// The number kept in the tree of names for its user.
    pub fn raw_mark(&self) -> u64 {
        self.main.desc.sequence
    }

    /// Sets it.
    pub fn raw_set_mark(&mut self, mark: u64) -> Result<()> {
        self.change(NAMES)?;
        self.main.desc.sequence = mark;
        Ok(())
    }

    /// The value under `key`, of several the first.
    #[inline]
    pub fn raw_get(&self, table: usize, key: &[u8]) -> Result<Option<&[u8]>> {
        self.check()?;
        let (pages, tree) = (self.ws.view(), self.tree(table));
        match lookup::get_entry(&pages, &tree.desc, &tree.order, key)? {
            Some((at, entry)) => value_of(&pages, tree, at, &entry).map(Some),
            None => Ok(None),
        }
    }

    /// Refuses to change a table's record as if it were the caller's.
    fn check_not_table(&self, table: usize, key: &[u8]) -> Result<()> {
        if table == NAMES
            && self.next_table > 1
            && let Named::Table(_) = find(&self.ws.view(), &self.main, key)?
        {
            return Err(Error::Incompatible("the record is a table's"));
        }
        Ok(())
    }

    /// Stores `value` under `key`; with `overwrite` false only if the key is new. True if it did.
    pub fn raw_put(
        &mut self,
        table: usize,
        key: &[u8],
        value: &[u8],
        overwrite: bool,
    ) -> Result<bool> {
        self.check_not_table(table, key)?;
        self.put(table, key, value, overwrite)
    }

    /// Takes `count` numbers, at least one, of a table's sequence and gives the first.
    pub fn raw_sequence(&mut self, table: usize, count: u64) -> Result<u64> {
        self.sequence(table, count)
    }

    /// As [`WriteTxn::is_dirty`], of the byte at an address.
    pub fn raw_is_dirty(&self, at: *const u8) -> bool {
        self.ws.is_dirty(at)
    }

    /// Whether two values are the same in a table's order.
    pub fn raw_is_same_value(&self, table: usize, a: &[u8], b: &[u8]) -> bool {
        self.tree(table).values.compare(a, b).is_eq()
    }

    /// Whether `key` comes behind all keys of a table.
    pub fn raw_is_behind(&self, table: usize, key: &[u8]) -> Result<bool> {
        self.check()?;
        let tree = self.tree(table);
        let last = last_key(&self.ws.view(), &tree.desc)?;
        Ok(last.is_none_or(|last| tree.order.compare(key, last).is_gt()))
    }

    /// Whether `value` comes behind all values of `key`.
    pub fn raw_is_value_behind(&self, table: usize, key: &[u8], value: &[u8]) -> Result<bool> {
        self.check()?;
        let tree = self.tree(table);
        let mut values = values_of_key(self.ws.view(), tree, key)?;
        Ok(match values.next_back() {
            Some(last) => tree.values.compare(value, last?).is_gt(),
            None => true,
        })
    }

    /// Room for a value of `len` bytes under `key`, zeroed.
    pub fn raw_reserve(&mut self, table: usize, key: &[u8], len: usize) -> Result<&mut [u8]> {
        self.check_not_table(table, key)?;
        self.reserve(table, key, len)
    }

    /// Removes `key` with all its values; tells whether it was there.
    pub fn raw_delete(&mut self, table: usize, key: &[u8]) -> Result<bool> {
        self.check_not_table(table, key)?;
        self.delete(table, key)
    }

    /// Adds a value to those of a key, in a table that was made with duplicates; true if it is new.
    /// Integer values may have any size.
    pub fn raw_put_value(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put_any_value(table, key, value)
    }

    /// Removes a value of a key; tells whether it was there.
    pub fn raw_delete_value(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<bool> {
        self.check_not_table(table, key)?;
        self.delete_value(table, key, value)
    }

    /// Removes a table.
    pub fn raw_drop(&mut self, name: &[u8]) -> Result<()> {
        self.drop_table(name)
    }

    /// Whether the next change writes pages of any table out of memory.
    pub fn raw_will_spill(&self) -> bool {
        self.ws.dirty_bytes() > self.spill_at
    }

    /// Removes all records of a table. Of the tree of names: the tables too, which must not be
    /// used any more.
    pub fn raw_clear(&mut self, table: usize) -> Result<()> {
        self.change(table)?;
        self.guarded(|txn| {
            let (ws, tree) = txn.parts(table);
            remove::clear(ws, tree)
        })
    }

    /// Opens a nested level.
    pub fn raw_begin_nested(&mut self) -> Result<()> {
        self.begin_nested()
    }

    /// Hands what the innermost level did to the level outside.
    pub fn raw_commit_nested(&mut self) -> Result<()> {
        self.check()?;
        self.commit_nested();
        Ok(())
    }

    /// Undoes what the innermost level did.
    pub fn raw_abort_nested(&mut self) {
        self.abort_nested();
    }

    /// From now on this bounds the file, whatever its geometry says. If the transaction changes
    /// anything the bound is stored, unless a greater one is.
    pub fn raw_set_limit(&mut self, limit: OwnLimit) {
        self.limit = Some(limit);
    }

    /// The geometry that bounds this transaction.
    pub(super) fn bounds(&self) -> StoredGeometry {
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

    /// Bytes up to the last page ever used, in the commit that this transaction builds on.
    pub fn raw_used(&self) -> u64 {
        self.base.end << self.env.shift
    }

    /// Bytes that the changes so far would still leave below the soft limit.
    pub fn raw_room(&self) -> i64 {
        let Some(state) = self.state.as_ref() else { return 0 };
        let upper = self.limit.map_or(self.geometry.upper, |limit| limit.soft);
        let limit = self.env.page_limit(&StoredGeometry { upper, ..self.geometry }) as i64;
        let free = limit - state.space.end() as i64 + state.space.free_pages() as i64;
        let used = self.ws.arena().live() as i64 + self.ws.run_pages() as i64;
        (free - used) << self.env.shift
    }
}

/// Pages as runs of first page and number, ascending.
pub type Runs = Vec<(u64, u64)>;

impl Env {
    /// Process, thread and snapshot of each reader; of those that were parked, no snapshot.
    pub fn raw_readers(&self) -> Vec<(u32, u64, Option<u64>)> {
        let slots = self.inner.shared.kept_slots();
        slots
            .map(|(reader, pins)| (reader.pid, reader.thread, pins.then_some(reader.txn)))
            .collect()
    }

    /// Highest number of reader slots that were ever in use.
    pub fn raw_reader_slots(&self) -> u32 {
        self.inner.shared.claimed_slots()
    }

    /// The pages that are free in the newest commit, be it that readers still hold them.
    pub fn raw_free_runs(&self) -> Result<Runs> {
        let (txn, meta) = pinned(&self.inner)?;
        let snapshot = txn.snapshot();
        let books = ledger::read(&snapshot, &meta)?;
        let reserved = self.inner.reserved_pages();
        let space = ledger::load_space(&snapshot, &meta, &books, &[], reserved)?;
        let mut runs = Vec::new();
        space.for_each_free(&mut |run| runs.push((run.first, run.count)));
        Ok(runs)
    }

    /// Takes over what others have committed to a store that is open without a lock file, whose
    /// users take turns by means of their own. No transaction of this process may write or begin
    /// meanwhile.
    pub fn raw_adopt(&self) -> Result<()> {
        crate::env::adopt(&self.inner)
    }
}
