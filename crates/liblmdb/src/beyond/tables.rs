//! Tables: those that count their records, what else is fixed when they are made, ranges of keys, names.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ops::Bound;

use zubilo::raw::RawRange;

use crate::abi::{MAX_KEY, MDB_dbi, MDB_val, db};
use crate::dbi::{self, Table};
use crate::env::{FIRST_TXN, put_out};
use crate::errors::{Code, Result};
use crate::guard::entry;
use crate::txn::{MDB_txn, Work, live, writable, writes};
use crate::values::{Copied, bytes, give};

/// A flag of a table that counts its records.
const COUNTED: c_uint = 0x10_0000;

/// A pair of what is asked for, and what answers: the engine's transaction of either kind.
macro_rules! ask {
    ($txn:expr, $dbi:expr, $asked:ident, $table:ident => $question:expr) => {{
        let this = live($txn)?;
        this.table($dbi)?;
        let known = this.slots.get($dbi as usize).and_then(|slot| slot.known());
        match (&this.work, known) {
            (Work::Read($asked), Some(Table::Read($table))) => $question?,
            (Work::Write(writer), Some(Table::Write(index))) => {
                // SAFETY: as in `MDB_txn::writer`.
                let ($asked, $table) = (unsafe { &**writer }, *index);
                $question?
            }
            _ => return Err(Code::BAD_TXN),
        }
    }};
}

/// From a key on, and up to another one that is not in the range; null is from the first, to the last.
pub(super) fn range<'k>(from: *const MDB_val, to: *const MDB_val) -> Result<RawRange<'k>> {
    let start = if from.is_null() { Bound::Unbounded } else { Bound::Included(bytes(from)?) };
    let end = if to.is_null() { Bound::Unbounded } else { Bound::Excluded(bytes(to)?) };
    Ok((start, end))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_dbi_open(
    txn: *mut MDB_txn,
    name: *const c_char,
    flags: c_uint,
    alignment: c_uint,
    out: *mut MDB_dbi,
) -> c_int {
    entry(txn, || {
        if flags & !(db::PERSISTENT | db::CREATE | COUNTED) != 0
            || !matches!(alignment, 0 | 1 | 2 | 4 | 8 | 16)
            || name.is_null()
        {
            return Err(Code::EINVAL);
        }
        // SAFETY: by the contract a C string.
        let name = unsafe { CStr::from_ptr(name) };
        let shape = dbi::Shape { counted: flags & COUNTED != 0, alignment: alignment as u8 };
        put_out(out, dbi::open_shaped(live(txn)?, name.to_bytes(), flags & !COUNTED, shape)?)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_dbi_rename(
    txn: *mut MDB_txn,
    from: *const c_char,
    to: *const c_char,
) -> c_int {
    entry(txn, || {
        if from.is_null() || to.is_null() {
            return Err(Code::EINVAL);
        }
        // SAFETY: by the contract C strings.
        let (from, to) = unsafe { (CStr::from_ptr(from), CStr::from_ptr(to)) };
        dbi::rename(writes(txn)?, from.to_bytes(), to.to_bytes())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_nth(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    n: u64,
    key: *mut MDB_val,
    data: *mut MDB_val,
) -> c_int {
    entry(txn, || {
        let found = ask!(txn, dbi, asked, table => asked.raw_nth(table, n));
        let (stored, value) = found.ok_or(Code::NOTFOUND)?;
        give(key, stored);
        give(data, value);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_nth_value(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    key: *const MDB_val,
    n: u64,
    data: *mut MDB_val,
) -> c_int {
    entry(txn, || {
        let key = bytes(key)?;
        let found = ask!(txn, dbi, asked, table => asked.raw_nth_value(table, key, n));
        give(data, found.ok_or(Code::NOTFOUND)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_rank(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    key: *const MDB_val,
    data: *const MDB_val,
    rank: *mut u64,
) -> c_int {
    entry(txn, || {
        let key = bytes(key)?;
        let value = if data.is_null() { None } else { Some(bytes(data)?) };
        put_out(rank, ask!(txn, dbi, asked, table => asked.raw_rank(table, key, value)))
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_range_size(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    from: *const MDB_val,
    to: *const MDB_val,
    size: *mut u64,
) -> c_int {
    entry(txn, || {
        let keys = range(from, to)?;
        put_out(size, ask!(txn, dbi, asked, table => asked.raw_range_len(table, keys)))
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_range_estimate(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    from: *const MDB_val,
    to: *const MDB_val,
    records: *mut u64,
) -> c_int {
    entry(txn, || {
        let keys = range(from, to)?;
        put_out(records, ask!(txn, dbi, asked, table => asked.raw_estimate_len(table, keys)))
    })
}

type OneCut = unsafe extern "C" fn(*mut c_void, *const MDB_val) -> c_int;

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_range_split(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    from: *const MDB_val,
    to: *const MDB_val,
    parts: c_uint,
    cut: Option<OneCut>,
    context: *mut c_void,
) -> c_int {
    entry(txn, || {
        let cut = cut.ok_or(Code::EINVAL)?;
        let (keys, parts) = (range(from, to)?, parts as usize);
        if parts == 0 {
            return Err(Code::EINVAL);
        }
        let cuts = ask!(txn, dbi, asked, table => asked.raw_cuts(table, keys, parts));
        for key in &cuts {
            let key = MDB_val { mv_size: key.len(), mv_data: key.as_ptr().cast_mut().cast() };
            // SAFETY: the program gave function and context for this; the key lives for the call.
            let answer = unsafe { cut(context, &raw const key) };
            if answer != 0 {
                return Err(Code(answer));
            }
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_del_range(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    from: *const MDB_val,
    to: *const MDB_val,
    removed: *mut u64,
) -> c_int {
    entry(txn, || {
        let this = writable(txn, dbi)?;
        let keys = range(from, to)?;
        let gone = this.delete_range(dbi, keys)?;
        if removed.is_null() { Ok(()) } else { put_out(removed, gone) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_replace_value(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    key: *const MDB_val,
    old: *const MDB_val,
    new: *const MDB_val,
) -> c_int {
    entry(txn, || {
        let this = writable(txn, dbi)?;
        let (mut own_key, mut own_old) = (Copied::<MAX_KEY>::new(), Copied::<MAX_KEY>::new());
        let (key, old, new) = (own_key.keep(bytes(key)?), own_old.keep(bytes(old)?), bytes(new)?);
        if key.is_empty() {
            return Err(Code::BAD_VALSIZE);
        }
        crate::cursor::replace_value(this, dbi, key, old, new)
    })
}

/// As in `zubilo.h`.
#[repr(C)]
#[allow(non_camel_case_types)]
pub(super) struct zubilo_table {
    entries: u64,
    depth: u64,
    leaf_pages: u64,
    branch_pages: u64,
    run_pages: u64,
    value_pages: u64,
    modified: u64,
    sequence: u64,
    flags: c_uint,
    alignment: c_uint,
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_stat(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    out: *mut zubilo_table,
) -> c_int {
    entry(txn, || {
        let info = live(txn)?.info(dbi)?;
        let stats = &info.stats;
        put_out(
            out,
            zubilo_table {
                entries: stats.entries,
                depth: u64::from(stats.depth),
                leaf_pages: stats.leaf_pages,
                branch_pages: stats.branch_pages,
                run_pages: stats.run_pages,
                value_pages: stats.value_pages,
                modified: stats.modified.0.saturating_sub(FIRST_TXN),
                // That of the tree of names is a counter of this library.
                sequence: if dbi == crate::abi::MAIN_DBI { 0 } else { info.sequence },
                flags: dbi::flags_of(&info) | if info.counted { COUNTED } else { 0 },
                alignment: c_uint::from(info.alignment),
            },
        )
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn zubilo_txn_dirty(txn: *mut MDB_txn, size: *mut u64) -> c_int {
    entry(txn, || put_out(size, writes(txn)?.writer()?.dirty_bytes()))
}
