//! Numbers beside the records: canary, sequences; how far readers are behind; what may change.

use std::ffi::{c_int, c_void};

use crate::abi::MDB_dbi;
use crate::cursor::{MDB_cursor, question};
use crate::env::{FIRST_TXN, put_out};
use crate::errors::{Code, Result};
use crate::guard::entry;
use crate::txn::{MDB_txn, Work, live, writable, writes};

use super::{TRUE, answer};

/// As in `zubilo.h`.
#[repr(C)]
#[allow(non_camel_case_types)]
pub(super) struct MDBX_canary {
    words: [u64; 3],
    txn: u64,
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_canary_put(
    txn: *mut MDB_txn,
    canary: *const MDBX_canary,
) -> c_int {
    entry(txn, || {
        let writer = writes(txn)?.writer()?;
        // SAFETY: by the contract it points to a canary, or nowhere.
        let words = match unsafe { canary.as_ref() } {
            Some(canary) => canary.words,
            None => writer.canary().words,
        };
        Ok(writer.set_canary(words)?)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_canary_get(
    txn: *mut MDB_txn,
    canary: *mut MDBX_canary,
) -> c_int {
    entry(txn, || {
        let found = match &mut live(txn)?.work {
            Work::Read(read) => read.canary(),
            _ => live(txn)?.writer()?.canary(),
        };
        let txn = found.txn.0.saturating_sub(FIRST_TXN);
        put_out(canary, MDBX_canary { words: found.words, txn })
    })
}

fn straggler(txn: *mut MDB_txn, percent: *mut c_int) -> Result<c_int> {
    let Work::Read(read) = &live(txn)?.work else { return Err(Code::EINVAL) };
    let found = read.straggler()?;
    if !percent.is_null() {
        put_out(percent, (found.used * 100.0) as c_int)?;
    }
    Ok(c_int::try_from(found.lag).unwrap_or(c_int::MAX))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_txn_straggler(
    txn: *mut MDB_txn,
    percent: *mut c_int,
) -> c_int {
    let mut lag = 0;
    let code = entry(txn, || {
        lag = straggler(txn, percent)?;
        Ok(())
    });
    if code == 0 { lag } else { -code.abs() }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_dbi_sequence(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    result: *mut u64,
    increment: u64,
) -> c_int {
    let mut used_up = false;
    let code = entry(txn, || {
        let this = live(txn)?;
        let info = this.info(dbi)?;
        if increment > 0 {
            // The tree of names keeps a mark of this library in its sequence.
            let target = writable(txn, dbi)?.target(dbi)?;
            if target == zubilo::raw::NAMES {
                return Err(Code::INCOMPATIBLE);
            }
            used_up = info.sequence.checked_add(increment).is_none();
            if used_up {
                return Ok(());
            }
            this.writer()?.raw_sequence(target, increment)?;
        }
        if result.is_null() { Ok(()) } else { put_out(result, info.sequence) }
    });
    answer(code, used_up)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_is_dirty(txn: *mut MDB_txn, pointer: *const c_void) -> c_int {
    let mut dirty = false;
    let code = entry(txn, || {
        let this = live(txn)?;
        if pointer.is_null() {
            return Err(Code::EINVAL);
        }
        dirty = match &this.work {
            Work::Write(_) => this.writer()?.raw_is_dirty(pointer.cast()),
            _ => false,
        };
        Ok(())
    });
    answer(code, dirty)
}

/// What is asked of a cursor.
fn ask(
    cursor: *mut MDB_cursor,
    ask: fn(&mut zubilo::raw::RawCursor) -> zubilo::Result<bool>,
) -> c_int {
    let mut found = false;
    let code = entry(cursor, || {
        found = question(cursor, ask)?;
        Ok(())
    });
    debug_assert!(code != TRUE);
    answer(code, found)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_cursor_eof(cursor: *mut MDB_cursor) -> c_int {
    ask(cursor, zubilo::raw::RawCursor::eof)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_cursor_on_first(cursor: *mut MDB_cursor) -> c_int {
    ask(cursor, zubilo::raw::RawCursor::on_first)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_cursor_on_last(cursor: *mut MDB_cursor) -> c_int {
    ask(cursor, zubilo::raw::RawCursor::on_last)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_cursor_on_first_dup(cursor: *mut MDB_cursor) -> c_int {
    ask(cursor, zubilo::raw::RawCursor::on_first_value)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_cursor_on_last_dup(cursor: *mut MDB_cursor) -> c_int {
    ask(cursor, zubilo::raw::RawCursor::on_last_value)
}
