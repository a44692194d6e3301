//! Tables in an order of the program's that their records do not show: after a conversion the program's
//! functions hold as they did.

use std::ffi::c_uint;

use support::lmdb::{Env, Txn};

use crate::common::{original, ours};
use crate::old::{DUPSORT, NOSUBDIR, RDONLY, Table, backwards, contents, open, put};
use crate::place::Place;

type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// Keys without capitals: in byte order they are in order without regard to case.
fn lower(n: std::ops::Range<u32>) -> Records {
    n.map(|n| (format!("key {n:05}").into_bytes(), format!("value {n}").into_bytes())).collect()
}

fn upper(n: std::ops::Range<u32>) -> Records {
    let mut all = lower(n);
    all.iter_mut().for_each(|(key, value)| {
        key.make_ascii_uppercase();
        value.push(b'!');
    });
    all
}

/// As many values for each of these keys; one value is in any order.
fn each(keys: std::ops::Range<u32>, values: std::ops::Range<u32>) -> Records {
    let key = |n: u32| format!("key {n:05}").into_bytes();
    let pairs = keys.flat_map(|n| values.clone().map(move |v| (key(n), vec![b'a' + v as u8; 9])));
    pairs.collect()
}

/// What is there before the conversion.
fn before() -> Vec<Table> {
    vec![
        Table::new("caseless", 0, lower(0..3000)),
        Table::new("caseless many", DUPSORT, each(0..400, 0..3)),
        Table::new("backvalues", DUPSORT, each(0..500, 0..1)),
        Table::new("caseless backvalues", DUPSORT, each(0..500, 0..1)),
        Table::new("backkeys of one", 0, lower(7..8)),
        Table::new("backkeys backvalues", DUPSORT, each(3..4, 0..1)),
        Table::new("in byte order", 0, lower(0..100)),
    ]
}

/// What the program stores then: under keys that its functions call equal, and new ones.
fn after() -> Vec<Table> {
    let many = |n| {
        let mut all = each(n, 0..6);
        all.iter_mut().for_each(|(key, _)| key.make_ascii_uppercase());
        all
    };
    vec![
        Table::new("caseless", 0, upper(2500..3500)),
        Table::new("caseless many", DUPSORT, many(100..500)),
        Table::new("backvalues", DUPSORT, each(200..700, 1..20)),
        Table::new("caseless backvalues", DUPSORT, many(0..600)),
        Table::new("backkeys of one", 0, lower(0..300)),
        Table::new("backkeys backvalues", DUPSORT, each(0..60, 1..9)),
        Table::new("in byte order", 0, upper(0..100)),
    ]
}

/// Both libraries, each on its own file.
fn both(place: &Place) -> [Env; 2] {
    let theirs = place.folder().join("../theirs.mdb");
    let ours = open(ours(), &place.env(), 0, 256 << 20);
    [open(original(), &theirs, NOSUBDIR, 256 << 20), ours]
}

fn converted() -> Place {
    let place = Place::new(before(), 0);
    std::fs::write(place.folder().join("../theirs.mdb"), &place.bytes).unwrap();
    // Another process than the one that gives the functions.
    let said = place.open(Some("1"), 0);
    assert_eq!(said.code, 0, "{said:?}");
    place.assert_converted();
    place
}

/// All records, without regard to case in keys: of two that a function calls equal LMDB may store the
/// second, and we keep the first.
fn all(env: &Env, place: &Place) -> Vec<Table> {
    let mut tables = contents(env, &place.tables);
    let records = tables.iter_mut().flat_map(|table| &mut table.records);
    records.for_each(|(key, _)| key.make_ascii_lowercase());
    tables
}

/// A transaction, and the handle of a table in it.
fn begun<'e>(env: &'e Env, table: &Table, kind: c_uint) -> (Txn<'e>, c_uint) {
    let txn = env.begin(kind).unwrap();
    let dbi = table.handle(&txn, 0);
    (txn, dbi)
}

/// The value under a key, in a transaction of this kind.
fn found(env: &Env, table: &Table, key: &[u8], kind: c_uint) -> Option<Vec<u8>> {
    let (txn, dbi) = begun(env, table, kind);
    let value = txn.get(dbi, key).unwrap().map(<[u8]>::to_vec);
    txn.commit().unwrap();
    value
}

#[test]
fn orders_that_did_not_show_hold_when_the_program_gives_them() {
    let place = converted();
    let [theirs, ours] = both(&place);
    // Before anything is written all is there, in order.
    assert!(contents(&theirs, &place.tables) == contents(&ours, &place.tables));
    for env in [&theirs, &ours] {
        put(env, &after());
    }
    let (want, got) = (all(&theirs, &place), all(&ours, &place));
    for (want, got) in want.iter().zip(&got) {
        assert!(want == got, "{:?}: {} and {}", want.name, want.records.len(), got.records.len());
    }
    // In another process, with and without a write.
    drop((theirs, ours));
    let [theirs, ours] = both(&place);
    for (table, key) in [(0, "KEY 00009"), (0, "kEy 02700"), (1, "key 00450"), (3, "Key 00599")] {
        let table = &place.tables[table];
        for kind in [RDONLY, 0] {
            let want = found(&theirs, table, key.as_bytes(), kind);
            assert!(want.is_some(), "{key}");
            assert_eq!(found(&ours, table, key.as_bytes(), kind), want, "{key}");
        }
    }
    assert!(all(&theirs, &place) == all(&ours, &place));
}

#[test]
fn the_first_use_in_a_write_transaction_is_enough() {
    let place = converted();
    let [_, ours] = both(&place);
    let table = &place.tables[0];
    // Until then keys are found as they are stored.
    assert_eq!(found(&ours, table, b"key 00009", RDONLY), Some(b"value 9".to_vec()));
    assert_eq!(found(&ours, table, b"KEY 00009", 0), Some(b"value 9".to_vec()));
    assert_eq!(found(&ours, table, b"KEY 00009", RDONLY), Some(b"value 9".to_vec()));
    // One that was undone changes nothing.
    let table = &place.tables[1];
    let (txn, dbi) = begun(&ours, table, 0);
    assert!(txn.get(dbi, b"KEY 00009").unwrap().is_some());
    drop(txn);
    assert!(contents(&ours, &place.tables) == place.as_stored());
    assert_eq!(found(&ours, table, b"KEY 00009", 0), Some(b"aaaaaaaaa".to_vec()));
    assert!(contents(&ours, &place.tables) == place.as_stored());
}

#[test]
fn a_table_that_is_not_in_the_order_of_a_function_stays_as_it_is() {
    let place = converted();
    let [_, ours] = both(&place);
    let (table, bytes) = (&place.tables[6], "key 00009");
    for _ in 0..2 {
        let (mut txn, dbi) = begun(&ours, table, 0);
        // SAFETY: it is an order.
        unsafe { txn.set_compare(dbi, backwards) }.unwrap();
        txn.put(dbi, bytes.as_bytes(), b"other", 0).unwrap();
        txn.commit().unwrap();
    }
    let read = contents(&ours, std::slice::from_ref(table)).remove(0);
    let mut due = lower(0..100);
    due[9].1 = b"other".to_vec();
    assert!(read.records == due);
}

#[test]
fn a_table_without_room_for_it_twice_stays_as_it_is() {
    let place = Place::new(vec![Table::new("caseless", 0, lower(0..30_000))], 0);
    assert_eq!(place.open(Some("1"), 0).code, 0);
    let len = place.data().metadata().unwrap().len() as usize;
    let env = open(ours(), &place.env(), 0, len + (64 << 10));
    let table = &place.tables[0];
    assert_eq!(found(&env, table, b"KEY 00009", 0), None);
    put(&env, &[Table::new("caseless", 0, upper(9..10))]);
    assert_eq!(found(&env, table, b"KEY 00009", 0), Some(b"value 9!".to_vec()));
    assert_eq!(found(&env, table, b"key 00009", 0), Some(b"value 9".to_vec()));
    drop(env);
    // With more room the records are in no order that the function knows.
    let env = open(ours(), &place.env(), 0, 256 << 20);
    assert_eq!(found(&env, table, b"key 00009", 0), Some(b"value 9".to_vec()));
    assert_eq!(contents(&env, &place.tables)[0].records.len(), 30_001);
}
