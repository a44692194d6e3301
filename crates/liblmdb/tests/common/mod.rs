//! Both libraries behind one table of functions: the original, linked in, and ours, loaded from
//! where it was built.

#![allow(dead_code, non_camel_case_types, clippy::missing_transmute_annotations)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub(crate) type Env = c_void;
pub(crate) type Txn = c_void;
pub(crate) type Cursor = c_void;

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Val {
    pub size: usize,
    pub data: *const c_void,
}

impl Val {
    pub(crate) fn of(bytes: &[u8]) -> Val {
        Val { size: bytes.len(), data: bytes.as_ptr().cast() }
    }

    pub(crate) fn none() -> Val {
        Val { size: 0, data: std::ptr::null() }
    }

    /// What it points to now.
    pub(crate) fn copy(&self) -> Vec<u8> {
        if self.size == 0 || self.data.is_null() {
            return Vec::new();
        }
        // SAFETY: filled by one of the libraries just now, or by the test.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.size) }.to_vec()
    }
}

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Stat {
    pub page_size: c_uint,
    pub depth: c_uint,
    pub branch_pages: usize,
    pub leaf_pages: usize,
    pub overflow_pages: usize,
    pub entries: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    pub map_address: *mut c_void,
    pub map_size: usize,
    pub last_page: usize,
    pub last_txn: usize,
    pub max_readers: c_uint,
    pub readers: c_uint,
}

pub(crate) type Compare = unsafe extern "C" fn(*const Val, *const Val) -> c_int;

macro_rules! api {
    ($($name:ident: fn($($arg:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of a library.
        pub(crate) struct Api {
            pub label: &'static str,
            $(pub $name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
        }

        /// The original; `LMDB_ORIGINAL` names another build of it.
        pub(crate) fn original() -> Api {
            if let Some(path) = std::env::var_os("LMDB_ORIGINAL") {
                return named("LMDB", Path::new(&path));
            }
            Api {
                label: "LMDB",
                // SAFETY: the same functions with the same layouts under other names of types.
                $($name: unsafe { std::mem::transmute(lmdb_master_sys::$name as *const ()) },)*
            }
        }

        /// Ours.
        pub(crate) fn ours() -> Api {
            named("Zubilo", library())
        }

        /// A library that is loaded.
        fn named(label: &'static str, path: &Path) -> Api {
            let library = load(path);
            let symbol = |name: &str| {
                let name = CString::new(name).expect("a name");
                // SAFETY: looks a name up in a library that stays loaded.
                let found = unsafe { dlsym(library, name.as_ptr()) };
                assert!(!found.is_null(), "{name:?} is not exported");
                found
            };
            Api {
                label,
                // SAFETY: as declared in lmdb.h.
                $($name: unsafe { std::mem::transmute(symbol(stringify!($name))) },)*
            }
        }
    };
}

api! {
    mdb_env_create: fn(*mut *mut Env) -> c_int;
    mdb_env_open: fn(*mut Env, *const c_char, c_uint, c_uint) -> c_int;
    mdb_env_close: fn(*mut Env);
    mdb_env_set_mapsize: fn(*mut Env, usize) -> c_int;
    mdb_env_set_maxdbs: fn(*mut Env, c_uint) -> c_int;
    mdb_env_set_maxreaders: fn(*mut Env, c_uint) -> c_int;
    mdb_env_info: fn(*mut Env, *mut Info) -> c_int;
    mdb_env_stat: fn(*mut Env, *mut Stat) -> c_int;
    mdb_txn_begin: fn(*mut Env, *mut Txn, c_uint, *mut *mut Txn) -> c_int;
    mdb_txn_commit: fn(*mut Txn) -> c_int;
    mdb_txn_abort: fn(*mut Txn);
    mdb_txn_reset: fn(*mut Txn);
    mdb_txn_renew: fn(*mut Txn) -> c_int;
    mdb_txn_id: fn(*mut Txn) -> usize;
    mdb_dbi_open: fn(*mut Txn, *const c_char, c_uint, *mut c_uint) -> c_int;
    mdb_dbi_close: fn(*mut Env, c_uint);
    mdb_dbi_flags: fn(*mut Txn, c_uint, *mut c_uint) -> c_int;
    mdb_stat: fn(*mut Txn, c_uint, *mut Stat) -> c_int;
    mdb_drop: fn(*mut Txn, c_uint, c_int) -> c_int;
    mdb_set_compare: fn(*mut Txn, c_uint, Option<Compare>) -> c_int;
    mdb_set_dupsort: fn(*mut Txn, c_uint, Option<Compare>) -> c_int;
    mdb_get: fn(*mut Txn, c_uint, *mut Val, *mut Val) -> c_int;
    mdb_put: fn(*mut Txn, c_uint, *mut Val, *mut Val, c_uint) -> c_int;
    mdb_del: fn(*mut Txn, c_uint, *mut Val, *mut Val) -> c_int;
    mdb_cmp: fn(*mut Txn, c_uint, *const Val, *const Val) -> c_int;
    mdb_dcmp: fn(*mut Txn, c_uint, *const Val, *const Val) -> c_int;
    mdb_cursor_open: fn(*mut Txn, c_uint, *mut *mut Cursor) -> c_int;
    mdb_cursor_close: fn(*mut Cursor);
    mdb_cursor_renew: fn(*mut Txn, *mut Cursor) -> c_int;
    mdb_cursor_get: fn(*mut Cursor, *mut Val, *mut Val, c_uint) -> c_int;
    mdb_cursor_put: fn(*mut Cursor, *mut Val, *mut Val, c_uint) -> c_int;
    mdb_cursor_del: fn(*mut Cursor, c_uint) -> c_int;
    mdb_cursor_count: fn(*mut Cursor, *mut usize) -> c_int;
    mdb_strerror: fn(c_int) -> *const c_char;
    mdb_version: fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
}

unsafe extern "C" {
    fn dlopen(path: *const c_char, how: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

/// The library as it is built for these tests; `LMDB_OURS` names another one.
pub(crate) fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(path) = std::env::var_os("LMDB_OURS") {
            return path.into();
        }
        // The tests' own program lies in `target/PROFILE/deps`.
        let program = std::env::current_exe().expect("this program");
        let profile = program.ancestors().nth(2).expect("target/PROFILE").to_path_buf();
        let built = profile.join("liblmdb.so");
        let release = profile.file_name().is_some_and(|name| name == "release");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "-p", "liblmdb"]);
        cargo.args(release.then_some("--release"));
        cargo.arg("--target-dir").arg(profile.parent().expect("target"));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(cargo.status().expect("cargo runs").success(), "the library was not built");
        built
    })
}

fn load(path: &Path) -> *mut c_void {
    const RTLD_NOW: c_int = 2;
    let path = CString::new(path.as_os_str().as_encoded_bytes()).expect("a path");
    // SAFETY: loads a library whose initialisers are Rust's own.
    let loaded = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
    if loaded.is_null() {
        // SAFETY: after a failure there is a text.
        panic!("{:?}", unsafe { CStr::from_ptr(dlerror()) });
    }
    loaded
}

/// Numbers that look random; the seed tells all.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// Below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
