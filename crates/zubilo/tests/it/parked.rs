//! Cursors that go on in other transactions: against a sorted list that changes between them.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::common::{Rng, fresh, rng};
use zubilo::{Durability, Error, KeyOrder, Options, ParkedCursor, TableOptions};

type Pair = (Vec<u8>, Vec<u8>);

fn pair(rng: &mut Rng, duplicates: bool) -> Pair {
    // A few keys have sets, one a set that becomes a tree and a set again.
    let key = if duplicates && rng.one_in(2) { 7 } else { rng.below(60) };
    let value = if duplicates { rng.below(500) } else { rng.below(3) };
    (format!("{key:03}").into_bytes(), format!("{value:0>40}").into_bytes())
}

/// Stores or removes some pairs.
fn change(table: &mut zubilo::WriteTable<'_>, model: &mut BTreeSet<Pair>, rng: &mut Rng) {
    let duplicates = table.options().has_duplicates();
    for _ in 0..rng.below(60) {
        let (key, value) = pair(rng, duplicates);
        if rng.one_in(2) {
            if !duplicates {
                model.retain(|(k, _)| *k != key);
            }
            table.put(&key, &value).unwrap();
            model.insert((key, value));
        } else if rng.one_in(4) {
            model.retain(|(k, _)| *k != key);
            table.delete(&key).unwrap();
        } else if model.remove(&(key.clone(), value.clone())) {
            assert!(table.delete_value(&key, &value).unwrap());
        }
    }
}

/// One step of a cursor, forward or back, against the list.
macro_rules! step {
    ($cursor:expr, $model:expr, $at:expr, $forward:expr, $duplicates:expr) => {{
        let found = if $forward { $cursor.next() } else { $cursor.prev() }.unwrap();
        let found = found.map(|(k, v)| (k.to_vec(), v.to_vec()));
        let is_past = |p: &Pair, at: &Pair, by: Ordering| {
            // Where a key has one value another one is no other place.
            let order = if $duplicates { p.cmp(at) } else { p.0.cmp(&at.0) };
            order == by
        };
        let due = match ($forward, &$at) {
            (true, None) => $model.first(),
            (true, Some(at)) => $model.iter().find(|p| is_past(p, at, Ordering::Greater)),
            (false, None) => $model.last(),
            (false, Some(at)) => $model.iter().rfind(|p| is_past(p, at, Ordering::Less)),
        };
        assert_eq!(found.as_ref(), due, "forward: {}, from {:?}", $forward, $at);
        let moved = found.is_some();
        if moved {
            $at = found;
        }
        moved
    }};
}

#[test]
fn a_parked_cursor_goes_on_where_it_stood() {
    let mut rng = rng();
    for duplicates in [false, true] {
        let (_dir, path) = fresh();
        let env =
            Options::new().page_size(4096).durability(Durability::NoSync).open(&path).unwrap();
        let options = TableOptions::new();
        let options = if duplicates { options.duplicates() } else { options };
        let mut model = BTreeSet::new();
        let mut write = env.write().unwrap();
        change(&mut write.create_table("t", options).unwrap(), &mut model, &mut rng);
        write.commit().unwrap();

        let mut parked = ParkedCursor::new();
        let mut at: Option<Pair> = None;
        for _ in 0..600 {
            let mut write = env.write().unwrap();
            let mut table = write.table("t").unwrap();
            change(&mut table, &mut model, &mut rng);
            if rng.one_in(3) {
                // Inside the write transaction, where its records may not be in the file yet.
                let mut cursor = table.resume_mut(&parked).unwrap();
                let forward = rng.one_in(2);
                if step!(cursor, model, at, forward, duplicates) {
                    parked = cursor.park().unwrap();
                }
                drop(cursor);
                change(&mut table, &mut model, &mut rng);
                let mut cursor = table.resume(&parked).unwrap();
                if step!(cursor, model, at, forward, duplicates) {
                    cursor.park_into(&mut parked).unwrap();
                }
            }
            if rng.one_in(20) {
                parked.reset();
                at = None;
            }
            write.commit().unwrap();
            let read = env.read().unwrap();
            let mut cursor = read.table("t").unwrap().resume(&parked).unwrap();
            // Where a step found nothing the cursor stands on what follows, no longer at the gap that
            // was left by a deletion; so only what was found is kept.
            for _ in 0..rng.below(3) {
                let forward = rng.one_in(2);
                if !step!(cursor, model, at, forward, duplicates) {
                    break;
                }
                cursor.park_into(&mut parked).unwrap();
            }
        }
    }
}

#[test]
fn what_was_not_touched_is_under_the_cursor_again() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let options = TableOptions::new().duplicates().key_order(KeyOrder::Reversed);
    let mut write = env.write().unwrap();
    let mut table = write.create_table("t", options).unwrap();
    for (key, value) in [("a", "1"), ("a", "2"), ("b", "1")] {
        table.put(key, value).unwrap();
    }
    write.commit().unwrap();

    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    let mut cursor = table.cursor();
    cursor.seek_pair("a", "2").unwrap();
    let on_value = cursor.park().unwrap();
    assert_eq!(on_value.key(), Some(&b"a"[..]));
    cursor.last().unwrap();
    cursor.next().unwrap();
    assert!(cursor.eof().unwrap());
    let at_end = cursor.park().unwrap();
    cursor.seek("zz").unwrap();
    let after_all = cursor.park().unwrap();
    let nowhere = table.cursor().park().unwrap();
    drop(read);

    // Sent elsewhere, resumed twice.
    let other = env.clone();
    std::thread::spawn(move || {
        let read = other.read().unwrap();
        let table = read.table("t").unwrap();
        for _ in 0..2 {
            let mut cursor = table.resume(&on_value).unwrap();
            assert_eq!(cursor.current().unwrap(), Some((&b"a"[..], &b"2"[..])));
            assert_eq!(cursor.next().unwrap(), Some((&b"b"[..], &b"1"[..])));
        }
        let mut cursor = table.resume(&at_end).unwrap();
        assert!(cursor.eof().unwrap());
        assert_eq!(cursor.current().unwrap(), Some((&b"b"[..], &b"1"[..])));
        let mut cursor = table.resume(&after_all).unwrap();
        assert!(cursor.is_placed().unwrap());
        assert_eq!(cursor.current().unwrap(), None);
        assert_eq!(cursor.prev().unwrap(), Some((&b"b"[..], &b"1"[..])));
        let mut cursor = table.resume(&nowhere).unwrap();
        assert!(!cursor.is_placed().unwrap());
        assert_eq!(cursor.next().unwrap(), Some((&b"a"[..], &b"1"[..])));
    })
    .join()
    .unwrap();
}

#[test]
fn another_table_is_refused() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let mut write = env.write().unwrap();
    for name in ["a", "b"] {
        write.create_table(name, TableOptions::new()).unwrap().put("key", "value").unwrap();
    }
    let mut cursor = write.table("a").unwrap();
    let mut cursor = cursor.cursor_mut().unwrap();
    let unplaced = cursor.park().unwrap();
    cursor.first().unwrap();
    let parked = cursor.park().unwrap();
    drop(cursor);
    let id = write.table_id("b").unwrap();
    assert!(matches!(write.resume_cursor(id, &parked), Err(Error::Invalid(_))));
    let placed = write.resume_cursor(id, &unplaced).unwrap();
    assert!(!write.cursor(placed).unwrap().is_placed().unwrap());
    let id = write.table_id("a").unwrap();
    let placed = write.resume_cursor(id, &parked).unwrap();
    assert_eq!(write.cursor(placed).unwrap().current().unwrap().unwrap().0, b"key");
    // A table of the same name is another one.
    write.drop_table("a").unwrap();
    write.create_table("a", TableOptions::new()).unwrap();
    write.commit().unwrap();
    let read = env.read().unwrap();
    assert!(matches!(read.table("a").unwrap().resume(&parked), Err(Error::Invalid(_))));
    assert!(matches!(read.table("b").unwrap().resume(&parked), Err(Error::Invalid(_))));
}
