//! Random numbers from a seed (splitmix64): one seed, one run, on every machine and for good. That is
//! why the generator is written here: those of libraries may change with their versions, and a seed in
//! a regression test must keep its meaning.

use std::time::{SystemTime, UNIX_EPOCH};

/// The generator.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator that gives the same numbers for the same seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// Any number.
    #[allow(clippy::should_implement_trait, reason = "the usual name; nobody iterates over it")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.next() % n }
    }

    /// An index of something that is `len` long.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number in a range, which must not be empty.
    pub fn range(&mut self, range: std::ops::Range<usize>) -> usize {
        assert!(!range.is_empty(), "no number is in {range:?}");
        range.start + self.index(range.len())
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        self.next() as u8
    }

    /// So many bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.next().to_le_bytes()[..part.len()]);
        }
        bytes
    }

    /// A generator for a part of the run, so that one part does not shift the numbers of the next.
    pub fn fork(&mut self) -> Rng {
        Rng(self.next())
    }
}

/// A number of the environment.
pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The seed of a test: `ZUBILO_SEED` if it is set. It is printed, which the harness shows when the test
/// fails.
pub fn seed(default: u64) -> u64 {
    let seed = number("ZUBILO_SEED", default);
    println!("ZUBILO_SEED={seed}");
    seed
}

/// A seed that differs from run to run: `ZUBILO_SEED` or, without it, the time. It is printed.
pub fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    seed(now.map_or(1, |time| time.as_nanos() as u64))
}

/// A generator from [`any_seed`].
pub fn rng() -> Rng {
    Rng::new(any_seed())
}

#[cfg(test)]
mod tests {
    use super::Rng;

    /// Seeds are written down in tests of other crates: what they stand for must stay.
    #[test]
    fn a_seed_gives_the_numbers_that_it_always_gave() {
        let mut rng = Rng::new(1);
        // From the reference implementation of splitmix64.
        assert_eq!(rng.next(), 0x910A_2DEC_8902_5CC1);
        assert_eq!(rng.next(), 0xBEEB_8DA1_658E_EC67);
        let mut rng = Rng::new(7);
        let many: Vec<u64> = (0..6).map(|_| rng.below(100)).collect();
        assert_eq!(many, [87, 4, 46, 3, 74, 5]);
    }

    #[test]
    fn numbers_keep_to_their_bounds() {
        let mut rng = Rng::new(3);
        let mut seen = [false; 5];
        for len in 0..300 {
            assert!(rng.below(7) < 7 && rng.index(0) == 0);
            seen[rng.range(10..15) - 10] = true;
            assert_eq!(rng.bytes(len).len(), len);
        }
        assert_eq!(seen, [true; 5]);
        // The end of an odd length is random as well.
        assert!((0..50).any(|_| rng.bytes(9)[8] != 0));
    }
}
