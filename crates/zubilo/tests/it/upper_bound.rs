//! The upper bound is reached: a clear error, the transaction can be aborted or its nested level
//! undone, the store is used on; deleting makes room, and so does a higher bound.

use zubilo::{Durability, Env, Error, Options, Result, WriteTable, WriteTxn};

use crate::common::memory::MemoryFile;
use crate::common::{Rng, check, contents, fresh, geometry, put_all, seed};

const BOUND: u64 = 2 << 20;

fn bounded(durability: Durability) -> Options {
    Options::new().durability(durability).geometry(geometry(|g| g.upper = BOUND))
}

fn put_some(txn: &mut WriteTxn, from: u32, count: u32, len: usize) -> Result<()> {
    let mut table = txn.table_or_create("t")?;
    for n in from..from + count {
        table.put(n.wrapping_mul(0x9E37_79B9).to_be_bytes(), vec![n as u8; len])?;
    }
    Ok(())
}

#[track_caller]
fn assert_full<T>(result: Result<T>) {
    match result {
        Err(Error::MapFull { limit, .. }) => assert_eq!(limit, BOUND),
        Err(other) => panic!("another error: {other:?}"),
        Ok(_) => panic!("it fits"),
    }
}

/// The store works: a change can be made, and the account of pages is right.
#[track_caller]
fn assert_usable(env: &Env, what: &str) {
    check(env, what);
    let before = contents(&env.read().unwrap());
    put_all(env, "other", [("k", what)]);
    let mut after = contents(&env.read().unwrap());
    let other = after.remove(&b"other"[..]).unwrap();
    assert_eq!(other[&b"k"[..]], what.as_bytes());
    assert!(before.iter().all(|(name, records)| name == b"other" || after[name] == *records));
    check(env, what);
}

/// Every way in which a transaction can meet the bound, in each mode.
fn cases(run: impl Fn(&Env)) {
    for durability in [Durability::Sync, Durability::NoSync] {
        let file = MemoryFile::new(&[]);
        run(&file.open(bounded(durability)).unwrap());
    }
    let (_dir, path) = fresh();
    run(&bounded(Durability::NoSync).writable_map(true).open(&path).unwrap());
}

#[test]
fn at_commit() {
    cases(|env| {
        put_all(env, "t", [("k", [1; 1000])]);
        for len in [100, 3000, 60_000] {
            let mut txn = env.write().unwrap();
            put_some(&mut txn, 0, 3_000_000 / len as u32, len).unwrap();
            assert_full(txn.commit());
            assert_usable(env, "after a commit that did not fit");
        }
        assert_eq!(env.read().unwrap().table("t").unwrap().len(), 1);
    });
}

#[test]
fn after_spilling() {
    for limit in [20 << 10, 200 << 10] {
        let file = MemoryFile::new(&[]);
        let env = file.open(bounded(Durability::Sync).dirty_limit(limit)).unwrap();
        put_all(&env, "t", [("k", [1; 1000])]);
        let before = contents(&env.read().unwrap());
        for len in [100, 3000, 30_000, 150_000] {
            let mut txn = env.write().unwrap();
            assert_full(put_some(&mut txn, 0, 4_000_000 / len as u32, len));
            // It says that it is broken, and a commit is refused.
            assert!(matches!(put_some(&mut txn, 0, 1, 1), Err(Error::TxnBroken)));
            assert!(matches!(txn.commit(), Err(Error::TxnBroken)));
            assert_eq!(contents(&env.read().unwrap()), before);
            check(&env, "after a spill that did not fit");
            let mut txn = env.write().unwrap();
            assert_full(put_some(&mut txn, 0, 4_000_000 / len as u32, len));
            txn.abort();
            check(&env, "after the abort");
        }
        assert_usable(&env, "after spills that did not fit");
    }
}

#[test]
fn in_nested_levels() {
    for limit in [20 << 10, 200 << 10, 100 << 20] {
        let file = MemoryFile::new(&[]);
        let env = file.open(bounded(Durability::Sync).dirty_limit(limit)).unwrap();
        let mut txn = env.write().unwrap();
        put_some(&mut txn, 0, 300, 1000).unwrap();
        for len in [100, 3000, 30_000, 150_000] {
            let level = |txn: &mut WriteTxn| put_some(txn, 1000, 4_000_000 / len as u32, len);
            let result = txn.nested(level);
            if limit < 1 << 20 {
                assert_full(result);
            } else {
                // All in memory: it would not fit at the commit, so undo it by hand.
                result.unwrap();
                txn.abort();
                txn = env.write().unwrap();
                put_some(&mut txn, 0, 300, 1000).unwrap();
            }
            // The outer level goes on unharmed, one nested twice as well.
            txn.nested(|txn| {
                put_some(txn, 5000, 2, 1000)?;
                if limit < 1 << 20 {
                    assert_full(txn.nested(level));
                }
                put_some(txn, 5000, 5, 1000)
            })
            .unwrap();
            assert_eq!(txn.table("t").unwrap().len(), 305);
        }
        txn.commit().unwrap();
        assert_eq!(env.read().unwrap().table("t").unwrap().len(), 305);
        assert_usable(&env, "after nested levels that did not fit");
    }
}

#[test]
fn deleting_makes_room() {
    cases(|env| {
        let mut stored = 0;
        let error = loop {
            let mut txn = env.write().unwrap();
            put_some(&mut txn, stored, 20, 1000).unwrap();
            match txn.commit() {
                Ok(_) => stored += 20,
                Err(error) => break error,
            }
            // Weak commits leave room only once a later steady point is on disk.
            env.sync().unwrap();
        };
        assert!(matches!(error, Error::MapFull { .. }), "{error:?}");
        assert!(stored > 1000, "only {stored} records of 1 KB fit into 2 MiB");
        check(env, "full");
        // A change needs room for copies of the pages it touches: few keys at a time.
        for round in 0..3 {
            in_steps(env, stored / 2, |table, key| assert!(table.delete(key).unwrap()));
            in_steps(env, stored / 2, |table, key| table.put(key, vec![round; 1000]).unwrap());
            assert_usable(env, &format!("round {round}"));
        }
    });
}

fn in_steps(env: &Env, count: u32, change: impl Fn(&mut WriteTable<'_>, [u8; 4])) {
    let keys: Vec<_> = (0..count).map(|n| n.wrapping_mul(0x9E37_79B9).to_be_bytes()).collect();
    for step in keys.chunks(20) {
        let mut txn = env.write().unwrap();
        let mut table = txn.table("t").unwrap();
        step.iter().for_each(|key| change(&mut table, *key));
        txn.commit().unwrap();
        env.sync().unwrap();
    }
}

#[test]
fn a_higher_bound_makes_room() {
    cases(|env| {
        let mut txn = env.write().unwrap();
        put_some(&mut txn, 0, 400, 10_000).unwrap();
        txn.set_geometry(geometry(|g| g.upper = 16 << 20)).unwrap();
        txn.commit().unwrap();
        assert_eq!(env.read().unwrap().table("t").unwrap().len(), 400);
        assert_usable(env, "with a higher bound");
        assert_eq!(env.info().unwrap().geometry.upper, 16 << 20);
    });
}

#[test]
fn the_reserved_address_space_is_a_bound_too() {
    let (_dir, path) = fresh();
    let env = Options::new().reserve(4 << 20).open(&path).unwrap();
    let mut txn = env.write().unwrap();
    put_some(&mut txn, 0, 800, 10_000).unwrap();
    match txn.commit() {
        Err(Error::MapFull { limit, .. }) => assert_eq!(limit, env.info().unwrap().reserved),
        other => panic!("{other:?}"),
    }
    assert_usable(&env, "at the end of the address space");
}

/// A closure of a group that is too large fails alone when its level meets the bound.
#[test]
fn in_a_group() {
    let file = MemoryFile::new(&[]);
    let env = file.open(bounded(Durability::Sync).dirty_limit(100 << 10)).unwrap();
    assert_full(env.update(|txn| put_some(txn, 0, 4000, 1000)));
    env.update(|txn| put_some(txn, 0, 10, 1000)).unwrap();
    assert_eq!(env.read().unwrap().table("t").unwrap().len(), 10);
    assert_usable(&env, "after a group");
}

/// Random work at the bound: whatever fails, what is committed is what was meant.
#[test]
fn random_work_at_the_bound() {
    let seed = seed(600);
    let mut rng = Rng::new(seed);
    let limit = rng.pick(&[30 << 10, 150 << 10]);
    let file = MemoryFile::new(&[]);
    let env = file.open(bounded(Durability::Sync).dirty_limit(limit)).unwrap();
    let mut model = std::collections::BTreeMap::new();
    let (mut full, mut fine) = (0, 0);
    for round in 0..400 {
        let mut next = model.clone();
        let mut txn = env.write().unwrap();
        let mut result = random_changes(&mut txn, &mut next, &mut rng);
        if rng.one_in(3) {
            let mut inner = next.clone();
            let nested = txn.nested(|txn| random_changes(txn, &mut inner, &mut rng));
            match nested {
                Ok(()) => next = inner,
                Err(Error::MapFull { .. }) => full += 1,
                Err(Error::TxnBroken) if result.is_err() => {}
                Err(other) => panic!("seed {seed}, round {round}: {other:?}"),
            }
        }
        result = result.and_then(|()| txn.commit().map(drop));
        match result {
            Ok(()) => (model, fine) = (next, fine + 1),
            Err(Error::MapFull { .. }) => full += 1,
            Err(other) => panic!("seed {seed}, round {round}: {other:?}"),
        }
        let stored = contents(&env.read().unwrap()).remove(&b"t"[..]).unwrap_or_default();
        assert!(stored == model, "seed {seed}, round {round}");
        check(&env, &format!("seed {seed}, round {round}"));
    }
    assert!(full > 20 && fine > 100, "seed {seed}: {full} full, {fine} fine");
}

fn random_changes(
    txn: &mut WriteTxn,
    model: &mut crate::common::Records,
    rng: &mut Rng,
) -> Result<()> {
    let mut table = txn.table_or_create("t")?;
    for _ in 0..rng.below(40) {
        let key = rng.below(300).to_be_bytes().to_vec();
        if rng.one_in(2) {
            table.delete(&key)?;
            model.remove(&key);
        } else {
            let len = rng.pick(&[10, 1000, 9000, 40_000]);
            let value = rng.bytes(len);
            table.put(&key, &value)?;
            model.insert(key, value);
        }
    }
    Ok(())
}

/// Pages that an early write had taken and failed to fill were lost until the store was reopened.
#[test]
fn spills_that_fail_lose_no_room() {
    let file = MemoryFile::new(&[]);
    let env = file.open(bounded(Durability::Sync).dirty_limit(50 << 10)).unwrap();
    put_all(&env, "t", [("k", [1; 1000])]);
    for round in 0..200 {
        let mut txn = env.write().unwrap();
        put_some(&mut txn, round, 1, 10).unwrap();
        file.fail(0, 1000);
        let failed = txn.nested(|txn| put_some(txn, 0, 100, 1000));
        assert!(file.heal() && matches!(failed, Err(Error::Io { .. })), "{failed:?}");
        txn.commit().unwrap();
    }
    let mut txn = env.write().unwrap();
    put_some(&mut txn, 1000, 1000, 1000).unwrap();
    txn.commit().unwrap();
    assert_usable(&env, "after spills that failed");
}
