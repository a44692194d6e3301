//! The records of a store: unique keys, values that name the record and which change of it they
//! belong to, choices of records. All of it follows from the shape and the seed.

use crate::keys::{Chooser, KEY_MAX, scatter};
use crate::spec::{Pick, Shape, Values};

/// Serial numbers from here on are never put.
const MISSING: u64 = 1 << 44;
/// Exponent of the Zipf distribution.
const THETA: f64 = 0.99;

/// Makes keys and values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) shape: Shape,
    salt: u64,
}

impl Data {
    pub(crate) fn new(shape: Shape, seed: u64) -> Data {
        // Below the numbers of missing records, so that salted numbers stay apart.
        Data { shape, salt: scatter(seed) % MISSING }
    }

    #[inline]
    pub(crate) fn key<'b>(&self, serial: u64, buffer: &'b mut [u8; KEY_MAX]) -> &'b [u8] {
        self.shape.keys.salted_key(serial, self.salt, buffer)
    }

    /// Bytes of the value of a record; it keeps its length when it is changed.
    #[inline]
    pub(crate) fn value_len(&self, serial: u64) -> usize {
        match self.shape.values {
            Values::Fixed(len) => len as usize,
            Values::Mixed => {
                let unit = (scatter(!serial ^ self.salt) >> 11) as f64 / (1u64 << 53) as f64;
                (8.0 * (unit * 9.0).exp2()) as usize
            }
        }
    }

    /// The first word of a value: the record, and in its low bits the change.
    #[inline]
    fn mark(&self, serial: u64, age: u16) -> u64 {
        scatter(serial ^ self.salt) & !0xffff | u64::from(age)
    }

    /// The value of a record after `age` changes, in `buffer`. It cannot be compressed.
    #[inline]
    pub(crate) fn value<'b>(&self, serial: u64, age: u16, buffer: &'b mut Vec<u8>) -> &'b [u8] {
        let len = self.value_len(serial);
        buffer.clear();
        let mut word = self.mark(serial, age);
        while buffer.len() < len {
            buffer.extend_from_slice(&word.to_le_bytes());
            word = next(word);
        }
        buffer.truncate(len);
        buffer
    }

    /// Which change of the record a value shows; none if it is another record's or damaged at its
    /// head.
    #[inline]
    pub(crate) fn age_of(&self, serial: u64, value: &[u8]) -> Option<u16> {
        let word = u64::from_le_bytes(*value.first_chunk()?);
        let age = word as u16;
        (word == self.mark(serial, age) && value.len() == self.value_len(serial)).then_some(age)
    }

    /// Bytes of key and value.
    #[inline]
    pub(crate) fn bytes(&self, serial: u64) -> u64 {
        (self.shape.keys.len() + self.value_len(serial)) as u64
    }
}

/// Whether a value, whosever it is, is whole.
pub(crate) fn is_whole(value: &[u8]) -> bool {
    let Some(head) = value.first_chunk() else { return false };
    let mut word = u64::from_le_bytes(*head);
    value.chunks(8).all(|chunk| {
        let same = word.to_le_bytes()[..chunk.len()] == *chunk;
        word = next(word);
        same
    })
}

/// One step of a generator that visits every word.
#[inline]
fn next(word: u64) -> u64 {
    let word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    word ^ (word >> 32)
}

/// Chooses numbers below a bound.
pub(crate) struct Picker {
    pick: Pick,
    bound: u64,
    chooser: Chooser,
    zipf: Option<Zipf>,
}

/// What was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    There(u64),
    Missing(u64),
}

impl Picker {
    /// `bound` must not be 0.
    pub(crate) fn new(pick: Pick, bound: u64, seed: u64) -> Picker {
        let zipf = matches!(pick, Pick::Zipf | Pick::Latest).then(|| Zipf::new(bound));
        Picker { pick, bound, chooser: Chooser::new(seed), zipf }
    }

    pub(crate) fn next(&mut self) -> Choice {
        let rank = match &self.zipf {
            Some(zipf) => zipf.rank(self.chooser.unit()),
            None => self.chooser.below(self.bound),
        };
        match self.pick {
            Pick::Uniform => Choice::There(rank),
            Pick::Zipf => Choice::There(scatter(rank) % self.bound),
            Pick::Latest => Choice::There(self.bound - 1 - rank),
            Pick::Missing => Choice::Missing(MISSING + rank),
        }
    }
}

/// Zipf ranks by the method of Gray and others ("Quickly generating billion-record synthetic
/// databases", 1994): exact for the first two ranks, close for the others.
struct Zipf {
    bound: u64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    fn new(bound: u64) -> Zipf {
        let zeta = |n: u64| (1..=n).map(|i| (i as f64).powf(-THETA)).sum::<f64>();
        let all = zeta(bound);
        let eta = (1.0 - (2.0 / bound as f64).powf(1.0 - THETA)) / (1.0 - zeta(bound.min(2)) / all);
        Zipf { bound, zeta: all, eta }
    }

    fn rank(&self, unit: f64) -> u64 {
        let scaled = unit * self.zeta;
        if self.bound <= 2 || scaled < 1.0 {
            return if scaled < 1.0 { 0 } else { self.bound - 1 };
        }
        if scaled < 1.0 + 0.5f64.powf(THETA) {
            return 1;
        }
        let share = (self.eta * unit - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        ((self.bound as f64 * share) as u64).min(self.bound - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::keys::Kind;

    const KINDS: [Kind; 5] =
        [Kind::Random16, Kind::Random24, Kind::Ordered16, Kind::Dense, Kind::Url];

    fn data(keys: Kind, values: Values, seed: u64) -> Data {
        Data::new(Shape { keys, values, records: 1000 }, seed)
    }

    #[test]
    fn keys_are_unique_and_of_their_length() {
        for kind in KINDS {
            let data = data(kind, Values::Fixed(8), 3);
            let serials = (0..20_000).chain(MISSING..MISSING + 20_000);
            let keys: BTreeSet<Vec<u8>> =
                serials.map(|s| data.key(s, &mut [0; KEY_MAX]).to_vec()).collect();
            assert_eq!(keys.len(), 40_000, "{kind:?}");
            assert!(keys.iter().all(|k| k.len() == kind.len()), "{kind:?}");
        }
    }

    #[test]
    fn ordered_keys_keep_the_order_of_the_numbers() {
        for kind in [Kind::Ordered16, Kind::Dense] {
            let data = data(kind, Values::Fixed(8), 3);
            let keys: Vec<Vec<u8>> =
                (0..5000).map(|s| data.key(s, &mut [0; KEY_MAX]).to_vec()).collect();
            assert!(keys.is_sorted(), "{kind:?}");
        }
    }

    #[test]
    fn the_seed_changes_scattered_keys_and_repeats_them() {
        let key =
            |seed| data(Kind::Random16, Values::Fixed(8), seed).key(7, &mut [0; KEY_MAX]).to_vec();
        assert_eq!(key(1), key(1));
        assert_ne!(key(1), key(2));
    }

    #[test]
    fn values_tell_record_age_and_damage() {
        for values in [Values::Fixed(8), Values::Fixed(100), Values::Mixed] {
            let data = data(Kind::Random16, values, 9);
            let mut buffer = Vec::new();
            for serial in 0..500 {
                let value = data.value(serial, 5, &mut buffer).to_vec();
                assert_eq!(data.age_of(serial, &value), Some(5));
                assert_eq!(data.age_of(serial + 1, &value), None);
                assert!(is_whole(&value));
                assert_eq!(data.bytes(serial), 16 + value.len() as u64);
                if value.len() > 8 {
                    let mut damaged = value.clone();
                    *damaged.last_mut().unwrap() ^= 1;
                    assert!(!is_whole(&damaged));
                }
            }
        }
    }

    #[test]
    fn mixed_lengths_spread_over_their_range() {
        let data = data(Kind::Random16, Values::Mixed, 1);
        let lens: Vec<usize> = (0..10_000).map(|s| data.value_len(s)).collect();
        assert!(lens.iter().all(|len| (8..=4096).contains(len)));
        let share = |f: &dyn Fn(usize) -> bool| lens.iter().filter(|l| f(**l)).count();
        assert!((3500..4600).contains(&share(&|l| l < 100)), "{}", share(&|l| l < 100));
        assert!((1900..2700).contains(&share(&|l| l > 1000)), "{}", share(&|l| l > 1000));
    }

    #[test]
    fn choices_have_their_distribution() {
        const N: u64 = 1000;
        let draw = |pick| {
            let mut picker = Picker::new(pick, N, 11);
            let mut hits = vec![0u32; N as usize];
            for _ in 0..100_000 {
                match picker.next() {
                    Choice::There(i) => hits[i as usize] += 1,
                    Choice::Missing(i) => assert!(i >= MISSING && pick == Pick::Missing),
                }
            }
            hits
        };
        let uniform = draw(Pick::Uniform);
        assert!(uniform.iter().all(|&h| (40..180).contains(&h)));
        // The most popular of 1,000 has 1 / 7.7 of all draws.
        let latest = draw(Pick::Latest);
        assert!((11_500..14_500).contains(&latest[999]), "{}", latest[999]);
        assert!(latest[999] > latest[998] && latest[998] > latest[900]);
        let zipf = draw(Pick::Zipf);
        let popular = (0..N as usize).max_by_key(|&i| zipf[i]).unwrap();
        assert_eq!(popular as u64, scatter(0) % N);
        assert_eq!(draw(Pick::Missing).iter().sum::<u32>(), 0);
    }

    #[test]
    fn the_smallest_bounds_are_served() {
        for pick in [Pick::Uniform, Pick::Zipf, Pick::Latest] {
            for bound in 1..4 {
                let mut picker = Picker::new(pick, bound, 5);
                for _ in 0..1000 {
                    assert!(matches!(picker.next(), Choice::There(i) if i < bound));
                }
            }
        }
    }
}
