//! Transactions that follow one another without a gap, copies of read transactions, and an open write
//! transaction read by several threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use zubilo::{Env, Error, Options, ReadTxn, TableOptions, TxnId};

use crate::common::{fresh, put_all};

fn value(read: &ReadTxn, key: &str) -> Option<Vec<u8>> {
    read.table("t").unwrap().get(key).unwrap().map(<[u8]>::to_vec)
}

fn opened() -> (tempfile::TempDir, Env) {
    let (dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    put_all(&env, "t", [("key", "first")]);
    (dir, env)
}

#[test]
fn what_was_committed_is_read_and_not_what_came_after() {
    let (_dir, env) = opened();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                put_all(&env, "t", [("key", "other")]);
            }
        });
        for round in 0..200u32 {
            let mut write = env.write().unwrap();
            let id = write.id();
            write.table("t").unwrap().put("key", round.to_be_bytes()).unwrap();
            let read = write.commit_and_read().unwrap();
            assert_eq!(read.id(), id);
            assert_eq!(value(&read, "key").unwrap(), round.to_be_bytes());
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(env.readers().is_empty());
}

#[test]
fn without_a_slot_for_the_reader_nothing_is_committed() {
    let (_dir, path) = fresh();
    let env = Options::new().max_readers(1).open(&path).unwrap();
    put_all(&env, "t", [("key", "first")]);
    let reader = env.read().unwrap();
    let mut write = env.write().unwrap();
    write.table("t").unwrap().put("key", "second").unwrap();
    assert!(matches!(write.commit_and_read(), Err(Error::ReadersFull { slots: 1, .. })));
    drop(reader);
    assert_eq!(value(&env.read().unwrap(), "key").unwrap(), b"first");
    put_all(&env, "t", [("key", "third")]);
}

#[test]
fn a_row_of_transactions_lets_nobody_in_between() {
    let (_dir, env) = opened();
    let mut write = env.write().unwrap();
    let first = write.id();
    let id = write.table_id("t").unwrap();
    let others = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut write = env.write().unwrap();
            write.table("t").unwrap().put("other", "was here").unwrap();
            write.commit().unwrap()
        });
        for round in 0..20u64 {
            assert!(write.begin_nested().is_ok(), "what is open is part of the commit");
            write.table("t").unwrap().put("key", round.to_be_bytes()).unwrap();
            let committed = write.commit_and_continue().unwrap();
            assert_eq!(committed, TxnId(first.0 + round));
            assert_eq!(write.id(), TxnId(first.0 + round + 1));
            assert!(
                matches!(write.at(id), Err(Error::NoSuchTable { .. })),
                "a table of one before"
            );
            // Seen at once, and by all.
            let read = env.read().unwrap();
            assert_eq!(value(&read, "key").unwrap(), round.to_be_bytes());
            assert_eq!(value(&read, "other"), None);
            std::thread::sleep(Duration::from_micros(200));
        }
        // Without changes: no commit, and it goes on.
        assert_eq!(write.commit_and_continue().unwrap(), TxnId(first.0 + 19));
        drop(write);
        other.join().unwrap()
    });
    assert_eq!(others, TxnId(first.0 + 20));
    env.check(&mut |_, _| true).unwrap().into_result().unwrap();
}

#[test]
fn a_rollback_undoes_all_and_goes_on() {
    let (_dir, env) = opened();
    let mut write = env.write().unwrap();
    let id = write.id();
    write.table_or_create("new").unwrap().put("key", "value").unwrap();
    write.begin_nested().unwrap();
    write.table("t").unwrap().put("key", vec![7; 100_000]).unwrap();
    write.set_user_words([1, 2, 3]).unwrap();
    write.rollback().unwrap();
    assert!(matches!(write.commit_nested(), Err(Error::NoNestedLevel)));
    assert!(matches!(write.table("new"), Err(Error::NoSuchTable { .. })));
    assert_eq!(write.user_words().words, [0; 3]);
    assert_eq!(write.table("t").unwrap().get("key").unwrap(), Some(&b"first"[..]));
    assert!(matches!(env.try_write(), Ok(None)), "the lock is kept");
    write.table("t").unwrap().put("key", "second").unwrap();
    assert_eq!(write.commit().unwrap(), id);
    assert_eq!(value(&env.read().unwrap(), "key").unwrap(), b"second");
    env.check(&mut |_, _| true).unwrap().into_result().unwrap();
}

#[test]
fn a_closure_can_neither_roll_back_nor_go_on() {
    let (_dir, env) = opened();
    let mut write = env.write().unwrap();
    write.table("t").unwrap().put("outer", "kept").unwrap();
    write
        .nested(|txn| {
            assert!(matches!(txn.rollback(), Err(Error::Invalid(_))));
            assert!(matches!(txn.commit_and_continue(), Err(Error::Invalid(_))));
            txn.table("t")?.put("inner", "kept").map(drop)
        })
        .unwrap();
    write.commit().unwrap();
    let read = env.read().unwrap();
    assert!(value(&read, "outer").is_some() && value(&read, "inner").is_some());
}

#[test]
fn a_write_begins_on_a_snapshot_while_that_is_the_newest() {
    let (_dir, env) = opened();
    let read = env.read().unwrap();
    let mut write = read.write().unwrap();
    assert!(matches!(read.try_write(), Ok(None)));
    write.table("t").unwrap().put("key", "second").unwrap();
    let newest = write.commit().unwrap();
    let refused = read.write().unwrap_err();
    let expected = (read.id(), newest);
    assert!(
        matches!(refused, Error::Outdated { snapshot, newest } if (snapshot, newest) == expected),
        "{refused}"
    );
    assert!(matches!(read.try_write(), Err(Error::Outdated { .. })));
    // Refused, it holds nothing.
    put_all(&env, "t", [("key", "third")]);
}

#[test]
fn who_waits_for_the_lock_is_refused_once_the_other_has_committed() {
    let (_dir, env) = opened();
    let mut write = env.write().unwrap();
    write.table("t").unwrap().put("key", "second").unwrap();
    let refused = std::thread::scope(|scope| {
        let read = env.read().unwrap();
        let waits = scope.spawn(move || read.write().map(drop).unwrap_err());
        std::thread::sleep(Duration::from_millis(20));
        write.commit().unwrap();
        waits.join().unwrap()
    });
    assert!(matches!(refused, Error::Outdated { .. }), "{refused}");
}

/// Transfers between accounts: each reads, computes, and writes on what it has read, or begins again.
#[test]
fn nothing_is_lost_where_all_write_on_their_snapshots() {
    let (_dir, env) = opened();
    put_all(&env, "t", [("count", 0u64.to_le_bytes())]);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut done = 0;
                while done < 50 {
                    let read = env.read().unwrap();
                    let old = value(&read, "count").unwrap();
                    let count = u64::from_le_bytes(old.try_into().unwrap()) + 1;
                    match read.write() {
                        Ok(mut write) => {
                            write.table("t").unwrap().put("count", count.to_le_bytes()).unwrap();
                            write.commit().unwrap();
                            done += 1;
                        }
                        Err(Error::Outdated { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(value(&env.read().unwrap(), "count").unwrap(), 150u64.to_le_bytes());
}

#[test]
fn a_copy_of_a_snapshot_outlives_it_while_the_store_changes() {
    let (_dir, env) = opened();
    let rows = |round: u32| (0..500u32).map(move |n| (n.to_be_bytes(), [round as u8; 40]));
    put_all(&env, "t", rows(0));
    let seen = |read: &ReadTxn, expected: u8| {
        let table = read.table("t").unwrap();
        for n in 0..500u32 {
            assert_eq!(table.get(n.to_be_bytes()).unwrap(), Some(&[expected; 40][..]));
        }
    };
    let mut copies: Vec<(ReadTxn, u8)> = Vec::new();
    for round in 1..40u32 {
        let read = env.read().unwrap();
        let copy = read.try_clone().unwrap();
        assert_eq!(copy.id(), read.id());
        let second = copy.try_clone().unwrap();
        drop((read, copy));
        copies.push((second, (round - 1) as u8));
        put_all(&env, "t", rows(round));
        if copies.len() > 3 {
            drop(copies.remove(0));
        }
        copies.iter().for_each(|(read, expected)| seen(read, *expected));
    }
    assert_eq!(env.readers().len(), copies.len());
    let (old, _) = &copies[0];
    let mut refreshed = old.try_clone().unwrap();
    refreshed.refresh().unwrap();
    seen(&refreshed, 39);
    seen(old, copies[0].1);
}

#[test]
fn a_full_reader_table_refuses_a_copy() {
    let (_dir, path) = fresh();
    let env = Options::new().max_readers(2).open(&path).unwrap();
    let read = env.read().unwrap();
    let copy = read.try_clone().unwrap();
    assert!(matches!(read.try_clone(), Err(Error::ReadersFull { slots: 2, .. })));
    drop(copy);
    assert!(read.try_clone().is_ok());
}

#[test]
fn threads_read_what_is_not_committed_yet() {
    let (_dir, env) = opened();
    let backwards = TableOptions::new().compare_keys(|a: &[u8], b: &[u8]| b.cmp(a));
    let mut write = env.write().unwrap();
    write.create_table("down", backwards.clone()).unwrap().put("a", "1").unwrap();
    let mut table = write.table_or_create("t").unwrap();
    for n in 0..2000u32 {
        table.put(n.to_be_bytes(), n.to_le_bytes()).unwrap();
    }
    table.put("large", vec![5; 50_000]).unwrap();
    table.delete("key").unwrap();
    let id = table.id();
    let view = write.view().unwrap();
    assert_eq!(view.tables().unwrap(), [b"down".to_vec(), b"t".to_vec()]);
    assert!(matches!(view.table("none"), Err(Error::NoSuchTable { .. })));
    assert!(view.table("down").is_ok(), "the comparator is known since it was created");
    assert!(matches!(view.table_with("t", &backwards), Err(Error::Incompatible { .. })));
    std::thread::scope(|scope| {
        for thread in 0..3u32 {
            let view = &view;
            scope.spawn(move || {
                let table = if thread == 0 { view.at(id) } else { view.table("t") }.unwrap();
                let keys: Vec<_> = (thread..2000).step_by(3).map(u32::to_be_bytes).collect();
                for (key, value) in keys.iter().zip(table.get_many(&keys).unwrap()) {
                    let expected = u32::from_be_bytes(*key).to_le_bytes();
                    assert_eq!(value, Some(&expected[..]));
                    assert_eq!(table.get(key).unwrap(), value);
                }
                assert_eq!(table.get("large").unwrap().map(<[u8]>::len), Some(50_000));
                assert_eq!(table.get("key").unwrap(), None);
                assert_eq!(table.iter().count() as u64, table.len());
                assert_eq!(table.prefix([0, 0, 1]).count(), 256);
                assert_eq!(table.last().unwrap().unwrap().0, b"large");
                assert_eq!(table.iter().rev().take(3).count(), 3);
            });
        }
    });
    // Nobody else sees it.
    assert_eq!(value(&env.read().unwrap(), "large"), None);
    // A table that this transaction has not opened.
    drop(write);
    let write = env.write().unwrap();
    assert_eq!(write.view().unwrap().table("t").unwrap().get("key").unwrap(), Some(&b"first"[..]));
}

#[test]
fn a_commit_tells_where_its_time_went_and_what_it_wrote() {
    let (_dir, path) = fresh();
    let env = Options::new().audit(true).open(&path).unwrap();
    let mut write = env.write().unwrap();
    write.table_or_create("t").unwrap().put("key", vec![1; 100_000]).unwrap();
    let id = write.id();
    let report = write.commit_with_report().unwrap();
    assert_eq!(report.txn, id);
    assert!(report.pages >= 25 && report.bytes >= report.pages * 4096, "{report:?}");
    assert!(report.runs >= 1 && report.runs <= report.pages, "{report:?}");
    assert!((1..=2).contains(&report.flushes), "{report:?}");
    for part in [report.layout, report.write, report.flush, report.publish, report.audit] {
        assert!(part > Duration::ZERO && part <= report.whole(), "{report:?}");
    }
    let nothing = env.write().unwrap().commit_with_report().unwrap();
    assert_eq!((nothing.txn, nothing.pages, nothing.whole()), (id, 0, Duration::ZERO));
}
