//! Records: what the write transaction does to the tree of a table.

use crate::error::{Error, Result};
use crate::page::{self, NewValue, ValueKind, leaf};
use crate::redo::Op;
use crate::tree::append::append;
use crate::tree::desc::ORDER_INTEGER;
use crate::tree::insert::{Put, last_key, put, put_run};
use crate::tree::range::Bounds;
use crate::tree::values::last_value;
use crate::tree::{TreeOptions, lookup, pairs, remove, remove_range};

use super::catalogue::{TableRef, check_key};
use super::table::{count_of_key, has_pair};
use super::write::WriteTxn;

/// Whether keys of this table can be like this one.
#[inline(always)]
fn check_kind_of_key(options: TreeOptions, key: &[u8]) -> Result<()> {
    if options.order == ORDER_INTEGER && !matches!(key.len(), 4 | 8) {
        return Err(Error::Invalid("a table of integer keys takes keys of 4 or 8 bytes"));
    }
    Ok(())
}

impl WriteTxn {
    /// Whether a table can have this key.
    fn check_key_of(&self, table: TableRef, key: &[u8]) -> Result<()> {
        check_kind_of_key(self.tree(table)?.desc.options, key)?;
        check_key(&self.ws, key)
    }

    /// Bytes of the key of a record with a value of `len` bytes, if that may not fit a leaf. In a caller's
    /// order a key equal to `key` may be there, which stays, and may be longer or shorter.
    #[inline]
    fn key_len(&self, table: TableRef, key: &[u8], len: usize) -> Result<usize> {
        let (tree, page_size) = (self.tree(table)?, self.ws.page_size());
        if !tree.order.is_custom() || page::max_key(page_size) + len <= page::max_inline(page_size)
        {
            return Ok(key.len());
        }
        let found = lookup::get_entry(&self.ws.view(), &tree.desc, &tree.order, key)?;
        Ok(found.map_or(key.len(), |(_, entry)| entry.key.len()))
    }

    /// Whether a value of `len` bytes is kept outside the leaf.
    #[inline]
    fn is_large(&self, table: TableRef, key: &[u8], len: usize) -> Result<bool> {
        Ok(self.key_len(table, key, len)? + len > page::max_inline(self.ws.page_size()))
    }

    /// Whether `key` comes after all keys of a table.
    pub(super) fn is_behind(&self, table: TableRef, key: &[u8]) -> Result<bool> {
        let tree = self.tree(table)?;
        let last = last_key(&self.ws, tree)?;
        Ok(last.is_none_or(|last| tree.order.compare(key, last).is_gt()))
    }

    /// Whether `value` comes after all values of `key`.
    pub(super) fn is_value_behind(
        &self,
        table: TableRef,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let tree = self.tree(table)?;
        let last = last_value(&self.ws.view(), tree, key)?;
        Ok(last.is_none_or(|last| tree.values.compare(value, last).is_gt()))
    }

    pub(super) fn put(
        &mut self,
        table: TableRef,
        key: &[u8],
        value: &[u8],
        overwrite: bool,
    ) -> Result<bool> {
        let tree = self.tree(table)?;
        let (options, is_custom) = (tree.desc.options, tree.order.is_custom());
        check_kind_of_key(options, key)?;
        check_key(&self.ws, key)?;
        if options.has_duplicates() {
            return self.put_first(table, key, value, overwrite);
        }
        self.change(table)?;
        // Asked for here: a table has to be found for the answer only where equal keys may differ in length.
        let key_len = if is_custom { self.key_len(table, key, value.len())? } else { key.len() };
        if key_len + value.len() > page::max_inline(self.ws.page_size()) {
            let stored = self.put_large(table, key, value, overwrite)?;
            self.note(table, stored.then_some(Op::Put(key, value)));
            return Ok(stored);
        }
        let stored = self.guarded(|txn| {
            let (ws, tree) = txn.parts(table)?;
            if let Some(to) = append(ws, tree, key, value.len()) {
                to.copy_from_slice(value);
                return Ok(true);
            }
            let value = NewValue::of(ValueKind::Inline, value);
            Ok(!matches!(put(ws, tree, key, value, overwrite)?, Put::Exists))
        })?;
        self.note(table, stored.then_some(Op::Put(key, value)));
        Ok(stored)
    }

    fn put_large(
        &mut self,
        table: TableRef,
        key: &[u8],
        value: &[u8],
        overwrite: bool,
    ) -> Result<bool> {
        if !overwrite && self.get(table, key)?.is_some() {
            return Ok(false);
        }
        let early = self.space.writes_at_once(value.len());
        self.guarded(|txn| {
            let run = match early {
                true => txn.space.write_run(&mut txn.ws, value)?,
                false => txn.ws.new_run(value.len(), value)?,
            };
            let (ws, tree) = txn.parts(table)?;
            put_run(ws, tree, key, &run)?;
            Ok(true)
        })
    }

    /// Room for a value of `len` bytes under `key`, zeroed, for the caller to fill.
    pub(super) fn reserve(&mut self, table: TableRef, key: &[u8], len: usize) -> Result<&mut [u8]> {
        self.check_key_of(table, key)?;
        if self.tree(table)?.desc.options.has_duplicates() {
            return Err(Error::incompatible("a value among many cannot be reserved"));
        }
        self.change(table)?;
        if self.is_large(table, key, len)? {
            let run = self.guarded(|txn| {
                let run = txn.ws.new_run(len, &[])?;
                let (ws, tree) = txn.parts(table)?;
                put_run(ws, tree, key, &run)?;
                Ok(run)
            })?;
            let lost = Error::Invalid("the reserved value is gone");
            return run.slot().and_then(|slot| self.ws.dirty_run_mut(slot)).ok_or(lost);
        }
        let place = self.guarded(|txn| {
            let (ws, tree) = txn.parts(table)?;
            let value = NewValue::room(ValueKind::Inline, len);
            match put(ws, tree, key, value, true)? {
                Put::Inserted(place) | Put::Replaced(place) => Ok(place),
                Put::Exists => Err(Error::TxnBroken),
            }
        })?;
        let value = self.ws.edit(place.at, |page| leaf::value_mut(page, place.index))?;
        value.fill(0);
        Ok(value)
    }

    pub(super) fn get(&self, table: TableRef, key: &[u8]) -> Result<Option<&[u8]>> {
        self.check()?;
        let tree = self.tree(table)?;
        lookup::get(&self.ws.view(), &tree.desc, &tree.order, key)
    }

    pub(super) fn delete(&mut self, table: TableRef, key: &[u8]) -> Result<bool> {
        self.change(table)?;
        let deleted = self.guarded(|txn| {
            let (ws, tree) = txn.parts(table)?;
            remove::remove(ws, tree, key)
        })?;
        self.note(table, deleted.then_some(Op::Delete(key)));
        if deleted {
            self.cursors.after_delete(&self.ws, &self.catalogue, table, key, None)?;
        }
        Ok(deleted)
    }

    pub(super) fn delete_range(&mut self, table: TableRef, bounds: &Bounds) -> Result<u64> {
        self.change(table)?;
        let deleted = self.guarded(|txn| {
            let (ws, tree) = txn.parts(table)?;
            remove_range::remove_range(ws, tree, bounds)
        })?;
        let (start, end) = (bounds.start.as_ref(), bounds.end.as_ref());
        let op = Op::DeleteRange(start.map(|key| &key[..]), end.map(|key| &key[..]));
        self.note(table, (deleted > 0).then_some(op));
        if self.tree(table)?.desc.depth == 0 {
            self.cursors.reset(table);
        }
        Ok(deleted)
    }

    // ---- many values under a key ----

    /// Adds a value to those of a key in a table with duplicates; with `add` false only if the key
    /// is new.
    fn put_first(&mut self, table: TableRef, key: &[u8], value: &[u8], add: bool) -> Result<bool> {
        if !add && self.count(table, key)? > 0 {
            return Ok(false);
        }
        self.put_value(table, key, value).map(|_| true)
    }

    /// Whether a table can have this record.
    pub(super) fn check_record(&self, table: TableRef, key: &[u8], value: &[u8]) -> Result<()> {
        let options = self.tree(table)?.desc.options;
        let integer = options.has_duplicates() && options.value_order_code() == ORDER_INTEGER;
        if integer && !matches!(value.len(), 4 | 8) {
            return Err(Error::Invalid("a table of integer values takes values of 4 or 8 bytes"));
        }
        self.check_any_record(table, key, value)
    }

    /// The same, with integer values of any size.
    fn check_any_record(&self, table: TableRef, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_key_of(table, key)?;
        let options = self.tree(table)?.desc.options;
        if !options.has_duplicates() {
            return Ok(());
        }
        // Alone it has to fit into the record, as the last one of its key.
        let page_size = self.ws.page_size();
        let key_len = self.key_len(table, key, value.len())?;
        let beside = page::max_inline(page_size).saturating_sub(key_len);
        let max = page::max_key(page_size).min(beside);
        if value.len() > max {
            return Err(Error::ValueTooLong { len: value.len(), max });
        }
        pairs::check_size(self.tree(table)?, value)
    }

    /// Adds a value to those of a key; false when it was there already.
    pub(super) fn put_value(&mut self, table: TableRef, key: &[u8], value: &[u8]) -> Result<bool> {
        if !self.tree(table)?.desc.options.has_duplicates() {
            return Err(Error::incompatible("the table keeps one value under a key"));
        }
        self.check_record(table, key, value)?;
        self.put_any_value(table, key, value)
    }

    /// The same, with integer values of any size: they compare as one number, little-endian.
    pub(super) fn put_any_value(
        &mut self,
        table: TableRef,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        self.check_any_record(table, key, value)?;
        self.change(table)?;
        let added = self.guarded(|txn| {
            let (ws, tree) = txn.parts(table)?;
            pairs::put_pair(ws, tree, key, value)
        })?;
        self.note(table, added.then_some(Op::Add(key, value)));
        Ok(added)
    }

    /// Removes one value of a key; false when the key does not have it.
    pub(super) fn delete_value(
        &mut self,
        table: TableRef,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        self.change(table)?;
        if !self.tree(table)?.desc.options.has_duplicates() {
            self.note(table, None);
            return Ok(self.has_pair(table, key, value)? && self.delete(table, key)?);
        }
        let deleted = self.guarded(|txn| {
            let (ws, tree) = txn.parts(table)?;
            pairs::remove_pair(ws, tree, key, value)
        })?;
        self.note(table, deleted.then_some(Op::DeleteValue(key, value)));
        if deleted {
            self.cursors.after_delete(&self.ws, &self.catalogue, table, key, Some(value))?;
        }
        Ok(deleted)
    }

    /// The number of values of a key.
    pub(super) fn count(&self, table: TableRef, key: &[u8]) -> Result<u64> {
        self.check()?;
        count_of_key(&self.ws.view(), self.tree(table)?, key)
    }

    /// Whether a key has a value.
    pub(super) fn has_pair(&self, table: TableRef, key: &[u8], value: &[u8]) -> Result<bool> {
        self.check()?;
        has_pair(&self.ws.view(), self.tree(table)?, key, value)
    }
}
