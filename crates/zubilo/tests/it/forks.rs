//! Forks of a process whose other threads open and close stores: a child has no part in what they had
//! locked at that moment, and opens stores of its own.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use zubilo::{Durability, Env, Options};

use crate::common::process::{apart, fork};
use crate::common::{contents, put_all};

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
