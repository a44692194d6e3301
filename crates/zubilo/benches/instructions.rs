//! A fixed workload whose instructions `tools/instructions.sh` counts under callgrind: the same
//! operations on the same records each time, so that a change of the count is a change of the code.
//!
//! The argument names the part that runs; what is counted lies in the function of that name. The
//! script gives the folder for the store in `TMPDIR`.

use std::hint::black_box;

use zubilo::{Durability, Env, KeyOrder, Options, ReadTable, TableOptions, WriteTable};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const RECORDS: u64 = 20_000;
const READS: u64 = 20_000;
const COMMITS: u64 = 500;
const TABLE: &str = "records";

/// Scatters numbers over all of 64 bits.
fn scatter(i: u64) -> u64 {
    let x = (i ^ (i >> 30)).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// 16 scattered bytes.
fn key(i: u64) -> [u8; 16] {
    let (high, low) = (scatter(i), scatter(!i));
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

fn value(i: u64) -> [u8; 100] {
    [i as u8; 100]
}

fn load(env: &Env) -> Result {
    for first in (0..RECORDS).step_by(1000) {
        let mut write = env.write()?;
        let mut table = write.table_or_create(TABLE)?;
        (first..first + 1000).try_for_each(|i| table.put(key(i), value(i)))?;
        write.commit()?;
    }
    Ok(())
}

#[inline(never)]
fn counted_load(env: &Env) -> Result<u64> {
    load(env)?;
    Ok(RECORDS)
}

#[inline(never)]
fn counted_get(table: &ReadTable<'_>, keys: &[[u8; 16]]) -> Result<u64> {
    for key in keys {
        black_box(table.get(key)?.ok_or("a record is missing")?);
    }
    Ok(keys.len() as u64)
}

#[inline(never)]
fn counted_get_many(table: &ReadTable<'_>, keys: &[[u8; 16]]) -> Result<u64> {
    let mut found = 0;
    for batch in keys.chunks(32) {
        table.get_many_with(batch, |_, value| found += u64::from(value.is_some()))?;
    }
    (found == keys.len() as u64).then_some(found).ok_or_else(|| "a record is missing".into())
}

#[inline(never)]
fn counted_scan(table: &ReadTable<'_>) -> Result<u64> {
    let mut count = 0;
    for record in table.iter() {
        black_box(record?);
        count += 1;
    }
    Ok(count)
}

#[inline(never)]
fn counted_begin(env: &Env) -> Result<u64> {
    let mut reader = env.reader()?;
    for _ in 0..READS {
        black_box(&reader.begin()?);
    }
    Ok(READS)
}

/// 2 inserts, 1 read, 1 update, 1 delete in each transaction.
#[inline(never)]
fn counted_crud(env: &Env) -> Result<u64> {
    for i in 0..COMMITS {
        let mut write = env.write()?;
        let mut table = write.table(TABLE)?;
        table.put(key(RECORDS + 2 * i), value(i))?;
        table.put(key(RECORDS + 2 * i + 1), value(i))?;
        black_box(table.get(key(RECORDS / 2 + i))?);
        table.put(key(RECORDS / 2 + 2 * i), value(i + 1))?;
        table.delete(key(i))?;
        write.commit()?;
    }
    Ok(COMMITS)
}

/// A seek and 10 records.
#[inline(never)]
fn counted_seek(table: &ReadTable<'_>, keys: &[[u8; 16]]) -> Result<u64> {
    for key in keys {
        for record in table.range(&key[..]..).take(10) {
            black_box(record?);
        }
    }
    Ok(keys.len() as u64)
}

/// A seek and 100 records.
#[inline(never)]
fn counted_range(table: &ReadTable<'_>, keys: &[[u8; 16]]) -> Result<u64> {
    for key in keys {
        for record in table.range(&key[..]..).take(100) {
            black_box(record?);
        }
    }
    Ok(keys.len() as u64)
}

/// A new cursor, a seek and 9 steps.
#[inline(never)]
fn counted_cursor(table: &ReadTable<'_>, keys: &[[u8; 16]]) -> Result<u64> {
    for key in keys {
        let mut cursor = table.cursor();
        black_box(cursor.seek(key)?);
        for _ in 0..9 {
            black_box(cursor.next()?);
        }
    }
    Ok(keys.len() as u64)
}

/// Changes in transactions of 1,000, commits included.
fn batches(env: &Env, change: impl Fn(&mut WriteTable<'_>, u64) -> Result) -> Result<u64> {
    for first in (0..RECORDS).step_by(1000) {
        let mut write = env.write()?;
        let mut table = write.table_or_create(TABLE)?;
        (first..first + 1000).try_for_each(|i| change(&mut table, i))?;
        write.commit()?;
    }
    Ok(RECORDS)
}

#[inline(never)]
fn counted_sorted(env: &Env) -> Result<u64> {
    batches(env, |table, i| Ok(table.put(u128::from(i).to_be_bytes(), value(i))?))
}

#[inline(never)]
fn counted_delete(env: &Env) -> Result<u64> {
    batches(env, |table, i| {
        table.delete(key(i))?.then_some(()).ok_or_else(|| "a record is missing".into())
    })
}

/// A transaction with one change.
#[inline(never)]
fn counted_commit(env: &Env) -> Result<u64> {
    for i in 0..COMMITS {
        let mut write = env.write()?;
        write.table(TABLE)?.put(key(i), value(i + 1))?;
        write.commit()?;
    }
    Ok(COMMITS)
}

/// A nested transaction with one change.
#[inline(never)]
fn counted_nested(env: &Env) -> Result<u64> {
    let mut write = env.write()?;
    for i in 0..COMMITS {
        write.begin_nested()?;
        write.table(TABLE)?.put(key(i), value(i + 1))?;
        write.commit_nested()?;
    }
    write.commit()?;
    Ok(COMMITS)
}

/// Random values under so many keys, of one size or of 8 to 16 bytes.
fn put_values(env: &Env, keys: u64, fixed: bool) -> Result<u64> {
    let options = TableOptions::new().value_order(KeyOrder::Bytes);
    let options = if fixed { options.fixed_duplicates() } else { options };
    for first in (0..RECORDS).step_by(1000) {
        let mut write = env.write()?;
        let mut table = write.table_or_create_with(TABLE, &options)?;
        for i in first..first + 1000 {
            let len = if fixed { 8 } else { 8 + i as usize % 9 };
            table.insert_value(key(i % keys), &key(i)[..len])?;
        }
        write.commit()?;
    }
    Ok(RECORDS)
}

/// Three values a key: small sets.
#[inline(never)]
fn counted_few(env: &Env) -> Result<u64> {
    put_values(env, RECORDS / 3 + 1, false)
}

/// 1,000 values a key: trees.
#[inline(never)]
fn counted_many(env: &Env) -> Result<u64> {
    put_values(env, RECORDS / 1000, false)
}

#[inline(never)]
fn counted_fixed(env: &Env) -> Result<u64> {
    put_values(env, RECORDS / 1000, true)
}

/// Looks for a value among the 1,000 of its key.
#[inline(never)]
fn counted_pair(table: &ReadTable<'_>) -> Result<u64> {
    for i in (0..READS).map(|i| scatter(i) % RECORDS) {
        let value = &key(i)[..8 + i as usize % 9];
        black_box(table.contains(key(i % (RECORDS / 1000)), value)?);
    }
    Ok(READS)
}

/// All values of all keys.
#[inline(never)]
fn counted_values(table: &ReadTable<'_>) -> Result<u64> {
    let mut count = 0;
    for i in 0..RECORDS / 1000 {
        for value in table.get_all(key(i))? {
            black_box(value?);
            count += 1;
        }
    }
    Ok(count)
}

/// Removes values in the order in which they came.
#[inline(never)]
fn counted_remove(env: &Env) -> Result<u64> {
    batches(env, |table, i| {
        let value = &key(i)[..8 + i as usize % 9];
        let gone = table.delete_value(key(i % (RECORDS / 1000)), value)?;
        gone.then_some(()).ok_or_else(|| "a value is missing".into())
    })
}

/// The parts with many values under a key.
fn run_values(env: &Env, part: &str) -> Result<u64> {
    match part {
        "few" => return counted_few(env),
        "many" => return counted_many(env),
        "fixed" => return counted_fixed(env),
        _ => put_values(env, RECORDS / 1000, false)?,
    };
    let read = env.read()?;
    let table = read.table(TABLE)?;
    match part {
        "pair" => counted_pair(&table),
        "values" => counted_values(&table),
        "remove" => counted_remove(env),
        other => Err(format!("there is no part called {other}").into()),
    }
}

fn run(part: &str) -> Result<u64> {
    let folder = std::env::temp_dir().join(format!("zubilo-instructions-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    // Little address space is reserved: the tools that count keep accounts of all of it.
    let options = Options::new().durability(Durability::NoSync).reserve(1 << 30);
    let env = options.open(folder.join("store"))?;
    let count = if part == "load" {
        counted_load(&env)?
    } else if part == "sorted" {
        counted_sorted(&env)?
    } else if ["few", "many", "fixed", "pair", "values", "remove"].contains(&part) {
        run_values(&env, part)?
    } else {
        load(&env)?;
        let keys: Vec<[u8; 16]> = (0..READS).map(|i| key(scatter(i) % RECORDS)).collect();
        let read = env.read()?;
        let table = read.table(TABLE)?;
        match part {
            "get" => counted_get(&table, &keys)?,
            "get_many" => counted_get_many(&table, &keys)?,
            "scan" => counted_scan(&table)?,
            "begin" => counted_begin(&env)?,
            "crud" => counted_crud(&env)?,
            "seek" => counted_seek(&table, &keys)?,
            "range" => counted_range(&table, &keys)?,
            "cursor" => counted_cursor(&table, &keys)?,
            "delete" => counted_delete(&env)?,
            "commit" => counted_commit(&env)?,
            "nested" => counted_nested(&env)?,
            other => return Err(format!("there is no part called {other}").into()),
        }
    };
    if std::env::var_os("ZUBILO_SIZES").is_some() {
        println!("bytes {}", env.info()?.used_len);
    }
    env.close()?;
    std::fs::remove_dir_all(folder)?;
    Ok(count)
}

fn main() -> Result {
    // Cargo adds arguments of its own, which begin with dashes.
    for part in std::env::args().skip(1).filter(|argument| !argument.starts_with('-')) {
        println!("operations {}", run(&part)?);
    }
    Ok(())
}
