//! Records: with the number of their values, replaced in exchange for the old value, many at once.

use std::ffi::{c_int, c_uint};

use crate::abi::{MAX_KEY, MDB_dbi, MDB_val, put};
use crate::cursor;
use crate::data::Put;
use crate::dbi::Table;
use crate::errors::{Code, Result};
use crate::guard::entry;
use crate::txn::{MDB_txn, Work, with_tables, writable};
use crate::values::{Copied, Found, bytes, give};

use zubilo::raw::RawCursor;

use super::{MANY, answer, given};

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_get_ex(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    key: *mut MDB_val,
    data: *mut MDB_val,
    count: *mut usize,
) -> c_int {
    entry(txn, || {
        let sought = bytes(key)?;
        let this = with_tables(txn, dbi)?;
        if data.is_null() {
            return Err(Code::EINVAL);
        }
        if sought.is_empty() {
            return Err(Code::BAD_VALSIZE);
        }
        let _own = this.asked(dbi, key, std::ptr::null())?;
        let mut place = RawCursor::default();
        let mut walk = cursor::look(&mut place, this, dbi)?;
        let found = if walk.seek(sought)? { walk.current()? } else { None };
        let values = if found.is_some() { walk.count()? } else { 0 };
        if !count.is_null() {
            crate::env::put_out(count, values as usize)?;
        }
        let (stored, value) = found.ok_or(Code::NOTFOUND)?;
        give(key, stored);
        give(data, value);
        Ok(())
    })
}

/// What `mdbx_replace` found to do.
fn replace(
    txn: &mut MDB_txn,
    dbi: MDB_dbi,
    key: &[u8],
    new: *mut MDB_val,
    old: *mut MDB_val,
    flags: c_uint,
) -> Result<bool> {
    if flags & !(put::NOOVERWRITE | put::CURRENT | put::APPEND) != 0 {
        return Err(Code::EINVAL);
    }
    let mut place = RawCursor::default();
    let mut walk = cursor::look(&mut place, txn, dbi)?;
    let found = if walk.seek(key)? { walk.current()? } else { None };
    if found.is_some() && walk.count()? > 1 {
        return Err(MANY);
    }
    let room = *given(old)?;
    match found {
        None if flags & put::CURRENT != 0 || new.is_null() => return Err(Code::NOTFOUND),
        None => give_nothing(old),
        Some((_, value)) if flags & put::NOOVERWRITE != 0 => {
            give(old, value);
            return Err(Code::KEYEXIST);
        }
        Some((_, value)) => {
            if room.mv_size < value.len() || room.mv_data.is_null() {
                // SAFETY: looked at above.
                unsafe { (*old).mv_size = value.len() };
                return Ok(false);
            }
            // SAFETY: by the contract there is room for as many bytes as the caller has said.
            unsafe {
                std::ptr::copy_nonoverlapping(value.as_ptr(), room.mv_data.cast(), value.len());
                (*old).mv_size = value.len();
            }
        }
    }
    let found = found.map(Found::new);
    match found {
        _ if new.is_null() => txn.delete(dbi, key, None)?,
        Some(_) if flags & put::APPEND != 0 => return Err(Code::KEYEXIST),
        Some(Found { value, .. }) if txn.kind(dbi)?.duplicates => {
            let (mut own_key, mut own_value) = (Copied::<MAX_KEY>::new(), Copied::<MAX_KEY>::new());
            let (key, value) = (own_key.keep(key), own_value.keep(bytes(&value)?));
            cursor::replace_value(txn, dbi, key, value, bytes(new)?)?;
        }
        _ => txn.put(&Put { dbi, key, flags: flags & put::APPEND }, new)?,
    }
    Ok(true)
}

fn give_nothing(to: *mut MDB_val) {
    let nothing = MDB_val::NOTHING;
    // SAFETY: by the contract it points to a value; the caller has looked that it is not null.
    unsafe { to.write(nothing) };
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_replace(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    key: *const MDB_val,
    new: *mut MDB_val,
    old: *mut MDB_val,
    flags: c_uint,
) -> c_int {
    let mut too_small = false;
    let code = entry(txn, || {
        let key = bytes(key)?;
        if key.is_empty() {
            return Err(Code::BAD_VALSIZE);
        }
        too_small = !replace(writable(txn, dbi)?, dbi, key, new, old, flags)?;
        Ok(())
    });
    answer(code, too_small)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_get_many(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    keys: *const MDB_val,
    values: *mut MDB_val,
    count: usize,
) -> c_int {
    entry(txn, || {
        let this = with_tables(txn, dbi)?;
        if keys.is_null() || values.is_null() {
            return Err(Code::EINVAL);
        }
        this.table(dbi)?;
        // SAFETY: by the contract there are so many keys.
        let keys = unsafe { std::slice::from_raw_parts(keys, count) };
        let sought: Result<Vec<&[u8]>> = keys.iter().map(|key| bytes(key)).collect();
        let sought = sought?;
        let mut any = false;
        let mut found = |i: usize, value: Option<&[u8]>| {
            // SAFETY: by the contract there are as many values; `i` is the index of a key.
            let to = unsafe { values.add(i) };
            match value {
                Some(value) => give(to, value),
                None => give_nothing(to),
            }
            any |= value.is_some();
        };
        let table = this.slots.get(dbi as usize).and_then(|slot| slot.known());
        match (&this.work, table) {
            (Work::Read(read), Some(Table::Read(table))) => {
                read.raw_get_many(table, &sought, found)?;
            }
            (Work::Write(_), Some(Table::Write(index))) => {
                let index = *index;
                let writer = this.writer()?;
                for (i, key) in sought.iter().enumerate() {
                    found(i, writer.raw_get(index, key)?);
                }
            }
            _ => return Err(Code::BAD_TXN),
        }
        if any || count == 0 { Ok(()) } else { Err(Code::NOTFOUND) }
    })
}
