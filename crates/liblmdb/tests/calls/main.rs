//! Random calls in small tables on the original LMDB and on ours: what each call gives and what it
//! writes through every pointer, also when it fails; misuse included.
//!
//! Environments have lock files or not, and readers a slot of their thread's or their own; they are opened
//! for reading only, too, and transactions that only read are reset and renewed.
//!
//! The tables are so small that nothing depends on how LMDB divides them into pages. So, unlike in
//! `differential.rs`, any call may follow any other; what is left out is what LMDB itself does
//! wrongly (`allowed`), and `docs/lmdb-compatibility.md` says what we do there.
//!
//! `ZUBILO_SEED`, `CALLS_SEEDS` and `CALLS_STEPS` choose the programs, `CALLS_TRACE` prints each step
//! before it is run; `LMDB_ORIGINAL` and
//! `LMDB_OURS` name other libraries to compare, such as the distribution's.

#[path = "../common/mod.rs"]
mod common;
mod program;
mod side;

use common::{Library, original, ours};
use support::{number, seed};

use program::Program;
use side::{NOLOCK, NOTLS, Outcome, Side, WRITEMAP};

/// Flags of the environment: most of all as programs have it, each of the others now and then.
fn flags(seed: u64) -> u32 {
    let choose = |flag: u32, one_in: u64| if seed.is_multiple_of(one_in) { flag } else { 0 };
    choose(NOLOCK, 3) | choose(WRITEMAP, 5) | (NOTLS ^ choose(NOTLS, 4))
}

/// The first step at which the libraries differ, told with the steps before it.
fn difference(seed: u64, steps: usize) -> Option<String> {
    let dir = tempfile::tempdir().expect("a directory");
    let open = |library: Library| {
        let path = dir.path().join(library.label);
        std::fs::create_dir(&path).expect("a directory");
        Side::new(library.api, &path, seed.is_multiple_of(2), flags(seed))
    };
    let (mut theirs, mut ours) = (open(original()), open(ours()));
    let mut program = Program::new(seed, flags(seed) & WRITEMAP == 0);
    let trace = std::env::var_os("CALLS_TRACE").is_some();
    let mut log: Vec<String> = Vec::new();
    for n in 0..steps {
        let step = program.next();
        if trace {
            eprintln!("{n}: {step:?}");
        }
        // LMDB copies the value for `mdb_del`; nothing of a program's is lost by that.
        let want = Outcome { strange: 0, ..theirs.run(&step) };
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
    let first = seed(1);
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
