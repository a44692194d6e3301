//! Tests of the space account: against a naive model, on hostile bytes, and (ignored by default)
//! timings and the simulation of aged stores behind the figures in `docs/free-space.md`.

mod aging;
mod hostile;
mod map;
mod model;
mod timing;
mod units;

/// A small generator for tests that want millions of numbers from one seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}
