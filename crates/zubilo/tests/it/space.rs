//! The size of the file: what sleeping readers and late checkpoints may cost, what is given back to
//! the file system, what is really allocated.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use zubilo::{Durability, Env, Error, Options, ReadTxn};

use crate::common::memory::MemoryFile;
use crate::common::{Rng, check, fresh, geometry, number, put_all, seed};

const RECORDS: u64 = 20_000;
const VALUE: usize = 200;

/// A weak commit stays weak: nobody asks for a checkpoint.
const NEVER_FLUSHED: Durability =
    Durability::Lazy { sync_bytes: u64::MAX, sync_period: Duration::from_secs(1 << 20) };

/// The version of each record; its value is made of it.
type Versions = Vec<u64>;

fn key(record: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&record.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key[8..].copy_from_slice(&record.to_be_bytes());
    key
}

fn value(record: u64, version: u64) -> Vec<u8> {
    let mut rng = Rng::new(record << 32 ^ version);
    let mut value = vec![0; VALUE];
    value.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&rng.next().to_le_bytes()));
    value
}

fn fill(env: &Env) -> Versions {
    put_all(env, "t", (0..RECORDS).map(|r| (key(r), value(r, 0))));
    vec![0; RECORDS as usize]
}

/// One transaction with a few random updates.
fn update(env: &Env, versions: &mut Versions, rng: &mut Rng) {
    let mut txn = env.write().unwrap();
    let mut table = txn.table("t").unwrap();
    for _ in 0..1 + rng.below(3) {
        let record = rng.below(RECORDS);
        versions[record as usize] += 1;
        table.put(key(record), value(record, versions[record as usize])).unwrap();
    }
    txn.commit().unwrap();
}

#[track_caller]
fn assert_contents(txn: &ReadTxn, versions: &Versions) {
    let table = txn.table("t").unwrap();
    assert_eq!(table.len(), RECORDS);
    for (record, version) in versions.iter().enumerate() {
        let found = table.get(key(record as u64)).unwrap();
        assert!(found == Some(&value(record as u64, *version)), "record {record} is not right");
    }
}

/// Bytes that the newest commit consists of.
fn live(env: &Env) -> u64 {
    let report = env.check(&mut |_, _| true).unwrap();
    assert!(report.is_ok(), "{:?}", report.problems);
    (report.leaf_pages + report.branch_pages + report.run_pages) * env.page_size() as u64
}

/// Updates with the file below 2.5 times the live data at any time; `what` names the figures.
fn stays_small(env: &Env, versions: &mut Versions, rng: &mut Rng, count: u64, what: &str) {
    let mut largest = 0;
    for n in 0..count {
        update(env, versions, rng);
        if n % 100 == 0 {
            largest = largest.max(env.info().unwrap().file_len);
        }
        if n % 50_000 == 49_999 {
            let (info, report) = (env.info().unwrap(), env.check(&mut |_, _| true).unwrap());
            println!("after {n}: {} of {} bytes in use, {report:?}", info.used_len, info.file_len);
        }
    }
    largest = largest.max(env.info().unwrap().file_len);
    let live = live(env);
    let ratio = largest as f64 / live as f64;
    println!(
        "FIGURES {what}: {count} transactions, {live} bytes live, file at most {largest}, {ratio:.2}"
    );
    assert!(ratio < 2.5, "{what}: the file has {largest} bytes for {live}");
}

/// A reader sleeps on the state after the fill, later another one on a state in the middle.
fn sleeping_reader(env: &Env, count: u64, what: &str) {
    let mut rng = Rng::new(seed(500));
    let mut versions = fill(env);
    // The steady point, if it moves at the caller's word only, is the reader's snapshot.
    env.sync().unwrap();
    let first = (env.read().unwrap(), versions.clone());
    stays_small(env, &mut versions, &mut rng, count, what);
    assert_contents(&first.0, &first.1);
    drop(first);
    // Of another snapshot in the middle, after the first one has gone.
    env.sync().unwrap();
    let second = (env.read().unwrap(), versions.clone());
    stays_small(env, &mut versions, &mut rng, count / 4, what);
    assert_contents(&second.0, &second.1);
    assert_contents(&env.read().unwrap(), &versions);
}

fn sleeping_reader_with_flushes(count: u64) {
    // In memory, where a flush costs nothing.
    let env = MemoryFile::new(&[]).open(Options::new()).unwrap();
    sleeping_reader(&env, count, "a sleeping reader, every commit flushed");
}

fn sleeping_reader_without_flushes(count: u64) {
    let (_dir, path) = fresh();
    let env = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    sleeping_reader(&env, count, "a sleeping reader and an old steady point");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), env.info().unwrap().file_len);
}

fn late_checkpoint(count: u64) {
    let (_dir, path) = fresh();
    let env = Options::new().durability(NEVER_FLUSHED).open(&path).unwrap();
    let mut rng = Rng::new(seed(501));
    let mut versions = fill(&env);
    for round in ["the first", "a later"] {
        env.sync().unwrap();
        let steady = env.info().unwrap().steady;
        let what = format!("LAZY, {round} steady point far behind");
        stays_small(&env, &mut versions, &mut rng, count / 2, &what);
        assert_eq!(env.info().unwrap().steady, steady, "a checkpoint has happened");
    }
    assert_contents(&env.read().unwrap(), &versions);
}

#[test]
fn a_sleeping_reader_holds_back_its_own_pages_only() {
    sleeping_reader_with_flushes(number("ZUBILO_CASES", 12_000));
    sleeping_reader_without_flushes(number("ZUBILO_CASES", 12_000));
}

#[test]
#[ignore = "long: 2.5 million transactions"]
fn long_a_sleeping_reader_holds_back_its_own_pages_only() {
    sleeping_reader_with_flushes(1_000_000);
    sleeping_reader_without_flushes(1_000_000);
}

#[test]
fn an_old_steady_point_holds_back_its_own_pages_only() {
    late_checkpoint(number("ZUBILO_CASES", 20_000));
}

#[test]
#[ignore = "long: a million transactions"]
fn long_an_old_steady_point_holds_back_its_own_pages_only() {
    late_checkpoint(1_000_000);
}

/// Length, and bytes of the blocks that the file system has given.
fn on_disk(path: &Path) -> (u64, u64) {
    let found = std::fs::metadata(path).unwrap();
    (found.len(), found.blocks() * 512)
}

#[test]
fn growth_is_really_allocated() {
    let (_dir, path) = fresh();
    for durability in [Durability::Sync, Durability::NoSync] {
        let env = Options::new().durability(durability).open(&path).unwrap();
        for n in 0..6u8 {
            put_all(&env, "t", [([n], vec![n; 1_500_000])]);
            let (len, blocks) = on_disk(&path);
            assert!(blocks >= len, "{durability:?}: {blocks} bytes of blocks for {len}");
            assert_eq!(env.info().unwrap().file_len, len);
        }
    }
}

#[test]
fn the_free_tail_goes_back_to_the_file_system() {
    for durability in [Durability::Sync, Durability::NoSync] {
        let (_dir, path) = fresh();
        let env = Options::new().durability(durability).open(&path).unwrap();
        put_all(&env, "t", [("small", b"1")]);
        put_all(&env, "t", (0..200u8).map(|n| ([n], vec![n; 100_000])));
        env.sync().unwrap();
        let (full, _) = on_disk(&path);
        assert!(full > 20_000_000);
        let reader = env.read().unwrap();
        let mut txn = env.write().unwrap();
        txn.drop_table("t").unwrap();
        txn.commit().unwrap();
        commit_a_little(&env, 5);
        assert_eq!(on_disk(&path).0, full, "{durability:?}: the reader needs the tail");
        assert_eq!(reader.table("t").unwrap().get([199]).unwrap(), Some(&vec![199; 100_000][..]));
        drop(reader);
        commit_a_little(&env, 5);
        let (len, blocks) = on_disk(&path);
        assert!(len < 3 << 20 && blocks < 3 << 20, "{durability:?}: {len} bytes are left");
        assert_eq!(env.info().unwrap().file_len, len);
        check(&env, "after the cut");
        // It grows again, and all is there after a reopen.
        put_all(&env, "t", (0..50u8).map(|n| ([n], vec![n; 100_000])));
        env.close().unwrap();
        let env = Options::new().open(&path).unwrap();
        assert_eq!(env.read().unwrap().table("t").unwrap().len(), 50);
        check(&env, "after growing again");
    }
}

/// Without flushes, which ask for long runs instead, what is left moves to the front as it is
/// changed, and the tail falls free.
#[test]
fn a_store_that_lost_most_of_its_records_shrinks_with_use() {
    let seed = seed(502);
    let mut rng = Rng::new(seed);
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new().durability(Durability::NoSync)).unwrap();
    put_all(&env, "t", (0..10 * RECORDS).map(|r| (key(r), value(r, 0))));
    env.sync().unwrap();
    let mut versions = vec![0; RECORDS as usize];
    let mut txn = env.write().unwrap();
    let mut table = txn.table("t").unwrap();
    (RECORDS..10 * RECORDS).for_each(|r| assert!(table.delete(key(r)).unwrap()));
    txn.commit().unwrap();
    env.sync().unwrap();
    let full = env.info().unwrap().file_len;
    for _ in 0..number("ZUBILO_CASES", 20_000) {
        update(&env, &mut versions, &mut rng);
    }
    commit_a_little(&env, 3);
    let (len, live) = (env.info().unwrap().file_len, live(&env));
    println!("FIGURES {full} bytes when full, {live} live, {len} after use");
    assert!(full > 4 * live && len < 3 * live, "seed {seed}: {len} bytes for {live}");
    assert_contents(&env.read().unwrap(), &versions);
}

fn commit_a_little(env: &Env, times: u8) {
    for n in 0..times {
        put_all(env, "small", [("n", [n])]);
        env.sync().unwrap();
    }
}

#[test]
fn bounds_and_steps_are_kept() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let mut txn = env.write().unwrap();
    txn.set_geometry(geometry(|g| {
        (g.lower, g.growth, g.shrink) = (3 << 20, 2 << 20, 1 << 20);
    }))
    .unwrap();
    txn.commit().unwrap();
    // Without need the file does not grow; with need, by a step at least.
    let before = on_disk(&path).0;
    put_all(&env, "t", [("k", vec![1; 300_000])]);
    assert!(on_disk(&path).0 >= before + (2 << 20), "{:?}", on_disk(&path));
    put_all(&env, "t", (0..100u8).map(|n| ([n], vec![n; 100_000])));
    let mut txn = env.write().unwrap();
    txn.drop_table("t").unwrap();
    txn.commit().unwrap();
    commit_a_little(&env, 5);
    let len = on_disk(&path).0;
    assert!((3 << 20..6 << 20).contains(&len), "{len} bytes are left");
    // Never cut.
    let mut txn = env.write().unwrap();
    txn.set_geometry(geometry(|g| g.shrink = u64::MAX)).unwrap();
    txn.commit().unwrap();
    put_all(&env, "t", (0..100u8).map(|n| ([n], vec![n; 100_000])));
    let full = on_disk(&path).0;
    let mut txn = env.write().unwrap();
    txn.drop_table("t").unwrap();
    txn.commit().unwrap();
    commit_a_little(&env, 5);
    assert_eq!(on_disk(&path).0, full);
    // The store remembers.
    env.close().unwrap();
    let env = Options::new().open(&path).unwrap();
    assert_eq!(env.info().unwrap().geometry, geometry(|g| g.shrink = u64::MAX));
}

#[test]
fn impossible_bounds_are_refused_and_undone() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    put_all(&env, "t", [("k", vec![1; 3 << 20])]);
    let before = env.info().unwrap().geometry;
    let mut txn = env.write().unwrap();
    for wrong in [geometry(|g| g.upper = 1 << 20), geometry(|g| (g.lower, g.upper) = (9, 8))] {
        assert!(matches!(txn.set_geometry(wrong), Err(Error::Invalid(_))));
    }
    txn.set_geometry(geometry(|g| g.growth = 1 << 20)).unwrap();
    txn.abort();
    assert_eq!(env.info().unwrap().geometry, before);
    let mut txn = env.write().unwrap();
    let undone = txn.nested(|txn| {
        txn.set_geometry(geometry(|g| g.growth = 1 << 20))?;
        Err::<(), _>(Error::Stopped)
    });
    assert!(matches!(undone, Err(Error::Stopped)));
    txn.table("t").unwrap().put("k", "v").unwrap();
    txn.commit().unwrap();
    assert_eq!(env.info().unwrap().geometry, before);
}
