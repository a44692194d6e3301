//! The functions of `liblmdb.so.0`, and what ends with its owner: environments, transactions,
//! cursors.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::ptr::null_mut;
use std::sync::OnceLock;

use crate::{Result, Stop};

/// Flags, operations and codes of the interface.
pub(crate) mod number {
    pub(crate) const NOSUBDIR: u32 = 0x4000;
    pub(crate) const NOSYNC: u32 = 0x1_0000;
    pub(crate) const RDONLY: u32 = 0x2_0000;
    pub(crate) const DUPSORT: u32 = 0x04;
    pub(crate) const CREATE: u32 = 0x4_0000;
    pub(crate) const NOOVERWRITE: u32 = 0x10;
    pub(crate) const NODUPDATA: u32 = 0x20;
    pub(crate) const APPEND: u32 = 0x2_0000;
    pub(crate) const APPENDDUP: u32 = 0x4_0000;
    pub(crate) const CP_COMPACT: u32 = 1;
    pub(crate) const NEXT: u32 = 8;
    pub(crate) const NEXT_NODUP: u32 = 11;
    pub(crate) const KEYEXIST: i32 = -30799;
    pub(crate) const NOTFOUND: i32 = -30798;
}

/// Flags of tables and their names in dumps.
pub(crate) const TABLE_FLAGS: [(u32, &str); 6] = [
    (0x02, "reversekey"),
    (0x04, "dupsort"),
    (0x08, "integerkey"),
    (0x10, "dupfixed"),
    (0x20, "integerdup"),
    (0x40, "reversedup"),
];

#[repr(C)]
#[derive(Clone, Copy)]
struct Val {
    size: usize,
    data: *const c_void,
}

impl Val {
    fn of(bytes: &[u8]) -> Val {
        Val { size: bytes.len(), data: bytes.as_ptr().cast() }
    }

    const NONE: Val = Val { size: 0, data: std::ptr::null() };
}

/// Figures of a table.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Stat {
    pub(crate) page_size: c_uint,
    pub(crate) depth: c_uint,
    pub(crate) branch_pages: usize,
    pub(crate) leaf_pages: usize,
    pub(crate) overflow_pages: usize,
    pub(crate) entries: usize,
}

/// Figures of an environment.
#[repr(C)]
pub(crate) struct Info {
    pub(crate) map_address: *mut c_void,
    pub(crate) map_size: usize,
    pub(crate) last_page: usize,
    pub(crate) last_txn: usize,
    pub(crate) max_readers: c_uint,
    pub(crate) readers: c_uint,
}

type Compare = unsafe extern "C" fn(*const Val, *const Val) -> c_int;
type Message = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int;

macro_rules! functions {
    ($($name:ident: fn($($arg:ty),*) $(-> $result:ty)?;)*) => {
        struct Api {
            $($name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
        }

        fn look_up(library: *mut c_void) -> Result<Api> {
            let symbol = |name: &CStr| {
                // SAFETY: a library that stays loaded, and a name.
                let found = unsafe { libc::dlsym(library, name.as_ptr()) };
                if found.is_null() {
                    return Err(Stop::Failed(format!("liblmdb.so.0 lacks {name:?}")));
                }
                Ok(found)
            };
            Ok(Api {
                $(
                    // SAFETY: the function has this type by the interface of LMDB 0.9.
                    $name: unsafe {
                        std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($arg),*) $(-> $result)?,
                        >(symbol(
                            CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes())
                                .unwrap_or_default(),
                        )?)
                    },
                )*
            })
        }
    };
}

functions! {
    mdb_version: fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
    mdb_strerror: fn(c_int) -> *const c_char;
    mdb_env_create: fn(*mut *mut c_void) -> c_int;
    mdb_env_open: fn(*mut c_void, *const c_char, c_uint, c_uint) -> c_int;
    mdb_env_close: fn(*mut c_void);
    mdb_env_set_mapsize: fn(*mut c_void, usize) -> c_int;
    mdb_env_set_maxdbs: fn(*mut c_void, c_uint) -> c_int;
    mdb_env_set_maxreaders: fn(*mut c_void, c_uint) -> c_int;
    mdb_env_info: fn(*mut c_void, *mut Info) -> c_int;
    mdb_env_stat: fn(*mut c_void, *mut Stat) -> c_int;
    mdb_env_sync: fn(*mut c_void, c_int) -> c_int;
    mdb_env_copy2: fn(*mut c_void, *const c_char, c_uint) -> c_int;
    mdb_env_copyfd2: fn(*mut c_void, c_int, c_uint) -> c_int;
    mdb_reader_list: fn(*mut c_void, Option<Message>, *mut c_void) -> c_int;
    mdb_reader_check: fn(*mut c_void, *mut c_int) -> c_int;
    mdb_txn_begin: fn(*mut c_void, *mut c_void, c_uint, *mut *mut c_void) -> c_int;
    mdb_txn_commit: fn(*mut c_void) -> c_int;
    mdb_txn_abort: fn(*mut c_void);
    mdb_dbi_open: fn(*mut c_void, *const c_char, c_uint, *mut c_uint) -> c_int;
    mdb_dbi_close: fn(*mut c_void, c_uint);
    mdb_dbi_flags: fn(*mut c_void, c_uint, *mut c_uint) -> c_int;
    mdb_stat: fn(*mut c_void, c_uint, *mut Stat) -> c_int;
    mdb_drop: fn(*mut c_void, c_uint, c_int) -> c_int;
    mdb_set_compare: fn(*mut c_void, c_uint, Option<Compare>) -> c_int;
    mdb_set_dupsort: fn(*mut c_void, c_uint, Option<Compare>) -> c_int;
    mdb_cursor_open: fn(*mut c_void, c_uint, *mut *mut c_void) -> c_int;
    mdb_cursor_close: fn(*mut c_void);
    mdb_cursor_get: fn(*mut c_void, *mut Val, *mut Val, c_uint) -> c_int;
    mdb_cursor_put: fn(*mut c_void, *mut Val, *mut Val, c_uint) -> c_int;
}

const NAME: &CStr = c"liblmdb.so.0";

/// The functions, loaded once.
fn api() -> Result<&'static Api> {
    static LOADED: OnceLock<Option<Api>> = OnceLock::new();
    let mut reason = String::from("liblmdb.so.0 could not be loaded");
    let loaded = LOADED.get_or_init(|| {
        let found = load().and_then(look_up);
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

/// What `mdb_version` tells.
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

/// The line about a call that failed.
pub(crate) fn failed(call: &str, code: c_int) -> Stop {
    Stop::Failed(format!("{call} failed, error {code} {}", describe(code)))
}

fn done(code: c_int) -> Result<(), c_int> {
    if code == 0 { Ok(()) } else { Err(code) }
}

fn string(name: impl AsRef<[u8]>) -> Result<CString> {
    CString::new(name.as_ref()).map_err(|_| Stop::Failed("a name with a zero byte".into()))
}

/// What is set before an environment is opened; 0 for nothing.
#[derive(Clone, Copy, Default)]
pub(crate) struct Setup {
    pub(crate) map_size: usize,
    pub(crate) max_readers: u32,
    pub(crate) max_dbs: u32,
    pub(crate) flags: u32,
    pub(crate) mode: u32,
}

/// An environment.
pub(crate) struct Env {
    api: &'static Api,
    env: *mut c_void,
}

impl Drop for Env {
    fn drop(&mut self) {
        // SAFETY: made by mdb_env_create; transactions borrow this and have ended.
        unsafe { (self.api.mdb_env_close)(self.env) };
    }
}

impl Env {
    /// Opens; the error is the code.
    pub(crate) fn open(path: &str, setup: Setup) -> Result<Result<Env, c_int>> {
        let (api, path) = (api()?, string(path)?);
        let mut env = null_mut();
        // SAFETY: takes a place for the result.
        done(unsafe { (api.mdb_env_create)(&mut env) })
            .map_err(|code| failed("mdb_env_create", code))?;
        let made = Env { api, env };
        // SAFETY: the environment lives; the strings too.
        let code = unsafe {
            if setup.map_size > 0 {
                (api.mdb_env_set_mapsize)(env, setup.map_size);
            }
            if setup.max_readers > 0 {
                (api.mdb_env_set_maxreaders)(env, setup.max_readers);
            }
            if setup.max_dbs > 0 {
                (api.mdb_env_set_maxdbs)(env, setup.max_dbs);
            }
            (api.mdb_env_open)(env, path.as_ptr(), setup.flags, setup.mode)
        };
        Ok(done(code).map(|()| made))
    }

    pub(crate) fn info(&self) -> Result<Info> {
        let mut info = Info {
            map_address: null_mut(),
            map_size: 0,
            last_page: 0,
            last_txn: 0,
            max_readers: 0,
            readers: 0,
        };
        // SAFETY: the environment lives, and the place for the result.
        let code = unsafe { (self.api.mdb_env_info)(self.env, &mut info) };
        done(code).map(|()| info).map_err(|code| failed("mdb_env_info", code))
    }

    pub(crate) fn stat(&self) -> Result<Stat> {
        let mut stat = Stat::default();
        // SAFETY: as above.
        let code = unsafe { (self.api.mdb_env_stat)(self.env, &mut stat) };
        done(code).map(|()| stat).map_err(|code| failed("mdb_env_stat", code))
    }

    pub(crate) fn sync(&self) -> Result<()> {
        // SAFETY: the environment lives.
        let code = unsafe { (self.api.mdb_env_sync)(self.env, 1) };
        done(code).map_err(|code| failed("mdb_env_sync", code))
    }

    /// Copies to a path, or to the standard output.
    pub(crate) fn copy(&self, to: Option<&str>, flags: u32) -> Result<Result<(), c_int>> {
        let code = match to {
            Some(path) => {
                let path = string(path)?;
                // SAFETY: the environment lives, and the string.
                unsafe { (self.api.mdb_env_copy2)(self.env, path.as_ptr(), flags) }
            }
            // SAFETY: the environment lives; the descriptor is open, or the call fails.
            None => unsafe { (self.api.mdb_env_copyfd2)(self.env, libc::STDOUT_FILENO, flags) },
        };
        Ok(done(code))
    }

    /// The list of readers.
    pub(crate) fn readers(&self) -> String {
        unsafe extern "C" fn add(line: *const c_char, list: *mut c_void) -> c_int {
            // SAFETY: called below with the string that is passed there, and a C string.
            unsafe { (*list.cast::<String>()).push_str(&text(line)) };
            0
        }
        let mut list = String::new();
        let to: *mut String = &mut list;
        // SAFETY: the function fits the context.
        unsafe { (self.api.mdb_reader_list)(self.env, Some(add), to.cast()) };
        list
    }

    /// Frees the slots of dead readers and tells how many they were.
    pub(crate) fn check_readers(&self) -> c_int {
        let mut dead = 0;
        // SAFETY: the environment lives, and the place for the result.
        unsafe { (self.api.mdb_reader_check)(self.env, &mut dead) };
        dead
    }

    pub(crate) fn begin(&self, flags: u32) -> Result<Txn<'_>> {
        let mut txn = null_mut();
        // SAFETY: the environment lives as long as the transaction, which borrows it.
        let code = unsafe { (self.api.mdb_txn_begin)(self.env, null_mut(), flags, &mut txn) };
        done(code).map_err(|code| failed("mdb_txn_begin", code))?;
        Ok(Txn { api: self.api, env: self.env, txn, life: PhantomData })
    }
}

/// A transaction; undone when it is dropped.
pub(crate) struct Txn<'e> {
    api: &'static Api,
    env: *mut c_void,
    txn: *mut c_void,
    life: PhantomData<&'e Env>,
}

impl Drop for Txn<'_> {
    fn drop(&mut self) {
        if !self.txn.is_null() {
            // SAFETY: it lives, cursors borrow it and are closed.
            unsafe { (self.api.mdb_txn_abort)(self.txn) };
        }
    }
}

impl Txn<'_> {
    pub(crate) fn commit(mut self) -> Result<(), c_int> {
        let txn = std::mem::replace(&mut self.txn, null_mut());
        // SAFETY: it lives, and nobody uses it any more.
        done(unsafe { (self.api.mdb_txn_commit)(txn) })
    }

    /// A table; without a name the unnamed one.
    pub(crate) fn table(&self, name: Option<&[u8]>, flags: u32) -> Result<Result<u32, c_int>> {
        let name = name.map(string).transpose()?;
        let start = name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
        let mut dbi = 0;
        // SAFETY: the transaction lives, and the string.
        let code = unsafe { (self.api.mdb_dbi_open)(self.txn, start, flags, &mut dbi) };
        Ok(done(code).map(|()| dbi))
    }

    pub(crate) fn close(&self, dbi: u32) {
        // SAFETY: the environment lives; the handle is not used any more.
        unsafe { (self.api.mdb_dbi_close)(self.env, dbi) };
    }

    pub(crate) fn stat(&self, dbi: u32) -> Result<Stat, c_int> {
        let mut stat = Stat::default();
        // SAFETY: the transaction lives, and the place for the result.
        done(unsafe { (self.api.mdb_stat)(self.txn, dbi, &mut stat) }).map(|()| stat)
    }

    pub(crate) fn flags(&self, dbi: u32) -> Result<u32, c_int> {
        let mut flags = 0;
        // SAFETY: as above.
        done(unsafe { (self.api.mdb_dbi_flags)(self.txn, dbi, &mut flags) }).map(|()| flags)
    }

    pub(crate) fn drop_table(&self, dbi: u32, delete: bool) -> Result<(), c_int> {
        // SAFETY: the transaction lives.
        done(unsafe { (self.api.mdb_drop)(self.txn, dbi, c_int::from(delete)) })
    }

    /// Takes records in whatever order they come.
    pub(crate) fn trust_order(&self, dbi: u32, values: bool) -> Result<(), c_int> {
        unsafe extern "C" fn behind(_: *const Val, _: *const Val) -> c_int {
            1
        }
        // SAFETY: the transaction lives; the function is there as long as this program.
        unsafe {
            done((self.api.mdb_set_compare)(self.txn, dbi, Some(behind)))?;
            if values {
                done((self.api.mdb_set_dupsort)(self.txn, dbi, Some(behind)))?;
            }
        }
        Ok(())
    }

    pub(crate) fn cursor(&self, dbi: u32) -> Result<Cursor<'_>> {
        let mut cursor = null_mut();
        // SAFETY: the transaction outlives the cursor, which borrows it.
        let code = unsafe { (self.api.mdb_cursor_open)(self.txn, dbi, &mut cursor) };
        done(code).map_err(|code| failed("mdb_cursor_open", code))?;
        Ok(Cursor { api: self.api, cursor, life: PhantomData })
    }
}

/// A cursor.
pub(crate) struct Cursor<'t> {
    api: &'static Api,
    cursor: *mut c_void,
    life: PhantomData<&'t ()>,
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: it lives, for its transaction does.
        unsafe { (self.api.mdb_cursor_close)(self.cursor) };
    }
}

impl Cursor<'_> {
    /// A move; what it gives holds until the next call.
    pub(crate) fn go(&mut self, how: u32) -> Result<(&[u8], &[u8]), c_int> {
        let (mut key, mut value) = (Val::NONE, Val::NONE);
        // SAFETY: the cursor lives, and the places for the results.
        done(unsafe { (self.api.mdb_cursor_get)(self.cursor, &mut key, &mut value, how) })?;
        // SAFETY: filled by the library, good until the transaction changes, which needs this.
        Ok(unsafe { (bytes(key), bytes(value)) })
    }

    pub(crate) fn put(&mut self, key: &[u8], value: &[u8], flags: u32) -> Result<(), c_int> {
        let (mut key, mut value) = (Val::of(key), Val::of(value));
        // SAFETY: the cursor lives, and what the values point to.
        done(unsafe { (self.api.mdb_cursor_put)(self.cursor, &mut key, &mut value, flags) })
    }
}

/// # Safety
/// The value was filled by the library and is used no longer than its bytes hold.
unsafe fn bytes<'v>(val: Val) -> &'v [u8] {
    if val.size == 0 || val.data.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(val.data.cast(), val.size) }
}
