//! Whether look-ups overlap: the time of one where each waits for the one before, beside that where
//! they are independent, as in any loop over keys. An independent one takes at most 0.6 of the time
//! of a chained one when the CPU has begun the next before the last has its value.
//!
//! `cargo bench -p zubilo --bench lookups -- [RECORDS [ROUNDS]]`, a million records and 7 rounds
//! if not told; medians over the rounds, in nanoseconds a look-up. The folder is `TMPDIR`.

use std::hint::black_box;
use std::time::Instant;

use zubilo::{Durability, Env, KeyOrder, Options, ReadTable, TableOptions};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const LOOKUPS: usize = 500_000;
const BATCH: usize = 32;

/// Scatters numbers over all of 64 bits.
fn scatter(i: u64) -> u64 {
    let x = (i ^ (i >> 30)).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// 16 scattered bytes.
fn random(i: u64) -> [u8; 16] {
    (u128::from(scatter(i)) << 64 | u128::from(scatter(!i))).to_be_bytes()
}

fn number(i: u64) -> [u8; 8] {
    i.to_le_bytes()
}

fn load<const N: usize>(
    env: &Env,
    (name, options): (&str, &TableOptions),
    numbers: &[u64],
    key: fn(u64) -> [u8; N],
) -> Result {
    for some in numbers.chunks(1000) {
        let mut write = env.write()?;
        let mut table = write.table_or_create_with(name, options)?;
        some.iter().try_for_each(|i| table.put(key(*i), [*i as u8; 100]))?;
        write.commit()?;
    }
    Ok(())
}

#[inline(never)]
fn independent<const N: usize>(table: &ReadTable<'_>, keys: &[[u8; N]]) -> Result<u64> {
    let mut sum = 0;
    for key in keys {
        let value = table.get(key)?.ok_or("a record is missing")?;
        sum += u64::from(value[0]);
    }
    Ok(sum)
}

/// The place of each key is known only when the value before it is: it is always 0 bytes further.
#[inline(never)]
fn chained<const N: usize>(table: &ReadTable<'_>, keys: &[[u8; N]]) -> Result<u64> {
    let zero = black_box(0);
    let (mut sum, mut further) = (0, 0);
    for i in 0..keys.len() {
        let value = table.get(keys[i + further])?.ok_or("a record is missing")?;
        sum += u64::from(value[0]);
        further = usize::from(value[0]) & zero;
    }
    Ok(sum)
}

#[inline(never)]
fn batched<const N: usize>(table: &ReadTable<'_>, keys: &[[u8; N]]) -> Result<u64> {
    let mut sum = 0;
    for batch in keys.chunks(BATCH) {
        table.get_many_with(batch, |_, value| sum += value.map_or(0, |v| u64::from(v[0])))?;
    }
    Ok(sum)
}

fn measure<const N: usize>(
    table: &ReadTable<'_>,
    records: u64,
    rounds: usize,
    key: fn(u64) -> [u8; N],
) -> Result {
    type Way<const N: usize> = fn(&ReadTable<'_>, &[[u8; N]]) -> Result<u64>;
    let ways: [(&str, Way<N>); 3] =
        [("independent", independent), ("chained", chained), ("batched of 32", batched)];
    let mut taken = [const { Vec::new() }; 3];
    for round in 0..rounds as u64 {
        let from = round * LOOKUPS as u64;
        let keys = (from..from + LOOKUPS as u64).map(|i| key(scatter(i) % records));
        let keys: Vec<[u8; N]> = keys.collect();
        let mut sums = Vec::new();
        for ((_, way), taken) in ways.iter().zip(&mut taken) {
            let start = Instant::now();
            sums.push(way(table, &keys)?);
            taken.push(start.elapsed().as_nanos() as f64 / LOOKUPS as f64);
        }
        assert!(sums.iter().all(|sum| *sum == sums[0]), "all ways find the same values");
    }
    let medians = taken.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    });
    for ((name, _), median) in ways.iter().zip(medians) {
        println!("  {name:14} {median:6.0} ns");
    }
    println!("  independent of chained {:.2}", medians[0] / medians[1]);
    Ok(())
}

fn main() -> Result {
    // Cargo adds arguments of its own, which begin with dashes.
    let mut args = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let records: u64 = args.next().map_or(Ok(1_000_000), |n| n.parse())?;
    let rounds: usize = args.next().map_or(Ok(7), |n| n.parse())?;
    let folder = std::env::temp_dir().join(format!("zubilo-lookups-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let env = Options::new().durability(Durability::NoSync).open(folder.join("store"))?;
    let mut numbers: Vec<u64> = (0..records).collect();
    let integers = TableOptions::new().key_order(KeyOrder::Integer);
    load(&env, ("integers", &integers), &numbers, number)?;
    numbers.sort_by_key(|i| scatter(!i));
    load(&env, ("records", &TableOptions::new()), &numbers, random)?;
    let read = env.read()?;
    println!("{records} records of 16 + 100 bytes, loaded in random order");
    measure(&read.table("records")?, records, rounds, random)?;
    println!("{records} records of 8 + 100 bytes, integers in order");
    measure(&read.table_with("integers", &integers)?, records, rounds, number)?;
    drop(read);
    env.close()?;
    Ok(std::fs::remove_dir_all(folder)?)
}
