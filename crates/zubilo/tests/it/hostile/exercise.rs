//! Everything that can be done with a store, on one that may be damaged.

use std::time::Duration;

use zubilo::{
    CompactOptions, Durability, Env, Error, Options, ReadTable, Result, Salvage, VerifyReads,
    WriteTxn,
};

use crate::common::Rng;
use crate::common::memory::MemoryFile;

/// No damaged store of this size can show more records than this in one pass.
const RECORDS_MAX: usize = 2_000_000;

/// Tries all on a store; returns whether it could be opened.
pub(super) fn all(file: &MemoryFile, rng: &mut Rng) -> bool {
    salvages(file.image());
    let verify = rng.pick(&[VerifyReads::Never, VerifyReads::Never, VerifyReads::FirstTouch]);
    let durability = rng.pick(&[Durability::Sync, Durability::NoSync]);
    let options = Options::new().durability(durability).verify_reads(verify);
    let options = if rng.one_in(4) { options.dirty_limit(40 << 10) } else { options };
    let Some(env) = fine(file.open(options)) else { return false };
    reads(&env, rng);
    full_check(&env);
    for _ in 0..2 {
        writes(&env, rng);
        reads(&env, rng);
    }
    full_check(&env);
    copies(&env);
    let steps = CompactOptions::new().step(64 << 10, Duration::from_secs(1)).pause(Duration::ZERO);
    fine(env.compact(&steps, &mut |_, _| true));
    fine(env.info().map(drop));
    fine(env.sync());
    env.close_without_sync();
    true
}

/// The value, or none for an error that a damaged store may give; others are mistakes.
fn fine<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(
            Error::Corrupted { .. }
            | Error::NotAStore { .. }
            | Error::Version { .. }
            | Error::Invalid(_)
            | Error::Incompatible { .. }
            | Error::NoSuchTable { .. }
            | Error::TableExists { .. }
            | Error::TxnBroken
            | Error::KeyTooLong { .. }
            // The table claims to hold many values under a key.
            | Error::ValueTooLong { .. }
            | Error::MapFull { .. },
        ) => None,
        Err(other) => panic!("an error that damage does not explain: {other:?}"),
    }
}

fn salvages(bytes: Vec<u8>) {
    let Some(salvage) = fine(Salvage::of_bytes(bytes)) else { return };
    for table in salvage.tables() {
        let mut left = RECORDS_MAX;
        let counted = salvage.records(table, &mut |_, _| {
            left = left.checked_sub(1).expect("more records than there can be");
            Ok(())
        });
        fine(counted);
    }
}

fn full_check(env: &Env) {
    fine(env.check(&mut |_, _| true));
    fine(env.walk_pages(&mut |_| true));
    fine(env.space());
}

fn copies(env: &Env) {
    for compact in [false, true] {
        fine(env.copy_to_writer(&mut std::io::sink(), compact, &mut |_, _| true));
    }
}

fn reads(env: &Env, rng: &mut Rng) {
    let Some(txn) = fine(env.read()) else { return };
    let Some(names) = fine(txn.tables()) else { return };
    for name in names.iter().take(50) {
        let Some(table) = fine(txn.table(name)) else { continue };
        read_table(&table, rng);
    }
}

fn read_table(table: &ReadTable<'_>, rng: &mut Rng) {
    let mut keys = Vec::new();
    let mut seen = 0;
    for record in table.iter() {
        let Some((key, value)) = fine(record) else { break };
        touch(value);
        if seen % 16 == 0 && keys.len() < 100 {
            keys.push(key.to_vec());
        }
        seen += 1;
        assert!(seen < RECORDS_MAX, "a walk in circles");
    }
    let backwards = table.iter().rev().map_while(fine).take(RECORDS_MAX).count();
    assert!(backwards < RECORDS_MAX, "a walk in circles");
    keys.push(rng.bytes(5));
    for key in &keys {
        if let Some(Some(value)) = fine(table.get(key)) {
            touch(value);
        }
    }
    fine(table.get_many(&keys));
    let mut both = table.range(&keys[0][..]..);
    for _ in 0..50 {
        both.next().map(fine);
        both.next_back().map(fine);
    }
    let mut cursor = table.cursor();
    fine(cursor.seek(&keys[keys.len() / 2]));
    for _ in 0..30 {
        fine(cursor.next());
    }
    for _ in 0..60 {
        fine(cursor.prev());
    }
    fine(cursor.last());
    fine(cursor.seek_exact(&keys[0]));
    table.prefix("some").take(20).for_each(|r| {
        fine(r);
    });
    read_values(table, &keys);
    count(table, &keys, rng);
}

/// The values of keys, where there may be many.
fn read_values(table: &ReadTable<'_>, keys: &[Vec<u8>]) {
    for key in keys.iter().take(20) {
        fine(table.count(key));
        fine(table.get_with_count(key));
        fine(table.contains(key, [1; 8]));
        let Some(mut values) = fine(table.get_all(key)) else { continue };
        let seen = values.by_ref().map_while(fine).inspect(|v| touch(v)).take(RECORDS_MAX).count();
        assert!(seen < RECORDS_MAX, "a walk in circles");
        if let Some(values) = fine(table.get_all(key)) {
            values.rev().map_while(fine).take(100).for_each(touch);
        }
        let mut cursor = table.cursor();
        fine(cursor.seek_value(key, [7; 8]));
        for _ in 0..20 {
            fine(cursor.next_value());
            fine(cursor.next_packed_values());
            fine(cursor.prev_key());
            fine(cursor.last_value());
            fine(cursor.count());
        }
    }
}

/// Ranks, where the table has them.
fn count(table: &ReadTable<'_>, keys: &[Vec<u8>], rng: &mut Rng) {
    for _ in 0..20 {
        fine(table.nth(rng.below(2 * table.len().min(1 << 20))));
        let key = &keys[rng.below(keys.len() as u64) as usize];
        fine(table.rank(key));
        fine(table.rank_of_pair(key, [3; 8]));
        fine(table.nth_value(key, rng.below(40)));
        fine(table.range_len(key.as_slice()..));
    }
}

fn touch(value: &[u8]) {
    std::hint::black_box(value.iter().fold(0u8, |all, byte| all ^ byte));
}

fn writes(env: &Env, rng: &mut Rng) {
    let Some(mut txn) = fine(env.write()) else { return };
    let mut names = fine(txn.tables()).unwrap_or_default();
    names.truncate(20);
    names.push(b"new".to_vec());
    for name in &names {
        if rng.one_in(3) {
            fine(txn.nested(|txn| {
                change(txn, name, rng);
                if rng.one_in(2) { Err(Error::TxnBroken) } else { Ok(()) }
            }));
        } else {
            change(&mut txn, name, rng);
        }
    }
    if rng.one_in(5) {
        txn.abort()
    } else {
        fine(txn.commit().map(|_| ()));
    }
}

fn change(txn: &mut WriteTxn, name: &[u8], rng: &mut Rng) {
    match rng.below(12) {
        0 => drop(fine(txn.drop_table(name))),
        1 => drop(fine(txn.rename_table(name, "renamed"))),
        2 => drop(fine(txn.table(name).and_then(|mut t| t.clear()))),
        _ => drop(fine(change_records(txn, name, rng))),
    }
}

fn change_records(txn: &mut WriteTxn, name: &[u8], rng: &mut Rng) -> Result<()> {
    let mut table = txn.table_or_create(name)?;
    let known: Vec<Vec<u8>> =
        table.iter().map_while(|r| r.ok().map(|(k, _)| k.to_vec())).take(RECORDS_MAX).collect();
    assert!(known.len() < RECORDS_MAX, "a walk in circles");
    for _ in 0..rng.below(40) {
        let key = match known.len() {
            0 => rng.bytes(8),
            n => known[rng.below(n as u64) as usize].clone(),
        };
        let len = rng.pick(&[0, 10, 100, 900, 9000]);
        match rng.below(16) {
            0..=4 => table.put(&key, rng.bytes(len))?,
            // Of the size that values have in the tables where all have one.
            12 => table.put(&key, rng.next().to_le_bytes())?,
            13 | 14 => {
                let value = table.get_all(&key)?.next().transpose()?.map(<[u8]>::to_vec);
                table.delete_value(&key, value.unwrap_or_default()).map(drop)?;
            }
            15 => {
                table.replace_value(&key, rng.next().to_le_bytes(), [5; 8]).map(drop)?;
                match table.replace(&key, [9; 8]) {
                    Err(Error::ManyValues { .. }) => {}
                    other => other.map(drop)?,
                }
            }
            5..=8 => table.delete(&key).map(|_| ())?,
            9 => {
                let longer = [&key[..], &[rng.next() as u8; 3]].concat();
                table.insert(&longer[..longer.len().min(900)], rng.bytes(len)).map(|_| ())?;
            }
            10 => table.reserve(&key, len)?.fill(1),
            _ => {
                let other = rng.bytes(6);
                let (low, high) = if key < other { (key, other) } else { (other, key) };
                table.delete_range(low..high).map(|_| ())?;
            }
        }
    }
    table.cursor()?.last()?;
    if table.options().is_counted() {
        table.nth(table.len() / 2)?;
    }
    Ok(())
}
