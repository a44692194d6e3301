//! A durable queue that many threads push to and pop from. Each push is on disk when it returns,
//! yet far fewer flushes than pushes are made: `Env::update` gathers the closures that come while
//! a commit is under way, and they share the next one.
//!
//! `cargo run --release --example queue_group_commit`

use std::collections::BTreeSet;
use std::error::Error;
use std::thread;

use zubilo::{Env, Options, Result, WriteTxn};

const QUEUE: &str = "queue";

/// Puts a job after all others; gives its number.
fn push(txn: &mut WriteTxn, job: &[u8]) -> Result<u64> {
    let mut queue = txn.table_or_create(QUEUE)?;
    let last = queue.cursor()?.last()?.and_then(|(key, _)| key.first_chunk().copied());
    let number = last.map_or(0, |key| u64::from_be_bytes(key) + 1);
    queue.put(number.to_be_bytes(), job)?;
    Ok(number)
}

/// Takes the first job, if there is one.
fn pop(txn: &mut WriteTxn) -> Result<Option<Vec<u8>>> {
    let mut queue = txn.table_or_create(QUEUE)?;
    let first = queue.cursor()?.first()?.map(|(key, job)| (key.to_vec(), job.to_vec()));
    let Some((key, job)) = first else { return Ok(None) };
    queue.delete(key)?;
    Ok(Some(job))
}

/// Pops until the queue is empty. A job is popped in a commit of its own, so no two workers get
/// the same one, and a worker that dies later has lost it: take that into account.
fn drain(env: &Env) -> Result<Vec<Vec<u8>>> {
    let mut jobs = Vec::new();
    while let Some(job) = env.update(pop)? {
        jobs.push(job);
    }
    Ok(jobs)
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    const THREADS: u64 = 8;
    const PUSHES: u64 = 25;
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("queue.zubilo");
    let env = Options::new().open(&path)?;

    let before = env.info()?.newest;
    thread::scope(|scope| -> Result<()> {
        let workers: Vec<_> = (0..THREADS)
            .map(|t| {
                let env = &env;
                scope.spawn(move || {
                    (0..PUSHES).try_for_each(|i| {
                        let job = format!("job {i} of thread {t}");
                        env.update(|txn| push(txn, job.as_bytes())).map(drop)
                    })
                })
            })
            .collect();
        workers.into_iter().try_for_each(|w| w.join().expect("a worker panicked"))
    })?;
    let commits = env.info()?.newest.0 - before.0;
    println!("{} durable pushes in {commits} commits", THREADS * PUSHES);
    assert!(commits <= THREADS * PUSHES);

    // An error undoes the closure that gave it, and no other that shares its commit.
    let refused: Result<()> = env.update(|txn| {
        push(txn, b"never seen")?;
        Err(zubilo::Error::Stopped)
    });
    assert!(refused.is_err());

    // All is there after a restart.
    env.close()?;
    let env = Options::new().open(&path)?;
    assert_eq!(env.read()?.table(QUEUE)?.len(), THREADS * PUSHES);

    let jobs = thread::scope(|scope| -> Result<Vec<Vec<u8>>> {
        let env = &env;
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(move || drain(env))).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().expect("a worker panicked")?);
        }
        Ok(all)
    })?;
    let distinct: BTreeSet<_> = jobs.iter().collect();
    assert_eq!(jobs.len() as u64, THREADS * PUSHES, "every job was popped");
    assert_eq!(distinct.len(), jobs.len(), "and none twice");
    assert!(env.read()?.table(QUEUE)?.is_empty());
    Ok(())
}
