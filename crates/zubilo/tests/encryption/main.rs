//! Encrypted stores: the key, what the file shows, what is found when it was changed, and others who use it meanwhile.

#[path = "../it/common/mod.rs"]
#[allow(dead_code, reason = "shared with other programs, which need more")]
mod common;

mod copies;
mod damage;
mod keys;
mod secrecy;
mod sharing;

use std::path::Path;

use zubilo::{Env, Options};

use crate::common::{check, fresh};

const KEY: [u8; 32] = [0x5a; 32];

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
