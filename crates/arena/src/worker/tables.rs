//! Work on several tables: records with two secondary indexes, and many values under a key. A
//! record's group is a field of it that changes with each update; its name is one that never
//! does. Keys of records are numbers, so that what an index names can be checked.

use std::time::Instant;

use super::dataset::{Dataset, Quad};
use super::timing::{Clock, Latency};
use super::writes::transactions;
use super::{Done, timed};
use crate::data::{Data, is_whole};
use crate::keys::{Chooser, KEY_MAX, scatter};
use crate::peers::tables::{Change, Find, PAIR_KEY, Place};
use crate::peers::{Fault, Outcome, Session};
use crate::spec::Bound;

/// Records of a group, on average.
const GROUP: u64 = 50;

/// What the indexes must hold.
pub(super) struct Index {
    /// Records in each group.
    counts: Vec<u64>,
    /// Whether there are records, or pairs alone.
    rows: bool,
}

impl Index {
    pub(super) fn new(records: u64, rows: bool) -> Index {
        Index { counts: vec![0; (records / GROUP).max(1) as usize], rows }
    }

    fn group(&self, serial: u64, age: u16) -> u64 {
        let mixed = scatter(serial ^ (u64::from(age) + 1) << 40);
        ((u128::from(mixed) * self.counts.len() as u128) >> 64) as u64
    }

    fn count(&mut self, group: u64, there: bool) {
        let count = &mut self.counts[group as usize];
        *count = if there { *count + 1 } else { count.saturating_sub(1) };
    }

    /// The changes that put a record, or delete it.
    fn row(&mut self, data: &Data, serial: u64, age: u16, gone: bool, changes: &mut Vec<Change>) {
        let key = data.key(serial, &mut [0; KEY_MAX]).to_vec();
        if self.rows {
            let value = data.value(serial, age, &mut Vec::new()).to_vec();
            changes.push(Change { place: Place::Records, key: key.clone(), value, gone });
            let name = scatter(!serial).to_be_bytes().to_vec();
            let place = Place::Pairs(1);
            changes.push(Change { place, key: name, value: key.clone(), gone });
        }
        self.pair(serial, age, &key, gone, changes);
    }

    fn pair(&mut self, serial: u64, age: u16, key: &[u8], gone: bool, changes: &mut Vec<Change>) {
        let group = self.group(serial, age);
        self.count(group, !gone);
        let place = Place::Pairs(0);
        changes.push(Change { place, key: pair_key(group).to_vec(), value: key.to_vec(), gone });
    }

    /// 2 inserts, 1 update, 1 delete.
    fn quad(&mut self, data: &Data, quad: &Quad, ages: (u16, u16)) -> Vec<Change> {
        let mut changes = Vec::new();
        for serial in quad.inserted() {
            self.row(data, serial, 0, false, &mut changes);
        }
        let (serial, age) = quad.updated();
        let key = data.key(serial, &mut [0; KEY_MAX]).to_vec();
        if self.rows {
            let value = data.value(serial, age, &mut Vec::new()).to_vec();
            let (place, key) = (Place::Records, key.clone());
            changes.push(Change { place, key, value, gone: false });
        }
        // Away first: another group may be the same one.
        self.pair(serial, ages.0, &key, true, &mut changes);
        self.pair(serial, age, &key, false, &mut changes);
        self.row(data, quad.deleted(), ages.1, true, &mut changes);
        // By table, in their order: the sort keeps what belongs together in its order.
        changes.sort_by_key(|change| match change.place {
            Place::Records => 0,
            Place::Pairs(i) => 1 + i,
        });
        changes
    }
}

fn pair_key(group: u64) -> [u8; PAIR_KEY] {
    // Groups in use are not neighbours.
    scatter(group).to_be_bytes()
}

fn bytes(changes: &[Change]) -> u64 {
    let put = changes.iter().filter(|change| !change.gone);
    put.map(|change| (change.key.len() + change.value.len()) as u64).sum()
}

/// Records with their indexes, in transactions of `batch`, into a new store; an operation is a
/// record.
pub(super) fn load(
    session: &mut impl Session,
    data: &Data,
    index: &mut Index,
    batch: u64,
) -> Outcome<Done> {
    let records = data.shape.records;
    let (mut latency, mut put) = (Latency::new(), 0);
    let ((), during) = timed(|| {
        for first in (0..records).step_by(batch.max(1) as usize) {
            let mut changes = Vec::new();
            for serial in first..(first + batch).min(records) {
                index.row(data, serial, 0, false, &mut changes);
            }
            changes.sort_by_key(|change| change.place != Place::Records);
            changes.sort_by_key(|change| change.place == Place::Pairs(1));
            put += bytes(&changes);
            let began = Instant::now();
            session.change(&changes)?;
            latency.add(began);
        }
        Ok(())
    })?;
    let part = latency.into_part(records, during.wall_s);
    Ok(Done { user_bytes: put, ..Done::of(part, during) })
}

/// 2 inserts, 1 update, 1 delete of records with their indexes, in one transaction.
pub(super) fn change(
    session: &mut impl Session,
    data: &Data,
    datasets: &mut [Dataset],
    index: &mut Index,
    bound: Bound,
) -> Outcome<Done> {
    let count = datasets.len();
    transactions(bound, |i| {
        let dataset = &mut datasets[i as usize % count];
        let Some(quad) = dataset.quads(1, true).pop() else { return Ok(None) };
        let ages = (quad.updated().1.wrapping_sub(1), dataset.age_of(quad.deleted()));
        let changes = index.quad(data, &quad, ages);
        session.change(&changes)?;
        Ok(Some(bytes(&changes)))
    })
}

/// Look-ups of random groups: at most `most` values of each, with their records if there are any.
/// An operation is a value.
pub(super) fn find(
    session: &mut impl Session,
    data: &Data,
    index: &Index,
    most: u64,
    (seed, bound): (u64, Bound),
) -> Outcome<Done> {
    let mut chooser = Chooser::new(seed);
    let (mut latency, mut read_bytes) = (Latency::new(), 0);
    let ((ops, seconds), during) = timed(|| {
        let (clock, mut ops) = (Clock::start(bound), 0);
        while clock.goes_on(ops) {
            let group = chooser.below(index.counts.len() as u64);
            let began = Instant::now();
            let (seen, bytes) = group_of(session, data, index, group, most)?;
            latency.add(began);
            (ops, read_bytes) = (ops + seen.max(1), read_bytes + bytes);
        }
        Ok((ops, clock.seconds()))
    })?;
    Ok(Done { read_bytes, ..Done::of(latency.into_part(ops, seconds), during) })
}

/// Looks one group up and verifies it; returns how many values and bytes there were.
fn group_of(
    session: &mut impl Session,
    data: &Data,
    index: &Index,
    group: u64,
    most: u64,
) -> Outcome<(u64, u64)> {
    let key = pair_key(group);
    let find = Find { pairs: 0, key: &key, most, records: index.rows };
    let (mut wrong, mut bytes) = (0u64, 0);
    let seen = session.find(find, |value, record| {
        bytes += (value.len() + record.map_or(0, <[u8]>::len)) as u64;
        let serial = value.first_chunk().map(|b| u64::from_be_bytes(*b));
        let right = match (serial, record, index.rows) {
            (Some(_), None, false) => true,
            (Some(serial), Some(record), true) => {
                let age = data.age_of(serial, record);
                age.is_some_and(|age| index.group(serial, age) == group)
            }
            _ => false,
        };
        wrong += u64::from(!right);
    })?;
    let expected = index.counts[group as usize].min(most);
    if wrong > 0 || seen != expected {
        let text = format!("group {group}: {seen} of {expected} values, {wrong} of them wrong");
        return Err(Fault::Failed(text));
    }
    Ok((seen, bytes))
}

/// Records found through the index, and how many of them are damaged.
pub(super) fn inspect(
    session: &mut impl Session,
    data: &Data,
    index: &Index,
) -> Outcome<(u64, u64)> {
    let (mut all, mut damaged) = (0, 0);
    for group in 0..index.counts.len() as u64 {
        all += group_of(session, data, index, group, u64::MAX)?.0;
        let key = pair_key(group);
        let find = Find { pairs: 0, key: &key, most: u64::MAX, records: index.rows };
        session.find(find, |_, record| {
            damaged += u64::from(record.is_some_and(|record| !is_whole(record)));
        })?;
    }
    Ok((all, damaged))
}
