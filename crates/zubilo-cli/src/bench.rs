//! `zubilo bench`: a quick look at this machine: how long the disk takes to flush, and what the store does
//! on it. The arena of the repository measures with care; this takes seconds.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use fastrand::Rng;
use serde_json::json;
use zubilo::{Durability, Env, Options};

use crate::failure::{Code, Doing, Done, Failure};
use crate::interrupt;
use crate::output::{Progress, count, say, size, table};

/// Options of `bench`.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// The folder whose disk is measured; what is made in it is removed again
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Records to load
    #[arg(long, value_name = "N", default_value_t = 200_000,
          value_parser = clap::value_parser!(u32).range(1000..=100_000_000))]
    records: u32,
    /// Seconds for each kind of commit, and for flushes
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    seconds: f64,
    /// Machine-readable output
    #[arg(long)]
    pub(crate) json: bool,
}

const KEY: usize = 16;
const VALUE: usize = 100;

/// One measurement.
struct Figure {
    name: &'static str,
    what: &'static str,
    /// How often it was done.
    number: u64,
    time: Duration,
    /// Of single ones, where they were timed.
    each: Option<(Duration, Duration)>,
}

impl Figure {
    fn per_second(&self) -> f64 {
        self.number as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

fn key(number: u64) -> [u8; KEY] {
    let mut key = [0; KEY];
    let (high, low) = key.split_at_mut(8);
    high.copy_from_slice(&number.to_be_bytes());
    low.copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key
}

/// Measures, then prints the figures.
pub(crate) fn run(args: &BenchArgs) -> Done {
    if !(0.01..=3600.0).contains(&args.seconds) {
        return Err(Failure::usage("read --seconds", "0.01 to 3600 it may be"));
    }
    interrupt::catch()?;
    let made = tempfile::Builder::new().prefix("zubilo-bench-").tempdir_in(&args.folder);
    let what = || format!("make a folder in {}", args.folder.display());
    let folder = made.map_err(|e| Failure::io(what(), &e))?;
    let figures = measure(args, folder.path());
    let removed = folder.close();
    let (figures, file) = figures?;
    removed.map_err(|e| Failure::io("remove what was made", &e))?;
    let list = figures.iter().map(|f| {
        json!({
            "name": f.name,
            "number": f.number,
            "seconds": f.time.as_secs_f64(),
            "per_second": f.per_second(),
            "median_us": f.each.map(|(median, _)| median.as_secs_f64() * 1e6),
            "p99_us": f.each.map(|(_, p99)| p99.as_secs_f64() * 1e6),
        })
    });
    let summary = json!({
        "folder": args.folder.display().to_string(),
        "records": args.records,
        "key_bytes": KEY,
        "value_bytes": VALUE,
        "file_bytes": file,
        "figures": list.collect::<Vec<_>>(),
    });
    say(args.json, &summary, &show(args, &figures, file))?;
    Ok(Code::Fine)
}

fn show(args: &BenchArgs, figures: &[Figure], file: u64) -> String {
    let mut rows = table(&["", "a second", "median", "99 %"], 1);
    let time = |time: Duration| match time.as_secs_f64() * 1e6 {
        us if us >= 10_000.0 => format!("{:.1} ms", us / 1000.0),
        us => format!("{us:.1} us"),
    };
    for figure in figures {
        let (median, p99) = figure.each.map(|(m, p)| (time(m), time(p))).unwrap_or_default();
        rows.add_row([figure.what.into(), count(figure.per_second() as u64), median, p99]);
    }
    format!(
        "{}\n\n{} records of {KEY} and {VALUE} bytes, {} on disk; one thread, a warm cache. The arena \
         compares with other engines and takes its time.",
        rows.trim_fmt(),
        count(args.records.into()),
        size(file)
    )
}

fn measure(args: &BenchArgs, folder: &Path) -> Done<(Vec<Figure>, u64)> {
    let progress = Progress::records("measuring", 7);
    let store = folder.join("bench.zubilo");
    let records = u64::from(args.records);
    let mut figures = Vec::new();
    let mut done = |figure: Figure| {
        figures.push(figure);
        progress.set(figures.len() as u64);
        match interrupt::came() {
            true => Err(Failure::store("measure", &zubilo::Error::Stopped)),
            false => Ok(()),
        }
    };
    done(flushes(args, folder)?)?;
    let env = open(&store, Durability::NoSync)?;
    done(load(&env, records)?)?;
    let file = env.info().doing("read the figures")?.file_len;
    done(gets(&env, records)?)?;
    done(scan(&env)?)?;
    done(commits(args, &env, "nosync_commits", "commits, not flushed")?)?;
    env.close().doing("close the store")?;
    let env = open(&store, Durability::LAZY)?;
    done(commits(args, &env, "lazy_commits", "commits, flushed in the background")?)?;
    env.close().doing("close the store")?;
    let env = open(&store, Durability::Sync)?;
    done(commits(args, &env, "sync_commits", "commits, durable")?)?;
    env.close().doing("close the store")?;
    Ok((figures, file))
}

fn open(path: &Path, durability: Durability) -> Done<Env> {
    Options::new().durability(durability).open(path).doing("open the store that is measured")
}

/// Repeats it for some time; gives the times of the single ones.
fn repeat(seconds: f64, mut one: impl FnMut(u64) -> Done<()>) -> Done<Vec<Duration>> {
    let begun = Instant::now();
    let end = begun + Duration::from_secs_f64(seconds);
    let mut times = Vec::new();
    while Instant::now() < end && !interrupt::came() {
        let start = Instant::now();
        one(times.len() as u64)?;
        times.push(start.elapsed());
    }
    Ok(times)
}

fn figure(name: &'static str, what: &'static str, mut times: Vec<Duration>) -> Figure {
    let time = times.iter().sum();
    times.sort_unstable();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied();
    let each = at(0.5).zip(at(0.99));
    Figure { name, what, number: times.len() as u64, time, each }
}

/// What the disk needs to keep 4 KiB: no store can be faster with durable commits.
fn flushes(args: &BenchArgs, folder: &Path) -> Done<Figure> {
    let failed = |e: io::Error| Failure::io("flush a file", &e);
    let mut file = File::create(folder.join("flush")).map_err(failed)?;
    let times = repeat(args.seconds, |_| {
        file.write_all(&[7; 4096]).and_then(|()| file.sync_data()).map_err(failed)
    })?;
    Ok(figure("flushes", "the disk alone: 4 KiB written and flushed", times))
}

fn load(env: &Env, records: u64) -> Done<Figure> {
    let begun = Instant::now();
    let mut txn = env.write().doing("begin to write")?;
    let mut table = txn.table_or_create("bench").doing("make a table")?;
    for number in 0..records {
        table.put(key(number), [number as u8; VALUE]).doing("put a record")?;
    }
    txn.commit().doing("commit")?;
    let time = begun.elapsed();
    Ok(Figure {
        name: "sorted_load",
        what: "records loaded in order",
        number: records,
        time,
        each: None,
    })
}

fn gets(env: &Env, records: u64) -> Done<Figure> {
    let mut random = Rng::with_seed(1);
    let read = env.read().doing("begin to read")?;
    let table = read.table("bench").doing("open the table")?;
    let number = records.min(500_000);
    let begun = Instant::now();
    let mut found = 0u64;
    for _ in 0..number {
        let value = table.get(key(random.u64(..records.max(1)))).doing("get a record")?;
        found += u64::from(value.is_some_and(|value| value.len() == VALUE));
    }
    let time = begun.elapsed();
    if found != number {
        return Err(Failure::new(Code::Damaged, "get records", "some were not found"));
    }
    Ok(Figure { name: "random_gets", what: "random look-ups", number, time, each: None })
}

fn scan(env: &Env) -> Done<Figure> {
    let read = env.read().doing("begin to read")?;
    let table = read.table("bench").doing("open the table")?;
    let begun = Instant::now();
    let (mut number, mut bytes) = (0, 0);
    for record in table.iter() {
        let (key, value) = record.doing("read a record")?;
        bytes += key.len() + value.len();
        number += 1;
    }
    let time = begun.elapsed();
    if bytes as u64 != number * (KEY + VALUE) as u64 {
        return Err(Failure::new(
            Code::Damaged,
            "scan",
            "records have other sizes than were stored",
        ));
    }
    Ok(Figure { name: "scan", what: "records scanned", number, time, each: None })
}

fn commits(args: &BenchArgs, env: &Env, name: &'static str, what: &'static str) -> Done<Figure> {
    let mut random = Rng::with_seed(2);
    let records = u64::from(args.records);
    let times = repeat(args.seconds, |n| {
        let mut txn = env.write().doing("begin to write")?;
        let mut table = txn.table("bench").doing("open the table")?;
        table.put(key(random.u64(..records.max(1))), [n as u8; VALUE]).doing("put a record")?;
        txn.commit().doing("commit").map(drop)
    })?;
    Ok(figure(name, what, times))
}
