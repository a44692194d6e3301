//! Pages that a writer moves or takes back by itself, and that were damaged meanwhile: leaves that a commit
//! moves out of nearly free windows, and pages that a large transaction has written early.

use std::collections::BTreeSet;
use std::time::Duration;

use zubilo::{Durability, Env, Error, Options, PageNo, Result};

use crate::common::memory::MemoryFile;
use crate::common::{Rng, check, contents, geometry, put_all};

const PAGE: usize = 4096;
/// What was written within the last second is not verified: it has been on no disk.
const A_WHILE: Duration = Duration::from_millis(1100);

/// Where the value of a record lies.
fn page(file: &MemoryFile, value: &[u8]) -> u64 {
    ((value.as_ptr() as usize - file.base()) / PAGE) as u64
}

/// The leaves of the table.
fn leaves(env: &Env, file: &MemoryFile) -> BTreeSet<u64> {
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    table.iter().map(|record| page(file, record.unwrap().1)).collect()
}

fn page_of(env: &Env, file: &MemoryFile, key: &[u8]) -> u64 {
    let read = env.read().unwrap();
    page(file, read.table("t").unwrap().get(key).unwrap().unwrap())
}

const RECORDS: u64 = 20_000;

/// The keys that commit number `n` changes.
fn keys(n: u64) -> Vec<[u8; 8]> {
    let mut rng = Rng::new(1000 + n);
    (0..5).map(|_| rng.below(RECORDS).to_be_bytes()).collect()
}

fn commit(env: &Env, n: u64) -> Result<()> {
    let mut txn = env.write()?;
    let mut table = txn.table("t")?;
    keys(n).iter().try_for_each(|key| table.put(key, [n as u8; 90]))?;
    txn.commit().map(drop)
}

/// A store that changes all over; each run of it takes the same pages.
fn aged(commits: u64) -> (MemoryFile, Env) {
    let file = MemoryFile::new(&[]);
    // With little more room than it needs, free pages come in short runs.
    let bound = geometry(|g| g.upper = 3600 << 10);
    let env = file.open(Options::new().geometry(bound)).unwrap();
    put_all(&env, "t", (0..RECORDS).map(|n| (n.to_be_bytes(), [0; 90])));
    (0..commits).for_each(|n| commit(&env, n).unwrap());
    (file, env)
}

/// A commit that moves leaves which it does not change, and one of them.
fn a_commit_that_moves() -> (u64, u64) {
    let (file, env) = aged(0);
    for n in 0..2000 {
        let before = leaves(&env, &file);
        let changed: BTreeSet<u64> = keys(n).iter().map(|k| page_of(&env, &file, k)).collect();
        commit(&env, n).unwrap();
        let after = leaves(&env, &file);
        if let Some(moved) = before.iter().find(|p| !after.contains(p) && !changed.contains(p)) {
            return (n, *moved);
        }
    }
    panic!("no commit has moved a leaf");
}

#[test]
fn a_damaged_leaf_is_not_moved_out_of_a_window() {
    let (n, moved) = a_commit_that_moves();
    let (file, env) = aged(n);
    assert!(leaves(&env, &file).contains(&moved), "another run took other pages");
    std::thread::sleep(A_WHILE);
    let before = contents(&env.read().unwrap());
    // In a value, where the page's form does not tell.
    let image = file.image();
    let page = &image[moved as usize * PAGE..(moved as usize + 1) * PAGE];
    let inside = page.windows(40).rposition(|w| w.iter().all(|b| *b == w[0])).unwrap() + 20;
    let at = moved as usize * PAGE + inside;
    file.flip(at, 4);
    commit(&env, n).unwrap();
    assert!(leaves(&env, &file).contains(&moved), "the damaged leaf was written anew");
    let report = env.check(&mut |_, _| true).unwrap();
    assert!(report.problems.iter().any(|p| p.page == PageNo(moved)), "{:?}", report.problems);
    // The commit did what it should, and with the bit put right all is there.
    file.flip(at, 4);
    check(&env, "the damage is undone");
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    assert!(keys(n).iter().all(|key| table.get(key).unwrap() == Some(&[n as u8; 90][..])));
    assert_eq!(contents(&read).len(), before.len());
}

/// The key of a record of the transaction, and its value, which no other has.
fn own(n: u64) -> ([u8; 8], Vec<u8>) {
    let mark = (0xA5A5_0000_0000 | n).to_be_bytes();
    (n.to_be_bytes(), mark.repeat(20))
}

/// Where a record lies that the transaction has written early; `None` if it is in memory.
fn early(file: &MemoryFile, n: u64) -> Option<usize> {
    let value = own(n).1;
    file.image().windows(value.len()).position(|w| w == value)
}

/// A change of the record is refused, and nothing of the transaction is left; the next one has the whole store.
fn assert_refused(durability: Durability, nested: bool) {
    let file = MemoryFile::new(&[]);
    let options = || Options::new().durability(durability).dirty_limit(64 << 10);
    let env = file.open(options()).unwrap();
    put_all(&env, "t", [("before", "the transaction")]);
    let mut txn = env.write().unwrap();
    let fill = |txn: &mut zubilo::WriteTxn, from: u64| {
        let mut table = txn.table_or_create("large").unwrap();
        (from..from + 2000).for_each(|n| table.put(own(n).0, own(n).1).unwrap());
    };
    fill(&mut txn, 0);
    let n = (0..2000).find(|n| early(&file, *n).is_some()).expect("nothing was written early");
    let at = early(&file, n).unwrap();
    let page = PageNo((at / PAGE) as u64);
    std::thread::sleep(A_WHILE);
    file.flip(at + 30, 1);
    if nested {
        txn.begin_nested().unwrap();
    }
    let changed = txn.table("large").and_then(|mut table| table.put(own(n).0, b"another"));
    match changed {
        Err(Error::Corrupted { page: named, .. }) => assert_eq!(named, page),
        other => panic!("{durability:?}, nested {nested}: {other:?}"),
    }
    if nested {
        // The level has changed nothing, and the transaction goes on; the damage is on its way to be found.
        txn.abort_nested().unwrap();
        fill(&mut txn, 10_000);
        txn.commit().unwrap();
        let report = env.check(&mut |_, _| true).unwrap();
        assert!(report.problems.iter().any(|p| p.page == page), "{:?}", report.problems);
        file.flip(at + 30, 1);
        check(&env, "the damage is undone");
        let read = env.read().unwrap();
        assert_eq!(read.table("large").unwrap().len(), 4000);
        assert_eq!(read.table("large").unwrap().get(own(n).0).unwrap(), Some(&own(n).1[..]));
        return;
    }
    assert!(matches!(txn.commit(), Err(Error::TxnBroken)));
    let mut txn = env.write().unwrap();
    fill(&mut txn, 0);
    txn.commit().unwrap();
    check(&env, "the next transaction");
    assert_eq!(env.read().unwrap().table("large").unwrap().len(), 2000);
}

#[test]
fn a_page_written_early_and_damaged_since_is_not_taken_back() {
    for durability in [Durability::Sync, Durability::NoSync] {
        for nested in [false, true] {
            assert_refused(durability, nested);
        }
    }
}

/// The value has pages of its own.
#[test]
fn a_large_value_written_early_and_damaged_since_is_found() {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new().dirty_limit(64 << 10)).unwrap();
    let mut txn = env.write().unwrap();
    let large = |n: u64| own(n).1.repeat(60);
    let mut table = txn.table_or_create("large").unwrap();
    (0..60u64).for_each(|n| table.put(own(n).0, large(n)).unwrap());
    let n = (0..60).find(|n| early(&file, *n).is_some()).expect("nothing was written early");
    let at = early(&file, n).unwrap();
    std::thread::sleep(A_WHILE);
    file.flip(at + 30, 1);
    // Not replaced, so not looked at: the commit stands, and the check names the page.
    txn.commit().unwrap();
    let report = env.check(&mut |_, _| true).unwrap();
    let page = (at / PAGE) as u64;
    assert!(report.problems.iter().any(|p| p.page.0 <= page), "{:?}", report.problems);
    assert!(!report.is_ok());
    file.flip(at + 30, 1);
    check(&env, "the damage is undone");
}
