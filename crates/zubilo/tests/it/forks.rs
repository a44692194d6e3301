//! Forks of a process whose other threads open and close stores: a child has no part in what they had
//! locked at that moment, and opens stores of its own.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use zubilo::{Durability, Env, Error, Options};

use crate::common::process::{apart, fork};
use crate::common::{check, contents, fresh, put_all};

/// Without a lock file, since a forked child holds on to the locks of what it inherits.
fn options() -> Options {
    Options::new().durability(Durability::LAZY).lock_file(false).reserve(1 << 20)
}

fn open(path: &Path) -> Env {
    options().open(path).unwrap()
}

/// In a child: a store of its own, from its creation to its end.
fn use_a_store(path: &Path) {
    let env = Options::new().durability(Durability::LAZY).open(path).unwrap();
    put_all(&env, "t", [("k", "v")]);
    assert_eq!(contents(&env.read().unwrap()).len(), 1);
    env.close_without_sync();
}

/// Waits for a child, which must end well; one that waits for ever is ended, and the test reports where it waited.
fn assert_ends_well(pid: i32) {
    let started = Instant::now();
    let mut status = 0;
    // SAFETY: waits for a child of this process and writes one integer.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == 0 {
        std::thread::sleep(Duration::from_micros(300));
        if started.elapsed() > Duration::from_secs(60) {
            let told = |what| std::fs::read_to_string(format!("/proc/{pid}/{what}"));
            let call = told("syscall");
            // SAFETY: ends a child that nobody has waited for yet.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            panic!("a child waits for what its parent's threads had locked: system call {call:?}");
        }
    }
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status:x}");
}

#[test]
fn a_child_forked_while_threads_open_and_close_stores_opens_its_own() {
    let _apart = apart();
    // In memory where there is such a place: no flush takes its time.
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    // Each open looks through the stores that are open: many of them make its moments long.
    let kept: Vec<Env> = (0..150).map(|n| open(&dir.path().join(format!("kept-{n}")))).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for n in 0..3 {
            let (path, done) = (dir.path().join(format!("own-{n}")), &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    open(&path).close_without_sync();
                }
            });
        }
        let forks = std::panic::catch_unwind(|| {
            for n in 0..300 {
                let path = dir.path().join(format!("child-{n}"));
                assert_ends_well(fork(|| use_a_store(&path)));
                std::fs::remove_file(&path).unwrap();
            }
        });
        done.store(true, Ordering::Relaxed);
        assert!(forks.is_ok());
    });
    drop(kept);
}

fn inheritable(path: &Path) -> Env {
    Options::new().durability(Durability::LAZY).reopen_after_fork(true).open(path).unwrap()
}

fn is_forked<T>(result: zubilo::Result<T>) -> bool {
    matches!(result, Err(Error::Forked))
}

/// Threads of the parent read, write and queue changes at the moment of each fork.
#[test]
fn inherited_handles_open_again_whatever_the_parents_threads_do() {
    let _apart = apart();
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let env = inheritable(&dir.path().join("store"));
    put_all(&env, "t", [("before", "all")]);
    let done = AtomicBool::new(false);
    const CHILDREN: u32 = 60;
    std::thread::scope(|scope| {
        for n in 0..3u8 {
            let (env, done) = (env.clone(), &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let read = env.read().unwrap();
                    assert!(read.table("t").unwrap().get("before").unwrap().is_some());
                    env.update(|txn| txn.table("t")?.put([b'p', n], [n; 300])).unwrap();
                    put_all(&env, "t", [([b'q', n], [n; 30])]);
                }
            });
        }
        let forks = std::panic::catch_unwind(AssertUnwindSafe(|| {
            for n in 0..CHILDREN {
                let known = env.info().unwrap().newest;
                assert_ends_well(fork(|| {
                    let read = env.read().unwrap();
                    assert!(read.id() >= known);
                    assert!(read.table("t").unwrap().get("before").unwrap().is_some());
                    let key = [b"child".as_slice(), &n.to_be_bytes()].concat();
                    match n % 3 {
                        0 => env.update(|txn| txn.table("t")?.put(&key, "own")).unwrap(),
                        1 => drop(put_all(&env, "t", [(&key, "own")])),
                        // Each thread of the child finds the same store.
                        _ => std::thread::scope(|scope| {
                            let put = || env.update(|txn| txn.table("t")?.put(&key, "own"));
                            let threads = [0; 3].map(|_| scope.spawn(put));
                            threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
                        }),
                    }
                    env.sync().unwrap();
                }));
            }
        }));
        done.store(true, Ordering::Relaxed);
        assert!(forks.is_ok());
    });
    let read = env.read().unwrap();
    let count = read.table("t").unwrap().prefix("child").count();
    assert_eq!(count, CHILDREN as usize);
    check(&env, "after all children");
}

#[test]
fn what_was_open_at_the_fork_stays_refused_and_the_parents() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let env = inheritable(&path);
    put_all(&env, "t", [("key", "value")]);
    let mut reader = env.reader().unwrap();
    let read = env.read().unwrap();
    let write = env.write().unwrap();
    let newest = env.info().unwrap().newest;
    let mut inherited = Some((read, write));
    assert_ends_well(fork(|| {
        let (read, mut write) = inherited.take().unwrap();
        assert!(is_forked(read.tables()));
        assert!(is_forked(read.try_clone()));
        assert!(is_forked(write.table_or_create("new").and_then(|mut table| table.put("a", "b"))));
        assert!(is_forked(reader.begin().map(drop)));
        assert!(is_forked(write.commit()));
        drop(read);
        // The parent has the writer lock: a child that does not wait hears so.
        assert!(env.try_write().unwrap().is_none());
        assert_eq!(env.read().unwrap().id(), newest);
    }));
    let (read, mut write) = inherited.unwrap();
    assert_eq!(read.table("t").unwrap().get("key").unwrap(), Some(&b"value"[..]));
    write.table("t").unwrap().put("the parent", "goes on").unwrap();
    drop(read);
    write.commit().unwrap();
    check(&env, "parent");
}

#[test]
fn handles_of_children_open_again_in_grandchildren_and_close_with_their_last() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let env = inheritable(&path);
    put_all(&env, "t", [("parent", "1")]);
    let mut env = Some(env);
    assert_ends_well(fork(|| {
        let inherited = env.take().unwrap();
        put_all(&inherited, "t", [("child", "1")]);
        assert_ends_well(fork(|| {
            put_all(&inherited, "t", [("grandchild", "1")]);
        }));
        assert_eq!(inherited.read().unwrap().table("t").unwrap().len(), 3);
        let second = inherited.clone();
        drop(inherited);
        put_all(&second, "t", [("child", "2")]);
        second.close().unwrap();
        // Were it still open, this would be another handle on it.
        let env = Options::new().read_only(true).open(&path).unwrap();
        assert!(matches!(env.write(), Err(Error::ReadOnly)));
    }));
    let env = env.unwrap();
    assert_eq!(env.read().unwrap().table("t").unwrap().len(), 3);
    check(&env, "parent");
}

#[test]
fn nothing_opens_again_that_was_not_asked_for_or_is_not_shared() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    assert_ends_well(fork(|| {
        assert!(is_forked(env.read()));
        assert!(is_forked(env.write()));
        assert!(is_forked(env.sync()));
    }));
    drop(env);
    let env = Options::new().lock_file(false).reopen_after_fork(true).open(&path).unwrap();
    assert_ends_well(fork(|| assert!(is_forked(env.read()))));
    drop(env);
    let env = Options::new().exclusive(true).reopen_after_fork(true).open(&path).unwrap();
    assert_ends_well(fork(|| assert!(matches!(env.read(), Err(Error::Busy(_))))));
    drop(env);
    // Another file in the place of the one that was open.
    let env = inheritable(&path);
    let other = path.with_extension("other");
    drop(Options::new().open(&other).unwrap());
    std::fs::rename(&other, &path).unwrap();
    assert_ends_well(fork(|| assert!(matches!(env.read(), Err(Error::Busy(_))))));
    assert!(env.read().is_ok());
}
