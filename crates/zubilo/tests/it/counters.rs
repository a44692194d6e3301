//! Counters of what a process does with a store.

use std::time::Duration;

use zubilo::{Durability, Env, EnvCounters, Options};

use crate::common::process::{Program, apart, say, task, wait};
use crate::common::{fresh, put_all};

fn done<T>(env: &Env, work: impl FnOnce() -> T) -> EnvCounters {
    let before = env.counters();
    drop(work());
    env.counters().since(&before)
}

#[test]
fn commits_pages_and_flushes_are_counted() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let rows = |count: u32| (0..count).map(|n| (n.to_be_bytes(), [7; 100]));
    let load = done(&env, || put_all(&env, "t", rows(5_000)));
    let leaves = env.read().unwrap().table_stats("t").unwrap().leaf_pages;
    assert_eq!(load.commits, 1);
    assert!(load.pages_split >= leaves - 1, "{load:?}");
    assert!(load.pages_written > leaves && load.runs_written >= 1, "{load:?}");
    assert!(load.bytes_written >= load.pages_written * 4096, "{load:?}");
    assert!(load.flushes >= 1 && load.flush_ns > 0 && load.commit_flush_ns > 0, "{load:?}");
    assert_eq!((load.pages_spilled, load.writer_waits), (0, 0));

    let one = done(&env, || put_all(&env, "t", [(7u32.to_be_bytes(), [8; 100])]));
    // The leaf, the branches above it, the catalogue.
    assert!((2..=5).contains(&one.pages_copied), "{one:?}");
    assert_eq!((one.commits, one.pages_split, one.pages_merged), (1, 0, 0));

    let thin = done(&env, || {
        let mut write = env.write().unwrap();
        let mut table = write.table("t").unwrap();
        for n in (0..5_000u32).filter(|n| n % 10 > 0) {
            table.delete(n.to_be_bytes()).unwrap();
        }
        write.commit().unwrap();
    });
    assert!(thin.pages_merged > leaves / 4, "{thin:?}");

    // Nothing that only reads or gives up, and a clock that nobody has started.
    let nothing = done(&env, || {
        assert_eq!(env.read().unwrap().tables().unwrap().len(), 1);
        env.write().unwrap().commit().unwrap();
        let mut write = env.write().unwrap();
        write.table("t").unwrap().put("key", "value").unwrap();
    });
    assert_eq!(nothing, EnvCounters::default());
    let names: Vec<_> = load.iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"pages_copied") && names.contains(&"writer_wait_ns"));
}

#[test]
fn early_writes_are_counted() {
    let (_dir, path) = fresh();
    let options = Options::new().durability(Durability::NoSync).dirty_limit(256 << 10);
    let env = options.open(&path).unwrap();
    let rows = (0..20_000u32).map(|n| (n.wrapping_mul(2_654_435_761).to_be_bytes(), [7; 100]));
    let load = done(&env, || put_all(&env, "t", rows));
    assert!(load.pages_spilled > 100, "{load:?}");
    assert_eq!((load.commits, load.flushes), (1, 0));
    env.sync().unwrap();
    assert!(env.counters().flushes >= 1);
}

#[test]
fn waits_for_the_writer_lock_are_counted() {
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    let waited = done(&env, || {
        let write = env.write().unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| drop(env.write().unwrap()));
            std::thread::sleep(Duration::from_millis(30));
            assert!(env.try_write().unwrap().is_none());
            drop(write);
            other.join().unwrap();
        });
    });
    assert_eq!(waited.writer_waits, 1);
    assert!(waited.writer_wait_ns > 0);
}

#[test]
#[ignore = "program: run by another test"]
fn child_counts() {
    let Some(path) = task() else { return };
    let env = Options::new().open(path).unwrap();
    assert_eq!(env.store_counters().commits, 2, "the parent's");
    put_all(&env, "t", [("child", "value")]);
    say(env.counters().bytes_written);
    wait();
}

#[test]
fn what_other_processes_do_is_counted_for_all() {
    let _apart = apart();
    let (_dir, path) = fresh();
    let env = Options::new().open(&path).unwrap();
    put_all(&env, "t", [("key", "value")]);
    put_all(&env, "t", [("key", "other")]);
    let own = env.counters();
    assert_eq!(env.store_counters(), own);
    let mut child = Program::start("counters::child_counts", &path);
    let written: u64 = child.hear().parse().unwrap();
    child.kill();
    let all = env.store_counters();
    assert_eq!((all.commits, all.bytes_written), (3, own.bytes_written + written));
    assert!(all.flushes > own.flushes && all.commit_flush_ns > own.commit_flush_ns, "{all:?}");
    assert_eq!(env.counters(), own);
    // Who opens a store that nobody has open begins anew; who shares it with nobody sees only itself.
    env.close().unwrap();
    for lock_file in [true, false] {
        let env = Options::new().lock_file(lock_file).open(&path).unwrap();
        assert_eq!(env.store_counters().commits, 0);
        put_all(&env, "t", [("key", "value")]);
        assert_eq!((env.store_counters().commits, env.counters().commits), (1, 1));
        env.close().unwrap();
    }
}
