//! Random programs: a few thousand in every test run, tens of thousands on demand.
//! `ZUBILO_SEED` names the first seed, `ZUBILO_PROGRAMS` the number of programs.

use differential::seeds::run_seeds;
use support::{any_seed, number, seed};

#[test]
fn programs_give_the_same_on_both() {
    run_seeds(seed(1), number("ZUBILO_PROGRAMS", 3600), None);
}

#[test]
#[ignore = "minutes"]
fn very_many_programs_give_the_same_on_both() {
    run_seeds(any_seed(), number("ZUBILO_PROGRAMS", 50_000), None);
}
