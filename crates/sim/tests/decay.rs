//! Flipped bits in live pages.

use sim::decay::{Aged, flips};
use support::Rng;

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

/// Every single bit, by two threads of which each has a store of its own.
#[test]
#[ignore = "long: a minute"]
fn every_bit_of_every_live_byte_is_named() {
    let flip = |bits: std::ops::Range<u32>| {
        let aged = Aged::new(1).expect("a store");
        for byte in 0..aged.bytes() {
            for bit in bits.clone() {
                aged.flip(byte, bit).unwrap_or_else(|failure| panic!("{failure}"));
            }
        }
        aged.bytes() * u64::from(bits.end - bits.start)
    };
    let flipped: u64 = std::thread::scope(|scope| {
        let halves = [0..4, 4..8].map(|bits| scope.spawn(|| flip(bits)));
        halves.map(|half| half.join().expect("no bit is missed")).into_iter().sum()
    });
    println!("{flipped} bits flipped, each named");
}
