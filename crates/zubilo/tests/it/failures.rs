//! What fails leaves nothing half-done: the transaction either goes on unharmed or says that it is
//! broken, a broken one is not committed, and the store is as it was and can be used on.

use zubilo::{Durability, Env, Error, Options, PageKind, Result, TableOptions, WriteTxn};

use crate::common::memory::MemoryFile;
use crate::common::{Model, Rng, check, contents, number, put_all, seed};

/// Calls that are refused before they change anything.
#[test]
fn refused_calls_leave_the_transaction_unharmed() {
    let env = MemoryFile::new(&[]).open(Options::new()).unwrap();
    put_all(&env, "t", [("a", "1"), ("b", "2")]);
    put_all(&env, "other", [("c", "3")]);
    let long = vec![7; env.max_key_len() + 1];
    let mut txn = env.write().unwrap();
    txn.table("t").unwrap().put("d", "4").unwrap();
    let too_long = |result: Result<()>| match result {
        Err(Error::KeyTooLong { len, max }) => assert_eq!((len, max), (long.len(), long.len() - 1)),
        other => panic!("{other:?}"),
    };
    let mut table = txn.table("t").unwrap();
    too_long(table.put(&long, "x"));
    too_long(table.put(&long, vec![0; 100_000]));
    too_long(table.insert(&long, "x").map(drop));
    too_long(table.reserve(&long, 10).map(drop));
    too_long(table.reserve(&long, 100_000).map(drop));
    // No such record can exist, so there is none to find.
    assert_eq!(table.get(&long).unwrap(), None);
    assert!(!table.delete(&long).unwrap());
    assert_eq!(table.delete_range(&long[..]..&long[..]).unwrap(), 0);
    too_long(txn.table_or_create(&long).map(drop));
    too_long(txn.create_table(&long, TableOptions::new()).map(drop));
    too_long(txn.rename_table("t", &long));
    assert!(matches!(txn.table("none"), Err(Error::NoSuchTable { .. })));
    assert!(matches!(txn.drop_table("none"), Err(Error::NoSuchTable { .. })));
    assert!(matches!(txn.rename_table("none", "new"), Err(Error::NoSuchTable { .. })));
    assert!(matches!(txn.rename_table("t", "other"), Err(Error::TableExists { .. })));
    assert!(matches!(txn.create_table("t", TableOptions::new()), Err(Error::TableExists { .. })));
    let odd = TableOptions::new().align_values(3);
    assert!(matches!(txn.create_table("odd", odd), Err(Error::Invalid(_))));
    txn.table("t").unwrap().put("e", "5").unwrap();
    txn.commit().unwrap();
    let read = env.read().unwrap();
    assert_eq!(read.tables().unwrap(), [&b"other"[..], b"t"]);
    let keys: Vec<_> = read.table("t").unwrap().iter().map(|r| r.unwrap().0.to_vec()).collect();
    assert_eq!(keys, [b"a", b"b", b"d", b"e"]);
    check(&env, "after refused calls");
}

/// What a workload may end in when calls of the file fail.
fn expected(error: &Error) -> bool {
    matches!(error, Error::Io { .. } | Error::Poisoned { .. } | Error::TxnBroken)
}

/// Random changes that spill; in nested levels as well, some of which fail and are undone.
fn changes(txn: &mut WriteTxn, model: &mut Model, rng: &mut Rng, depth: u32) -> Result<()> {
    for _ in 0..rng.below(12) {
        let name = [b't', b'0' + rng.below(3) as u8].to_vec();
        let mut table = txn.table_or_create(&name)?;
        let records = model.entry(name).or_default();
        for _ in 0..rng.below(8) {
            let key = rng.below(400).to_be_bytes().to_vec();
            let len = rng.pick(&[10, 300, 300, 5000, 40_000]);
            if rng.one_in(4) {
                table.delete(&key)?;
                records.remove(&key);
            } else {
                let value = rng.bytes(len);
                table.put(&key, &value)?;
                records.insert(key, value);
            }
        }
        if depth < 3 && rng.one_in(3) {
            let mut inner = model.clone();
            match txn.nested(|txn| changes(txn, &mut inner, rng, depth + 1)) {
                Ok(()) => *model = inner,
                // Undone; the outer level goes on.
                Err(error) => assert!(expected(&error), "{error:?}"),
            }
        }
    }
    Ok(())
}

/// One transaction during which calls fail. Gives the state that it should have left.
fn failing_transaction(env: &Env, before: &Model, rng: &mut Rng) -> (Result<()>, Model) {
    let mut model = before.clone();
    let mut txn = match env.write() {
        Ok(txn) => txn,
        Err(error) => return (Err(error), model),
    };
    let result = changes(&mut txn, &mut model, rng, 0);
    if result.is_err() {
        // Broken or unharmed, but never in between.
        match txn.table_or_create("probe").map(drop) {
            Err(Error::TxnBroken) => assert!(matches!(txn.commit(), Err(Error::TxnBroken))),
            Ok(()) => txn.abort(),
            Err(other) => assert!(expected(&other), "{other:?}"),
        }
        return (result, model);
    }
    (txn.commit().map(drop), model)
}

fn failing_calls(durability: Durability, base: u64, cases: u64) {
    let seeds = base..base + cases;
    let (mut failed, mut fine) = (0, 0);
    for seed in seeds {
        let seed = self::seed(seed);
        let mut rng = Rng::new(seed);
        let options = Options::new().durability(durability).dirty_limit(30 << 10);
        let file = MemoryFile::new(&[]);
        let mut env = file.open(options.clone()).unwrap();
        let mut model = Model::new();
        for round in 0..6 {
            let what = format!("ZUBILO_SEED={seed}, round {round}");
            file.fail(rng.below(40) as i64, rng.pick(&[1, 1, 2, 1000]));
            let (result, after) = failing_transaction(&env, &model, &mut rng);
            let reached = file.heal();
            match &result {
                Ok(()) => fine += 1,
                Err(error) => {
                    assert!(reached && expected(error), "{what}: {error:?}");
                    failed += 1;
                }
            }
            let poisoned = matches!(env.write(), Err(Error::Poisoned { .. }));
            let found = contents(&env.read().unwrap());
            if result.is_ok() {
                assert!(found == after, "{what}: a commit is not what it should be");
            } else {
                assert!(found == model, "{what}: a failure has left something");
            }
            model = found;
            if poisoned {
                // The failed commit may be on disk as a whole, or not at all.
                env.close_without_sync();
                env = file.open(options.clone()).unwrap();
                let found = contents(&env.read().unwrap());
                assert!(found == after || found == model, "{what}: neither old nor new");
                model = found;
            }
            check(&env, &what);
        }
    }
    println!("{durability:?}: {fine} transactions fine, {failed} failed");
    assert!(failed > cases && fine > cases, "{failed} failed, {fine} fine");
}

#[test]
fn failing_calls_with_flushes() {
    failing_calls(Durability::Sync, 10_000, number("ZUBILO_CASES", 80));
}

#[test]
fn failing_calls_without_flushes() {
    failing_calls(Durability::NoSync, 20_000, number("ZUBILO_CASES", 80));
}

/// A store with one leaf of table "bad" destroyed, and a key in it.
fn with_a_destroyed_leaf() -> (Env, Vec<u8>, Model) {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new().durability(Durability::NoSync)).unwrap();
    put_all(&env, "bad", (0..2000u32).map(|n| (n.to_be_bytes(), [n as u8; 100])));
    put_all(&env, "good", (0..100u32).map(|n| (n.to_be_bytes(), [n as u8; 100])));
    let mut leaves = Vec::new();
    env.walk_pages(&mut |visit| {
        if visit.table == b"bad" && visit.kind == PageKind::Leaf {
            leaves.push(visit.page.0 as usize);
        }
        true
    })
    .unwrap();
    let mut model = contents(&env.read().unwrap());
    env.close().unwrap();
    let mut bytes = file.image();
    bytes[leaves[10] * 4096..][..4096].fill(0xAA);
    let env = MemoryFile::new(&bytes).open(Options::new()).unwrap();
    let read = env.read().unwrap();
    let table = read.table("bad").unwrap();
    let lost = |key: &Vec<u8>| matches!(table.get(key), Err(Error::Corrupted { .. }));
    let records = model.get_mut(&b"bad"[..]).unwrap();
    let keys: Vec<_> = records.keys().filter(|key| lost(key)).cloned().collect();
    assert!(keys.len() > 10, "nothing is destroyed");
    drop(read);
    (env, keys[5].clone(), model)
}

#[test]
fn a_destroyed_page_breaks_what_needs_it_only() {
    let (env, lost, model) = with_a_destroyed_leaf();
    type Change = fn(&mut WriteTxn, &[u8]) -> Result<()>;
    let changes: [Change; 7] = [
        |txn, key| txn.table("bad")?.put(key, "x"),
        |txn, key| txn.table("bad")?.put(key, vec![0; 50_000]),
        |txn, key| txn.table("bad")?.insert(key, "x").map(drop),
        |txn, key| txn.table("bad")?.reserve(key, 20).map(drop),
        |txn, key| txn.table("bad")?.delete(key).map(drop),
        |txn, key| txn.table("bad")?.delete_range(&key[..1]..).map(drop),
        |txn, _| txn.drop_table("bad"),
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let mut txn = env.write().unwrap();
        let put = |txn: &mut WriteTxn| txn.table("good").unwrap().put("new", [i as u8]);
        put(&mut txn).unwrap();
        // In a nested level it is undone, and the rest can be committed.
        let nested = txn.nested(|txn| change(txn, &lost));
        assert!(matches!(nested, Err(Error::Corrupted { .. })), "change {i}: {nested:?}");
        put(&mut txn).unwrap();
        txn.commit().unwrap();
        assert_eq!(
            env.read().unwrap().table("good").unwrap().get("new").unwrap(),
            Some(&[i as u8][..])
        );
        // Without one the transaction says that it is broken.
        let mut txn = env.write().unwrap();
        assert!(matches!(change(&mut txn, &lost), Err(Error::Corrupted { .. })), "change {i}");
        let later = txn.table("good").and_then(|mut t| t.put("later", "x"));
        match later {
            Err(Error::TxnBroken) => assert!(matches!(txn.commit(), Err(Error::TxnBroken))),
            Ok(()) => txn.abort(),
            Err(other) => panic!("change {i}: {other:?}"),
        }
        assert_eq!(env.read().unwrap().table("good").unwrap().get("later").unwrap(), None);
    }
    // All that does not need the page is still there.
    let read = env.read().unwrap();
    for (name, records) in &model {
        let table = read.table(name).unwrap();
        let fine =
            records.iter().filter(|(k, v)| matches!(table.get(k), Ok(Some(found)) if found == **v));
        assert!(fine.count() >= records.len() - 60, "more than one page is gone");
    }
    let report = env.check(&mut |_, _| true).unwrap();
    assert!(!report.is_ok());
}

#[test]
fn reads_in_a_broken_transaction_are_refused() {
    let (env, lost, _) = with_a_destroyed_leaf();
    let mut txn = env.write().unwrap();
    let mut table = txn.table("bad").unwrap();
    table.put(&lost, "x").unwrap_err();
    let scans = [table.iter(), table.range("a"..), table.prefix("a")];
    for mut scan in scans.into_iter() {
        assert!(matches!(scan.next(), Some(Err(Error::TxnBroken))));
        assert!(scan.next().is_none() && scan.next_back().is_none());
    }
    assert!(matches!(txn.tables(), Err(Error::TxnBroken)));
    assert!(matches!(txn.table("good").map(drop), Err(Error::TxnBroken)));
    assert!(matches!(txn.nested(|_| Ok(())), Err(Error::TxnBroken)));
    assert!(matches!(txn.set_geometry(Default::default()), Err(Error::TxnBroken)));
    drop(txn);
    put_all(&env, "good", [("a", "b")]);
}

/// A panic in the caller's code undoes its nested level, or the whole transaction.
#[test]
fn panics_undo_what_they_leave() {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new().dirty_limit(30 << 10)).unwrap();
    put_all(&env, "t", [("a", "1")]);
    let before = contents(&env.read().unwrap());
    let big = |txn: &mut WriteTxn| {
        let mut table = txn.table("t").unwrap();
        (0..300u32).for_each(|n| table.put(n.to_be_bytes(), [1; 400]).unwrap());
    };
    let quietly = |job: &mut dyn FnMut()| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)).unwrap_err();
    };
    let mut txn = env.write().unwrap();
    quietly(&mut || {
        let _ = txn.nested(|txn| -> Result<()> {
            big(txn);
            panic!("as the test wants it");
        });
    });
    assert_eq!(txn.table("t").unwrap().len(), 1);
    txn.table("t").unwrap().put("b", "2").unwrap();
    txn.commit().unwrap();
    check(&env, "after a panic in a nested level");
    quietly(&mut || {
        let mut txn = env.write().unwrap();
        big(&mut txn);
        panic!("as the test wants it");
    });
    check(&env, "after a panic in a transaction");
    let mut after = contents(&env.read().unwrap());
    assert_eq!(after.get_mut(&b"t"[..]).unwrap().remove(&b"b"[..]), Some(b"2".to_vec()));
    assert_eq!(after, before);
    put_all(&env, "t", [("c", "3")]);
    check(&env, "at the end");
}
