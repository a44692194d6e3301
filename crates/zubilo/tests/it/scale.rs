//! Very many values. In every test run with some ten thousand; the sizes that the store is meant for
//! by `cargo test --release -p zubilo --test it scale -- --ignored --nocapture` (minutes, two
//! gigabytes of disk). `ZUBILO_SCALE` sets the number.

use std::time::Instant;

use crate::common::{check, fresh, number, rng};
use zubilo::{Durability, Env, KeyOrder, Options, TableOptions};

fn open(path: &std::path::Path) -> Env {
    Options::new().durability(Durability::NoSync).dirty_limit(128 << 20).open(path).unwrap()
}

/// A bijection of the numbers below 2^64: each value once, in no order.
fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

fn values_under_one_key(count: u64, options: TableOptions) {
    let (_dir, path) = fresh();
    let env = open(&path);
    let begun = Instant::now();
    let mut txn = env.write().unwrap();
    let mut table = txn.create_table("t", options).unwrap();
    table.put("before", 0u64.to_le_bytes()).unwrap();
    for n in 0..count {
        assert!(table.insert_value("key", scattered(n).to_le_bytes()).unwrap());
    }
    table.put("later", 0u64.to_le_bytes()).unwrap();
    assert_eq!(table.count("key").unwrap(), count);
    txn.commit().unwrap();
    println!("{count} values stored in {:.1} s", begun.elapsed().as_secs_f64());
    check(&env, "filled");

    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    assert_eq!((table.count("key").unwrap(), table.len()), (count, count + 2));
    let mut last = None;
    let mut seen = 0;
    for value in table.get_all("key").unwrap() {
        let value = u64::from_le_bytes(value.unwrap().try_into().unwrap());
        assert!(last < Some(value));
        last = Some(value);
        seen += 1;
    }
    assert_eq!(seen, count);
    let mut rng = rng();
    for _ in 0..10_000 {
        let n = rng.below(2 * count);
        assert_eq!(table.contains("key", scattered(n).to_le_bytes()).unwrap(), n < count);
    }
    drop(read);

    // Down to a few, through a set inside the record, to one.
    let mut txn = env.write().unwrap();
    let mut table = txn.table("t").unwrap();
    for n in 1..count {
        assert!(table.delete_value("key", scattered(n).to_le_bytes()).unwrap());
    }
    assert_eq!((table.count("key").unwrap(), table.stats().value_pages), (1, 0));
    assert_eq!(table.get("key").unwrap(), Some(&scattered(0).to_le_bytes()[..]));
    txn.commit().unwrap();
    check(&env, "emptied");
    println!("{:.1} s in all", begun.elapsed().as_secs_f64());
}

fn keys_with_few_values(count: u64) {
    let (_dir, path) = fresh();
    let env = open(&path);
    let begun = Instant::now();
    let values = |n: u64| 1 + scattered(n) % 3;
    let mut txn = env.write().unwrap();
    let options = TableOptions::new().duplicates();
    let mut table = txn.create_table("t", options).unwrap();
    let mut pairs = 0;
    for n in 0..count {
        for v in 0..values(n) {
            table.put(scattered(n).to_be_bytes(), [n as u8, v as u8]).unwrap();
            pairs += 1;
        }
    }
    assert_eq!(table.len(), pairs);
    txn.commit().unwrap();
    println!("{count} keys, {pairs} values in {:.1} s", begun.elapsed().as_secs_f64());
    check(&env, "filled");
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    assert_eq!(table.iter().filter(|pair| pair.is_ok()).count() as u64, pairs);
    let mut rng = rng();
    for _ in 0..10_000 {
        let n = rng.below(count);
        assert_eq!(table.count(scattered(n).to_be_bytes()).unwrap(), values(n));
    }
    drop(read);
    let mut txn = env.write().unwrap();
    let mut table = txn.table("t").unwrap();
    let half = (1u64 << 63).to_be_bytes();
    let before = table.len();
    let deleted = table.delete_range(half..).unwrap();
    assert_eq!(table.len(), before - deleted);
    assert_eq!(table.range(half..).count(), 0);
    txn.commit().unwrap();
    check(&env, "half of it");
    println!("{:.1} s in all", begun.elapsed().as_secs_f64());
}

fn packed() -> TableOptions {
    TableOptions::new().fixed_duplicates().value_order(KeyOrder::Integer)
}

#[test]
fn many_values_under_one_key() {
    let count = number("ZUBILO_SCALE", 40_000);
    values_under_one_key(count, packed());
    values_under_one_key(count / 2, TableOptions::new().value_order(KeyOrder::Integer).counted());
}

#[test]
fn many_keys_with_few_values() {
    keys_with_few_values(number("ZUBILO_SCALE", 30_000));
}

#[test]
#[ignore = "minutes"]
fn ten_million_values_under_one_key() {
    values_under_one_key(number("ZUBILO_SCALE", 10_000_000), packed());
}

#[test]
#[ignore = "minutes"]
fn ten_million_keys_with_few_values() {
    keys_with_few_values(number("ZUBILO_SCALE", 10_000_000));
}
