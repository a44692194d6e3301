//! Lazy commits whose records go to the redo log: what a flush of the log alone has made durable.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zubilo::{Durability, Env, Options, TableOptions};

use crate::common::{check, fresh};

const RING: u64 = 256 << 10;

/// The thread never comes to act.
const NEVER: Durability =
    Durability::Lazy { sync_bytes: u64::MAX, sync_period: Duration::from_secs(1 << 20) };

fn put(env: &Env, key: u32, value: &[u8]) {
    let mut write = env.write().unwrap();
    write.table("t").unwrap().put(key.to_be_bytes(), value).unwrap();
    write.commit().unwrap();
}

/// A store whose metas all name the log, with its newest commit on disk.
fn store(path: &Path, durability: Durability) -> Env {
    let env = Options::new().durability(durability).redo_log(RING).open(path).unwrap();
    let mut write = env.write().unwrap();
    let mut table = write.create_table("t", TableOptions::new()).unwrap();
    (0..200u32).for_each(|i| table.put(i.to_be_bytes(), [7; 100]).unwrap());
    write.commit().unwrap();
    // The first meta stays until a later commit is on disk.
    for _ in 0..3 {
        (0..4).for_each(|_| put(&env, 0, &[7; 100]));
        env.sync().unwrap();
    }
    env
}

/// What a power cut may leave after the log was flushed: no weak meta.
fn cut(path: &Path, name: &str) -> PathBuf {
    let mut bytes = fs::read(path).unwrap();
    for meta in bytes.chunks_mut(4096).take(4) {
        if meta[8..14] == *b"ZUBILO" && meta[21] == 0 {
            meta.fill(0);
        }
    }
    let to = path.with_file_name(name);
    fs::write(&to, bytes).unwrap();
    to
}

/// Values of keys in an image of the store.
fn values(image: &Path, keys: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    let env = Options::new().redo_log(RING).open(image).unwrap();
    check(&env, "an image");
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    keys.map(|key| table.get(key.to_be_bytes()).unwrap().unwrap().to_vec()).collect()
}

#[test]
fn a_flush_of_the_log_makes_lazy_commits_durable() {
    for map in [false, true] {
        let (_dir, path) = fresh();
        drop(store(&path, NEVER));
        let options = Options::new().durability(NEVER).redo_log(RING).writable_map(map);
        let env = options.open(&path).unwrap();
        let on_disk = env.info().unwrap().steady;
        let flushes = || env.counters().flushes;
        let before = flushes();
        (0..50u32).for_each(|i| put(&env, i, &i.to_be_bytes()));
        assert_eq!(flushes(), before, "nobody has asked for a flush");
        env.sync().unwrap();
        assert_eq!(flushes(), before + 1);
        assert_eq!(env.info().unwrap().steady, on_disk, "no page was flushed");
        let expected: Vec<Vec<u8>> = (0..50u32).map(|i| i.to_be_bytes().to_vec()).collect();
        assert_eq!(values(&cut(&path, "image"), 0..50), expected);
        // A ring that is half full makes a checkpoint due.
        for round in 0..40u8 {
            (0..40u32).for_each(|i| put(&env, i, &[round; 100]));
            env.sync().unwrap();
        }
        assert!(env.info().unwrap().steady > on_disk);
        assert_eq!(values(&cut(&path, "later"), 0..40), vec![vec![39; 100]; 40]);
        check(&env, "the store");
    }
}

/// Durable commits after lazy ones lean on the records of these, which are flushed with theirs.
#[test]
fn a_store_with_a_log_is_lazy_for_a_while() {
    let (_dir, path) = fresh();
    let env = store(&path, Durability::Sync);
    let on_disk = env.info().unwrap().steady;
    let mut flushes = env.counters().flushes;
    for round in 0..4u8 {
        env.set_lazy(true).unwrap();
        (0..20u32).for_each(|i| put(&env, i, &[round; 60]));
        // Those are made durable at once.
        env.set_lazy(false).unwrap();
        let after = env.counters().flushes;
        assert!(after > flushes, "round {round}");
        let image = cut(&path, &format!("image-{round}"));
        assert_eq!(values(&image, 0..20), vec![vec![round; 60]; 20]);
        put(&env, 3, b"durable");
        let image = cut(&path, &format!("durable-{round}"));
        assert_eq!(values(&image, 3..5), vec![b"durable".to_vec(), vec![round; 60]]);
        flushes = after;
    }
    assert_eq!(env.info().unwrap().steady, on_disk, "no page was flushed");
}

/// A process that has no log, or makes no promise, in turn with one that has.
#[test]
fn others_come_in_between() {
    let (_dir, path) = fresh();
    drop(store(&path, NEVER));
    let ways = [
        Options::new().durability(NEVER).redo_log(RING),
        Options::new().durability(Durability::NoSync),
        Options::new().redo_log(RING),
        Options::new().durability(NEVER),
    ];
    for round in 0..12u8 {
        let env = ways[usize::from(round) % ways.len()].clone().open(&path).unwrap();
        (0..10u32).for_each(|i| put(&env, i, &[round; 50]));
        env.sync().unwrap();
        let image = cut(&path, &format!("image-{round}"));
        assert_eq!(values(&image, 0..10), vec![vec![round; 50]; 10], "round {round}");
        check(&env, "the store");
        // As a process that is killed.
        env.close_without_sync();
    }
}
