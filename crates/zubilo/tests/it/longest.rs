//! Tables of records as long as their pages allow: branches of two or three children that lose some of
//! them, records that fill half a leaf, trees of values that become single values beside long keys.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use zubilo::{CompactOptions, Durability, Env, Error, KeyOrder, Options, TableOptions, WriteTable};

use crate::common::memory::MemoryFile;
use crate::common::{Rng, check, number, rng};

const NAME: &str = "t";

fn upwards(a: &[u8], b: &[u8]) -> Ordering {
    a.cmp(b)
}

fn downwards(a: &[u8], b: &[u8]) -> Ordering {
    b.cmp(a)
}

fn from_the_end(a: &[u8], b: &[u8]) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

type Compare = fn(&[u8], &[u8]) -> Ordering;

/// A kind of table, and the order of its keys.
fn kinds() -> Vec<(&'static str, TableOptions, Compare)> {
    let new = TableOptions::new;
    vec![
        ("plain", new(), upwards),
        ("counted", new().counted().align_values(16), upwards),
        ("reversed", new().key_order(KeyOrder::Reversed), from_the_end),
        ("custom", new().compare_keys(downwards), downwards),
        ("pairs", new().duplicates(), upwards),
        ("counted pairs", new().duplicates().counted(), upwards),
        ("pairs, values reversed", new().value_order(KeyOrder::Reversed), upwards),
        ("custom pairs", new().compare_values(downwards).compare_keys(downwards), downwards),
    ]
}

/// A table under test and what it should hold.
struct Under {
    kind: &'static str,
    options: TableOptions,
    compare: Compare,
    env: Env,
    pairs: BTreeSet<(Vec<u8>, Vec<u8>)>,
    /// Most levels that the tree has had.
    depth: u32,
}

impl Under {
    /// Bytes of the longest key and value together inside a leaf; see `docs/limits.md`.
    fn record(&self) -> usize {
        self.env.page_size() / 2 - 64
    }

    /// Mostly of the greatest length. Keys differ at the beginning, in the middle, behind what a page
    /// can note as shared, or at the end; all have most of their bytes in common.
    fn key(&self, rng: &mut Rng) -> Vec<u8> {
        let max = self.env.max_key_len();
        let len = match rng.below(10) {
            0 => rng.index(max + 1),
            1 => rng.index(12),
            2 => max - rng.index(4),
            _ => max,
        };
        let mut key = vec![b'k'; len];
        let at = rng.pick(&[0, 20, len / 2, len / 2 + 300, len.saturating_sub(2)]);
        let number = (rng.below(300) as u16).to_be_bytes();
        key.iter_mut().skip(at).zip(number).for_each(|(to, from)| *to = from);
        key
    }

    fn value(&self, rng: &mut Rng, key: &[u8]) -> Vec<u8> {
        let mut most = self.record() - key.len();
        if self.options.has_duplicates() {
            most = most.min(self.env.max_key_len());
        }
        let len = match rng.below(8) {
            0 | 1 => most,
            2 => rng.index(most + 1),
            // In pages of its own.
            3 if !self.options.has_duplicates() => most + 1 + rng.index(3) * most,
            _ => rng.index(60).min(most),
        };
        let mut value = vec![b'v'; len];
        let at = rng.pick(&[0, len.saturating_sub(1)]);
        value.iter_mut().skip(at).take(1).for_each(|to| *to = rng.byte());
        value
    }

    fn put(&mut self, table: &mut WriteTable<'_>, rng: &mut Rng) {
        let mut key = self.key(rng);
        // Many values under some keys.
        if self.options.has_duplicates() && rng.one_in(2) {
            key.iter_mut().for_each(|byte| *byte = b'k' + (*byte == b'k') as u8);
            key.truncate(rng.pick(&[0, 1, self.env.max_key_len()]));
        }
        let value = self.value(rng, &key);
        table.put(&key, &value).unwrap();
        if !self.options.has_duplicates() {
            self.pairs.retain(|(other, _)| *other != key);
        }
        self.pairs.insert((key, value));
    }

    fn remove(&mut self, table: &mut WriteTable<'_>, rng: &mut Rng) {
        let Some((key, value)) = self.pairs.iter().nth(rng.index(self.pairs.len().max(1))) else {
            return;
        };
        let (key, value) = (key.clone(), value.clone());
        match rng.below(12) {
            0 | 1 => {
                assert!(table.delete(&key).unwrap());
                self.pairs.retain(|(other, _)| *other != key);
            }
            2 => {
                let other = self.key(rng);
                let [from, to] = match (self.compare)(&key, &other) {
                    Ordering::Greater => [&other, &key],
                    _ => [&key, &other],
                };
                let before = self.pairs.len();
                self.pairs.retain(|(key, _)| {
                    (self.compare)(key, from).is_le() || (self.compare)(key, to).is_gt()
                });
                let range = (Bound::Excluded(from), Bound::Included(to));
                let gone = table.delete_range::<&Vec<u8>>(range).unwrap();
                assert_eq!(gone, (before - self.pairs.len()) as u64);
            }
            3 => {
                let mut cursor = table.cursor_mut().unwrap();
                assert!(cursor.seek_pair(&key, &value).unwrap().is_some());
                assert!(cursor.delete().unwrap());
                drop(cursor);
                self.pairs.remove(&(key, value));
            }
            _ => {
                assert!(table.delete_value(&key, &value).unwrap());
                self.pairs.remove(&(key, value));
            }
        }
    }

    /// A commit of some changes, of which so many in ten remove.
    fn change(&mut self, changes: u64, removing: u64, rng: &mut Rng) {
        let env = self.env.clone();
        let mut txn = env.write().unwrap();
        let options = self.options.clone();
        let mut table = txn.table_or_create_with(NAME, &options).unwrap();
        for _ in 0..changes {
            match rng.below(10) < removing {
                true => self.remove(&mut table, rng),
                false => self.put(&mut table, rng),
            }
        }
        assert_eq!(table.len(), self.pairs.len() as u64);
        self.depth = self.depth.max(table.stats().depth);
        txn.commit().unwrap();
    }

    /// The pages are whole, and every record is found on each way.
    fn examine(&self, env: &Env, what: &str) {
        let what = format!("{}, pages of {}: {what}", self.kind, env.page_size());
        check(env, &what);
        let read = env.read().unwrap();
        let table = read.table_with(NAME, &self.options).unwrap();
        let mut keys = BTreeMap::<&[u8], BTreeSet<&[u8]>>::new();
        for (key, value) in &self.pairs {
            keys.entry(key).or_default().insert(value);
        }
        let mut sorted: Vec<_> = keys.keys().copied().collect();
        sorted.sort_by(|a, b| (self.compare)(a, b));
        let mut found: Vec<_> = table.iter().map(|record| record.unwrap().0).collect();
        found.dedup();
        assert!(found == sorted, "{what}");
        assert_eq!(table.len(), self.pairs.len() as u64, "{what}");
        for (key, values) in keys {
            assert_eq!(table.count(key).unwrap(), values.len() as u64, "{what}");
            match self.options.has_duplicates() {
                true => {
                    let own: BTreeSet<_> =
                        table.get_all(key).unwrap().map(|v| v.unwrap()).collect();
                    assert!(own == values, "{what}");
                }
                false => assert!(table.get(key).unwrap() == values.first().copied(), "{what}"),
            }
        }
    }
}

/// Tables that grow, shrink, are packed in place and copied without gaps, and go on.
#[test]
fn tables_of_the_longest_records_come_and_go() {
    let mut rng = rng();
    for _ in 0..number("LONGEST_ROUNDS", 1) {
        for page_size in [4096, 16384, 65536] {
            let mut deepest = 0;
            for (kind, options, compare) in kinds() {
                let file = MemoryFile::new(&[]);
                let env = Options::new().page_size(page_size).durability(Durability::NoSync);
                let env = file.open(env).unwrap();
                let mut under =
                    Under { kind, options, compare, env, pairs: BTreeSet::new(), depth: 0 };
                for (step, removing) in [1, 1, 4, 7, 8, 2, 6, 9].into_iter().enumerate() {
                    under.change(100, removing, &mut rng);
                    under.examine(&under.env, &format!("step {step}"));
                }
                under.change(60, 0, &mut rng);
                under.env.compact(&CompactOptions::new(), &mut |_, _| true).unwrap();
                under.examine(&under.env, "packed");
                under.change(40, 5, &mut rng);
                under.examine(&under.env, "after it was packed");
                let mut copy = Vec::new();
                under.env.copy_to_writer(&mut copy, true, &mut |_, _| true).unwrap();
                let copied = MemoryFile::new(&copy).open(Options::new()).unwrap();
                under.examine(&copied, "copied without gaps");
                under.env = copied;
                under.change(60, 6, &mut rng);
                under.examine(&under.env, "after it was copied");
                while !under.pairs.is_empty() {
                    under.change(60, 10, &mut rng);
                }
                under.examine(&under.env, "emptied");
                deepest = deepest.max(under.depth);
            }
            assert!(deepest >= if page_size == 4096 { 4 } else { 3 }, "{deepest}");
        }
    }
}

/// In a caller's order keys of many lengths may be equal, and the one that was stored first stays.
#[test]
fn beside_an_equal_key_the_stored_one_counts() {
    let first_byte = |a: &[u8], b: &[u8]| a.first().cmp(&b.first());
    for page_size in [4096, 65536] {
        let file = MemoryFile::new(&[]);
        let env = file.open(Options::new().page_size(page_size)).unwrap();
        let (max, record) = (env.max_key_len(), env.page_size() / 2 - 64);
        let mut txn = env.write().unwrap();
        let one = TableOptions::new().compare_keys(first_byte);
        let mut table = txn.table_or_create_with("one", &one).unwrap();
        for byte in [b'a', b'b', b'c'] {
            table.put(vec![byte; max], [byte]).unwrap();
        }
        // With the short key they would fit a leaf.
        for len in [record - 1, record - max, record - max + 1] {
            for byte in [b'b', b'a', b'c'] {
                table.put([byte], vec![byte; len]).unwrap();
                assert_eq!(table.reserve([byte], len).unwrap().len(), len);
                table.reserve([byte], len).unwrap().fill(byte);
                assert_eq!(table.get([byte, 1]).unwrap(), Some(&vec![byte; len][..]));
            }
            assert_eq!(table.stats().run_pages, if len == record - max { 0 } else { 3 });
        }
        assert_eq!(table.first().unwrap().unwrap().0, vec![b'a'; max]);
        let many = TableOptions::new().compare_keys(first_byte).duplicates();
        let mut table = txn.table_or_create_with("many", &many).unwrap();
        let beside = (record - max).min(max);
        for byte in [b'a', b'b', b'c'] {
            table.put(vec![byte; max], vec![byte; beside]).unwrap();
            match table.put([byte], vec![byte; beside + 1]) {
                Err(Error::ValueTooLong { len, max }) => {
                    assert_eq!((len, max), (beside + 1, beside))
                }
                other => panic!("{other:?}"),
            }
            // Beside a short key it has room, though the key it is asked for by is long.
            assert!(table.delete([byte]).unwrap());
            table.put([byte], "short").unwrap();
            table.put(vec![byte; max], vec![byte; max.min(record - 1)]).unwrap();
            assert!(table.delete_value([byte, 1], "short").unwrap());
        }
        txn.commit().unwrap();
        check(&env, "equal keys of other lengths");
    }
}
