//! The smallest program for each bug that was found after it had been made.

use zubilo::platform::{self, OpenFile};
use zubilo::{Durability, Env, Options, TxnId};

use crate::common::memory::MemoryFile;
use crate::common::{check, fresh, geometry, put_all};

fn commit(env: &Env, value: u8) -> TxnId {
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create("t").unwrap();
    for i in 0..50u32 {
        table.put(i.to_be_bytes(), [value; 200]).unwrap();
    }
    txn.commit().unwrap()
}

/// A commit that wrote no page had the digest 0 instead of that of nothing, and was not believed.
#[test]
fn a_commit_without_pages_survives_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let env = Options::new().open(&path).unwrap();
    commit(&env, 1);
    let mut txn = env.write().unwrap();
    txn.drop_table("t").unwrap();
    let id = txn.commit().unwrap();
    env.close().unwrap();
    let env = Options::new().open(&path).unwrap();
    let read = env.read().unwrap();
    assert_eq!(read.id(), id);
    assert!(read.tables().unwrap().is_empty());
}

/// Closing one handle switched off the final flush of all others.
#[test]
fn the_last_handle_makes_commits_durable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let env = Options::new().durability(Durability::NoSync).open(&path).unwrap();
    let other = env.clone();
    env.close().unwrap();
    let id = commit(&other, 1);
    drop(other);
    let env = Options::new().open(&path).unwrap();
    assert_eq!(env.info().unwrap().steady, id);
}

/// Metas that were not believed at one open could be believed at a later one, over pages that had
/// been used again.
#[test]
fn a_rejected_commit_never_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let how = OpenFile {
        read_only: false,
        create: true,
        mode: 0o644,
        reserve: 1 << 30,
        writable_map: false,
    };
    let open = |boot: u8, options: Options| {
        Env::open_parts(platform::open_data(&path, &how).unwrap().0, [boot; 16], options).unwrap()
    };
    let env = open(1, Options::new().durability(Durability::NoSync));
    commit(&env, 1);
    env.sync().unwrap();
    for value in 2..6 {
        commit(&env, value);
    }
    env.close_without_sync();

    // Another boot: the weak commits are rolled back, and a new one is acknowledged.
    let env = open(2, Options::new());
    let id = commit(&env, 77);
    drop(env);

    // The boot of the weak commits again.
    let env = open(1, Options::new());
    let read = env.read().unwrap();
    assert_eq!(read.id(), id);
    let table = read.table("t").unwrap();
    assert_eq!(table.get(0u32.to_be_bytes()).unwrap(), Some(&[77; 200][..]));
    assert!(env.check(&mut |_, _| true).unwrap().is_ok());
}

/// An older meta whose pages lay in the tail that was cut since was verified at open: a fault.
#[test]
fn an_open_does_not_read_the_cut_tail_of_an_older_commit() {
    let (_dir, path) = fresh();
    let geometry = geometry(|g| (g.shrink, g.growth) = (64 << 10, 64 << 10));
    let env = Options::new().geometry(geometry).open(&path).unwrap();
    // Small commits first: later ones find room below the large value.
    (0..4).for_each(|n| {
        put_all(&env, "t", [("b", [n; 10])]);
    });
    put_all(&env, "t", [("a", vec![1; 1 << 20])]);
    let long = std::fs::metadata(&path).unwrap().len();
    (0..2).for_each(|n| {
        put_all(&env, "t", [("a", [n; 10])]);
    });
    assert!(std::fs::metadata(&path).unwrap().len() < long / 2, "nothing was cut");
    env.close().unwrap();
    let env = Options::new().open(&path).unwrap();
    check(&env, "after the cut");
}

/// Two metas of one transaction: an open believed one, a check then read the other, whose end lay
/// far outside of the file.
#[test]
fn the_meta_in_use_is_the_one_that_was_believed() {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new()).unwrap();
    put_all(&env, "t", [("a", [1; 10])]);
    let newest = env.info().unwrap().newest.0;
    env.close().unwrap();
    let mut bytes = file.image();
    let txn = |meta: &[u8]| u64::from_le_bytes(meta[56..64].try_into().unwrap());
    let right = (0..4).find(|i| txn(&bytes[i * 4096..]) == newest).unwrap();
    for other in (0..4).filter(|i| *i != right) {
        let mut meta = bytes[right * 4096..][..4096].to_vec();
        meta[64..72].copy_from_slice(&(1u64 << 40).to_le_bytes());
        let checksum = twox_hash::XxHash3_64::oneshot(&meta[8..]);
        meta[..8].copy_from_slice(&checksum.to_le_bytes());
        bytes[other * 4096..][..4096].copy_from_slice(&meta);
    }
    let env = MemoryFile::new(&bytes).open(Options::new()).unwrap();
    assert!(env.info().unwrap().used_len < 1 << 20);
    check(&env, "with a wrong double");
    put_all(&env, "t", [("b", [1; 10])]);
    check(&env, "after a commit");
}

/// Any step of growth can be stored; the sum of length and step ran over.
#[test]
fn the_greatest_step_of_growth_is_harmless() {
    let (_dir, path) = fresh();
    let greatest = geometry(|g| (g.growth, g.upper) = (u64::MAX, 8 << 20));
    let env = Options::new().geometry(greatest).open(&path).unwrap();
    put_all(&env, "t", [("k", vec![1; 1 << 20])]);
    put_all(&env, "t", [("l", vec![1; 1 << 20])]);
    check(&env, "with the greatest step");
}
