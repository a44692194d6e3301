//! Pages against models, at their limits, and against arbitrary bytes.

mod appends;
mod branches;
mod hostile;
mod leaves;
mod limits;
mod packed;
mod reading;
mod sets;

use std::cmp::Ordering;
use std::sync::Arc;

use super::Order;

const SIZES: [usize; 3] = [4096, 16384, 65536];
const ALIGNS: [usize; 5] = [1, 2, 4, 8, 16];

/// Shorter keys first, then the larger bytes first: nothing that a prefix or a head could help.
fn strange(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| b.cmp(a))
}

fn orders() -> [Order; 3] {
    [Order::Bytes, Order::Reversed, Order::Custom(Arc::new(strange))]
}

/// Keys with long common starts and ends, many equal heads, and few distinct bytes.
fn key_of(seed: u64, max: usize) -> Vec<u8> {
    let shape = seed % 7;
    let number = seed / 7;
    let mut key = match shape {
        0 => Vec::new(),
        1 => number.to_le_bytes().to_vec(),
        2 => format!("{:08}", number % 5000).into_bytes(),
        3 => vec![(number % 3) as u8; (number / 3 % 40) as usize],
        4 => [&[b'p'; 60][..], &(number % 300).to_be_bytes()].concat(),
        5 => [&(number % 300).to_le_bytes()[..], &[b's'; 30]].concat(),
        _ => vec![(number % 251) as u8; (number as usize / 251) % (max + 1)],
    };
    key.truncate(max);
    key
}
