//! Which records are alive: each writer owns datasets of records, so that no two writers change the
//! same one, and what each transaction does to them.

use crate::data::Data;
use crate::keys::{Chooser, KEY_MAX};
use crate::peers::{Fault, Outcome, Writer};

/// Datasets of a store, and so the most writers there may be.
pub(super) const DATASETS: u64 = 16;

/// The records of serial numbers `number + i * DATASETS` for `i` in [tail, head).
pub(super) struct Dataset {
    number: u64,
    tail: u64,
    head: u64,
    /// Changes of each record since it was put.
    ages: Vec<u16>,
    chooser: Chooser,
}

/// 2 inserts, 1 read, 1 update, 1 delete.
pub(super) struct Quad {
    insert: [u64; 2],
    /// Record and newest age that a read may show.
    read: (u64, u16),
    update: (u64, u16),
    delete: u64,
    /// Whether a read must show the newest age: not among many quads of one transaction, where
    /// engines that write batches show the age of the last commit.
    exact: bool,
}

impl Dataset {
    /// The datasets of a store with so many records, equally large but for one.
    pub(super) fn all(records: u64) -> Vec<Dataset> {
        let dataset = |number| {
            let head = records / DATASETS + u64::from(number < records % DATASETS);
            let (ages, chooser) = (vec![0; head as usize], Chooser::new(number + 7));
            Dataset { number, tail: 0, head, ages, chooser }
        };
        (0..DATASETS).map(dataset).collect()
    }

    fn serial(&self, i: u64) -> u64 {
        self.number + i * DATASETS
    }

    pub(super) fn len(&self) -> u64 {
        self.head - self.tail
    }

    /// The serial number of the `i`th record that is alive, the oldest first.
    pub(super) fn alive(&self, i: u64) -> u64 {
        self.serial(self.tail + i)
    }

    /// A new record; the state is that after it was put.
    pub(super) fn grow(&mut self) -> u64 {
        self.ages.push(0);
        self.head += 1;
        self.serial(self.head - 1)
    }

    /// Changes of a record of this dataset since it was put, also when it is gone.
    pub(super) fn age_of(&self, serial: u64) -> u16 {
        self.ages[(serial / DATASETS) as usize]
    }

    /// The record to delete next; the state is that after it.
    pub(super) fn shrink(&mut self) -> Option<u64> {
        if self.len() <= 1 {
            return None;
        }
        self.tail += 1;
        Some(self.serial(self.tail - 1))
    }

    /// So many quads of the next transaction, `exact` if there are no others in it; the state is
    /// that after it.
    pub(super) fn quads(&mut self, count: u64, exact: bool) -> Vec<Quad> {
        // Reads and updates fall on records that neither come nor go in this transaction.
        let (first, end) = (self.tail + count, self.head);
        let quad = |_| {
            let mut alive = || first + self.chooser.below(end - first);
            let (read, update) = (alive(), alive());
            self.ages[update as usize] = self.ages[update as usize].wrapping_add(1);
            let update = (self.serial(update), self.ages[update as usize]);
            let newest = self.ages[read as usize];
            let same = self.serial(read) == update.0;
            let read_age = if same { newest.wrapping_sub(1) } else { newest };
            let insert = [self.grow(), self.grow()];
            self.tail += 1;
            Quad {
                insert,
                read: (self.serial(read), read_age),
                update,
                delete: self.serial(self.tail - 1),
                exact,
            }
        };
        if end <= first { Vec::new() } else { (0..count).map(quad).collect() }
    }
}

impl Quad {
    pub(super) fn inserted(&self) -> [u64; 2] {
        self.insert
    }

    /// The record and its age then.
    pub(super) fn updated(&self) -> (u64, u16) {
        self.update
    }

    pub(super) fn deleted(&self) -> u64 {
        self.delete
    }

    pub(super) fn apply(
        &self,
        writer: &mut impl Writer,
        data: &Data,
        value: &mut Vec<u8>,
    ) -> Outcome<()> {
        let mut key = [0; KEY_MAX];
        for serial in self.insert {
            writer.put(data.key(serial, &mut key), data.value(serial, 0, value))?;
        }
        let (serial, age) = self.read;
        let seen = writer.get(data.key(serial, &mut key), |found| {
            found.and_then(|found| data.age_of(serial, found))
        })?;
        let right = seen.is_some_and(|seen| if self.exact { seen == age } else { seen <= age });
        if !right {
            let text = format!("record {serial} shows age {seen:?}, not {age}");
            return Err(Fault::Failed(text));
        }
        let (serial, age) = self.update;
        writer.put(data.key(serial, &mut key), data.value(serial, age, value))?;
        writer.delete(data.key(self.delete, &mut key))
    }

    /// Bytes of keys and values that it puts.
    pub(super) fn bytes(&self, data: &Data) -> u64 {
        data.bytes(self.insert[0]) + data.bytes(self.insert[1]) + data.bytes(self.update.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::keys::Kind;
    use crate::spec::{Shape, Values};

    /// A writer over a map that reads what was committed or its own changes.
    struct Model {
        records: BTreeMap<Vec<u8>, Vec<u8>>,
    }

    impl Writer for Model {
        fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
            self.records.insert(key.to_vec(), value.to_vec());
            Ok(())
        }

        fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
            Ok(see(self.records.get(key).map(|v| &v[..])))
        }

        fn delete(&mut self, key: &[u8]) -> Outcome<()> {
            let gone = self.records.remove(key);
            gone.map(drop).ok_or_else(|| Fault::Failed("nothing to delete".into()))
        }
    }

    #[test]
    fn transactions_touch_only_what_is_there() {
        let shape = Shape { keys: Kind::Random16, values: Values::Fixed(20), records: 64 };
        let data = Data::new(shape, 1);
        let (mut model, mut buffer) = (Model { records: BTreeMap::new() }, Vec::new());
        for serial in 0..64 {
            let key = data.key(serial, &mut [0; KEY_MAX]).to_vec();
            model.put(&key, data.value(serial, 0, &mut buffer)).unwrap();
        }
        let mut datasets = Dataset::all(64);
        for round in 0..200 {
            for dataset in &mut datasets {
                for quad in dataset.quads(1 + round % 3, round % 3 == 0) {
                    quad.apply(&mut model, &data, &mut buffer).unwrap();
                }
            }
        }
        let alive: u64 = datasets.iter().map(Dataset::len).sum();
        assert_eq!(model.records.len() as u64, alive);
        for dataset in &datasets {
            for i in 0..dataset.len() {
                let serial = dataset.alive(i);
                let key = data.key(serial, &mut [0; KEY_MAX]).to_vec();
                assert!(data.age_of(serial, &model.records[&key]).is_some());
            }
        }
    }

    #[test]
    fn a_wrong_read_is_a_fault() {
        let shape = Shape { keys: Kind::Random16, values: Values::Fixed(20), records: 64 };
        let data = Data::new(shape, 1);
        let mut model = Model { records: BTreeMap::new() };
        let quads = Dataset::all(64)[0].quads(1, true);
        let fault = quads[0].apply(&mut model, &data, &mut Vec::new()).unwrap_err();
        assert!(matches!(&fault, Fault::Failed(text) if text.contains("shows age None")));
    }
}
