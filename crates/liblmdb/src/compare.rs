//! Orders of keys and values: the built-in ones by flags, and those of programs.
//!
//! A program's function runs in the middle of a call. The transaction that asks it, with its levels and
//! cursors, is *busy* meanwhile: calls with it are refused, and environments stay open.

use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Atomic};

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
    /// How many of a program's functions are at work, each called by a call of the one before.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// Whether a transaction waits for a function of the program's; its levels share it.
#[derive(Clone, Default)]
pub(crate) struct Busy(Arc<AtomicBool>);

impl Busy {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Atomic::Relaxed)
    }

    /// Set while the result lives, and during a function of the program's.
    pub(crate) fn set(&self) -> Called<'_> {
        let was = self.0.swap(true, Atomic::Relaxed);
        INSIDE.set(INSIDE.get() + 1);
        // A call of the function's has arguments of its own.
        Called { busy: self, was, own: OWN.replace(NONE) }
    }
}

/// A program's function is at work.
pub(crate) struct Called<'b> {
    busy: &'b Busy,
    was: bool,
    own: Own,
}

impl Drop for Called<'_> {
    fn drop(&mut self) {
        OWN.set(self.own);
        INSIDE.set(INSIDE.get() - 1);
        self.busy.0.store(self.was, Atomic::Relaxed);
    }
}

/// Whether this thread is in a function that the library has called.
pub(crate) fn is_called_back() -> bool {
    INSIDE.get() > 0
}

/// While it lives comparison functions are called with what the program has handed in.
pub(crate) struct Asked(Own);

/// Programs' functions are called with this key and this value first, by address: some of them read
/// what the arguments are a part of.
pub(crate) fn asked(key: *const MDB_val, value: *const MDB_val) -> Asked {
    Asked(OWN.replace(Own { key, value }))
}

impl Drop for Asked {
    fn drop(&mut self) {
        OWN.set(self.0);
    }
}

/// The functions that a program has given for a table.
#[derive(Clone, Copy, Default)]
pub(crate) struct Functions {
    pub(crate) keys: Option<MDB_cmp_func>,
    pub(crate) values: Option<MDB_cmp_func>,
}

impl Functions {
    pub(crate) fn is_any(self) -> bool {
        self.keys.is_some() || self.values.is_some()
    }

    /// As the engine calls the one for keys, in a transaction.
    pub(crate) fn for_keys(self, busy: &Busy) -> Option<RawCompare> {
        let (function, busy) = (self.keys?, busy.clone());
        Some(Arc::new(move |a: &[u8], b: &[u8]| call(function, &busy, OWN.get().key, a, b)))
    }

    /// The same of the one for values.
    pub(crate) fn for_values(self, busy: &Busy) -> Option<RawCompare> {
        let (function, busy) = (self.values?, busy.clone());
        Some(Arc::new(move |a: &[u8], b: &[u8]| call(function, &busy, OWN.get().value, a, b)))
    }
}

fn call(function: MDB_cmp_func, busy: &Busy, own: *const MDB_val, a: &[u8], b: &[u8]) -> Ordering {
    // Functions that read beyond the first find nothing there.
    let (again, b) = ([val(a), val(&[]), val(&[])], val(b));
    let a = if bytes_are(own, a) { own } else { again.as_ptr() };
    let _called = busy.set();
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
