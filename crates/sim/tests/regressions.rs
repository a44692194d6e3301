//! The smallest program for each bug of the protocol that the simulation or a reading of it found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sim::disk::{Call, Effect, SimDisk};
use sim::image::{Choice, Replay, Start};
use sim::model::History;
use sim::rng::Rng;
use zubilo::{Durability, Env, Options, Result};

fn open(disk: &SimDisk, boot: u8, durability: Durability) -> Env {
    let options = Options::new().durability(durability).max_readers(8);
    Env::open_parts(Box::new(disk.clone()), [boot; 16], options).unwrap()
}

fn commit(env: &Env, value: u8) -> Result<u64> {
    let mut txn = env.write()?;
    let mut table = txn.table_or_create("t")?;
    for i in 0..60u32 {
        table.put(i.to_be_bytes(), [value; 100])?;
    }
    Ok(txn.commit()?.0)
}

/// The value of all records; checks the store.
fn value(env: &Env) -> u8 {
    let report = env.check(&mut |_, _| true).unwrap();
    assert!(report.is_ok(), "{:?}", report.problems);
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    let first = table.get(0u32.to_be_bytes()).unwrap().unwrap()[0];
    assert!(table.iter().all(|r| r.unwrap().1 == [first; 100]));
    first
}

/// Runs `work` with a kill at a call of its process; the others go on with the store.
fn killed(disk: &SimDisk, call: Call, after: u64, effect: Effect, work: impl FnOnce()) {
    disk.plan(call, after, effect, false);
    assert!(catch_unwind(AssertUnwindSafe(work)).is_err(), "nothing was killed");
    assert!(disk.unplan());
}

/// The disk after a power cut at the end of the log.
fn power_cut(disk: &SimDisk, choice: Choice) -> SimDisk {
    let start = Start {
        durable: Vec::new(),
        exists: false,
        durable_txn: 0,
        acked_txn: 0,
        attempted: 1,
        history: History::new(),
    };
    let events = disk.events();
    let mut replay = Replay::new(&start, &events);
    while replay.step() {}
    SimDisk::new(&replay.image(choice, 3 * 4096, &mut Rng::new(1)), false)
}

/// A panic inside a commit left the writer lock held and the books half-way.
#[test]
fn a_commit_that_unwinds_changes_nothing() {
    for (call, after) in [(Call::Write, 0), (Call::Write, 1), (Call::Sync, 0), (Call::Grow, 0)] {
        let disk = SimDisk::new(&[], false);
        let env = open(&disk, 1, Durability::Sync);
        commit(&env, 1).unwrap();
        let big = || {
            let mut txn = env.write().unwrap();
            txn.table_or_create("t").unwrap().put("large", vec![7; 1 << 20]).unwrap();
            let _ = txn.commit();
        };
        killed(&disk, call, after, Effect::KillBefore, big);
        for i in 2..5 {
            commit(&env, i).unwrap();
            assert_eq!(value(&env), i);
        }
    }
}

/// A checkpoint that ended in the middle of a commit let it promise a digest that it had not
/// calculated: the commit was acknowledged and not believed at the next open.
#[test]
fn a_checkpoint_in_the_middle_of_a_commit() {
    let disk = SimDisk::new(&[], false);
    let env = open(&disk, 1, Durability::NoSync);
    commit(&env, 1).unwrap();
    env.close_without_sync();
    let env = open(&disk, 1, Durability::Sync);
    let inside = env.clone();
    disk.set_hook(Some(Box::new(move |call| {
        if call == Call::Write {
            // Refused where the commit holds the lock of the metas.
            let _ = inside.sync();
        }
    })));
    commit(&env, 2).unwrap();
    disk.set_hook(None);
    drop(env);
    assert_eq!(value(&open(&power_cut(&disk, Choice::None), 2, Durability::Sync)), 2);
}
