//! Checksums on reads find every flipped bit of what is read.

use zubilo::{Durability, Error, Options, VerifyReads};

use super::stores;
use crate::common::memory::MemoryFile;
use crate::common::{Model, Rng, contents, seed};

fn read_all(file: &MemoryFile, verify: VerifyReads) -> Result<Model, Error> {
    let env = file.open(Options::new().durability(Durability::NoSync).verify_reads(verify))?;
    let txn = env.read()?;
    let mut model = Model::new();
    for name in txn.tables()? {
        let mut records = crate::common::Records::new();
        for record in txn.table(&name)?.iter() {
            let (key, value) = record?;
            records.insert(key.to_vec(), value.to_vec());
        }
        model.insert(name, records);
    }
    Ok(model)
}

#[test]
fn verified_reads_detect_every_flipped_bit() {
    let seed = seed(42);
    let mut rng = Rng::new(seed);
    for store in stores::all() {
        let env = MemoryFile::new(&store).open(Options::new()).unwrap();
        let right = contents(&env.read().unwrap());
        let mut reached = vec![false; store.len()];
        env.walk_pages(&mut |visit| {
            let size = env.page_size();
            let start = visit.page.0 as usize * size;
            let used = match visit.kind {
                zubilo::PageKind::Branch | zubilo::PageKind::Leaf => size,
                zubilo::PageKind::Run => visit.used as usize,
                _ => 0,
            };
            reached[start..start + used].fill(true);
            true
        })
        .unwrap();
        drop(env);
        for n in 0..150 {
            let at = rng.below(store.len() as u64) as usize;
            let mut damaged = store.clone();
            damaged[at] ^= 1 << rng.below(8);
            let verify = rng.pick(&[VerifyReads::FirstTouch, VerifyReads::Always]);
            let found = read_all(&MemoryFile::new(&damaged), verify);
            let what = format!("seed {seed}, case {n}: byte {at}, {verify:?}");
            match found {
                Err(Error::Corrupted { .. }) => assert!(reached[at] || at < 4 * 65536, "{what}"),
                Err(other) => panic!("{what}: {other:?}"),
                Ok(model) => {
                    assert!(!reached[at], "{what}: not detected");
                    // A damaged meta may bring back an older commit, of which these stores have
                    // a different content only in metas.
                    assert!(model == right || at < 4 * 65536, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_check_detects_every_flipped_bit_below_the_end() {
    let seed = seed(43);
    let mut rng = Rng::new(seed);
    for store in stores::all() {
        for n in 0..60 {
            let env_file = MemoryFile::new(&store);
            let used = env_file.open(Options::new()).unwrap().info().unwrap().used_len;
            let at = (4 * 4096 + rng.below(used - 4 * 4096)) as usize;
            let mut damaged = store.clone();
            damaged[at] ^= 1 << rng.below(8);
            let env = MemoryFile::new(&damaged).open(Options::new()).unwrap();
            let report = env.check(&mut |_, _| true).unwrap();
            let mut in_use = false;
            env.walk_pages(&mut |visit| {
                let size = env.page_size() as u64;
                let pages = visit.page.0 * size..(visit.page.0 + visit.count) * size;
                let free = matches!(visit.kind, zubilo::PageKind::Free | zubilo::PageKind::Retired);
                // Zeros behind a large value belong to nobody.
                let padding = visit.kind == zubilo::PageKind::Run
                    && at as u64 >= visit.page.0 * size + visit.used;
                in_use |= pages.contains(&(at as u64)) && !free && !padding;
                true
            })
            .unwrap();
            assert!(!in_use || !report.is_ok(), "seed {seed}, case {n}: byte {at} not detected");
        }
    }
}
