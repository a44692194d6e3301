//! What of a store is in memory, and bringing it there.

use std::os::fd::AsRawFd;

use zubilo::{Env, Error, Options, TableOptions, WarmUp};

use crate::common::fresh;

/// Drops what the system has of a file in memory. What is dirty, or mapped by somebody, stays.
fn forget(path: &std::path::Path) {
    let file = std::fs::File::open(path).unwrap();
    file.sync_all().unwrap();
    // SAFETY: advice on an open descriptor; no memory is passed.
    let done = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(done, 0);
}

fn resident(env: &Env) -> (u64, u64) {
    let (mut pages, mut seen) = (0, 0);
    let told = env
        .residency(&mut |_, is_resident| {
            pages += 1;
            seen += u64::from(is_resident);
        })
        .unwrap();
    assert_eq!((told.pages, told.resident), (pages, seen));
    (pages, seen)
}

fn filled(path: &std::path::Path) -> Env {
    let env = Options::new().open(path).unwrap();
    let mut txn = env.write().unwrap();
    let mut plain = txn.table_or_create("plain").unwrap();
    for n in 0..20_000u32 {
        plain.put(n.to_be_bytes(), [7; 100]).unwrap();
    }
    let mut large = txn.table_or_create("large").unwrap();
    for n in 0..10u32 {
        large.put(n.to_be_bytes(), vec![8; 100_000]).unwrap();
    }
    let mut many = txn.create_table("many", TableOptions::new().duplicates()).unwrap();
    for n in 0..20_000u32 {
        many.put([(n % 2) as u8], n.to_be_bytes()).unwrap();
    }
    txn.commit().unwrap();
    env
}

#[test]
fn a_store_that_was_warmed_up_is_in_memory() {
    let (_dir, path) = fresh();
    filled(&path).close().unwrap();
    forget(&path);
    let env = Options::new().open(&path).unwrap();
    let (pages, before) = resident(&env);
    let mut told = (0, 0);
    let brought = env.warm_up(WarmUp::Wait, &mut |done, all| {
        assert!(told.0 < done && done <= all);
        told = (done, all);
        true
    });
    assert_eq!((brought.unwrap(), told), (pages - 4, (pages - 4, pages - 4)));
    assert_eq!(resident(&env), (pages, pages));
    if before == pages {
        println!("NOT TESTED: this file system keeps all in memory");
    }
    env.warm_up(WarmUp::ReadAhead, &mut |_, _| true).unwrap();
    let stopped = env.warm_up(WarmUp::Wait, &mut |_, _| false);
    assert!(matches!(stopped, Err(Error::Stopped)));
}

#[test]
fn a_table_brings_its_own_pages() {
    let (_dir, path) = fresh();
    let env = filled(&path);
    let read = env.read().unwrap();
    let goes_on = &mut |done, all| {
        assert!(done <= all);
        true
    };
    for name in ["plain", "large", "many"] {
        let stats = read.table(name).unwrap().stats();
        let own = stats.leaf_pages + stats.run_pages + stats.value_pages;
        let brought = env.warm_up_table::<&[u8]>(name, .., WarmUp::Wait, goes_on).unwrap();
        // The branches of trees of values are read on the way.
        assert!(
            own - stats.value_pages / 20 - 2 <= brought && brought <= own,
            "{name}: {brought} of {own}"
        );
    }
    let half = env.warm_up_table("plain", ..10_000u32.to_be_bytes(), WarmUp::ReadAhead, goes_on);
    let half = half.unwrap() as f64 / read.table("plain").unwrap().stats().leaf_pages as f64;
    assert!((0.45..0.55).contains(&half), "{half}");
    let one = 5u32.to_be_bytes();
    assert_eq!(env.warm_up_table("plain", one..=one, WarmUp::Wait, goes_on).unwrap(), 1);
    assert!(matches!(
        env.warm_up_table::<&[u8]>("none", .., WarmUp::Wait, goes_on),
        Err(Error::NoSuchTable { .. })
    ));
}
