//! The original library, to write files and to say what is in them.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

use lmdb_master_sys as ffi;
use tempfile::TempDir;

pub(crate) const REVERSEKEY: u32 = ffi::MDB_REVERSEKEY;
pub(crate) const DUPSORT: u32 = ffi::MDB_DUPSORT;
pub(crate) const INTEGERKEY: u32 = ffi::MDB_INTEGERKEY;
pub(crate) const DUPFIXED: u32 = ffi::MDB_DUPFIXED;
pub(crate) const INTEGERDUP: u32 = ffi::MDB_INTEGERDUP;
pub(crate) const REVERSEDUP: u32 = ffi::MDB_REVERSEDUP;

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) flags: u32,
}

/// Keys and values.
pub(crate) type Contents = Vec<(Vec<u8>, Vec<u8>)>;

#[track_caller]
fn check(code: i32) {
    assert_eq!(code, 0, "the original refused");
}

fn val(bytes: &[u8]) -> ffi::MDB_val {
    ffi::MDB_val { mv_size: bytes.len(), mv_data: bytes.as_ptr().cast_mut().cast() }
}

/// An environment in one file.
struct Original {
    env: *mut ffi::MDB_env,
}

impl Drop for Original {
    fn drop(&mut self) {
        // SAFETY: it was opened, and its transactions have ended.
        unsafe { ffi::mdb_env_close(self.env) };
    }
}

impl Original {
    fn open(path: &Path) -> Original {
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        let mut env = null_mut();
        // SAFETY: the calls are made in the documented order with valid pointers.
        unsafe {
            check(ffi::mdb_env_create(&mut env));
            check(ffi::mdb_env_set_mapsize(env, 1 << 30));
            check(ffi::mdb_env_set_maxdbs(env, 100));
            check(ffi::mdb_env_open(
                env,
                name.as_ptr(),
                ffi::MDB_NOSUBDIR | ffi::MDB_NOSYNC,
                0o644,
            ));
        }
        Original { env }
    }

    fn table(&self, txn: *mut ffi::MDB_txn, sample: &Sample) -> ffi::MDB_dbi {
        let name = sample.name.as_ref().map(|name| CString::new(name.clone()).unwrap());
        let name = name.as_ref().map_or(null(), |name| name.as_ptr());
        let mut dbi = 0;
        // SAFETY: the transaction is under way, the name lives until after the call.
        check(unsafe { ffi::mdb_dbi_open(txn, name, sample.flags | ffi::MDB_CREATE, &mut dbi) });
        dbi
    }

    fn put(&self, sample: &Sample, contents: &Contents) {
        let mut txn = null_mut();
        // SAFETY: one transaction from its begin to its commit; keys and values live meanwhile.
        unsafe {
            check(ffi::mdb_txn_begin(self.env, null_mut(), 0, &mut txn));
            let dbi = self.table(txn, sample);
            for (key, value) in contents {
                let (mut key, mut value) = (val(key), val(value));
                check(ffi::mdb_put(txn, dbi, &mut key, &mut value, 0));
            }
            check(ffi::mdb_txn_commit(txn));
        }
    }

    /// What is in a table, in its order; named tables are left out.
    fn contents(&self, sample: &Sample, names: &[Vec<u8>]) -> Contents {
        let (mut txn, mut cursor) = (null_mut(), null_mut());
        let mut all = Contents::new();
        // SAFETY: the cursor ends before its transaction; what it gives is copied at once.
        unsafe {
            check(ffi::mdb_txn_begin(self.env, null_mut(), 0, &mut txn));
            let dbi = self.table(txn, sample);
            check(ffi::mdb_cursor_open(txn, dbi, &mut cursor));
            let (mut key, mut value) = (val(&[]), val(&[]));
            while ffi::mdb_cursor_get(cursor, &mut key, &mut value, ffi::MDB_NEXT) == 0 {
                let key = std::slice::from_raw_parts(key.mv_data.cast::<u8>(), key.mv_size);
                let value = match value.mv_size {
                    0 => &[],
                    size => std::slice::from_raw_parts(value.mv_data.cast::<u8>(), size),
                };
                if sample.name.is_some() || !names.iter().any(|name| name == key) {
                    all.push((key.to_vec(), value.to_vec()));
                }
            }
            ffi::mdb_cursor_close(cursor);
            ffi::mdb_txn_abort(txn);
        }
        all
    }
}

/// Writes tables to a file; gives it with what the original then reads from it, the unnamed table
/// first.
pub(crate) fn write(samples: &[(Sample, Contents)]) -> (TempDir, PathBuf, Vec<(Sample, Contents)>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.mdb");
    let original = Original::open(&path);
    let mut expected = Vec::new();
    for (sample, contents) in samples {
        original.put(sample, contents);
    }
    let names: Vec<_> = samples.iter().filter_map(|(sample, _)| sample.name.clone()).collect();
    for (sample, _) in samples {
        expected.push((sample.clone(), original.contents(sample, &names)));
    }
    if !samples.iter().any(|(sample, _)| sample.name.is_none()) {
        expected.push((Sample { name: None, flags: 0 }, Contents::new()));
    }
    expected.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    (dir, path, expected)
}

/// Adds to the file of [`write`].
#[allow(dead_code, reason = "not all tests need it")]
pub(crate) fn append(dir: &Path, samples: &[(Sample, Contents)]) {
    let original = Original::open(&dir.join("sample.mdb"));
    for (sample, contents) in samples {
        original.put(sample, contents);
    }
}

/// Writes a table that a program keeps in the opposite of the usual order.
#[allow(dead_code, reason = "not all tests need it")]
pub(crate) fn write_backwards(sample: &Sample, contents: &Contents) -> (TempDir, PathBuf) {
    /// # Safety
    /// Called by LMDB with valid values.
    unsafe extern "C" fn backwards(a: *const ffi::MDB_val, b: *const ffi::MDB_val) -> i32 {
        // SAFETY: LMDB hands valid values.
        let bytes = |v: *const ffi::MDB_val| unsafe {
            std::slice::from_raw_parts((*v).mv_data.cast::<u8>(), (*v).mv_size)
        };
        bytes(b).cmp(bytes(a)) as i32
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.mdb");
    let original = Original::open(&path);
    let mut txn = null_mut();
    // SAFETY: one transaction from its begin to its commit; the comparison is set before it is used.
    unsafe {
        check(ffi::mdb_txn_begin(original.env, null_mut(), 0, &mut txn));
        let dbi = original.table(txn, sample);
        check(ffi::mdb_set_compare(txn, dbi, Some(backwards)));
        for (key, value) in contents {
            let (mut key, mut value) = (val(key), val(value));
            check(ffi::mdb_put(txn, dbi, &mut key, &mut value, 0));
        }
        check(ffi::mdb_txn_commit(txn));
    }
    (dir, path)
}
