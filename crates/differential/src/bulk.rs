//! LMDB for the figures: one table with many values under a key, filled and read in bulk.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use lmdb_master_sys as ffi;

/// An environment with one table.
pub struct Table {
    env: *mut ffi::MDB_env,
    dbi: ffi::MDB_dbi,
    /// The write transaction that runs, if one does.
    txn: *mut ffi::MDB_txn,
}

const EMPTY: ffi::MDB_val = ffi::MDB_val { mv_size: 0, mv_data: null_mut() };

fn val(bytes: &[u8]) -> ffi::MDB_val {
    ffi::MDB_val { mv_size: bytes.len(), mv_data: bytes.as_ptr().cast_mut().cast() }
}

#[track_caller]
fn must(code: i32) {
    assert_eq!(code, 0, "LMDB refused");
}

impl Table {
    /// A new one in a folder; with `fixed` all values have one size.
    pub fn create(dir: &Path, fixed: bool) -> Table {
        let name = CString::new(dir.join("lmdb").as_os_str().as_bytes()).expect("a path");
        let mut table = Table { env: null_mut(), dbi: 0, txn: null_mut() };
        let flags = ffi::MDB_NOSUBDIR | ffi::MDB_NOSYNC | ffi::MDB_NOLOCK;
        let many = if fixed { ffi::MDB_DUPSORT | ffi::MDB_DUPFIXED } else { ffi::MDB_DUPSORT };
        // SAFETY: the calls are made in the documented order with valid pointers.
        unsafe {
            must(ffi::mdb_env_create(&mut table.env));
            must(ffi::mdb_env_set_mapsize(table.env, 16 << 30));
            must(ffi::mdb_env_set_maxdbs(table.env, 1));
            must(ffi::mdb_env_open(table.env, name.as_ptr(), flags, 0o644));
        }
        table.begin();
        // SAFETY: as above.
        unsafe {
            must(ffi::mdb_dbi_open(
                table.txn,
                c"t".as_ptr(),
                ffi::MDB_CREATE | many,
                &mut table.dbi,
            ));
        }
        table.commit();
        table
    }

    /// Begins the write transaction.
    pub fn begin(&mut self) {
        // SAFETY: the environment is open.
        must(unsafe { ffi::mdb_txn_begin(self.env, null_mut(), 0, &mut self.txn) });
    }

    /// Adds a value.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        let (mut key, mut value) = (val(key), val(value));
        // SAFETY: the transaction runs, the values live through the call.
        must(unsafe { ffi::mdb_put(self.txn, self.dbi, &mut key, &mut value, 0) });
    }

    /// Commits the write transaction.
    pub fn commit(&mut self) {
        // SAFETY: the transaction runs, and is forgotten.
        must(unsafe { ffi::mdb_txn_commit(self.txn) });
        self.txn = null_mut();
    }

    /// A nested transaction that does nothing, in the one that runs.
    pub fn begin_and_commit_nested(&mut self) {
        let mut nested = null_mut();
        // SAFETY: the transaction runs; the nested one ends here.
        unsafe {
            must(ffi::mdb_txn_begin(self.env, self.txn, 0, &mut nested));
            must(ffi::mdb_txn_commit(nested));
        }
    }

    /// Bytes up to the last page in use.
    pub fn used_bytes(&self) -> u64 {
        // SAFETY: the structures are plain numbers, and the calls fill them.
        unsafe {
            let mut info: ffi::MDB_envinfo = std::mem::zeroed();
            let mut stat: ffi::MDB_stat = std::mem::zeroed();
            must(ffi::mdb_env_info(self.env, &mut info));
            must(ffi::mdb_env_stat(self.env, &mut stat));
            (info.me_last_pgno as u64 + 1) * u64::from(stat.ms_psize)
        }
    }

    /// Shows what steps of a cursor in a read transaction give: of the first, then of the others.
    fn walk(&self, key: &[u8], steps: [ffi::MDB_cursor_op; 2], mut each: impl FnMut(&[u8])) {
        let (mut txn, mut cursor) = (null_mut(), null_mut());
        let (mut key, mut value) = (val(key), EMPTY);
        // SAFETY: the calls are made in the documented order; a value is used before the next step.
        unsafe {
            must(ffi::mdb_txn_begin(self.env, null_mut(), ffi::MDB_RDONLY, &mut txn));
            must(ffi::mdb_cursor_open(txn, self.dbi, &mut cursor));
            must(ffi::mdb_cursor_get(cursor, &mut key, &mut value, ffi::MDB_SET));
            let mut code = ffi::mdb_cursor_get(cursor, &mut key, &mut value, steps[0]);
            while code == 0 {
                each(std::slice::from_raw_parts(value.mv_data.cast(), value.mv_size));
                code = ffi::mdb_cursor_get(cursor, &mut key, &mut value, steps[1]);
            }
            assert_eq!(code, ffi::MDB_NOTFOUND, "LMDB refused");
            ffi::mdb_cursor_close(cursor);
            ffi::mdb_txn_abort(txn);
        }
    }

    /// Shows each value of a key.
    pub fn each_value(&self, key: &[u8], each: impl FnMut(&[u8])) {
        self.walk(key, [ffi::MDB_FIRST_DUP, ffi::MDB_NEXT_DUP], each);
    }

    /// Shows the values of a key, as many at once as lie on a page.
    pub fn each_page_of_values(&self, key: &[u8], each: impl FnMut(&[u8])) {
        self.walk(key, [ffi::MDB_GET_MULTIPLE, ffi::MDB_NEXT_MULTIPLE], each);
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: what runs is ended first; nothing is used after.
        unsafe {
            if !self.txn.is_null() {
                ffi::mdb_txn_abort(self.txn);
            }
            ffi::mdb_env_close(self.env);
        }
    }
}
