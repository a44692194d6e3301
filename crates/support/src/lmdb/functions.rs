//! The functions: declared once, reached in three ways.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Compare, Info, Message, Stat, Val};

/// An environment's handle.
type Env = *mut c_void;
/// A transaction's handle.
type Txn = *mut c_void;
/// A cursor's handle.
type Cursor = *mut c_void;
/// A table's handle.
type Dbi = c_uint;

macro_rules! functions {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of the library that is linked into the program, by their names.
        #[allow(missing_docs, clippy::missing_safety_doc, reason = "documented in lmdb.h")]
        pub mod linked {
            use super::*;

            unsafe extern "C" {
                $(pub fn $name($($arg: $type),*) $(-> $result)?;)*
            }
        }

        /// The functions of a library, by their names.
        #[derive(Clone, Copy)]
        #[allow(missing_docs, reason = "documented in lmdb.h")]
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($type),*) $(-> $result)?,)*
        }

        /// Those of the library that is linked into the program. A constant, so that programs which
        /// link none can be built.
        pub const LINKED: Api = Api { $($name: linked::$name,)* };

        /// The same by name, for what looks symbols up.
        pub const LINKED_SYMBOLS: &[(&str, *const ())] =
            &[$((stringify!($name), linked::$name as *const ()),)*];

        impl Api {
            /// The functions that something finds by their names.
            ///
            /// # Errors
            /// What `symbol` says.
            ///
            /// # Safety
            /// What `symbol` gives are functions as lmdb.h declares them, and stay.
            pub unsafe fn find<E>(
                symbol: impl Fn(&CStr) -> Result<*mut c_void, E>,
            ) -> Result<Api, E> {
                Ok(Api {
                    $($name: {
                        const NAME: &CStr =
                            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                                Ok(name) => name,
                                Err(_) => panic!("a name without zeros"),
                            };
                        let found = symbol(NAME)?;
                        // SAFETY: the caller promises the type.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($type),*) $(-> $result)?,
                            >(found)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    fn mdb_version(major: *mut c_int, minor: *mut c_int, patch: *mut c_int) -> *const c_char;
    fn mdb_strerror(code: c_int) -> *const c_char;
    fn mdb_env_create(env: *mut Env) -> c_int;
    fn mdb_env_open(env: Env, path: *const c_char, flags: c_uint, mode: c_uint) -> c_int;
    fn mdb_env_close(env: Env);
    fn mdb_env_set_mapsize(env: Env, size: usize) -> c_int;
    fn mdb_env_set_maxdbs(env: Env, dbs: c_uint) -> c_int;
    fn mdb_env_set_maxreaders(env: Env, readers: c_uint) -> c_int;
    fn mdb_env_set_flags(env: Env, flags: c_uint, on: c_int) -> c_int;
    fn mdb_env_info(env: Env, info: *mut Info) -> c_int;
    fn mdb_env_stat(env: Env, stat: *mut Stat) -> c_int;
    fn mdb_env_sync(env: Env, force: c_int) -> c_int;
    fn mdb_env_copy(env: Env, path: *const c_char) -> c_int;
    fn mdb_env_copy2(env: Env, path: *const c_char, flags: c_uint) -> c_int;
    fn mdb_env_copyfd2(env: Env, fd: c_int, flags: c_uint) -> c_int;
    fn mdb_reader_list(env: Env, each: Option<Message>, context: *mut c_void) -> c_int;
    fn mdb_reader_check(env: Env, dead: *mut c_int) -> c_int;
    fn mdb_txn_begin(env: Env, parent: Txn, flags: c_uint, txn: *mut Txn) -> c_int;
    fn mdb_txn_commit(txn: Txn) -> c_int;
    fn mdb_txn_abort(txn: Txn);
    fn mdb_txn_reset(txn: Txn);
    fn mdb_txn_renew(txn: Txn) -> c_int;
    fn mdb_txn_id(txn: Txn) -> usize;
    fn mdb_dbi_open(txn: Txn, name: *const c_char, flags: c_uint, dbi: *mut Dbi) -> c_int;
    fn mdb_dbi_close(env: Env, dbi: Dbi);
    fn mdb_dbi_flags(txn: Txn, dbi: Dbi, flags: *mut c_uint) -> c_int;
    fn mdb_stat(txn: Txn, dbi: Dbi, stat: *mut Stat) -> c_int;
    fn mdb_drop(txn: Txn, dbi: Dbi, delete: c_int) -> c_int;
    fn mdb_set_compare(txn: Txn, dbi: Dbi, compare: Option<Compare>) -> c_int;
    fn mdb_set_dupsort(txn: Txn, dbi: Dbi, compare: Option<Compare>) -> c_int;
    fn mdb_get(txn: Txn, dbi: Dbi, key: *mut Val, value: *mut Val) -> c_int;
    fn mdb_put(txn: Txn, dbi: Dbi, key: *mut Val, value: *mut Val, flags: c_uint) -> c_int;
    fn mdb_del(txn: Txn, dbi: Dbi, key: *mut Val, value: *mut Val) -> c_int;
    fn mdb_cmp(txn: Txn, dbi: Dbi, a: *const Val, b: *const Val) -> c_int;
    fn mdb_dcmp(txn: Txn, dbi: Dbi, a: *const Val, b: *const Val) -> c_int;
    fn mdb_cursor_open(txn: Txn, dbi: Dbi, cursor: *mut Cursor) -> c_int;
    fn mdb_cursor_close(cursor: Cursor);
    fn mdb_cursor_renew(txn: Txn, cursor: Cursor) -> c_int;
    fn mdb_cursor_get(cursor: Cursor, key: *mut Val, value: *mut Val, op: c_uint) -> c_int;
    fn mdb_cursor_put(cursor: Cursor, key: *mut Val, value: *mut Val, flags: c_uint) -> c_int;
    fn mdb_cursor_del(cursor: Cursor, flags: c_uint) -> c_int;
    fn mdb_cursor_count(cursor: Cursor, count: *mut usize) -> c_int;
}

unsafe extern "C" {
    fn dlopen(path: *const c_char, how: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

impl Api {
    /// The functions of a library in a file, which stays loaded.
    ///
    /// # Errors
    /// What the system's loader says.
    ///
    /// # Safety
    /// The library's functions are as lmdb.h declares them.
    pub unsafe fn load(library: &Path) -> Result<Api, String> {
        const RTLD_NOW: c_int = 2;
        let path = CString::new(library.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: the name is a C string; what the library runs when it is loaded is its own matter.
        let loaded = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
        if loaded.is_null() {
            // SAFETY: after a failure there is a text, valid until the next call.
            let why = unsafe { CStr::from_ptr(dlerror()) };
            return Err(why.to_string_lossy().into_owned());
        }
        let symbol = |name: &CStr| {
            // SAFETY: looks a name up in a library that stays loaded.
            let found = unsafe { dlsym(loaded, name.as_ptr()) };
            if found.is_null() { Err(format!("{name:?} is not exported")) } else { Ok(found) }
        };
        // SAFETY: promised by the caller.
        unsafe { Api::find(symbol) }
    }
}
