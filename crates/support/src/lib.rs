//! What the tests, the benchmarks and the tools of this repository share. Nothing here is published.
//!
//! `random` is the generator of random numbers, with seeds that are printed and can be given again;
//! `lmdb` is LMDB's C interface as its callers see it; `strace` reads recordings of system calls.

pub mod lmdb;
pub mod random;
pub mod strace;

pub use random::{Rng, any_seed, number, rng, seed};
