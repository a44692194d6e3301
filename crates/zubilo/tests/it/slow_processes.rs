//! Readers that hold pages back in other processes: expired there, ended there, killed before and after, and
//! what a killed one leaves who was expiring others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use zubilo::{Env, Error, Options, ParkedRead, ReadTxn, SlowReaderAction};

use crate::common::process::{Program, apart, say, task, wait};
use crate::common::{check, number, rng};
use crate::slow::{ROWS, assert_round, bounded, rows, try_put};

/// The round that a snapshot is of, all of whose records must be of it.
fn round_of(read: &ReadTxn) -> u32 {
    let first = read.table("t").unwrap().first().unwrap().map_or(0, |(_, value)| value[0]);
    assert_round(read, u32::from(first));
    u32::from(first)
}

fn path_of(dir: &tempfile::TempDir) -> std::path::PathBuf {
    dir.path().join("store")
}

// ---- programs that the tests start ----

/// Parks a reader, and looks once for each line that it gets.
#[test]
#[ignore = "program: run by other tests"]
fn child_parks() {
    let Some(path) = task() else { return };
    let env = Options::new().open(path).unwrap();
    let mut parked = env.read().unwrap().park();
    say("parked");
    while wait() {
        match parked.with(|read| Ok(round_of(read))) {
            Ok(round) => say(format_args!("round {round}")),
            Err(Error::Expired) => say("expired"),
            Err(other) => say(other),
        }
    }
}

/// Reads, and does not park.
#[test]
#[ignore = "program: run by other tests"]
fn child_stays() {
    let Some(path) = task() else { return };
    let env = Options::new().open(path).unwrap();
    let read = env.read().unwrap();
    say("reads");
    wait();
    drop(read);
}

/// Expires whomever it can, and writes over what they have held back, until it is killed.
#[test]
#[ignore = "program: run by other tests"]
fn child_expires() {
    let Some(path) = task() else { return };
    let env = Options::new().open(path).unwrap();
    let first = round_of(&env.read().unwrap());
    for round in first + 1.. {
        for reader in env.readers() {
            env.expire_reader(&reader).unwrap();
        }
        try_put(&env, round % 200).unwrap();
        say("expired");
    }
}

// ---- tests ----

#[test]
fn a_parked_reader_of_another_process_is_expired() {
    let _apart = apart();
    let options = Options::new().on_slow_reader(|slow| match slow.reader.is_parked {
        true => SlowReaderAction::Expire,
        false => SlowReaderAction::GiveUp,
    });
    let (dir, env) = bounded(options, 3);
    let mut child = Program::start("slow_processes::child_parks", path_of(&dir));
    assert_eq!(child.hear(), "parked");
    try_put(&env, 1).unwrap();
    // Nobody has needed its pages so far.
    child.go();
    assert_eq!(child.hear(), "round 0");
    let [reader] = &env.readers()[..] else { panic!("one reader") };
    assert!(reader.pid == child.id() && reader.is_parked && reader.lag == 1, "{reader:?}");
    (2..6).for_each(|round| try_put(&env, round).unwrap());
    assert!(env.readers().is_empty());
    for _ in 0..2 {
        child.go();
        assert_eq!(child.hear(), "expired");
    }
    // Killed with a handle on what was expired: nothing is left of it.
    child.kill();
    (6..9).for_each(|round| try_put(&env, round).unwrap());
    assert!(env.readers().is_empty());
    check(&env, "after an expired reader was killed");
}

#[test]
fn a_parked_reader_whose_process_was_killed_holds_nothing_back() {
    let _apart = apart();
    let (dir, env) = bounded(Options::new(), 3);
    let mut child = Program::start("slow_processes::child_parks", path_of(&dir));
    assert_eq!(child.hear(), "parked");
    try_put(&env, 1).unwrap();
    let readers = env.readers();
    child.kill();
    env.clean_readers().unwrap();
    assert!(env.readers().is_empty());
    // Whom the list had named is there no more.
    assert!(!env.expire_reader(&readers[0]).unwrap());
    (2..6).for_each(|round| try_put(&env, round).unwrap());
    check(&env, "after a parked reader was killed");
}

/// As `OOM-KICK` of libmdbx may: the reader is at work, so nothing else helps.
#[test]
fn the_function_may_end_the_process_of_the_reader() {
    let _apart = apart();
    let (asked, victim) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (count, pid) = (Arc::clone(&asked), Arc::clone(&victim));
    let options = Options::new().on_slow_reader(move |slow| {
        count.fetch_add(1, Ordering::Relaxed);
        assert_eq!(slow.reader.pid, pid.load(Ordering::Relaxed));
        // SAFETY: sends a signal to a child of this process, which nobody has waited for.
        unsafe { libc::kill(slow.reader.pid as libc::pid_t, libc::SIGKILL) };
        std::thread::yield_now();
        SlowReaderAction::Retry
    });
    let (dir, env) = bounded(options, 3);
    let mut child = Program::start("slow_processes::child_stays", path_of(&dir));
    assert_eq!(child.hear(), "reads");
    victim.store(child.id(), Ordering::Relaxed);
    (1..6).for_each(|round| try_put(&env, round).unwrap());
    assert!(asked.load(Ordering::Relaxed) > 0);
    child.kill();
    assert!(env.readers().is_empty());
    assert_round(&env.read().unwrap(), 5);
    check(&env, "after a reader was ended");
}

/// A look at a parked snapshot that may be gone; true if it was.
fn is_gone(parked: &mut ParkedRead, round: u32) -> bool {
    match parked.with(|read| Ok(round_of(read))) {
        Ok(found) => {
            assert_eq!(found, round, "another snapshot");
            false
        }
        Err(Error::Expired) => true,
        Err(error) => panic!("{error}"),
    }
}

fn parked(env: &Env) -> (ParkedRead, u32) {
    let read = env.read().unwrap();
    let round = round_of(&read);
    (read.park(), round)
}

/// The one who expires is killed at any moment: each reader has all of its snapshot or none of it, and all
/// can be expired later.
#[test]
fn who_expires_others_may_be_killed() {
    let _apart = apart();
    let mut rng = rng();
    let (dir, env) = bounded(Options::new(), 60);
    let mut gone = 0;
    for _ in 0..number("EXPIRY_ROUNDS", 8) {
        let mut child = Program::start("slow_processes::child_expires", path_of(&dir));
        for _ in 0..rng.below(12) {
            let mut own: Vec<_> = (0..3).map(|_| parked(&env)).collect();
            assert_eq!(child.hear(), "expired");
            for (parked, round) in &mut own {
                gone += u32::from(is_gone(parked, *round));
            }
        }
        let mut own: Vec<_> = (0..3).map(|_| parked(&env)).collect();
        child.kill();
        for (parked, round) in &mut own {
            is_gone(parked, *round);
        }
        env.clean_readers().unwrap();
        for reader in env.readers() {
            assert!(env.expire_reader(&reader).unwrap());
        }
        assert!(env.readers().is_empty());
        for (parked, round) in &mut own {
            assert!(is_gone(parked, *round));
        }
        check(&env, "after one who expires was killed");
    }
    // What the last ones held back is free: all of it is written over again and again.
    let used = env.info().unwrap().used_len;
    for round in 0..100 {
        try_put(&env, round).unwrap();
    }
    let more = env.info().unwrap().used_len.saturating_sub(used);
    assert!(more <= 2 * u64::from(ROWS) * 460, "{more} bytes more, {gone} expired");
    assert_eq!(env.read().unwrap().table("t").unwrap().len(), rows(0).count() as u64);
}
