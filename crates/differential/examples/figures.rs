//! The data model's figures against LMDB, both in one run:
//! `cargo run --release -p differential --example figures -- [FOLDER]`.
//!
//! Rounds alternate between the engines; of each workload the least cost of an engine and the ratio of
//! the two are printed. `ZUBILO_VALUES` and `ZUBILO_ROUNDS` set the sizes. Run it on an idle machine.

use std::path::{Path, PathBuf};
use std::time::Instant;
use support::number;

use differential::bulk::Table;
use zubilo::{Durability, Env, KeyOrder, Options, TableOptions};

/// A bijection of the numbers, so that values come once each and in no order.
fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// Wall and CPU time, in seconds.
#[derive(Clone, Copy)]
struct Cost {
    wall: f64,
    cpu: f64,
}

fn cpu_now() -> f64 {
    // SAFETY: the structure is plain numbers, and the call fills the one that it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn measure(work: impl FnOnce()) -> Cost {
    let (cpu, wall) = (cpu_now(), Instant::now());
    work();
    Cost { wall: wall.elapsed().as_secs_f64(), cpu: cpu_now() - cpu }
}

/// The least of some rounds of both engines, alternating.
fn duel(
    rounds: u64,
    mut ours: impl FnMut() -> Cost,
    mut theirs: impl FnMut() -> Cost,
) -> [Cost; 2] {
    let mut least = [Cost { wall: f64::MAX, cpu: f64::MAX }; 2];
    for _ in 0..rounds {
        for (least, cost) in least.iter_mut().zip([ours(), theirs()]) {
            least.wall = least.wall.min(cost.wall);
            least.cpu = least.cpu.min(cost.cpu);
        }
    }
    least
}

fn print(what: &str, unit: &str, scale: f64, [ours, theirs]: [f64; 2]) {
    let ratio = ours / theirs;
    println!("{what:<44} {:>10.2} {:>10.2} {unit:<8} {ratio:.3}", ours * scale, theirs * scale);
}

fn store(dir: &Path, fixed: bool) -> Env {
    let options = Options::new().durability(Durability::NoSync).dirty_limit(1 << 30);
    let env = options.open(dir.join("zubilo")).expect("open");
    let mut txn = env.write().expect("begin");
    let options = TableOptions::new().value_order(KeyOrder::Bytes);
    let options = if fixed { options.fixed_duplicates() } else { options };
    txn.create_table("t", options).expect("create");
    txn.commit().expect("commit");
    env
}

/// Values under keys, put in random order and committed.
fn fill(env: &Env, lmdb: &Table, values: u64, keys: u64) -> [Cost; 2] {
    let ours = measure(|| {
        let mut txn = env.write().expect("begin");
        let mut table = txn.table("t").expect("table");
        for n in 0..values {
            let n = scattered(n);
            table.put((n % keys).to_be_bytes(), n.to_be_bytes()).expect("put");
        }
        txn.commit().expect("commit");
    });
    let theirs = measure(|| {
        let mut txn = lmdb.begin();
        for n in 0..values {
            let n = scattered(n);
            txn.put(&(n % keys).to_be_bytes(), &n.to_be_bytes());
        }
        txn.commit();
    });
    [ours, theirs]
}

fn folder(of: &Path) -> tempfile::TempDir {
    tempfile::tempdir_in(of).expect("a folder")
}

/// Random duplicates under a thousand keys: cost and size.
fn inserts(place: &Path, values: u64, rounds: u64, fixed: bool) {
    let mut least = [Cost { wall: f64::MAX, cpu: f64::MAX }; 2];
    let mut sizes = [0.0; 3];
    for _ in 0..rounds.min(3) {
        let dir = folder(place);
        let env = store(dir.path(), fixed);
        let lmdb = Table::create(dir.path(), fixed);
        for (least, cost) in least.iter_mut().zip(fill(&env, &lmdb, values, 1000)) {
            least.wall = least.wall.min(cost.wall);
            least.cpu = least.cpu.min(cost.cpu);
        }
        let info = env.info().expect("figures");
        sizes = [info.used_len as f64, info.file_len as f64, lmdb.used_bytes() as f64];
    }
    let what = if fixed { "packed, " } else { "" };
    let per_value = 1e9 / values as f64;
    let name = format!("{what}random values under 1,000 keys, CPU");
    print(&name, "ns/value", per_value, least.map(|c| c.cpu));
    let [used, file, theirs] = sizes;
    let mib = 1.0 / (1 << 20) as f64;
    print(&format!("{what}the same, bytes in use"), "MiB", mib, [used, theirs]);
    print(&format!("{what}the same, length of the file"), "MiB", mib, [file, theirs]);
}

/// All values of one key, one by one and in bulk.
fn reads(place: &Path, values: u64, rounds: u64, fixed: bool) {
    let dir = folder(place);
    let env = store(dir.path(), fixed);
    let lmdb = Table::create(dir.path(), fixed);
    fill(&env, &lmdb, values, 1);
    let key = 0u64.to_be_bytes();
    let read = env.read().expect("begin");
    let table = read.table("t").expect("table");
    let due = (0..values).fold(0u64, |sum, n| sum.wrapping_add(scattered(n)));
    let add = |sum: u64, value: &[u8]| {
        sum.wrapping_add(u64::from_be_bytes(value.try_into().expect("eight bytes")))
    };
    let per_value = 1e9 / values as f64;
    let what = if fixed { "packed, " } else { "" };
    let ours = || {
        measure(|| {
            let all = table.get_all(key).expect("values");
            assert_eq!(all.fold(0, |sum, v| add(sum, v.expect("a value"))), due);
        })
    };
    let theirs = || {
        measure(|| {
            let mut sum = 0;
            lmdb.each_value(&key, |value| sum = add(sum, value));
            assert_eq!(sum, due);
        })
    };
    let costs = duel(rounds, ours, theirs);
    print(&format!("{what}all values of a key"), "ns/value", per_value, costs.map(|c| c.wall));
    if !fixed {
        return;
    }
    let add_all = |sum, bytes: &[u8]| bytes.chunks_exact(8).fold(sum, add);
    let ours = || {
        measure(|| {
            let mut cursor = table.cursor();
            cursor.seek_exact(key).expect("seek");
            let (mut sum, mut next) = (0, cursor.packed_values());
            while let Some(values) = next.expect("values") {
                sum = add_all(sum, values.as_bytes());
                next = cursor.next_packed_values();
            }
            assert_eq!(sum, due);
        })
    };
    let theirs = || {
        measure(|| {
            let mut sum = 0;
            lmdb.each_page_of_values(&key, |bytes| sum = add_all(sum, bytes));
            assert_eq!(sum, due);
        })
    };
    let costs = duel(rounds, ours, theirs);
    print("packed, all values of a key, in bulk", "ns/value", per_value, costs.map(|c| c.wall));
}

/// Nested levels that do nothing.
fn nested(place: &Path, rounds: u64) {
    const TIMES: u32 = 100_000;
    let dir = folder(place);
    let env = store(dir.path(), false);
    let lmdb = Table::create(dir.path(), false);
    let mut txn = env.write().expect("begin");
    txn.table("t").expect("table").put("key", "value").expect("put");
    let mut theirs = lmdb.begin();
    theirs.put(b"key", b"value");
    let ours = || {
        measure(|| {
            for _ in 0..TIMES {
                txn.begin_nested().expect("begin");
                txn.commit_nested().expect("commit");
            }
        })
    };
    let theirs = || measure(|| (0..TIMES).for_each(|_| theirs.begin_and_commit_nested()));
    let costs = duel(rounds, ours, theirs);
    print("nested begin and commit", "ns", 1e9 / f64::from(TIMES), costs.map(|c| c.wall));
}

fn main() {
    let place = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let (values, rounds) = (number("ZUBILO_VALUES", 1_000_000), number("ZUBILO_ROUNDS", 7));
    println!("{values} values, least of {rounds} rounds (of 3 where tables are filled)");
    println!("{:<44} {:>10} {:>10} {:<8} ratio", "", "Zubilo", "LMDB", "");
    for fixed in [false, true] {
        reads(&place, values, rounds, fixed);
        inserts(&place, values, rounds, fixed);
    }
    nested(&place, rounds);
}
