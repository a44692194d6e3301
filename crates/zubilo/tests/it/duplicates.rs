//! Tables with many values under a key against a map of sets: every order of values, fixed and
//! varying sizes, nested levels, small and large page sizes, the full check after each commit, a
//! compacted copy at the end. `ZUBILO_SEED` repeats a run.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::common::{Rng, check, rng};
use zubilo::{Env, Error, KeyOrder, Options, ReadTable, TableOptions, WriteTxn};

type Compare = fn(&[u8], &[u8]) -> Ordering;

/// A kind of table: its options, the order and the making of its values.
struct Kind {
    name: &'static str,
    options: TableOptions,
    compare: Compare,
    value: fn(&mut Rng) -> Vec<u8>,
}

fn by_bytes(a: &[u8], b: &[u8]) -> Ordering {
    a.cmp(b)
}

fn by_length(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| b.cmp(a))
}

fn from_the_end(a: &[u8], b: &[u8]) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

fn text(rng: &mut Rng) -> Vec<u8> {
    let n = rng.below(1500);
    match rng.below(12) {
        0 => Vec::new(),
        1 => vec![n as u8; rng.below(900) as usize],
        2..=5 => format!("value {n} with some common part").into_bytes(),
        _ => n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[..rng.below(9) as usize].to_vec(),
    }
}

fn integer(rng: &mut Rng) -> Vec<u8> {
    (rng.below(1200) << rng.below(30)).to_le_bytes().to_vec()
}

fn kinds() -> Vec<Kind> {
    let kind = |name, options, compare, value| Kind { name, options, compare, value };
    let new = TableOptions::new;
    let reversed = KeyOrder::Reversed;
    vec![
        kind("bytes", new().duplicates(), by_bytes, text),
        kind("reversed", new().value_order(reversed), from_the_end, text),
        kind("custom", new().compare_values(by_length), by_length, text),
        kind("fixed", new().fixed_duplicates(), by_bytes, |rng| {
            rng.below(1500).to_be_bytes()[3..].to_vec()
        }),
        kind("large fixed", new().fixed_duplicates(), by_bytes, |rng| {
            let n = rng.below(40).to_be_bytes();
            [&[7; 700][..], &n].concat()
        }),
        kind(
            "integers",
            new().value_order(KeyOrder::Integer).fixed_duplicates().key_order(reversed),
            from_the_end,
            integer,
        ),
        kind("loose integers", new().value_order(KeyOrder::Integer), from_the_end, integer),
        kind(
            "fixed, custom, both",
            new().compare_keys(by_length).compare_values(from_the_end).fixed_duplicates(),
            from_the_end,
            |rng| (rng.below(1000) as u32).to_be_bytes().to_vec(),
        ),
        kind("empty only", new().fixed_duplicates(), by_bytes, |_| Vec::new()),
    ]
}

/// Keys in no special order, with their values in order.
#[derive(Clone, Default)]
struct Model(Vec<(Vec<u8>, Vec<Vec<u8>>)>);

impl Model {
    fn values(&mut self, key: &[u8]) -> &mut Vec<Vec<u8>> {
        let at = self.0.iter().position(|(k, _)| k == key).unwrap_or_else(|| {
            self.0.push((key.to_vec(), Vec::new()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    fn len(&self) -> u64 {
        self.0.iter().map(|(_, values)| values.len() as u64).sum()
    }

    /// All pairs in the order of the table's keys.
    fn pairs(&self, kind: &Kind) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut keys = self.0.clone();
        keys.sort_by(|a, b| key_order(kind)(&a.0, &b.0));
        let pairs = |(k, values): (Vec<u8>, Vec<Vec<u8>>)| {
            values.into_iter().map(move |v| (k.clone(), v)).collect::<Vec<_>>()
        };
        keys.into_iter().flat_map(pairs).collect()
    }
}

fn key_order(kind: &Kind) -> Compare {
    match kind.name {
        "integers" => from_the_end,
        "fixed, custom, both" => by_length,
        _ => by_bytes,
    }
}

/// Nesting, and deletions in 1000 changes.
#[derive(Clone, Copy)]
struct Mode {
    depth: u32,
    deletes: u64,
}

/// Few keys with many values, some with a few, many with one.
fn key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(10) {
        0..=5 => format!("key {}", rng.below(3)).into_bytes(),
        6..=8 => format!("a longer key with fewer values {}", rng.below(60)).into_bytes(),
        _ => vec![b'k'; rng.below(900) as usize],
    }
}

fn change(txn: &mut WriteTxn, kind: &Kind, model: &mut Model, rng: &mut Rng, mode: Mode) {
    let Mode { depth, deletes } = mode;
    if depth < 3 && rng.below(40) == 0 {
        let mut inner = model.clone();
        let abort = rng.below(2) == 0;
        let result = txn.nested(|txn| {
            for _ in 0..rng.below(60) {
                change(txn, kind, &mut inner, rng, Mode { depth: depth + 1, deletes });
            }
            if abort { Err(Error::Stopped) } else { Ok(()) }
        });
        assert_eq!(result.is_err(), abort);
        if !abort {
            *model = inner;
        }
        return;
    }
    let mut table = txn.table_or_create_with(kind.name, &kind.options).unwrap();
    let (key, value) = (key(rng), (kind.value)(rng));
    let values = model.values(&key);
    let at = values.binary_search_by(|v| (kind.compare)(v, &value));
    match rng.below(1000) {
        0 => {
            let mut range = [key, self::key(rng)];
            range.sort_by(|a, b| key_order(kind)(a, b));
            let [low, high] = range;
            let before = model.len();
            let inside =
                |k: &[u8]| !key_order(kind)(k, &low).is_lt() && key_order(kind)(k, &high).is_lt();
            model.0.retain(|(k, _)| !inside(k));
            let removed = table.delete_range(low.clone()..high.clone()).unwrap();
            assert_eq!(removed, before - model.len());
        }
        1 if rng.below(4) == 0 => {
            table.clear().unwrap();
            model.0.clear();
        }
        2..=4 => {
            assert_eq!(table.delete(&key).unwrap(), !values.is_empty());
            values.clear();
        }
        n if n < deletes => {
            assert_eq!(table.delete_value(&key, &value).unwrap(), at.is_ok());
            if let Ok(i) = at {
                values.remove(i);
            }
        }
        980.. => {
            assert_eq!(table.insert(&key, &value).unwrap(), values.is_empty());
            if values.is_empty() {
                values.push(value);
            }
        }
        _ => {
            assert_eq!(table.insert_value(&key, &value).unwrap(), at.is_err());
            if let Err(i) = at {
                values.insert(i, value);
            }
        }
    }
    assert_eq!(table.len(), model.len());
}

fn compare_all(table: &ReadTable<'_>, kind: &Kind, model: &mut Model, rng: &mut Rng) {
    let pairs = model.pairs(kind);
    let own = |r: zubilo::Result<(&[u8], &[u8])>| r.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap();
    assert!(table.iter().map(own).eq(pairs.iter().cloned()), "{}", kind.name);
    assert!(table.iter().rev().map(own).eq(pairs.iter().rev().cloned()), "{}", kind.name);
    assert_eq!(table.len(), pairs.len() as u64);

    // From both ends at once.
    let mut iter = table.iter();
    let (mut low, mut high) = (0, pairs.len());
    while low < high {
        let pair = if rng.below(2) == 0 {
            low += 1;
            (iter.next(), &pairs[low - 1])
        } else {
            high -= 1;
            (iter.next_back(), &pairs[high])
        };
        assert_eq!(own(pair.0.expect("not the end")), *pair.1);
    }
    assert!(iter.next().is_none() && iter.next_back().is_none());

    for _ in 0..20 {
        let key = key(rng);
        let values = model.values(&key).clone();
        let all = table.get_all(&key).unwrap();
        assert_eq!(all.remaining(), values.len() as u64);
        assert!(all.map(Result::unwrap).eq(values.iter().map(|v| &v[..])));
        let back = table.get_all(&key).unwrap().rev().map(Result::unwrap);
        assert!(back.eq(values.iter().rev().map(|v| &v[..])));
        assert_eq!(table.count(&key).unwrap(), values.len() as u64);
        assert_eq!(table.get(&key).unwrap(), values.first().map(|v| &v[..]));
        let value = (kind.value)(rng);
        let has = values.binary_search_by(|v| (kind.compare)(v, &value)).is_ok();
        assert_eq!(table.contains(&key, &value).unwrap(), has);

        let bound = (Bound::Excluded(&key[..]), Bound::Unbounded);
        let behind = pairs.iter().filter(|(k, _)| key_order(kind)(k, &key).is_gt());
        assert!(table.range::<&[u8]>(bound).map(own).eq(behind.cloned()));
        let up_to = (Bound::Unbounded, Bound::Included(&key[..]));
        let before = pairs.iter().filter(|(k, _)| key_order(kind)(k, &key).is_le());
        assert!(table.range::<&[u8]>(up_to).rev().map(own).eq(before.rev().cloned()));
    }
}

/// Gives the most pages of trees of values that a table had.
fn run(page_size: u32, rng: &mut Rng, commits: u32) -> u64 {
    let mut value_pages = 0;
    let dir = tempfile::tempdir().unwrap();
    let open = |path: &str| {
        let options = Options::new().page_size(page_size).dirty_limit(300 << 10);
        options.open(dir.path().join(path)).unwrap()
    };
    let env: Env = open("a");
    let mut models: Vec<(Kind, Model)> =
        kinds().into_iter().map(|kind| (kind, Model::default())).collect();
    for _ in 0..commits {
        let before: Vec<Model> = models.iter().map(|(_, model)| model.clone()).collect();
        let mut write = env.write().unwrap();
        for (kind, model) in &mut models {
            // Sets grow into trees and shrink again.
            let mode = Mode { depth: 0, deletes: rng.pick(&[50, 200, 400, 800, 900]) };
            for _ in 0..rng.below(1500) {
                change(&mut write, kind, model, rng, mode);
            }
            let table = write.table_or_create_with(kind.name, &kind.options).unwrap();
            let seen: Vec<_> = table.iter().map(|r| r.unwrap().1.to_vec()).collect();
            assert!(seen.into_iter().eq(model.pairs(kind).into_iter().map(|(_, v)| v)));
        }
        if rng.below(6) == 0 {
            write.abort();
            models.iter_mut().zip(before).for_each(|((_, model), before)| *model = before);
            continue;
        }
        write.commit().unwrap();
        check(&env, "after a change");
        let read = env.read().unwrap();
        for (kind, model) in &mut models {
            let table = read.table_with(kind.name, &kind.options).unwrap();
            compare_all(&table, kind, model, rng);
            value_pages = table.stats().value_pages.max(value_pages);
        }
    }
    env.copy_to_path(dir.path().join("b"), true, &mut |_, _| true).unwrap();
    let copied = open("b");
    check(&copied, "the copy");
    let read = copied.read().unwrap();
    for (kind, model) in &mut models {
        if read.tables().unwrap().contains(&kind.name.as_bytes().to_vec()) {
            let table = read.table_with(kind.name, &kind.options).unwrap();
            compare_all(&table, kind, model, rng);
        }
    }
    value_pages
}

#[test]
fn tables_with_duplicates_agree_with_a_map_of_sets() {
    let mut rng = rng();
    let value_pages = run(4096, &mut rng, 8);
    assert!(value_pages > 3, "no trees of values: {value_pages} pages");
    run(16384, &mut rng, 3);
}

#[test]
#[ignore = "minutes"]
fn tables_with_duplicates_agree_with_a_map_of_sets_for_long() {
    let mut rng = rng();
    for _ in 0..20 {
        run(4096, &mut rng, 20);
        run(65536, &mut rng, 10);
    }
}

#[test]
fn what_a_table_with_duplicates_cannot_hold_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("a")).unwrap();
    let mut write = env.write().unwrap();
    let aligned = TableOptions::new().duplicates().align_values(8);
    assert!(matches!(write.create_table("aligned", aligned), Err(Error::Invalid(_))));
    let mut table = write.create_table("any", TableOptions::new().duplicates()).unwrap();
    assert!(matches!(table.put("k", vec![0; 5000]), Err(Error::ValueTooLong { len: 5000, .. })));
    assert!(matches!(table.reserve("k", 4), Err(Error::Incompatible { .. })));
    table.put("k", "").unwrap();
    table.put("k", "v").unwrap();
    assert_eq!(table.get("k").unwrap(), Some(&b""[..]));
    let mut table = write.create_table("fixed", TableOptions::new().fixed_duplicates()).unwrap();
    table.put("k", "1234").unwrap();
    assert!(matches!(table.put("k", "123"), Err(Error::Invalid(_))));
    assert!(matches!(table.put("other", "12345"), Err(Error::Invalid(_))));
    assert!(table.delete("k").unwrap());
    table.put("k", "12345").unwrap();
    let mut table = write.create_table("plain", TableOptions::new()).unwrap();
    assert!(matches!(table.insert_value("k", "v"), Err(Error::Incompatible { .. })));
    table.put("k", "v").unwrap();
    assert!(!table.delete_value("k", "w").unwrap());
    assert!(table.contains("k", "v").unwrap());
    assert!(table.delete_value("k", "v").unwrap());
    write.commit().unwrap();
    check(&env, "after a change");
}

#[test]
fn a_full_leaf_of_fixed_values_shares_with_a_short_one_behind() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().page_size(4096);
    let env = options.open(dir.path().join("a")).unwrap();
    let fixed = TableOptions::new().fixed_duplicates();
    // One leaf holds 508 such values: a sorted load leaves two in a second one.
    for values in [(0..510).map(|i| i * 5).collect(), vec![2501], vec![4]] {
        let mut write = env.write().unwrap();
        let mut table = write.table_or_create_with("t", &fixed).unwrap();
        for value in values {
            table.put("k", u64::to_be_bytes(value)).unwrap();
        }
        write.commit().unwrap();
        check(&env, "after a commit");
    }
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    let mut cursor = table.cursor();
    cursor.first().unwrap();
    let mut packed = cursor.packed_values().unwrap();
    let (mut counts, mut got) = (Vec::new(), Vec::new());
    while let Some(values) = packed {
        counts.push(values.len());
        got.extend(values.iter().map(|v| u64::from_be_bytes(v.try_into().unwrap())));
        packed = cursor.next_packed_values().unwrap();
    }
    let mut all: Vec<u64> = (0..510).map(|i| i * 5).chain([4, 2501]).collect();
    all.sort_unstable();
    assert_eq!(got, all);
    assert_eq!(counts, [256, 256]);
}
