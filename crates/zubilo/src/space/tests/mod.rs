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
