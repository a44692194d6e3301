//! What the store should hold: one map a table, one state a commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use zubilo::ReadTxn;

/// The records of a table.
pub type Table = BTreeMap<Vec<u8>, Arc<[u8]>>;
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
        let mut expected = table.iter();
        for record in found.iter() {
            let (key, value) = record.map_err(text)?;
            match expected.next() {
                Some((k, v)) if k.as_slice() == key && **v == *value => {}
                Some((k, v)) if k.as_slice() == key => {
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
