//! Methods that Rust's maps have: against a map. Several tables by number, owned tables and records.

use std::collections::BTreeMap;
use std::sync::Arc;

use support::rng;
use zubilo::{Error, Options, OwnedTable, TableOptions};

use crate::common::{fresh, put_all};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[test]
fn a_table_is_as_a_map() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let mut rng = rng();
    let mut write = env.write().unwrap();
    let mut table = write.table_or_create("t").unwrap();
    let mut map = Map::new();
    for _ in 0..5_000 {
        let key = (rng.below(400) as u16).to_be_bytes().to_vec();
        let value = vec![rng.below(256) as u8; rng.below(60) as usize];
        match rng.below(12) {
            0 => assert_eq!(table.pop_first().unwrap(), map.pop_first()),
            1 => assert_eq!(table.pop_last().unwrap(), map.pop_last()),
            2 => {
                let bound = key.clone();
                let before = map.len();
                let keep = |k: &[u8], v: &[u8]| k >= &bound[..] || v.len().is_multiple_of(2);
                map.retain(|k, v| keep(k, v));
                let removed = table.retain(keep).unwrap();
                assert_eq!(removed as usize, before - map.len());
            }
            3 => {
                let was = table.entry(&key).insert(&value).unwrap();
                assert_eq!(was, map.insert(key, value));
            }
            4 => assert_eq!(table.entry(&key).remove().unwrap(), map.remove(&key)),
            5 | 6 => {
                let twice = |old: &[u8]| [old, old].concat();
                let now = table.entry(&key).and_modify(twice).unwrap().or_insert(&value).unwrap();
                let other = map.entry(key).and_modify(|old| *old = twice(old)).or_insert(value);
                assert_eq!(now, other);
            }
            _ => {
                let now = table.entry(&key).or_insert_with(|| value.clone()).unwrap();
                assert_eq!(now, map.entry(key).or_insert(value));
            }
        }
        let probe = (rng.below(400) as u16).to_be_bytes();
        assert_eq!(table.contains_key(probe).unwrap(), map.contains_key(&probe[..]));
        assert_eq!(table.entry(probe).get().unwrap(), map.get(&probe[..]).map(Vec::as_slice));
        let pair = |pair: Option<(&Vec<u8>, &Vec<u8>)>| pair.map(|(k, v)| (k.clone(), v.clone()));
        let own = |pair: Option<(&[u8], &[u8])>| pair.map(|(k, v)| (k.to_vec(), v.to_vec()));
        assert_eq!(own(table.first_key_value().unwrap()), pair(map.first_key_value()));
        assert_eq!(own(table.last_key_value().unwrap()), pair(map.last_key_value()));
        // What grows by being doubled is cut now and then.
        map.retain(|_, value| value.len() < 500);
        table.retain(|_, value| value.len() < 500).unwrap();
        assert_eq!(table.len() as usize, map.len());
    }
    write.commit().unwrap();
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    let stored: Map = table.iter().map(|r| r.map(|(k, v)| (k.into(), v.into())).unwrap()).collect();
    assert_eq!(stored, map);
    for key in (0..400u16).map(u16::to_be_bytes) {
        assert_eq!(table.contains_key(key).unwrap(), map.contains_key(&key[..]));
    }
}

#[test]
fn of_many_values_one_goes_at_a_time() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let mut write = env.write().unwrap();
    let mut table = write.create_table("t", TableOptions::new().duplicates()).unwrap();
    for (key, value) in [("a", "1"), ("a", "2"), ("b", "1"), ("b", "3")] {
        table.put(key, value).unwrap();
    }
    assert!(matches!(table.entry("a").insert("9"), Err(Error::ManyValues { values: 2 })));
    assert_eq!(table.retain(|key, value| key != b"b" || value != b"1").unwrap(), 1);
    assert_eq!(table.pop_first().unwrap(), Some((b"a".to_vec(), b"1".to_vec())));
    assert_eq!(table.pop_last().unwrap(), Some((b"b".to_vec(), b"3".to_vec())));
    assert_eq!(table.len(), 1);
}

#[test]
fn tables_by_number_are_changed_in_turn() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let mut txn = env.write().unwrap();
    let (a, b) = (txn.table_id_or_create("a").unwrap(), txn.table_id_or_create("b").unwrap());
    for n in 0..500u32 {
        a.put(&mut txn, n.to_be_bytes(), "value").unwrap();
        assert!(b.insert(&mut txn, "last", n.to_be_bytes()).unwrap() == (n == 0));
        if n.is_multiple_of(2) {
            assert!(a.delete(&mut txn, n.to_be_bytes()).unwrap());
        }
    }
    assert_eq!(b.take(&mut txn, "last").unwrap(), Some(vec![0; 4]));
    assert_eq!(a.get(&txn, 7u32.to_be_bytes()).unwrap(), Some(&b"value"[..]));
    assert!(!a.contains_key(&txn, 8u32.to_be_bytes()).unwrap());
    let (one, other) = (a.read(&txn).unwrap(), b.read(&txn).unwrap());
    assert_eq!((one.len(), other.len()), (250, 0));
    a.write(&mut txn).unwrap().clear().unwrap();
    txn.commit().unwrap();
    let mut next = env.write().unwrap();
    assert!(matches!(a.put(&mut next, "k", "v"), Err(Error::NoSuchTable { .. })));
    assert!(matches!(a.get(&next, "k"), Err(Error::NoSuchTable { .. })));
}

#[test]
fn owned_tables_and_records_outlive_what_they_came_from() {
    const fn shared<T: Send + Sync + 'static>() {}
    const { shared::<OwnedTable>() };
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let rows = |round: u8| (0..3_000u32).map(move |n| (n.to_be_bytes(), [round; 30]));
    put_all(&env, "t", rows(1));
    let backwards = TableOptions::new().compare_keys(|a: &[u8], b: &[u8]| b.cmp(a));
    let mut write = env.write().unwrap();
    let mut down = write.create_table("down", backwards.clone()).unwrap();
    (0..9u8).for_each(|n| down.put([n], [n]).unwrap());
    write.commit().unwrap();

    let read = env.read().unwrap().into_shared();
    let table = read.owned_table("t").unwrap();
    let down = read.owned_table_with("down", &backwards).unwrap();
    assert!(read.owned_table("down").is_err());
    drop(read);
    let mut records = table.range(10u32.to_be_bytes()..);
    let first = records.next().unwrap().unwrap();
    let last = records.next_back().unwrap().unwrap();
    for round in 2..20 {
        put_all(&env, "t", rows(round));
    }
    drop((table, env));
    let thread = std::thread::spawn(move || {
        assert_eq!((first.key(), first.value()), (&10u32.to_be_bytes()[..], &[1; 30][..]));
        assert_eq!(last.key(), 2999u32.to_be_bytes());
        let kept: Vec<_> = records.map(|record| record.unwrap()).collect();
        assert_eq!(kept.len(), 2988);
        assert!(kept.iter().all(|record| record.value() == [1; 30]));
        assert!(Arc::ptr_eq(kept[0].txn(), first.txn()));
        assert_eq!(down.get([3]).unwrap().as_deref(), Some(&[3][..]));
        assert_eq!(down.iter().next().unwrap().unwrap().key(), [8]);
        assert!(!down.clone().as_table().contains_key([9]).unwrap());
    });
    thread.join().unwrap();
}
