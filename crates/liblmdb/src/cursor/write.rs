//! Changes at cursors.

use std::ffi::{c_int, c_uint};

use crate::abi::{MAX_KEY, MDB_dbi, MDB_val, put};
use crate::data::{Put, check_value};
use crate::errors::{Code, Result};
use crate::guard::entry;
use crate::txn::{MDB_txn, txn_of, writes};
use crate::values::{Copied, Found, bytes, val};

use zubilo::raw::{RawCursor, RawNote};

use super::{MDB_cursor, cursor_of, look};

impl MDB_cursor {
    fn writer<'t>(&self) -> Result<&'t mut MDB_txn> {
        if self.txn.is_null() {
            return Err(Code::BAD_TXN);
        }
        writes(MDB_txn::innermost(self.txn))
    }

    fn put(
        &mut self,
        txn: &mut MDB_txn,
        key: &[u8],
        data: *mut MDB_val,
        flags: c_uint,
    ) -> Result<()> {
        let (mut own_key, mut own_value) = (Copied::<MAX_KEY>::new(), Copied::<MAX_KEY>::new());
        let key = own_key.keep(key);
        // Read before the program's value is replaced by what is stored.
        let value = match flags & put::RESERVE {
            0 => own_value.keep(bytes(data)?),
            _ => &[],
        };
        let done = txn.put(&Put { dbi: self.dbi, key, flags }, data);
        let kind = txn.kind(self.dbi)?;
        let place = self.place(txn)?;
        place.set_note(RawNote::Nothing);
        match done {
            Ok(()) if kind.custom => self.place_by_order(txn, key, value)?,
            Ok(()) => place.place_on(key, kind.duplicates.then_some(value)),
            Err(Code::KEYEXIST) => self.place_on_other(txn, key, value, flags)?,
            Err(_) => {}
        }
        done
    }

    /// On a pair that was just stored, in a program's order: found at once, while its comparisons can
    /// have what it has handed in.
    #[cold]
    fn place_by_order(&mut self, txn: &mut MDB_txn, key: &[u8], value: &[u8]) -> Result<()> {
        self.place(txn)?.leave();
        let duplicates = txn.kind(self.dbi)?.duplicates;
        let mut walk = self.walk(txn)?;
        match duplicates {
            true => walk.seek_pair(key, value, true).map(drop)?,
            false => walk.seek(key).map(drop)?,
        }
        Ok(())
    }

    /// On what kept a pair from being stored.
    #[cold]
    fn place_on_other(
        &mut self,
        txn: &mut MDB_txn,
        key: &[u8],
        value: &[u8],
        flags: c_uint,
    ) -> Result<()> {
        let duplicates = txn.kind(self.dbi)?.duplicates;
        let mut walk = self.walk(txn)?;
        if flags & put::APPEND != 0 {
            // The last record of all.
            walk.last()?;
            return Ok(());
        }
        walk.seek(key)?;
        // Of several the first, if the key had to be new.
        if duplicates && flags & put::NOOVERWRITE == 0 {
            match flags & put::APPENDDUP {
                0 => walk.seek_pair(key, value, true)?,
                _ => walk.last_value()?,
            };
        }
        Ok(())
    }

    /// Replaces the value that it stands on; the key is where the cursor is, whatever is `given`.
    fn put_current(
        &mut self,
        txn: &mut MDB_txn,
        given: &[u8],
        data: *mut MDB_val,
        flags: c_uint,
    ) -> Result<()> {
        let Some(found) = self.valued(txn)?.current()?.map(Found::new) else {
            return Err(Code::NOTFOUND);
        };
        let (stored, old) = (bytes(&found.key)?, bytes(&found.value)?);
        let (mut own_stored, mut own_given) = (Copied::<MAX_KEY>::new(), Copied::<MAX_KEY>::new());
        let (stored, given) = (own_stored.keep(stored), own_given.keep(given));
        let kind = txn.kind(self.dbi)?;
        // Comparisons of the program's are to see what it has handed in.
        let key = match kind.custom && txn.same_key(self.dbi, given, stored)? {
            true => given,
            false => stored,
        };
        let flags = flags & put::RESERVE;
        if !kind.duplicates {
            return self.put(txn, key, data, flags);
        }
        let (mut own_value, mut own_old) = (Copied::<MAX_KEY>::new(), Copied::<MAX_KEY>::new());
        let value = bytes(data)?;
        check_value(kind, value)?;
        let (value, old) = (own_value.keep(value), own_old.keep(old));
        let place = self.walk(txn)?.another()?;
        swap(txn, &Put { dbi: self.dbi, key, flags }, place, (stored, old), value)?;
        match kind.custom {
            true => self.place_by_order(txn, key, value)?,
            false => self.place(txn)?.place_on(key, Some(value)),
        }
        Ok(())
    }

    /// Whether it can store many values at once, which LMDB looks at before the transaction.
    fn takes_many(&self) -> Result<()> {
        if self.txn.is_null() {
            return Err(Code::BAD_TXN);
        }
        let kind = txn_of(MDB_txn::innermost(self.txn))?.kind(self.dbi);
        if kind.is_ok_and(|kind| !kind.fixed) { Err(Code::INCOMPATIBLE) } else { Ok(()) }
    }

    /// Stores many values of one size under a key; returns how many it did.
    fn put_multiple(
        &mut self,
        txn: &mut MDB_txn,
        key: &[u8],
        data: *mut MDB_val,
        (flags, wanted): (c_uint, usize),
    ) -> Result<()> {
        // SAFETY: by the contract there are two: where the first item is, and how many there are.
        let (first, count) = unsafe { (*data, &mut (*data.add(1)).mv_size) };
        let total = first.mv_size.checked_mul(wanted).ok_or(Code::BAD_VALSIZE)?;
        // Copied, for they may lie where the first item moves them.
        let all = bytes(&MDB_val { mv_size: total, ..first })?.to_vec();
        if first.mv_size == 0 || wanted == 0 {
            return Err(Code::BAD_VALSIZE);
        }
        let mut flags = flags & !put::MULTIPLE;
        for (i, item) in all.chunks_exact(first.mv_size).enumerate() {
            // The program finds there which item was the last, or which one failed.
            let at = first.mv_data.wrapping_byte_add(i * first.mv_size);
            // SAFETY: as above.
            unsafe { (*data).mv_data = at };
            let mut item = val(item);
            let own = item.mv_data;
            let done = self.put(txn, key, &mut item, flags);
            if item.mv_data != own {
                // What is stored under a key that must be new.
                // SAFETY: as above.
                unsafe { data.write(item) };
            }
            done?;
            *count += 1;
            // What they demand of the key was so before the first item.
            flags &= !(put::NOOVERWRITE | put::APPEND);
        }
        Ok(())
    }

    fn delete(&mut self, txn: &mut MDB_txn, all: bool) -> Result<()> {
        if !all {
            self.valued(txn)?;
        }
        self.place(txn)?.set_note(RawNote::Nothing);
        if txn.kind(self.dbi)?.custom {
            let mut walk = self.placed(txn)?;
            let there = if all { walk.key()?.is_some() } else { walk.under()?.is_some() };
            let place = walk.another()?;
            return match there {
                true => txn.delete_under(self.dbi, place, all),
                false => Err(Code::NOTFOUND),
            };
        }
        let mut walk = self.placed(txn)?;
        let (mut own_key, mut own_value) = (Copied::<MAX_KEY>::new(), Copied::<MAX_KEY>::new());
        let (key, value) = if all {
            (val(walk.key()?.ok_or(Code::NOTFOUND)?), None)
        } else {
            let found = Found::new(walk.under()?.ok_or(Code::NOTFOUND)?);
            (found.key, Some(found.value))
        };
        let key = own_key.keep(bytes(&key)?);
        let value = match &value {
            Some(value) => Some(own_value.keep(bytes(value)?)),
            None => None,
        };
        txn.delete(self.dbi, key, value)
    }
}

/// Puts a value in the place of another one of the same key, where a cursor stands. Cursors follow.
fn swap(
    txn: &mut MDB_txn,
    put: &Put<'_>,
    place: RawCursor,
    (stored, old): (&[u8], &[u8]),
    value: &[u8],
) -> Result<()> {
    if value == old {
        return Ok(());
    }
    let target = txn.target(put.dbi)?;
    let standing = txn.writer_of_put()?.raw_standing_on(target, stored, old)?;
    let mut again = val(value);
    // The new one first: a table that becomes empty would displace its cursors.
    let same = txn.same_value(put.dbi, value, old)?;
    if !same {
        txn.put(put, &mut again)?;
    }
    match txn.kind(put.dbi)?.custom {
        true => txn.delete_under(put.dbi, place, false)?,
        false => txn.delete(put.dbi, put.key, Some(old))?,
    }
    if same {
        txn.put(put, &mut again)?;
    }
    txn.writer_of_put()?.raw_stand_again(standing, value);
    Ok(())
}

/// Puts `new` in the place of the value `old` of a key, which must be there.
pub(crate) fn replace_value(
    txn: &mut MDB_txn,
    dbi: MDB_dbi,
    key: &[u8],
    old: &[u8],
    new: &[u8],
) -> Result<()> {
    let kind = txn.kind(dbi)?;
    check_value(kind, new)?;
    let mut place = RawCursor::default();
    let mut walk = look(&mut place, txn, dbi)?;
    let put = Put { dbi, key, flags: 0 };
    if kind.duplicates {
        // As they are stored: in a program's order others may equal them.
        let found = walk.seek_pair(key, old, true)?.ok_or(Code::NOTFOUND)?;
        let Found { key: stored, value: old } = Found::new(found);
        let (mut own_key, mut own_old) = (Copied::<MAX_KEY>::new(), Copied::<MAX_KEY>::new());
        let (stored, old) = (own_key.keep(bytes(&stored)?), own_old.keep(bytes(&old)?));
        let place = walk.another()?;
        let mut own = Copied::<MAX_KEY>::new();
        return swap(txn, &put, place, (stored, old), own.keep(new));
    }
    let found = if walk.seek(key)? { walk.current()? } else { None };
    if found.is_none_or(|(_, value)| value != old) {
        return Err(Code::NOTFOUND);
    }
    txn.put(&put, &mut val(new))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_cursor_put(
    cursor: *mut MDB_cursor,
    key: *mut MDB_val,
    data: *mut MDB_val,
    flags: c_uint,
) -> c_int {
    entry(cursor, || {
        let cursor = cursor_of(cursor)?;
        if data.is_null() || cursor.free.is_some() {
            return Err(Code::EINVAL);
        }
        let own = key;
        let key = bytes(key)?;
        let mut wanted = 0;
        if flags & put::MULTIPLE != 0 {
            // SAFETY: by the contract there are two values; the second one gets how many were stored.
            wanted = unsafe { std::mem::take(&mut (*data.add(1)).mv_size) };
            cursor.takes_many()?;
        }
        let txn = cursor.writer()?;
        let _own = txn.asked(cursor.dbi, own, data)?;
        // A demand that the key be new, and several items, are for the key that was handed in.
        let by_key = put::NOOVERWRITE | put::APPEND | put::MULTIPLE;
        if flags & put::CURRENT != 0 && flags & by_key == 0 {
            // The key is where the cursor is, but must be one.
            return match key.len() {
                1..=MAX_KEY => cursor.put_current(txn, key, data, flags),
                _ => Err(Code::BAD_VALSIZE),
            };
        }
        match flags & put::MULTIPLE {
            0 => cursor.put(txn, key, data, flags),
            _ => cursor.put_multiple(txn, key, data, (flags, wanted)),
        }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_cursor_del(cursor: *mut MDB_cursor, flags: c_uint) -> c_int {
    entry(cursor, || {
        let cursor = cursor_of(cursor)?;
        let txn = cursor.writer()?;
        cursor.delete(txn, flags & put::NODUPDATA != 0)
    })
}
