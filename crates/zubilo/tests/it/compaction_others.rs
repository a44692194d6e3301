//! Compaction beside changes that others make between its steps: any kind of table, any length of key,
//! tables that go and come back as something else, readers that keep what is replaced.

use std::collections::BTreeMap;
use std::time::Duration;

use zubilo::raw::{Named, TableRef};
use zubilo::{CompactOptions, Durability, Env, Error, KeyOrder, Options, PageKind, TableOptions};

use crate::common::memory::MemoryFile;
use crate::common::{Rng, check, fresh, number, put_all, rng};

type Model = BTreeMap<(Vec<u8>, Vec<u8>), ()>;

/// A table, its kind, and what it should hold: of a table without duplicates one value a key.
struct Expected {
    name: String,
    options: TableOptions,
    pairs: Model,
}

fn kinds() -> Vec<(&'static str, TableOptions)> {
    let new = TableOptions::new;
    vec![
        ("plain", new()),
        ("reversed", new().key_order(KeyOrder::Reversed)),
        ("counted", new().counted()),
        ("aligned", new().align_values(8)),
        ("pairs", new().duplicates()),
        ("counted-pairs", new().duplicates().counted()),
        ("fixed", new().fixed_duplicates()),
        ("backwards", new().duplicates().value_order(KeyOrder::Reversed)),
    ]
}

/// Mostly short keys; some that share much, some of the greatest length, and the empty one.
fn key(rng: &mut Rng, max: usize) -> Vec<u8> {
    let number = rng.below(3000);
    match rng.below(12) {
        0 => Vec::new(),
        1 | 2 => {
            let mut key = vec![b'p'; max];
            let at = rng.pick(&[0, max / 2, max - 8]);
            key[at..at + 8].copy_from_slice(&number.to_be_bytes());
            key
        }
        3 | 4 => [&[b's'; 40][..], &number.to_be_bytes()].concat(),
        5 => vec![number as u8; (number % 7) as usize],
        _ => (number as u32).to_be_bytes().to_vec(),
    }
}

fn value(rng: &mut Rng, options: &TableOptions, max: usize, page: usize) -> Vec<u8> {
    if options.has_fixed_values() {
        return rng.below(1 << 14).to_be_bytes().to_vec();
    }
    let len = match (options.has_duplicates(), rng.below(40)) {
        (true, 0) => max,
        (false, 0) => page * (1 + rng.below(9) as usize),
        (_, 1..8) => 200.min(max),
        _ => rng.below(30) as usize,
    };
    rng.bytes(len)
}

/// Puts or removes about so many records in one commit.
fn change(env: &Env, table: &mut Expected, count: u64, removing: bool, rng: &mut Rng) {
    let (max, page) = (env.max_key_len(), env.page_size());
    let record = page / 2 - 64; // The longest in a leaf: a key and each of its values have to fit together.
    let mut txn = env.write().unwrap();
    let mut open = txn.table_or_create_with(&table.name, &table.options).unwrap();
    if removing {
        let start = key(rng, max);
        let part: Vec<_> = table.pairs.keys().filter(|(k, _)| *k >= start).cloned().collect();
        for (key, value) in part.into_iter().take(count as usize) {
            if table.options.has_duplicates() {
                assert!(open.delete_value(&key, &value).unwrap())
            } else {
                assert!(open.delete(&key).unwrap())
            }
            table.pairs.remove(&(key, value));
        }
    }
    for _ in 0..if removing { 3 } else { count } {
        let mut key = key(rng, max);
        if table.options.has_duplicates() && rng.one_in(2) {
            key = vec![b'd', rng.below(3) as u8];
        }
        let longest =
            if table.options.has_duplicates() { max.min(record - key.len()) } else { max };
        let value = value(rng, &table.options, longest, page);
        open.put(&key, &value).unwrap();
        if !table.options.has_duplicates() {
            table.pairs.retain(|(k, _), ()| *k != key);
        }
        table.pairs.insert((key, value), ());
    }
    txn.commit().unwrap();
}

fn holds(env: &Env, table: &Expected) -> bool {
    let read = env.read().unwrap();
    let Some(open) = read.table(&table.name).ok() else { return table.pairs.is_empty() };
    let mut found = Model::new();
    for record in open.iter() {
        let (key, value) = record.unwrap();
        found.insert((key.to_vec(), value.to_vec()), ());
        if table.options.has_duplicates() {
            for value in open.get_all(key).unwrap() {
                found.insert((key.to_vec(), value.unwrap().to_vec()), ());
            }
        }
    }
    // By key too: a wrong separator shows only there.
    for (key, value) in table.pairs.keys() {
        let same = if table.options.has_duplicates() {
            open.get_all(key).unwrap().any(|v| v.unwrap() == value)
        } else {
            open.get(key).unwrap() == Some(value)
        };
        assert!(same, "{}: {key:?}", table.name);
    }
    open.len() == table.pairs.len() as u64 && found == table.pairs
}

/// Tables of every kind are compacted to a fill and with steps of any size, while between two steps
/// records come and go and tables are dropped and created anew as another kind.
#[test]
fn any_change_between_two_steps() {
    let mut rng = rng();
    for round in 0..number("COMPACT_ROUNDS", 3) {
        let (_dir, path) = fresh();
        let page_size = rng.pick(&[4096, 4096, 8192, 16384]);
        let durability = rng.pick(&[Durability::Sync, Durability::NoSync, Durability::LAZY]);
        let options = Options::new().page_size(page_size).durability(durability);
        let env = options.open(&path).unwrap();
        let kinds = kinds();
        let mut tables: Vec<Expected> = Vec::new();
        for n in 0..4 {
            let (kind, options) = kinds[rng.below(kinds.len() as u64) as usize].clone();
            let name = format!("{n}-{kind}");
            tables.push(Expected { name, options, pairs: Model::new() });
        }
        for _ in 0..5 {
            for table in &mut tables {
                change(&env, table, 300, false, &mut rng);
                let count = rng.below(200);
                change(&env, table, count, true, &mut rng);
            }
        }
        for run in 0..3 {
            let step = rng.pick(&[1, 20_000, 300_000]);
            let fill = rng.pick(&[50, 77, 98, 100]);
            let compact =
                CompactOptions::new().fill(fill).step(step, Duration::MAX).pause(Duration::ZERO);
            let what = format!("round {round}, {page_size} {durability:?} {step} {fill}");
            let mut reader = None;
            let mut steps = 0;
            let report = env.compact(&compact, &mut |_, _| {
                steps += 1;
                let table = &mut tables[rng.below(4) as usize];
                match rng.below(if run == 2 { 400 } else { 60 }) {
                    0 => {
                        let mut txn = env.write().unwrap();
                        txn.drop_table(&table.name).unwrap();
                        txn.commit().unwrap();
                        table.options = kinds[rng.below(kinds.len() as u64) as usize].1.clone();
                        table.pairs.clear();
                        change(&env, table, 400, false, &mut rng);
                    }
                    1..6 => change(&env, table, 20, false, &mut rng),
                    6..12 => change(&env, table, 20, true, &mut rng),
                    12 => reader = Some(env.read().unwrap()),
                    13..16 => reader = None,
                    _ => {}
                }
                if steps % 40 == 0 {
                    check(&env, &what);
                }
                steps < 1000
            });
            let report = report.unwrap_or_else(|e| panic!("{what}: {e}"));
            drop(reader);
            check(&env, &what);
            for table in &tables {
                assert!(holds(&env, table), "{what}: {} {report:?}", table.name);
            }
        }
        drop(env);
        let env = Options::new().open(&path).unwrap();
        check(&env, "opened again");
        assert!(tables.iter().all(|table| holds(&env, table)));
    }
}

/// A step commits at least the pages on the way to what it moves: tiny ones beside a reader, which keeps
/// all of them, must not make the file longer and longer.
#[test]
fn tiny_steps_beside_a_reader_end_in_time() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let key = |n: u32| n.wrapping_mul(2_654_435_761).to_be_bytes();
    put_all(&env, "gone", (0..20_000u32).map(|n| (key(n), [1; 100])));
    for from in (0..20_000).step_by(500) {
        put_all(&env, "stays", (from..from + 500).map(|n| (key(n), [1; 100])));
    }
    let mut txn = env.write().unwrap();
    txn.drop_table("gone").unwrap();
    txn.commit().unwrap();
    put_all(&env, "other", [("k", "v")]);
    put_all(&env, "other", [("k", "w")]);
    let before = env.info().unwrap().used_len;
    let reader = env.read().unwrap();
    put_all(&env, "other", [("k", "x")]);
    let tiny = CompactOptions::new().fill(50).step(1, Duration::MAX).pause(Duration::ZERO);
    let mut most = 0;
    let report = env.compact(&tiny, &mut |_, _| {
        most = most.max(env.info().unwrap().used_len);
        true
    });
    let report = report.unwrap();
    assert!(most < before + before / 4, "{most} after {before}: {report:?}");
    check(&env, "beside a reader");
    drop(reader);
}

/// A name may stand for a table when a walk hears of it, and for a record at the next step.
#[test]
fn a_record_in_the_place_of_a_table() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    put_all(&env, "a", (0..3000u32).map(|n| (n.reverse_bits().to_be_bytes(), [1; 100])));
    put_all(&env, "b", [("k", "v")]);
    let tiny = CompactOptions::new().step(1, Duration::MAX).pause(Duration::ZERO);
    let mut steps = 0;
    env.compact(&tiny, &mut |_, _| {
        steps += 1;
        if steps == 4 {
            let mut txn = env.write().unwrap();
            txn.drop_table("a").unwrap();
            assert!(txn.raw_put(TableRef::CATALOGUE, b"a", b"a record", true).unwrap());
            txn.commit().unwrap();
        }
        true
    })
    .unwrap();
    assert!(steps > 4);
    check(&env, "a record");
    assert!(matches!(env.write().unwrap().raw_find(b"a").unwrap(), Named::Record));
}

/// Records of the main tree lie between the names of tables: looking for the next name is work too, and
/// others get their turns meanwhile.
#[test]
fn many_records_between_two_names() {
    const RECORDS: u32 = 100_000;
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    put_all(&env, "a", (0..2000u32).map(|n| (n.reverse_bits().to_be_bytes(), [1; 100])));
    put_all(&env, "z", (0..2000u32).map(|n| (n.reverse_bits().to_be_bytes(), [1; 100])));
    let mut txn = env.write().unwrap();
    for n in 0..RECORDS {
        txn.raw_put(TableRef::CATALOGUE, &[b"m", &n.to_be_bytes()[..]].concat(), b"", true)
            .unwrap();
    }
    txn.commit().unwrap();
    let leaves = |name: &str| env.read().unwrap().table_stats(name).unwrap().leaf_pages;
    let before = (leaves("a"), leaves("z"));
    let short = CompactOptions::new().step(1, Duration::ZERO).pause(Duration::ZERO);
    let mut steps = 0;
    env.compact(&short, &mut |_, _| {
        steps += 1;
        true
    })
    .unwrap();
    let mut txn = env.write().unwrap();
    let pages = ["a", "z"].map(|name| txn.table_stats(name).unwrap().leaf_pages);
    let pages =
        pages.iter().sum::<u64>() + txn.raw_info(TableRef::CATALOGUE).unwrap().stats.leaf_pages;
    drop(txn);
    // The time of a step is over at once, so none has more than a page or a thousand records, and two
    // walks at least pass all of them.
    assert!(steps > pages + 2 * u64::from(RECORDS / 1024), "{steps} steps, {pages} leaves");
    assert!(leaves("a") < before.0 && leaves("z") < before.1);
    check(&env, "many records");
}

/// Descriptors of tables are written anew with the page of the main tree that holds them: what else
/// lies there must be whole.
#[test]
fn damage_beside_a_descriptor_is_not_hidden() {
    let file = MemoryFile::new(&[]);
    // An open asks for the pages of the last commit only if one flush was all that it had.
    let env = file.open(Options::new().durability(Durability::NoSync)).unwrap();
    put_all(&env, "t", (0..3000u32).map(|n| (n.reverse_bits().to_be_bytes(), [1; 100])));
    let record = b"a record of the main tree that nobody looks at";
    let mut txn = env.write().unwrap();
    assert!(txn.raw_put(TableRef::CATALOGUE, b"beside", record, true).unwrap());
    txn.commit().unwrap();
    env.sync().unwrap();
    let mut root = 0;
    env.walk_pages(&mut |visit| {
        if visit.table.is_empty() && visit.kind == PageKind::Leaf {
            root = visit.page.0 as usize;
        }
        true
    })
    .unwrap();
    env.close().unwrap();
    let mut bytes = file.image();
    let page = &mut bytes[root * 4096..][..4096];
    let at = page.windows(record.len()).position(|part| part == record).unwrap();
    page[at + 5] ^= 1;
    let env = MemoryFile::new(&bytes).open(Options::new()).unwrap();
    let refused = env.compact(&CompactOptions::new(), &mut |_, _| true);
    assert!(matches!(refused, Err(Error::Corrupted { .. })), "{refused:?}");
    assert!(!env.check(&mut |_, _| true).unwrap().is_ok());
}
