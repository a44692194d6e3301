//! Scans that stop where a function of the program says so; it sees keys and values where they are.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::MDB_val;
use crate::cursor::{self, MDB_cursor};
use crate::errors::{Code, Result};
use crate::guard::entry;

use super::{TRUE, answer};

/// The program's function, with what it was given for it: its own, key, value, its own again.
type Predicate =
    unsafe extern "C" fn(*mut c_void, *mut MDB_val, *mut MDB_val, *mut c_void) -> c_int;

fn scan(
    cursor: *mut MDB_cursor,
    predicate: Option<Predicate>,
    own: (*mut c_void, *mut c_void),
    from: (c_uint, *mut MDB_val, *mut MDB_val),
    turn: c_uint,
) -> c_int {
    let mut found = false;
    let code = entry(cursor, || {
        let predicate = predicate.ok_or(Code::EINVAL)?;
        let mut wanted = |key: &mut MDB_val, value: &mut MDB_val| -> Result<bool> {
            // SAFETY: the program gave the function and what belongs to it for this; key and value live for
            // the call, and nothing of the library is borrowed meanwhile.
            match unsafe { predicate(own.0, key, value, own.1) } {
                0 => Ok(false),
                TRUE => Ok(true),
                code => Err(Code(code)),
            }
        };
        found = cursor::scan(cursor, from, turn, &mut wanted)?;
        Ok(())
    });
    answer(code, found)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_cursor_scan(
    cursor: *mut MDB_cursor,
    predicate: Option<Predicate>,
    context: *mut c_void,
    start_op: c_uint,
    turn_op: c_uint,
    arg: *mut c_void,
) -> c_int {
    let (mut key, mut value) = (MDB_val::NOTHING, MDB_val::NOTHING);
    let from = (start_op, &raw mut key, &raw mut value);
    scan(cursor, predicate, (context, arg), from, turn_op)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdbx_cursor_scan_from(
    cursor: *mut MDB_cursor,
    predicate: Option<Predicate>,
    context: *mut c_void,
    from_op: c_uint,
    from_key: *mut MDB_val,
    from_value: *mut MDB_val,
    turn_op: c_uint,
    arg: *mut c_void,
) -> c_int {
    // What the program looks for with stays as it is.
    let copy = |given: *mut MDB_val| -> MDB_val {
        // SAFETY: by the contract null, or it points to a value for the time of the call.
        unsafe { given.as_ref() }.map_or(MDB_val::NOTHING, |given| *given)
    };
    let (mut key, mut value) = (copy(from_key), copy(from_value));
    let from = (from_op, &raw mut key, &raw mut value);
    scan(cursor, predicate, (context, arg), from, turn_op)
}
