//! What users' code may do while the store runs it: closures that begin and end nested levels
//! themselves, values whose `Drop` uses the store or panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use zubilo::{Env, Error, Options, Result, WriteTxn};

use crate::common::memory::MemoryFile;
use crate::common::{check, fresh, geometry, within, without_panic_messages};

fn env() -> Env {
    MemoryFile::new(&[]).open(Options::new()).unwrap()
}

fn put(txn: &mut WriteTxn, key: &str) -> Result<()> {
    txn.table_or_create("t")?.put(key, "x")
}

fn keys(env: &Env) -> Vec<String> {
    let read = env.read().unwrap();
    let Ok(table) = read.table("t") else { return Vec::new() };
    table.iter().map(|r| String::from_utf8(r.unwrap().0.to_vec()).unwrap()).collect()
}

/// What a closure may do with levels before it ends.
const LEVELS: [fn(&mut WriteTxn); 7] = [
    |_| (),
    |txn| txn.begin_nested().unwrap(),
    |txn| (0..3).for_each(|_| txn.begin_nested().unwrap()),
    |txn| drop(txn.commit_nested()),
    |txn| drop(txn.abort_nested()),
    |txn| {
        txn.begin_nested().unwrap();
        (0..4).for_each(|_| drop(txn.commit_nested()));
        txn.begin_nested().unwrap();
    },
    |txn| {
        txn.begin_nested().unwrap();
        (0..4).for_each(|_| drop(txn.abort_nested()));
        (0..3).for_each(|_| txn.begin_nested().unwrap());
    },
];

/// How a closure ends.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    Fine,
    Error,
    Panic,
}

/// Changes, plays with levels, changes again, ends.
fn play(txn: &mut WriteTxn, levels: fn(&mut WriteTxn), end: End) -> Result<()> {
    put(txn, "before")?;
    levels(txn);
    put(txn, "after")?;
    match end {
        End::Fine => Ok(()),
        End::Error => Err(Error::Stopped),
        End::Panic => panic!("on purpose"),
    }
}

#[test]
fn a_closure_that_fails_leaves_nothing_whatever_it_did_with_levels() {
    without_panic_messages(|| {
        for (nth, levels) in LEVELS.into_iter().enumerate() {
            for end in [End::Error, End::Panic] {
                let env = env();
                env.update(|txn| put(txn, "mine")).unwrap();
                let ended = catch_unwind(AssertUnwindSafe(|| {
                    env.update(|txn| play(txn, levels, end)).unwrap_err();
                }));
                assert_eq!(ended.is_err(), end == End::Panic);
                assert_eq!(keys(&env), ["mine"], "group, levels {nth}, {end:?}");

                let mut txn = env.write().unwrap();
                put(&mut txn, "outer").unwrap();
                txn.begin_nested().unwrap();
                put(&mut txn, "inner").unwrap();
                let ended = catch_unwind(AssertUnwindSafe(|| {
                    txn.nested(|txn| play(txn, levels, end)).unwrap_err();
                }));
                assert_eq!(ended.is_err(), end == End::Panic);
                put(&mut txn, "later").unwrap();
                drop(txn.commit_nested());
                txn.commit().unwrap();
                let due = ["inner", "later", "mine", "outer"];
                assert_eq!(keys(&env), due, "nested, levels {nth}, {end:?}");
                check(&env, "after a closure that played with levels");
            }
        }
    });
}

/// The caller's level can still be undone, and is all that is undone.
#[test]
fn a_closure_cannot_end_its_callers_level() {
    for (nth, levels) in LEVELS.into_iter().enumerate() {
        let env = env();
        env.update(|txn| put(txn, "mine")).unwrap();
        let mut txn = env.write().unwrap();
        put(&mut txn, "outer").unwrap();
        txn.begin_nested().unwrap();
        put(&mut txn, "inner").unwrap();
        txn.nested(|txn| play(txn, levels, End::Fine)).unwrap();
        drop(txn.abort_nested());
        txn.commit().unwrap();
        assert_eq!(keys(&env), ["mine", "outer"], "levels {nth}");
    }
}

/// A closure of a group that ended the level of the group undid what others had done.
#[test]
fn closures_of_a_group_keep_their_changes_whatever_others_do_with_levels() {
    let env = env();
    let txn = env.write().unwrap();
    let started = Barrier::new(9);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (env, started) = (&env, &started);
            scope.spawn(move || {
                started.wait();
                env.update(|txn| {
                    put(txn, &format!("{n}"))?;
                    (0..n).for_each(|_| drop(txn.abort_nested()));
                    (0..n).for_each(|_| drop(txn.commit_nested()));
                    Ok(())
                })
                .unwrap();
            });
        }
        started.wait();
        std::thread::sleep(Duration::from_millis(50));
        drop(txn);
    });
    assert_eq!(keys(&env), ["0", "1", "2", "3", "4", "5", "6", "7"]);
}

#[test]
fn a_closure_gets_an_error_for_a_level_that_is_not_its_own() {
    let env = env();
    let mut txn = env.write().unwrap();
    assert!(matches!(txn.commit_nested(), Err(Error::NoNestedLevel)));
    assert!(matches!(txn.abort_nested(), Err(Error::NoNestedLevel)));
    txn.begin_nested().unwrap();
    txn.nested(|txn| {
        assert!(matches!(txn.commit_nested(), Err(Error::NoNestedLevel)));
        txn.begin_nested()?;
        put(txn, "kept")?;
        txn.commit_nested()?;
        txn.begin_nested()?;
        put(txn, "undone")?;
        txn.nested(|txn| {
            assert!(matches!(txn.abort_nested(), Err(Error::NoNestedLevel)));
            put(txn, "undone too")
        })?;
        txn.abort_nested()?;
        assert!(matches!(txn.abort_nested(), Err(Error::NoNestedLevel)));
        // Left open, it ends as the closure does.
        txn.begin_nested()?;
        put(txn, "left open")
    })
    .unwrap();
    txn.commit_nested().unwrap();
    assert!(matches!(txn.commit_nested(), Err(Error::NoNestedLevel)));
    txn.commit().unwrap();
    assert_eq!(keys(&env), ["kept", "left open"]);
    check(&env, "after levels of several owners");
}

/// What broke a level that a closure left open breaks the closure.
#[test]
fn a_broken_level_left_open_is_undone_with_its_closure() {
    let (_dir, path) = fresh();
    let small = geometry(|g| g.upper = 1 << 20);
    let env = Options::new().geometry(small).dirty_limit(64 << 10).open(path).unwrap();
    let mut txn = env.write().unwrap();
    put(&mut txn, "outer").unwrap();
    let result = txn.nested(|txn| {
        put(txn, "inner")?;
        txn.begin_nested()?;
        let mut table = txn.table("t")?;
        let full = (0..1000u32).find_map(|n| table.put(n.to_be_bytes(), [1; 5000]).err());
        assert!(full.is_some(), "it was never full");
        Ok(())
    });
    assert!(matches!(result, Err(Error::TxnBroken)), "{result:?}");
    txn.commit().unwrap();
    assert_eq!(keys(&env), ["outer"]);
    check(&env, "after a broken level");
}

/// A closure has the transaction by reference, so it can put another one in its place.
#[test]
fn a_closure_that_swaps_transactions_commits_neither() {
    let (env, other) = (env(), env());
    for commits in [true, false] {
        let result = env.update(|txn| {
            put(txn, "k")?;
            let mut theirs = other.write()?;
            put(&mut theirs, "k")?;
            std::mem::swap(txn, &mut theirs);
            if commits {
                assert!(matches!(theirs.commit(), Err(Error::Invalid(_))));
            }
            Ok(())
        });
        assert!(matches!(result, Err(Error::TxnBroken)), "{result:?}");
        assert!(keys(&env).is_empty() && keys(&other).is_empty());
    }
    // Nor does one that ends it and begins another in the same store.
    let mut mine = env.write().unwrap();
    put(&mut mine, "k").unwrap();
    let result = mine.nested(|txn| {
        let theirs = other.write()?;
        drop(std::mem::replace(txn, theirs));
        *txn = env.write()?;
        put(txn, "k")
    });
    assert!(matches!(result, Err(Error::TxnBroken)), "{result:?}");
    assert!(matches!(mine.commit(), Err(Error::TxnBroken)));
    assert!(keys(&env).is_empty());
    for env in [env, other] {
        env.update(|txn| put(txn, "after")).unwrap();
        assert_eq!(keys(&env), ["after"]);
    }
}

/// Counts, and does something, when it is dropped.
struct Dropped<'a, F: Fn()>(&'a AtomicU32, F);

impl<F: Fn()> Drop for Dropped<'_, F> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        (self.1)();
    }
}

/// Several closures whose commit fails: their results are dropped. Gives how each of them ended.
fn results_dropped(on_drop: impl Fn(&Env) + Sync) -> (u32, Vec<std::thread::Result<Result<()>>>) {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new().geometry(geometry(|g| g.upper = 1 << 20))).unwrap();
    let dropped = AtomicU32::new(0);
    let txn = env.write().unwrap();
    let started = Barrier::new(7);
    let ends = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|n: u32| {
                let (env, started, dropped, on_drop) = (&env, &started, &dropped, &on_drop);
                scope.spawn(move || {
                    started.wait();
                    let result = env.update(|txn| {
                        // Together they do not fit.
                        let mut table = txn.table_or_create("large")?;
                        table.put(n.to_be_bytes(), vec![1; 400_000])?;
                        Ok(Dropped(dropped, || on_drop(env)))
                    });
                    result.map(std::mem::forget)
                })
            })
            .collect();
        started.wait();
        std::thread::sleep(Duration::from_millis(50));
        drop(txn);
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    check(&env, "after results were dropped");
    (dropped.into_inner(), ends)
}

#[test]
fn a_result_whose_drop_uses_the_store_is_dropped_outside_of_locks() {
    let updates = within(60, || {
        let done = AtomicU32::new(0);
        let (dropped, ends) = results_dropped(|env| {
            env.update(|txn| put(txn, "from a drop")).unwrap();
            done.fetch_add(1, Ordering::SeqCst);
        });
        let failed = ends.iter().filter(|end| matches!(end, Ok(Err(Error::MapFull { .. }))));
        assert_eq!(failed.count() as u32, dropped);
        assert!(dropped >= 3, "{dropped} results were dropped");
        (done.into_inner(), dropped)
    });
    assert_eq!(updates.0, updates.1);
}

#[test]
fn a_result_whose_drop_panics_leaves_nobody_waiting() {
    without_panic_messages(|| {
        let (dropped, ends) = within(60, || results_dropped(|_| panic!("in a drop")));
        let panicked = ends.iter().filter(|end| end.is_err()).count() as u32;
        assert_eq!(panicked, dropped, "a panic went to another thread than its value's");
        assert!(dropped >= 3, "{dropped} results were dropped");
    });
}

/// Closures wait for a transaction whose flush fails: they cannot run, and what they hold is dropped.
/// Tells how many were dropped, once a flush has failed.
fn closures_never_run(nth: i64, on_drop: impl Fn(&Env) + Sync) -> Option<(u32, u32)> {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new()).unwrap();
    let dropped = AtomicU32::new(0);
    let mut txn = env.write().unwrap();
    put(&mut txn, "k").unwrap();
    let started = Barrier::new(7);
    let panicked = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|_| {
                let (env, started, dropped, on_drop) = (&env, &started, &dropped, &on_drop);
                scope.spawn(move || {
                    let held = Dropped(dropped, || on_drop(env));
                    started.wait();
                    env.update(move |txn| {
                        std::mem::forget(held);
                        put(txn, "k")
                    })
                })
            })
            .collect();
        started.wait();
        std::thread::sleep(Duration::from_millis(50));
        file.fail(nth, 1);
        let _ = txn.commit();
        let ends: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        ends.iter().filter(|end| end.is_err()).count()
    });
    file.heal();
    let poisoned = matches!(env.update(|_| Ok(())), Err(Error::Poisoned { .. }));
    poisoned.then_some((dropped.into_inner(), panicked as u32))
}

#[test]
fn closures_that_never_run_are_dropped_outside_of_locks() {
    without_panic_messages(|| {
        let uses_the_store = || {
            let on_drop = |env: &Env| drop(env.update(|_| Ok(())).unwrap_err());
            (0..20).find_map(|nth| closures_never_run(nth, on_drop))
        };
        assert_eq!(within(60, uses_the_store), Some((6, 0)));
        let panics = || (0..20).find_map(|nth| closures_never_run(nth, |_| panic!("in a drop")));
        assert_eq!(within(60, panics), Some((6, 6)));
    });
}
