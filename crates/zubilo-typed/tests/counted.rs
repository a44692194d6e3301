//! Typed tables that count their records, against a sorted list: the n-th record, the rank of a key
//! and of a pair, the number of records in a range, in both kinds of transactions.

use std::collections::BTreeSet;
use std::ops::Bound;

use proptest::prelude::*;
use zubilo::{Env, Options};
use zubilo_typed::{Error, Multimap, Result, Table};

const PLAIN: Table<i32, String> = Table::new("plain").counted();
const PAIRS: Multimap<i32, String> = Multimap::new("pairs").counted();
const NUMBERS: Multimap<i32, u32> = Multimap::new("numbers").counted();

fn store() -> (tempfile::TempDir, Env) {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().page_size(4096).open(dir.path().join("counted.zubilo")).unwrap();
    (dir, env)
}

/// Long enough that some hundred fill several pages.
fn text(value: u32) -> String {
    format!("{value:060}")
}

/// Where to ask: around and on what may be there, and beyond both ends.
fn places() -> impl Iterator<Item = i32> {
    [i32::MIN, i32::MAX].into_iter().chain((-45..45).step_by(3))
}

type Range = (Bound<i32>, Bound<i32>);

fn ranges() -> impl Iterator<Item = Range> {
    let ends = |key| [Bound::Included(key), Bound::Excluded(key), Bound::Unbounded];
    let keys = [-40, -7, 0, 1, 39];
    let pairs = keys.into_iter().flat_map(move |a| keys.into_iter().map(move |b| (a, b)));
    pairs.flat_map(move |(a, b)| {
        ends(a).into_iter().flat_map(move |from| ends(b).into_iter().map(move |to| (from, to)))
    })
}

fn is_inside(range: &Range, key: i32) -> bool {
    (match range.0 {
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
        Bound::Unbounded => true,
    }) && match range.1 {
        Bound::Included(to) => key <= to,
        Bound::Excluded(to) => key < to,
        Bound::Unbounded => true,
    }
}

/// Compares a table of either kind of transaction with the sorted list of its records.
macro_rules! check {
    ($table:expr, $model:expr) => {{
        let (table, model) = (&$table, &$model);
        let all: Vec<_> = model.iter().cloned().collect();
        prop_assert_eq!(table.len(), all.len() as u64);
        for n in (0..all.len() + 2).step_by(7).chain([all.len()]) {
            prop_assert_eq!(table.nth(n as u64).unwrap(), all.get(n).cloned(), "record {}", n);
        }
        for key in places() {
            let before = all.iter().filter(|(k, _)| *k < key).count() as u64;
            prop_assert_eq!(table.rank(key).unwrap(), before, "rank of {}", key);
        }
        for range in ranges() {
            let inside = all.iter().filter(|(k, _)| is_inside(&range, *k)).count() as u64;
            prop_assert_eq!(table.range_len(range).unwrap(), inside, "{:?}", range);
        }
    }};
}

/// The same for the values of keys.
macro_rules! check_values {
    ($table:expr, $model:expr, $number:ident => $value:expr, $given:expr) => {{
        let (table, model) = (&$table, &$model);
        for key in places() {
            let values: Vec<_> = model.iter().filter(|(k, _)| *k == key).map(|r| &r.1).collect();
            for n in (0..values.len() + 2).step_by(5).chain([values.len()]) {
                let expected = values.get(n).copied().cloned();
                prop_assert_eq!(table.nth_of(key, n as u64).unwrap(), expected);
            }
            for $number in (0..400u32).step_by(23) {
                let before = model.iter().filter(|r| **r < (key, $value)).count() as u64;
                prop_assert_eq!(table.rank_of(key, $given).unwrap(), before, "{} {}", key, $number);
            }
        }
    }};
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The second half of the changes is counted before it is committed and after.
    #[test]
    fn like_a_sorted_list(
        // Three of four fall on a few keys, which so have large sets.
        changes in proptest::collection::vec((0..5u8, prop_oneof![1 => -40..40i32, 3 => -1..=1i32], 0..400u32), 1..1500),
    ) {
        let (_dir, env) = store();
        let (mut plain, mut pairs, mut numbers) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for half in changes.chunks(changes.len().div_ceil(2)) {
            let mut txn = env.write().unwrap();
            for &(what, key, value) in half {
                if what > 0 {
                    plain.retain(|(k, _)| *k != key);
                    plain.insert((key, text(value)));
                    pairs.insert((key, text(value)));
                    numbers.insert((key, value));
                    PLAIN.open_mut(&mut txn).unwrap().put(key, &text(value)).unwrap();
                    PAIRS.open_mut(&mut txn).unwrap().insert(key, &text(value)).unwrap();
                    NUMBERS.open_mut(&mut txn).unwrap().insert(key, value).unwrap();
                } else {
                    plain.retain(|(k, _)| *k != key);
                    pairs.remove(&(key, text(value)));
                    numbers.remove(&(key, value));
                    PLAIN.open_mut(&mut txn).unwrap().delete(key).unwrap();
                    PAIRS.open_mut(&mut txn).unwrap().delete(key, &text(value)).unwrap();
                    NUMBERS.open_mut(&mut txn).unwrap().delete(key, value).unwrap();
                }
            }
            check!(PLAIN.open_mut(&mut txn).unwrap(), plain);
            check!(PAIRS.open_mut(&mut txn).unwrap(), pairs);
            check!(NUMBERS.open_mut(&mut txn).unwrap(), numbers);
            check_values!(PAIRS.open_mut(&mut txn).unwrap(), pairs, n => text(n), &text(n));
            check_values!(NUMBERS.open_mut(&mut txn).unwrap(), numbers, n => n, n);
            txn.commit().unwrap();
        }
        let read = env.read().unwrap();
        check!(PLAIN.open(&read).unwrap(), plain);
        check!(PAIRS.open(&read).unwrap(), pairs);
        check!(NUMBERS.open(&read).unwrap(), numbers);
        check_values!(PAIRS.open(&read).unwrap(), pairs, n => text(n), &text(n));
        check_values!(NUMBERS.open(&read).unwrap(), numbers, n => n, n);
    }
}

/// A definition opens no table that differs in counting, and what only counted tables know is an
/// error in others.
#[test]
fn counting_is_part_of_the_definition() -> Result<()> {
    const NOT: Table<i32, String> = Table::new("plain");
    let (_dir, env) = store();
    let mut txn = env.write()?;
    PLAIN.open_mut(&mut txn)?.put(1, "one")?;
    let refused = NOT.open_mut(&mut txn).map(drop);
    assert!(
        matches!(refused, Err(Error::Store(zubilo::Error::Incompatible { .. }))),
        "{refused:?}"
    );
    assert!(PLAIN.drop_table(&mut txn)?);
    let not = NOT.open_mut(&mut txn)?;
    for result in [not.nth(0).map(drop), not.rank(0).map(drop), not.range_len(..).map(drop)] {
        assert!(
            matches!(result, Err(Error::Store(zubilo::Error::Incompatible { .. }))),
            "{result:?}"
        );
    }
    Ok(())
}
