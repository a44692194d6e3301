//! Damage in meta pages: one damaged sector takes nothing back; more is reported at open and by the check,
//! before anything is overwritten, and salvage finds what was lost with it.

use std::sync::{Arc, Mutex};

use zubilo::{Env, Level, Options, PageNo, Salvage, TxnId};

use crate::common::memory::MemoryFile;
use crate::common::{Model, contents, put_all};

const META: usize = 4096;
const SECTOR: usize = 512;

/// A store with four metas, and what its newest commit holds.
fn store(page_size: u32) -> (Vec<u8>, Model, u64) {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new().page_size(page_size)).unwrap();
    for round in 0..60u8 {
        put_all(&env, "t", (0..30u8).map(|i| ([i % 7, round, i], vec![round; 40])));
    }
    put_all(&env, "t", [("newest", "commit")]);
    let newest = env.info().unwrap().newest.0;
    let found = contents(&env.read().unwrap());
    env.close().unwrap();
    (file.image(), found, newest)
}

/// The slot of a commit's meta.
fn slot_of(image: &[u8], page_size: usize, txn: u64) -> usize {
    let found = |i: &usize| image[i * page_size + 56..][..8] == txn.to_le_bytes();
    (0..4).find(found).unwrap()
}

type Told = Arc<Mutex<Vec<(Level, String)>>>;

fn open(image: &[u8]) -> (Env, Told) {
    let told = Told::default();
    let logger = Arc::clone(&told);
    let options = Options::new().logger(Level::Warn, move |level, text| {
        logger.lock().unwrap().push((level, text.to_string()));
    });
    (MemoryFile::new(image).open_on_boot(2, options).unwrap(), told)
}

#[test]
fn a_flipped_bit_in_a_meta_takes_nothing_back_and_is_reported() {
    let (image, expected, newest) = store(4096);
    let step = if std::env::var_os("ZUBILO_CASES").is_some() { 1 } else { 13 };
    for bit in (0..4 * META * 8).step_by(step) {
        let mut damaged = image.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let (env, told) = open(&damaged);
        let info = env.info().unwrap();
        assert_eq!(info.newest, TxnId(newest), "bit {bit}");
        let page = PageNo((bit / 8 / META) as u64);
        let metas: Vec<_> = info.damaged_metas.iter().map(|m| (m.page, m.is_rebuilt)).collect();
        assert_eq!(metas, [(page, true)], "bit {bit}");
        let report = env.check(&mut |_, _| true).unwrap();
        let pages: Vec<_> = report.problems.iter().map(|p| p.page).collect();
        assert_eq!(pages, [page], "bit {bit}: {:?}", report.problems);
        let told = told.lock().unwrap();
        assert!(matches!(&told[..], [(Level::Warn, _)]), "bit {bit}: {told:?}");
        if bit % 64 < step {
            assert_eq!(contents(&env.read().unwrap()), expected, "bit {bit}");
            let salvage = Salvage::of_bytes(damaged).unwrap();
            assert_eq!(salvage.commit(), Some(TxnId(newest)));
        }
    }
}

#[test]
fn a_lost_newest_meta_is_reported_and_salvage_finds_its_commit() {
    for page_size in [4096, 16384] {
        let (image, expected, newest) = store(page_size as u32);
        let slot = slot_of(&image, page_size, newest);
        // With and without the sector that names the commit.
        for sectors in [[0, 5], [1, 5]] {
            let mut damaged = image.clone();
            for sector in sectors {
                damaged[slot * page_size + sector * SECTOR + 100] ^= 0x10;
            }
            let (env, told) = open(&damaged);
            let info = env.info().unwrap();
            assert_eq!(info.newest, TxnId(newest - 1));
            let meta = info.damaged_metas[0];
            assert_eq!((meta.page, meta.sectors, meta.is_rebuilt), (PageNo(slot as u64), 2, false));
            assert_eq!(meta.commit, (sectors[0] > 0).then_some(TxnId(newest)));
            assert!(meta.may_be_newer_than(info.newest));
            {
                let told = told.lock().unwrap();
                let [(Level::Error, text)] = &told[..] else { panic!("{told:?}") };
                assert!(text.contains("salvage"), "{text}");
            }
            let report = env.check(&mut |_, _| true).unwrap();
            assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
            let salvage = Salvage::of_bytes(damaged).unwrap();
            assert_eq!(salvage.commit(), Some(TxnId(newest)));
            let [table] = salvage.tables() else { panic!("{:?}", salvage.tables()) };
            let mut found = Vec::new();
            let count = salvage
                .records(table, &mut |key, value| {
                    found.push((key.to_vec(), value.to_vec()));
                    Ok(())
                })
                .unwrap();
            assert_eq!((count.from_leaves, count.gaps, count.lost_values), (0, 0, 0));
            assert_eq!(found, expected[&b"t"[..]].clone().into_iter().collect::<Vec<_>>());
        }
    }
}

/// An older meta that is lost alarms nobody more than it must, and salvage takes the newest commit.
#[test]
fn a_lost_older_meta_is_reported() {
    let (image, expected, newest) = store(4096);
    for slot in (0..4).filter(|slot| *slot != slot_of(&image, 4096, newest)) {
        let mut damaged = image.clone();
        for sector in [1, 2, 3] {
            damaged[slot * META + sector * SECTOR] ^= 1;
        }
        let (env, told) = open(&damaged);
        assert_eq!(contents(&env.read().unwrap()), expected);
        assert!(!env.info().unwrap().damaged_metas[0].may_be_newer_than(TxnId(newest)));
        assert!(matches!(told.lock().unwrap()[..], [(Level::Warn, _)]));
        assert!(!env.check(&mut |_, _| true).unwrap().is_ok());
        assert_eq!(Salvage::of_bytes(damaged).unwrap().commit(), Some(TxnId(newest)));
    }
}
