//! `libc`, but that the loader knows one library, which is part of the program: the C interface.

use std::ffi::CStr;

use liblmdb_linked as _;
pub use real::*;
use support::lmdb::LINKED_SYMBOLS;

/// The library, whatever its name.
///
/// # Safety
/// None is needed.
#[must_use]
pub unsafe fn dlopen(_: *const c_char, _: c_int) -> *mut c_void {
    std::ptr::dangling_mut::<u8>().cast()
}

/// One of the functions of the interface.
///
/// # Safety
/// The name is a C string.
#[must_use]
pub unsafe fn dlsym(_: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(name) };
    let found = LINKED_SYMBOLS.iter().find(|(known, _)| known.as_bytes() == name.to_bytes());
    found.map_or(std::ptr::null_mut(), |(_, function)| function.cast_mut().cast())
}
