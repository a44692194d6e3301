//! LMDB's C interface as its callers see it: types and numbers of lmdb.h, the functions as a table
//! ([`Api`]) and by name ([`linked`]), and handles that end with their owners ([`Env`], [`Txn`],
//! [`Cursor`]).
//!
//! The functions come from a library that is linked into the program ([`LINKED`]) or loaded
//! ([`Api::load`], [`Api::find`]). Nothing here says which library that is: LMDB itself is linked by
//! `use lmdb_master_sys as _`, Zubilo's by `use liblmdb_linked as _`. A program links one of them.

mod functions;
mod handles;
mod numbers;

use std::ffi::{c_int, c_uint, c_void};

pub use functions::{Api, LINKED, LINKED_SYMBOLS, linked};
pub use handles::{Cursor, Env, Failed, Setup, Txn};
pub use numbers::*;

/// `MDB_val`: bytes that somebody else owns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Val {
    /// Their number.
    pub size: usize,
    /// Where they are.
    pub data: *mut c_void,
}

impl Val {
    /// No bytes, nowhere.
    pub const NONE: Val = Val { size: 0, data: std::ptr::null_mut() };

    /// These bytes, which the library only reads.
    #[inline(always)]
    pub fn of(bytes: &[u8]) -> Val {
        Val { size: bytes.len(), data: bytes.as_ptr().cast_mut().cast() }
    }

    /// What it points to.
    ///
    /// # Safety
    /// Filled by a library or by [`Val::of`]; the bytes stay and do not change for `'v`.
    #[inline(always)]
    pub unsafe fn bytes<'v>(self) -> &'v [u8] {
        if self.size == 0 || self.data.is_null() {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.size) }
    }

    /// A copy of what it points to.
    ///
    /// # Safety
    /// As for [`Val::bytes`], until this returns.
    pub unsafe fn copy(self) -> Vec<u8> {
        // SAFETY: the caller's promise.
        unsafe { self.bytes() }.to_vec()
    }
}

/// `MDB_stat`: figures of a table.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Bytes of a page.
    pub page_size: c_uint,
    /// Levels of the tree.
    pub depth: c_uint,
    /// Inner pages.
    pub branch_pages: usize,
    /// Pages with records.
    pub leaf_pages: usize,
    /// Pages of large values.
    pub overflow_pages: usize,
    /// Records.
    pub entries: usize,
}

/// `MDB_envinfo`: figures of an environment.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Where the map is, if that is fixed.
    pub map_address: *mut c_void,
    /// Bytes of the map.
    pub map_size: usize,
    /// The last page in use.
    pub last_page: usize,
    /// The last transaction that committed.
    pub last_txn: usize,
    /// Places for readers.
    pub max_readers: c_uint,
    /// Places in use.
    pub readers: c_uint,
}

impl Info {
    /// A place for the figures.
    pub const EMPTY: Info = Info {
        map_address: std::ptr::null_mut(),
        map_size: 0,
        last_page: 0,
        last_txn: 0,
        max_readers: 0,
        readers: 0,
    };
}

/// `MDB_cmp_func`: an order of keys or values.
pub type Compare = unsafe extern "C" fn(*const Val, *const Val) -> c_int;

/// `MDB_msg_func`: takes the lines of `mdb_reader_list`.
pub type Message = unsafe extern "C" fn(*const std::ffi::c_char, *mut c_void) -> c_int;
