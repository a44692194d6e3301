//! Typed tables in a store: reading, changing, both kinds of cursors, multimaps, and that tables of
//! other types are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use proptest::prelude::*;
use zubilo::{Env, KeyOrder, Options, PutFlags, Seek, TableOptions};
use zubilo_typed::{Error, Multimap, Native, Result, TYPES, Table};

fn store() -> (tempfile::TempDir, Env) {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("typed.zubilo")).unwrap();
    (dir, env)
}

const CITIES: Table<(&str, u32), &str> = Table::new("cities");
const DEGREES: Multimap<i32, f64> = Multimap::new("degrees");

#[test]
fn a_table_gives_back_what_was_put() -> Result<()> {
    let (_dir, env) = store();
    let mut txn = env.write()?;
    let mut cities = CITIES.open_mut(&mut txn)?;
    cities.put(("de", 2), "Köln")?;
    cities.put(("de", 10), "Bonn")?;
    cities.put(("fr", 1), "Lyon")?;
    assert!(!cities.insert(("fr", 1), "Nice")?);
    assert!(cities.insert(("fr", 3), "Nice")?);
    assert_eq!(cities.get(("de", 10))?, Some("Bonn"));
    assert!(cities.delete(("fr", 3))?);
    assert!(!cities.delete(("fr", 3))?);
    assert_eq!(cities.len(), 3);
    txn.commit()?;

    let read = env.read()?;
    let cities = CITIES.open(&read)?;
    assert_eq!(cities.get(("fr", 1))?, Some("Lyon"));
    assert_eq!(cities.get(("fr", 2))?, None);
    assert!(cities.contains_key(("de", 2))? && !cities.contains(("de", 2), "Bremen")?);
    assert_eq!(
        cities.get_many(&[("fr", 1), ("xx", 0), ("de", 2)])?,
        [Some("Lyon"), None, Some("Köln")]
    );
    let german: Vec<&str> =
        cities.prefix(("de",)).map(|r| r.map(|(_, name)| name)).collect::<Result<_>>()?;
    assert_eq!(german, ["Köln", "Bonn"]);
    let back: Vec<u32> =
        cities.range(("de", 3)..).rev().map(|r| r.map(|((_, n), _)| n)).collect::<Result<_>>()?;
    assert_eq!(back, [1, 10]);
    assert_eq!(cities.first()?.map(|r| r.1), Some("Köln"));
    assert_eq!(cities.last()?.map(|r| r.1), Some("Lyon"));
    Ok(())
}

#[test]
fn strings_are_read_where_they_lie() -> Result<()> {
    let (_dir, env) = store();
    let mut txn = env.write()?;
    CITIES.open_mut(&mut txn)?.put(("de", 1), "Ulm")?;
    txn.commit()?;
    let read = env.read()?;
    let typed = CITIES.open(&read)?.get(("de", 1))?.unwrap();
    let raw = read.table_with("cities", &CITIES.options())?;
    let raw = raw.iter().next().unwrap()?.1;
    assert_eq!(typed.as_ptr(), raw.as_ptr());
    Ok(())
}

#[test]
fn a_multimap_sorts_its_values() -> Result<()> {
    let (_dir, env) = store();
    let mut txn = env.write()?;
    let mut degrees = DEGREES.open_mut(&mut txn)?;
    for (key, value) in [(-1, 3.5), (-1, -2.0), (7, 0.0), (-1, 100.0), (-8, 1.0)] {
        assert!(degrees.insert(key, value)?);
        assert!(!degrees.insert(key, value)?);
    }
    assert!(degrees.delete(7, 0.0)?);
    assert!(!degrees.delete(7, 0.0)?);
    assert_eq!(degrees.count(-1)?, 3);
    txn.commit()?;

    let read = env.read()?;
    let degrees = DEGREES.open(&read)?;
    assert_eq!(degrees.get(-1)?.collect::<Result<Vec<f64>>>()?, [-2.0, 3.5, 100.0]);
    assert_eq!(degrees.get(-1)?.rev().collect::<Result<Vec<f64>>>()?, [100.0, 3.5, -2.0]);
    assert_eq!(degrees.first_of(-1)?, Some(-2.0));
    assert!(degrees.contains(-8, 1.0)? && !degrees.contains(-8, 1.5)?);
    let all: Vec<(i32, f64)> = degrees.iter().collect::<Result<_>>()?;
    assert_eq!(all, [(-8, 1.0), (-1, -2.0), (-1, 3.5), (-1, 100.0)]);

    let mut cursor = degrees.cursor();
    assert_eq!(cursor.seek_value(-1, 3.0)?, Some((-1, 3.5)));
    assert_eq!(cursor.count()?, Some(3));
    assert_eq!(cursor.next_value()?, Some((-1, 100.0)));
    assert_eq!(cursor.next_value()?, None);
    assert_eq!(cursor.prev_key()?, Some((-8, 1.0)));
    assert_eq!(cursor.next_key()?, Some((-1, -2.0)));
    assert_eq!(cursor.last_value()?, Some((-1, 100.0)));
    assert_eq!(cursor.seek_pair(-1, 3.0)?, None);
    assert_eq!(cursor.seek_pair_by(Seek::Less, -1, -2.0)?, Some((-8, 1.0)));
    Ok(())
}

#[test]
fn a_write_cursor_changes_its_table() -> Result<()> {
    const NUMBERS: Table<i64, String> = Table::new("numbers");
    let (_dir, env) = store();
    let mut txn = env.write()?;
    let mut numbers = NUMBERS.open_mut(&mut txn)?;
    for n in -5..5 {
        numbers.put(n, &format!("number {n}"))?;
    }
    let mut cursor = numbers.cursor_mut()?;
    let mut record = cursor.seek(-2)?;
    while let Some((key, _)) = record {
        if key % 2 == 0 {
            cursor.put_current("even")?;
            record = cursor.next()?;
        } else {
            assert!(cursor.delete()?);
            record = cursor.current()?;
        }
    }
    assert!(!cursor.put(4, "again", PutFlags::NO_OVERWRITE)?);
    assert!(cursor.put(9, "nine", PutFlags::UPSERT)?);
    drop(cursor);
    let left: Vec<(i64, String)> = numbers.range(-3..).collect::<Result<_>>()?;
    let left: Vec<(i64, &str)> = left.iter().map(|(n, s)| (*n, &**s)).collect();
    let expected =
        [(-3, "number -3"), (-2, "even"), (0, "even"), (2, "even"), (4, "even"), (9, "nine")];
    assert_eq!(left, expected);
    assert_eq!(numbers.delete_range(..0)?, 4);
    numbers.clear()?;
    assert!(numbers.is_empty());
    Ok(())
}

#[test]
fn one_named_value_is_replaced_and_numbers_are_drawn() -> Result<()> {
    let (_dir, env) = store();
    let mut txn = env.write()?;
    let mut cities = CITIES.open_mut(&mut txn)?;
    cities.put(("de", 1), "Ulm")?;
    assert!(!cities.replace_value(("de", 1), "Bonn", "Jena")?);
    assert!(!cities.replace_value(("de", 2), "Ulm", "Jena")?);
    assert!(cities.replace_value(("de", 1), "Ulm", "Jena")?);
    assert_eq!(cities.get(("de", 1))?, Some("Jena"));
    assert_eq!((cities.next_sequence(3)?, cities.next_sequence(1)?, cities.sequence()), (0, 3, 4));
    let mut degrees = DEGREES.open_mut(&mut txn)?;
    for value in [1.0, 2.0, 3.0] {
        degrees.insert(7, value)?;
    }
    assert!(degrees.replace_value(7, 2.0, 9.0)?);
    assert!(degrees.replace_value(7, 1.0, 3.0)?);
    assert_eq!(degrees.get(7)?.collect::<Result<Vec<_>>>()?, [3.0, 9.0]);
    assert_eq!(degrees.first_of(7)?, Some(3.0));
    assert_eq!((degrees.first()?, degrees.last()?), (Some((7, 3.0)), Some((7, 9.0))));
    Ok(())
}

#[test]
fn a_cursor_goes_on_in_another_transaction() -> Result<()> {
    let (_dir, env) = store();
    let mut txn = env.write()?;
    let mut degrees = DEGREES.open_mut(&mut txn)?;
    for (key, value) in [(-1, 1.0), (-1, 2.0), (3, 0.5)] {
        degrees.insert(key, value)?;
    }
    txn.commit()?;
    let read = env.read()?;
    let mut cursor = DEGREES.open(&read)?.cursor();
    assert_eq!(cursor.first()?, Some((-1, 1.0)));
    let mut parked = cursor.park()?;
    drop(read);

    let mut txn = env.write()?;
    let mut degrees = DEGREES.open_mut(&mut txn)?;
    let mut cursor = degrees.resume_mut(&parked)?;
    cursor.delete()?;
    assert_eq!(cursor.next()?, Some((-1, 2.0)));
    parked = cursor.park()?;
    drop(cursor);
    assert_eq!(degrees.resume(&parked)?.current()?, Some((-1, 2.0)));
    txn.commit()?;

    let read = env.read()?;
    let mut cursor = DEGREES.open(&read)?.resume(&parked)?;
    assert_eq!(cursor.next()?, Some((3, 0.5)));
    cursor.park_into(&mut parked)?;
    assert_eq!(DEGREES.open(&read)?.resume(&parked)?.prev()?, Some((-1, 2.0)));
    Ok(())
}

#[test]
fn handles_let_tables_change_by_turns() -> Result<()> {
    let (_dir, env) = store();
    let mut txn = env.write()?;
    let cities = CITIES.handle(&mut txn)?;
    let degrees = DEGREES.handle(&mut txn)?;
    for n in 0..10u32 {
        cities.at(&mut txn)?.put(("it", n), "Pisa")?;
        degrees.at(&mut txn)?.insert(1, f64::from(n))?;
    }
    assert_eq!(cities.at(&mut txn)?.len(), 10);
    assert_eq!(degrees.at(&mut txn)?.count(1)?, 10);
    drop(txn);
    let mut other = env.write()?;
    CITIES.open_mut(&mut other)?;
    assert!(matches!(cities.at(&mut other), Err(Error::Store(zubilo::Error::NoSuchTable { .. }))));
    Ok(())
}

fn refused<T>(result: Result<T>, found: Option<&str>) {
    match result {
        Err(Error::Types { found: noted, .. }) => assert_eq!(noted.as_deref(), found),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("a table of other types was opened"),
    }
}

#[test]
fn a_table_of_other_types_is_refused() -> Result<()> {
    const AS_NUMBERS: Table<(&str, u64), &str> = Table::new("cities");
    const AS_MULTIMAP: Multimap<(&str, u32), &str> = Multimap::new("cities");
    const NEWER: Table<(&str, u32), &str> = Table::new("cities").version("2");
    const SAME_BYTES: Table<(String, u32), String> = Table::new("cities");
    let (_dir, env) = store();
    let mut txn = env.write()?;
    CITIES.open_mut(&mut txn)?.put(("es", 1), "León")?;
    let noted = "table<(str,u32), str>";
    assert_eq!(CITIES.types(), noted);
    refused(AS_NUMBERS.open_mut(&mut txn), Some(noted));
    refused(AS_MULTIMAP.open_mut(&mut txn), Some(noted));
    refused(NEWER.open_mut(&mut txn), Some(noted));
    refused(AS_NUMBERS.drop_table(&mut txn), Some(noted));
    assert_eq!(SAME_BYTES.open_mut(&mut txn)?.len(), 1);
    txn.commit()?;

    let read = env.read()?;
    refused(AS_NUMBERS.open(&read), Some(noted));
    refused(AS_MULTIMAP.open(&read), Some(noted));
    let error = NEWER.open(&read).err().unwrap().to_string();
    assert!(error.contains("cities") && error.contains(noted) && error.contains("2"), "{error}");
    Ok(())
}

#[test]
fn an_untyped_table_is_adopted_on_request_only() -> Result<()> {
    const RAW: Table<Native<u64>, &[u8]> = Table::new("raw");
    const NONE: Table<u8, u8> = Table::new("none");
    let (_dir, env) = store();
    let mut txn = env.write()?;
    let options = TableOptions::new().key_order(KeyOrder::Integer);
    txn.create_table("raw", options)?.put(300u64.to_le_bytes(), "x")?;
    refused(RAW.open_mut(&mut txn), None);
    const WRONG_ORDER: Table<u64, &[u8]> = Table::new("raw");
    assert!(matches!(
        WRONG_ORDER.adopt(&mut txn),
        Err(Error::Store(zubilo::Error::Incompatible { .. }))
    ));
    RAW.adopt(&mut txn)?;
    let mut raw = RAW.open_mut(&mut txn)?;
    raw.put(5, b"y")?;
    let keys: Vec<u64> = raw.iter().map(|r| r.map(|(key, _)| key)).collect::<Result<_>>()?;
    assert_eq!(keys, [5, 300]);
    txn.commit()?;
    let read = env.read()?;
    assert_eq!(RAW.open(&read)?.get(300)?, Some(&b"x"[..]));
    let missing = NONE.open(&read);
    assert!(matches!(missing, Err(Error::Store(zubilo::Error::NoSuchTable { .. }))));
    Ok(())
}

#[test]
fn a_dropped_table_leaves_nothing() -> Result<()> {
    let (_dir, env) = store();
    let mut txn = env.write()?;
    CITIES.open_mut(&mut txn)?;
    assert!(CITIES.drop_table(&mut txn)?);
    assert!(!CITIES.drop_table(&mut txn)?);
    assert!(txn.table(TYPES)?.is_empty());
    Table::<u8, u8>::named("cities").open_mut(&mut txn)?.put(1, 1)?;
    let own: Table<&str, &str> = Table::new(TYPES);
    assert!(own.open_mut(&mut txn).is_err(), "the table of types is not to be had");
    Ok(())
}

#[test]
fn a_failed_creation_leaves_nothing() -> Result<()> {
    let (_dir, env) = store();
    let mut txn = env.write()?;
    let long: Table<u8, u8> = Table::named("n".repeat(5000));
    assert!(long.open_mut(&mut txn).is_err());
    assert!(txn.tables()?.is_empty());
    CITIES.open_mut(&mut txn)?;
    Ok(())
}

#[test]
fn foreign_bytes_are_errors() -> Result<()> {
    let (_dir, env) = store();
    let mut txn = env.write()?;
    CITIES.open_mut(&mut txn)?;
    let mut raw = txn.table("cities")?;
    raw.put("no end", "x")?;
    raw.put(b"a\0\0\0\0\0\x01", [0xff])?;
    let cities = CITIES.open_mut(&mut txn)?;
    let results: Vec<_> = cities.iter().map(|r| r.map(drop)).collect();
    assert_eq!(results.len(), 2);
    for result in results {
        assert!(matches!(result, Err(Error::Decode { ty: "str", .. })), "{result:?}");
    }
    assert!(matches!(cities.get(("a", 1)), Err(Error::Decode { .. })));
    Ok(())
}

#[cfg(feature = "serde")]
mod serde_types {
    use serde::{Deserialize, Serialize};
    use zubilo_typed::Postcard;

    use super::*;

    #[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
    struct Person {
        name: String,
        age: Option<u8>,
        tags: Vec<String>,
    }

    const PEOPLE: Table<u32, Postcard<Person>> = Table::new("people").version("person 1");

    #[test]
    fn serde_types_come_back() -> Result<()> {
        let (_dir, env) = store();
        let ada =
            Person { name: "Ada".into(), age: Some(36), tags: vec!["math".into(), String::new()] };
        let mut txn = env.write()?;
        let mut people = PEOPLE.open_mut(&mut txn)?;
        people.put(1, &ada)?;
        assert_eq!(people.get(1)?, Some(ada.clone()));
        txn.commit()?;
        let read = env.read()?;
        assert_eq!(PEOPLE.open(&read)?.get(1)?, Some(ada));
        Ok(())
    }

    #[test]
    fn cut_and_longer_encodings_are_errors() -> Result<()> {
        let (_dir, env) = store();
        let mut txn = env.write()?;
        let ada = Person { name: "Ada".into(), age: None, tags: vec![] };
        PEOPLE.open_mut(&mut txn)?.put(1, &ada)?;
        let key = 1u32.to_be_bytes();
        let whole = txn.table("people")?.get(key)?.unwrap().to_vec();
        for other in [&whole[..whole.len() - 1], &[&*whole, b"x"].concat()] {
            txn.table("people")?.put(key, other)?;
            let read = PEOPLE.open_mut(&mut txn)?.get(1).map(drop);
            assert!(matches!(read, Err(Error::Decode { ty: "postcard", .. })), "{read:?}");
        }
        Ok(())
    }

    #[derive(Deserialize, Debug)]
    struct Unwritable;

    impl Serialize for Unwritable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> std::result::Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no"))
        }
    }

    #[test]
    fn what_cannot_be_encoded_is_not_stored() -> Result<()> {
        const BAD: Table<u8, Postcard<Unwritable>> = Table::new("bad");
        let (_dir, env) = store();
        let mut txn = env.write()?;
        let mut bad = BAD.open_mut(&mut txn)?;
        assert!(matches!(bad.put(1, &Unwritable), Err(Error::Encode(_))));
        assert!(bad.is_empty());
        Ok(())
    }
}

#[cfg(feature = "bytemuck")]
mod aligned {
    use bytemuck::{Pod, Zeroable};
    use zubilo_typed::Aligned;

    use super::*;

    #[derive(Clone, Copy, Pod, Zeroable, PartialEq, Debug)]
    #[repr(C)]
    struct Point {
        id: u64,
        at: [f64; 2],
    }

    const POINTS: Table<&str, Aligned<Point>> = Table::new("points");
    const VECTORS: Table<u32, Aligned<[f32]>> = Table::new("vectors");

    #[test]
    fn plain_data_is_read_in_place() -> Result<()> {
        let (_dir, env) = store();
        let mut txn = env.write()?;
        for n in 0..500u32 {
            // Keys of all lengths, so that values would fall on any address.
            let key = "k".repeat(n as usize % 13) + &n.to_string();
            let point = Point { id: n.into(), at: [f64::from(n), 0.5] };
            let mut points = POINTS.open_mut(&mut txn)?;
            points.put(&key, &point)?;
            assert_eq!(points.get(&key)?, Some(&point));
            let vector: Vec<f32> = (0..n * 7).map(|i| i as f32).collect();
            let mut vectors = VECTORS.open_mut(&mut txn)?;
            vectors.put(n, &vector)?;
            assert_eq!(vectors.get(n)?, Some(&*vector));
        }
        txn.commit()?;
        let read = env.read()?;
        let points = POINTS.open(&read)?;
        assert_eq!(points.len(), 500);
        for record in points.iter() {
            let (key, point) = record?;
            assert_eq!(key.trim_start_matches('k'), point.id.to_string());
        }
        let vectors = VECTORS.open(&read)?;
        assert_eq!(vectors.get(0)?, Some(&[][..]));
        for n in 1..500u32 {
            let vector = vectors.get(n)?.unwrap();
            assert_eq!((vector.len(), vector[6]), (n as usize * 7, 6.0));
        }
        Ok(())
    }

    #[test]
    fn another_layout_is_refused() -> Result<()> {
        const NUMBERS: Table<&str, Aligned<[u32; 6]>> = Table::new("points");
        let (_dir, env) = store();
        let mut txn = env.write()?;
        POINTS.open_mut(&mut txn)?;
        let noted = "table<str, aligned<24/8 le>>"
            .replace("le", if cfg!(target_endian = "little") { "le" } else { "be" });
        refused(NUMBERS.open_mut(&mut txn).map(drop), Some(&noted));
        Ok(())
    }
}

/// One change of a table and of its model.
#[derive(Debug, Clone)]
enum Change {
    Put(i16, String),
    Delete(i16),
    DeleteRange(i16, i16),
}

fn change() -> impl Strategy<Value = Change> {
    let key = -20..20i16;
    prop_oneof![
        4 => (key.clone(), ".{0,3}").prop_map(|(k, v)| Change::Put(k, v)),
        2 => key.clone().prop_map(Change::Delete),
        1 => (key.clone(), key).prop_map(|(a, b)| Change::DeleteRange(a.min(b), a.max(b))),
    ]
}

proptest! {
    /// A table of signed keys behaves as a map of the standard library.
    #[test]
    fn like_a_map(changes in proptest::collection::vec(change(), 1..60), from in -25..25i16, to in -25..25i16) {
        const MAP: Table<i16, String> = Table::new("map");
        let (_dir, env) = store();
        let mut model = BTreeMap::new();
        let mut txn = env.write().unwrap();
        let mut map = MAP.open_mut(&mut txn).unwrap();
        for change in changes {
            match change {
                Change::Put(k, v) => {
                    map.put(k, &v).unwrap();
                    model.insert(k, v);
                }
                Change::Delete(k) => {
                    prop_assert_eq!(map.delete(k).unwrap(), model.remove(&k).is_some());
                }
                Change::DeleteRange(a, b) => {
                    let before = model.len();
                    model.retain(|k, _| !(a..b).contains(k));
                    prop_assert_eq!(map.delete_range(a..b).unwrap(), (before - model.len()) as u64);
                }
            }
        }
        txn.commit().unwrap();
        let read = env.read().unwrap();
        let map = MAP.open(&read).unwrap();
        let all: Vec<_> = map.iter().collect::<Result<_>>().unwrap();
        prop_assert_eq!(all, model.clone().into_iter().collect::<Vec<_>>());
        let (from, to) = (from.min(to), from.max(to));
        let bounds = (Bound::Excluded(from), Bound::Included(to));
        let part: Vec<_> = map.range(bounds).rev().collect::<Result<_>>().unwrap();
        let expected: Vec<_> = if from == to {
            Vec::new()
        } else {
            model.range(bounds).rev().map(|(k, v)| (*k, v.clone())).collect()
        };
        prop_assert_eq!(part, expected);
    }

    /// A multimap behaves as a set of pairs, with values of all the orders the engine has for them.
    #[test]
    fn like_a_set_of_pairs(pairs in proptest::collection::vec((any::<bool>(), 0..6u8, any::<u32>()), 1..80)) {
        let (_dir, env) = store();
        let mut txn = env.write().unwrap();
        let plain: Multimap<u8, i64> = Multimap::new("plain");
        let native: Multimap<u8, Native<u32>> = Multimap::new("native");
        let texts: Multimap<u8, String> = Multimap::new("texts");
        let (mut numbers, mut raw, mut strings) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (add, key, value) in pairs {
            // Few values, so that some come twice.
            let value = value % 50;
            let (signed, text) = (i64::from(value) - 25, value.to_string());
            let (mut a, mut b, mut c);
            if add {
                a = plain.open_mut(&mut txn).unwrap();
                prop_assert_eq!(a.insert(key, signed).unwrap(), numbers.insert((key, signed)));
                b = native.open_mut(&mut txn).unwrap();
                prop_assert_eq!(b.insert(key, value).unwrap(), raw.insert((key, value)));
                c = texts.open_mut(&mut txn).unwrap();
                prop_assert_eq!(c.insert(key, &text).unwrap(), strings.insert((key, text)));
            } else {
                a = plain.open_mut(&mut txn).unwrap();
                prop_assert_eq!(a.delete(key, signed).unwrap(), numbers.remove(&(key, signed)));
                b = native.open_mut(&mut txn).unwrap();
                prop_assert_eq!(b.delete(key, value).unwrap(), raw.remove(&(key, value)));
                c = texts.open_mut(&mut txn).unwrap();
                prop_assert_eq!(c.delete(key, &text).unwrap(), strings.remove(&(key, text)));
            }
        }
        let a = plain.open_mut(&mut txn).unwrap();
        prop_assert!(a.iter().map(Result::unwrap).eq(numbers));
        let b = native.open_mut(&mut txn).unwrap();
        prop_assert!(b.iter().map(Result::unwrap).eq(raw));
        let c = texts.open_mut(&mut txn).unwrap();
        prop_assert!(c.iter().map(Result::unwrap).eq(strings));
    }
}
