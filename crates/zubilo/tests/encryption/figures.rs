//! What encryption costs, beside a store that is not encrypted.

use std::hint::black_box;
use std::time::Instant;

use zubilo::{Durability, Env, Options};

use super::options;
use crate::common::{fresh, rng};

const RECORDS: u64 = 1_000_000;
const VALUE: usize = 100;

fn timed(name: &str, count: u64, job: impl FnOnce()) -> (String, f64) {
    let start = Instant::now();
    job();
    (name.to_string(), start.elapsed().as_nanos() as f64 / count as f64)
}

fn scan(env: &Env) {
    let read = env.read().unwrap();
    let mut bytes = 0;
    for record in read.table("t").unwrap().iter() {
        bytes += record.unwrap().1.len();
    }
    assert_eq!(bytes, RECORDS as usize * VALUE);
}

fn get(env: &Env, count: u64) {
    let mut rng = rng();
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    for _ in 0..count {
        black_box(table.get(rng.below(RECORDS).to_be_bytes()).unwrap().unwrap());
    }
}

/// Nanoseconds of each kind of work.
fn run(options: &Options) -> Vec<(String, f64)> {
    let (_dir, path) = fresh();
    let options = options.clone().durability(Durability::NoSync).writable_map(false);
    let env = options.clone().open(&path).unwrap();
    let mut all = Vec::new();
    all.push(timed("load in order, a record", RECORDS, || {
        for part in 0..100 {
            env.update(|txn| {
                let mut table = txn.table_or_create("t")?;
                for i in part * RECORDS / 100..(part + 1) * RECORDS / 100 {
                    table.put(i.to_be_bytes(), [i as u8; VALUE])?;
                }
                Ok(())
            })
            .unwrap();
        }
    }));
    env.close().unwrap();
    let env = options.clone().open(&path).unwrap();
    all.push(timed("first scan after the open, a record", RECORDS, || scan(&env)));
    all.push(timed("scan again, a record", RECORDS, || scan(&env)));
    all.push(timed("get at random, one", RECORDS, || get(&env, RECORDS)));
    all.push(timed("commit of 10 changes at random, one", 2000, || {
        let mut rng = rng();
        for _ in 0..2000 {
            let mut txn = env.write().unwrap();
            let mut table = txn.table("t").unwrap();
            for _ in 0..10 {
                table.put(rng.below(RECORDS).to_be_bytes(), [1; VALUE]).unwrap();
            }
            txn.commit().unwrap();
        }
    }));
    env.close().unwrap();
    let env = options.open(&path).unwrap();
    all.push(timed("first 100000 gets after the open, one", 100_000, || get(&env, 100_000)));
    all
}

/// Run it in release mode, on a quiet machine.
#[test]
#[ignore = "figures: run it by itself"]
fn figures() {
    let mut rounds: Vec<[Vec<(String, f64)>; 2]> = Vec::new();
    for _ in 0..3 {
        rounds.push([run(&Options::new()), run(&options())]);
    }
    let median = |which: usize, i: usize| {
        let mut each: Vec<f64> = rounds.iter().map(|round| round[which][i].1).collect();
        each.sort_by(f64::total_cmp);
        each[each.len() / 2]
    };
    println!("{:<40} {:>10} {:>10} {:>6}", "nanoseconds", "plain", "encrypted", "ratio");
    for (i, (name, _)) in rounds[0][0].iter().enumerate() {
        let (plain, encrypted) = (median(0, i), median(1, i));
        println!("{name:<40} {plain:>10.0} {encrypted:>10.0} {:>6.2}", encrypted / plain);
    }
}
