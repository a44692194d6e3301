//! LMDB's interface as a table of functions: of the original, or of another library that claims to be
//! it.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use lmdb_master_sys as ffi;

macro_rules! api {
    ($($name:ident($($arg:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions that programs need, by their names in C.
        #[derive(Clone, Copy)]
        #[allow(missing_docs, reason = "documented in lmdb.h")]
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
        }

        impl Api {
            /// The original's, linked in.
            pub fn original() -> Api {
                Api { $($name: ffi::$name,)* }
            }

            /// Those of a library in a file, which stays loaded.
            ///
            /// # Safety
            /// The library's functions are as lmdb.h declares them.
            pub unsafe fn load(library: &Path) -> Result<Api, String> {
                let loaded = open(library)?;
                Ok(Api {
                    $($name: {
                        let name = CString::new(stringify!($name)).map_err(|e| e.to_string())?;
                        let found = symbol(loaded, &name)?;
                        // SAFETY: the caller promises the type.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($arg),*) $(-> $result)?,
                            >(found)
                        }
                    },)*
                })
            }
        }
    };
}

type Env = *mut ffi::MDB_env;
type Txn = *mut ffi::MDB_txn;
type Cursor = *mut ffi::MDB_cursor;
type Val = *mut ffi::MDB_val;
type Compare = ffi::MDB_cmp_func;

api! {
    mdb_env_create(*mut Env) -> c_int;
    mdb_env_set_mapsize(Env, usize) -> c_int;
    mdb_env_set_maxdbs(Env, c_uint) -> c_int;
    mdb_env_open(Env, *const c_char, c_uint, ffi::mdb_mode_t) -> c_int;
    mdb_env_close(Env);
    mdb_txn_begin(Env, Txn, c_uint, *mut Txn) -> c_int;
    mdb_txn_commit(Txn) -> c_int;
    mdb_txn_abort(Txn);
    mdb_dbi_open(Txn, *const c_char, c_uint, *mut ffi::MDB_dbi) -> c_int;
    mdb_set_compare(Txn, ffi::MDB_dbi, Compare) -> c_int;
    mdb_set_dupsort(Txn, ffi::MDB_dbi, Compare) -> c_int;
    mdb_stat(Txn, ffi::MDB_dbi, *mut ffi::MDB_stat) -> c_int;
    mdb_drop(Txn, ffi::MDB_dbi, c_int) -> c_int;
    mdb_get(Txn, ffi::MDB_dbi, Val, Val) -> c_int;
    mdb_put(Txn, ffi::MDB_dbi, Val, Val, c_uint) -> c_int;
    mdb_del(Txn, ffi::MDB_dbi, Val, Val) -> c_int;
    mdb_cursor_open(Txn, ffi::MDB_dbi, *mut Cursor) -> c_int;
    mdb_cursor_close(Cursor);
    mdb_cursor_get(Cursor, Val, Val, ffi::MDB_cursor_op) -> c_int;
    mdb_cursor_put(Cursor, Val, Val, c_uint) -> c_int;
    mdb_cursor_del(Cursor, c_uint) -> c_int;
    mdb_cursor_count(Cursor, *mut usize) -> c_int;
}

fn open(library: &Path) -> Result<*mut c_void, String> {
    let path = CString::new(library.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: the name is a string of C; what the library runs when it is loaded is its own matter.
    let loaded = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    if loaded.is_null() {
        // SAFETY: after a failure there is a text, valid until the next call.
        let why = unsafe { CStr::from_ptr(libc::dlerror()) };
        return Err(why.to_string_lossy().into_owned());
    }
    Ok(loaded)
}

fn symbol(library: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: looks a name up in a library that stays loaded.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() { Err(format!("{name:?} is not exported")) } else { Ok(found) }
}
