//! What the random tests share: numbers from a seed, the full check.

#![allow(dead_code, reason = "no test uses all of it")]

use zubilo::Env;

/// Random numbers (xorshift64*).
pub(crate) struct Rng(u64);

impl Rng {
    /// From `ZUBILO_SEED`, or the clock; the seed is printed, so that a failure can be repeated.
    pub(crate) fn from_env() -> Rng {
        Rng(seed() | 1)
    }

    /// From a seed of the caller's.
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n
    }

    /// One of a few.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// `ZUBILO_SEED`, or the clock; it is printed.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("ZUBILO_SEED").ok().and_then(|s| s.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("a clock after 1970").as_nanos() as u64
    });
    println!("ZUBILO_SEED={seed}");
    seed
}

/// `ZUBILO_CASES`, or as many as the test asks for.
pub(crate) fn cases(default: u64) -> u64 {
    std::env::var("ZUBILO_CASES").ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

/// The full check of the newest commit.
pub(crate) fn check(env: &Env) {
    let report = env.check(&mut |_, _| true).expect("the check runs");
    let shown = &report.problems[..report.problems.len().min(5)];
    assert!(report.is_ok(), "{shown:?}");
}
