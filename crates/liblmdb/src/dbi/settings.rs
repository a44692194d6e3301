//! What can be set and asked of a table.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{FREE_DBI, MDB_cmp_func, MDB_dbi, MDB_rel_func, MDB_stat, MDB_val};
use crate::compare::{Functions, asked, builtin, key_order, value_order};
use crate::env::{put_out, stat_of};
use crate::errors::{Code, Result};
use crate::guard::{entry, entry_or};
use crate::txn::{MDB_txn, live, looks, with_tables};
use crate::values::bytes;

use super::flags_of;

fn compare_by(txn: *mut MDB_txn, dbi: MDB_dbi, change: impl FnOnce(&mut Functions)) -> Result<()> {
    let txn = looks(txn, dbi)?;
    let handle = txn.handle_to_set(dbi)?;
    handle.compare_by(change);
    txn.forget_table(dbi);
    Ok(())
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_set_compare(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    function: Option<MDB_cmp_func>,
) -> c_int {
    entry(txn, || compare_by(txn, dbi, |own| own.keys = function))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_set_dupsort(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    function: Option<MDB_cmp_func>,
) -> c_int {
    entry(txn, || compare_by(txn, dbi, |own| own.values = function))
}

/// LMDB has never called such a function.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_set_relfunc(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    _function: Option<MDB_rel_func>,
) -> c_int {
    entry(txn, || looks(txn, dbi)?.handle_of(dbi).map(drop))
}

/// Nor does anything read this.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_set_relctx(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    _context: *mut c_void,
) -> c_int {
    entry(txn, || looks(txn, dbi)?.handle_of(dbi).map(drop))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_dbi_flags(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    flags: *mut c_uint,
) -> c_int {
    entry(txn, || {
        if flags.is_null() {
            return Err(Code::EINVAL);
        }
        let txn = looks(txn, dbi)?;
        let info = txn.info(dbi)?;
        let empty = info.stats.entries == 0;
        let order = if empty { txn.handle_of(dbi)?.order() } else { 0 };
        put_out(flags, flags_of(&info) | order)
    })
}

/// Free pages as if they were a table: one record holds them all.
fn free_stat(txn: &MDB_txn) -> Result<MDB_stat> {
    let store = &txn.env()?.newest()?.store;
    let used = usize::from(!store.raw_free_runs()?.is_empty());
    Ok(MDB_stat {
        ms_psize: store.page_size() as c_uint,
        ms_depth: used as c_uint,
        ms_leaf_pages: used,
        ms_entries: used,
        ..MDB_stat::default()
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_stat(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    stat: *mut MDB_stat,
) -> c_int {
    entry(txn, || {
        if stat.is_null() {
            return Err(Code::EINVAL);
        }
        if dbi == FREE_DBI {
            return put_out(stat, free_stat(live(txn)?)?);
        }
        let txn = with_tables(txn, dbi)?;
        let page_size = txn.env()?.opened()?.store.page_size();
        put_out(stat, stat_of(&txn.info(dbi)?, page_size))
    })
}

/// How a table orders two keys, or two values of a key.
fn compare(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    (a, b): (*const MDB_val, *const MDB_val),
    of_values: bool,
) -> Result<c_int> {
    // LMDB compares in transactions that have failed, too.
    let txn = looks(txn, dbi)?;
    let flags = flags_of(&txn.info(dbi)?);
    let functions = txn.handle_of(dbi)?.comparators();
    let (own, order) = match of_values {
        true => (functions.for_values(&txn.busy), value_order(flags)),
        false => (functions.for_keys(&txn.busy), key_order(flags)),
    };
    let _own = asked(a, a);
    let (a, b) = (bytes(a)?, bytes(b)?);
    Ok(own.map_or_else(|| builtin(order, a, b), |own| own(a, b)) as c_int)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_cmp(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    a: *const MDB_val,
    b: *const MDB_val,
) -> c_int {
    entry_or(txn, 0, || compare(txn, dbi, (a, b), false).unwrap_or(Code::EINVAL.0))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_dcmp(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    a: *const MDB_val,
    b: *const MDB_val,
) -> c_int {
    entry_or(txn, 0, || compare(txn, dbi, (a, b), true).unwrap_or(Code::EINVAL.0))
}
