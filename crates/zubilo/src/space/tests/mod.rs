//! Tests of the space map and its log: against a naive model, on hostile bytes, and (ignored by default)
//! timings and the simulation of aged stores behind the figures in `docs/free-space.md`.

mod aging;
mod hostile;
mod log;
mod map;
mod model;
mod timing;
mod units;

use super::codec::Reader;
use super::{Delta, Extent, Malformed, Space};

fn decode(bytes: &[u8], pins: &[u64], max_end: u64) -> Result<Space, Malformed> {
    Space::decode(&mut Reader::new(bytes), pins, max_end)
}

/// The map that a base and deltas make.
fn load(
    base: Option<&[u8]>,
    start: u64,
    deltas: &[Delta],
    used: &[Extent],
    pins: &[u64],
    max_end: u64,
) -> Result<Space, Malformed> {
    let mut space = match base {
        Some(bytes) => decode(bytes, pins, max_end)?,
        None => Space::new(start),
    };
    space.set_pins(pins);
    space.follow(deltas, used, max_end)?;
    Ok(space)
}

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
