//! Random programs: a few thousand in every test run, tens of thousands on demand.
//! `ZUBILO_SEED` names the first seed, `ZUBILO_PROGRAMS` the number of programs.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use differential::compare;
use differential::isolate::{End, isolated};
use differential::program::{Program, program};
use differential::shrink::shrink;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

/// Memory, where there is a file system of it: no program needs a disk.
fn folder() -> tempfile::TempDir {
    let memory = PathBuf::from("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    dir.expect("a folder")
}

/// Tells where the engines differ. Programs on which LMDB dies count as the same if Zubilo does not.
fn run(program: &Program) -> Result<bool, String> {
    let dir = folder();
    match isolated(|| compare::run(program, dir.path())) {
        End::Well => Ok(true),
        End::Failed(why) => Err(why),
        End::Died(status) => {
            let dir = folder();
            match isolated(|| compare::run_ours(program, dir.path())) {
                End::Well => Ok(false),
                End::Failed(why) => Err(why),
                End::Died(_) => Err(format!("died with status {status}")),
            }
        }
    }
}

fn run_seeds(first: u64, count: u64) {
    println!("ZUBILO_SEED={first} ZUBILO_PROGRAMS={count}");
    let (next, died) = (AtomicU64::new(first), AtomicU64::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    let program = program(seed);
                    match run(&program) {
                        Ok(true) => {}
                        Ok(false) => drop(died.fetch_add(1, Ordering::Relaxed)),
                        Err(_) => {
                            next.store(first + count, Ordering::Relaxed);
                            report(seed, &program);
                        }
                    }
                }
            });
        }
    });
    let died = died.into_inner();
    println!("{count} programs in {:.1} s; LMDB died in {died}", begun.elapsed().as_secs_f64());
    assert!(
        died * 20 < count,
        "LMDB died in too many programs for this to be a comparison: {died}"
    );
}

fn report(seed: u64, program: &Program) {
    let small = shrink(program, |program| run(program).is_err());
    let why = run(&small).expect_err("it fails");
    let steps: Vec<String> = small.steps.iter().map(|s| format!("{s:?}")).collect();
    let why: String = why.chars().take(1000).collect();
    panic!("seed {seed}: {why}\n{:?}\n{}", small.kind, steps.join("\n"));
}

#[test]
fn programs_give_the_same_on_both() {
    let seed = number("ZUBILO_SEED", 1);
    run_seeds(seed, number("ZUBILO_PROGRAMS", 3600));
}

#[test]
#[ignore = "minutes"]
fn very_many_programs_give_the_same_on_both() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = number("ZUBILO_SEED", now.map_or(1, |t| t.as_secs()) << 20);
    run_seeds(seed, number("ZUBILO_PROGRAMS", 50_000));
}
