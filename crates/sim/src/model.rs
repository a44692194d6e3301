//! What the store should hold: one map a table, one state a commit.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use zubilo::{KeyOrder, ReadTxn, TableOptions};

/// How many values a key has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Values {
    /// One.
    #[default]
    One,
    /// Many, of any lengths.
    Many,
    /// Many, all of one length.
    Fixed,
}

/// What a table was created as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// Values under a key.
    pub values: Values,
    /// Keys are sorted from their last byte on.
    pub reversed: bool,
}

impl Kind {
    /// As the store gets it.
    pub fn options(self) -> TableOptions {
        let order = if self.reversed { KeyOrder::Reversed } else { KeyOrder::Bytes };
        let options = TableOptions::new().key_order(order);
        match self.values {
            Values::One => options,
            Values::Many => options.duplicates(),
            Values::Fixed => options.fixed_duplicates(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stored {
    One(Arc<[u8]>),
    Many(BTreeSet<Arc<[u8]>>),
}

/// The records of a table, by keys in the form whose bytes sort as the table does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What it was created as.
    pub kind: Kind,
    records: BTreeMap<Vec<u8>, Stored>,
}

impl Table {
    /// An empty one.
    pub fn new(kind: Kind) -> Table {
        Table { kind, records: BTreeMap::new() }
    }

    fn form(&self, key: &[u8]) -> Vec<u8> {
        if self.kind.reversed { key.iter().rev().copied().collect() } else { key.to_vec() }
    }

    /// Puts a value in the place of the one there is, or adds it to the others.
    pub fn put(&mut self, key: &[u8], value: Vec<u8>) {
        let (key, value) = (self.form(key), value.into());
        if self.kind.values == Values::One {
            self.records.insert(key, Stored::One(value));
            return;
        }
        match self.records.entry(key) {
            Entry::Vacant(place) => {
                place.insert(Stored::Many(BTreeSet::from([value])));
            }
            Entry::Occupied(mut place) => {
                if let Stored::Many(values) = place.get_mut() {
                    values.insert(value);
                }
            }
        }
    }

    /// Removes a key with all its values.
    pub fn delete(&mut self, key: &[u8]) {
        self.records.remove(&self.form(key));
    }

    /// Removes one value of a key.
    pub fn delete_value(&mut self, key: &[u8], value: &[u8]) {
        if let Entry::Occupied(mut place) = self.records.entry(self.form(key))
            && let Stored::Many(values) = place.get_mut()
        {
            values.remove(value);
            if values.is_empty() {
                place.remove();
            }
        }
    }

    /// Removes the keys from one to before another one.
    pub fn delete_range(&mut self, from: &[u8], to: &[u8]) {
        let (from, to) = (self.form(from), self.form(to));
        self.records.retain(|key, _| *key < from || *key >= to);
    }

    /// The `n`th value of a key that has many, counted round.
    pub fn value(&self, key: &[u8], n: u64) -> Option<Arc<[u8]>> {
        match self.records.get(&self.form(key))? {
            Stored::Many(values) => values.iter().nth(n as usize % values.len()).cloned(),
            Stored::One(_) => None,
        }
    }

    fn len(&self) -> usize {
        let count = |stored: &Stored| match stored {
            Stored::One(_) => 1,
            Stored::Many(values) => values.len(),
        };
        self.records.values().map(count).sum()
    }

    /// Keys, in order and as they were given, each with each of its values.
    fn pairs(&self) -> impl Iterator<Item = (Vec<u8>, &Arc<[u8]>)> {
        self.records.iter().flat_map(move |(key, stored)| {
            let (one, many) = match stored {
                Stored::One(value) => (Some(value), None),
                Stored::Many(values) => (None, Some(values)),
            };
            let values = one.into_iter().chain(many.into_iter().flatten());
            values.map(move |value| (self.form(key), value))
        })
    }
}

/// All tables by name.
pub type State = BTreeMap<Vec<u8>, Arc<Table>>;

/// The states that commits left or would have left, by transaction. A commit that failed and was
/// made again with other changes has several.
#[derive(Clone, Default)]
pub struct History {
    states: BTreeMap<u64, Vec<Arc<State>>>,
}

impl History {
    /// A store just created.
    pub fn new() -> History {
        let mut history = History::default();
        history.add(1, Arc::new(State::new()));
        history
    }

    /// A commit of `txn` is tried.
    pub fn add(&mut self, txn: u64, state: Arc<State>) {
        self.states.entry(txn).or_default().push(state);
    }

    /// It succeeded: other tries under the same number no longer count.
    pub fn settle(&mut self, txn: u64) {
        if let Some(tries) = self.states.get_mut(&txn)
            && let Some(last) = tries.pop()
        {
            *tries = vec![last];
        }
    }

    /// All newer commits are gone.
    pub fn cut(&mut self, txn: u64) {
        self.states.split_off(&(txn + 1));
    }

    /// The newest commit that was tried.
    pub fn newest(&self) -> u64 {
        self.states.last_key_value().map_or(0, |(txn, _)| *txn)
    }

    /// The state of a commit, the last one tried.
    pub fn state(&self, txn: u64) -> Option<&Arc<State>> {
        self.states.get(&txn)?.last()
    }

    /// Compares a snapshot with all states it may have; gives the one it has.
    pub fn matches(&self, read: &ReadTxn) -> Result<Arc<State>, String> {
        let txn = read.id().0;
        let tries = self.states.get(&txn).ok_or(format!("commit {txn} was never made"))?;
        let mut why = String::new();
        for state in tries.iter().rev() {
            match compare(read, state) {
                Ok(()) => return Ok(Arc::clone(state)),
                Err(difference) => why = difference,
            }
        }
        Err(format!("commit {txn}: {why}"))
    }
}

/// Compares all tables and records.
pub fn compare(read: &ReadTxn, state: &State) -> Result<(), String> {
    let text = |e: zubilo::Error| e.to_string();
    let names = read.tables().map_err(text)?;
    if !names.iter().eq(state.keys()) {
        return Err(format!("{} tables instead of {}", names.len(), state.len()));
    }
    for (name, table) in state {
        let name_text = String::from_utf8_lossy(name);
        let found = read.table(name).map_err(text)?;
        if found.len() != table.len() as u64 {
            return Err(format!("{name_text}: {} records, not {}", found.len(), table.len()));
        }
        let mut expected = table.pairs();
        for record in found.iter() {
            let (key, value) = record.map_err(text)?;
            match expected.next() {
                Some((k, v)) if k == key && **v == *value => {}
                Some((k, v)) if k == key => {
                    let at = v.iter().zip(value).position(|(a, b)| a != b);
                    return Err(format!(
                        "{name_text}: value of {key:x?} differs at {at:?}, {} for {} bytes",
                        value.len(),
                        v.len()
                    ));
                }
                _ => return Err(format!("{name_text}: unexpected key {key:x?}")),
            }
        }
        if expected.next().is_some() {
            return Err(format!("{name_text}: records are missing"));
        }
    }
    Ok(())
}
