//! `VerifyReads`: when a flipped bit is noticed, mode by mode.

use zubilo::{Durability, Env, Error, Options, PageKind, VerifyReads};

use crate::common::memory::MemoryFile;
use crate::common::{check, put_all};

/// A store with a tree of three levels and a large value, every page of it steady.
fn store() -> Vec<u8> {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new().durability(Durability::NoSync)).unwrap();
    put_all(&env, "t", (0..6000u32).map(|n| (key(n), [n as u8; 200])));
    put_all(&env, "large", [("v", vec![9; 50_000])]);
    check(&env, "before any damage");
    env.close().unwrap();
    file.image()
}

fn key(n: u32) -> Vec<u8> {
    [&[b'k'; 60][..], &n.to_be_bytes()].concat()
}

/// A byte of the value of record `n` in the file.
fn place_of(file: &MemoryFile, table: &str, key: &[u8]) -> usize {
    let env = file.open(Options::new()).unwrap();
    let read = env.read().unwrap();
    let value = read.table(table).unwrap().get(key).unwrap().unwrap();
    value.as_ptr() as usize + value.len() / 2 - file.base()
}

fn open(bytes: &[u8], verify: VerifyReads) -> (MemoryFile, Env) {
    let file = MemoryFile::new(bytes);
    let env = file.open(Options::new().verify_reads(verify)).unwrap();
    (file, env)
}

/// What a read of the damaged record gives, in every way of reading.
fn reads(env: &Env, table: &str, key: &[u8]) -> Vec<Result<Vec<u8>, Error>> {
    let read = std::sync::Arc::new(env.read().unwrap());
    let owned = read.get_owned(table, key).map(|v| v.unwrap().to_vec());
    let table = read.table(table).unwrap();
    let own = |v: Option<&[u8]>| v.unwrap().to_vec();
    let pair = |p: Option<(&[u8], &[u8])>| p.unwrap().1.to_vec();
    vec![
        owned,
        table.get(key).map(own),
        table.get_many(&[key]).map(|all| own(all[0])),
        table.range(key..).next().unwrap().map(|r| r.1.to_vec()),
        table.range(..=key).next_back().unwrap().map(|r| r.1.to_vec()),
        table.cursor().seek(key).map(pair),
        table.cursor().seek_exact(key).map(pair),
    ]
}

#[track_caller]
fn assert_detected(env: &Env, table: &str, key: &[u8]) {
    for (i, result) in reads(env, table, key).into_iter().enumerate() {
        assert!(matches!(result, Err(Error::Corrupted { .. })), "read {i}: not detected");
    }
}

#[track_caller]
fn assert_not_detected(env: &Env, table: &str, key: &[u8], len: usize) {
    let found = reads(env, table, key);
    assert!(found.into_iter().all(|r| r.is_ok_and(|v| v.len() == len)));
}

fn cases() -> [(&'static str, Vec<u8>, usize); 2] {
    [("t", key(3000), 200), ("large", b"v".to_vec(), 50_000)]
}

#[test]
fn never_leaves_it_to_the_check() {
    let bytes = store();
    for (table, key, len) in cases() {
        let (file, env) = open(&bytes, VerifyReads::Never);
        file.flip(place_of(&MemoryFile::new(&bytes), table, &key), 4);
        assert_not_detected(&env, table, &key, len);
        let report = env.check(&mut |_, _| true).unwrap();
        assert!(report.problems[0].reason.contains("checksum"), "{:?}", report.problems);
        assert!(matches!(report.into_result(), Err(Error::Corrupted { .. })));
    }
}

#[test]
fn first_touch_looks_once() {
    let bytes = store();
    for (table, key, len) in cases() {
        let place = place_of(&MemoryFile::new(&bytes), table, &key);
        let (file, env) = open(&bytes, VerifyReads::FirstTouch);
        file.flip(place, 4);
        // Again and again, until it is right.
        assert_detected(&env, table, &key);
        assert_detected(&env, table, &key);
        file.flip(place, 4);
        assert_not_detected(&env, table, &key, len);
        // Once seen it is trusted, by later transactions too.
        file.flip(place, 4);
        assert_not_detected(&env, table, &key, len);
    }
}

#[test]
fn always_looks_each_time() {
    let bytes = store();
    for (table, key, len) in cases() {
        let place = place_of(&MemoryFile::new(&bytes), table, &key);
        let (file, env) = open(&bytes, VerifyReads::Always);
        assert_not_detected(&env, table, &key, len);
        file.flip(place, 4);
        assert_detected(&env, table, &key);
        file.flip(place, 4);
        assert_not_detected(&env, table, &key, len);
    }
}

/// Not only the pages that hold records.
#[test]
fn branches_are_verified_as_well() {
    let bytes = store();
    let file = MemoryFile::new(&bytes);
    let mut branches = Vec::new();
    let env = file.open(Options::new()).unwrap();
    env.walk_pages(&mut |visit| {
        if visit.kind == PageKind::Branch && visit.table == b"t" {
            branches.push(visit.page.0 as usize);
        }
        true
    })
    .unwrap();
    assert!(branches.len() > 1);
    for verify in [VerifyReads::FirstTouch, VerifyReads::Always] {
        for page in &branches {
            let (file, env) = open(&bytes, verify);
            // The last byte of a page belongs to no reference, only to the checksum.
            file.flip(page * 4096 + 4095, 1);
            let read = env.read().unwrap();
            let found: Result<Vec<_>, _> = read.table("t").unwrap().iter().collect();
            assert!(matches!(found, Err(Error::Corrupted { .. })), "{verify:?}: not detected");
        }
    }
}

/// Pages written after the open are read through it too.
#[test]
fn new_pages_are_verified_and_right() {
    for verify in [VerifyReads::FirstTouch, VerifyReads::Always] {
        let (_, env) = open(&store(), verify);
        for round in 0..20u8 {
            put_all(&env, "t", (0..300u32).map(|n| (key(n * 20), [round; 200])));
            put_all(&env, "large", [("v", vec![round; 60_000])]);
            let read = env.read().unwrap();
            let fine = read.table("t").unwrap().iter().filter(|r| r.is_ok()).count();
            assert_eq!(fine, 6000);
            let value = read.table("large").unwrap().get("v").unwrap().unwrap();
            assert!(value.iter().all(|b| *b == round));
        }
    }
}

/// The last commit is verified at open: with a damaged page it is not trusted, the one before is.
#[test]
fn an_open_verifies_the_last_commit() {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new()).unwrap();
    put_all(&env, "t", [("k", "old")]);
    let id = put_all(&env, "t", [("k", "new")]);
    env.close().unwrap();
    let place = place_of(&file, "t", b"k");
    let env = file.open(Options::new()).unwrap();
    assert_eq!(env.read().unwrap().id(), id);
    env.close().unwrap();
    file.flip(place, 1);
    let env = file.open(Options::new()).unwrap();
    let read = env.read().unwrap();
    assert_eq!(read.id().0, id.0 - 1);
    assert_eq!(read.table("t").unwrap().get("k").unwrap(), Some(&b"old"[..]));
    check(&env, "after falling back");
    put_all(&env, "t", [("k", "newer")]);
    check(&env, "and going on");
}
