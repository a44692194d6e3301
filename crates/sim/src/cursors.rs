//! Cursors in tables that change, in one write transaction: their steps are compared with
//! those of places in sorted lists. Pages are written early, or nested levels are undone, meanwhile.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::panic::catch_unwind;

use support::Rng;
use zubilo::{CursorId, Env, Options, TableId, WriteTxn};

use crate::disk::SimDisk;
use crate::run::Outcome;
use crate::session::Failure;

/// What happens beside changes of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Nothing.
    Changes,
    /// Nested levels begin, and are kept or undone.
    Levels,
    /// Changes take so much memory that pages are written early.
    EarlyWrites,
}

/// The names of the workloads.
pub const NAMES: [(&str, Beside); 3] = [
    ("cursors", Beside::Changes),
    ("cursors-nested", Beside::Levels),
    ("cursors-early", Beside::EarlyWrites),
];

const TABLES: usize = 2;
const CURSORS: usize = 6;
const KEYS: u64 = 600;
const STEPS: u64 = 4000;

/// Where a cursor stands, as a reader of the documentation would expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Unset,
    On(u64),
    /// Before this record, as the one under the cursor was deleted.
    Before(u64),
    End,
}

#[derive(Clone, Copy)]
enum Step {
    Next,
    Prev,
    Seek(u64),
}

type List = BTreeMap<u64, Vec<u8>>;

/// What is to be in the tables, and where the cursors stand.
#[derive(Clone)]
struct Model {
    tables: [List; TABLES],
    places: [Place; CURSORS],
}

impl Model {
    /// A step, and the record it leads to.
    fn step(&mut self, cursor: usize, step: Step) -> Option<(u64, Vec<u8>)> {
        let (list, place) = (&self.tables[cursor % TABLES], &mut self.places[cursor]);
        let first = || list.keys().next().copied();
        let last = || list.keys().next_back().copied();
        let found = match (step, *place) {
            (Step::Seek(key), _) => list.range(key..).next().map(|(key, _)| *key),
            (Step::Next, Place::Unset) => first(),
            (Step::Next, Place::On(key)) => {
                list.range((Excluded(key), Unbounded)).next().map(|(key, _)| *key)
            }
            (Step::Next, Place::Before(key)) => Some(key),
            (Step::Next, Place::End) => None,
            (Step::Prev, Place::Unset | Place::End) => last(),
            (Step::Prev, Place::On(key) | Place::Before(key)) => {
                list.range(..key).next_back().map(|(key, _)| *key)
            }
        };
        *place = match (found, step, *place) {
            (Some(key), _, _) => Place::On(key),
            (None, Step::Seek(_), _) => Place::End,
            // At the start it keeps its place, and what was deleted there does not matter any more.
            (None, Step::Prev, Place::Before(key)) => Place::On(key),
            (None, Step::Prev, Place::End) => Place::Unset,
            (None, _, place) => place,
        };
        found.map(|key| (key, list[&key].clone()))
    }

    fn delete(&mut self, table: usize, key: u64) -> bool {
        let list = &mut self.tables[table];
        let gone = list.remove(&key).is_some();
        let next = list.range(key..).next().map(|(key, _)| *key);
        for place in self.places.iter_mut().skip(table).step_by(TABLES) {
            if matches!(*place, Place::On(at) | Place::Before(at) if gone && at == key) {
                *place = next.map_or(Place::End, Place::Before);
            }
            if gone && list.is_empty() {
                *place = Place::Unset;
            }
        }
        gone
    }
}

/// The transaction beside its model.
struct Walk {
    txn: WriteTxn,
    tables: [TableId; TABLES],
    cursors: [CursorId; CURSORS],
    model: Model,
    /// As each open level found it.
    outer: Vec<Model>,
    rng: Rng,
}

fn key_bytes(key: u64) -> [u8; 8] {
    key.to_be_bytes()
}

impl Walk {
    fn begin(env: &Env, seed: u64) -> zubilo::Result<Walk> {
        let mut txn = env.write()?;
        let mut tables = Vec::new();
        for name in ["one", "two"] {
            txn.table_or_create(name)?;
            tables.push(txn.table_id(name)?);
        }
        let tables: [TableId; TABLES] = std::array::from_fn(|i| tables[i]);
        let mut cursors = Vec::new();
        for i in 0..CURSORS {
            cursors.push(txn.open_cursor(tables[i % TABLES])?);
        }
        let cursors = std::array::from_fn(|i| cursors[i]);
        let model = Model { tables: Default::default(), places: [Place::Unset; CURSORS] };
        Ok(Walk { txn, tables, cursors, model, outer: Vec::new(), rng: Rng::new(seed) })
    }

    /// One change, or one step of a cursor. Gives what is wrong with it.
    fn advance(&mut self, beside: Beside) -> zubilo::Result<Option<String>> {
        match self.rng.below(12) {
            0..=2 => self.put()?,
            3 | 4 => return self.delete(),
            5 if beside == Beside::Levels => self.change_level()?,
            _ => return self.step(),
        }
        Ok(None)
    }

    fn put(&mut self) -> zubilo::Result<()> {
        let (table, key) = (self.rng.index(TABLES), self.rng.below(KEYS));
        let len = self.rng.index(300);
        let value = self.rng.bytes(len);
        self.txn.at(self.tables[table])?.put(key_bytes(key), &value)?;
        self.model.tables[table].insert(key, value);
        Ok(())
    }

    fn delete(&mut self) -> zubilo::Result<Option<String>> {
        let table = self.rng.index(TABLES);
        let under: Vec<u64> = self
            .model
            .places
            .iter()
            .skip(table)
            .step_by(TABLES)
            .filter_map(|place| match place {
                Place::On(key) | Place::Before(key) => Some(*key),
                _ => None,
            })
            .collect();
        // Every other time what a cursor stands on.
        let key = match under.is_empty() || self.rng.one_in(2) {
            true => self.rng.below(KEYS),
            false => self.rng.pick(&under),
        };
        let (gone, expected) = (
            self.txn.at(self.tables[table])?.delete(key_bytes(key))?,
            self.model.delete(table, key),
        );
        Ok((gone != expected).then(|| format!("delete of {key} gave {gone}")))
    }

    fn change_level(&mut self) -> zubilo::Result<()> {
        match (self.outer.len(), self.rng.below(3)) {
            (0, _) | (1 | 2, 0) => {
                self.txn.begin_nested()?;
                self.outer.push(self.model.clone());
            }
            (_, 1) => {
                self.txn.commit_nested()?;
                self.outer.pop();
            }
            _ => {
                self.txn.abort_nested()?;
                self.model = self.outer.pop().expect("a level is open");
            }
        }
        Ok(())
    }

    fn step(&mut self) -> zubilo::Result<Option<String>> {
        let i = self.rng.index(CURSORS);
        let step = match self.rng.below(8) {
            0..=3 => Step::Next,
            4..=6 => Step::Prev,
            _ => Step::Seek(self.rng.below(KEYS)),
        };
        let before = self.model.places[i];
        let mut cursor = self.txn.cursor(self.cursors[i])?;
        let found = match step {
            Step::Next => cursor.next()?,
            Step::Prev => cursor.prev()?,
            Step::Seek(key) => cursor.seek(key_bytes(key))?,
        };
        let found = found.map(|(key, value)| (key.to_vec(), value.to_vec()));
        let expected =
            self.model.step(i, step).map(|(key, value)| (key_bytes(key).to_vec(), value));
        if found == expected {
            return Ok(None);
        }
        let keys = [found, expected].map(|pair| pair.map(|(key, _)| key));
        Ok(Some(format!("a cursor at {before:?} found {:?} instead of {:?}", keys[0], keys[1])))
    }
}

fn walk(seed: u64, beside: Beside) -> Result<(), Failure> {
    let wrong = |error: zubilo::Error| Failure::Misbehaved(error.to_string());
    let limit = if beside == Beside::EarlyWrites { 24 << 10 } else { 1 << 30 };
    let disk = SimDisk::new(&[], false);
    let options = Options::new().dirty_limit(limit);
    let env = Env::open_parts(Box::new(disk), [1; 16], options).map_err(wrong)?;
    let mut walk = Walk::begin(&env, seed).map_err(wrong)?;
    for _ in 0..STEPS {
        match walk.advance(beside) {
            Ok(None) => {}
            Ok(Some(why)) => return Err(Failure::Corrupt(why)),
            Err(error) => return Err(wrong(error)),
        }
    }
    Ok(())
}

/// The workload of this name, if it is one of these; it counts as one state.
pub fn run(name: &str, seed: u64) -> Outcome {
    let mut outcome = Outcome::default();
    for (_, beside) in NAMES.iter().filter(|(known, _)| *known == name) {
        outcome.states += 1;
        // A panic of the engine is a failure like others; its message has been printed.
        let walked = catch_unwind(|| walk(seed, *beside));
        let panicked = Failure::Misbehaved("a panic".into());
        if let Err(failure) = walked.unwrap_or(Err(panicked)) {
            outcome.fail(format!("{name} --seed {seed}"), &failure);
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::{NAMES, run};

    #[test]
    fn cursors_agree_with_sorted_lists_while_tables_change() {
        let first = support::random::seed(1);
        for (name, _) in NAMES {
            for seed in first..first + 4 {
                let outcome = run(name, seed);
                assert_eq!(outcome.failures, Vec::<String>::new());
            }
        }
    }
}
