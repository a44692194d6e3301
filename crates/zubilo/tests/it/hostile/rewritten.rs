//! Writers and damage: a page whose checksum is wrong is neither replaced nor freed, so that the check
//! finds it for ever, and whoever puts the bit right again has the whole store.

use zubilo::{
    CompactOptions, Durability, Env, Error, Options, PageKind, PageNo, Result, TableOptions,
    WriteTxn,
};

use super::stores;
use crate::common::memory::MemoryFile;
use crate::common::{Rng, number, seed};

/// Options of each table, and a few of its records.
type Known = Vec<(Vec<u8>, TableOptions, Vec<(Vec<u8>, Vec<u8>)>)>;

fn known(env: &Env) -> Known {
    let read = env.read().unwrap();
    let own = |name: Vec<u8>| {
        let table = read.table(&name).unwrap();
        let all = table.iter().map(|r| r.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap());
        (name, table.options(), all.collect())
    };
    read.tables().unwrap().into_iter().map(own).collect()
}

/// The pages that a store is made of, with how many bytes of them are covered by a checksum.
fn live(env: &Env) -> Vec<(PageKind, PageNo, u64)> {
    let mut pages = Vec::new();
    env.walk_pages(&mut |visit| {
        match visit.kind {
            PageKind::Branch | PageKind::Leaf => {
                pages.push((visit.kind, visit.page, env.page_size() as u64));
            }
            PageKind::Run => pages.push((visit.kind, visit.page, visit.used)),
            _ => {}
        }
        true
    })
    .unwrap();
    pages
}

/// One change of any kind, near a record that was there before the damage.
fn change(txn: &mut WriteTxn, known: &Known, rng: &mut Rng, runs_too: bool) -> Result<()> {
    let (name, options, records) = &known[rng.below(known.len() as u64) as usize];
    let (key, value) = &records[rng.below(records.len() as u64) as usize];
    if value.len() > 1500 && !runs_too {
        // It may go with its damage: nothing is left to be found then.
        return Ok(());
    }
    let mut table = txn.table(name)?;
    let mut new_key = key.clone();
    new_key.push(rng.next() as u8);
    new_key.truncate(500);
    let new = match options.has_fixed_values() {
        true => rng.next().to_le_bytes().to_vec(),
        false => rng.bytes(value.len().clamp(1, 90)),
    };
    match rng.below(12) {
        0..=3 => table.put(key, &new),
        4 | 5 => table.put(new_key, &new),
        6 | 7 => table.delete(key).map(drop),
        8 if options.has_duplicates() => table.delete_value(key, value).map(drop),
        9 if options.has_duplicates() => {
            (0..40u64).try_for_each(|i| table.put(key, (rng.next() ^ i).to_le_bytes()))
        }
        8 | 9 => (0..20u8).try_for_each(|i| table.put([&key[..], &[i]].concat(), &new)),
        10 if runs_too => {
            let mut ends = [key, &records[rng.below(records.len() as u64) as usize].0];
            ends.sort();
            table.delete_range::<&[u8]>(&ends[0][..]..&ends[1][..]).map(drop)
        }
        11 if runs_too && rng.one_in(3) => table.clear(),
        _ => table.put(key, value),
    }
}

/// Some transactions; returns how many met with damage.
fn writes(env: &Env, known: &Known, rng: &mut Rng, runs_too: bool) -> usize {
    let mut refused = 0;
    let mut fine = |result: Result<()>| match result {
        Ok(()) => true,
        Err(Error::Corrupted { .. }) => {
            refused += 1;
            false
        }
        // A damaged name is not found; a table that was cleared takes values of another size.
        Err(
            Error::Invalid(_)
            | Error::KeyTooLong { .. }
            | Error::ValueTooLong { .. }
            | Error::NoSuchTable { .. },
        ) => true,
        Err(other) => panic!("{other:?}"),
    };
    for _ in 0..30 {
        let mut txn = env.write().unwrap();
        let changes = 1 + rng.below(6);
        let nested = rng.one_in(2);
        let mut whole = true;
        for _ in 0..changes {
            if nested {
                // What an inner level has not done the outer one can do without.
                txn.begin_nested().unwrap();
                match fine(change(&mut txn, known, rng, runs_too)) {
                    true => txn.commit_nested().unwrap(),
                    false => txn.abort_nested().unwrap(),
                }
            } else if whole {
                whole = fine(change(&mut txn, known, rng, runs_too));
            }
        }
        if whole {
            fine(txn.commit().map(drop));
        }
    }
    let steps = CompactOptions::new().step(64 << 10, std::time::Duration::from_secs(1));
    fine(env.compact(&steps.pause(std::time::Duration::ZERO), &mut |_, _| true).map(drop));
    refused
}

#[test]
fn damage_outlives_writers() {
    let seed = seed(44);
    let mut rng = Rng::new(seed);
    let cases = number("ZUBILO_CASES", 30);
    for (s, store) in stores::all().into_iter().enumerate() {
        let sound = MemoryFile::new(&store).open(Options::new()).unwrap();
        let (known, pages, page_size) = (known(&sound), live(&sound), sound.page_size() as u64);
        drop(sound);
        let mut refused = 0;
        for n in 0..cases {
            let (kind, page, covered) = pages[rng.below(pages.len() as u64) as usize];
            let (at, bit) = (page.0 * page_size + rng.below(covered), 1 << rng.below(8));
            let what =
                format!("seed {seed}, store {s}, case {n}: bit {bit} of byte {at}, {kind:?}");
            let file = MemoryFile::new(&store);
            file.flip(at as usize, bit);
            let durability = rng.pick(&[Durability::Sync, Durability::NoSync]);
            let options = Options::new().durability(durability);
            let options = if rng.one_in(3) { options.dirty_limit(40 << 10) } else { options };
            let env = file.open(options).unwrap();
            refused += writes(&env, &known, &mut rng, kind != PageKind::Run);
            let report = env.check(&mut |_, _| true).unwrap();
            let told = report.problems.iter().any(|p| p.page == page);
            assert!(told, "{what}: the damage is gone, {:?}", report.problems);
            env.close().unwrap();
            // Nobody has made anything of it.
            file.flip(at as usize, bit);
            let env = file.open(Options::new()).unwrap();
            let report = env.check(&mut |_, _| true).unwrap();
            assert!(report.is_ok(), "{what}: there is more damage, {:?}", report.problems);
        }
        assert!(refused > 0, "seed {seed}, store {s}: no change met with the damage");
    }
}

type Change = fn(&mut WriteTxn) -> Result<()>;

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

/// The error names the page, and the store can be used on elsewhere.
#[test]
fn a_change_of_a_damaged_leaf_is_refused() {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new()).unwrap();
    crate::common::put_all(&env, "t", (0..2000).map(|i| (key(i), [7; 100])));
    env.close().unwrap();
    let env = file.open(Options::new()).unwrap();
    let place = {
        let read = env.read().unwrap();
        read.table("t").unwrap().get(key(1000)).unwrap().unwrap().as_ptr() as usize - file.base()
    };
    let page = PageNo(place as u64 / 4096);
    file.flip(place + 50, 4);
    let changes: [(&str, Change); 6] = [
        ("put", |t| t.table("t")?.put(key(1001), b"new")),
        ("reserve", |t| t.table("t")?.reserve(key(1001), 9).map(drop)),
        ("delete", |t| t.table("t")?.delete(key(1001)).map(drop)),
        ("delete_range", |t| t.table("t")?.delete_range(key(900)..key(1100)).map(drop)),
        ("clear", |t| t.table("t")?.clear()),
        ("drop_table", |t| t.drop_table("t")),
    ];
    for (what, change) in changes {
        let mut txn = env.write().unwrap();
        match change(&mut txn) {
            Err(Error::Corrupted { page: named, .. }) => assert_eq!(named, page, "{what}"),
            other => panic!("{what}: {other:?}"),
        }
        assert!(matches!(txn.commit(), Err(Error::TxnBroken)), "{what}");
        crate::common::put_all(&env, "t", [(key(1), b"elsewhere"), (key(1999), b"elsewhere")]);
    }
    let report = env.check(&mut |_, _| true).unwrap();
    assert!(report.problems.iter().any(|p| p.page == page), "{:?}", report.problems);
    file.flip(place + 50, 4);
    crate::common::check(&env, "the damage is undone");
}

/// As the C interface does for a program that changes a value in place.
#[test]
fn a_damaged_large_value_is_not_handed_out_to_be_written_anew() {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new()).unwrap();
    crate::common::put_all(&env, "t", [("large", vec![7; 50_000]), ("small", vec![7; 50])]);
    let place = {
        let read = env.read().unwrap();
        read.table("t").unwrap().get("large").unwrap().unwrap().as_ptr() as usize - file.base()
    };
    for damage in [0, 4] {
        file.flip(place + 20_000, damage);
        let mut txn = env.write().unwrap();
        let Ok(zubilo::raw::Named::Table(table)) = txn.raw_find(b"t") else { panic!("no table") };
        assert_eq!(txn.raw_get_to_rewrite(table, b"small").unwrap(), Some(&[7; 50][..]));
        assert_eq!(txn.raw_get_to_rewrite(table, b"none").unwrap(), None);
        let large = txn.raw_get_to_rewrite(table, b"large").map(|v| v.map(<[u8]>::len));
        match (damage, large) {
            (0, Ok(Some(50_000))) => {}
            (4, Err(Error::Corrupted { page, .. })) => assert_eq!(page.0, place as u64 / 4096),
            (_, other) => panic!("{damage}: {other:?}"),
        }
        // What this transaction has put there itself is in memory.
        txn.raw_put(table, b"large", &[8; 50_000], true).unwrap();
        assert_eq!(txn.raw_get_to_rewrite(table, b"large").unwrap(), Some(&[8; 50_000][..]));
    }
}
