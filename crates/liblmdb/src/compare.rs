//! Orders of keys and values: the built-in ones by flags, and those of programs.

use std::cmp::Ordering;
use std::sync::Arc;

use zubilo::raw::RawCompare;
use zubilo::{KeyOrder, TableOptions};

use crate::abi::{MDB_cmp_func, db};
use crate::values::val;

/// A program's function as the engine calls it.
pub(crate) fn wrap(function: MDB_cmp_func) -> RawCompare {
    Arc::new(move |a: &[u8], b: &[u8]| call(function, a, b))
}

fn call(function: MDB_cmp_func, a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (val(a), val(b));
    // SAFETY: both point to live values; the program gave the function for this.
    unsafe { function(&a, &b) }.cmp(&0)
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
