//! What is brought out of damaged stores: all that can still be known, and nothing that never was.

use std::collections::{BTreeMap, BTreeSet};

use zubilo::{Env, KeyOrder, Options, PageKind, Salvage, SalvageCount, TableOptions};

use crate::common::memory::MemoryFile;
use crate::common::{Rng, check, number, seed};

const PAGE: usize = 4096;

type Pairs = BTreeSet<(Vec<u8>, Vec<u8>)>;
type Tables = BTreeMap<Vec<u8>, Pairs>;

/// A store, what it holds, and all that it ever held.
struct Store {
    bytes: Vec<u8>,
    now: Tables,
    ever: Tables,
    /// Pages by kind: of the list of tables and of tables.
    leaves: Vec<(usize, usize)>,
    branches: Vec<usize>,
    list: Vec<usize>,
}

fn options(name: &str) -> TableOptions {
    match name {
        "reversed" => TableOptions::new().key_order(KeyOrder::Reversed).align_values(8).counted(),
        "many" => TableOptions::new().duplicates().counted(),
        "fixed" => TableOptions::new().fixed_duplicates(),
        _ => TableOptions::new(),
    }
}

fn change(env: &Env, now: &mut Tables, ever: &mut Tables, rng: &mut Rng) {
    let mut txn = env.write().unwrap();
    for name in ["plain", "reversed", "many", "fixed"] {
        let mut table = txn.table_or_create_with(name, &options(name)).unwrap();
        let pairs = now.entry(name.into()).or_default();
        for _ in 0..rng.below(60) {
            let is_many = options(name).has_duplicates();
            let key = format!("key-{:04}", rng.below(if is_many { 12 } else { 900 })).into_bytes();
            if rng.one_in(5) {
                table.delete(&key).unwrap();
                pairs.retain(|(k, _)| *k != key);
                continue;
            }
            let value = match name {
                "fixed" => rng.below(5000).to_be_bytes().to_vec(),
                "many" => rng.below(700).to_string().into_bytes(),
                _ if rng.one_in(40) => rng.bytes(9000),
                _ => rng.bytes(40 + rng.clone().below(200) as usize),
            };
            if is_many {
                table.insert_value(&key, &value).unwrap();
            } else {
                table.put(&key, &value).unwrap();
                pairs.retain(|(k, _)| *k != key);
            }
            pairs.insert((key.clone(), value.clone()));
            ever.entry(name.into()).or_default().insert((key, value));
        }
    }
    txn.commit().unwrap();
}

fn store(rng: &mut Rng) -> Store {
    let file = MemoryFile::new(&[]);
    let env = file.open(Options::new()).unwrap();
    let (mut now, mut ever) = (Tables::new(), Tables::new());
    for _ in 0..60 {
        change(&env, &mut now, &mut ever, rng);
    }
    check(&env, "before the damage");
    let (mut leaves, mut branches, mut list) = (Vec::new(), Vec::new(), Vec::new());
    env.walk_pages(&mut |visit| {
        let page = visit.page.0 as usize;
        match (visit.kind, visit.table) {
            (PageKind::Leaf | PageKind::Branch, []) => list.push(page),
            (PageKind::Leaf, b"plain" | b"reversed") => leaves.push((page, visit.entries)),
            (PageKind::Branch, b"plain" | b"reversed") => branches.push(page),
            _ => {}
        }
        true
    })
    .unwrap();
    assert!(leaves.len() > 20 && branches.len() > 1 && !list.is_empty());
    Store { bytes: file.image(), now, ever, leaves, branches, list }
}

/// All that comes out, with the sum of the counts.
fn salvage(bytes: &[u8]) -> (Tables, SalvageCount) {
    let salvage = Salvage::of_bytes(bytes.to_vec()).unwrap();
    let (mut found, mut sum) = (Tables::new(), SalvageCount::default());
    for table in salvage.tables() {
        let mut pairs = Pairs::new();
        let mut last: Option<Vec<u8>> = None;
        let count = salvage.records(table, &mut |key, value| {
            let fresh = pairs.insert((key.to_vec(), value.to_vec()));
            assert!(fresh, "{key:?} comes twice");
            let norm = |key: &[u8]| match options(&String::from_utf8_lossy(&table.name)).keys() {
                KeyOrder::Reversed => key.iter().rev().copied().collect(),
                _ => key.to_vec(),
            };
            assert!(!table.named || last.as_ref().is_none_or(|l| *l <= norm(key)), "out of order");
            last = Some(norm(key));
            Ok(())
        });
        let count = count.unwrap();
        assert_eq!(count.records + count.from_leaves, pairs.len() as u64);
        sum.records += count.records;
        sum.from_leaves += count.from_leaves;
        sum.lost_values += count.lost_values;
        sum.gaps += count.gaps;
        found.insert(table.name.clone(), pairs);
    }
    (found, sum)
}

fn spoil(bytes: &mut [u8], page: usize, rng: &mut Rng) {
    bytes[page * PAGE + rng.below(PAGE as u64) as usize] ^= 1 << rng.below(8);
}

#[track_caller]
fn assert_true(found: &Tables, ever: &Tables, what: &str) {
    for (name, pairs) in found {
        let name_text = String::from_utf8_lossy(name);
        assert!(ever.contains_key(name), "{what}: a table {name_text}");
        assert!(pairs.is_subset(&ever[name]), "{what}: {name_text} holds what it never held");
    }
}

#[test]
fn an_undamaged_store_comes_out_whole() {
    let mut rng = Rng::new(seed(1500));
    let store = store(&mut rng);
    let (found, sum) = salvage(&store.bytes);
    assert!(found == store.now);
    assert_eq!((sum.from_leaves, sum.lost_values, sum.gaps), (0, 0, 0));
    for table in Salvage::of_bytes(store.bytes).unwrap().tables() {
        let due = options(&String::from_utf8_lossy(&table.name));
        assert_eq!(format!("{:?}", table.options()), format!("{due:?}"));
    }
}

/// Branches, the list of tables and the metas can all be lost: their leaves tell everything.
#[test]
fn without_branches_list_and_metas_nothing_is_lost() {
    for case in 0..number("ZUBILO_CASES", 6) {
        let seed = seed(1600 + case);
        let mut rng = Rng::new(seed);
        let store = store(&mut rng);
        for what in ["branches", "list", "metas", "all"] {
            let mut bytes = store.bytes.clone();
            if matches!(what, "branches" | "all") {
                store.branches.iter().for_each(|page| spoil(&mut bytes, *page, &mut rng));
            }
            if matches!(what, "list" | "all") {
                store.list.iter().for_each(|page| spoil(&mut bytes, *page, &mut rng));
            }
            if matches!(what, "metas" | "all") {
                (0..4).for_each(|page| bytes[page * PAGE..][..PAGE].fill(0xee));
            }
            let (found, sum) = salvage(&bytes);
            assert_true(&found, &store.ever, &format!("seed {seed}, {what}"));
            for name in ["plain", "reversed"] {
                let (found, now) = (&found[name.as_bytes()], &store.now[name.as_bytes()]);
                assert!(found.is_superset(now), "seed {seed}, {what}: {name} has lost records");
            }
            assert!(what == "list" || sum.from_leaves > 0, "seed {seed}: nothing was damaged?");
        }
    }
}

/// A damaged leaf costs its own records, and of those older versions come back at best.
#[test]
fn a_damaged_leaf_costs_its_own_records() {
    for case in 0..number("ZUBILO_CASES", 20) {
        let seed = seed(1700 + case);
        let mut rng = Rng::new(seed);
        let store = store(&mut rng);
        let mut bytes = store.bytes.clone();
        let mut at_risk = 0;
        let mut hit = BTreeSet::new();
        for _ in 0..1 + rng.below(4) {
            let (page, entries) = rng.pick(&store.leaves);
            if hit.insert(page) {
                spoil(&mut bytes, page, &mut rng);
                at_risk += entries;
            }
        }
        let (found, _) = salvage(&bytes);
        assert_true(&found, &store.ever, &format!("seed {seed}"));
        let lost: usize =
            store.now.iter().map(|(t, pairs)| pairs.difference(&found[t]).count()).sum();
        assert!(lost <= at_risk, "seed {seed}: {lost} records lost, {at_risk} at risk");
        for name in ["many", "fixed"] {
            assert!(found[name.as_bytes()] == store.now[name.as_bytes()], "seed {seed}: {name}");
        }
    }
}

/// Damage anywhere: nothing comes out that never was.
#[test]
fn nothing_is_invented() {
    for case in 0..number("ZUBILO_CASES", 60) {
        let seed = seed(1800 + case);
        let mut rng = Rng::new(seed);
        let store = store(&mut rng);
        let mut bytes = store.bytes.clone();
        for _ in 0..rng.below(40) {
            let page = rng.below((bytes.len() / PAGE) as u64) as usize;
            spoil(&mut bytes, page, &mut rng);
        }
        if rng.one_in(3) {
            bytes.truncate(rng.below(bytes.len() as u64) as usize);
        }
        if let Ok(left) = Salvage::of_bytes(bytes.clone()) {
            let named: BTreeSet<_> = left
                .tables()
                .iter()
                .filter(|t| t.named)
                .collect::<Vec<_>>()
                .into_iter()
                .map(|t| t.name.clone())
                .collect();
            let (mut found, _) = salvage(&bytes);
            found.retain(|name, _| named.contains(name));
            assert_true(&found, &store.ever, &format!("seed {seed}"));
        }
    }
}
