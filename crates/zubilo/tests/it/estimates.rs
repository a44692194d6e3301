//! Estimates of ranges, and their even parts.

use std::ops::Bound;

use zubilo::{Env, KeyOrder, KeyRange, Options, ReadTable, TableOptions};

use crate::common::{Rng, fresh, seed};

fn below(rng: &mut Rng, n: usize) -> usize {
    rng.below(n as u64) as usize
}

fn filled(env: &Env, options: &TableOptions, records: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) {
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create_with("t", options).unwrap();
    for (key, value) in records {
        table.put(key, value).unwrap();
    }
    txn.commit().unwrap();
}

/// The share of random ranges over about a hundredth of the table whose estimate is within a factor of two.
fn share_within_two(env: &Env, options: &TableOptions, rng: &mut Rng) -> f64 {
    let read = env.read().unwrap();
    let table = read.table_with("t", options).unwrap();
    let keys: Vec<Vec<u8>> = table.iter().map(|r| r.unwrap().0.to_vec()).collect();
    let (mut good, tries) = (0, 200);
    for _ in 0..tries {
        let len = keys.len() / 100 + below(rng, keys.len() / 20);
        let start = below(rng, keys.len() - len);
        let (from, to) = (&keys[start][..], &keys[start + len][..]);
        let exact = table.range(from..to).count() as f64;
        let about = table.estimate_len(from..to).unwrap() as f64;
        good += usize::from(exact / 2.0 <= about && about <= exact * 2.0);
    }
    good as f64 / f64::from(tries)
}

#[track_caller]
fn assert_good(
    name: &str,
    options: &TableOptions,
    records: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
) {
    let seed = seed(1);
    println!("{name}: seed {seed}");
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    filled(&env, options, records);
    let share = share_within_two(&env, options, &mut Rng::new(seed));
    assert!(share >= 0.95, "{name}: {share}");
}

#[test]
fn estimates_are_within_a_factor_of_two() {
    let plain = TableOptions::new();
    let mut rng = Rng::new(seed(1));
    let ascending = |n: u32| n.to_be_bytes().to_vec();
    assert_good("ascending", &plain, (0..60_000).map(|n| (ascending(n), vec![0; 20])));
    let random = (0..60_000).map(|_| (rng.next().to_be_bytes().to_vec(), vec![0; 100]));
    assert_good("random", &plain, random.collect::<Vec<_>>().into_iter());
    // Few records a page here, many there.
    let uneven = |n: u32| (ascending(n), vec![0; if n % 20_000 < 3_000 { 900 } else { 4 }]);
    assert_good("uneven", &plain, (0..60_000).map(uneven));
    let long_keys = |n: u32| {
        let mut key = ascending(n);
        key.resize(if n < 30_000 { 4 } else { 200 }, 7);
        (key, vec![])
    };
    assert_good("long keys", &plain, (0..60_000).map(long_keys));
    let sets = |n: u32| (ascending(n / 30), ascending(n));
    assert_good("sets", &plain.clone().duplicates(), (0..90_000).map(sets));
    let native = |n: u64| (n.to_ne_bytes().to_vec(), vec![1; 30]);
    assert_good("integers", &plain.clone().key_order(KeyOrder::Integer), (0..60_000).map(native));
}

#[test]
fn short_ranges_and_counted_tables_are_exact() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let key = |n: u32| n.to_be_bytes();
    let mut txn = env.write().unwrap();
    for (name, options) in
        [("plain", TableOptions::new()), ("counted", TableOptions::new().counted())]
    {
        let mut table = txn.create_table(name, options).unwrap();
        (0..50_000).for_each(|n| table.put(key(2 * n), "value").unwrap());
        // The transaction sees its own records.
        assert_eq!(table.estimate_len(key(10)..key(20)).unwrap(), 5);
        assert_eq!(table.estimate_len(key(11)..=key(20)).unwrap(), 5);
    }
    txn.commit().unwrap();
    let read = env.read().unwrap();
    let (plain, counted) = (read.table("plain").unwrap(), read.table("counted").unwrap());
    let mut rng = Rng::new(seed(1));
    for _ in 0..500 {
        let start = below(&mut rng, 99_000) as u32;
        let end = start + below(&mut rng, 400) as u32;
        let bounds = (Bound::Excluded(key(start)), Bound::Included(key(end)));
        let exact = plain.range(bounds).count() as u64;
        assert_eq!(plain.estimate_len(bounds).unwrap(), exact);
        assert_eq!(
            counted.estimate_len(key(start)..).unwrap(),
            50_000 - u64::from(start.div_ceil(2))
        );
    }
    let backwards = key(20)..key(10);
    assert_eq!(plain.estimate_len(backwards).unwrap(), 0);
    assert_eq!(plain.estimate_len::<&[u8]>(..).unwrap(), 50_000);
}

/// The parts follow each other, have all records, and none is larger than `most` of the even share.
#[track_caller]
fn assert_even(table: &ReadTable<'_>, range: KeyRange, parts: usize, most: f64) {
    let all: Vec<_> = table.range(range.clone()).map(|r| r.unwrap()).collect();
    let cut = table.split(range.clone(), parts).unwrap();
    assert!(cut.len() <= parts, "{} parts", cut.len());
    assert_eq!((&cut[0].0, &cut[cut.len() - 1].1), (&range.0, &range.1));
    let sizes: Vec<usize> = cut.iter().map(|part| table.range(part.clone()).count()).collect();
    let joined: Vec<_> =
        cut.iter().flat_map(|part| table.range(part.clone())).map(|r| r.unwrap()).collect();
    assert!(joined == all, "the parts are not the range");
    let largest = *sizes.iter().max().unwrap() as f64;
    let share = all.len() as f64 / parts as f64;
    assert!(largest <= (share * most).max(share + 1.0), "{parts} parts: {sizes:?}");
}

#[test]
fn parts_are_even_and_are_the_range() {
    let seed = seed(1);
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let options = TableOptions::new();
    let records = (0..40_000).map(|_| {
        let value = vec![0; below(&mut rng, 200)];
        (rng.next().to_be_bytes().to_vec(), value)
    });
    filled(&env, &options, records.collect::<Vec<_>>().into_iter());
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    let whole = || (Bound::Unbounded, Bound::Unbounded);
    for parts in [1, 2, 3, 4, 8, 16, 100, 1000] {
        assert_even(&table, whole(), parts, 1.5);
    }
    for _ in 0..50 {
        let (a, b) = (rng.next(), rng.next());
        let key = |n: u64| n.to_be_bytes().to_vec();
        let range = (Bound::Excluded(key(a.min(b))), Bound::Included(key(a.max(b))));
        assert_even(&table, range, 1 + below(&mut rng, 40), 2.0);
    }
}

#[test]
fn parts_of_little() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create("t").unwrap();
    assert_eq!(table.split::<&[u8]>(.., 4).unwrap(), [(Bound::Unbounded, Bound::Unbounded)]);
    for n in 0..3u8 {
        table.put([n], "x").unwrap();
    }
    let cuts = |parts| -> Vec<Bound<Vec<u8>>> {
        let parts = table.split::<&[u8]>(.., parts).unwrap();
        parts.into_iter().map(|(start, _)| start).collect()
    };
    let from = |n: u8| Bound::Included(vec![n]);
    assert_eq!(cuts(0), [Bound::Unbounded]);
    assert_eq!(cuts(1), [Bound::Unbounded]);
    assert_eq!(cuts(3), [Bound::Unbounded, from(1), from(2)]);
    assert_eq!(cuts(usize::MAX), [Bound::Unbounded, from(1), from(2)]);
}
