//! Numbers beside the records: user words, sequences; the lag of readers; which bytes may change.

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
    given: *const MDBX_canary,
) -> c_int {
    entry(txn, || {
        let writer = writes(txn)?.writer()?;
        // SAFETY: by the contract it points to the words, or nowhere.
        let words = match unsafe { given.as_ref() } {
            Some(given) => given.words,
            None => writer.user_words().words,
        };
        Ok(writer.set_user_words(words)?)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_canary_get(
    txn: *mut MDB_txn,
    place: *mut MDBX_canary,
) -> c_int {
    entry(txn, || {
        let found = match &mut live(txn)?.work {
            Work::Read(read) => read.user_words(),
            _ => live(txn)?.writer()?.user_words(),
        };
        let txn = found.txn.0.saturating_sub(FIRST_TXN);
        put_out(place, MDBX_canary { words: found.words, txn })
    })
}

fn reader_lag(txn: *mut MDB_txn, percent: *mut c_int) -> Result<c_int> {
    let Work::Read(read) = &live(txn)?.work else { return Err(Code::EINVAL) };
    let found = read.reader_lag()?;
    if !percent.is_null() {
        put_out(percent, (found.used * 100.0) as c_int)?;
    }
    Ok(c_int::try_from(found.commits).unwrap_or(c_int::MAX))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_txn_straggler(
    txn: *mut MDB_txn,
    percent: *mut c_int,
) -> c_int {
    let mut lag = 0;
    let code = entry(txn, || {
        lag = reader_lag(txn, percent)?;
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
            // The sequence of the tree of names is a counter of this library.
            let target = writable(txn, dbi)?.target(dbi)?;
            if target == zubilo::raw::TableRef::CATALOGUE {
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
    ask: fn(&mut zubilo::raw::RawAt<'_>) -> zubilo::Result<bool>,
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
    ask(cursor, |at| at.eof())
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_cursor_on_first(cursor: *mut MDB_cursor) -> c_int {
    ask(cursor, |at| at.on_first())
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_cursor_on_last(cursor: *mut MDB_cursor) -> c_int {
    ask(cursor, |at| at.on_last())
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_cursor_on_first_dup(cursor: *mut MDB_cursor) -> c_int {
    ask(cursor, |at| at.on_first_value())
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_cursor_on_last_dup(cursor: *mut MDB_cursor) -> c_int {
    ask(cursor, |at| at.on_last_value())
}
