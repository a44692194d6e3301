//! Weak commits becoming steady: by bytes, by time, by closing; and what another boot trusts.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use zubilo::{Durability, Env, Options};

use crate::common::memory::MemoryFile;
use crate::common::process::{Program, apart, say, task, wait};
use crate::common::{check, contents, put_all};

const LONG: Duration = Duration::from_secs(3600);

fn lazy(sync_bytes: u64, sync_period: Duration) -> Options {
    Options::new().durability(Durability::Lazy { sync_bytes, sync_period })
}

fn is_steady(env: &Env) -> bool {
    let info = env.info().unwrap();
    info.steady == info.newest
}

/// Waits until the newest commit is steady; gives how long that took.
#[track_caller]
fn becomes_steady(env: &Env) -> Duration {
    let start = Instant::now();
    while !is_steady(env) {
        assert!(start.elapsed() < Duration::from_secs(30), "nobody flushes: {:?}", env.info());
        std::thread::sleep(Duration::from_millis(5));
    }
    start.elapsed()
}

#[test]
fn by_bytes() {
    let file = MemoryFile::new(&[]);
    let env = file.open(lazy(1 << 20, LONG)).unwrap();
    for round in 0..3u8 {
        put_all(&env, "t", [([round], vec![round; 100_000])]);
        std::thread::sleep(Duration::from_millis(100));
        // What an earlier round left uncounted may count here.
        assert!(round > 0 || !is_steady(&env), "flushed for a tenth of the bytes");
        for n in 0..10 {
            put_all(&env, "t", [([round, n], vec![n; 120_000])]);
        }
        // Never as much as the bound is left for long: that would be nine of these commits.
        let start = Instant::now();
        while env.info().unwrap().steady.0 + 8 < env.info().unwrap().newest.0 {
            assert!(start.elapsed() < Duration::from_secs(30), "nobody flushes");
            std::thread::sleep(Duration::from_millis(5));
        }
        env.sync().unwrap();
        assert!(is_steady(&env));
    }
}

#[test]
fn by_time() {
    let period = Duration::from_millis(400);
    let file = MemoryFile::new(&[]);
    let env = file.open(lazy(u64::MAX, period)).unwrap();
    for round in 0..3u8 {
        let start = Instant::now();
        let flushes = file.flushes();
        put_all(&env, "t", [([round], [round])]);
        let early = !is_steady(&env);
        assert!(early || start.elapsed() >= period, "flushed at once");
        becomes_steady(&env);
        assert!(start.elapsed() >= period - Duration::from_millis(5), "flushed before its time");
        assert!(file.flushes() > flushes);
    }
    // Nothing new, nothing to flush.
    let flushes = file.flushes();
    std::thread::sleep(2 * period);
    assert_eq!(file.flushes(), flushes);
}

#[test]
fn by_the_call() {
    for options in [lazy(u64::MAX, LONG), Options::new().durability(Durability::NoSync)] {
        let file = MemoryFile::new(&[]);
        let env = file.open(options).unwrap();
        let flushes = file.flushes();
        for n in 0..50u8 {
            put_all(&env, "t", [([n], [n])]);
        }
        assert_eq!(file.flushes(), flushes, "a weak commit has flushed");
        assert_eq!(env.info().unwrap().steady.0, 1);
        env.sync().unwrap();
        assert!(is_steady(&env));
        let flushes = file.flushes();
        env.sync().unwrap();
        assert_eq!(file.flushes(), flushes, "nothing was to be flushed");
    }
}

/// What another boot trusts is what was flushed: closing flushes, in every way but one.
#[test]
fn closing_makes_durable() {
    for options in [lazy(u64::MAX, LONG), Options::new().durability(Durability::NoSync)] {
        type Close = fn(Env);
        let ways: [(Close, bool); 4] = [
            (|env| env.close().unwrap(), true),
            (drop, true),
            (
                |env| {
                    let other = env.clone();
                    env.close_without_sync();
                    drop(other);
                },
                true,
            ),
            (|env| env.close_without_sync(), false),
        ];
        for (i, (close, durable)) in ways.into_iter().enumerate() {
            let file = MemoryFile::new(&[]);
            let env = file.open(options.clone()).unwrap();
            put_all(&env, "t", [("k", "steady")]);
            env.sync().unwrap();
            let steady = contents(&env.read().unwrap());
            put_all(&env, "t", [("k", "weak")]);
            put_all(&env, "t", [("l", "weak")]);
            let weak = contents(&env.read().unwrap());
            close(env);
            let image = file.image();
            // On the same boot nothing is lost in either case.
            let env = file.open(options.clone()).unwrap();
            assert_eq!(contents(&env.read().unwrap()), weak, "way {i}, the same boot");
            drop(env);
            let file = MemoryFile::new(&image);
            let env = file.open_on_boot(2, options.clone()).unwrap();
            let expected = if durable { &weak } else { &steady };
            assert_eq!(contents(&env.read().unwrap()), *expected, "way {i}, another boot");
            check(&env, "on another boot");
            put_all(&env, "t", [("m", "new")]);
            check(&env, "and going on there");
        }
    }
}

/// A process that ends without closing loses nothing on the same boot, and is at the last steady
/// point on another one.
#[test]
fn a_sudden_end_loses_only_what_was_not_flushed() {
    let file = MemoryFile::new(&[]);
    let env = file.open(lazy(u64::MAX, LONG)).unwrap();
    let mut states = Vec::new();
    for n in 0..40u8 {
        put_all(&env, "t", [([n % 7], vec![n; 3000])]);
        if n == 20 {
            env.sync().unwrap();
        }
        states.push(contents(&env.read().unwrap()));
        let image = file.image();
        let same = MemoryFile::new(&image).open(Options::new()).unwrap();
        assert_eq!(contents(&same.read().unwrap()), states[usize::from(n)]);
        check(&same, "the same boot");
        let other = MemoryFile::new(&image).open_on_boot(2, Options::new()).unwrap();
        let read = other.read().unwrap();
        match n {
            0..20 => assert!(read.tables().unwrap().is_empty()),
            _ => assert_eq!(contents(&read), states[20]),
        }
        check(&other, "another boot");
    }
}

#[test]
#[ignore = "program: run by other tests"]
fn child_that_never_closes() {
    static ENV: OnceLock<Env> = OnceLock::new();
    let Some(path) = task() else { return };
    let env = ENV.get_or_init(|| lazy(u64::MAX, LONG).open(path).unwrap());
    put_all(env, "t", [("k", "weak")]);
    assert!(!is_steady(env));
    say("committed");
    wait();
    std::process::exit(0);
}

/// A handle in a static is never dropped: the end of the program makes its commits durable, or, where
/// it was killed, another process that is there to write.
#[test]
fn the_end_of_a_program_that_never_closes() {
    let _apart = apart();
    for (killed, other_writer) in [(false, false), (true, true), (true, false)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let mut program = Program::start("flusher::child_that_never_closes", &path);
        assert_eq!(program.hear(), "committed");
        let other = other_writer.then(|| lazy(u64::MAX, Duration::ZERO).open(&path).unwrap());
        if killed {
            program.kill();
        } else {
            program.finish();
        }
        if let Some(other) = &other {
            becomes_steady(other);
        }
        let image = std::fs::read(&path).unwrap();
        let env = MemoryFile::new(&image).open_on_boot(2, Options::new()).unwrap();
        let found = env.read().unwrap().table("t").is_ok();
        assert_eq!(found, !killed || other_writer, "killed: {killed}, another: {other_writer}");
        // For who opens the store on the same boot nothing is lost in any case.
        let env = Options::new().open(&path).unwrap();
        assert_eq!(env.read().unwrap().table("t").unwrap().get("k").unwrap(), Some(&b"weak"[..]));
    }
}

/// A reader that sleeps does not keep weak commits from becoming steady, nor does a writer.
#[test]
fn readers_and_writers_do_not_hold_up_the_flusher() {
    let file = MemoryFile::new(&[]);
    let env = file.open(lazy(u64::MAX, Duration::from_millis(50))).unwrap();
    put_all(&env, "t", [("k", "v")]);
    let _read = env.read().unwrap();
    put_all(&env, "t", [("k", "w")]);
    let mut txn = env.write().unwrap();
    txn.table("t").unwrap().put("k", "x").unwrap();
    becomes_steady(&env);
    txn.commit().unwrap();
    becomes_steady(&env);
}
