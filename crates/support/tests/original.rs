//! The declarations against the original's own, and the handles at work on it.

use lmdb_master_sys as ffi;
use std::mem::{align_of, size_of};

use support::lmdb::{self, *};

macro_rules! same {
    ($($name:ident)*) => {
        /// Names that are compared below.
        const COMPARED: &[&str] = &[$(stringify!($name),)*];

        fn original() -> Vec<i64> {
            vec![$(ffi::$name as i64,)*]
        }
    };
}

same! {
    MDB_FIXEDMAP
    MDB_NOSUBDIR
    MDB_NOSYNC
    MDB_RDONLY
    MDB_NOMETASYNC
    MDB_WRITEMAP
    MDB_MAPASYNC
    MDB_NOTLS
    MDB_NOLOCK
    MDB_NORDAHEAD
    MDB_NOMEMINIT
    MDB_PREVSNAPSHOT
    MDB_REVERSEKEY
    MDB_DUPSORT
    MDB_INTEGERKEY
    MDB_DUPFIXED
    MDB_INTEGERDUP
    MDB_REVERSEDUP
    MDB_CREATE
    MDB_NOOVERWRITE
    MDB_NODUPDATA
    MDB_CURRENT
    MDB_RESERVE
    MDB_APPEND
    MDB_APPENDDUP
    MDB_MULTIPLE
    MDB_CP_COMPACT
    MDB_FIRST
    MDB_FIRST_DUP
    MDB_GET_BOTH
    MDB_GET_BOTH_RANGE
    MDB_GET_CURRENT
    MDB_GET_MULTIPLE
    MDB_LAST
    MDB_LAST_DUP
    MDB_NEXT
    MDB_NEXT_DUP
    MDB_NEXT_MULTIPLE
    MDB_NEXT_NODUP
    MDB_PREV
    MDB_PREV_DUP
    MDB_PREV_NODUP
    MDB_SET
    MDB_SET_KEY
    MDB_SET_RANGE
    MDB_PREV_MULTIPLE
    MDB_KEYEXIST
    MDB_NOTFOUND
    MDB_PAGE_NOTFOUND
    MDB_CORRUPTED
    MDB_PANIC
    MDB_VERSION_MISMATCH
    MDB_INVALID
    MDB_MAP_FULL
    MDB_DBS_FULL
    MDB_READERS_FULL
    MDB_TXN_FULL
    MDB_MAP_RESIZED
    MDB_INCOMPATIBLE
    MDB_BAD_RSLOT
    MDB_BAD_TXN
    MDB_BAD_VALSIZE
    MDB_BAD_DBI
}

#[test]
fn numbers_are_those_of_the_original() {
    let names: Vec<_> = NUMBERS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, COMPARED, "each number is compared");
    for ((name, ours), theirs) in NUMBERS.iter().zip(original()) {
        assert_eq!(*ours, theirs, "{name}");
    }
}

#[test]
fn structures_have_the_sizes_of_the_original() {
    fn same<Ours, Theirs>() {
        assert_eq!(size_of::<Ours>(), size_of::<Theirs>());
        assert_eq!(align_of::<Ours>(), align_of::<Theirs>());
    }
    same::<Val, ffi::MDB_val>();
    same::<Stat, ffi::MDB_stat>();
    same::<Info, ffi::MDB_envinfo>();
}

const API: &Api = &LINKED;

#[test]
fn records_come_back_in_order() -> Result<(), Failed> {
    let dir = tempfile::tempdir().unwrap();
    let env = Env::open(API, dir.path(), Setup::test(MDB_NOSYNC))?;
    let mut txn = env.begin(0)?;
    let fruit = txn.table(Some(b"fruit"), MDB_CREATE)?;
    txn.put(fruit, b"banana", b"yellow", 0)?;
    txn.put_in_place(fruit, b"apple", b"red")?;
    let again = txn.put(fruit, b"apple", b"green", MDB_NOOVERWRITE);
    assert_eq!(again, Err(Failed { call: "mdb_put", code: MDB_KEYEXIST }));
    let many = txn.table(Some(b"many"), MDB_CREATE | MDB_DUPSORT | MDB_DUPFIXED)?;
    txn.cursor(many)?.put_many(b"key", b"bbaacc", 2)?;
    let mut nested = txn.nested()?;
    assert!(nested.del(many, b"key", Some(b"bb"))? && !nested.del(many, b"none", None)?);
    drop(nested);
    assert!(txn.del(many, b"key", Some(b"cc"))?);
    txn.commit()?;

    let txn = env.begin(MDB_RDONLY)?;
    let pair = |k: &str, v: &str| (k.as_bytes().to_vec(), v.as_bytes().to_vec());
    assert_eq!(txn.records(fruit)?, [pair("apple", "red"), pair("banana", "yellow")]);
    assert_eq!(txn.records(many)?, [pair("key", "aa"), pair("key", "bb")]);
    assert_eq!(txn.flags(many)?, MDB_DUPSORT | MDB_DUPFIXED);
    assert_eq!((txn.stat(many)?.entries, env.stat()?.entries), (2, 2));
    let mut cursor = txn.cursor(fruit)?;
    assert_eq!(cursor.go_to(b"b", MDB_SET_RANGE)?, (&b"banana"[..], &b"yellow"[..]));
    assert_eq!(cursor.go(MDB_NEXT).map(drop).map_err(|e| e.code), Err(MDB_NOTFOUND));
    assert!(env.info()?.map_size == 256 << 20 && env.readers().contains("pid"));
    Ok(())
}

#[test]
fn functions_are_found_by_name() {
    let found = |name: &std::ffi::CStr| {
        let symbol =
            lmdb::LINKED_SYMBOLS.iter().find(|(known, _)| *known == name.to_str().unwrap());
        symbol.map(|(_, at)| at.cast_mut().cast()).ok_or(name.to_owned())
    };
    // SAFETY: these are the functions.
    let api = unsafe { Api::find(found) }.unwrap();
    // SAFETY: takes any code.
    let text = unsafe { std::ffi::CStr::from_ptr((api.mdb_strerror)(MDB_NOTFOUND)) };
    assert!(text.to_str().unwrap().starts_with("MDB_NOTFOUND"));
    // SAFETY: nothing is loaded.
    let missing = unsafe { Api::load(std::path::Path::new("/nowhere/liblmdb.so")) };
    assert!(missing.err().unwrap().contains("/nowhere/liblmdb.so"));
}
