//! The limits that `docs/limits.md` names.

use crate::common::{check, fresh, geometry};
use zubilo::{Durability, Error, Options, TableOptions};

const DOC: &str = include_str!("../../../../docs/limits.md");

/// The rows of the table of sizes: page size, longest key, longest record inside a leaf.
fn rows() -> Vec<[usize; 3]> {
    let numbers = |line: &str| -> Option<[usize; 3]> {
        let cells = line.trim_matches('|').split('|').map(|c| c.trim().parse().ok());
        cells.collect::<Option<Vec<usize>>>()?.try_into().ok()
    };
    DOC.lines().filter_map(numbers).collect()
}

#[test]
fn keys_and_values_may_be_as_long_as_the_documentation_says() {
    let rows = rows();
    assert_eq!(rows.iter().map(|r| r[0]).collect::<Vec<_>>(), [4096, 8192, 16384, 32768, 65536]);
    for [page, key, record] in rows {
        let (_dir, path) = fresh();
        let env = Options::new().page_size(page as u32).open(path).unwrap();
        assert_eq!(env.max_key_len(), key);
        let (longest, longer) = (vec![7; key], vec![7; key + 1]);
        let mut txn = env.write().unwrap();
        let mut one = txn.create_table("one", TableOptions::new()).unwrap();
        one.put(&longest, "value").unwrap();
        match one.put(&longer, "value") {
            Err(Error::KeyTooLong { len, max }) => assert_eq!((len, max), (key + 1, key)),
            other => panic!("{other:?}"),
        }
        one.put("k", vec![1; record - 1]).unwrap();
        assert_eq!(one.stats().run_pages, 0);
        one.put("k", vec![1; record]).unwrap();
        assert_eq!(one.stats().run_pages, 1);
        one.put("", "").unwrap();
        let mut many = txn.create_table("many", TableOptions::new().duplicates()).unwrap();
        for n in 0..20 {
            let mut value = longest.clone();
            value[key - 1] = n;
            many.put(&longest, value).unwrap();
        }
        many.put("", "").unwrap();
        match many.put("key", &longer) {
            Err(Error::ValueTooLong { len, max }) => assert_eq!((len, max), (key + 1, key)),
            other => panic!("{other:?}"),
        }
        txn.create_table(&longest, TableOptions::new()).unwrap();
        let too_long = txn.create_table(&longer, TableOptions::new()).map(drop);
        assert!(matches!(too_long, Err(Error::KeyTooLong { .. })));
        txn.commit().unwrap();
        check(&env, "the longest keys and values");
        assert_eq!(env.read().unwrap().table("many").unwrap().count(&longest).unwrap(), 20);
    }
}

#[test]
fn thousands_of_tables_are_used_at_once() {
    const TABLES: u32 = 5000;
    let (_dir, path) = fresh();
    let env = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    let name = |n: u32| format!("table {n}");
    let mut txn = env.write().unwrap();
    for n in 0..TABLES {
        txn.table_or_create(name(n)).unwrap().put(n.to_be_bytes(), "value").unwrap();
    }
    for n in 0..TABLES {
        txn.table(name(n)).unwrap().put("second", n.to_be_bytes()).unwrap();
    }
    txn.begin_nested().unwrap();
    for n in (0..TABLES).step_by(2) {
        txn.drop_table(name(n)).unwrap();
        txn.table_or_create(name(n)).unwrap().put("anew", "").unwrap();
    }
    txn.abort_nested().unwrap();
    for n in 0..TABLES {
        assert_eq!(txn.table(name(n)).unwrap().len(), 2, "{n}");
    }
    txn.commit().unwrap();
    env.close().unwrap();

    let env = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    let read = env.read().unwrap();
    assert_eq!(read.tables().unwrap().len() as u32, TABLES);
    for n in 0..TABLES {
        let table = read.table(name(n)).unwrap();
        assert_eq!(table.get("second").unwrap(), Some(&n.to_be_bytes()[..]));
    }
    let mut txn = env.write().unwrap();
    for n in (0..TABLES).step_by(2) {
        txn.drop_table(name(n)).unwrap();
    }
    txn.commit().unwrap();
    assert_eq!(env.read().unwrap().tables().unwrap().len() as u32, TABLES / 2);
    check(&env, "half of the tables");
}

#[test]
fn levels_nest_deeply() {
    const DEPTH: u64 = 2000;
    let (_dir, path) = fresh();
    let env = Options::new().durability(Durability::NoSync).open(path).unwrap();
    let mut txn = env.write().unwrap();
    let id = txn.table_or_create("t").unwrap().id();
    for level in 0..DEPTH {
        txn.begin_nested().unwrap();
        txn.at(id).unwrap().put(level.to_be_bytes(), level.to_be_bytes()).unwrap();
        txn.at(id).unwrap().put("depth", level.to_be_bytes()).unwrap();
        txn.at(id).unwrap().next_sequence(1).unwrap();
    }
    // Each second one is undone, which takes along what was committed into it.
    for level in (DEPTH / 2..DEPTH).rev() {
        if level % 2 == 0 { txn.commit_nested() } else { txn.abort_nested() }.unwrap();
    }
    // The outermost level that is undone is the second of that half; the first stays.
    let due = DEPTH / 2;
    let mut table = txn.at(id).unwrap();
    assert_eq!(table.get("depth").unwrap(), Some(&due.to_be_bytes()[..]));
    assert_eq!((table.len(), table.next_sequence(0).unwrap()), (due + 2, due + 1));
    for _ in 0..DEPTH / 2 {
        txn.commit_nested().unwrap();
    }
    txn.commit().unwrap();
    check(&env, "after deep nesting");
    assert_eq!(env.read().unwrap().table("t").unwrap().len(), due + 2);
}

#[test]
fn a_transaction_may_be_larger_than_its_memory() {
    const LIMIT: u64 = 1 << 20;
    let (_dir, path) = fresh();
    let options = Options::new().durability(Durability::NoSync).dirty_limit(LIMIT);
    let env = options.open(path).unwrap();
    let mut txn = env.write().unwrap();
    let mut most = 0;
    for n in 0..300_000u64 {
        // Scattered, so that written pages are changed again.
        let key = n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        txn.table_or_create("t").unwrap().put(key, [n as u8; 100]).unwrap();
        most = most.max(txn.dirty_bytes());
    }
    assert!(most < 2 * LIMIT, "{most} bytes in memory");
    txn.table("t").unwrap().put("large", vec![3; 8 << 20]).unwrap();
    assert!(txn.dirty_bytes() < 2 * LIMIT, "a large value went through memory");
    txn.commit().unwrap();
    check(&env, "a large transaction");
    assert_eq!(env.read().unwrap().table("t").unwrap().len(), 300_001);
}

#[test]
fn readers_are_as_many_as_slots() {
    let (_dir, path) = fresh();
    let env = Options::new().max_readers(16).open(path).unwrap();
    let mut readers = Vec::new();
    let full = loop {
        match env.read() {
            Ok(read) => readers.push(read),
            Err(error) => break error,
        }
        assert!(readers.len() <= 16);
    };
    match full {
        Error::ReadersFull { slots } => assert_eq!(slots as usize, readers.len()),
        other => panic!("{other:?}"),
    }
    readers.pop();
    drop(env.read().unwrap());
}

#[test]
fn a_full_store_goes_on() {
    let (_dir, path) = fresh();
    let upper = 1 << 20;
    let env = Options::new().geometry(geometry(|g| g.upper = upper)).open(path).unwrap();
    let mut txn = env.write().unwrap();
    txn.table_or_create("t").unwrap().put("kept", "value").unwrap();
    txn.commit().unwrap();
    let mut txn = env.write().unwrap();
    txn.table("t").unwrap().put("large", vec![1; upper as usize]).unwrap();
    match txn.commit() {
        Err(Error::MapFull { limit }) => assert_eq!(limit, upper),
        other => panic!("{other:?}"),
    }
    let mut txn = env.write().unwrap();
    txn.table("t").unwrap().put("small", "value").unwrap();
    txn.commit().unwrap();
    assert_eq!(env.read().unwrap().table("t").unwrap().len(), 2);
    check(&env, "after it was full");
}
