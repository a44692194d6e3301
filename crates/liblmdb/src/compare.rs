//! Orders of keys and values: the built-in ones by flags, and those of programs.

use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::Arc;

use zubilo::raw::RawCompare;
use zubilo::{KeyOrder, TableOptions};

use crate::abi::{MDB_cmp_func, MDB_val, db};
use crate::values::val;

/// The key and the value that the program has handed in to the call at work, in this thread.
#[derive(Clone, Copy)]
struct Own {
    key: *const MDB_val,
    value: *const MDB_val,
}

const NONE: Own = Own { key: std::ptr::null(), value: std::ptr::null() };

thread_local! {
    static OWN: Cell<Own> = const { Cell::new(NONE) };
}

/// While it lives comparison functions are called with what the program has handed in.
pub(crate) struct Asked(Own);

/// Programs' functions are called with this key and this value first, by address: some of them read
/// what lies behind them.
pub(crate) fn asked(key: *const MDB_val, value: *const MDB_val) -> Asked {
    Asked(OWN.replace(Own { key, value }))
}

impl Drop for Asked {
    fn drop(&mut self) {
        OWN.set(self.0);
    }
}

/// A program's function as the engine calls it for keys.
pub(crate) fn wrap_keys(function: MDB_cmp_func) -> RawCompare {
    Arc::new(move |a: &[u8], b: &[u8]| call(function, OWN.get().key, a, b))
}

/// The same for values.
pub(crate) fn wrap_values(function: MDB_cmp_func) -> RawCompare {
    Arc::new(move |a: &[u8], b: &[u8]| call(function, OWN.get().value, a, b))
}

fn call(function: MDB_cmp_func, own: *const MDB_val, a: &[u8], b: &[u8]) -> Ordering {
    // Functions that read beyond the first find nothing there.
    let (again, b) = ([val(a), val(&[]), val(&[])], val(b));
    let a = if bytes_are(own, a) { own } else { again.as_ptr() };
    // SAFETY: both point to live values; the program gave the function for this.
    unsafe { function(a, &b) }.cmp(&0)
}

/// Whether a value of the program's has these bytes: what it points to may lie in the store, where a
/// change has moved it since the engine copied it.
fn bytes_are(own: *const MDB_val, bytes: &[u8]) -> bool {
    crate::values::bytes(own).is_ok_and(|own| own.as_ptr() == bytes.as_ptr() || own == bytes)
}

/// The order of keys that flags ask for.
pub(crate) fn key_order(flags: u32) -> KeyOrder {
    match flags {
        f if f & db::REVERSEKEY != 0 => KeyOrder::Reversed,
        f if f & db::INTEGERKEY != 0 => KeyOrder::Integer,
        _ => KeyOrder::Bytes,
    }
}

/// The order of the values of a key that flags ask for.
pub(crate) fn value_order(flags: u32) -> KeyOrder {
    match flags {
        f if f & db::INTEGERDUP != 0 => KeyOrder::Integer,
        f if f & db::REVERSEDUP != 0 => KeyOrder::Reversed,
        _ => KeyOrder::Bytes,
    }
}

/// Compares as a table with an order does.
pub(crate) fn builtin(order: KeyOrder, a: &[u8], b: &[u8]) -> Ordering {
    match order {
        KeyOrder::Reversed | KeyOrder::Integer => a.iter().rev().cmp(b.iter().rev()),
        _ => a.cmp(b),
    }
}

/// Options of a table with these flags, and a program's functions where there are any.
pub(crate) fn options(
    flags: u32,
    keys: Option<RawCompare>,
    values: Option<RawCompare>,
) -> TableOptions {
    let mut options = TableOptions::new().key_order(key_order(flags));
    if let Some(compare) = keys {
        options = options.compare_keys(move |a: &[u8], b: &[u8]| compare(a, b));
    }
    if flags & db::DUPSORT == 0 {
        return options;
    }
    options = match flags & db::DUPFIXED {
        0 => options.duplicates(),
        _ => options.fixed_duplicates(),
    };
    match values {
        Some(compare) => options.compare_values(move |a: &[u8], b: &[u8]| compare(a, b)),
        None => options.value_order(value_order(flags)),
    }
}
