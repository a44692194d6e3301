//! What the programs of the C interface do: commit `n` makes changes that depend on `n` alone, so that
//! the contents after each commit are known without the library.

use std::collections::{BTreeMap, BTreeSet};

use support::Rng;

pub(crate) type Records = BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>;
/// Tables by name.
pub(crate) type State = BTreeMap<String, Records>;

pub(crate) const COMMITS: u64 = 66;

/// Kinds of tables, as bits of LMDB's flags.
pub(crate) const REVERSE_KEY: u32 = 0x02;
pub(crate) const MANY: u32 = 0x04;
pub(crate) const NUMBERS: u32 = 0x08;
pub(crate) const FIXED: u32 = 0x10;
pub(crate) const NUMBERS_AS_VALUES: u32 = 0x20;

pub(crate) const TABLES: [(&str, u32); 9] = [
    ("last", 0),
    ("plain", 0),
    ("large", 0),
    ("passing", 0),
    ("reversed", REVERSE_KEY),
    ("numbers", NUMBERS),
    ("many", MANY),
    ("fixed", MANY | FIXED),
    ("whole", MANY | FIXED | NUMBERS_AS_VALUES),
];
const LAST: usize = 0;
const PLAIN: usize = 1;
const LARGE: usize = 2;
const PASSING: usize = 3;
const MANY_VALUES: usize = 6;
const FIXED_VALUES: usize = 7;

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Put(usize, Vec<u8>, Vec<u8>),
    /// Values of eight bytes, in order, in one call.
    PutAll(usize, Vec<u8>, Vec<u64>),
    /// A key with all its values, or one value.
    Delete(usize, Vec<u8>, Option<Vec<u8>>),
    Clear(usize),
    Drop(usize),
    /// In a level of its own; kept or not.
    Nested(Vec<Op>, bool),
}

fn many(table: usize) -> bool {
    TABLES[table].1 & MANY != 0
}

fn bytes(rng: &mut Rng, len: u64) -> Vec<u8> {
    let seed = rng.next();
    (0..len).map(|i| (seed >> (i % 57)) as u8 ^ i as u8).collect()
}

fn key(rng: &mut Rng, table: usize) -> Vec<u8> {
    let n = rng.below(60);
    match TABLES[table].1 & NUMBERS {
        0 => format!("{n:03}-{}", "k".repeat(n as usize % 40)).into_bytes(),
        _ => n.to_ne_bytes().to_vec(),
    }
}

fn value(rng: &mut Rng, table: usize) -> Vec<u8> {
    let kind = TABLES[table].1;
    if kind & FIXED != 0 {
        return rng.below(2000).to_ne_bytes().to_vec();
    }
    let len = if kind & MANY != 0 { rng.below(80) } else { rng.below(900) };
    bytes(rng, len)
}

fn small(rng: &mut Rng) -> Op {
    let table = 1 + rng.index(TABLES.len() - 1);
    let key = key(rng, table);
    if rng.one_in(4) {
        let one = many(table) && rng.one_in(2);
        let value = one.then(|| value(rng, table));
        return Op::Delete(table, key, value);
    }
    let value = value(rng, table);
    Op::Put(table, key, value)
}

/// The changes of commit `n`.
pub(crate) fn plan(n: u64) -> Vec<Op> {
    let mut rng = Rng::new(n.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 77);
    let mut ops = vec![Op::Put(LAST, b"n".to_vec(), n.to_be_bytes().to_vec())];
    (0..1 + rng.below(8)).for_each(|_| ops.push(small(&mut rng)));
    let bulk = |i: u64| format!("bulk-{i:04}").into_bytes();
    match n % 11 {
        3 => (0..220).for_each(|i| {
            let len = 200 + rng.below(700);
            ops.push(Op::Put(PLAIN, bulk(i), bytes(&mut rng, len)));
        }),
        7 => (0..220).for_each(|i| ops.push(Op::Delete(PLAIN, bulk(i), None))),
        8 => ops.push(Op::Nested((0..5).map(|_| small(&mut rng)).collect(), true)),
        9 => ops.push(Op::Nested((0..60).map(|_| small(&mut rng)).collect(), false)),
        _ => {}
    }
    match n % 7 {
        1 | 3 => {
            let (key, len) = (rng.below(4) as u8, 5_000 + rng.below(150_000));
            ops.push(Op::Put(LARGE, vec![key], bytes(&mut rng, len)));
        }
        6 => ops.push(Op::Delete(LARGE, vec![rng.below(4) as u8], None)),
        _ => {}
    }
    match n % 13 {
        2 => {
            let values: Vec<u64> = (0..400).map(|i| i * 5 + n).collect();
            ops.push(Op::PutAll(FIXED_VALUES, b"packed".to_vec(), values));
            (0..250u64).for_each(|i| {
                let value = format!("{:05}-{}", i * 3 % 250, "v".repeat(i as usize % 60));
                ops.push(Op::Put(MANY_VALUES, b"tree".to_vec(), value.into_bytes()));
            });
        }
        9 => ops.push(Op::Delete(MANY_VALUES, b"tree".to_vec(), None)),
        11 => ops.push(Op::Delete(FIXED_VALUES, b"packed".to_vec(), None)),
        _ => {}
    }
    match n % 17 {
        9 => ops.push(Op::Drop(PASSING)),
        14 => ops.push(Op::Clear(PLAIN)),
        _ => {}
    }
    ops
}

/// What `ops` make of a state.
pub(crate) fn change(state: &mut State, ops: &[Op]) {
    for op in ops {
        let table = match op {
            Op::Put(table, ..) | Op::PutAll(table, ..) => *table,
            Op::Delete(table, ..) | Op::Clear(table) | Op::Drop(table) => *table,
            Op::Nested(ops, kept) => {
                if *kept {
                    change(state, ops);
                }
                continue;
            }
        };
        if let Op::Drop(_) = op {
            state.remove(TABLES[table].0);
            continue;
        }
        let records = state.entry(TABLES[table].0.into()).or_default();
        match op {
            Op::Put(_, key, value) => {
                let values = records.entry(key.clone()).or_default();
                if !many(table) {
                    values.clear();
                }
                values.insert(value.clone());
            }
            Op::PutAll(_, key, values) => {
                let all = records.entry(key.clone()).or_default();
                all.extend(values.iter().map(|value| value.to_ne_bytes().to_vec()));
            }
            Op::Delete(_, key, None) => drop(records.remove(key)),
            Op::Delete(_, key, Some(value)) => {
                if let Some(values) = records.get_mut(key) {
                    values.remove(value);
                    if values.is_empty() {
                        records.remove(key);
                    }
                }
            }
            _ => records.clear(),
        }
    }
}

/// The contents after each commit, from none on.
pub(crate) fn states() -> Vec<State> {
    let mut all = vec![State::new()];
    for n in 1..=COMMITS + 1 {
        let mut state = all.last().cloned().unwrap_or_default();
        change(&mut state, &plan(n));
        all.push(state);
    }
    all
}

/// The number of the commit that left a state.
pub(crate) fn number(state: &State) -> u64 {
    let last = state.get("last").and_then(|records| records.get(&b"n"[..]));
    let bytes = last.and_then(|values| values.first());
    bytes.map_or(0, |bytes| u64::from_be_bytes(bytes[..].try_into().expect("eight bytes")))
}
