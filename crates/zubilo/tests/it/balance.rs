//! Full leaves that give records to their neighbours: how full random insertions leave them, and that
//! nothing is lost or out of order with keys and values of any size.

use std::collections::BTreeMap;

use crate::common::{Rng, check, fresh, rng};
use zubilo::{KeyOrder, Options, Result, TableOptions};

#[test]
fn random_insertions_fill_leaves() -> Result<()> {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path)?;
    let mut rng = rng();
    for _ in 0..40 {
        let mut write = env.write()?;
        let mut table = write.table_or_create("t")?;
        for _ in 0..500 {
            let key = [rng.next(), rng.next()].map(u64::to_be_bytes).concat();
            table.put(key, [7; 100])?;
        }
        write.commit()?;
    }
    let read = env.read()?;
    let stats = read.table("t")?.stats();
    // A record takes its bytes, a header of 4 and slots of 6; a page keeps 48 for itself.
    let fill = (stats.entries * 126) as f64 / (stats.leaf_pages * (4096 - 48)) as f64;
    assert!((0.78..0.92).contains(&fill), "leaves are full to {fill:.3}");
    check(&env, "after insertions");
    Ok(())
}

#[test]
fn sorted_insertions_leave_full_pages() -> Result<()> {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path)?;
    let mut write = env.write()?;
    let mut table = write.table_or_create("t")?;
    for i in 0..20_000u64 {
        table.put(i.to_be_bytes(), [7; 100])?;
    }
    let stats = table.stats();
    let fill = (stats.entries * 118) as f64 / (stats.leaf_pages * (4096 - 48)) as f64;
    assert!(fill > 0.96, "leaves are full to {fill:.3}");
    write.commit()?;
    check(&env, "after insertions");
    Ok(())
}

/// Keys that share much or nothing, short and long.
fn key(rng: &mut Rng) -> Vec<u8> {
    let mut key = match rng.below(4) {
        0 => Vec::new(),
        1 => vec![b'a'; rng.below(300) as usize],
        2 => b"https://www.example.org/".to_vec(),
        _ => vec![rng.below(256) as u8; 1 + rng.below(40) as usize],
    };
    key.extend_from_slice(&rng.below(3000).to_be_bytes()[5..]);
    key
}

/// Mostly small, at times nearly as large as a leaf takes, at times larger.
fn value(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(20) {
        0 => 1000 + rng.below(990),
        1 => rng.below(9000),
        _ => rng.below(120),
    };
    vec![rng.below(256) as u8; len as usize]
}

fn any_records(options: &TableOptions, backwards: bool, rng: &mut Rng) -> Result<()> {
    let (_dir, path) = fresh();
    let env = Options::new().dirty_limit(1 << 20).open(&path)?;
    let mut model = BTreeMap::new();
    for _ in 0..30 {
        let mut write = env.write()?;
        for level in 0..2 {
            if level == 1 {
                write.begin_nested()?;
            }
            let mut inner = model.clone();
            let mut table = write.table_or_create_with("t", options)?;
            for _ in 0..100 {
                let key = key(rng);
                if rng.below(5) == 0 {
                    assert_eq!(table.delete(&key)?, inner.remove(&key).is_some());
                } else {
                    let value = value(rng);
                    table.put(&key, &value)?;
                    inner.insert(key, value);
                }
            }
            match level {
                0 => model = inner,
                _ if rng.below(3) == 0 => write.abort_nested()?,
                _ => {
                    write.commit_nested()?;
                    model = inner;
                }
            }
        }
        write.commit()?;
        let read = env.read()?;
        let table = read.table_with("t", options)?;
        let mut expected: Vec<_> = model.iter().collect();
        if backwards {
            expected.sort_by(|a, b| a.0.iter().rev().cmp(b.0.iter().rev()));
        }
        let mut found = table.iter();
        for (key, value) in expected {
            let record = found.next().transpose()?;
            assert_eq!(record, Some((&key[..], &value[..])));
            assert_eq!(table.get(key)?, Some(&value[..]));
        }
        assert!(found.next().is_none());
    }
    check(&env, "after insertions");
    Ok(())
}

#[test]
fn nothing_is_lost_between_neighbours() -> Result<()> {
    let mut rng = rng();
    for _ in 0..4 {
        any_records(&TableOptions::new(), false, &mut rng)?;
        any_records(&TableOptions::new().counted(), false, &mut rng)?;
        any_records(&TableOptions::new().align_values(8), false, &mut rng)?;
        any_records(&TableOptions::new().key_order(KeyOrder::Reversed), true, &mut rng)?;
        let compare = |a: &[u8], b: &[u8]| a.iter().rev().cmp(b.iter().rev());
        any_records(&TableOptions::new().compare_keys(compare).counted(), true, &mut rng)?;
    }
    Ok(())
}
