//! Time of the calls that programs make most: look-ups, walks, changes, begins and ends, on a store
//! that the kernel has cached and that is not flushed.
//!
//! `instructions` counts the same parts; this tells what they take.

#![allow(missing_docs)]

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use zubilo::{Durability, Env, Options, WriteTable};

const RECORDS: u64 = 100_000;
const TABLE: &str = "records";
/// Changes in one transaction.
const BATCH: u64 = 1000;

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

/// 16 bytes in the order of the numbers.
fn sorted(i: u64) -> [u8; 16] {
    u128::from(i).to_be_bytes()
}

/// A store in a folder of its own, removed with it.
struct Place {
    env: Env,
    folder: PathBuf,
}

impl Place {
    fn new(name: &str, records: u64) -> Place {
        let folder = std::env::temp_dir().join(format!("zubilo-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let options = Options::new().durability(Durability::NoSync);
        let env = options.open(folder.join("store")).unwrap();
        let place = Place { env, folder };
        place.write(|_| {});
        for first in (0..records).step_by(BATCH as usize) {
            place.write(|table| {
                (first..first + BATCH).for_each(|i| table.put(random(i), [i as u8; 100]).unwrap());
            });
        }
        place
    }

    /// One transaction on the table.
    fn write(&self, work: impl FnOnce(&mut WriteTable<'_>)) {
        let mut write = self.env.write().unwrap();
        work(&mut write.table_or_create(TABLE).unwrap());
        write.commit().unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A benchmark that failed to clean up has still measured.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn reads(c: &mut Criterion) {
    let place = Place::new("reads", RECORDS);
    let read = place.env.read().unwrap();
    let table = read.table(TABLE).unwrap();
    let keys: Vec<[u8; 16]> = (0..1 << 14).map(|i| random(scatter(i) % RECORDS)).collect();
    let mut next = keys.iter().cycle();
    c.bench_function("get", |b| {
        b.iter(|| black_box(table.get(next.next().unwrap()).unwrap().unwrap().len()));
    });
    let mut batches = keys.chunks_exact(32).cycle();
    let mut group = c.benchmark_group("batched");
    group.throughput(Throughput::Elements(32));
    group.bench_function("get_many of 32", |b| {
        b.iter(|| {
            let mut sum = 0;
            let see = |_, value: Option<&[u8]>| sum += value.unwrap().len();
            table.get_many_with(batches.next().unwrap(), see).unwrap();
            black_box(sum)
        });
    });
    group.finish();
    c.bench_function("seek and 10 records", |b| {
        b.iter(|| {
            let records = table.range(&next.next().unwrap()[..]..);
            black_box(records.take(10).map(|r| r.unwrap().1.len()).sum::<usize>())
        });
    });
    let mut group = c.benchmark_group("walk");
    group.throughput(Throughput::Elements(RECORDS));
    group.bench_function("all records", |b| {
        b.iter(|| black_box(table.iter().map(|r| r.unwrap().1.len()).sum::<usize>()));
    });
    group.finish();
}

fn begins(c: &mut Criterion) {
    let place = Place::new("begins", 1000);
    let mut reader = place.env.reader().unwrap();
    c.bench_function("begin and end of a read, reader kept", |b| {
        b.iter(|| {
            black_box(&reader.begin().unwrap());
        });
    });
    c.bench_function("begin and end of a read", |b| {
        b.iter(|| black_box(place.env.read().unwrap().id()));
    });
    c.bench_function("begin and end of a write", |b| {
        b.iter(|| place.env.write().unwrap().abort());
    });
    let mut i = 0;
    c.bench_function("commit of one change, NOSYNC", |b| {
        b.iter(|| {
            i = (i + 1) % 1000;
            place.write(|table| table.put(random(i), [i as u8; 100]).unwrap());
        });
    });
    let mut write = place.env.write().unwrap();
    c.bench_function("nested begin and commit", |b| {
        b.iter(|| {
            write.begin_nested().unwrap();
            write.commit_nested().unwrap();
        });
    });
    c.bench_function("nested with one change", |b| {
        b.iter(|| {
            i = (i + 1) % 1000;
            write.begin_nested().unwrap();
            write.table(TABLE).unwrap().put(random(i), [i as u8; 100]).unwrap();
            write.commit_nested().unwrap();
        });
    });
}

/// Time of so many changes in transactions of `BATCH`, begin and commit included; `prepare` gives a
/// new store when the last one is used up.
fn changes(
    count: u64,
    room: u64,
    prepare: impl Fn() -> Place,
    change: impl Fn(&mut WriteTable<'_>, u64),
) -> Duration {
    let (mut took, mut done) = (Duration::ZERO, 0);
    while done < count {
        let place = prepare();
        let last = (done + room).min(count);
        let mut i = 0;
        while done < last {
            let these = BATCH.min(last - done);
            let began = Instant::now();
            place.write(|table| (i..i + these).for_each(|i| change(table, i)));
            took += began.elapsed();
            (done, i) = (done + these, i + these);
        }
    }
    took
}

fn writes(c: &mut Criterion) {
    let mut group = c.benchmark_group("in transactions of 1,000");
    group.throughput(Throughput::Elements(1)).sample_size(10);
    let empty = || Place::new("writes", 0);
    let full = || Place::new("writes", RECORDS);
    type Change = fn(&mut WriteTable<'_>, u64);
    let put_sorted: Change = |table, i| table.put(sorted(i), [i as u8; 100]).unwrap();
    let put_random: Change = |table, i| table.put(random(i), [i as u8; 100]).unwrap();
    let delete: Change = |table, i| assert!(table.delete(random(i)).unwrap());
    group.bench_function("put, sorted", |b| {
        b.iter_custom(|count| changes(count, RECORDS, empty, put_sorted));
    });
    group.bench_function("put, random", |b| {
        b.iter_custom(|count| changes(count, RECORDS, empty, put_random));
    });
    group.bench_function("put again, random", |b| {
        b.iter_custom(|count| changes(count, RECORDS, full, put_random));
    });
    group.bench_function("delete, random", |b| {
        b.iter_custom(|count| changes(count, RECORDS, full, delete));
    });
    group.finish();
}

criterion_group!(benches, reads, begins, writes);
criterion_main!(benches);
