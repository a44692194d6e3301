//! What a durable commit asks of the disk: one flush, and few stretches of the file to write, also with
//! keys in no order and in a store whose free space has been used over and over.

use crate::common::memory::MemoryFile;
use crate::common::{Rng, rng};
use zubilo::{Env, Options};

/// Write requests and flushes of some commits.
struct Asked {
    writes: Vec<u64>,
    flushes: Vec<u64>,
}

impl Asked {
    fn of(file: &MemoryFile, commits: usize, mut commit: impl FnMut()) -> Asked {
        let mut asked = Asked { writes: Vec::new(), flushes: Vec::new() };
        for _ in 0..commits {
            let before = (file.writes(), file.flushes());
            commit();
            asked.writes.push(file.writes() - before.0);
            asked.flushes.push(file.flushes() - before.1);
        }
        asked
    }

    fn median_of_writes(&self) -> u64 {
        let mut sorted = self.writes.clone();
        sorted.sort_unstable();
        sorted[sorted.len() / 2]
    }

    /// Commits that flushed more than once: what they had to note did not fit the meta page.
    fn flushed_again(&self) -> usize {
        assert!(self.flushes.iter().all(|flushes| (1..=2).contains(flushes)), "{:?}", self.flushes);
        self.flushes.iter().filter(|flushes| **flushes > 1).count()
    }
}

/// One transaction that puts records of 16 and 100 bytes under these keys.
fn put(env: &Env, keys: impl Iterator<Item = [u8; 16]>) {
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create("main").unwrap();
    for key in keys {
        table.put(key, [key[0]; 100]).unwrap();
    }
    txn.commit().unwrap();
}

fn identifier(rng: &mut Rng) -> [u8; 16] {
    std::array::from_fn(|_| (rng.next() >> 32) as u8)
}

#[test]
fn random_identifiers_take_three_write_requests_a_commit() {
    let mut rng = rng();
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new()).unwrap();
    let asked = Asked::of(&file, 100, || put(&env, (0..100).map(|_| identifier(&mut rng))));
    let late = Asked { writes: asked.writes[80..].to_vec(), flushes: Vec::new() };
    assert!(late.median_of_writes() <= 3, "{:?}", asked.writes);
    assert!(asked.flushed_again() <= 10, "{:?}", asked.flushes);
}

#[test]
fn small_commits_stay_contiguous_in_an_aged_store() {
    let mut rng = rng();
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new()).unwrap();
    let keys: Vec<[u8; 16]> = (0..20_000).map(|_| identifier(&mut rng)).collect();
    put(&env, keys.iter().copied());
    // Each leaf is replaced some ten times over, and with it the places of all pages.
    let mut update = || {
        let some: [[u8; 16]; 4] = std::array::from_fn(|_| rng.pick(&keys));
        put(&env, some.into_iter());
    };
    (0..2000).for_each(|_| update());
    let asked = Asked::of(&file, 300, update);
    assert!(asked.median_of_writes() <= 3, "{:?}", asked.writes);
    assert!(asked.flushed_again() <= 30, "{:?}", asked.flushes);
    let live = 4096 * env.check(&mut |_, _| true).unwrap().into_result().unwrap().leaf_pages;
    let used = env.info().unwrap().used_len;
    assert!(used < 2 * live, "{used} bytes for {live} live ones");
}
