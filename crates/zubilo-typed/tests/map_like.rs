//! What Rust's maps have, in typed tables: against a model, in both kinds of transactions, and with records that
//! cannot be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use zubilo::{Env, Options};
use zubilo_typed::{Error, Key, Multimap, Result, Table, Value, WriteTable};

fn fresh() -> (tempfile::TempDir, Env) {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("store")).unwrap();
    (dir, env)
}

type K = (String, i16);
const TABLE: Table<K, Option<String>> = Table::new("t");

#[derive(Clone, Debug)]
enum Step {
    Put(K, Option<String>),
    Replace(K, Option<String>),
    Update(K, Option<String>),
    Take(K),
    PopFirst,
    PopLast,
    Retain(i16),
    Modify(K),
    OrInsert(K, Option<String>),
    OrInsertWith(K, Option<String>),
    Insert(K, Option<String>),
    Remove(K),
    Look(K),
}

fn key() -> impl Strategy<Value = K> {
    ("[a\u{0}]{0,2}", -3i16..3)
}

fn value() -> impl Strategy<Value = Option<String>> {
    proptest::option::of("[xyz]{0,3}")
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (key(), value()).prop_map(|(k, v)| Step::Put(k, v)),
        1 => (key(), value()).prop_map(|(k, v)| Step::Replace(k, v)),
        1 => (key(), value()).prop_map(|(k, v)| Step::Update(k, v)),
        1 => key().prop_map(Step::Take),
        1 => Just(Step::PopFirst),
        1 => Just(Step::PopLast),
        1 => (-3i16..3).prop_map(Step::Retain),
        1 => key().prop_map(Step::Modify),
        1 => (key(), value()).prop_map(|(k, v)| Step::OrInsert(k, v)),
        1 => (key(), value()).prop_map(|(k, v)| Step::OrInsertWith(k, v)),
        1 => (key(), value()).prop_map(|(k, v)| Step::Insert(k, v)),
        1 => key().prop_map(Step::Remove),
        1 => key().prop_map(Step::Look),
    ]
}

type Model = BTreeMap<K, Option<String>>;

fn input(key: &K) -> (&str, i16) {
    (&key.0, key.1)
}

fn longer(value: Option<String>) -> Option<String> {
    value.map(|text| text + "!")
}

/// What the table gives and what the model gives.
fn both(
    table: &mut WriteTable<'_, K, Option<String>>,
    model: &mut Model,
    step: Step,
) -> Result<(String, String)> {
    let told = |table: &dyn std::fmt::Debug, model: &dyn std::fmt::Debug| {
        Ok((format!("{table:?}"), format!("{model:?}")))
    };
    match step {
        Step::Put(k, v) => {
            table.put(input(&k), v.as_deref())?;
            model.insert(k, v);
            told(&(), &())
        }
        Step::Replace(k, v) => told(&table.replace(input(&k), v.as_deref())?, &model.insert(k, v)),
        Step::Update(k, v) => {
            let old = model.get_mut(&k).map(|old| std::mem::replace(old, v.clone()));
            told(&table.update(input(&k), v.as_deref())?, &old)
        }
        Step::Take(k) => told(&table.take(input(&k))?, &model.remove(&k)),
        Step::PopFirst => told(&table.pop_first()?, &model.pop_first()),
        Step::PopLast => told(&table.pop_last()?, &model.pop_last()),
        Step::Retain(n) => {
            let before = model.len();
            model.retain(|k, v| k.1 < n || v.is_none());
            told(&table.retain(|k, v| k.1 < n || v.is_none())?, &(before - model.len()))
        }
        Step::Modify(k) => {
            let place = table.entry(input(&k))?.and_modify(longer)?;
            if let Some(value) = model.get_mut(&k) {
                *value = longer(value.take());
            }
            told(&place.get()?, &model.get(&k))
        }
        Step::OrInsert(k, v) => {
            told(&table.entry(input(&k))?.or_insert(v.as_deref())?, model.entry(k).or_insert(v))
        }
        Step::OrInsertWith(k, v) => {
            let given = table.entry(input(&k))?.or_insert_with(|| v.clone())?;
            told(&given, model.entry(k).or_insert(v))
        }
        Step::Insert(k, v) => {
            told(&table.entry(input(&k))?.insert(v.as_deref())?, &model.insert(k, v))
        }
        Step::Remove(k) => told(&table.entry(input(&k))?.remove()?, &model.remove(&k)),
        Step::Look(k) => {
            let has = table.contains_key(input(&k))?;
            let holds = model.get(&k);
            let same = holds.is_none_or(|v| table.contains(input(&k), v.as_deref()).unwrap());
            told(&(has, same, table.entry(input(&k))?.key()?), &(holds.is_some(), true, k))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn tables_do_as_maps_do(steps in proptest::collection::vec(step(), 1..60)) {
        let (_dir, env) = fresh();
        let mut model = Model::new();
        let mut txn = env.write().unwrap();
        let mut table = TABLE.open_mut(&mut txn).unwrap();
        for step in steps {
            let (given, wanted) = both(&mut table, &mut model, step.clone()).unwrap();
            prop_assert_eq!(given, wanted, "{:?}", step);
            let first = model.first_key_value().map(|(k, v)| (k.clone(), v.clone()));
            let last = model.last_key_value().map(|(k, v)| (k.clone(), v.clone()));
            prop_assert_eq!(table.first_key_value().unwrap(), first);
            prop_assert_eq!(table.last_key_value().unwrap(), last);
        }
        txn.commit().unwrap();
        let read = Arc::new(env.read().unwrap());
        let owned = TABLE.open_owned(&read).unwrap();
        let table = owned.as_table();
        let all: Model = table.iter().map(Result::unwrap).collect();
        prop_assert_eq!(&all, &model);
        let back: Vec<_> = owned.iter().rev().map(Result::unwrap).collect();
        prop_assert!(back.iter().map(|(k, v)| (k, v)).eq(model.iter().rev()));
        for (k, v) in &model {
            prop_assert!(table.contains_key(input(k)).unwrap());
            prop_assert_eq!(owned.get(input(k)).unwrap(), Some(v.clone()));
        }
    }
}

#[test]
fn multimaps_give_one_value_after_the_other() {
    const TAGS: Multimap<&str, u32> = Multimap::new("tags");
    let (_dir, env) = fresh();
    let mut txn = env.write().unwrap();
    let mut tags = TAGS.open_mut(&mut txn).unwrap();
    for n in 1..=4 {
        tags.insert("a", n).unwrap();
        tags.insert("b", n * 10).unwrap();
    }
    assert_eq!(tags.pop_first().unwrap(), Some(("a".to_string(), 1)));
    assert_eq!(tags.pop_last().unwrap(), Some(("b".to_string(), 40)));
    assert_eq!(tags.retain(|key, n| key == "a" || n > 20).unwrap(), 2);
    assert!(tags.contains_key("b").unwrap() && !tags.contains_key("c").unwrap());
    assert_eq!(tags.first_key_value().unwrap(), Some(("a", 2)));
    assert_eq!(tags.last_key_value().unwrap(), Some(("b", 30)));
    txn.commit().unwrap();

    let tags = TAGS.open_owned(&env.read().unwrap().into_shared()).unwrap();
    drop(env);
    let thread = std::thread::spawn(move || {
        assert_eq!(tags.get("a").unwrap(), [2, 3, 4]);
        let of_b: Vec<_> = tags.prefix("b").map(Result::unwrap).collect();
        assert_eq!(of_b, [("b".to_string(), 30)]);
        (tags.len(), tags.clone().is_empty(), tags.contains_key("c").unwrap())
    });
    assert_eq!(thread.join().unwrap(), (4, false, false));
}

#[test]
fn what_cannot_be_read_stays() {
    const NUMBERS: Table<u32, u16> = Table::new("numbers");
    let (_dir, env) = fresh();
    let mut txn = env.write().unwrap();
    let mut numbers = NUMBERS.open_mut(&mut txn).unwrap();
    (1..=3).for_each(|n| numbers.put(n, 7).unwrap());
    txn.table_with("numbers", &NUMBERS.options()).unwrap().put(2u32.to_be_bytes(), "abc").unwrap();
    let mut numbers = NUMBERS.open_mut(&mut txn).unwrap();
    assert_eq!(numbers.pop_first().unwrap(), Some((1, 7)));
    assert!(matches!(numbers.pop_first(), Err(Error::Decode { ty: "u16", .. })));
    assert!(matches!(numbers.take(2), Err(Error::Decode { .. })));
    assert!(matches!(numbers.replace(2, 5), Err(Error::Decode { .. })));
    assert!(matches!(numbers.update(2, 5), Err(Error::Decode { .. })));
    assert!(matches!(numbers.retain(|_, _| false), Err(Error::Decode { .. })));
    assert_eq!(numbers.len(), 2);
    assert!(numbers.contains_key(2).unwrap());
}

/// Odd numbers only.
struct Odd;

impl Value for Odd {
    type Input<'a> = u8;
    type View<'a> = u8;
    type Owned = u8;

    fn tag(into: &mut String) {
        into.push_str("odd");
    }

    fn encode(input: u8, into: &mut Vec<u8>) -> Result<()> {
        if input.is_multiple_of(2) {
            return Err(Error::Encode("an even number".into()));
        }
        into.push(input);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<u8> {
        Ok(bytes.first().copied().unwrap_or_default())
    }

    fn input(owned: &u8) -> u8 {
        *owned
    }

    fn own(view: u8) -> u8 {
        view
    }
}

impl Key for Odd {}

#[test]
fn a_range_whose_end_has_no_encoding_gives_that_error_alone() {
    const ODD: Table<Odd, u8> = Table::new("odd");
    let (_dir, env) = fresh();
    let mut txn = env.write().unwrap();
    let mut odd = ODD.open_mut(&mut txn).unwrap();
    odd.put(3, 3).unwrap();
    let mut records = odd.range(2..);
    assert!(matches!(records.next(), Some(Err(Error::Encode(_)))));
    assert!(records.next().is_none() && records.next_back().is_none());
    assert!(matches!(odd.entry(4).map(drop), Err(Error::Encode(_))));
    txn.commit().unwrap();

    let read = env.read().unwrap().into_shared();
    let odd = ODD.open_owned(&read).unwrap();
    assert!(matches!(odd.as_table().range(..2).next_back(), Some(Err(Error::Encode(_)))));
    let mut records = odd.range(..2);
    assert!(matches!(records.next_back(), Some(Err(Error::Encode(_)))));
    assert!(records.next().is_none());
    assert_eq!(odd.range(3..).count(), 1);
}

#[test]
fn reserved_bytes_are_those_that_are_read() {
    const BYTES: Table<&str, &[u8]> = Table::new("bytes");
    let (_dir, env) = fresh();
    let mut txn = env.write().unwrap();
    let mut bytes = BYTES.open_mut(&mut txn).unwrap();
    for len in [0, 1, 100, 5000, 100_000] {
        let room = bytes.reserve("key", len).unwrap();
        assert_eq!(room.len(), len);
        room.fill(7);
        assert_eq!(bytes.get("key").unwrap(), Some(&vec![7; len][..]));
    }
}

#[test]
fn reserved_numbers_are_aligned() {
    use zubilo_typed::Aligned;
    const NUMBERS: Table<&str, Aligned<[u64]>> = Table::new("numbers");
    let (_dir, env) = fresh();
    let mut txn = env.write().unwrap();
    let mut numbers = NUMBERS.open_mut(&mut txn).unwrap();
    let keys = ["a", "ab", "abc", "abcd", "abcde", "abcdefghi"];
    for (n, key) in keys.into_iter().enumerate() {
        for len in [n, n * 1000] {
            numbers.reserve(key, len).unwrap().fill(len as u64);
            assert_eq!(numbers.get(key).unwrap(), Some(&vec![len as u64; len][..]), "{key} {len}");
        }
    }
    assert!(matches!(numbers.reserve("a", usize::MAX / 4), Err(Error::Store(_))));
    assert_eq!(numbers.take("ab").unwrap(), Some(vec![1000; 1000]));
}
