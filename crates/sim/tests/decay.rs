//! Flipped bits in live pages.

use sim::decay::{Aged, flips};
use sim::rng::Rng;

/// A bit of every byte of every live page of a small store.
#[test]
fn a_flipped_bit_in_any_live_byte_is_named() {
    let aged = Aged::new(1).expect("a store");
    let mut rng = Rng::new(2);
    for byte in 0..aged.bytes() {
        aged.flip(byte, rng.below(8) as u32).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
fn flipped_bits_of_other_stores() {
    for seed in 2..6 {
        let found = flips(seed, 200);
        assert_eq!(found.failures, Vec::<String>::new());
        assert_eq!(found.states, 200);
    }
}
