//! The smallest program for each bug of the protocol that the simulation or a reading of it found.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sim::disk::{Call, Effect, Event, SimDisk};
use sim::image::{Choice, Replay, Start};
use support::Rng;
use zubilo::{Durability, Env, Error, Level, Options, Result};

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
    let start = Start::nothing();
    let events = disk.events();
    let mut replay = Replay::new(&start, &events);
    while replay.step() {}
    SimDisk::new(&replay.image(choice, 4 * 4096, &mut Rng::new(1)), false)
}

/// The disk after a power cut at the end of the log with everything on it but what was written later
/// over the first thing that is not flushed and lies among the metas.
fn power_cut_with_old_meta(disk: &SimDisk) -> SimDisk {
    let events = disk.events();
    let flushed = events.iter().rposition(|e| matches!(**e, Event::Sync { .. })).unwrap();
    let writes = events[flushed..].iter().filter_map(|e| match **e {
        Event::Write { at, .. } => Some(at),
        _ => None,
    });
    let writes: Vec<u64> = writes.collect();
    let old = writes.iter().position(|at| *at < 4 * 4096).unwrap();
    let later = |(n, at): (usize, &u64)| u64::from(n <= old || *at != writes[old]) << n;
    let bits = writes.iter().enumerate().map(later).sum();
    power_cut(disk, Choice::Exactly(bits))
}

/// A panic inside a commit left the writer lock held and the space map half-way.
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
/// calculated: the commit was acknowledged and not trusted at the next open.
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

/// A checkpoint whose process was killed left a pending meta that nothing pinned: the others used
/// its pages again, and after a power cut it was trusted.
#[test]
fn a_killed_checkpoint_keeps_its_pages() {
    for effect in [Effect::KillBefore, Effect::KillAfter] {
        let disk = SimDisk::new(&[], false);
        let env = open(&disk, 1, Durability::NoSync);
        commit(&env, 1).unwrap();
        env.sync().unwrap();
        commit(&env, 2).unwrap();
        killed(&disk, Call::Write, 0, effect, || drop(env.sync()));
        for i in 3..8 {
            commit(&env, i).unwrap();
        }
        let found = value(&open(&power_cut(&disk, Choice::All), 2, Durability::Sync));
        assert!(found == 1 || found == 2, "{found}");
        // What the killed one began does not stay for ever.
        env.sync().unwrap();
        env.sync().unwrap();
        assert_eq!(value(&open(&power_cut(&disk, Choice::None), 2, Durability::Sync)), 7);
    }
}

/// Steady and pending metas in their slots, and the newest one overwritten by a process that was
/// killed before it published: the newest commit had no meta any more.
#[test]
fn the_newest_meta_survives_the_death_of_its_overwriter() {
    for effect in [Effect::KillBefore, Effect::KillAfter] {
        let disk = SimDisk::new(&[], false);
        let env = open(&disk, 1, Durability::NoSync);
        commit(&env, 1).unwrap();
        env.sync().unwrap();
        commit(&env, 2).unwrap();
        // Pending and no more.
        killed(&disk, Call::Write, 0, Effect::KillAfter, || drop(env.sync()));
        commit(&env, 3).unwrap();
        killed(&disk, Call::Write, 1, effect, || drop(commit(&env, 4)));
        assert!(env.info().unwrap().newest.0 >= 4);
        let found = value(&env);
        assert!(found == 3 || found == 4, "{found}");
        commit(&env, 5).unwrap();
        assert_eq!(value(&env), 5);
        env.sync().unwrap();
        assert_eq!(value(&open(&power_cut(&disk, Choice::None), 2, Durability::Sync)), 5);
    }
}

/// After the write of a meta had failed, the newest meta was looked for in the wrong slot.
#[test]
fn a_failed_write_of_a_meta_does_no_harm() {
    for effect in [Effect::Fail(libc::EIO), Effect::Short(libc::ENOSPC)] {
        let disk = SimDisk::new(&[], false);
        let env = open(&disk, 1, Durability::NoSync);
        for i in 1..9 {
            // The first one after an attempt that failed is flushed.
            (0..2).for_each(|_| _ = commit(&env, i).unwrap());
            disk.plan(Call::Write, 0, effect, false);
            assert!(matches!(env.sync(), Err(Error::Io { .. })));
            assert_eq!(value(&env), i);
            disk.plan(Call::Write, 1, effect, false);
            assert!(matches!(commit(&env, 99), Err(Error::Io { .. })));
            assert_eq!(value(&env), i);
            if i % 2 == 0 {
                env.sync().unwrap();
            }
        }
    }
}

/// A creator killed before it had flushed the directory left that undone for ever: a power cut took
/// the file with all commits.
#[test]
fn a_killed_creation_is_completed() {
    let disk = SimDisk::new(&[], false);
    killed(&disk, Call::SyncDirectory, 0, Effect::KillBefore, || {
        drop(open(&disk, 1, Durability::Sync));
    });
    commit(&open(&disk, 1, Durability::Sync), 1).unwrap();
    assert_eq!(value(&open(&power_cut(&disk, Choice::None), 2, Durability::Sync)), 1);
}

/// A flush of another thread failed in the middle of a commit; the commit's own flush succeeded
/// afterwards, which proves nothing, and it was acknowledged.
#[test]
fn a_failed_flush_of_another_thread_is_not_overlooked() {
    let disk = SimDisk::new(&[], false);
    let env = open(&disk, 1, Durability::NoSync);
    commit(&env, 1).unwrap();
    env.close_without_sync();
    let env = open(&disk, 1, Durability::Sync);
    let (inside, failing) = (env.clone(), disk.clone());
    disk.set_hook(Some(Box::new(move |call| {
        if call == Call::Write {
            failing.plan(Call::Sync, 0, Effect::Fail(libc::EIO), false);
            // Refused where the commit holds the lock of the metas.
            let _ = inside.sync();
            failing.unplan();
        }
    })));
    assert!(matches!(commit(&env, 2), Err(Error::Poisoned { .. } | Error::Io { .. })));
    assert!(matches!(env.write(), Err(Error::Poisoned { .. })));
    disk.set_hook(None);
    assert_eq!(value(&env), 1);
}

/// A file that could not be cut failed a sync that had done its work.
#[test]
fn a_tail_that_cannot_be_cut_fails_nothing() {
    let disk = SimDisk::new(&[], false);
    let env = open(&disk, 1, Durability::NoSync);
    commit(&env, 1).unwrap();
    let mut txn = env.write().unwrap();
    txn.table_or_create("large").unwrap().put("key", vec![1; 4 << 20]).unwrap();
    txn.commit().unwrap();
    env.sync().unwrap();
    let mut txn = env.write().unwrap();
    txn.table("large").unwrap().clear().unwrap();
    txn.commit().unwrap();
    let cut = || disk.events().iter().any(|e| matches!(**e, Event::Truncate(_)));
    for i in 2..8 {
        disk.plan(Call::Truncate, 0, Effect::Fail(libc::EIO), true);
        env.sync().unwrap();
        commit(&env, i).unwrap();
        env.sync().unwrap();
        assert!(!cut());
        disk.unplan();
    }
    env.sync().unwrap();
    assert!(cut(), "there was nothing to be cut");
}

/// When all reader slots were taken the thread that flushes could not pin a snapshot. It poisoned the
/// store at first, and later let the commits wait in silence for as long as the readers stayed.
#[test]
fn a_full_reader_table_delays_no_checkpoint() {
    let disk = SimDisk::new(&[], false);
    let period = Duration::from_millis(5);
    let durability = Durability::Lazy { sync_bytes: u64::MAX, sync_period: period };
    let env = open(&disk, 1, durability);
    let _readers: Vec<_> = (0..8).map(|_| env.read().unwrap()).collect();
    assert!(matches!(env.read(), Err(Error::ReadersFull { .. })));
    commit(&env, 1).unwrap();
    std::thread::sleep(period * 6);
    commit(&env, 2).unwrap();
    for _ in 0..1000 {
        if env.info().unwrap().steady == env.info().unwrap().newest {
            return;
        }
        std::thread::sleep(period);
    }
    panic!("the thread does not flush any more");
}

/// A checkpoint failed in the middle of the write of its meta, whose second half is zeros: it was
/// whole, but nothing pinned its pages.
#[test]
fn a_failed_checkpoint_keeps_its_pages() {
    let disk = SimDisk::new(&[], false);
    let env = open(&disk, 1, Durability::NoSync);
    commit(&env, 1).unwrap();
    env.sync().unwrap();
    commit(&env, 2).unwrap();
    disk.plan(Call::Write, 0, Effect::Short(libc::EIO), false);
    assert!(env.sync().is_err());
    for i in 3..8 {
        commit(&env, i).unwrap();
    }
    let found = value(&open(&power_cut_with_old_meta(&disk), 2, Durability::Sync));
    assert!(found == 1 || found == 2, "{found}");
}

/// A writer wiped the meta of a killed one and was killed before this was flushed: the next one knew
/// nothing of it and used the pages.
#[test]
fn a_killed_wipe_is_repeated() {
    let disk = SimDisk::new(&[], false);
    let env = open(&disk, 1, Durability::Sync);
    commit(&env, 1).unwrap();
    let large = || {
        let mut txn = env.write().unwrap();
        txn.table_or_create("large").unwrap().put("key", vec![7; 4 << 20]).unwrap();
        let _ = txn.commit();
    };
    killed(&disk, Call::Sync, 1, Effect::KillBefore, large);
    killed(&disk, Call::Sync, 0, Effect::KillBefore, || drop(env.write()));
    killed(&disk, Call::Sync, 1, Effect::KillBefore, || drop(commit(&env, 2)));
    let found = value(&open(&power_cut_with_old_meta(&disk), 2, Durability::Sync));
    assert!(found == 1 || found == 2, "{found}");
}

/// Two checkpoints killed, the second before its write: a commit then took the slot of the first, whose
/// pages were pinned no longer while its meta was still on disk.
#[test]
fn killed_checkpoints_one_after_the_other() {
    let disk = SimDisk::new(&[], false);
    let env = open(&disk, 1, Durability::NoSync);
    commit(&env, 1).unwrap();
    env.sync().unwrap();
    for (i, effect) in [(2, Effect::KillAfter), (3, Effect::KillBefore)] {
        commit(&env, i).unwrap();
        killed(&disk, Call::Write, 0, effect, || drop(env.sync()));
    }
    for i in 4..12 {
        commit(&env, i).unwrap();
        for choice in [Choice::None, Choice::All, Choice::MetasFirst, Choice::MetasLast] {
            value(&open(&power_cut(&disk, choice), 2, Durability::Sync));
        }
    }
    env.sync().unwrap();
    assert_eq!(value(&open(&power_cut(&disk, Choice::None), 2, Durability::Sync)), 11);
}

/// The flushing thread could not write a meta and poisoned the store, which gave up its weak commits.
#[test]
fn a_full_disk_under_the_flushing_thread_poisons_nothing() {
    let disk = SimDisk::new(&[], false);
    let period = Duration::from_millis(2);
    let messages = Arc::new(Mutex::new(Vec::new()));
    let logger = Arc::clone(&messages);
    let options = Options::new()
        .durability(Durability::Lazy { sync_bytes: u64::MAX, sync_period: period })
        .logger(Level::Warn, move |_, text| logger.lock().unwrap().push(text.to_string()));
    let env = Env::open_parts(Box::new(disk.clone()), [1; 16], options).unwrap();
    disk.set_hook(Some(Box::new({
        let disk = disk.clone();
        // After the first flush of the first checkpoint the disk is full.
        move |call| {
            if call == Call::Sync {
                disk.plan(Call::Write, 0, Effect::Fail(libc::ENOSPC), true);
            }
        }
    })));
    commit(&env, 1).unwrap();
    let refused = (0..1000).find_map(|_| {
        std::thread::sleep(period);
        env.write().err()
    });
    assert!(matches!(refused, Some(Error::Io { .. })), "{refused:?}");
    assert_eq!(value(&env), 1);
    std::thread::sleep(period * 20);
    // Reported once, however often it is tried.
    assert_eq!(messages.lock().unwrap().len(), 1, "{messages:?}");
    disk.set_hook(None);
    disk.unplan();
    commit(&env, 2).unwrap();
    env.sync().unwrap();
    assert_eq!(value(&open(&power_cut(&disk, Choice::None), 2, Durability::Sync)), 2);
}

/// A lock file of a test, which is litter afterwards.
struct LockFile(std::path::PathBuf);

impl LockFile {
    fn new(name: &str) -> LockFile {
        let name = format!("zubilo-sim-test-{}-{name}", std::process::id());
        LockFile(std::env::temp_dir().join(name))
    }

    fn open(&self, disk: &SimDisk, options: Options) -> Result<Env> {
        let options = options.max_readers(8);
        Env::open_parts_shared(Box::new(disk.clone()), &self.0, [1; 16], options)
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let mut name = self.0.clone().into_os_string();
        name.push("-lock");
        let _ = std::fs::remove_file(name);
    }
}

/// What was not trusted after a failed flush was trusted by the second opener, if the first wrote
/// nothing: the kernel's cache shows it whole.
#[test]
fn what_a_failed_flush_left_is_never_trusted() {
    for reads_only in [false, true] {
        let (disk, lock) = (SimDisk::new(&[], false), LockFile::new("failed-flush"));
        let env = lock.open(&disk, Options::new()).unwrap();
        commit(&env, 1).unwrap();
        disk.plan(Call::Sync, 0, Effect::Fail(libc::EIO), false);
        assert!(matches!(commit(&env, 2), Err(Error::Io { .. })));
        drop(env);
        disk.closed();
        for _ in 0..3 {
            let env = lock.open(&disk, Options::new().read_only(reads_only)).unwrap();
            assert_eq!(value(&env), 1);
        }
        let reader = lock.open(&disk, Options::new().read_only(reads_only)).unwrap();
        let env = lock.open(&disk, Options::new()).unwrap();
        commit(&env, 3).unwrap();
        drop((env, reader));
        assert_eq!(value(&lock.open(&disk, Options::new()).unwrap()), 3);
        assert_eq!(value(&open(&power_cut(&disk, Choice::None), 2, Durability::Sync)), 3);
    }
}

/// A store with a commit on disk, and one whose process was killed before its flush.
fn killed_in_a_flush(name: &str) -> (SimDisk, LockFile) {
    let (disk, lock) = (SimDisk::new(&[], false), LockFile::new(name));
    let env = lock.open(&disk, Options::new()).unwrap();
    commit(&env, 1).unwrap();
    killed(&disk, Call::Sync, 0, Effect::KillBefore, || drop(commit(&env, 2)));
    drop(env);
    (disk, lock)
}

/// The flush of an open failed, the next open's succeeded: it trusted a commit of which not all was
/// on disk, and built on it.
#[test]
fn a_failed_flush_of_an_open_is_remembered() {
    let (disk, lock) = killed_in_a_flush("failed-open");
    disk.plan(Call::Sync, 0, Effect::Fail(libc::EIO), false);
    assert!(matches!(lock.open(&disk, Options::new()), Err(Error::Io { .. })));
    disk.closed();
    let env = lock.open(&disk, Options::new()).unwrap();
    assert_eq!(value(&env), 1);
    let mut txn = env.write().unwrap();
    txn.table_or_create("other").unwrap().put("key", "value").unwrap();
    txn.commit().unwrap();
    assert_eq!(value(&open(&power_cut(&disk, Choice::None), 2, Durability::Sync)), 1);
}

/// The same, and the open was one for reading only: it went on, and called steady what it had found.
#[test]
fn a_failed_flush_of_an_open_for_reading_is_remembered() {
    let (disk, lock) = killed_in_a_flush("failed-read-only");
    disk.plan(Call::Sync, 0, Effect::Fail(libc::EIO), false);
    let reader = lock.open(&disk, Options::new().read_only(true)).unwrap();
    assert!(disk.unplan());
    assert!(matches!(value(&reader), 1 | 2));
    drop(reader);
    disk.closed();
    let env = lock.open(&disk, Options::new()).unwrap();
    let found = value(&env);
    let mut txn = env.write().unwrap();
    txn.table_or_create("other").unwrap().put("key", "value").unwrap();
    txn.commit().unwrap();
    assert_eq!(value(&open(&power_cut(&disk, Choice::None), 2, Durability::Sync)), found);
}

/// An open flushes what it does not know to be on disk, and nothing else.
#[test]
fn an_open_after_an_orderly_end_flushes_nothing() {
    let (disk, lock) = (SimDisk::new(&[], false), LockFile::new("orderly-end"));
    let flushes = |options: Options| {
        let before = disk.calls(Call::Sync);
        lock.open(&disk, options).unwrap().close_without_sync();
        disk.calls(Call::Sync) - before
    };
    commit(&lock.open(&disk, Options::new()).unwrap(), 1).unwrap();
    assert_eq!((flushes(Options::new()), flushes(Options::new().read_only(true))), (0, 0));
    // The lock file is gone, and then knows again.
    let mut name = lock.0.clone().into_os_string();
    name.push("-lock");
    std::fs::remove_file(name).unwrap();
    assert_eq!((flushes(Options::new()), flushes(Options::new())), (1, 0));
    let weak = lock.open(&disk, Options::new().durability(Durability::NoSync)).unwrap();
    // The first one after a lock file that was gone is flushed.
    (2..4).for_each(|i| _ = commit(&weak, i).unwrap());
    weak.close_without_sync();
    assert_eq!(flushes(Options::new()), 1);
}

/// The write of a meta failed, but had arrived: the next open trusted a commit that had been refused.
#[test]
fn a_commit_that_failed_is_not_found_later() {
    for durability in [Durability::Sync, Durability::NoSync] {
        let (disk, lock) = (SimDisk::new(&[], false), LockFile::new("failed-commit"));
        let env = lock.open(&disk, Options::new().durability(durability)).unwrap();
        commit(&env, 1).unwrap();
        disk.plan(Call::Write, 1, Effect::Late(libc::EIO), false);
        assert!(matches!(commit(&env, 2), Err(Error::Io { .. })));
        assert!(disk.unplan());
        env.close_without_sync();
        for _ in 0..2 {
            let env = lock.open(&disk, Options::new().durability(durability)).unwrap();
            assert_eq!(value(&env), 1);
            env.close_without_sync();
        }
        if durability == Durability::Sync {
            for choice in [Choice::All, Choice::None, Choice::MetasFirst] {
                assert_eq!(value(&open(&power_cut(&disk, choice), 2, Durability::Sync)), 1);
            }
        }
    }
}

/// A wipe that was killed before its flush, and nobody was left: the next open took the store for one that
/// was closed in order, flushed nothing, and used pages of a commit whose meta was still on disk.
#[test]
fn a_killed_wipe_is_flushed_by_the_next_open() {
    let (disk, lock) = (SimDisk::new(&[], false), LockFile::new("killed-wipe"));
    let env = lock.open(&disk, Options::new()).unwrap();
    commit(&env, 1).unwrap();
    let large = || {
        let mut txn = env.write().unwrap();
        txn.table_or_create("large").unwrap().put("key", vec![7; 4 << 20]).unwrap();
        let _ = txn.commit();
    };
    killed(&disk, Call::Sync, 1, Effect::KillBefore, large);
    killed(&disk, Call::Sync, 0, Effect::KillBefore, || drop(env.write()));
    env.close_without_sync();
    let env = lock.open(&disk, Options::new()).unwrap();
    killed(&disk, Call::Sync, 0, Effect::KillBefore, || drop(commit(&env, 2)));
    let found = value(&open(&power_cut_with_old_meta(&disk), 2, Durability::Sync));
    assert!(found == 1 || found == 2, "{found}");
}

/// Three checkpoints of one commit, two of them killed, filled all slots with copies of its meta: all
/// were called needed, and no commit was possible any more. Found by kills of real processes.
#[test]
fn copies_of_the_newest_meta_leave_room_for_the_next() {
    let (disk, lock) = (SimDisk::new(&[], false), LockFile::new("copies"));
    let weak = || lock.open(&disk, Options::new().durability(Durability::NoSync)).unwrap();
    let (first, second, third) = (weak(), weak(), weak());
    commit(&first, 1).unwrap();
    first.sync().unwrap();
    commit(&first, 2).unwrap();
    // Each begins before the one around it has flushed, and dies when its meta is written.
    let dies = |disk: &SimDisk, env: &Env| {
        assert!(catch_unwind(AssertUnwindSafe(|| env.sync())).is_err(), "nothing was killed");
        assert!(disk.unplan());
    };
    let (outer, inner) = (disk.clone(), disk.clone());
    // These stay open: to close one would be a checkpoint.
    let (second_there, third_there) = (second.clone(), third.clone());
    disk.set_hook(Some(Box::new(move |_| {
        let (disk, third) = (inner.clone(), third_there.clone());
        let mut in_second = true;
        inner.set_hook(Some(Box::new(move |_| {
            if std::mem::take(&mut in_second) {
                disk.plan(Call::Sync, 1, Effect::KillBefore, false);
                dies(&disk, &third);
                disk.plan(Call::Sync, 1, Effect::KillBefore, false);
            }
        })));
        dies(&outer, &second_there);
        outer.set_hook(Some(Box::new(|_| ())));
    })));
    first.sync().unwrap();
    disk.set_hook(None);
    for i in 3..9 {
        commit(&first, i).unwrap();
        assert_eq!(value(&first), i);
        let found = value(&open(&power_cut(&disk, Choice::All), 2, Durability::Sync));
        assert_eq!(found, 2);
    }
    first.sync().unwrap();
    assert_eq!(value(&open(&power_cut(&disk, Choice::None), 2, Durability::Sync)), 8);
    drop((second, third));
}
