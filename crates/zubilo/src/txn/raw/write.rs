//! The write transaction: its tables are numbers, its nested levels begin and end by calls.

use crate::error::{Error, Result};
use crate::tree::{lookup, remove};
use crate::txn::options::TableOptions;
use crate::txn::table::bounds_of;
use crate::txn::write::WriteTxn;

use super::counted::RawRange;
use super::{NAMES, Named, RawCompare, TableInfo, find, set_orders, value_of};

#[doc(hidden)]
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

    /// As `RawTable::set_orders`.
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

    /// Whether two keys are the same in a table's order.
    pub fn raw_is_same_key(&self, table: usize, a: &[u8], b: &[u8]) -> bool {
        self.tree(table).order.compare(a, b).is_eq()
    }

    /// Whether two values are the same in a table's order.
    pub fn raw_is_same_value(&self, table: usize, a: &[u8], b: &[u8]) -> bool {
        self.tree(table).values.compare(a, b).is_eq()
    }

    /// Whether `key` comes behind all keys of a table.
    pub fn raw_is_behind(&self, table: usize, key: &[u8]) -> Result<bool> {
        self.check()?;
        self.is_behind(table, key)
    }

    /// Whether `value` comes behind all values of `key`.
    pub fn raw_is_value_behind(&self, table: usize, key: &[u8], value: &[u8]) -> Result<bool> {
        self.check()?;
        self.is_value_behind(table, key, value)
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
        self.commit_nested()
    }

    /// Undoes what the innermost level did.
    pub fn raw_abort_nested(&mut self) {
        // Without a level there is nothing to undo.
        let _ = self.abort_nested();
    }

    /// Bytes up to the last page ever used, in the commit that this transaction builds on.
    pub fn raw_used(&self) -> u64 {
        self.base.end << self.env.shift
    }

    /// Removes all records with keys inside a range; gives their number. Not of the tree of names.
    pub fn raw_delete_range(&mut self, table: usize, keys: RawRange<'_>) -> Result<u64> {
        if table == NAMES {
            return Err(Error::Incompatible("names of tables may lie in the range"));
        }
        self.delete_range(table, &bounds_of::<&[u8]>(keys))
    }

    /// Bytes of dead pages that a snapshot still sees.
    pub fn raw_held_back(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.space.retired_pages()) << self.env.shift
    }

    /// Looks which readers are there now: pages of those that have ended can be used.
    pub fn raw_renew_pins(&mut self) -> Result<()> {
        self.check()?;
        self.look_for_pins()
    }
}
