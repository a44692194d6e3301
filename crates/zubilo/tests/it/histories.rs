//! Random histories of one store against a model: every kind of change, nested levels, aborts,
//! reopens, snapshots held open, in several page sizes and modes. The full check follows each
//! commit. `ZUBILO_SEED` repeats a run.

use std::ops::Bound;
use std::time::Duration;

use zubilo::{CompactOptions, Durability, Env, Error, Options, ReadTxn, TableOptions, WriteTxn};

use crate::common::{Model, Rng, check, contents, seed};

fn any_key(rng: &mut Rng) -> Vec<u8> {
    let n = rng.below(3000);
    match rng.below(20) {
        0 => Vec::new(),
        1 => vec![b'x'; rng.below(1905) as usize],
        2..=6 => format!("https://example.org/some/long/common/path/{n:06}").into_bytes(),
        7..=12 => n.to_be_bytes().to_vec(),
        _ => n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec(),
    }
}

fn any_value(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(100) {
        0 => rng.below(300_000),
        1..=4 => rng.below(9000),
        5..=20 => rng.below(1500),
        _ => rng.below(120),
    };
    let byte = rng.next() as u8;
    (0..len).map(|i| byte.wrapping_add(i as u8)).collect()
}

/// Changes tables and model alike.
fn change(txn: &mut WriteTxn, model: &mut Model, rng: &mut Rng, depth: u32) {
    let name = format!("table-{}", rng.below(4)).into_bytes();
    match rng.below(60) {
        0 => {
            let dropped = txn.drop_table(&name);
            assert_eq!(dropped.is_ok(), model.remove(&name).is_some());
        }
        1 => {
            let to = format!("table-{}", rng.below(4)).into_bytes();
            let renamed = txn.rename_table(&name, &to);
            if model.contains_key(&name) && !model.contains_key(&to) {
                renamed.unwrap();
                let records = model.remove(&name).unwrap();
                model.insert(to, records);
            } else {
                assert!(renamed.is_err());
            }
        }
        2 => {
            if let Some(records) = model.get_mut(&name) {
                txn.table(&name).unwrap().clear().unwrap();
                records.clear();
            }
        }
        3..=5 if depth < 4 => nested(txn, model, rng, depth),
        _ => records(txn, model, rng, &name),
    }
}

fn nested(txn: &mut WriteTxn, model: &mut Model, rng: &mut Rng, depth: u32) {
    let mut inner = model.clone();
    let abort = rng.below(2) == 0;
    let result = txn.nested(|txn| {
        for _ in 0..rng.below(30) {
            change(txn, &mut inner, rng, depth + 1);
        }
        if abort { Err(Error::Stopped) } else { Ok(()) }
    });
    assert_eq!(result.is_err(), abort);
    if !abort {
        *model = inner;
    }
}

fn records(txn: &mut WriteTxn, model: &mut Model, rng: &mut Rng, name: &[u8]) {
    if !model.contains_key(name) {
        let align = [1, 2, 8, 16][rng.below(4) as usize];
        txn.create_table(name, TableOptions::new().align_values(align)).unwrap();
    }
    let mut table = txn.table(name).unwrap();
    let records = model.entry(name.to_vec()).or_default();
    for _ in 0..rng.below(20) {
        let key = any_key(rng);
        match rng.below(12) {
            0..=2 => {
                assert_eq!(table.delete(&key).unwrap(), records.remove(&key).is_some());
            }
            3 => {
                let value = any_value(rng);
                let new = !records.contains_key(&key);
                assert_eq!(table.insert(&key, &value).unwrap(), new);
                records.entry(key).or_insert(value);
            }
            4 => {
                let value = any_value(rng);
                table.reserve(&key, value.len()).unwrap().copy_from_slice(&value);
                records.insert(key, value);
            }
            5 if rng.below(10) == 0 => {
                let (a, b) = (any_key(rng), any_key(rng));
                let (a, b) = if a <= b { (a, b) } else { (b, a) };
                let gone: Vec<_> = records
                    .range::<Vec<u8>, _>((Bound::Excluded(&a), Bound::Included(&b)))
                    .map(|(k, _)| k.clone())
                    .collect();
                let bounds = (Bound::Excluded(&a), Bound::Included(&b));
                let empty = a == b;
                let count = if empty { 0 } else { table.delete_range::<&Vec<u8>>(bounds).unwrap() };
                assert_eq!(count, if empty { 0 } else { gone.len() as u64 });
                if !empty {
                    gone.iter().for_each(|k| drop(records.remove(k)));
                }
            }
            6 => assert_eq!(table.get(&key).unwrap(), records.get(&key).map(|v| &v[..])),
            _ => {
                let value = any_value(rng);
                table.put(&key, &value).unwrap();
                records.insert(key, value);
            }
        }
    }
    assert_eq!(table.len(), records.len() as u64);
}

/// Compacts the store, to the end or not.
fn compact(env: &Env, rng: &mut Rng) {
    let step = [1, 20 << 10, 4 << 20][rng.below(3) as usize];
    let options = CompactOptions::new()
        .step(step, Duration::from_secs(60))
        .pause(Duration::ZERO)
        .fill([70, 98, 100][rng.below(3) as usize]);
    let mut steps = if rng.below(2) == 0 { rng.below(10) } else { 1000 };
    env.compact(&options, &mut |_, _| {
        steps = steps.saturating_sub(1);
        steps > 0
    })
    .unwrap();
}

fn history(seed: u64, options: Options, rounds: u64) {
    println!("seed {seed} {options:?}");
    let mut rng = Rng::new(seed);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut env = options.clone().open(&path).unwrap();
    let mut model = Model::new();
    let mut held: Vec<(ReadTxn, Model)> = Vec::new();
    for round in 0..rounds {
        let what = format!("seed {seed} round {round}");
        let mut next = model.clone();
        let mut txn = env.write().unwrap();
        for _ in 0..rng.below(25) {
            change(&mut txn, &mut next, &mut rng, 0);
        }
        if rng.below(6) == 0 {
            txn.abort();
        } else {
            txn.commit().unwrap();
            model = next;
        }
        if rng.below(6) == 0 {
            compact(&env, &mut rng);
        }
        check(&env, &what);
        let read = env.read().unwrap();
        assert_eq!(contents(&read), model, "{what}");
        if rng.below(4) == 0 {
            held.push((read, model.clone()));
        }
        if held.len() > 3 {
            let (txn, old) = held.remove(rng.below(3) as usize);
            assert_eq!(contents(&txn), old, "{what}: a snapshot has changed");
        }
        if rng.below(15) == 0 {
            env.sync().unwrap();
        }
        if rng.below(20) == 0 {
            held.clear();
            if rng.below(2) == 0 {
                env.close().unwrap()
            } else {
                env.close_without_sync()
            }
            env = options.clone().open(&path).unwrap();
            assert_eq!(contents(&env.read().unwrap()), model, "{what}: after reopening");
            check(&env, &what);
        }
    }
}

#[test]
fn histories_without_flushes() {
    for (i, page) in [4096, 8192, 65536].into_iter().enumerate() {
        let options = Options::new().durability(Durability::NoSync).page_size(page);
        history(seed(100 + i as u64), options, 150);
    }
}

#[test]
fn histories_with_flushes() {
    history(seed(200), Options::new(), 120);
    history(seed(201), Options::new().page_size(16384), 60);
}

#[test]
fn histories_that_spill() {
    let options = Options::new().dirty_limit(100 << 10);
    history(seed(300), options.clone().durability(Durability::NoSync), 120);
    history(seed(301), options, 60);
}

#[test]
fn histories_through_a_writable_map() {
    let options = Options::new().writable_map(true).durability(Durability::NoSync);
    history(seed(400), options.clone(), 100);
    history(seed(401), options.dirty_limit(100 << 10), 50);
}
