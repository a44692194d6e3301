//! Many programs, each from its seed, on all processors.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::compare;
use crate::isolate::{End, isolated};
use crate::program::{Program, program};
use crate::shrink::shrink;
use support::lmdb::Api;

/// Memory, where there is a file system of it: no program needs a disk.
fn folder() -> tempfile::TempDir {
    let memory = PathBuf::from("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    dir.expect("a folder")
}

/// Reports where the engines differ. Programs on which LMDB dies count as the same if Zubilo does not.
fn run(program: &Program, third: Option<Api>) -> Result<bool, String> {
    let dir = folder();
    match isolated(|| compare::run(program, dir.path(), third)) {
        End::Well => Ok(true),
        End::Failed(why) => Err(why),
        End::Died(status) => {
            let dir = folder();
            let alone = || {
                compare::run_ours(program, dir.path())?;
                third.map_or(Ok(()), |api| compare::run_third(program, dir.path(), api))
            };
            match isolated(alone) {
                End::Well => Ok(false),
                End::Failed(why) => Err(why),
                End::Died(_) => Err(format!("died with status {status}")),
            }
        }
    }
}

/// Runs so many programs, the first of this seed, on LMDB and Zubilo, and on another library with LMDB's
/// interface if one is given. Panics with the smallest program on which they differ.
pub fn run_seeds(first: u64, count: u64, third: Option<Api>) {
    println!("programs from seed {first} on: {count}");
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
                    match run(&program, third) {
                        Ok(true) => {}
                        Ok(false) => drop(died.fetch_add(1, Ordering::Relaxed)),
                        Err(_) => {
                            next.store(first + count, Ordering::Relaxed);
                            report(seed, &program, third);
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

fn report(seed: u64, program: &Program, third: Option<Api>) {
    let small = shrink(program, |program| run(program, third).is_err());
    let why = run(&small, third).expect_err("it fails");
    let steps: Vec<String> = small.steps.iter().map(|s| format!("{s:?}")).collect();
    let why: String = why.chars().take(1000).collect();
    panic!("seed {seed}: {why}\n{:?} {:?}\n{}", small.kind, small.layout, steps.join("\n"));
}
