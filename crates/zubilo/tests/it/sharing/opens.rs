//! Opens and ends within one process.

use std::os::fd::AsRawFd;
use std::time::Duration;

use zubilo::{Durability, Options};

use super::store;
use crate::common::process::apart;
use crate::common::{fresh, put_all};

/// Another process takes its time with one store.
#[test]
fn a_store_that_takes_long_to_open_delays_no_other() {
    let _apart = apart();
    let (_dir, slow) = fresh();
    let (_dir2, other) = fresh();
    store(&slow).close().unwrap();
    // As an opener that has not announced its region yet.
    let path = Options::default_lock_path(&slow);
    let lock_file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    // SAFETY: all zeros are a value of this plain structure.
    let mut lock: libc::flock64 = unsafe { std::mem::zeroed() };
    (lock.l_type, lock.l_len) = (libc::F_WRLCK as libc::c_short, 1);
    // SAFETY: the descriptor is open and the structure outlives the call.
    let done = unsafe { libc::fcntl(lock_file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) };
    assert_eq!(done, 0);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| Options::new().open(&slow).is_ok());
        std::thread::sleep(Duration::from_millis(300));
        let env = Options::new().open(&other).unwrap();
        assert!(!waiting.is_finished(), "the slow store was not slow");
        put_all(&env, "t", [("k", "v")]);
        drop(lock_file);
        assert!(waiting.join().unwrap(), "the other store was opened after this one had given up");
    });
}

/// Its commit is durable, as the last handle's end has promised for those before it.
#[test]
fn a_commit_after_the_last_handle_is_flushed() {
    let _apart = apart();
    for durability in [Durability::LAZY, Durability::NoSync] {
        let (_dir, path) = fresh();
        let env = Options::new().durability(durability).open(&path).unwrap();
        put_all(&env, "t", [("k", "v")]);
        let mut txn = env.write().unwrap();
        txn.table("t").unwrap().put("l", "w").unwrap();
        let reader = env.read().unwrap();
        drop(env);
        let newest = txn.commit().unwrap();
        // The store itself lives as long as this reader; nobody may wait for that.
        let other = Options::new().durability(durability).open(&path).unwrap();
        let info = other.info().unwrap();
        assert_eq!((info.newest, info.steady), (newest, newest), "{durability:?}");
        drop(reader);
    }
}
