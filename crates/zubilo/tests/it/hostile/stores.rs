//! Valid stores to be damaged: small, but with all kinds of pages.

use std::sync::OnceLock;

use zubilo::{Durability, Env, KeyOrder, Options, TableOptions};

use crate::common::memory::MemoryFile;
use crate::common::{Rng, check};

/// Each a file whose newest commit is steady: it is trusted without a look at its pages.
pub(super) fn all() -> Vec<Vec<u8>> {
    static ALL: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    ALL.get_or_init(|| {
        vec![
            store(4096, tables),
            store(4096, deep),
            store(4096, large_values),
            store(4096, many_commits),
            store(4096, many_values),
            store(16384, tables),
        ]
    })
    .clone()
}

fn store(page_size: u32, fill: impl Fn(&Env)) -> Vec<u8> {
    let file = MemoryFile::new(&[]);
    let options = Options::new().durability(Durability::NoSync).page_size(page_size);
    let env = file.open(options).unwrap();
    fill(&env);
    env.sync().unwrap();
    check(&env, "before any damage");
    env.close().unwrap();
    file.image()
}

/// Several tables, some with aligned values, some free pages.
fn tables(env: &Env) {
    for round in 0..3u32 {
        let mut txn = env.write().unwrap();
        for (i, align) in [1, 2, 8, 16].into_iter().enumerate() {
            let name = format!("table-{i}");
            if round == 0 {
                txn.create_table(&name, TableOptions::new().align_values(align)).unwrap();
            }
            let mut table = txn.table(&name).unwrap();
            for n in 0..150u32 {
                let key = format!("some/common/path/{:05}", n * 7 + round);
                table.put(key, vec![n as u8; (n % 90) as usize]).unwrap();
            }
            table.put("large", vec![i as u8; 10_000]).unwrap();
            table.delete_range("some/common/path/00200".."some/common/path/00300").unwrap();
        }
        txn.commit().unwrap();
    }
}

/// Keys of the greatest length: four children a branch.
fn deep(env: &Env) {
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create("deep").unwrap();
    let max = env.max_key_len();
    for n in 0..90u32 {
        let mut key = vec![b'k'; max];
        key[max - 4..].copy_from_slice(&n.wrapping_mul(0x9E37_79B9).to_be_bytes());
        table.put(key, [n as u8; 30]).unwrap();
    }
    assert!(table.stats().depth >= 4, "{:?}", table.stats());
    txn.commit().unwrap();
}

fn large_values(env: &Env) {
    for round in 0..4u32 {
        let mut txn = env.write().unwrap();
        let mut table = txn.table_or_create("large").unwrap();
        for n in 0..12u32 {
            let len = (n as usize * 2311 + round as usize * 977) % 20_000;
            table.put((n * 3 + round).to_be_bytes(), vec![n as u8; len]).unwrap();
        }
        txn.commit().unwrap();
    }
}

/// The free-space log has segments with a base and deltas.
fn many_commits(env: &Env) {
    let mut rng = Rng::new(7);
    for n in 0..1800u32 {
        let mut txn = env.write().unwrap();
        let mut table = txn.table_or_create("t").unwrap();
        for _ in 0..3 {
            table.put((rng.below(400) as u32).to_be_bytes(), n.to_le_bytes().repeat(20)).unwrap();
        }
        txn.commit().unwrap();
    }
    let report = env.check(&mut |_, _| true).unwrap();
    assert!(report.free_space_log_pages > 1, "{report:?}");
}

/// Keys with one value, a set of them, a tree of them, packed or not; counted tables.
fn many_values(env: &Env) {
    let mut txn = env.write().unwrap();
    let all = [
        TableOptions::new().duplicates(),
        TableOptions::new().fixed_duplicates().value_order(KeyOrder::Integer).counted(),
        TableOptions::new().duplicates().value_order(KeyOrder::Reversed).counted(),
    ];
    for (i, options) in all.into_iter().enumerate() {
        let mut table = txn.create_table(format!("many-{i}"), options).unwrap();
        for n in 0..60u64 {
            let values = match n {
                7 => 1200,
                30 => 300,
                _ => n % 12 + 1,
            };
            for v in 0..values {
                table.put(n.to_be_bytes(), v.wrapping_mul(0x9E37_79B9).to_le_bytes()).unwrap();
            }
        }
    }
    let mut table = txn.create_table("counted", TableOptions::new().counted()).unwrap();
    for n in 0..1000u64 {
        table.put(n.to_be_bytes(), [n as u8; 40]).unwrap();
    }
    txn.commit().unwrap();
}
