//! Cursors: every search and step against a sorted list; what stays right while tables change.

use std::cmp::Ordering;

use crate::common::{Rng, check, rng};
use zubilo::{Cursor, Error, KeyOrder, Options, PutFlags, Seek, TableOptions, WriteTxn};

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;
type Found<'t> = Option<(&'t [u8], &'t [u8])>;

/// A kind of table with its orders.
struct Kind {
    options: TableOptions,
    keys: fn(&[u8], &[u8]) -> Ordering,
    values: fn(&[u8], &[u8]) -> Ordering,
}

fn backwards(a: &[u8], b: &[u8]) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

fn kinds() -> [Kind; 4] {
    let bytes: fn(&[u8], &[u8]) -> Ordering = |a, b| a.cmp(b);
    let new = TableOptions::new;
    let fixed = || new().fixed_duplicates();
    [
        Kind { options: new(), keys: bytes, values: bytes },
        Kind { options: new().duplicates(), keys: bytes, values: bytes },
        Kind {
            options: new().key_order(KeyOrder::Reversed).value_order(KeyOrder::Reversed),
            keys: backwards,
            values: backwards,
        },
        Kind {
            options: fixed().value_order(KeyOrder::Integer).compare_keys(|a, b| b.cmp(a)),
            keys: |a, b| b.cmp(a),
            values: backwards,
        },
    ]
}

impl Kind {
    fn order(&self, a: &(Vec<u8>, Vec<u8>), b: &(Vec<u8>, Vec<u8>)) -> Ordering {
        (self.keys)(&a.0, &b.0).then_with(|| (self.values)(&a.1, &b.1))
    }
}

fn key(n: u64) -> Vec<u8> {
    format!("key {n:04}").into_bytes()
}

fn value(n: u64) -> Vec<u8> {
    n.to_le_bytes().to_vec()
}

/// As `value`, numbers in byte order.
fn be(n: u64) -> Vec<u8> {
    n.to_be_bytes().to_vec()
}

/// Keys with one, a few and very many values.
fn fill(txn: &mut WriteTxn, name: &str, kind: &Kind, rng: &mut Rng) -> Pairs {
    let mut table = txn.create_table(name, kind.options.clone()).unwrap();
    let mut pairs = Pairs::new();
    let many = name != "0";
    for n in (0..400).map(|n| n * 2 + 1) {
        let values = match n % 50 {
            _ if !many => 1,
            1 => 1500,
            3 | 5 => 60,
            _ => 1 + rng.below(3),
        };
        for v in 0..values {
            table.put(key(n), value(v * 2 + 1)).unwrap();
            pairs.push((key(n), value(v * 2 + 1)));
        }
    }
    pairs.sort_by(|a, b| kind.order(a, b));
    pairs
}

fn assert_at(found: Found<'_>, pairs: &Pairs, at: Option<usize>, what: &str) {
    let due = at.and_then(|i| pairs.get(i)).map(|(k, v)| (&k[..], &v[..]));
    assert_eq!(found, due, "{what}");
}

/// Index of the pair that a search should find.
fn sought(
    pairs: &Pairs,
    seek: Seek,
    side: impl Fn(&(Vec<u8>, Vec<u8>)) -> Ordering,
) -> Option<usize> {
    let first_at_least = pairs.partition_point(|p| side(p).is_lt());
    let first_greater = pairs.partition_point(|p| side(p).is_le());
    match seek {
        Seek::Less => first_at_least.checked_sub(1),
        Seek::LessOrEqual => first_greater.checked_sub(1),
        Seek::Equal => (first_at_least < first_greater).then_some(first_at_least),
        Seek::GreaterOrEqual => Some(first_at_least),
        Seek::Greater => Some(first_greater),
    }
}

const SEEKS: [Seek; 5] =
    [Seek::Less, Seek::LessOrEqual, Seek::Equal, Seek::GreaterOrEqual, Seek::Greater];

fn searches(cursor: &mut Cursor<'_>, kind: &Kind, pairs: &Pairs, rng: &mut Rng) {
    for _ in 0..300 {
        let (k, v) = (key(rng.below(805)), value(rng.below(3005)));
        for seek in SEEKS {
            let by_key = |p: &(Vec<u8>, Vec<u8>)| (kind.keys)(&p.0, &k);
            let due = sought(pairs, seek, by_key);
            assert_at(cursor.seek_by(seek, &k).unwrap(), pairs, due, &format!("{seek:?} {k:?}"));
            let pair = (k.clone(), v.clone());
            let due = sought(pairs, seek, |p| kind.order(p, &pair));
            let found = cursor.seek_pair_by(seek, &k, &v).unwrap();
            assert_at(found, pairs, due, &format!("{seek:?} {pair:?}"));
            // Among the values of the key alone.
            let own: Pairs = pairs.iter().filter(|p| p.0 == k).cloned().collect();
            let due = sought(&own, seek, |p| (kind.values)(&p.1, &v));
            let found = cursor.seek_value_by(seek, &k, &v).unwrap();
            assert_at(found, &own, due, &format!("{seek:?} the value of {pair:?}"));
            assert_eq!(cursor.is_placed().unwrap(), due.is_some_and(|i| i < own.len()));
        }
        let at = pairs.iter().position(|p| p.0 == k && !(kind.values)(&p.1, &v).is_lt());
        assert_at(cursor.seek_value(&k, &v).unwrap(), pairs, at, "the first value not less");
        let at = pairs.iter().position(|p| p.0 == k && p.1 == v);
        assert_at(cursor.seek_pair(&k, &v).unwrap(), pairs, at, "the pair");
    }
}

/// Clones move by themselves, and know which of two stands before the other.
fn compared(cursor: &mut Cursor<'_>, kind: &Kind, pairs: &Pairs, rng: &mut Rng) {
    let unplaced = cursor.clone();
    for _ in 0..100 {
        let [a, b] = [0; 2].map(|_| &pairs[rng.below(pairs.len() as u64) as usize]);
        cursor.seek_pair(&a.0, &a.1).unwrap().expect("it is there");
        let mut other = cursor.clone();
        assert_eq!(cursor.compare(&other).unwrap(), Some(Ordering::Equal));
        other.seek_pair(&b.0, &b.1).unwrap().expect("it is there");
        assert_eq!(cursor.compare(&other).unwrap(), Some(kind.order(a, b)));
        assert_eq!(cursor.current().unwrap(), Some((&a.0[..], &a.1[..])));
    }
    assert_eq!(cursor.compare(&unplaced).unwrap(), None);
}

fn steps(cursor: &mut Cursor<'_>, pairs: &Pairs, rng: &mut Rng) {
    let mut i = rng.below(pairs.len() as u64) as usize;
    cursor.seek_pair(&pairs[i].0, &pairs[i].1).unwrap().expect("it is there");
    let mut eof = false;
    for _ in 0..600 {
        let same = |j: &usize| pairs[*j].0 == pairs[i].0;
        let first = pairs.iter().position(|p| p.0 == pairs[i].0).unwrap();
        let last = pairs.iter().rposition(|p| p.0 == pairs[i].0).unwrap();
        let (what, found, to) = match rng.below(10) {
            0 | 1 => ("next", cursor.next(), Some(i + 1).filter(|j| *j < pairs.len())),
            2 => ("prev", cursor.prev(), i.checked_sub(1)),
            3 => ("next value", cursor.next_value(), (i + 1..pairs.len()).next().filter(same)),
            4 => ("prev value", cursor.prev_value(), i.checked_sub(1).filter(same)),
            5 => ("next key", cursor.next_key(), Some(last + 1).filter(|j| *j < pairs.len())),
            6 => ("prev key", cursor.prev_key(), first.checked_sub(1)),
            7 => ("first value", cursor.first_value(), Some(first)),
            8 => ("last value", cursor.last_value(), Some(last)),
            _ => ("current", cursor.current(), Some(i)),
        };
        let found = found.unwrap();
        assert_at(found, pairs, to, what);
        i = to.unwrap_or(i);
        eof = match (what, to) {
            ("next" | "next key", None) => true,
            ("current" | "next value" | "prev value", None) => eof,
            ("current", _) => eof,
            _ => false,
        };
        assert_eq!(cursor.eof().unwrap(), eof, "{what}");
        assert_eq!(cursor.on_first().unwrap(), i == 0);
        assert_eq!(cursor.on_last().unwrap(), i + 1 == pairs.len());
        let (first, last) = (
            pairs.iter().position(|p| p.0 == pairs[i].0).unwrap(),
            pairs.iter().rposition(|p| p.0 == pairs[i].0).unwrap(),
        );
        assert_eq!(cursor.on_first_value().unwrap(), i == first);
        assert_eq!(cursor.on_last_value().unwrap(), i == last);
        assert_eq!(cursor.count().unwrap(), Some((last - first + 1) as u64));
    }
}

fn packed(cursor: &mut Cursor<'_>, pairs: &Pairs) {
    for n in [1, 3, 7, 51] {
        let own: Vec<&[u8]> = pairs.iter().filter(|p| p.0 == key(n)).map(|p| &p.1[..]).collect();
        let mut there = Vec::new();
        let mut back: Vec<Vec<&[u8]>> = Vec::new();
        cursor.seek_exact(key(n)).unwrap().expect("it is there");
        let mut next = cursor.packed_values().unwrap();
        while let Some(values) = next {
            assert_eq!(values.value_size(), 8);
            assert_eq!(values.as_bytes().len(), values.len() * 8);
            there.extend(values.iter());
            back.push(values.iter().collect());
            next = cursor.next_packed_values().unwrap();
        }
        assert_eq!(there, own);
        cursor.last_value().unwrap();
        assert!(cursor.packed_values().unwrap().is_some());
        assert_eq!(cursor.current().unwrap().unwrap().1, *own.last().unwrap());
        for values in back.iter().rev().skip(1) {
            let before: Vec<&[u8]> = cursor.prev_packed_values().unwrap().unwrap().iter().collect();
            assert_eq!(before, *values);
        }
        let stood = cursor.current().unwrap().unwrap().1;
        assert!(cursor.prev_packed_values().unwrap().is_none());
        // Where there is nothing before, the cursor stays; it went to the first value once.
        assert_eq!(cursor.current().unwrap().unwrap().1, stood);
    }
}

#[test]
fn searches_and_steps_agree_with_a_sorted_list() {
    let mut rng = rng();
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("a")).unwrap();
    let mut write = env.write().unwrap();
    let kinds = kinds();
    let all: Vec<Pairs> =
        (0..4).map(|i| fill(&mut write, &i.to_string(), &kinds[i], &mut rng)).collect();
    for (i, pairs) in all.iter().enumerate() {
        let table = write.table_with(i.to_string(), &kinds[i].options).unwrap();
        compared(&mut table.cursor().unwrap(), &kinds[i], pairs, &mut rng);
        searches(&mut table.cursor().unwrap(), &kinds[i], pairs, &mut rng);
        steps(&mut table.cursor().unwrap(), pairs, &mut rng);
    }
    write.commit().unwrap();
    check(&env, "after a change");
    let read = env.read().unwrap();
    for (i, pairs) in all.iter().enumerate() {
        let table = read.table_with(i.to_string(), &kinds[i].options).unwrap();
        compared(&mut table.cursor(), &kinds[i], pairs, &mut rng);
        searches(&mut table.cursor(), &kinds[i], pairs, &mut rng);
        steps(&mut table.cursor(), pairs, &mut rng);
        let mut cursor = table.cursor();
        assert!(!cursor.is_placed().unwrap());
        match i {
            3 => packed(&mut cursor, pairs),
            _ => assert!(matches!(cursor.packed_values(), Err(Error::Incompatible { .. }))),
        }
    }
}

#[test]
fn an_end_is_not_left_by_stepping_on() {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("a")).unwrap();
    let mut write = env.write().unwrap();
    let mut table = write.table_or_create("t").unwrap();
    let mut cursor = table.cursor_mut().unwrap();
    assert!(cursor.next().unwrap().is_none() && cursor.prev().unwrap().is_none());
    assert!(matches!(cursor.delete(), Err(Error::Invalid(_))));
    assert!(matches!(cursor.put_current("x"), Err(Error::Invalid(_))));
    for key in ["a", "b", "c"] {
        cursor.put(key, "", PutFlags::APPEND).unwrap();
    }
    assert!(!cursor.put("b", "", PutFlags::APPEND).unwrap());
    assert!(!cursor.put("a", "other", PutFlags::NO_OVERWRITE).unwrap());
    assert_eq!(cursor.current().unwrap().unwrap(), (&b"a"[..], &b""[..]));
    cursor.last().unwrap();
    assert!(cursor.next().unwrap().is_none() && cursor.next().unwrap().is_none());
    assert_eq!(cursor.prev().unwrap().unwrap().0, b"b");
    assert!(cursor.seek("d").unwrap().is_none());
    assert_eq!(cursor.prev().unwrap().unwrap().0, b"c");
    cursor.first().unwrap();
    assert!(cursor.prev().unwrap().is_none());
    assert_eq!(cursor.next().unwrap().unwrap().0, b"b");
}

#[test]
fn many_cursors_stay_right_while_the_table_changes() {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().dirty_limit(64 << 10).open(dir.path().join("a")).unwrap();
    let mut write = env.write().unwrap();
    write.create_table("t", TableOptions::new().duplicates()).unwrap();
    let table = write.table_id("t").unwrap();
    for n in 0..3000u64 {
        write.at(table).unwrap().put(key(n % 300), be(n)).unwrap();
    }
    let cursors: Vec<_> = (0..300)
        .map(|n| {
            let id = write.open_cursor(table).unwrap();
            write.cursor(id).unwrap().seek_pair(key(n), be(n + 600)).unwrap().unwrap();
            id
        })
        .collect();
    // Half of what they stand on goes, much comes, pages are written early.
    for n in 0..300 {
        let mut table = write.at(table).unwrap();
        if n % 2 == 0 {
            assert!(table.delete_value(key(n), be(n + 600)).unwrap());
        }
        for v in 0..200 {
            table.put(key(n), [&be(v)[..], &[1; 40]].concat()).unwrap();
        }
    }
    for (n, id) in (0..300).zip(&cursors) {
        let mut cursor = write.cursor(*id).unwrap();
        let on = cursor.next().unwrap().unwrap();
        if n % 2 == 0 {
            // What followed when it was deleted.
            assert_eq!(on, (&key(n)[..], &be(n + 900)[..]), "{n}");
        } else {
            assert_eq!(on.0, key(n));
            assert!(on.1 > &be(n + 600)[..], "{n}");
        }
    }
    write.close_cursor(cursors[0]);
    assert!(matches!(write.cursor(cursors[0]).map(|_| ()), Err(Error::Invalid(_))));
    write.at(table).unwrap().clear().unwrap();
    assert!(!write.cursor(cursors[1]).unwrap().is_placed().unwrap());
    write.commit().unwrap();
    check(&env, "after a change");
    let mut write = env.write().unwrap();
    assert!(matches!(write.at(table).map(|_| ()), Err(Error::NoSuchTable { .. })));
    assert!(matches!(write.cursor(cursors[1]).map(|_| ()), Err(Error::Invalid(_))));
}

#[test]
fn cursors_come_back_when_a_nested_level_is_undone() {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("a")).unwrap();
    let mut write = env.write().unwrap();
    write.table_or_create("t").unwrap();
    let table = write.table_id("t").unwrap();
    for n in 0..500 {
        write.at(table).unwrap().put(key(n), value(n)).unwrap();
    }
    let cursor = write.open_cursor(table).unwrap();
    write.cursor(cursor).unwrap().seek(key(100)).unwrap();
    write.begin_nested().unwrap();
    let inner = write.open_cursor(table).unwrap();
    write.cursor(inner).unwrap().seek(key(7)).unwrap();
    for n in 90..110 {
        assert!(write.at(table).unwrap().delete(key(n)).unwrap());
    }
    assert_eq!(write.cursor(cursor).unwrap().next().unwrap().unwrap().0, key(110));
    write.begin_nested().unwrap();
    assert_eq!(write.cursor(cursor).unwrap().last().unwrap().unwrap().0, key(499));
    write.commit_nested().unwrap();
    write.abort_nested().unwrap();
    assert_eq!(write.cursor(cursor).unwrap().current().unwrap().unwrap().0, key(100));
    assert_eq!(write.cursor(cursor).unwrap().next().unwrap().unwrap().0, key(101));
    assert!(write.cursor(inner).is_err());
    write.begin_nested().unwrap();
    assert_eq!(write.cursor(cursor).unwrap().next().unwrap().unwrap().0, key(102));
    write.commit_nested().unwrap();
    assert_eq!(write.cursor(cursor).unwrap().next().unwrap().unwrap().0, key(103));
    // A table made and dropped inside goes with the level.
    write.begin_nested().unwrap();
    write.table_or_create("inner").unwrap();
    let gone = write.table_id("inner").unwrap();
    let on_gone = write.open_cursor(gone).unwrap();
    write.abort_nested().unwrap();
    assert!(write.at(gone).is_err() && write.cursor(on_gone).is_err());
    write.rename_table("t", "u").unwrap();
    assert_eq!(write.cursor(cursor).unwrap().next().unwrap().unwrap().0, key(104));
    write.drop_table("u").unwrap();
    assert!(write.cursor(cursor).unwrap().next().is_err());
    write.commit().unwrap();
    check(&env, "after a change");
}

#[test]
fn a_table_can_be_emptied_and_rewritten_through_a_cursor() {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("a")).unwrap();
    let mut write = env.write().unwrap();
    let options = TableOptions::new().value_order(KeyOrder::Integer).fixed_duplicates();
    let mut table = write.create_table("t", options).unwrap();
    let mut cursor = table.cursor_mut().unwrap();
    for n in 0..60 {
        let values: Vec<u8> = (0..n * 7 + 1).flat_map(value).collect();
        let stored = cursor.put_many(key(n), &values, 8, PutFlags::UPSERT).unwrap();
        assert_eq!(stored as u64, n * 7 + 1);
        assert_eq!(cursor.count().unwrap(), Some(n * 7 + 1));
    }
    // Each third value gets another number, each third goes.
    let mut seen = 0;
    let mut next = cursor.first().unwrap().is_some();
    while next {
        let (_, v) = cursor.current().unwrap().unwrap();
        let number = u64::from_le_bytes(v.try_into().unwrap());
        if number >> 40 > 0 {
            // Seen before: it went after the others.
            next = cursor.next_key().unwrap().is_some();
            continue;
        }
        seen += 1;
        assert!(seen < 20_000);
        next = match number % 3 {
            0 => {
                let k = cursor.key().unwrap().unwrap().to_vec();
                cursor.put_current((number + (1 << 40)).to_le_bytes()).unwrap();
                cursor.seek_pair_by(Seek::Greater, &k, value(number)).unwrap().is_some()
            }
            1 => cursor.delete().unwrap() && cursor.next().unwrap().is_some(),
            _ => cursor.next().unwrap().is_some(),
        };
    }
    let all: u64 = (0..60u64).map(|n| n * 7 + 1).sum();
    assert_eq!(seen, all);
    drop(cursor);
    let left: u64 = (0..60u64).map(|n| n * 7 + 1).map(|n| n - (n + 1) / 3).sum();
    assert_eq!(table.len(), left);
    let mut cursor = table.cursor_mut().unwrap();
    cursor.first().unwrap();
    let mut keys = 0;
    while cursor.current().unwrap().is_some() {
        keys += 1;
        assert!(if keys % 2 == 0 { cursor.delete_key() } else { cursor.delete() }.unwrap());
    }
    drop(cursor);
    assert!(table.is_empty() || keys > 60);
    table.clear().unwrap();
    write.commit().unwrap();
    check(&env, "after a change");
}

/// A put through a cursor whose table was dropped went into a table that nobody finds, and said that it was
/// done.
#[test]
fn a_cursor_of_a_dropped_table_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("store")).unwrap();
    let mut write = env.write().unwrap();
    for duplicates in [false, true] {
        let options =
            if duplicates { TableOptions::new().duplicates() } else { TableOptions::new() };
        let table = write.create_table("t", options).unwrap().id();
        let id = write.open_cursor(table).unwrap();
        assert!(write.cursor(id).unwrap().put("key", "value", PutFlags::UPSERT).unwrap());
        write.drop_table("t").unwrap();
        let mut cursor = write.cursor(id).unwrap();
        for flags in [PutFlags::UPSERT, PutFlags::NO_OVERWRITE, PutFlags::APPEND] {
            assert!(matches!(cursor.put("key", "value", flags), Err(Error::NoSuchTable { .. })));
            assert!(matches!(cursor.reserve("key", 5, flags), Err(Error::NoSuchTable { .. })));
        }
        assert!(matches!(
            cursor.put_many("key", b"value", 1, PutFlags::UPSERT),
            Err(Error::NoSuchTable { .. })
        ));
        assert!(matches!(cursor.put_current("value"), Err(Error::NoSuchTable { .. })));
        assert!(matches!(cursor.delete(), Err(Error::NoSuchTable { .. })));
        assert!(matches!(cursor.delete_key(), Err(Error::NoSuchTable { .. })));
        assert!(matches!(cursor.first(), Err(Error::NoSuchTable { .. })));
    }
    write.commit().unwrap();
    check(&env, "after the drops");
}
