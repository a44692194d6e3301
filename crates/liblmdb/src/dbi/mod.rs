//! Tables by handle: which handle stands for which name, who may use it, what a transaction has
//! found behind it.
//!
//! A handle belongs to the transaction that opened it until that commits. Of the handles of an
//! environment a transaction may use those that were there when it began, and its own.
//!
//! The unnamed table is the engine's tree of names, so that a walk shows names beside records, as
//! in LMDB. Only where it is to have an order or duplicates of its own its records lie in a table
//! with an empty name; the counter of the tree of names says so.

mod handles;
mod open;
mod resort;
mod settings;

use std::sync::Arc;

use zubilo::ReadTxn;
use zubilo::raw::{Named, RawTable, TableInfo, TableRef};

pub(crate) use self::handles::{Handle, Handles};
pub(crate) use self::open::{Shape, open_shaped, rename};
use crate::abi::{FREE_DBI, MAIN_DBI, MDB_dbi, MDB_val, db};
use crate::compare;
use crate::data::check_key;
use crate::errors::{Code, Result};
use crate::txn::{MDB_txn, Work};
use crate::values::bytes;

/// Name of the table that holds the records of the unnamed one, where that is not the tree of
/// names. No program can give it: names have at least one byte.
const NAMELESS: &[u8] = b"";
/// The counter that says so.
const IN_NAMELESS: u64 = 1;

/// What a transaction has found behind a handle.
#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "lives on the stack, for one call")]
pub(crate) enum Table {
    Read(RawTable),
    Write(TableRef),
}

/// What changes and moves ask of a table each time.
#[derive(Clone, Copy, Default)]
pub(crate) struct Kind {
    pub(crate) duplicates: bool,
    pub(crate) fixed: bool,
    pub(crate) integer_keys: bool,
    pub(crate) integer_values: bool,
    /// Keys or values are in an order of the program's.
    pub(crate) custom: bool,
}

impl Kind {
    fn of(info: &TableInfo) -> Kind {
        let integer = zubilo::KeyOrder::Integer as u8;
        let custom = zubilo::KeyOrder::Custom as u8;
        Kind {
            duplicates: info.duplicates,
            fixed: info.fixed,
            integer_keys: info.key_order == integer,
            integer_values: info.duplicates && info.value_order == integer,
            custom: info.key_order == custom || (info.duplicates && info.value_order == custom),
        }
    }
}

/// A handle in a transaction.
#[derive(Clone, Default)]
pub(crate) struct Slot {
    handle: Option<Arc<Handle>>,
    /// None until it is looked up, and after it was dropped.
    table: Option<Table>,
    /// The program's comparators and the table's orders differ: to be settled before the first
    /// record comes in.
    unsettled: bool,
    /// Of the table, once it was looked up.
    kind: Kind,
}

impl MDB_txn {
    /// The table behind a handle.
    #[inline]
    pub(crate) fn table(&mut self, dbi: MDB_dbi) -> Result<&Table> {
        let known = self.slots.get(dbi as usize).is_some_and(|slot| slot.table.is_some());
        if !known {
            self.look_up(dbi)?;
        }
        match self.slots.get(dbi as usize) {
            Some(Slot { table: Some(table), .. }) => Ok(table),
            _ => Err(Code::BAD_DBI),
        }
    }

    /// The handle of a table that is ready for use.
    pub(crate) fn handle_of(&mut self, dbi: MDB_dbi) -> Result<&Arc<Handle>> {
        self.table(dbi)?;
        match self.slots.get(dbi as usize) {
            Some(Slot { table: Some(_), handle: Some(handle), .. }) => Ok(handle),
            _ => Err(Code::BAD_DBI),
        }
    }

    /// The engine's number of a table that is to be changed.
    #[inline]
    pub(crate) fn target(&mut self, dbi: MDB_dbi) -> Result<TableRef> {
        match self.table(dbi)? {
            Table::Write(index) => Ok(*index),
            Table::Read(_) => Err(Code::EACCES),
        }
    }

    /// The same, of a table that is to get a record with this key, and its kind.
    #[inline]
    pub(crate) fn target_of_put(&mut self, dbi: MDB_dbi, key: &[u8]) -> Result<(TableRef, Kind)> {
        if let Some(slot) = self.slots.get(dbi as usize)
            && !slot.unsettled
            && let Some(Table::Write(index)) = slot.table
        {
            return Ok((index, slot.kind));
        }
        self.settled(dbi, key)
    }

    #[cold]
    fn settled(&mut self, dbi: MDB_dbi, key: &[u8]) -> Result<(TableRef, Kind)> {
        let mut target = self.target(dbi)?;
        // A record that is refused changes nothing.
        check_key(self.kind(dbi)?, key)?;
        if self.slots.get(dbi as usize).is_some_and(|slot| slot.unsettled) {
            target = self.settle(dbi, target)?;
        }
        Ok((target, self.kind(dbi)?))
    }

    /// The kind of a table.
    #[inline]
    pub(crate) fn kind(&mut self, dbi: MDB_dbi) -> Result<Kind> {
        self.table(dbi)?;
        self.slots.get(dbi as usize).map(|slot| slot.kind).ok_or(Code::BAD_DBI)
    }

    /// For a call with this key and this value, while the result lives: a program's comparisons get
    /// them as they were handed in.
    #[inline]
    pub(crate) fn asked(
        &mut self,
        dbi: MDB_dbi,
        key: *const MDB_val,
        value: *const MDB_val,
    ) -> Result<Option<compare::Asked>> {
        self.table(dbi)?;
        match self.slots.get(dbi as usize) {
            Some(slot) if slot.kind.custom || slot.unsettled => self.asked_by(key, value).map(Some),
            _ => Ok(None),
        }
    }

    #[cold]
    fn asked_by(&mut self, key: *const MDB_val, value: *const MDB_val) -> Result<compare::Asked> {
        let mut both = [key, value];
        if self.is_write() && self.writer_of_put()?.raw_will_spill() {
            // What lies in pages that are about to be written out cannot be looked at later.
            for own in &mut both {
                let at = bytes(*own).map_or(std::ptr::null(), <[u8]>::as_ptr);
                if self.writer_of_put()?.raw_is_dirty(at) {
                    *own = std::ptr::null();
                }
            }
        }
        let [key, value] = both;
        Ok(compare::asked(key, value))
    }

    /// What is known of a table.
    pub(crate) fn info(&mut self, dbi: MDB_dbi) -> Result<TableInfo> {
        match self.table(dbi)? {
            Table::Read(table) => Ok(table.info()),
            Table::Write(index) => {
                let index = *index;
                Ok(self.writer_of_put()?.raw_info(index)?)
            }
        }
    }

    /// Whether this transaction may use a handle, be it that it can do nothing any more.
    #[cold]
    pub(crate) fn sees(&self, dbi: MDB_dbi) -> bool {
        !matches!(self.work, Work::Parked(_)) && self.handle(dbi).is_ok()
    }

    /// The handle, if this transaction may use it.
    fn handle(&self, dbi: MDB_dbi) -> Result<Arc<Handle>> {
        if dbi == FREE_DBI {
            return Err(Code::EINVAL);
        }
        let handles = &self.env()?.opened()?.handles;
        let handle = handles.get(dbi).ok_or(Code::EINVAL)?;
        let own = self.new_handles.contains(&dbi);
        if own || handle.is_seen(self.seen) { Ok(handle) } else { Err(Code::EINVAL) }
    }

    #[cold]
    fn look_up(&mut self, dbi: MDB_dbi) -> Result<()> {
        self.find_behind(dbi)?;
        self.resort(dbi)
    }

    /// The handle of a table that is to be used later.
    fn handle_to_set(&mut self, dbi: MDB_dbi) -> Result<Arc<Handle>> {
        if self.slots.get(dbi as usize).is_none_or(|slot| slot.table.is_none()) {
            self.find_behind(dbi)?;
        }
        self.handle_of(dbi).cloned()
    }

    /// Puts what is behind a handle there.
    fn find_behind(&mut self, dbi: MDB_dbi) -> Result<()> {
        if matches!(self.work, Work::Parked(_)) {
            return Err(Code::EINVAL);
        }
        // A handle that was closed under the transaction is not what is known by its number now.
        let known = self.slots.get(dbi as usize).and_then(|slot| slot.handle.clone());
        let handle = match known {
            Some(handle) if handle.is_closed() => return Err(Code::BAD_DBI),
            Some(handle) => handle,
            None => self.handle(dbi)?,
        };
        let table = match dbi {
            MAIN_DBI => self.find_main()?,
            _ => match self.find(handle.name())? {
                Named::Table(table) => table,
                _ => return Err(Code::BAD_DBI),
            },
        };
        self.remember(dbi, handle, table)
    }

    /// The unnamed table.
    fn find_main(&mut self) -> Result<Table> {
        let counter = match &mut self.work {
            Work::Offered(_) => return Err(Code::BAD_TXN),
            Work::Read(read) | Work::Parked(read) => read.raw_counter(),
            Work::Write(_) => self.writer()?.raw_counter(),
        };
        if counter == IN_NAMELESS
            && let Named::Table(table) = self.find(NAMELESS)?
        {
            return Ok(table);
        }
        match &self.work {
            Work::Offered(_) => Err(Code::BAD_TXN),
            Work::Read(read) | Work::Parked(read) => Ok(Table::Read(read.raw_names())),
            Work::Write(_) => Ok(Table::Write(TableRef::CATALOGUE)),
        }
    }

    /// Puts a table behind a handle, in the order that the program has given for it.
    fn remember(&mut self, dbi: MDB_dbi, handle: Arc<Handle>, mut table: Table) -> Result<()> {
        let own = handle.comparators();
        let (keys, values) = (own.for_keys(&self.busy), own.for_values(&self.busy));
        let info = match &mut table {
            Table::Read(table) => {
                if own.is_any() {
                    table.set_orders(keys, values);
                }
                table.info()
            }
            Table::Write(index) => {
                let writer = self.writer()?;
                if own.is_any() {
                    writer.raw_set_orders(*index, keys, values)?;
                }
                writer.raw_info(*index)?
            }
        };
        let unsettled = handle.order() & !flags_of(&info) != 0
            || own.keys.is_some() != is_custom(info.key_order)
            || (info.duplicates && own.values.is_some() != is_custom(info.value_order));
        let at = dbi as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, Slot::default);
        }
        if let Some(slot) = self.slots.get_mut(at) {
            let kind = Kind::of(&info);
            *slot = Slot { handle: Some(handle), table: Some(table), unsettled, kind };
        }
        Ok(())
    }

    /// Before the first record comes in: the table is made anew in the program's order.
    #[cold]
    fn settle(&mut self, dbi: MDB_dbi, target: TableRef) -> Result<TableRef> {
        let info = self.info(dbi)?;
        let handle = self.handle_of(dbi)?.clone();
        if let Some(slot) = self.slots.get_mut(dbi as usize) {
            slot.unsettled = false;
        }
        if info.stats.entries > 0 {
            return Ok(target);
        }
        let own = handle.comparators();
        let (keys, values) = (own.for_keys(&self.busy), own.for_values(&self.busy));
        let flags = flags_of(&info) | handle.order();
        let options = Shape::of(&info).apply(compare::options(flags, keys, values));
        let writer = self.writer()?;
        let index = if target == TableRef::CATALOGUE {
            writer.raw_set_counter(IN_NAMELESS)?;
            writer.raw_create(NAMELESS, &options)?
        } else {
            writer.raw_set_options(target, &options)?;
            target
        };
        self.remember(dbi, handle, Table::Write(index))?;
        Ok(index)
    }

    /// The handle means nothing any more.
    fn forget_handle(&mut self, dbi: MDB_dbi) {
        if let Some(slot) = self.slots.get_mut(dbi as usize) {
            *slot = Slot::default();
        }
    }

    /// The table behind a handle is to be looked up again.
    fn forget_table(&mut self, dbi: MDB_dbi) {
        if let Some(slot) = self.slots.get_mut(dbi as usize) {
            slot.table = None;
        }
    }
}

impl Slot {
    /// The table, if it was looked up.
    #[inline]
    pub(crate) fn known(&self) -> Option<&Table> {
        self.table.as_ref()
    }
}

/// Whether an order is a function of the program's.
fn is_custom(order: u8) -> bool {
    order == zubilo::KeyOrder::Custom as u8
}

/// The flags of a table, as a program gave them when it was made.
pub(crate) fn flags_of(info: &TableInfo) -> u32 {
    let keys = match info.key_order {
        1 => db::REVERSEKEY,
        2 => db::INTEGERKEY,
        _ => 0,
    };
    if !info.duplicates {
        return keys;
    }
    let values = match info.value_order {
        1 => db::REVERSEDUP,
        2 => db::INTEGERDUP,
        _ => 0,
    };
    keys | db::DUPSORT | values | if info.fixed { db::DUPFIXED } else { 0 }
}

/// The unnamed table as a snapshot shows it.
pub(crate) fn main_table(read: &ReadTxn) -> Result<RawTable> {
    if read.raw_counter() == IN_NAMELESS
        && let Named::Table(table) = read.raw_find(NAMELESS)?
    {
        return Ok(table);
    }
    Ok(read.raw_names())
}
