//! The functions of `liblmdb.so.0`: where the library is found, and the texts of its errors.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::OnceLock;

use support::lmdb::{self, Api, Env, Failed, Setup, Txn, Val};

use crate::{Result, Stop};

/// Flags of tables and their names in dumps.
pub(crate) const TABLE_FLAGS: [(u32, &str); 6] = [
    (lmdb::MDB_REVERSEKEY, "reversekey"),
    (lmdb::MDB_DUPSORT, "dupsort"),
    (lmdb::MDB_INTEGERKEY, "integerkey"),
    (lmdb::MDB_DUPFIXED, "dupfixed"),
    (lmdb::MDB_INTEGERDUP, "integerdup"),
    (lmdb::MDB_REVERSEDUP, "reversedup"),
];

const NAME: &CStr = c"liblmdb.so.0";

/// The functions, loaded once.
fn api() -> Result<&'static Api> {
    static LOADED: OnceLock<Option<Api>> = OnceLock::new();
    let mut reason = String::from("liblmdb.so.0 could not be loaded");
    let loaded = LOADED.get_or_init(|| {
        let found = load().and_then(|library| {
            let symbol = |name: &CStr| {
                // SAFETY: a library that stays loaded, and a name.
                let found = unsafe { libc::dlsym(library, name.as_ptr()) };
                if found.is_null() {
                    return Err(Stop::Failed(format!("liblmdb.so.0 lacks {name:?}")));
                }
                Ok(found)
            };
            // SAFETY: the functions have these types by the interface of LMDB 0.9.
            unsafe { Api::find(symbol) }
        });
        match found {
            Ok(api) => Some(api),
            Err(Stop::Failed(line)) => {
                reason = line;
                None
            }
            Err(_) => None,
        }
    });
    loaded.as_ref().ok_or(Stop::Failed(reason))
}

fn load() -> Result<*mut c_void> {
    let beside = std::env::current_exe().ok().and_then(|exe| {
        let path = exe.parent()?.join(NAME.to_str().ok()?);
        path.exists().then_some(())?;
        CString::new(path.as_os_str().as_bytes()).ok()
    });
    for path in [beside.as_deref(), Some(NAME)].into_iter().flatten() {
        // SAFETY: a library without initialisers of its own.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        if !library.is_null() {
            return Ok(library);
        }
    }
    // SAFETY: after a failure there is a text, or null.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        Err(Stop::Failed("liblmdb.so.0 could not be loaded".into()))
    } else {
        // SAFETY: a C string that lives until the next call.
        Err(Stop::Failed(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()))
    }
}

fn text(start: *const c_char) -> String {
    // SAFETY: the library gives C strings that stay.
    unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned()
}

/// The version that `mdb_version` gives.
pub(crate) fn version() -> Result<String> {
    // SAFETY: the pointers can be null.
    Ok(text(unsafe { (api()?.mdb_version)(null_mut(), null_mut(), null_mut()) }))
}

/// The text of a code.
pub(crate) fn describe(code: c_int) -> String {
    // SAFETY: takes any number.
    api().map_or_else(|_| code.to_string(), |api| text(unsafe { (api.mdb_strerror)(code) }))
}

/// The C library's text of an error of a file.
pub(crate) fn reason(error: &std::io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), describe)
}

/// The line about a call that failed, under the name that LMDB's tools have for it.
pub(crate) fn failed(call: &str, failed: Failed) -> Stop {
    Stop::Failed(format!("{call} failed, error {} {}", failed.code, describe(failed.code)))
}

impl From<Failed> for Stop {
    fn from(error: Failed) -> Stop {
        failed(error.call, error)
    }
}

/// Opens an environment.
pub(crate) fn open(path: &str, setup: Setup) -> Result<Result<Env, Failed>> {
    Ok(Env::open(api()?, Path::new(path), setup))
}

/// Takes records in whatever order they come.
pub(crate) fn trust_order(txn: &Txn<'_>, dbi: u32, values: bool) -> Result<(), Failed> {
    unsafe extern "C" fn after(_: *const Val, _: *const Val) -> c_int {
        1
    }
    // SAFETY: reads nothing; LMDB's own tool loads sorted dumps with such a function.
    unsafe {
        txn.set_compare(dbi, after)?;
        if values { txn.set_dupsort(dbi, after) } else { Ok(()) }
    }
}
