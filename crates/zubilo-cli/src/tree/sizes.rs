//! Sizes of keys and values: a histogram by powers of two, and the largest records.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::output::count;

/// Widest bar of a histogram, in characters.
const BAR: u64 = 40;

/// A histogram as text: what, how many, a bar.
pub(super) fn bars(rows: impl Iterator<Item = (String, u64)>) -> String {
    let rows: Vec<_> = rows.collect();
    let most = rows.iter().map(|(_, n)| *n).max().unwrap_or(0).max(1);
    let all = rows.iter().map(|(_, n)| *n).sum::<u64>().max(1);
    let lines = rows.iter().map(|(what, n)| {
        let eighths = n.saturating_mul(8 * BAR).div_ceil(most);
        let mut bar = "█".repeat((eighths / 8) as usize);
        let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        bar.push_str(rest.get((eighths % 8) as usize).copied().unwrap_or_default());
        let share = 100.0 * *n as f64 / all as f64;
        format!("  {what}  {:>12} {share:>5.1} %  {bar}", count(*n)).trim_end().to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// How many sizes lie between two powers of two.
#[derive(Default)]
pub(super) struct Sizes {
    /// By the number of bits of the size.
    buckets: Vec<u64>,
    number: u64,
    sum: u64,
    least: Option<u64>,
    most: u64,
}

impl Sizes {
    pub(super) fn add(&mut self, bytes: u64) {
        let bucket = (u64::BITS - bytes.leading_zeros()) as usize;
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        if let Some(number) = self.buckets.get_mut(bucket) {
            *number += 1;
        }
        self.number += 1;
        self.sum += bytes;
        self.least = Some(self.least.map_or(bytes, |least| least.min(bytes)));
        self.most = self.most.max(bytes);
    }

    pub(super) fn sum(&self) -> u64 {
        self.sum
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum as f64 / self.number.max(1) as f64
    }

    /// The one size that all have.
    pub(super) fn only(&self) -> Option<u64> {
        self.least.filter(|least| *least == self.most)
    }

    /// The least and the greatest size of a bucket.
    fn bounds(bucket: usize) -> (u64, u64) {
        match bucket {
            0 => (0, 0),
            bits => (1 << (bits - 1), u64::MAX >> (64 - bits)),
        }
    }

    fn filled(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let first = self.buckets.iter().position(|n| *n > 0).unwrap_or(0);
        let buckets = self.buckets.iter().enumerate().skip(first);
        buckets.map(|(bucket, number)| {
            let (from, to) = Sizes::bounds(bucket);
            (from, to, *number)
        })
    }

    pub(super) fn show(&self) -> String {
        if let Some(only) = self.only() {
            return format!("  all {} have {}", count(self.number), count(only));
        }
        let rows =
            self.filled().map(|(from, to, number)| (format!("{from:>10} to {to:<10}"), number));
        let about = format!(
            "  least {}, mean {:.1}, most {}",
            count(self.least.unwrap_or(0)),
            self.mean(),
            count(self.most)
        );
        if self.number == 0 { "  none".to_string() } else { format!("{}\n{about}", bars(rows)) }
    }

    pub(super) fn to_value(&self) -> Value {
        let buckets = self.filled().map(|(from, to, number)| json!([from, to, number]));
        json!({
            "sum": self.sum,
            "least": self.least,
            "most": self.most,
            "histogram": buckets.collect::<Vec<_>>(),
        })
    }
}

/// The records with the longest values.
pub(super) struct Largest {
    room: usize,
    found: BTreeSet<(u64, Vec<u8>)>,
    list: Vec<(u64, Vec<u8>)>,
}

impl Largest {
    pub(super) fn new(room: usize) -> Largest {
        Largest { room, found: BTreeSet::new(), list: Vec::new() }
    }

    pub(super) fn add(&mut self, key: &[u8], bytes: u64) {
        let least = self.found.first().map_or(0, |(bytes, _)| *bytes);
        if self.room == 0 || bytes == 0 || self.found.len() == self.room && bytes <= least {
            return;
        }
        self.found.insert((bytes, key.to_vec()));
        if self.found.len() > self.room {
            self.found.pop_first();
        }
        self.list = self.found.iter().rev().cloned().collect();
    }

    /// The largest first.
    pub(super) fn list(&self) -> &[(u64, Vec<u8>)] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_by_powers_of_two() {
        let mut sizes = Sizes::default();
        for bytes in [0, 1, 2, 3, 4, 7, 8, 1000] {
            sizes.add(bytes);
        }
        let buckets: Vec<_> = sizes.filled().filter(|(_, _, n)| *n > 0).collect();
        assert_eq!(
            buckets,
            [(0, 0, 1), (1, 1, 1), (2, 3, 2), (4, 7, 2), (8, 15, 1), (512, 1023, 1)]
        );
        assert_eq!((sizes.sum(), sizes.only()), (1025, None));
        assert!(Sizes::bounds(64).1 == u64::MAX);
    }

    #[test]
    fn the_largest_are_kept() {
        let mut largest = Largest::new(2);
        for (key, bytes) in [("a", 5), ("b", 9), ("c", 1), ("d", 7), ("e", 7)] {
            largest.add(key.as_bytes(), bytes);
        }
        assert_eq!(largest.list(), [(9, b"b".to_vec()), (7, b"d".to_vec())]);
        let mut none = Largest::new(0);
        none.add(b"a", 5);
        assert!(none.list().is_empty());
    }

    #[test]
    fn bars_are_as_long_as_what_they_show() {
        let rows = [("a", 8u64), ("b", 4), ("c", 0)].map(|(name, n)| (name.to_string(), n));
        let shown = bars(rows.into_iter());
        let long: Vec<_> = shown.lines().map(|l| l.matches('█').count()).collect();
        assert_eq!(long, [40, 20, 0], "{shown}");
    }
}
