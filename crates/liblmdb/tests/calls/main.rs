//! Random calls in small tables on the original LMDB and on ours: what each call gives and what it
//! writes through every pointer, also when it fails; misuse included.
//!
//! The tables are so small that nothing depends on how LMDB divides them into pages. So, unlike in
//! `differential.rs`, any call may follow any other; what is left out is what LMDB itself does
//! wrongly (`allowed`), and `docs/lmdb-compatibility.md` says what we do there.
//!
//! `CALLS_SEED`, `CALLS_SEEDS` and `CALLS_STEPS` choose the programs, `CALLS_TRACE` prints each step
//! before it is run; `LMDB_ORIGINAL` and
//! `LMDB_OURS` name other libraries to compare, such as the distribution's.

#[path = "../common/mod.rs"]
mod common;
mod program;
mod side;

use common::{Api, original, ours};
use program::Program;
use side::Side;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The first step at which the libraries differ, told with the steps before it.
fn difference(seed: u64, steps: usize) -> Option<String> {
    let dir = tempfile::tempdir().expect("a directory");
    let open = |api: Api| {
        let path = dir.path().join(api.label);
        std::fs::create_dir(&path).expect("a directory");
        Side::new(api, &path)
    };
    let (mut theirs, mut ours) = (open(original()), open(ours()));
    let mut program = Program::new(seed);
    let trace = std::env::var_os("CALLS_TRACE").is_some();
    let mut log: Vec<String> = Vec::new();
    for n in 0..steps {
        let step = program.next();
        if trace {
            eprintln!("{n}: {step:?}");
        }
        let want = theirs.run(&step);
        let got = ours.run(&step);
        log.push(format!("{n}: {step:?} -> {want:?}"));
        if want != got {
            let tail = log.iter().rev().take(40).rev().cloned().collect::<Vec<_>>().join("\n");
            return Some(format!("seed {seed}\n{tail}\nZubilo: {got:?}"));
        }
        program.after(&step, &want);
    }
    None
}

#[test]
fn every_call_writes_what_lmdb_writes() {
    let first = number("CALLS_SEED", 1);
    let mut different = Vec::new();
    for seed in first..first + number("CALLS_SEEDS", 400) {
        if let Some(text) = difference(seed, number("CALLS_STEPS", 150) as usize) {
            let end: Vec<&str> = text.lines().rev().take(2).collect();
            println!("seed {seed}: {} | {}", end[1], end[0]);
            different.push(text);
        }
    }
    assert!(
        different.is_empty(),
        "{} programs differ; the shortest:\n{}",
        different.len(),
        different.iter().min_by_key(|text| text.lines().count()).expect("one"),
    );
}
