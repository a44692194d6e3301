//! Encrypted stores: the key, what the file shows, what is found when it was changed, and others who use it meanwhile.

#[path = "../it/common/mod.rs"]
#[allow(dead_code, reason = "shared with other programs, which need more")]
mod common;

mod copies;
mod damage;
mod figures;
mod forged;
mod keys;
mod secrecy;
mod sharing;

use std::ops::Range;
use std::path::Path;

use zubilo::{CompactOptions, Env, Options};

use crate::common::{check, fresh, put_all};

const KEY: [u8; 32] = [0x5a; 32];

/// Bytes of a page of 4 KiB in the file.
const STRIDE: usize = 4096 + 40;

/// Where a page of the store is in the file.
fn place(page: usize) -> Range<usize> {
    let at = 5 * 4096 + (page - 4) * STRIDE;
    at..at + STRIDE
}

fn options() -> Options {
    Options::new().encryption_key(&KEY)
}

/// Opens what must open, and checks all of it.
#[track_caller]
fn open(path: &Path) -> Env {
    let env = options().open(path).unwrap();
    check(&env, "an encrypted store");
    env
}

/// Nothing is in the store, so its end is where its pages begin; and a commit writes no page at all.
#[test]
fn a_store_becomes_empty_and_is_filled_again() {
    for page_size in [4096, 65536] {
        let (_dir, path) = fresh();
        let env = options().page_size(page_size).open(&path).unwrap();
        for round in 0..4u8 {
            put_all(&env, "t", (0..5000u32).map(|i| (i.to_be_bytes(), [round; 50])));
            env.compact(&CompactOptions::new(), &mut |_, _| true).unwrap();
            let mut txn = env.write().unwrap();
            txn.drop_table("t").unwrap();
            let dropped = txn.commit().unwrap();
            env.write().unwrap().commit().unwrap();
            env.compact(&CompactOptions::new(), &mut |_, _| true).unwrap();
            let before = env.read().unwrap().id();
            assert!(before >= dropped);
            let copied = path.with_extension(format!("copy {round}"));
            env.copy_to_path(&copied, round % 2 == 0, &mut |_, _| true).unwrap();
            assert!(open(&copied).read().unwrap().tables().unwrap().is_empty());
        }
        let newest = env.read().unwrap().id();
        env.close().unwrap();
        let read = open(&path).read().unwrap();
        assert_eq!(read.id(), newest);
        assert!(read.tables().unwrap().is_empty());
    }
}

#[test]
fn what_was_put_is_there_after_the_store_was_opened_again() {
    for page_size in [4096, 16384, 65536] {
        let (_dir, path) = fresh();
        let large = vec![7u8; 100_000];
        let env = options().page_size(page_size).open(&path).unwrap();
        for round in 0..5u32 {
            env.update(|txn| {
                let mut table = txn.table_or_create("t")?;
                for i in 0..3000u32 {
                    table.put((i * 5 + round).to_be_bytes(), i.to_le_bytes())?;
                }
                table.put("large", &large)
            })
            .unwrap();
        }
        check(&env, "before it is closed");
        env.close().unwrap();
        let env = open(&path);
        let read = env.read().unwrap();
        let table = read.table("t").unwrap();
        assert_eq!(table.len(), 15_001);
        assert_eq!(table.get("large").unwrap(), Some(&large[..]));
        for i in 0..3000u32 {
            let value = table.get((i * 5).to_be_bytes()).unwrap();
            assert_eq!(value, Some(&i.to_le_bytes()[..]));
        }
        assert_eq!(table.iter().count(), 15_001);
    }
}
