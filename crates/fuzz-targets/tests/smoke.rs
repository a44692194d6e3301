//! Each target of the fuzzers on its inputs to start from, and on changed ones: `ZUBILO_SEED` repeats
//! a run, `ZUBILO_CASES` sets the number of changed inputs.

use std::sync::atomic::{AtomicU64, Ordering};

use support::{Rng, number, seed};

/// Panics that somebody caught count too: the C interface makes codes of them.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// An input with some bytes changed, cut off, or taken from another one.
fn changed(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut input = seeds[rng.index(seeds.len())].clone();
    for _ in 0..1 + rng.index(8) {
        let at = rng.index(input.len());
        match rng.index(6) {
            0 => input.truncate(at),
            1 => {
                let other = &seeds[rng.index(seeds.len())];
                input.extend(&other[rng.index(other.len())..]);
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = rng.byte();
                }
            }
        }
    }
    input
}

fn smoke(name: &str, cases: u64) {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        hook(info);
    }));
    let target = fuzz_targets::target(name);
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty());
    seeds.iter().for_each(|seed| (target.run)(seed));
    println!("{name}: {} inputs", seeds.len());
    let mut rng = Rng::new(seed(1));
    for case in 0..number("ZUBILO_CASES", cases) {
        let input = changed(&seeds, &mut rng);
        (target.run)(&input);
        assert_eq!(PANICS.load(Ordering::SeqCst), 0, "case {case} panicked on {input:02x?}");
    }
}

macro_rules! targets {
    ($($name:ident: $cases:literal)*) => {
        $(#[test]
        fn $name() {
            smoke(stringify!($name), $cases);
        })*
    };
}

targets! {
    pages: 300
    store: 100
    salvage: 300
    lmdb_import: 200
    load: 200
    mdb_load: 200
    c_calls: 200
}
