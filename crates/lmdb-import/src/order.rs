//! Orders: those that flags name, and those that records show.

use std::cmp::Ordering;

use lmdb_file::{Flags, Record};
use zubilo::{KeyOrder, TableOptions};

use crate::Own;

/// The options of a table with such flags.
pub(crate) fn options(flags: Flags, own: Own) -> TableOptions {
    // Where two orders are named: of keys the first wins in LMDB, of values the second.
    let keys = match (flags.reverse_keys(), flags.integer_keys()) {
        (true, _) => KeyOrder::Reversed,
        (false, true) => KeyOrder::Integer,
        (false, false) => KeyOrder::Bytes,
    };
    let mut options = TableOptions::new().key_order(keys);
    if own.keys {
        options = options.compare_keys(behind);
    }
    if !flags.duplicates() {
        return options;
    }
    options = match (flags.reverse_values(), flags.integer_values()) {
        _ if own.values => options.compare_values(behind),
        (_, true) => options.value_order(KeyOrder::Integer),
        (true, false) => options.value_order(KeyOrder::Reversed),
        (false, false) => options.value_order(KeyOrder::Bytes),
    };
    if flags.fixed_values() { options.fixed_duplicates() } else { options }
}

/// The order of a function that is not known, for records that come in its order: what is sought comes
/// after all that is there, but for itself.
fn behind(sought: &[u8], stored: &[u8]) -> Ordering {
    if sought == stored { Ordering::Equal } else { Ordering::Greater }
}

/// Watches whether records come in the order of the flags.
pub(crate) struct Watch {
    flags: Flags,
    last: Record,
    is_first: bool,
    sorted: bool,
    own: Own,
}

impl Watch {
    pub(crate) fn new(flags: Flags) -> Watch {
        let own = Own::default();
        Watch { flags, last: Record::default(), is_first: true, sorted: true, own }
    }

    /// Looks at the next record, and keeps it; gives an old one in exchange.
    pub(crate) fn look(&mut self, record: &mut Record) {
        std::mem::swap(&mut self.last, record);
        if std::mem::replace(&mut self.is_first, false) {
            return;
        }
        let (before, now, flags) = (&*record, &self.last, self.flags);
        // Little-endian numbers of one size compare from their last byte.
        let integers = flags.integer_values();
        let keys = by(&before.key, &now.key, flags.integer_keys() || flags.reverse_keys());
        let (own, is_own) = match keys {
            Ordering::Less => return,
            Ordering::Equal if flags.duplicates() => {
                if by(&before.value, &now.value, integers || flags.reverse_values()).is_lt() {
                    return;
                }
                // Of integers of other sizes LMDB compares a part.
                let is_integer = integers && !matches!(now.value.len(), 4 | 8);
                (&mut self.own.values, !is_integer)
            }
            _ => (&mut self.own.keys, true),
        };
        self.sorted = false;
        *own |= is_own;
    }

    /// The record that was looked at last.
    pub(crate) fn last(&self) -> &Record {
        &self.last
    }

    /// Whether all came in the order of the flags.
    pub(crate) fn is_sorted(&self) -> bool {
        self.sorted
    }

    /// Orders that must be a program's.
    pub(crate) fn own(&self) -> Own {
        self.own
    }
}

fn by(a: &[u8], b: &[u8], from_the_end: bool) -> Ordering {
    match from_the_end {
        true => a.iter().rev().cmp(b.iter().rev()),
        false => a.cmp(b),
    }
}
