//! Threads that read, write, group, sync and come and go on one handle. The file is memory, so that
//! each access of the engine to a page is one that ThreadSanitizer sees (`tools/sanitizers.sh`): a page
//! reused while somebody still reads it is a race there, and a wrong sum here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use zubilo::{Durability, Env, Options};

use crate::common::memory::MemoryFile;
use crate::common::{Rng, check, number, rng};

const KEYS: u64 = 200;
const TOTAL: u64 = KEYS * 1000;

fn sum(env: &Env) -> u64 {
    let read = env.read().unwrap();
    let table = read.table("t").unwrap();
    let values = table.iter().map(|r| u64::from_be_bytes(r.unwrap().1[..8].try_into().unwrap()));
    // An account may go below zero; the sum is right all the same.
    values.fold(0, u64::wrapping_add)
}

fn transfer(table: &mut zubilo::WriteTable<'_>, rng: &mut Rng) -> zubilo::Result<()> {
    let keys = [rng.below(KEYS).to_be_bytes(), rng.below(KEYS).to_be_bytes()];
    if keys[0] == keys[1] {
        return Ok(());
    }
    let amount = rng.below(50);
    for (key, give) in [(keys[0], true), (keys[1], false)] {
        let mut value = table.get(key)?.unwrap().to_vec();
        let old = u64::from_be_bytes(value[..8].try_into().unwrap());
        let new = if give { old.wrapping_sub(amount) } else { old.wrapping_add(amount) };
        value[..8].copy_from_slice(&new.to_be_bytes());
        value.resize(8 + rng.below(120) as usize, 1);
        table.put(key, value)?;
    }
    Ok(())
}

fn run(durability: Durability, time: Duration, rng: &mut Rng) {
    let env = MemoryFile::new(&[]).open(Options::new().durability(durability)).unwrap();
    let mut txn = env.write().unwrap();
    let mut table = txn.table_or_create("t").unwrap();
    for key in 0..KEYS {
        table.put(key.to_be_bytes(), 1000u64.to_be_bytes()).unwrap();
    }
    txn.commit().unwrap();
    let over = AtomicBool::new(false);
    let (env, over) = (&env, &over);
    let on = move || !over.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let mut rng = Rng::new(rng.next());
            scope.spawn(move || {
                while on() {
                    env.update(|txn| transfer(&mut txn.table("t")?, &mut rng)).unwrap();
                }
            });
        }
        let mut rng = Rng::new(rng.next());
        scope.spawn(move || {
            while on() {
                let mut txn = env.write().unwrap();
                let changed = transfer(&mut txn.table("t").unwrap(), &mut rng);
                changed.unwrap();
                if rng.one_in(4) {
                    txn.abort()
                } else {
                    assert!(txn.commit().unwrap().0 > 0)
                }
                if rng.one_in(30) {
                    env.sync().unwrap();
                }
            }
        });
        scope.spawn(move || {
            while on() {
                assert_eq!(sum(env), TOTAL);
            }
        });
        scope.spawn(move || {
            // Threads that come and go, each with a slot of its own.
            while on() {
                std::thread::scope(|inner| {
                    inner.spawn(|| assert_eq!(sum(env), TOTAL));
                });
            }
        });
        let start = Instant::now();
        while start.elapsed() < time {
            std::thread::sleep(Duration::from_millis(20));
            check(env, "beside the threads");
        }
        over.store(true, Ordering::SeqCst);
    });
    check(env, "after the threads");
    assert_eq!(sum(env), TOTAL);
}

#[test]
fn sums_stay_whatever_the_threads_do() {
    let mut rng = rng();
    let time = Duration::from_millis(number("ZUBILO_THREADS_MS", 300));
    let lazy = Durability::Lazy { sync_bytes: 64 << 10, sync_period: Duration::from_millis(3) };
    for durability in [Durability::Sync, Durability::NoSync, lazy] {
        run(durability, time, &mut rng);
    }
}
