//! How a scan scales with threads: a million records in a table, scanned whole by pools of one thread up to as many
//! as the machine has cores, by turns, so that what disturbs the machine disturbs all. Prints medians and quartiles.
//!
//! `cargo bench -p zubilo --features rayon --bench scans`

use std::time::Instant;

use rayon::ThreadPool;
use rayon::iter::ParallelIterator;
use support::Rng;
use zubilo::{Options, ReadTable, Result};

const RECORDS: u64 = 1_000_000;
const ROUNDS: usize = 41;

/// What is done with a value.
type Work = fn(&[u8]) -> u64;

/// Next to nothing, or a look at every byte.
const WORK: [(&str, Work); 2] = [
    ("records are counted", |_| 1),
    ("bytes are added up", |value| value.iter().map(|byte| u64::from(*byte)).sum()),
];

fn scan(table: &ReadTable<'_>, pool: &ThreadPool, work: Work) -> Result<u64> {
    pool.install(|| {
        let records = table.par_range::<&[u8]>(..)?;
        records.map(|record| record.map(|(_, value)| work(value))).sum()
    })
}

/// First quartile, median, third quartile.
fn quartiles(times: &mut [f64]) -> [f64; 3] {
    times.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| times[(times.len() - 1) * quarter / 4])
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a folder");
    let env = Options::new().open(dir.path().join("store"))?;
    let mut rng = Rng::new(1);
    let mut txn = env.write()?;
    let mut table = txn.table_or_create("t")?;
    let mut value = [0; 100];
    for n in 0..RECORDS {
        value.fill(rng.next() as u8);
        table.put(u128::from(n).to_be_bytes(), value)?;
    }
    txn.commit()?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let threads: Vec<usize> = (1..=cores).filter(|n| n.is_power_of_two() || *n == cores).collect();
    let pool = |threads: &usize| rayon::ThreadPoolBuilder::new().num_threads(*threads).build();
    let pools: Vec<ThreadPool> =
        threads.iter().map(pool).collect::<Result<_, _>>().expect("threads");
    let read = env.read()?;
    let table = read.table("t")?;
    for (what, work) in WORK {
        let mut times = vec![Vec::new(); pools.len()];
        let wanted = scan(&table, &pools[0], work)?;
        for _ in 0..ROUNDS {
            for (pool, times) in pools.iter().zip(&mut times) {
                let start = Instant::now();
                assert_eq!(scan(&table, pool, work)?, wanted);
                times.push(start.elapsed().as_secs_f64() * 1e9 / RECORDS as f64);
            }
        }
        let [_, alone, _] = quartiles(&mut times[0].clone());
        for (threads, times) in threads.iter().zip(&mut times) {
            let [low, median, high] = quartiles(times);
            let faster = alone / median;
            println!(
                "{what}: {threads} threads, {median:.1} ns a record ({low:.1} to {high:.1}), {faster:.2} times"
            );
        }
    }
    Ok(())
}
