//! The original library, to write files and to say what is in them.

use std::ffi::c_int;
use std::path::{Path, PathBuf};

// The library that is linked.
use lmdb_master_sys as _;
use support::lmdb::{
    Api, Env, LINKED, MDB_CREATE, MDB_NOSUBDIR, MDB_NOSYNC, MDB_RDONLY, Setup, Txn, Val,
};
use tempfile::TempDir;

pub(crate) use support::lmdb::{
    MDB_DUPFIXED as DUPFIXED, MDB_DUPSORT as DUPSORT, MDB_INTEGERDUP as INTEGERDUP,
    MDB_INTEGERKEY as INTEGERKEY, MDB_REVERSEDUP as REVERSEDUP, MDB_REVERSEKEY as REVERSEKEY,
};

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) flags: u32,
}

/// Keys and values.
pub(crate) type Contents = Vec<(Vec<u8>, Vec<u8>)>;

fn open(path: &Path) -> Env {
    const ORIGINAL: &Api = &LINKED;
    let setup = Setup { map_size: 1 << 30, ..Setup::test(MDB_NOSUBDIR | MDB_NOSYNC) };
    Env::open(ORIGINAL, path, setup).unwrap()
}

/// The table of a sample, which is created if it is not there.
fn table(txn: &Txn<'_>, sample: &Sample) -> u32 {
    txn.table(sample.name.as_deref(), sample.flags | MDB_CREATE).unwrap()
}

fn put(env: &Env, sample: &Sample, contents: &Contents) {
    let mut txn = env.begin(0).unwrap();
    let dbi = table(&txn, sample);
    for (key, value) in contents {
        txn.put(dbi, key, value, 0).unwrap();
    }
    txn.commit().unwrap();
}

/// What is in a table, in its order; named tables are left out.
fn contents(env: &Env, sample: &Sample, names: &[Vec<u8>]) -> Contents {
    let txn = env.begin(MDB_RDONLY).unwrap();
    let mut all = txn.records(table(&txn, sample)).unwrap();
    all.retain(|(key, _)| sample.name.is_some() || !names.contains(key));
    all
}

/// Writes tables to a file; gives it with what the original then reads from it, the unnamed table
/// first.
pub(crate) fn write(samples: &[(Sample, Contents)]) -> (TempDir, PathBuf, Vec<(Sample, Contents)>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.mdb");
    let env = open(&path);
    let mut expected = Vec::new();
    for (sample, contents) in samples {
        put(&env, sample, contents);
    }
    let names: Vec<_> = samples.iter().filter_map(|(sample, _)| sample.name.clone()).collect();
    for (sample, _) in samples {
        expected.push((sample.clone(), contents(&env, sample, &names)));
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
    let env = open(&dir.join("sample.mdb"));
    for (sample, contents) in samples {
        put(&env, sample, contents);
    }
}

/// Writes a table that a program keeps in the opposite of the usual order.
#[allow(dead_code, reason = "not all tests need it")]
pub(crate) fn write_backwards(sample: &Sample, contents: &Contents) -> (TempDir, PathBuf) {
    /// # Safety
    /// Called by LMDB with valid values.
    unsafe extern "C" fn backwards(a: *const Val, b: *const Val) -> c_int {
        // SAFETY: LMDB hands valid values.
        unsafe { (*b).bytes().cmp((*a).bytes()) as c_int }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.mdb");
    let env = open(&path);
    let mut txn = env.begin(0).unwrap();
    let dbi = table(&txn, sample);
    // SAFETY: an order of bytes.
    unsafe { txn.set_compare(dbi, backwards) }.unwrap();
    for (key, value) in contents {
        txn.put(dbi, key, value, 0).unwrap();
    }
    txn.commit().unwrap();
    drop(env);
    (dir, path)
}
