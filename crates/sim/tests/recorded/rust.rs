//! The program of the Rust interface: what it does, and what must be found after it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use support::Rng;
use zubilo::{Durability, Env, Error, Options, TableOptions, WriteTxn};

use crate::Marks;
use crate::disk::Disk;

pub(crate) const MODES: [&str; 5] = ["sync", "log", "lazy", "lazy-log", "nosync"];
pub(crate) const COMMITS: u64 = 70;
const RING: u64 = 30;

fn options(mode: &str) -> Options {
    let durability = match mode {
        "sync" | "log" => Durability::Sync,
        "lazy" | "lazy-log" => {
            Durability::Lazy { sync_bytes: 64 << 10, sync_period: Duration::from_millis(20) }
        }
        _ => Durability::NoSync,
    };
    // What goes through a map cannot be recorded.
    let options = Options::new().durability(durability).writable_map(false).dirty_limit(100 << 10);
    if mode.ends_with("log") { options.redo_log(1 << 20) } else { options }
}

fn value(n: u64) -> Vec<u8> {
    let seed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let len = if n.is_multiple_of(9) { 30_000 } else { 10 + seed % 700 };
    (0..len).map(|i| (seed >> (i % 57)) as u8 ^ i as u8).collect()
}

/// What the tables hold after commit `n`, of those named by the key.
fn expected(n: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all = BTreeMap::new();
    for k in 1..=n {
        all.insert((k % RING).to_be_bytes().to_vec(), value(k));
        if k.is_multiple_of(14) {
            (0..150u64).for_each(|i| {
                all.insert([b"bulk".as_slice(), &i.to_be_bytes()].concat(), value(k + i * 9 + 1));
            });
        }
        if k.is_multiple_of(17) {
            all.retain(|key, _| !key.starts_with(b"bulk"));
        }
    }
    all.insert(b"last".to_vec(), n.to_be_bytes().to_vec());
    all
}

fn apply(txn: &mut WriteTxn, n: u64) -> zubilo::Result<()> {
    let mut table = txn.table_or_create("t")?;
    table.put((n % RING).to_be_bytes(), value(n))?;
    table.put("last", n.to_be_bytes())?;
    if n.is_multiple_of(14) {
        for i in 0..150u64 {
            table.put([b"bulk".as_slice(), &i.to_be_bytes()].concat(), value(n + i * 9 + 1))?;
        }
    }
    if n.is_multiple_of(17) {
        table.delete_range(&b"bulk"[..]..&b"bulm"[..])?;
    }
    if n.is_multiple_of(5) {
        let undone = txn.nested(|txn| {
            txn.create_table("undone", TableOptions::new())?.put("k", vec![1; 9000])?;
            Err::<(), _>(Error::Stopped)
        });
        assert!(undone.is_err());
    }
    Ok(())
}

pub(crate) fn live(dir: &Path, mode: &str, marks: &mut Marks) {
    let env = options(mode).open(dir.join("store")).expect("open");
    let mut rng = Rng::new(5);
    for n in 1..=COMMITS {
        marks.say('T', n);
        let held = rng.one_in(4).then(|| env.read().expect("read"));
        let mut txn = env.write().expect("write");
        apply(&mut txn, n).expect("change");
        txn.commit().expect("commit");
        let is_durable = matches!(mode, "sync" | "log");
        marks.say(if is_durable { 'D' } else { 'A' }, n);
        if !is_durable && rng.one_in(if mode == "lazy-log" { 2 } else { 8 }) {
            env.sync().expect("sync");
            marks.say('D', n);
        }
        drop(held);
    }
    env.close().expect("close");
    marks.say('D', COMMITS);
}

/// The newest commit, of which all is there and nothing else.
fn newest(env: &Env) -> u64 {
    let read = env.read().expect("read");
    if read.tables().expect("tables").is_empty() {
        return 0;
    }
    let table = read.table("t").expect("the table");
    let all: BTreeMap<_, _> =
        table.iter().map(|r| r.map(|(k, v)| (k.to_vec(), v.to_vec())).expect("a record")).collect();
    let last = all.get(&b"last"[..]).expect("the number");
    let n = u64::from_be_bytes(last.as_slice().try_into().expect("eight bytes"));
    assert!(all == expected(n), "commit {n} is not what it was");
    n
}

pub(crate) fn sound(env: &Env) {
    let report = env.check(&mut |_, _| true).expect("check");
    assert!(report.is_ok(), "{:?}", report.problems);
}

pub(crate) fn judge(disk: &Disk, mode: &str, path: &Path) {
    let env = options(mode).open(path).expect("an image of the disk opens");
    let found = newest(&env);
    assert!((disk.floor..=disk.tried).contains(&found), "{found}: {}..{}", disk.floor, disk.tried);
    sound(&env);
    if found < COMMITS {
        let mut txn = env.write().expect("write");
        apply(&mut txn, found + 1).expect("change");
        txn.commit().expect("commit");
    }
    env.close().expect("close");
    let env = options(mode).open(path).expect("it opens again");
    assert_eq!(newest(&env), (found + 1).min(COMMITS));
    sound(&env);
}
