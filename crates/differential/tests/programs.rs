//! Random programs: a few thousand in every test run, tens of thousands on demand.
//! `ZUBILO_SEED` names the first seed, `ZUBILO_PROGRAMS` the number of programs.

use differential::seeds::{number, run_seeds};

#[test]
fn programs_give_the_same_on_both() {
    let seed = number("ZUBILO_SEED", 1);
    run_seeds(seed, number("ZUBILO_PROGRAMS", 3600), None);
}

#[test]
#[ignore = "minutes"]
fn very_many_programs_give_the_same_on_both() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = number("ZUBILO_SEED", now.map_or(1, |t| t.as_secs()) << 20);
    run_seeds(seed, number("ZUBILO_PROGRAMS", 50_000), None);
}
