//! Tables whose own order does not show in their records.
//!
//! LMDB does not store that a program compares by functions of its own. A table that comes from a data file
//! of LMDB's, with records that happen to be in the order of its flags, gets that order. When the program
//! gives its functions the first transaction that writes, and uses the table, makes it anew in their order.
//! Since its records are in both orders, none moves: only what is stored later finds its place by the functions.
//!
//! Nothing changes where the records are not in the order of the functions, or where the map has no room
//! for the table twice. Then the functions are not used, and it is not tried again in this process until
//! the program gives others.

use zubilo::Level;
use zubilo::raw::{Named, RawCompare, TableInfo, TableRef};

use crate::abi::MDB_dbi;
use crate::beyond::show_anyway;
use crate::compare::{self, Functions};
use crate::cursor::Walker;
use crate::errors::Result;
use crate::txn::{MDB_txn, Work};

use super::{Shape, Slot, Table, flags_of, is_custom};

/// Whether a table is to be made anew for these functions.
fn is_other(info: &TableInfo, own: Functions) -> bool {
    let (keys, values) = (is_custom(info.key_order), is_custom(info.value_order));
    // One that has a function already, which the program has not given, cannot be read in its order.
    let unknown = keys && own.keys.is_none() || info.duplicates && values && own.values.is_none();
    let new = own.keys.is_some() && !keys || info.duplicates && own.values.is_some() && !values;
    info.stats.entries > 0 && new && !unknown
}

impl MDB_txn {
    /// Brings a table that was just looked up into the order that the program has given for it.
    pub(super) fn resort(&mut self, dbi: MDB_dbi) -> Result<()> {
        let Some(Slot {
            unsettled: true, handle: Some(handle), table: Some(Table::Write(at)), ..
        }) = self.slots.get(dbi as usize)
        else {
            return Ok(());
        };
        let (handle, target) = (handle.clone(), *at);
        let (info, own) = (self.writer_of_put()?.raw_info(target)?, handle.comparators());
        // Names of tables are found in byte order.
        if target == TableRef::CATALOGUE || handle.is_refused() || !is_other(&info, own) {
            return Ok(());
        }
        match self.make_anew(handle.name(), target, &info, own)? {
            Some(table) => self.remember(dbi, handle, table),
            None => {
                handle.refuse();
                Ok(())
            }
        }
    }

    /// All or nothing; none if it cannot be done.
    fn make_anew(
        &mut self,
        name: &[u8],
        target: TableRef,
        info: &TableInfo,
        own: Functions,
    ) -> Result<Option<Table>> {
        let stats = &info.stats;
        let pages = stats.branch_pages + stats.leaf_pages + stats.run_pages;
        let page = self.env()?.opened()?.store.page_size() as u64;
        // Without the savings of byte order they may take more.
        let room = i64::try_from((pages + pages / 4 + 16) * page).unwrap_or(i64::MAX);
        let report = |what| {
            let name = name.escape_ascii();
            show_anyway(Level::Warn, format_args!("the table {name} keeps its order: {what}"));
        };
        if self.writer()?.raw_room() < room {
            report("the map has no room for it twice; the program's comparison is not used");
            return Ok(None);
        }
        self.writer()?.raw_begin_nested()?;
        let copied = self.copy_in_order(name, target, info, own);
        if matches!(copied, Ok(true)) {
            self.writer()?.raw_commit_nested()?;
            let Work::Write(_) = self.work else { return Ok(None) };
            return match self.find(name)? {
                Named::Table(table) => Ok(Some(table)),
                _ => Ok(None),
            };
        }
        self.writer()?.raw_abort_nested();
        if let Err(code) = copied {
            report(&format!("it could not be made anew ({})", code.0));
        }
        Ok(None)
    }

    /// Copies a table's records, and puts the copy in its place; false if they are not in order.
    fn copy_in_order(
        &mut self,
        name: &[u8],
        target: TableRef,
        info: &TableInfo,
        own: Functions,
    ) -> Result<bool> {
        let (keys, values) = (own.for_keys(&self.busy), own.for_values(&self.busy));
        let options = compare::options(flags_of(info), keys.clone(), values.clone());
        let options = Shape::of(info).apply(options);
        let mut spare = b"\0anew".to_vec();
        while !matches!(self.find(&spare)?, Named::Nothing) {
            spare.push(b'+');
        }
        let to = self.writer()?.raw_create(&spare, &options)?;
        let mut walker = Walker::new(self, target)?;
        let mut last: Option<(Vec<u8>, Vec<u8>)> = None;
        let done = loop {
            let Some((key, value)) = walker.next(self)? else { break true };
            if let Some((before, old)) = &last
                && !comes_behind((&key, &value), (before, old), (&keys, &values))
            {
                break false;
            }
            let writer = self.writer()?;
            let stored = match info.duplicates {
                true => writer.raw_put_value(to, &key, &value)?,
                false => writer.raw_put(to, &key, &value, false)?,
            };
            if !stored {
                break false;
            }
            last = Some((key, value));
        };
        walker.end(self)?;
        if done {
            let writer = self.writer()?;
            writer.raw_drop(name)?;
            writer.rename_table(&spare, name)?;
        }
        Ok(done)
    }
}

/// Whether a record is behind the one before it. Of keys and values without a function it is so in the order
/// that the table has.
fn comes_behind(
    (key, value): (&[u8], &[u8]),
    (before, old): (&[u8], &[u8]),
    (keys, values): (&Option<RawCompare>, &Option<RawCompare>),
) -> bool {
    if key == before {
        return values.as_ref().is_none_or(|values| values(value, old).is_gt());
    }
    keys.as_ref().is_none_or(|keys| keys(key, before).is_gt())
}
