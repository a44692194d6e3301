//! Group commit: what `Env::update` promises to each of the threads that share a commit.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use zubilo::{Durability, Env, Error, Options, Result, WriteTxn};

use crate::common::memory::MemoryFile;
use crate::common::{
    Rng, check, fresh, geometry, number, put_all, seed, within, without_panic_messages,
};

fn put(txn: &mut WriteTxn, key: u64, value: &str) -> Result<()> {
    txn.table_or_create("t")?.put(key.to_be_bytes(), value)
}

fn keys(env: &Env) -> BTreeSet<u64> {
    let read = env.read().unwrap();
    let Ok(table) = read.table("t") else { return BTreeSet::new() };
    let number = |key: &[u8]| u64::from_be_bytes(key.try_into().unwrap());
    table.iter().map(|r| number(r.unwrap().0)).collect()
}

#[test]
fn a_closure_gives_its_result() {
    let env = MemoryFile::new(&[]).open(Options::new()).unwrap();
    let id = env.update(|txn| put(txn, 1, "a").map(|()| txn.id())).unwrap();
    assert_eq!(env.read().unwrap().id(), id);
    let text: String = env
        .update(|txn| {
            let table = txn.table("t")?;
            let value = table.get(1u64.to_be_bytes())?.unwrap();
            Ok::<_, Error>(String::from_utf8_lossy(value).into_owned())
        })
        .unwrap();
    assert_eq!(text, "a");
    // Nothing changed, nothing committed.
    assert_eq!(env.info().unwrap().newest, id);
    // Closures borrow from their caller's stack, and move things in and out.
    let names = ["b".to_string(), "c".to_string()];
    let given = env.update(|txn| {
        for (i, name) in names.iter().enumerate() {
            put(txn, i as u64 + 10, name)?;
        }
        Ok::<_, Error>(Box::new(names.len()))
    });
    assert_eq!(*given.unwrap(), 2);
}

/// Runs `count` closures so that they share commits; gives the results by number.
fn together<T: Send>(
    env: &Env,
    count: u64,
    job: impl Fn(u64, &mut WriteTxn) -> Result<T> + Sync,
) -> Vec<std::thread::Result<Result<T>>> {
    // While this thread has the writer lock, all others queue.
    let txn = env.write().unwrap();
    let started = Barrier::new(count as usize + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|n| {
                let (job, started) = (&job, &started);
                scope.spawn(move || {
                    started.wait();
                    env.update(|txn| job(n, txn))
                })
            })
            .collect();
        started.wait();
        std::thread::sleep(Duration::from_millis(50));
        drop(txn);
        threads.into_iter().map(|t| t.join()).collect()
    })
}

#[test]
fn closures_share_a_commit_and_a_flush() {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new()).unwrap();
    put_all(&env, "t", [(7u64.to_be_bytes(), "x")]);
    let (before, flushes) = (env.info().unwrap().newest.0, file.flushes());
    let results = together(&env, 16, |n, txn| put(txn, 100 + n, "x"));
    assert!(results.into_iter().all(|r| r.unwrap().is_ok()));
    let commits = env.info().unwrap().newest.0 - before;
    assert!(commits <= 4, "{commits} commits for 16 closures that waited together");
    assert_eq!(file.flushes() - flushes, commits);
    assert_eq!(keys(&env).len(), 17);
}

#[test]
fn an_error_or_panic_undoes_its_own_closure_alone() {
    let env = MemoryFile::new(&[]).open(Options::new()).unwrap();
    let results = without_panic_messages(|| {
        together(&env, 24, |n, txn| {
            put(txn, n, "x")?;
            match n % 4 {
                0 => Err(Error::Stopped),
                1 => panic!("panic {n}"),
                2 => txn.table("t")?.put(vec![0; 5000], "too long").map(|()| n),
                _ => Ok(n),
            }
        })
    });
    for (n, result) in results.into_iter().enumerate() {
        match (n % 4, result) {
            (0, Ok(Err(Error::Stopped))) | (2, Ok(Err(Error::KeyTooLong { .. }))) => {}
            (1, Err(panic)) => {
                assert_eq!(panic.downcast_ref::<String>(), Some(&format!("panic {n}")));
            }
            (3, Ok(Ok(given))) => assert_eq!(given, n as u64),
            (_, other) => panic!("closure {n}: {other:?}"),
        }
    }
    assert_eq!(keys(&env), (0..24).filter(|n| n % 4 == 3).collect());
    check(&env, "after errors and panics");
    env.update(|txn| put(txn, 99, "x")).unwrap();
}

#[test]
fn an_error_of_the_commit_reaches_every_closure() {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new().geometry(geometry(|g| g.upper = 1 << 20))).unwrap();
    put_all(&env, "t", [(0u64.to_be_bytes(), "x")]);
    // It does not fit.
    let results = together(&env, 8, |n, txn| put(txn, n, &"x".repeat(400_000)));
    let full = results.into_iter().filter(|r| matches!(r, Ok(Err(Error::MapFull { .. }))));
    assert!(full.count() >= 3, "too few have heard of it");
    check(&env, "after a group that did not fit");
    // A write fails, then a flush.
    let before = keys(&env);
    file.fail(0, 1000);
    let results = together(&env, 8, |n, txn| put(txn, 50 + n, "x"));
    assert!(file.heal());
    for result in results {
        assert!(matches!(result, Ok(Err(Error::Io { .. }))), "{result:?}");
    }
    assert_eq!(keys(&env), before);
    env.update(|txn| put(txn, 60, "x")).unwrap();
    let mut poisoned = false;
    for nth in 0..20 {
        file.fail(nth, 1000);
        let results = together(&env, 4, |n, txn| put(txn, 70 + n, "x"));
        let failed = file.heal();
        assert!(!failed || results.iter().all(|r| matches!(r, Ok(Err(_)))));
        poisoned |= matches!(env.update(|_| Ok(())), Err(Error::Poisoned { .. }));
        if poisoned {
            break;
        }
    }
    assert!(poisoned, "no flush has failed");
}

#[test]
fn writers_inside_closures_are_refused_without_a_deadlock() {
    within(60, || {
        let (_dir, path) = fresh();
        let env = Options::new().open(&path).unwrap();
        let busy =
            |result: Result<()>| assert!(matches!(result, Err(Error::Busy(_))), "{result:?}");
        env.update(|txn| {
            busy(env.update(|_| Ok(())));
            busy(env.write().map(drop));
            assert!(env.try_write().unwrap().is_none());
            // What takes no writer lock works.
            assert_eq!(env.read().unwrap().tables().unwrap().len(), 0);
            env.info().unwrap();
            env.sync().unwrap();
            env.check(&mut |_, _| true).unwrap();
            put(txn, 1, "x")
        })
        .unwrap();
        let txn = env.write().unwrap();
        busy(env.update(|_| Ok(())));
        busy(env.write().map(drop));
        drop(txn);
        env.update(|txn| put(txn, 2, "x")).unwrap();
        assert_eq!(keys(&env).len(), 2);
        // The same with many threads, each of whose closures may run in another one.
        let results = together(&env, 8, |n, txn| {
            busy(env.update(|_| Ok(())));
            put(txn, 10 + n, "x")
        });
        assert!(results.into_iter().all(|r| r.unwrap().is_ok()));
        check(&env, "at the end");
    });
}

#[test]
fn closures_and_transactions_take_turns() {
    let (_dir, path) = fresh();
    let env = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    let seed = seed(700);
    let rounds = number("ZUBILO_CASES", 150);
    let done = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..6u64 {
            let (env, done) = (&env, &done);
            scope.spawn(move || {
                let mut rng = Rng::new(seed + thread);
                for n in 0..rounds {
                    let key = thread << 32 | n;
                    if rng.one_in(4) {
                        let mut txn = env.write().unwrap();
                        put(&mut txn, key, "x").unwrap();
                        txn.commit().unwrap();
                    } else if rng.one_in(5) {
                        let undone = env.update(|txn| {
                            put(txn, key | 1 << 63, "never")?;
                            Err::<(), _>(Error::Stopped)
                        });
                        assert!(matches!(undone, Err(Error::Stopped)));
                        env.update(|txn| put(txn, key, "x")).unwrap();
                    } else {
                        env.update(|txn| put(txn, key, "x")).unwrap();
                    }
                    // What was acknowledged is seen at once.
                    let read = env.read().unwrap();
                    assert!(read.table("t").unwrap().get(key.to_be_bytes()).unwrap().is_some());
                }
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
    });
    assert_eq!(done.into_inner(), 6, "seed {seed}");
    let expected = (0..6u64).flat_map(|t| (0..rounds).map(move |n| t << 32 | n)).collect();
    assert!(keys(&env) == expected, "seed {seed}");
    check(&env, "after all threads");
}

/// More closures than one leader takes.
#[test]
fn a_long_queue_is_served_to_its_end() {
    let env = Arc::new(MemoryFile::new(&[]).open(Options::new()).unwrap());
    let txn = env.write().unwrap();
    let threads: Vec<_> = (0..1500u64)
        .map(|n| {
            let env = Arc::clone(&env);
            let small = std::thread::Builder::new().stack_size(256 << 10);
            small.spawn(move || env.update(|txn| put(txn, n, "x"))).unwrap()
        })
        .collect();
    drop(txn);
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
    assert_eq!(keys(&env).len(), 1500);
}

#[test]
fn a_closed_writer_refuses_closures() {
    let (_dir, path) = fresh();
    put_all(&Options::new().open(&path).unwrap(), "t", [("k", "v")]);
    let env = Options::new().read_only(true).open(&path).unwrap();
    assert!(matches!(env.update(|_| Ok(())), Err(Error::ReadOnly)));
    assert!(matches!(env.write().map(drop), Err(Error::ReadOnly)));
    assert!(matches!(env.sync(), Err(Error::ReadOnly)));
}
