//! The limits that `docs/limits.md` names.

use std::collections::BTreeMap;

use crate::common::memory::MemoryFile;
use crate::common::{check, fresh, geometry, rng};
use zubilo::{Durability, Error, KeyOrder, Options, TableOptions};

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
        // Beside the longest key there is less room for each value.
        let beside = (record - key).min(key);
        for (owner, len) in [(&longest[..], beside), (b"k", key.min(record - 1))] {
            for n in 0..20 {
                let mut value = longest[..len].to_vec();
                value[len - 1] = n;
                many.put(owner, value).unwrap();
            }
            // One after the other goes, until the last is in the record again.
            for n in 1..20 {
                let mut value = longest[..len].to_vec();
                value[len - 1] = n;
                assert!(many.delete_value(owner, &value).unwrap());
                if n == 10 {
                    many.put(owner, &value).unwrap();
                    assert!(many.delete_value(owner, value).unwrap());
                }
            }
            match many.put(owner, vec![1; len + 1]) {
                Err(Error::ValueTooLong { len: given, max }) => {
                    assert_eq!((given, max), (len + 1, len))
                }
                other => panic!("{other:?}"),
            }
        }
        many.put("", "").unwrap();
        txn.create_table(&longest, TableOptions::new()).unwrap();
        let too_long = txn.create_table(&longer, TableOptions::new()).map(drop);
        assert!(matches!(too_long, Err(Error::KeyTooLong { .. })));
        txn.commit().unwrap();
        check(&env, "the longest keys and values");
        assert_eq!(env.read().unwrap().table("many").unwrap().count(&longest).unwrap(), 1);
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
        Error::ReadersFull { slots, .. } => assert_eq!(slots as usize, readers.len()),
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
        Err(Error::MapFull { limit, .. }) => assert_eq!(limit, upper),
        other => panic!("{other:?}"),
    }
    let mut txn = env.write().unwrap();
    txn.table("t").unwrap().put("small", "value").unwrap();
    txn.commit().unwrap();
    assert_eq!(env.read().unwrap().table("t").unwrap().len(), 2);
    check(&env, "after it was full");
}

/// Trees whose branches hold two or three children: what is put in any order and taken out in any other.
#[test]
fn trees_of_the_longest_keys_grow_and_shrink() {
    let mut rng = rng();
    for page_size in [4096, 16384, 65536] {
        for options in [
            TableOptions::new(),
            TableOptions::new().counted(),
            TableOptions::new().key_order(KeyOrder::Reversed),
            TableOptions::new().duplicates(),
            TableOptions::new().compare_keys(|a: &[u8], b: &[u8]| b.cmp(a)),
        ] {
            let file = MemoryFile::new(&[]);
            let env = file.open(Options::new().page_size(page_size)).unwrap();
            let (max, mut model) = (env.max_key_len(), BTreeMap::new());
            let mut txn = env.write().unwrap();
            for round in 0..6 {
                let mut table = txn.table_or_create_with("t", &options).unwrap();
                for _ in 0..40 {
                    let n = rng.below(200) as u8;
                    // They differ at the end or at the beginning, and a few are short.
                    let len = if rng.one_in(5) { 1 + rng.index(max) } else { max };
                    let mut key = vec![b'k'; len];
                    let at = if rng.one_in(2) { 0 } else { len - 1 };
                    key[at] = n;
                    if rng.below(6) < round {
                        let found = table.delete(&key).unwrap();
                        assert_eq!(found, model.remove(&key).is_some());
                    } else {
                        let value = vec![n; rng.index(70)];
                        // Where a key may have many values, `put` adds one.
                        if options.has_duplicates() {
                            table.delete(&key).unwrap();
                        }
                        table.put(&key, &value).unwrap();
                        model.insert(key, value);
                    }
                }
                assert_eq!(table.len(), model.len() as u64);
                for (key, value) in &model {
                    assert_eq!(table.get(key).unwrap(), Some(&value[..]));
                }
            }
            txn.commit().unwrap();
            check(&env, "the longest keys");
            let read = env.read().unwrap();
            let table = read.table_with("t", &options).unwrap();
            assert_eq!(table.iter().count(), model.len());
            drop(read);
            // All of them go, in order.
            let mut txn = env.write().unwrap();
            let mut table = txn.table_or_create_with("t", &options).unwrap();
            for key in model.keys() {
                assert!(table.delete(key).unwrap());
            }
            assert!(table.is_empty());
            txn.commit().unwrap();
            check(&env, "emptied");
        }
    }
}
