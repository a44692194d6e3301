//! Timings, printed: `cargo test --release -p zubilo space::tests::timing -- --ignored --nocapture`.

use super::super::{Extent, Policy, Retired, Space};
use std::time::Instant;
use support::Rng;

const PAGES: u64 = 500_000;
const COMMITS: u64 = 20_000;
const PER_COMMIT: u64 = 12;

/// A file of which `percent` of the pages are free, one by one and at random.
fn holes(percent: u64) -> (Space, Vec<u64>) {
    let mut random = Rng::new(7);
    let mut space = Space::new(PAGES);
    let mut used = Vec::new();
    for page in 3..PAGES {
        if random.below(100) < percent {
            space.give_back(Extent { first: page, count: 1 });
        } else {
            used.push(page);
        }
    }
    (space, used)
}

/// Per commit, in ns: moving the pin, retiring, allocating; and the pieces.
fn cycle(policy: Policy) -> [f64; 4] {
    let mut random = Rng::new(3);
    let (mut space, mut used) = holes(40);
    let mut spent = [0u128; 3];
    let mut pieces = 0;
    for txn in 100..100 + COMMITS {
        let start = Instant::now();
        space.set_pins(&[txn - 1]);
        spent[0] += start.elapsed().as_nanos();

        let start = Instant::now();
        let taken = space.allocate(PER_COMMIT, policy, PAGES, PAGES).unwrap();
        spent[1] += start.elapsed().as_nanos();
        pieces += taken.len();

        let released: Vec<Retired> = (0..PER_COMMIT)
            .map(|_| {
                let at = random.below(used.len() as u64) as usize;
                Retired { first: used.swap_remove(at), count: 1, birth: 50, death: txn }
            })
            .collect();
        used.extend(taken.iter().flat_map(|extent| extent.first..extent.end()));
        let start = Instant::now();
        space.retire(&released);
        spent[2] += start.elapsed().as_nanos();
    }
    let [pins, allocate, retire] = spent.map(|sum| sum as f64 / COMMITS as f64);
    [pins, retire, allocate, pieces as f64 / COMMITS as f64]
}

#[test]
#[ignore = "prints timings"]
fn a_commit_of_twelve_pages() {
    println!("policy      set_pins   retire  allocate  pieces (ns a commit, {PER_COMMIT} pages)");
    for policy in [Policy::Contiguous, Policy::Recent] {
        let [pins, retire, allocate, pieces] = cycle(policy);
        println!(
            "{:<12}{pins:>8.0} {retire:>8.0} {allocate:>9.0} {pieces:>7.2}",
            format!("{policy:?}")
        );
    }
}

#[test]
#[ignore = "prints timings"]
fn whole_account() {
    let (space, _) = holes(40);
    let time = |what: &str, f: &mut dyn FnMut() -> u64| {
        let start = Instant::now();
        let value = f();
        println!("{what:<20}{:>10.1} us  ({value})", start.elapsed().as_nanos() as f64 / 1e3);
    };
    let mut bytes = Vec::new();
    time("encoded_len_bound", &mut || space.encoded_len_bound() as u64);
    time("encode", &mut || {
        space.encode(&mut bytes).expect("memory");
        bytes.len() as u64
    });
    time("decode", &mut || super::decode(&bytes, &[], PAGES).unwrap().free_pages());
    let mut space = space;
    time("windows(256)", &mut || space.windows(256, 700).len() as u64);
    time("windows(1024)", &mut || space.windows(1024, 700).len() as u64);
    let mut big = Space::new(1 << 28);
    for group in 0..1 << 14 {
        big.give_back(Extent { first: 3 + group * 16_384, count: 11 });
    }
    time("2^28: 12 pages", &mut || {
        big.allocate(12, Policy::Contiguous, 0, 1 << 28).unwrap().len() as u64
    });
    time("2^28: run of 11", &mut || big.allocate_run(11, 1 << 28).unwrap().first);
    time("2^28: bound", &mut || big.encoded_len_bound() as u64);
}
