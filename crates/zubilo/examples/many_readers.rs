//! Readers in threads and in processes, beside a writer that moves money between accounts. Every
//! snapshot that any of them takes holds the same sum, and no reader ever waits.
//!
//! The program starts itself again for the reading processes: `many_readers read <file>`.
//!
//! `cargo run --release --example many_readers`

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use zubilo::{Durability, Env, Options, ReadTxn, Result};

const ACCOUNTS: u64 = 100;
const SUM: u64 = 100_000;
const TRANSFERS: u64 = 3000;

fn balance(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn fill(env: &Env) -> Result<()> {
    let mut write = env.write()?;
    let mut accounts = write.table_or_create("accounts")?;
    for id in 0..ACCOUNTS {
        accounts.put(id.to_be_bytes(), (SUM / ACCOUNTS).to_le_bytes())?;
    }
    write.commit().map(drop)
}

fn transfer(env: &Env, from: u64, to: u64, amount: u64) -> Result<()> {
    let mut write = env.write()?;
    let mut accounts = write.table("accounts")?;
    for (id, change) in [(from, amount.wrapping_neg()), (to, amount)] {
        let now = accounts.get(id.to_be_bytes())?.map_or(0, balance);
        accounts.put(id.to_be_bytes(), now.wrapping_add(change).to_le_bytes())?;
    }
    write.commit().map(drop)
}

/// The sum over all accounts in one snapshot.
fn sum(read: &ReadTxn) -> Result<u64> {
    let mut sum = 0u64;
    for record in read.table("accounts")?.iter() {
        sum = sum.wrapping_add(balance(record?.1));
    }
    Ok(sum)
}

/// Takes snapshots until `done` says so; gives their number.
fn watch(env: &Env, done: impl Fn() -> bool) -> Result<u64> {
    let mut read = env.read()?;
    let mut snapshots = 0;
    while !done() {
        assert_eq!(sum(&read)?, SUM, "a torn snapshot");
        snapshots += 1;
        read.refresh()?;
    }
    Ok(snapshots)
}

/// A reading process: watches for a while, then ends.
fn read_elsewhere(path: &Path) -> Result<()> {
    let env = Options::new().read_only(true).open(path)?;
    let end = Instant::now() + Duration::from_millis(200);
    let snapshots = watch(&env, || Instant::now() > end)?;
    println!("process {}: {snapshots} snapshots", std::process::id());
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    if let [_, command, path] = &args[..]
        && command == "read"
    {
        return Ok(read_elsewhere(Path::new(path))?);
    }

    let dir = tempfile::tempdir()?;
    let path = dir.path().join("bank.zubilo");
    let env = Options::new().durability(Durability::LAZY).open(&path)?;
    fill(&env)?;

    // This one stays on the first state, however much is committed meanwhile. It holds back the
    // pages of its own snapshot only, so the file does not grow with the number of commits.
    let stuck = env.read()?;

    let mut children = Vec::new();
    for _ in 0..2 {
        let mut reader = Command::new(std::env::current_exe()?);
        children.push(reader.arg("read").arg(&path).stdout(Stdio::inherit()).spawn()?);
    }
    let done = AtomicBool::new(false);
    let is_done = || done.load(Ordering::Relaxed);
    thread::scope(|scope| -> Result<()> {
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(|| watch(&env, is_done))).collect();
        let written = (0..TRANSFERS)
            .try_for_each(|i| transfer(&env, i % ACCOUNTS, (i * 7 + 1) % ACCOUNTS, i % 13));
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            println!("thread: {} snapshots", reader.join().expect("a reader panicked")?);
        }
        written
    })?;
    for mut child in children {
        assert!(child.wait()?.success(), "a reading process found a torn snapshot");
    }

    assert_eq!(stuck.lag(), TRANSFERS);
    assert_eq!(sum(&stuck)?, SUM);
    let file_len = env.info()?.file_len;
    println!("{TRANSFERS} commits, file of {} KiB", file_len >> 10);
    assert!(file_len < 8 << 20);
    Ok(())
}
