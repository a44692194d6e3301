//! Keys and values from serial numbers: unique, scattered, reproducible and verifiable without
//! remembering them.

use serde::{Deserialize, Serialize};

/// Of all runs.
pub(crate) const SEED: u64 = 0x5a75_6269_6c6f_2121;

/// Longest key of any kind.
pub(crate) const KEY_MAX: usize = 43;

/// How serial numbers become keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// 16 random bytes.
    Random16,
    /// 24 random bytes.
    Random24,
    /// 16 digits, in the order of the numbers.
    Ordered16,
    /// The number itself, 8 bytes, big-endian.
    Dense,
    /// 43 bytes: a host and a path that all share, then a scattered number.
    Url,
}

/// A bijection on 64-bit numbers.
#[inline]
pub(crate) fn scatter(serial: u64) -> u64 {
    let mut x = serial.wrapping_add(SEED);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Kind {
    pub(crate) fn len(self) -> usize {
        match self {
            Kind::Random16 | Kind::Ordered16 => 16,
            Kind::Random24 => 24,
            Kind::Dense => 8,
            Kind::Url => KEY_MAX,
        }
    }

    /// The key of a serial number, in `buffer`.
    #[inline]
    pub(crate) fn key(self, serial: u64, buffer: &mut [u8; KEY_MAX]) -> &[u8] {
        self.salted_key(serial, 0, buffer)
    }

    /// As `key`, with other scattered keys for each salt.
    #[inline]
    pub(crate) fn salted_key(self, serial: u64, salt: u64, buffer: &mut [u8; KEY_MAX]) -> &[u8] {
        let random = scatter(serial ^ salt);
        match self {
            Kind::Random16 => {
                buffer[..8].copy_from_slice(&random.to_be_bytes());
                buffer[8..16].copy_from_slice(&scatter(random).to_be_bytes());
            }
            Kind::Random24 => {
                buffer[..8].copy_from_slice(&random.to_be_bytes());
                buffer[8..16].copy_from_slice(&scatter(random).to_be_bytes());
                buffer[16..24].copy_from_slice(&scatter(!random).to_be_bytes());
            }
            Kind::Ordered16 => {
                let mut rest = serial;
                for place in buffer[..16].iter_mut().rev() {
                    *place = b'0' + (rest % 10) as u8;
                    rest /= 10;
                }
            }
            Kind::Dense => buffer[..8].copy_from_slice(&serial.to_be_bytes()),
            Kind::Url => {
                *buffer = *b"https://www.example.org/a/0000000000000000/";
                let mut rest = random;
                for place in buffer[26..42].iter_mut().rev() {
                    *place = b"0123456789abcdef"[(rest & 15) as usize];
                    rest >>= 4;
                }
            }
        }
        &buffer[..self.len()]
    }
}

/// Bytes of a value.
pub(crate) const VALUE: usize = 100;

/// The first word of a value of record `serial` after `age` changes.
#[inline]
pub(crate) fn stamp(serial: u64, age: u32) -> u64 {
    serial.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(age)
}

/// The value of record `serial` after `age` changes.
#[inline]
pub(crate) fn value(serial: u64, age: u32) -> [u8; VALUE] {
    let stamp = stamp(serial, age);
    let mut value = [0; VALUE];
    for (i, chunk) in value.chunks_mut(8).enumerate() {
        let word = stamp.wrapping_add(i as u64).to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
    value
}

/// The stamp that a value bears.
#[inline]
pub(crate) fn stamp_of(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}

/// A small generator for choices.
pub(crate) struct Chooser(u64);

impl Chooser {
    pub(crate) fn new(seed: u64) -> Chooser {
        Chooser(scatter(seed) | 1)
    }

    /// A number below `bound`.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }

    /// In [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        self.below(1 << 53) as f64 / (1u64 << 53) as f64
    }
}

/// Keys one after the other in memory, each with the stamp expected under it.
pub(crate) struct KeyList {
    bytes: Vec<u8>,
    stamps: Vec<u64>,
    len: usize,
}

impl KeyList {
    pub(crate) fn new(kind: Kind, serials: impl Iterator<Item = u64>) -> KeyList {
        let mut list = KeyList { bytes: Vec::new(), stamps: Vec::new(), len: kind.len() };
        let mut buffer = [0; KEY_MAX];
        for serial in serials {
            list.bytes.extend_from_slice(kind.key(serial, &mut buffer));
            list.stamps.push(stamp(serial, 0));
        }
        list
    }

    pub(crate) fn len(&self) -> usize {
        self.stamps.len()
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.bytes.chunks_exact(self.len).zip(self.stamps.iter().copied())
    }
}
