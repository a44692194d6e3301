//! The write transaction: its tables are numbers, its nested levels begin and end by calls.

use crate::error::{Error, Result};
use crate::page::ValueKind;
use crate::redo::Op;
use crate::tree::{Ref, RunRef, lookup};
use crate::txn::catalogue::TableRef;
use crate::txn::options::TableOptions;
use crate::txn::space_writer::OwnLimit;
use crate::txn::table::bounds_of;
use crate::txn::write::WriteTxn;

use super::counted::RawRange;
use super::{Named, RawCompare, TableInfo, find, set_orders, value_of};

#[doc(hidden)]
impl WriteTxn {
    /// What `name` stands for; a table gets a number, which it keeps in this transaction.
    pub fn raw_find(&mut self, name: &[u8]) -> Result<Named<TableRef>> {
        match find(&self.ws.view(), self.catalogue.main(), name)? {
            Named::Nothing => return Ok(Named::Nothing),
            Named::Record => return Ok(Named::Record),
            Named::Table(_) => {}
        }
        let index = self.existing(name)?;
        self.raw_set_orders(index, None, None)?;
        Ok(Named::Table(index))
    }

    /// Creates a table.
    pub fn raw_create(&mut self, name: &[u8], options: &TableOptions) -> Result<TableRef> {
        self.create(name, options)
    }

    /// What is known of a table.
    pub fn raw_info(&self, table: TableRef) -> Result<TableInfo> {
        Ok(TableInfo::of(&self.tree(table)?.desc))
    }

    /// As `RawTable::set_orders`.
    pub fn raw_set_orders(
        &mut self,
        table: TableRef,
        keys: Option<RawCompare>,
        values: Option<RawCompare>,
    ) -> Result<()> {
        self.check()?;
        set_orders(self.parts(table)?.1, keys, values);
        self.catalogue.set_ordered(table);
        Ok(())
    }

    /// Fixes the options of an empty table anew.
    pub fn raw_set_options(&mut self, table: TableRef, options: &TableOptions) -> Result<()> {
        self.change(table)?;
        let tree = self.parts(table)?.1;
        if tree.desc.depth > 0 || table == TableRef::CATALOGUE {
            return Err(Error::Invalid("only an empty table can have its options changed"));
        }
        let mut desc = tree.desc;
        desc.options = options.to_tree()?;
        tree.replace(options.tree(desc)?);
        Ok(())
    }

    /// The counter of the tree of names, which is its user's.
    pub fn raw_counter(&self) -> u64 {
        self.catalogue.main().desc.sequence
    }

    /// Sets it.
    pub fn raw_set_counter(&mut self, counter: u64) -> Result<()> {
        self.change(TableRef::CATALOGUE)?;
        self.catalogue.set_sequence(TableRef::CATALOGUE, counter)?;
        self.note(TableRef::CATALOGUE, Some(Op::Sequence(counter)));
        Ok(())
    }

    /// The value under `key`, of several the first.
    #[inline]
    pub fn raw_get(&self, table: TableRef, key: &[u8]) -> Result<Option<&[u8]>> {
        self.check()?;
        let (pages, tree) = (self.ws.view(), self.tree(table)?);
        lookup::get_or(&pages, &tree.desc, &tree.order, key, |pages, at, entry| {
            value_of(pages, tree, at, entry)
        })
    }

    /// As [`WriteTxn::raw_get`], for who stores the bytes anew: a large value is verified. That of a leaf
    /// is, when the leaf is changed.
    pub fn raw_get_to_rewrite(&self, table: TableRef, key: &[u8]) -> Result<Option<&[u8]>> {
        self.check()?;
        let (pages, tree) = (self.ws.view(), self.tree(table)?);
        let found = lookup::get_entry(&pages, &tree.desc, &tree.order, key)?;
        let Some((at, entry)) = found else { return Ok(None) };
        let value = value_of(&pages, tree, at, &entry)?;
        if entry.kind == ValueKind::Run {
            let run = RunRef::load(entry.value).map_err(at.damaged())?;
            if run.slot().is_none() {
                run.verify(value).map_err(Ref(run.first).damaged())?;
            }
        }
        Ok(Some(value))
    }

    /// Refuses to change a table's record as if it were the caller's.
    fn check_not_table(&self, table: TableRef, key: &[u8]) -> Result<()> {
        if table == TableRef::CATALOGUE
            && self.catalogue.next_table() > 1
            && let Named::Table(_) = find(&self.ws.view(), self.catalogue.main(), key)?
        {
            return Err(Error::incompatible("the record is a table's"));
        }
        Ok(())
    }

    /// Stores `value` under `key`; with `overwrite` false only if the key is new. True if it did.
    pub fn raw_put(
        &mut self,
        table: TableRef,
        key: &[u8],
        value: &[u8],
        overwrite: bool,
    ) -> Result<bool> {
        self.check_not_table(table, key)?;
        self.put(table, key, value, overwrite)
    }

    /// Takes `count` numbers, at least one, of a table's sequence and gives the first.
    pub fn raw_sequence(&mut self, table: TableRef, count: u64) -> Result<u64> {
        self.sequence(table, count)
    }

    /// As [`WriteTxn::is_dirty`], of the byte at an address.
    pub fn raw_is_dirty(&self, at: *const u8) -> bool {
        self.ws.is_dirty(at)
    }

    /// Whether two keys are the same in a table's order.
    pub fn raw_is_same_key(&self, table: TableRef, a: &[u8], b: &[u8]) -> Result<bool> {
        Ok(self.tree(table)?.order.compare(a, b).is_eq())
    }

    /// Whether two values are the same in a table's order.
    pub fn raw_is_same_value(&self, table: TableRef, a: &[u8], b: &[u8]) -> Result<bool> {
        Ok(self.tree(table)?.values.compare(a, b).is_eq())
    }

    /// Whether `key` comes after all keys of a table.
    pub fn raw_is_behind(&self, table: TableRef, key: &[u8]) -> Result<bool> {
        self.check()?;
        self.is_behind(table, key)
    }

    /// Whether `value` comes after all values of `key`.
    pub fn raw_is_value_behind(&self, table: TableRef, key: &[u8], value: &[u8]) -> Result<bool> {
        self.check()?;
        self.is_value_behind(table, key, value)
    }

    /// Room for a value of `len` bytes under `key`, zeroed.
    pub fn raw_reserve(&mut self, table: TableRef, key: &[u8], len: usize) -> Result<&mut [u8]> {
        self.check_not_table(table, key)?;
        self.reserve(table, key, len)
    }

    /// Removes `key` with all its values; returns whether it was there.
    pub fn raw_delete(&mut self, table: TableRef, key: &[u8]) -> Result<bool> {
        self.check_not_table(table, key)?;
        self.delete(table, key)
    }

    /// Adds a value to those of a key, in a table that was made with duplicates; true if it is new.
    /// Integer values may have any size.
    pub fn raw_put_value(&mut self, table: TableRef, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put_any_value(table, key, value)
    }

    /// Removes a value of a key; returns whether it was there.
    pub fn raw_delete_value(&mut self, table: TableRef, key: &[u8], value: &[u8]) -> Result<bool> {
        self.check_not_table(table, key)?;
        self.delete_value(table, key, value)
    }

    /// Removes a table.
    pub fn raw_drop(&mut self, name: &[u8]) -> Result<()> {
        self.drop_table(name)
    }

    /// Whether the next change writes pages of any table out of memory.
    pub fn raw_will_spill(&self) -> bool {
        self.space.is_due(&self.ws)
    }

    /// Removes all records of a table. Of the tree of names: the tables too, which must not be
    /// used any more.
    pub fn raw_clear(&mut self, table: TableRef) -> Result<()> {
        self.clear(table)
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
    pub fn raw_delete_range(&mut self, table: TableRef, keys: RawRange<'_>) -> Result<u64> {
        if table == TableRef::CATALOGUE {
            return Err(Error::incompatible("names of tables may lie in the range"));
        }
        self.delete_range(table, &bounds_of::<&[u8]>(keys))
    }

    /// Bytes of dead pages that a snapshot still sees.
    pub fn raw_held_back(&self) -> u64 {
        self.space.held_back()
    }

    /// From now on this bounds the file, whatever its geometry says. If the transaction changes
    /// anything the bound is stored, unless a greater one is.
    pub fn raw_set_limit(&mut self, limit: OwnLimit) {
        self.space.set_limit(limit);
    }

    /// Bytes that the changes so far would still leave below the soft limit.
    pub fn raw_room(&self) -> i64 {
        self.space.room(&self.ws)
    }

    /// Looks which readers are there now: pages of those that have ended can be used.
    pub fn raw_renew_pins(&mut self) -> Result<()> {
        self.check()?;
        self.space.look_for_pins()
    }
}
