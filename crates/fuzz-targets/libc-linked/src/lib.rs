//! `libc`, but that the loader knows one library, which is part of the program: the C interface.

use std::ffi::CStr;

use liblmdb_linked as _;
pub use real::*;

/// The library, whatever its name.
///
/// # Safety
/// None is needed.
#[must_use]
pub unsafe fn dlopen(_: *const c_char, _: c_int) -> *mut c_void {
    std::ptr::dangling_mut::<u8>().cast()
}

macro_rules! functions {
    ($($name:ident)*) => {
        unsafe extern "C" {
            $(fn $name();)*
        }

        /// One of the functions that the tools use.
        ///
        /// # Safety
        /// The name is a C string.
        #[must_use]
        pub unsafe fn dlsym(_: *mut c_void, name: *const c_char) -> *mut c_void {
            // SAFETY: promised by the caller.
            let name = unsafe { CStr::from_ptr(name) };
            $(if name.to_bytes() == stringify!($name).as_bytes() {
                return $name as *const () as *mut c_void;
            })*
            std::ptr::null_mut()
        }
    };
}

functions! {
    mdb_version mdb_strerror mdb_env_create mdb_env_open mdb_env_close mdb_env_set_mapsize
    mdb_env_set_maxdbs mdb_env_set_maxreaders mdb_env_info mdb_env_stat mdb_env_sync mdb_env_copy2
    mdb_env_copyfd2 mdb_reader_list mdb_reader_check mdb_txn_begin mdb_txn_commit mdb_txn_abort
    mdb_dbi_open mdb_dbi_close mdb_dbi_flags mdb_stat mdb_drop mdb_set_compare mdb_set_dupsort
    mdb_cursor_open mdb_cursor_close mdb_cursor_get mdb_cursor_put
}
