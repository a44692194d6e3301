//! Environments that the original has written, and what either library reads from them.

use std::cmp::Ordering;
use std::ffi::{c_int, c_uint};
use std::path::Path;

use support::Rng;
use support::lmdb::{Env, MDB_CREATE, MDB_NOSYNC, MDB_RDONLY, Setup, Txn, Val};

use crate::common::{Library, original};

pub(crate) use support::lmdb::{
    MDB_DUPFIXED as DUPFIXED, MDB_DUPSORT as DUPSORT, MDB_INTEGERDUP as INTEGERDUP,
    MDB_INTEGERKEY as INTEGERKEY, MDB_NOLOCK as NOLOCK, MDB_NOSUBDIR as NOSUBDIR,
    MDB_RDONLY as RDONLY, MDB_REVERSEDUP as REVERSEDUP, MDB_REVERSEKEY as REVERSEKEY,
};

/// A table: no name is the unnamed one. What the name says of orders, the program's functions do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: Option<String>,
    pub(crate) flags: c_uint,
    pub(crate) records: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Table {
    pub(crate) fn new(name: &str, flags: c_uint, records: Vec<(Vec<u8>, Vec<u8>)>) -> Table {
        Table { name: (!name.is_empty()).then(|| name.into()), flags, records }
    }

    fn says(&self, word: &str) -> bool {
        self.name.as_ref().is_some_and(|name| name.contains(word))
    }

    /// Its handle, with the functions that its name asks for.
    pub(crate) fn handle(&self, txn: &Txn<'_>, flags: c_uint) -> c_uint {
        let name = self.name.as_ref().map(|name| name.as_bytes());
        let dbi = txn.table(name, flags).unwrap_or_else(|e| panic!("{:?}: {e}", self.name));
        // SAFETY: these are orders.
        unsafe {
            if self.says("backkeys") {
                txn.set_compare(dbi, backwards).unwrap();
            }
            if self.says("caseless") {
                txn.set_compare(dbi, caseless).unwrap();
            }
            if self.says("backvalues") {
                txn.set_dupsort(dbi, backwards).unwrap();
            }
        }
        dbi
    }
}

/// The opposite of the usual order.
///
/// # Safety
/// Called by a library with valid values.
pub(crate) unsafe extern "C" fn backwards(a: *const Val, b: *const Val) -> c_int {
    // SAFETY: the libraries hand valid values.
    unsafe { (*b).bytes().cmp((*a).bytes()) as c_int }
}

/// Without regard to upper and lower case.
///
/// # Safety
/// Called by a library with valid values.
pub(crate) unsafe extern "C" fn caseless(a: *const Val, b: *const Val) -> c_int {
    // SAFETY: the libraries hand valid values.
    let (a, b) = unsafe { ((*a).bytes(), (*b).bytes()) };
    let ordering: Ordering = a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase());
    ordering as c_int
}

/// An environment of a library; a map size of 0 is what the file says.
pub(crate) fn open(library: Library, path: &Path, flags: c_uint, map_size: usize) -> Env {
    let setup = Setup { map_size, ..Setup::test(flags) };
    Env::open(library.api, path, setup)
        .unwrap_or_else(|e| panic!("{}: {}: {e}", library.label, path.display()))
}

/// Writes tables in one transaction.
pub(crate) fn put(env: &Env, tables: &[Table]) {
    let mut txn = env.begin(0).unwrap();
    for table in tables {
        let dbi = table.handle(&txn, table.flags | MDB_CREATE);
        for (key, value) in &table.records {
            txn.put(dbi, key, value, 0).unwrap_or_else(|e| panic!("{:?}: {e}", table.name));
        }
    }
    txn.commit().unwrap();
}

/// The tables with what is in them now, by walks; of the unnamed one, without names.
pub(crate) fn contents(env: &Env, tables: &[Table]) -> Vec<Table> {
    let txn = env.begin(MDB_RDONLY).unwrap();
    let names: Vec<_> = tables.iter().filter_map(|t| t.name.as_deref()).collect();
    let read = |table: &Table| {
        let dbi = table.handle(&txn, 0);
        let mut records = txn.records(dbi).unwrap();
        let is_name = |key: &[u8]| names.iter().any(|name| name.as_bytes() == key);
        records.retain(|(key, _)| table.name.is_some() || !is_name(key));
        Table { name: table.name.clone(), flags: txn.flags(dbi).unwrap(), records }
    };
    tables.iter().map(read).collect()
}

/// Writes tables with the original.
pub(crate) fn write(path: &Path, flags: c_uint, tables: &[Table]) {
    put(&open(original(), path, flags | MDB_NOSYNC, 256 << 20), tables);
}

/// What a library reads from an environment.
pub(crate) fn read(library: Library, path: &Path, flags: c_uint, tables: &[Table]) -> Vec<Table> {
    contents(&open(library, path, flags, 0), tables)
}

/// Records of a table with these flags; `many` makes trees of values.
fn records(rng: &mut Rng, flags: c_uint, many: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let fixed = flags & (DUPFIXED | INTEGERDUP) != 0;
    let (keys, size) = (if many { 3 } else { 200 + rng.index(200) }, rng.pick(&[4, 8]));
    let mut all = Vec::new();
    for _ in 0..keys {
        let len =
            if flags & INTEGERKEY != 0 { 8 } else { 1 + rng.index(if many { 9 } else { 511 }) };
        let key: Vec<u8> = rng.bytes(len);
        if flags & DUPSORT == 0 {
            let len = if rng.one_in(9) { rng.index(20_000) } else { rng.index(300) };
            all.push((key, rng.bytes(len)));
            continue;
        }
        for _ in 0..if many { 1 + rng.index(2000) } else { 1 + rng.index(9) } {
            let len = if fixed { size } else { 1 + rng.index(40) };
            all.push((key.clone(), rng.bytes(len)));
        }
    }
    all
}

/// Every kind of table that the original has, and tables in a program's own orders.
pub(crate) fn all_kinds(rng: &mut Rng) -> Vec<Table> {
    let values = [
        0,
        DUPSORT,
        DUPSORT | REVERSEDUP,
        DUPSORT | DUPFIXED,
        DUPSORT | INTEGERDUP,
        DUPSORT | DUPFIXED | INTEGERDUP,
        DUPSORT | DUPFIXED | REVERSEDUP,
    ];
    let mut all = vec![Table::new("", 0, records(rng, 0, false))];
    for keys in [0, REVERSEKEY, INTEGERKEY] {
        for flags in values.map(|values| keys | values) {
            for many in [false, true] {
                let name = format!("table {flags:02x} {many}");
                all.push(Table::new(&name, flags, records(rng, flags, many)));
            }
        }
    }
    for (flags, many) in [(0, false), (DUPSORT, false), (DUPSORT, true), (DUPSORT | DUPFIXED, true)]
    {
        for orders in ["backkeys", "backvalues", "backkeys backvalues"] {
            if flags != 0 || orders == "backkeys" {
                let name = format!("{orders} {flags:02x} {many}");
                all.push(Table::new(&name, flags, records(rng, flags, many)));
            }
        }
    }
    all.push(Table::new("empty", DUPSORT, Vec::new()));
    all.push(Table::new("backkeys empty", 0, Vec::new()));
    all
}
