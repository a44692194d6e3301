//! Records: what the write transaction does to the tree of a table.

use crate::error::{Error, Result};
use crate::page::{self, ValueKind, leaf};
use crate::tree::append::append;
use crate::tree::desc::ORDER_INTEGER;
use crate::tree::insert::{Put, Shape, last_key, mark_dirty_runs, put};
use crate::tree::range::Bounds;
use crate::tree::run::RUN_REF_SIZE;
use crate::tree::values::last_value;
use crate::tree::{Ref, RunRef, lookup, pairs, remove, remove_range};

use super::table::{count_of_key, has_pair};
use super::write::WriteTxn;

/// Bytes of a large value that waits in memory for its commit, at most: to copy a longer one spares little.
const RUN_IN_MEMORY_MAX: u64 = 128 << 20;

impl WriteTxn {
    pub(super) fn check_key(&self, key: &[u8]) -> Result<()> {
        let max = page::max_key(self.ws.page_size());
        if key.len() > max { Err(Error::KeyTooLong { len: key.len(), max }) } else { Ok(()) }
    }

    /// Whether a table can have this key.
    fn check_key_of(&self, index: usize, key: &[u8]) -> Result<()> {
        if self.tree(index).desc.options.order == ORDER_INTEGER && !matches!(key.len(), 4 | 8) {
            return Err(Error::Invalid("a table of integer keys takes keys of 4 or 8 bytes"));
        }
        self.check_key(key)
    }

    /// Whether `key` comes behind all keys of a table.
    pub(super) fn is_behind(&self, index: usize, key: &[u8]) -> Result<bool> {
        let tree = self.tree(index);
        let last = last_key(&self.ws, tree)?;
        Ok(last.is_none_or(|last| tree.order.compare(key, last).is_gt()))
    }

    /// Whether `value` comes behind all values of `key`.
    pub(super) fn is_value_behind(&self, index: usize, key: &[u8], value: &[u8]) -> Result<bool> {
        let tree = self.tree(index);
        let last = last_value(&self.ws.view(), tree, key)?;
        Ok(last.is_none_or(|last| tree.values.compare(value, last).is_gt()))
    }

    pub(super) fn put(
        &mut self,
        index: usize,
        key: &[u8],
        value: &[u8],
        overwrite: bool,
    ) -> Result<bool> {
        self.check_key_of(index, key)?;
        if self.tree(index).desc.options.has_duplicates() {
            return self.put_first(index, key, value, overwrite);
        }
        self.change(index)?;
        if key.len() + value.len() > page::max_inline(self.ws.page_size()) {
            return self.put_large(index, key, value, overwrite);
        }
        self.guarded(|txn| {
            let (ws, tree) = txn.parts(index);
            if let Some(to) = append(ws, tree, key, value.len()) {
                to.copy_from_slice(value);
                return Ok(true);
            }
            let shape = Shape::of(ValueKind::Inline, value);
            Ok(!matches!(put(ws, tree, key, shape, overwrite)?, Put::Exists))
        })
    }

    fn put_large(
        &mut self,
        index: usize,
        key: &[u8],
        value: &[u8],
        overwrite: bool,
    ) -> Result<bool> {
        if !overwrite && self.get(index, key)?.is_some() {
            return Ok(false);
        }
        let early = value.len() as u64 > (self.env.dirty_limit / 2).min(RUN_IN_MEMORY_MAX);
        self.guarded(|txn| {
            let run =
                if early { txn.write_run(value)? } else { txn.ws.new_run(value.len(), value)? };
            txn.put_run(index, key, &run)?;
            Ok(true)
        })
    }

    /// Stores the reference to a run under `key`.
    fn put_run(&mut self, index: usize, key: &[u8], run: &RunRef) -> Result<()> {
        let (ws, tree) = self.parts(index);
        let shape = Shape::room(ValueKind::Run, RUN_REF_SIZE);
        let (Put::Inserted(place) | Put::Replaced(place)) = put(ws, tree, key, shape, true)? else {
            return Ok(());
        };
        tree.desc.run_pages += run.pages(ws.page_shift());
        let page = ws.page_mut(place.slot)?;
        if run.slot().is_some() {
            mark_dirty_runs(page);
        }
        let damaged = |d| Ref::dirty(place.slot).damaged()(d);
        let value = leaf::value_mut(page, place.index).map_err(damaged)?;
        run.store(value).map_err(damaged)
    }

    /// Room for a value of `len` bytes under `key`, zeroed, for the caller to fill.
    pub(super) fn reserve(&mut self, index: usize, key: &[u8], len: usize) -> Result<&mut [u8]> {
        self.check_key_of(index, key)?;
        if self.tree(index).desc.options.has_duplicates() {
            return Err(Error::Incompatible("a value among many cannot be reserved"));
        }
        self.change(index)?;
        if key.len() + len > page::max_inline(self.ws.page_size()) {
            let run = self.guarded(|txn| {
                let run = txn.ws.new_run(len, &[])?;
                txn.put_run(index, key, &run)?;
                Ok(run)
            })?;
            let lost = Error::Invalid("the reserved value is gone");
            return run.slot().and_then(|slot| self.ws.dirty_run_mut(slot)).ok_or(lost);
        }
        let place = self.guarded(|txn| {
            let (ws, tree) = txn.parts(index);
            let shape = Shape::room(ValueKind::Inline, len);
            match put(ws, tree, key, shape, true)? {
                Put::Inserted(place) | Put::Replaced(place) => Ok(place),
                Put::Exists => Err(Error::TxnBroken),
            }
        })?;
        let page = self.ws.page_mut(place.slot)?;
        let value = leaf::value_mut(page, place.index).map_err(Ref::dirty(place.slot).damaged())?;
        value.fill(0);
        Ok(value)
    }

    pub(super) fn get(&self, index: usize, key: &[u8]) -> Result<Option<&[u8]>> {
        self.check()?;
        let tree = self.tree(index);
        lookup::get(&self.ws.view(), &tree.desc, &tree.order, key)
    }

    pub(super) fn delete(&mut self, index: usize, key: &[u8]) -> Result<bool> {
        self.change(index)?;
        let deleted = self.guarded(|txn| {
            let (ws, tree) = txn.parts(index);
            remove::remove(ws, tree, key)
        })?;
        if deleted && !self.cursors.slots.is_empty() {
            self.cursors_after_delete(index, key, None)?;
        }
        Ok(deleted)
    }

    pub(super) fn delete_range(&mut self, index: usize, bounds: &Bounds) -> Result<u64> {
        self.change(index)?;
        let deleted = self.guarded(|txn| {
            let (ws, tree) = txn.parts(index);
            remove_range::remove_range(ws, tree, bounds)
        })?;
        if self.tree(index).desc.depth == 0 {
            self.reset_cursors(index);
        }
        Ok(deleted)
    }

    // ---- many values under a key ----

    /// Adds a value to those of a key in a table with duplicates; with `add` false only if the key
    /// is new.
    fn put_first(&mut self, index: usize, key: &[u8], value: &[u8], add: bool) -> Result<bool> {
        if !add && self.count(index, key)? > 0 {
            return Ok(false);
        }
        self.put_value(index, key, value).map(|_| true)
    }

    /// Whether a table can have this record.
    pub(super) fn check_record(&self, index: usize, key: &[u8], value: &[u8]) -> Result<()> {
        let options = self.tree(index).desc.options;
        let integer = options.has_duplicates() && options.value_order_code() == ORDER_INTEGER;
        if integer && !matches!(value.len(), 4 | 8) {
            return Err(Error::Invalid("a table of integer values takes values of 4 or 8 bytes"));
        }
        self.check_any_record(index, key, value)
    }

    /// The same, with integer values of any size.
    fn check_any_record(&self, index: usize, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_key_of(index, key)?;
        let options = self.tree(index).desc.options;
        if !options.has_duplicates() {
            return Ok(());
        }
        let max = page::max_key(self.ws.page_size());
        if value.len() > max {
            return Err(Error::ValueTooLong { len: value.len(), max });
        }
        pairs::check_size(self.tree(index), value)
    }

    /// Adds a value to those of a key; false when it was there already.
    pub(super) fn put_value(&mut self, index: usize, key: &[u8], value: &[u8]) -> Result<bool> {
        if !self.tree(index).desc.options.has_duplicates() {
            return Err(Error::Incompatible("the table keeps one value under a key"));
        }
        self.check_record(index, key, value)?;
        self.put_any_value(index, key, value)
    }

    /// The same, with integer values of any size: they compare as one number, little-endian.
    pub(super) fn put_any_value(&mut self, index: usize, key: &[u8], value: &[u8]) -> Result<bool> {
        self.check_any_record(index, key, value)?;
        self.change(index)?;
        self.guarded(|txn| {
            let (ws, tree) = txn.parts(index);
            pairs::put_pair(ws, tree, key, value)
        })
    }

    /// Removes one value of a key; false when the key does not have it.
    pub(super) fn delete_value(&mut self, index: usize, key: &[u8], value: &[u8]) -> Result<bool> {
        self.change(index)?;
        if !self.tree(index).desc.options.has_duplicates() {
            return Ok(self.has_pair(index, key, value)? && self.delete(index, key)?);
        }
        let deleted = self.guarded(|txn| {
            let (ws, tree) = txn.parts(index);
            pairs::remove_pair(ws, tree, key, value)
        })?;
        if deleted && !self.cursors.slots.is_empty() {
            self.cursors_after_delete(index, key, Some(value))?;
        }
        Ok(deleted)
    }

    /// The number of values of a key.
    pub(super) fn count(&self, index: usize, key: &[u8]) -> Result<u64> {
        self.check()?;
        count_of_key(&self.ws.view(), self.tree(index), key)
    }

    /// Whether a key has a value.
    pub(super) fn has_pair(&self, index: usize, key: &[u8], value: &[u8]) -> Result<bool> {
        self.check()?;
        has_pair(&self.ws.view(), self.tree(index), key, value)
    }
}
