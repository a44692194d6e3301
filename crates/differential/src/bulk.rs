//! LMDB for the figures: one table with many values under a key, filled and read in bulk.

use std::path::Path;

use support::lmdb::{self, Env, Failed, LINKED, Setup};
use support::lmdb::{MDB_CREATE, MDB_DUPFIXED, MDB_DUPSORT, MDB_NOTFOUND, MDB_RDONLY};

/// An environment with one table.
pub struct Table {
    env: Env,
    dbi: u32,
}

/// A write transaction on the table.
pub struct Txn<'t> {
    txn: lmdb::Txn<'t>,
    dbi: u32,
}

impl Table {
    /// A new one in a folder; with `fixed` all values have one size.
    pub fn create(dir: &Path, fixed: bool) -> Table {
        let flags = lmdb::MDB_NOSUBDIR | lmdb::MDB_NOSYNC | lmdb::MDB_NOLOCK;
        let setup = Setup { map_size: 16 << 30, max_dbs: 1, ..Setup::test(flags) };
        let env = Env::open(&LINKED, &dir.join("lmdb"), setup).expect("LMDB opens");
        let many = if fixed { MDB_DUPSORT | MDB_DUPFIXED } else { MDB_DUPSORT };
        let txn = env.begin(0).expect("LMDB begins");
        let dbi = txn.table(Some(b"t"), MDB_CREATE | many).expect("LMDB makes a table");
        txn.commit().expect("LMDB commits");
        Table { env, dbi }
    }

    /// Begins a write transaction.
    pub fn begin(&self) -> Txn<'_> {
        Txn { txn: self.env.begin(0).expect("LMDB begins"), dbi: self.dbi }
    }

    /// Bytes up to the last page in use.
    pub fn used_bytes(&self) -> u64 {
        let info = self.env.info().expect("LMDB has figures");
        let stat = self.env.stat().expect("LMDB has figures");
        (info.last_page as u64 + 1) * u64::from(stat.page_size)
    }

    /// Shows what steps of a cursor in a read transaction give: of the first, then of the others.
    fn walk(&self, key: &[u8], [first, next]: [u32; 2], mut each: impl FnMut(&[u8])) {
        let txn = self.env.begin(MDB_RDONLY).expect("LMDB begins");
        let mut cursor = txn.cursor(self.dbi).expect("LMDB opens a cursor");
        cursor.go_to(key, lmdb::MDB_SET).expect("the key is there");
        let mut step = first;
        loop {
            match cursor.go(step) {
                Ok((_, value)) => each(value),
                Err(Failed { code: MDB_NOTFOUND, .. }) => return,
                Err(failed) => panic!("{failed}"),
            }
            step = next;
        }
    }

    /// Shows each value of a key.
    pub fn each_value(&self, key: &[u8], each: impl FnMut(&[u8])) {
        self.walk(key, [lmdb::MDB_FIRST_DUP, lmdb::MDB_NEXT_DUP], each);
    }

    /// Shows the values of a key, as many at once as lie on a page.
    pub fn each_page_of_values(&self, key: &[u8], each: impl FnMut(&[u8])) {
        self.walk(key, [lmdb::MDB_GET_MULTIPLE, lmdb::MDB_NEXT_MULTIPLE], each);
    }
}

impl Txn<'_> {
    /// Adds a value.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.txn.put(self.dbi, key, value, 0).expect("LMDB puts");
    }

    /// A nested transaction that does nothing.
    pub fn begin_and_commit_nested(&mut self) {
        self.txn.nested().and_then(lmdb::Txn::commit).expect("LMDB nests");
    }

    /// Keeps the changes.
    pub fn commit(self) {
        self.txn.commit().expect("LMDB commits");
    }
}
