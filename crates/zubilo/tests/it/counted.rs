//! Counted tables: ranks, n-th records and lengths of ranges against a sorted list, while the table is
//! changed in every way.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::common::{Rng, check, fresh, rng};
use zubilo::{
    Durability, Env, Error, KeyOrder, Options, ReadTable, Result, TableOptions, WriteTxn,
};

type Pair = (Vec<u8>, Vec<u8>);
type Compare = fn(&[u8], &[u8]) -> Ordering;

fn backwards(a: &[u8], b: &[u8]) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

/// A kind of table with its orders, and how many values a key may have.
struct Kind {
    options: TableOptions,
    keys: Compare,
    values: Compare,
    many: u64,
}

fn kinds() -> Vec<Kind> {
    let new = || TableOptions::new().counted();
    let bytes: Compare = |a, b| a.cmp(b);
    vec![
        Kind { options: new(), keys: bytes, values: bytes, many: 1 },
        Kind { options: new().duplicates(), keys: bytes, values: bytes, many: 1200 },
        Kind {
            options: new()
                .key_order(KeyOrder::Reversed)
                .value_order(KeyOrder::Integer)
                .fixed_duplicates(),
            keys: backwards,
            values: backwards,
            many: 3000,
        },
        Kind {
            options: new().compare_keys(|a, b| b.cmp(a)).compare_values(|a, b| b.cmp(a)),
            keys: |a, b| b.cmp(a),
            values: |a, b| b.cmp(a),
            many: 400,
        },
    ]
}

/// Neighbours agree in most of their bytes, so that separators are long and the tree deep.
fn key(n: u64) -> Vec<u8> {
    let group = n / 8;
    let mut key = format!("{group:05}").into_bytes();
    key.extend(std::iter::repeat_n(b'-', 200 + (group % 50) as usize));
    key.push(b'0' + (n % 8) as u8);
    key
}

fn value(n: u64) -> Vec<u8> {
    n.to_le_bytes().to_vec()
}

/// The records as a sorted list.
struct Model {
    pairs: Vec<Pair>,
    keys: Compare,
    values: Compare,
    many: bool,
}

impl Model {
    fn place(&self, key: &[u8], value: &[u8]) -> usize {
        let less =
            |p: &Pair| (self.keys)(&p.0, key).then_with(|| (self.values)(&p.1, value)).is_lt();
        self.pairs.partition_point(less)
    }

    fn before(&self, key: &[u8]) -> usize {
        self.pairs.partition_point(|p| (self.keys)(&p.0, key).is_lt())
    }

    fn behind(&self, key: &[u8]) -> usize {
        self.pairs.partition_point(|p| (self.keys)(&p.0, key).is_le())
    }

    fn put(&mut self, pair: Pair) {
        if !self.many {
            let (from, to) = (self.before(&pair.0), self.behind(&pair.0));
            self.pairs.drain(from..to);
        }
        let at = self.place(&pair.0, &pair.1);
        if self.pairs.get(at) != Some(&pair) {
            self.pairs.insert(at, pair);
        }
    }
}

/// What read and write transactions answer alike.
trait Counted {
    fn nth(&self, n: u64) -> Result<Option<Pair>>;
    fn nth_value(&self, key: &[u8], n: u64) -> Result<Option<Vec<u8>>>;
    fn rank(&self, key: &[u8]) -> Result<u64>;
    fn rank_of_pair(&self, key: &[u8], value: &[u8]) -> Result<u64>;
    fn range_len(&self, range: (Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Result<u64>;
}

macro_rules! counted {
    ($table:ty) => {
        impl Counted for $table {
            fn nth(&self, n: u64) -> Result<Option<Pair>> {
                Ok(self.nth(n)?.map(|(k, v)| (k.to_vec(), v.to_vec())))
            }
            fn nth_value(&self, key: &[u8], n: u64) -> Result<Option<Vec<u8>>> {
                Ok(self.nth_value(key, n)?.map(<[u8]>::to_vec))
            }
            fn rank(&self, key: &[u8]) -> Result<u64> {
                self.rank(key)
            }
            fn rank_of_pair(&self, key: &[u8], value: &[u8]) -> Result<u64> {
                self.rank_of_pair(key, value)
            }
            fn range_len(&self, range: (Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Result<u64> {
                self.range_len(range)
            }
        }
    };
}
counted!(ReadTable<'_>);
counted!(zubilo::WriteTable<'_>);

fn compare(table: &impl Counted, model: &Model, rng: &mut Rng, times: u64) {
    let len = model.pairs.len() as u64;
    assert_eq!(table.nth(len).unwrap(), None);
    assert_eq!(table.nth(u64::MAX).unwrap(), None);
    let all = (Bound::Unbounded, Bound::Unbounded);
    assert_eq!(table.range_len(all).unwrap(), len);
    for _ in 0..times {
        let n = rng.below(len);
        assert_eq!(table.nth(n).unwrap().as_ref(), model.pairs.get(n as usize), "record {n}");
        let (k, v) = match model.pairs.get(rng.below(len) as usize) {
            Some((k, v)) if rng.one_in(2) => (k.clone(), v.clone()),
            _ => (key(rng.below(3000)), value(rng.below(3000))),
        };
        let (before, behind) = (model.before(&k), model.behind(&k));
        assert_eq!(table.rank(&k).unwrap(), before as u64);
        let due = if model.many { model.place(&k, &v) } else { before };
        assert_eq!(table.rank_of_pair(&k, &v).unwrap(), due as u64);
        let n = rng.below((behind - before) as u64 + 2);
        let due = model.pairs.get(before + n as usize).filter(|_| before + (n as usize) < behind);
        assert_eq!(table.nth_value(&k, n).unwrap(), due.map(|p| p.1.clone()));
        let other = key(rng.below(3000));
        let start = [Bound::Included(k.clone()), Bound::Excluded(k.clone()), Bound::Unbounded];
        let end = [Bound::Included(other.clone()), Bound::Excluded(other), Bound::Unbounded];
        let (start, end) = (&start[rng.below(3) as usize], &end[rng.below(3) as usize]);
        let from = match start {
            Bound::Included(k) => model.before(k),
            Bound::Excluded(k) => model.behind(k),
            Bound::Unbounded => 0,
        };
        let to = match end {
            Bound::Included(k) => model.behind(k),
            Bound::Excluded(k) => model.before(k),
            Bound::Unbounded => model.pairs.len(),
        };
        let due = to.saturating_sub(from) as u64;
        assert_eq!(table.range_len((start.clone(), end.clone())).unwrap(), due);
    }
}

/// Some change of the table.
fn change(txn: &mut WriteTxn, kind: &Kind, model: &mut Model, rng: &mut Rng) {
    let mut table = txn.table_with("t", &kind.options).unwrap();
    let k = key(rng.below(3000));
    match rng.below(20) {
        0 => {
            let mut ends = [k, key(rng.below(3000))];
            ends.sort_by(|a, b| (kind.keys)(a, b));
            let [from, to] = ends;
            // Short ranges mostly: else the table stays small.
            let to = if rng.one_in(4) { to } else { from.clone() };
            let (start, end) = (model.before(&from), model.behind(&to));
            let deleted = table.delete_range(from..=to).unwrap();
            assert_eq!(deleted, (end - start) as u64);
            model.pairs.drain(start..end);
        }
        1..4 => {
            let (from, to) = (model.before(&k), model.behind(&k));
            assert_eq!(table.delete(&k).unwrap(), from < to);
            model.pairs.drain(from..to);
        }
        4..8 if !model.pairs.is_empty() => {
            let at = rng.below(model.pairs.len() as u64) as usize;
            let (k, v) = model.pairs.remove(at);
            assert!(table.delete_value(k, v).unwrap());
        }
        8 if kind.many > 1 => {
            for n in 0..kind.many {
                table.put(&k, value(n)).unwrap();
            }
            let from = model.behind(&k);
            let from = from - model.pairs[..from].iter().rev().take_while(|p| p.0 == k).count();
            let to = model.behind(&k);
            let mut own: Vec<Pair> = model.pairs.drain(from..to).collect();
            own.extend((0..kind.many).map(|n| (k.clone(), value(n))));
            own.sort_by(|a, b| (kind.values)(&a.1, &b.1));
            own.dedup();
            model.pairs.splice(from..from, own);
        }
        _ => {
            for _ in 0..30 {
                let pair = (key(rng.below(3000)), value(rng.below(kind.many)));
                table.put(&pair.0, &pair.1).unwrap();
                model.put(pair);
            }
        }
    }
}

fn open(path: &std::path::Path) -> Env {
    // Little memory: transactions write early.
    let options = Options::new().durability(Durability::NoSync).dirty_limit(200 << 10);
    options.open(path).unwrap()
}

#[test]
fn counts_follow_every_change() {
    let mut rng = rng();
    for kind in kinds() {
        let (dir, path) = fresh();
        let env = open(&path);
        let (keys, values, many) = (kind.keys, kind.values, kind.many > 1);
        let mut model = Model { pairs: Vec::new(), keys, values, many };
        let mut depth = 0;
        for _ in 0..25 {
            let mut txn = env.write().unwrap();
            txn.table_or_create_with("t", &kind.options).unwrap();
            for _ in 0..rng.below(20) {
                if rng.one_in(5) {
                    let kept = model.pairs.clone();
                    txn.begin_nested().unwrap();
                    for _ in 0..rng.below(6) {
                        change(&mut txn, &kind, &mut model, &mut rng);
                    }
                    if rng.one_in(2) {
                        txn.commit_nested().unwrap();
                    } else {
                        txn.abort_nested().unwrap();
                        model.pairs = kept;
                    }
                } else {
                    change(&mut txn, &kind, &mut model, &mut rng);
                }
                let table = txn.table_with("t", &kind.options).unwrap();
                compare(&table, &model, &mut rng, 5);
            }
            txn.commit().unwrap();
            check(&env, "after a commit");
            let read = env.read().unwrap();
            let table = read.table_with("t", &kind.options).unwrap();
            compare(&table, &model, &mut rng, 100);
            depth = depth.max(table.stats().depth);
        }
        assert!(depth > 2, "the tree never had branches above branches");
        let copy = dir.path().join("copy");
        env.copy_to_path(&copy, true, &mut |_, _| true).unwrap();
        let copy = open(&copy);
        check(&copy, "a compacted copy");
        let read = copy.read().unwrap();
        compare(&read.table_with("t", &kind.options).unwrap(), &model, &mut rng, 500);
        drop(read);
        let mut txn = copy.write().unwrap();
        txn.table_with("t", &kind.options).unwrap().clear().unwrap();
        model.pairs.clear();
        compare(&txn.table_with("t", &kind.options).unwrap(), &model, &mut rng, 1);
        change(&mut txn, &kind, &mut model, &mut rng);
        txn.commit().unwrap();
        check(&copy, "filled again");
    }
}

#[test]
fn tables_that_do_not_count_say_so() {
    let (_dir, path) = fresh();
    let env = open(&path);
    let mut txn = env.write().unwrap();
    let mut plain = txn.create_table("plain", TableOptions::new()).unwrap();
    plain.put("key", "value").unwrap();
    let refused = |r: Result<u64>| matches!(r, Err(Error::Incompatible { .. }));
    assert!(refused(plain.rank("key")) && refused(plain.range_len::<&str>(..)));
    assert!(refused(plain.nth(0).map(|_| 0)) && refused(plain.nth_value("key", 0).map(|_| 0)));
    assert!(!plain.options().is_counted());
    let counted = TableOptions::new().counted();
    assert!(matches!(txn.table_with("plain", &counted), Err(Error::Incompatible { .. })));
    assert!(txn.create_table("counted", counted).unwrap().options().is_counted());
}
