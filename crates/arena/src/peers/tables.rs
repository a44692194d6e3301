//! Work on several tables in one transaction: records, and tables of pairs, which hold many values
//! under a key, as secondary indexes do. Engines that have tables and duplicates use them; the others
//! keep all in their one table, each key after a byte for its table, a pair's value as the end of
//! its key, as their users do.

use super::{Outcome, Reader, Session, Writer};

/// Tables of pairs that there are at most.
pub(crate) const PAIRS: usize = 2;
/// Bytes of the key of a pair.
pub(crate) const PAIR_KEY: usize = 8;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Records,
    Pairs(usize),
}

/// One change: a record put or deleted by its key, a pair added or removed.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) place: Place,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) gone: bool,
}

/// What a look-up of a key in a table of pairs wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Find<'k> {
    pub(crate) pairs: usize,
    pub(crate) key: &'k [u8],
    /// Values at most.
    pub(crate) most: u64,
    /// Whether the values are keys of records, which are wanted as well, of the same snapshot.
    pub(crate) records: bool,
}

impl Place {
    fn byte(self) -> u8 {
        match self {
            Place::Records => 0,
            Place::Pairs(i) => 1 + i as u8,
        }
    }

    /// The name of the table, where tables have names.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Place::Records => "records",
            Place::Pairs(0) => "pairs0",
            Place::Pairs(_) => "pairs1",
        }
    }
}

/// Key and value as one key.
pub(super) fn joined(key: &[u8], value: &[u8]) -> Vec<u8> {
    [key, value].concat()
}

/// The value of a pair that is kept as a key, if it is of this key.
pub(super) fn value_of<'p>(pair: &'p [u8], key: &[u8]) -> Option<&'p [u8]> {
    pair.strip_prefix(key)
}

/// All changes in one transaction of an engine with a single table.
pub(super) fn change_single(session: &mut impl Session, changes: &[Change]) -> Outcome<()> {
    session.write(|writer| {
        for change in changes {
            let mut key = vec![change.place.byte()];
            key.extend_from_slice(&change.key);
            let mut value = &change.value[..];
            if change.place != Place::Records {
                key.extend_from_slice(value);
                value = &[];
            }
            match change.gone {
                true => writer.delete(&key)?,
                false => writer.put(&key, value)?,
            }
        }
        Ok(())
    })
}

/// The values under a key, in an engine with a single table.
pub(super) fn find_single(
    session: &mut impl Session,
    find: Find<'_>,
    mut see: impl FnMut(&[u8], Option<&[u8]>),
) -> Outcome<u64> {
    let mut start = vec![Place::Pairs(find.pairs).byte()];
    start.extend_from_slice(find.key);
    session.read(|reader| {
        let mut values = Vec::new();
        reader.walk(Some(&start), find.most, |pair, _| {
            values.extend(value_of(pair, &start).map(<[u8]>::to_vec));
        })?;
        for value in &values {
            if find.records {
                let mut key = vec![Place::Records.byte()];
                key.extend_from_slice(value);
                reader.get(&key, |record| see(value, record))?;
            } else {
                see(value, None);
            }
        }
        Ok(values.len() as u64)
    })
}
