//! Records by key.

use std::ffi::{c_int, c_uint};

use zubilo::WriteTxn;
use zubilo::raw::{RawCursor, RawRange, TableRef};

use crate::abi::{MAX_DATA, MAX_KEY, MDB_dbi, MDB_val, put};
use crate::beyond::make_room;
use crate::cursor;
use crate::dbi::{Kind, Table};
use crate::errors::{Code, Result};
use crate::guard::entry;
use crate::txn::{MDB_txn, Work, with_tables, writable};
use crate::values::{Copied, bytes, give, val};

/// Values up to this length are copied in the frame.
const SMALL: usize = 2048;

/// No put of a small record takes more pages: paths of two trees, split all along.
const PUT_PAGES: u64 = 128;

/// What a put has to store.
pub(crate) struct Put<'p> {
    pub(crate) dbi: MDB_dbi,
    pub(crate) key: &'p [u8],
    pub(crate) flags: c_uint,
}

/// Whether a table can have this key.
#[inline]
pub(crate) fn check_key(kind: Kind, key: &[u8]) -> Result<()> {
    let odd = kind.integer_keys && !matches!(key.len(), 4 | 8);
    if odd || key.is_empty() || key.len() > MAX_KEY { Err(Code::BAD_VALSIZE) } else { Ok(()) }
}

/// Whether a table with duplicates can have this value.
#[inline]
pub(crate) fn check_value(kind: Kind, value: &[u8]) -> Result<()> {
    let max = if kind.duplicates { MAX_KEY } else { MAX_DATA };
    let none = kind.integer_values && value.is_empty();
    if none || value.len() > max { Err(Code::BAD_VALSIZE) } else { Ok(()) }
}

impl MDB_txn {
    #[inline]
    fn get(&mut self, dbi: MDB_dbi, key: &[u8]) -> Result<Option<&[u8]>> {
        self.table(dbi)?;
        let Some(table) = self.slots.get(dbi as usize).and_then(|slot| slot.known()) else {
            return Err(Code::BAD_DBI);
        };
        match (&self.work, table) {
            (Work::Read(read), Table::Read(table)) => Ok(read.raw_get(table, key)?),
            (Work::Write(writer), Table::Write(index)) => {
                // SAFETY: as in `MDB_txn::writer`.
                let writer: &WriteTxn = unsafe { &**writer };
                Ok(writer.raw_get(*index, key)?)
            }
            _ => Err(Code::BAD_TXN),
        }
    }

    /// Stores a record. Of the value under a key that must be new, if it is not, it gives the bytes.
    pub(crate) fn put(&mut self, put: &Put<'_>, data: *mut MDB_val) -> Result<()> {
        let (target, kind) = self.target_of_put(put.dbi, put.key)?;
        check_key(kind, put.key)?;
        if put.flags & put::RESERVE != 0 {
            return self.reserve(put, target, kind, data);
        }
        let (mut key, mut small, large);
        key = Copied::<MAX_KEY>::new();
        small = Copied::<SMALL>::new();
        let key = key.keep(put.key);
        let value = bytes(data)?;
        check_value(kind, value)?;
        let new = put.flags & (put::NOOVERWRITE | put::APPEND) == put::NOOVERWRITE;
        if new
            && put.flags & put::APPENDDUP != 0
            && let Some(old) = self.get(put.dbi, put.key)?
        {
            give(data, old);
            return Err(Code::KEYEXIST);
        }
        if put.flags & (put::APPEND | put::APPENDDUP) != 0 {
            self.check_order(put, target, kind, value)?;
        }
        let mut held = Copied::<MAX_KEY>::new();
        let value = if kind.integer_values && kind.fixed && !matches!(value.len(), 4 | 8) {
            let value = held.keep(value);
            self.displace(put, value)?;
            value
        } else {
            value
        };
        let moves = value.len() > SMALL && self.may_move(value.len())?;
        let writer = self.writer_of_put()?;
        let value = if moves {
            large = value.to_vec();
            &large
        } else {
            small.keep(value)
        };
        let overwrite = put.flags & put::NOOVERWRITE == 0;
        let stored = if kind.duplicates {
            put_value(writer, target, (key, value), put.flags)
        } else {
            writer.raw_put(target, key, value, overwrite).map_err(Code::from)
        };
        // A table's name is a key that is there.
        let stored =
            if stored == Err(Code::INCOMPATIBLE) && !overwrite { Ok(false) } else { stored };
        match stored {
            Ok(true) => match self.spare.checked_sub(1) {
                Some(left) if value.len() <= SMALL => {
                    self.spare = left;
                    Ok(())
                }
                _ => self.check_room(),
            },
            Ok(false) => {
                if !overwrite && let Some(old) = self.get(put.dbi, key)? {
                    give(data, old);
                }
                Err(Code::KEYEXIST)
            }
            Err(code) => Err(self.failed(code)),
        }
    }

    /// Whether a change can move or overwrite a value of this length: pages are written out before
    /// it, or values as long lie in leaves.
    #[cold]
    fn may_move(&mut self, len: usize) -> Result<bool> {
        let in_leaves = len <= self.env()?.opened()?.store.page_size() / 2;
        Ok(in_leaves || self.writer_of_put()?.raw_will_spill())
    }

    /// Whether two keys are the same in a table's order.
    pub(crate) fn same_key(&mut self, dbi: MDB_dbi, a: &[u8], b: &[u8]) -> Result<bool> {
        let target = self.target(dbi)?;
        Ok(self.writer_of_put()?.raw_is_same_key(target, a, b)?)
    }

    /// Whether two values are the same in a table's order.
    pub(crate) fn same_value(&mut self, dbi: MDB_dbi, a: &[u8], b: &[u8]) -> Result<bool> {
        let target = self.target(dbi)?;
        Ok(self.writer_of_put()?.raw_is_same_value(target, a, b)?)
    }

    /// LMDB looks at the first four bytes only of values that are said to be integers, and are neither
    /// of 4 nor of 8 bytes: what has the same is overwritten. Programs keep small structures so.
    #[cold]
    fn displace(&mut self, put: &Put<'_>, value: &[u8]) -> Result<()> {
        let Some(start) = value.first_chunk::<4>() else { return Ok(()) };
        let mut own = Copied::<MAX_KEY>::new();
        let old = {
            let mut place = RawCursor::default();
            let mut walk = cursor::look(&mut place, self, put.dbi)?;
            let mut found = if walk.seek(put.key)? { walk.current()? } else { None };
            while let Some((_, old)) = found
                && (old.first_chunk::<4>() != Some(start) || old.len() != value.len())
            {
                found = walk.next_value()?;
            }
            match found {
                Some((_, old)) if old != value => val(old),
                _ => return Ok(()),
            }
        };
        let old = own.keep(bytes(&old)?);
        match put.flags & (put::NOOVERWRITE | put::NODUPDATA) {
            0 => self.delete(put.dbi, put.key, Some(old)),
            put::NODUPDATA => Err(Code::KEYEXIST),
            _ => Ok(()),
        }
    }

    /// For `APPEND` and `APPENDDUP`: the record must come after all others.
    #[cold]
    fn check_order(
        &mut self,
        put: &Put<'_>,
        target: TableRef,
        kind: Kind,
        value: &[u8],
    ) -> Result<()> {
        let writer = self.writer_of_put()?;
        let append = put.flags & put::APPEND != 0;
        if append && !writer.raw_is_behind(target, put.key)? {
            return Err(Code::KEYEXIST);
        }
        let append_value = kind.duplicates && put.flags & put::APPENDDUP != 0;
        if append_value && !writer.raw_is_value_behind(target, put.key, value)? {
            return Err(Code::KEYEXIST);
        }
        Ok(())
    }

    /// Room for a value that the program fills. Where one of the same length was it has its bytes:
    /// programs change them in place.
    fn reserve(
        &mut self,
        put: &Put<'_>,
        target: TableRef,
        kind: Kind,
        data: *mut MDB_val,
    ) -> Result<()> {
        if data.is_null() {
            return Err(Code::EINVAL);
        }
        // SAFETY: by the contract it points to a value.
        let len = unsafe { (*data).mv_size };
        if kind.duplicates {
            return Err(Code::INCOMPATIBLE);
        }
        if len > MAX_DATA {
            return Err(Code::BAD_VALSIZE);
        }
        let mut key = Copied::<MAX_KEY>::new();
        let key = key.keep(put.key);
        self.check_order(put, target, kind, &[])?;
        if put.flags & put::NOOVERWRITE != 0
            && let Some(old) = self.get(put.dbi, key)?
        {
            give(data, old);
            return Err(Code::KEYEXIST);
        }
        let old = self.writer()?.raw_get_to_rewrite(target, key)?;
        let old = old.filter(|old| old.len() == len).map(<[u8]>::to_vec);
        self.check_room_for(len as i64)?;
        match self.writer()?.raw_reserve(target, key, len) {
            Ok(room) => {
                if let Some(old) = old {
                    room.copy_from_slice(&old);
                }
                give(data, room);
            }
            Err(error) => return Err(self.failed(error.into())),
        }
        self.check_room()
    }

    /// What has been changed must fit the map, though it is written at the commit only.
    #[cold]
    fn check_room(&mut self) -> Result<()> {
        self.check_room_for(0)?;
        let room = self.writer()?.raw_room().max(0) as u64;
        let page = self.env()?.opened()?.store.page_size() as u64;
        self.spare = (room / (PUT_PAGES * page)).min(u32::MAX.into()) as u32;
        Ok(())
    }

    /// The same, with so many bytes more.
    fn check_room_for(&mut self, more: i64) -> Result<()> {
        if self.writer()?.raw_room() < more && !make_room(self, more)? {
            return Err(self.failed(Code::MAP_FULL));
        }
        Ok(())
    }

    /// Removes the records in a range of keys; gives their number.
    pub(crate) fn delete_range(&mut self, dbi: MDB_dbi, keys: RawRange<'_>) -> Result<u64> {
        let target = self.target(dbi)?;
        let writer = self.writer()?;
        writer.raw_leave(target);
        let removed = writer.raw_delete_range(target, keys);
        removed.map_err(|error| self.failed(error.into()))
    }

    /// Removes a key, or one of its values.
    pub(crate) fn delete(&mut self, dbi: MDB_dbi, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let (target, kind) = (self.target(dbi)?, self.kind(dbi)?);
        if kind.custom {
            return self.delete_found(dbi, key, value.filter(|_| kind.duplicates));
        }
        let (mut own_key, mut own_value) = (Copied::<MAX_KEY>::new(), Copied::<MAX_KEY>::new());
        let (key, value) = (own_key.keep(key), value.map(|value| own_value.keep(value)));
        let writer = self.writer()?;
        let removed = match value {
            Some(value) if kind.duplicates => writer.raw_delete_value(target, key, value),
            _ => writer.raw_delete(target, key),
        };
        match removed {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.no_such(dbi, key, value.filter(|_| kind.duplicates))?),
            Err(error) => {
                // LMDB ends the transaction where somebody deletes the record of a table.
                let code = Code::from(error);
                self.dead |= code == Code::INCOMPATIBLE;
                Err(self.failed(code))
            }
        }
    }
}

impl MDB_txn {
    /// Why a value was not removed: among several LMDB does not look for one without bytes.
    #[cold]
    fn no_such(&mut self, dbi: MDB_dbi, key: &[u8], value: Option<&[u8]>) -> Result<Code> {
        if value.is_some_and(<[u8]>::is_empty) {
            let mut place = RawCursor::default();
            let mut walk = cursor::look(&mut place, self, dbi)?;
            if walk.seek(key)? && walk.count()? > 1 {
                return Ok(Code::BAD_VALSIZE);
            }
        }
        Ok(Code::NOTFOUND)
    }

    /// As `delete`, in a program's order.
    #[cold]
    fn delete_found(&mut self, dbi: MDB_dbi, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let mut place = RawCursor::default();
        let mut walk = cursor::look(&mut place, self, dbi)?;
        let found = match value {
            Some(value) => walk.seek_pair(key, value, true)?.is_some(),
            None => walk.seek(key)?,
        };
        match found {
            true => self.delete_under(dbi, place, value.is_none()),
            false => Err(self.no_such(dbi, key, value)?),
        }
    }

    /// Removes what is under a cursor, or with `all` the key with its values, in a table in a program's
    /// order: no comparison gets to see what only the store has.
    pub(crate) fn delete_under(&mut self, dbi: MDB_dbi, walk: RawCursor, all: bool) -> Result<()> {
        let target = self.target(dbi)?;
        match self.writer()?.raw_remove(walk, target, all) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Code::NOTFOUND),
            Err(error) => Err(self.failed(error.into())),
        }
    }
}

/// Adds a value to those of a key; false where the flags say that it, or the key, must be new.
fn put_value(
    writer: &mut WriteTxn,
    target: TableRef,
    (key, value): (&[u8], &[u8]),
    flags: c_uint,
) -> Result<bool> {
    if flags & put::NOOVERWRITE != 0 && writer.raw_get(target, key)?.is_some() {
        writer.raw_park(target)?;
        return Ok(false);
    }
    let new = writer.raw_put_value(target, key, value).map_err(|error| match error {
        // The only thing that can be wrong with a value that was looked at before: its size.
        zubilo::Error::Invalid(_) => Code::BAD_VALSIZE,
        error => error.into(),
    })?;
    Ok(new || flags & put::NODUPDATA == 0)
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_get(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    key: *mut MDB_val,
    data: *mut MDB_val,
) -> c_int {
    entry(txn, || {
        let own = key;
        let key = bytes(key)?;
        if data.is_null() {
            return Err(Code::EINVAL);
        }
        let txn = with_tables(txn, dbi)?;
        let _own = txn.asked(dbi, own, std::ptr::null())?;
        if key.is_empty() {
            return Err(Code::BAD_VALSIZE);
        }
        match txn.get(dbi, key)? {
            Some(value) => {
                give(data, value);
                Ok(())
            }
            None => Err(Code::NOTFOUND),
        }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_put(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    key: *mut MDB_val,
    data: *mut MDB_val,
    flags: c_uint,
) -> c_int {
    const KNOWN: c_uint =
        put::NOOVERWRITE | put::NODUPDATA | put::RESERVE | put::APPEND | put::APPENDDUP;
    entry(txn, || {
        let own = key;
        let key = bytes(key)?;
        if data.is_null() || flags & !KNOWN != 0 {
            return Err(Code::EINVAL);
        }
        let txn = writable(txn, dbi)?;
        let _own = txn.asked(dbi, own, data)?;
        txn.put(&Put { dbi, key, flags }, data)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_del(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    key: *mut MDB_val,
    data: *mut MDB_val,
) -> c_int {
    entry(txn, || {
        let own = key;
        let key = bytes(key)?;
        let value = if data.is_null() { None } else { Some(bytes(data)?) };
        let txn = writable(txn, dbi)?;
        let _own = txn.asked(dbi, own, data)?;
        if key.is_empty() {
            return Err(Code::BAD_VALSIZE);
        }
        txn.delete(dbi, key, value)
    })
}
