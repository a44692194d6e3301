//! What keys begin with: the start that all share, and the most frequent next parts. Keys come sorted, so
//! those with one start are neighbours; in other orders neighbours may have it more than once, and are
//! added up.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::encoding::{escape, to_json};
use crate::output::{count, table};

/// Longest part after the common start, where no separator ends it.
const PART: usize = 8;
/// Different parts that are kept.
const PARTS: usize = 10_000;
/// Parts that are shown.
const TOLD: usize = 8;

/// Starts of keys, by number.
#[derive(Default)]
pub(super) struct Prefixes {
    number: u64,
    /// Bytes that keys share with the one before.
    shared: u64,
    bytes: u64,
    last: Vec<u8>,
    common: Option<Vec<u8>>,
    parts: HashMap<Vec<u8>, u64>,
    /// More different parts than are kept.
    crowded: bool,
}

fn shared(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl Prefixes {
    pub(super) fn add(&mut self, key: &[u8]) {
        self.number += 1;
        self.bytes += key.len() as u64;
        self.shared += shared(&self.last, key) as u64;
        self.last.clear();
        self.last.extend_from_slice(key);
        match &mut self.common {
            None => self.common = Some(key.to_vec()),
            Some(common) => common.truncate(shared(common, key)),
        }
        let part = part(key);
        if let Some(number) = self.parts.get_mut(part) {
            *number += 1;
        } else if self.parts.len() < PARTS {
            self.parts.insert(part.to_vec(), 1);
        } else {
            self.crowded = true;
        }
    }

    /// The part of keys that the one before has, too.
    pub(super) fn share(&self) -> f64 {
        self.shared as f64 / self.bytes.max(1) as f64
    }

    /// The most frequent starts, if they say anything: several, of which some have many keys.
    fn frequent(&self) -> Vec<(&[u8], u64)> {
        let mut parts: Vec<_> = self.parts.iter().map(|(part, n)| (part.as_slice(), *n)).collect();
        parts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let is_frequent = |n: u64| n > 1 && n.saturating_mul(50) >= self.number;
        parts.retain(|(_, n)| is_frequent(*n));
        parts.truncate(TOLD);
        parts
    }

    pub(super) fn show(&self) -> Option<String> {
        if self.number < 2 {
            return None;
        }
        let common = self.common.as_deref().unwrap_or_default();
        let mut lines = vec![format!(
            "keys share {:.0} % of their bytes with the key before",
            100.0 * self.share()
        )];
        if !common.is_empty() {
            lines.push(format!("all begin with \"{}\"", escape(common)));
        }
        let frequent = self.frequent();
        if frequent.len() > 1 || frequent.first().is_some_and(|(_, n)| *n < self.number) {
            let mut rows = table(&["keys begin with", "records", "share"], 1);
            for (part, n) in frequent {
                let share = format!("{:.1} %", 100.0 * n as f64 / self.number.max(1) as f64);
                rows.add_row([escape(part).into_owned(), count(n), share]);
            }
            lines.push(rows.trim_fmt());
        }
        Some(lines.join("\n"))
    }

    pub(super) fn to_value(&self) -> Value {
        let frequent = self.frequent();
        let frequent = frequent.iter().map(|(part, n)| json!([to_json(part), n]));
        json!({
            "common": to_json(self.common.as_deref().unwrap_or_default()),
            "shared": self.share(),
            "frequent": frequent.collect::<Vec<_>>(),
            "complete": !self.crowded,
        })
    }
}

/// The first word of a key with the separator after it, or its first bytes.
fn part(key: &[u8]) -> &[u8] {
    let separator = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte < 0x80;
    let end = key.iter().position(separator).map_or(PART, |at| at + 1);
    key.get(..end.min(64)).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_starts_are_found() {
        let mut prefixes = Prefixes::default();
        for n in 0..90 {
            prefixes.add(format!("user:{n:04}").as_bytes());
        }
        for n in 0..10 {
            prefixes.add(format!("x/{n}").as_bytes());
        }
        prefixes.add(b"single");
        assert_eq!(prefixes.frequent(), [(&b"user:"[..], 90), (b"x/", 10)]);
        assert_eq!(prefixes.common.as_deref(), Some(&b""[..]));
        assert!(prefixes.share() > 0.5);
        let mut same = Prefixes::default();
        (0..5u8).for_each(|n| same.add(&[b'k', b'-', n]));
        assert!(same.show().unwrap().contains("all begin with \"k-\""));
        assert!(Prefixes::default().show().is_none());
    }
}
