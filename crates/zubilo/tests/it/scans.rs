//! Scans with a predicate, and by the threads of a pool.

use zubilo::{Env, Options, TableOptions};

use crate::common::{fresh, rng};

/// A table with small and large values, keys of different lengths, and one with several values a key.
fn filled(env: &Env) {
    let mut rng = rng();
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create("t").unwrap();
    for _ in 0..30_000 {
        let (key, key_len) = (rng.next().to_be_bytes(), 1 + rng.below(8) as usize);
        let longest = if rng.below(500) == 0 { 20_000 } else { 100 };
        let value = vec![7; rng.below(longest) as usize];
        table.put(&key[..key_len], value).unwrap();
    }
    let mut tags = txn.create_table("tags", TableOptions::new().duplicates()).unwrap();
    for n in 0..20_000u32 {
        tags.put((n % 37).to_be_bytes(), n.to_be_bytes()).unwrap();
    }
    txn.create_table("empty", TableOptions::new()).unwrap();
    txn.commit().unwrap();
}

/// What a predicate sees are the bytes of the map: those that a look-up gives, at the same address.
#[test]
fn a_predicate_sees_the_bytes_of_the_map() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    filled(&env);
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    let wanted = |value: &[u8]| value.len() > 90;
    let by_hand: Vec<_> =
        table.iter().map(|r| r.unwrap()).filter(|(_, value)| wanted(value)).collect();
    assert!(by_hand.len() > 100);
    let long = |record: &zubilo::Result<(&[u8], &[u8])>| {
        record.as_ref().is_ok_and(|(key, value)| {
            let found = table.get(key).unwrap().unwrap();
            // An empty value is nowhere in particular.
            assert!(value.is_empty() || std::ptr::eq(found, *value), "the value was copied");
            wanted(value)
        })
    };
    let found: Vec<_> = table.iter().filter(long).collect::<zubilo::Result<_>>().unwrap();
    assert!(found == by_hand);
    let backwards: Vec<_> = table.iter().rev().filter(long).map(|r| r.unwrap()).collect();
    assert!(backwards.iter().rev().eq(&by_hand));
    // `find` ends the scan.
    let mut seen = 0;
    let first = table.iter().find(|record| {
        seen += 1;
        long(record)
    });
    assert_eq!(first.unwrap().unwrap(), by_hand[0]);
    let before = table.range::<&[u8]>(..=by_hand[0].0).count();
    assert_eq!(seen, before);
}

#[cfg(feature = "rayon")]
#[test]
fn a_parallel_scan_gives_what_one_thread_gives() {
    use rayon::iter::ParallelIterator;

    #[track_caller]
    fn assert_same(table: &zubilo::ReadTable<'_>, from: Option<&[u8]>, to: Option<&[u8]>) {
        use std::ops::Bound;
        let start = from.map_or(Bound::Unbounded, Bound::Included);
        let end = to.map_or(Bound::Unbounded, Bound::Excluded);
        let alone: Vec<_> = table.range::<&[u8]>((start, end)).map(|r| r.unwrap()).collect();
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let together: Vec<_> = pool.install(|| {
                let records = table.par_range::<&[u8]>((start, end)).unwrap();
                records.collect::<zubilo::Result<_>>().unwrap()
            });
            assert!(together == alone, "{threads} threads");
        }
    }
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    filled(&env);
    let read = env.read().unwrap();
    for name in ["t", "tags", "empty"] {
        let table = read.table(name).unwrap();
        assert_same(&table, None, None);
        assert_same(&table, Some(&[0, 0, 0, 5]), Some(&[0, 0, 0, 9]));
        assert_same(&table, Some(&[20]), Some(&[90]));
        assert_same(&table, Some(&[90]), None);
        // Nothing is in it.
        assert_same(&table, Some(&[90]), Some(&[20]));
    }
}
