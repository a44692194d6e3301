//! The programs that the engine is compared with LMDB by, through the C interface: every combination of
//! table flags, comparators, cursors in each other's way, nested transactions; the same answers from
//! LMDB, from the engine and from this library, after each step.
//! `ZUBILO_SEED` names the first seed, `ZUBILO_PROGRAMS` the number of programs.

mod common;

use differential::seeds::run_seeds;
use support::lmdb::Api;
use support::{any_seed, number, seed};

fn library() -> Api {
    // SAFETY: built from this crate, whose functions are those of lmdb.h.
    unsafe { Api::load(common::library()) }.expect("the library is loaded")
}

#[test]
fn programs_give_the_same_through_the_c_interface() {
    run_seeds(seed(1), number("ZUBILO_PROGRAMS", 1100), Some(library()));
}

#[test]
#[ignore = "minutes"]
fn very_many_programs_give_the_same_through_the_c_interface() {
    run_seeds(any_seed(), number("ZUBILO_PROGRAMS", 30_000), Some(library()));
}
