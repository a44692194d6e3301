//! What writers do: batches of visits, and towns that are founded and given up. A batch changes
//! records, indexes, totals and the journal in one transaction.

use std::collections::VecDeque;

use anyhow::{Context, Result, ensure};
use zubilo::{Env, TxnId, WriteTxn};

use super::data::Place;
use super::store::{self, Totals};

/// New towns that a writer keeps before it gives up the oldest one.
const TOWNS: usize = 100;

/// One transaction's changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The town founded, 0 for none; its number is known when the batch is applied.
    pub(crate) founded: u32,
    /// The town given up, 0 for none.
    pub(crate) given_up: u32,
    /// Places and how often they are visited.
    pub(crate) visits: Vec<(u32, u8)>,
}

impl Batch {
    /// As the journal has it.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + 5 * self.visits.len());
        bytes.extend(self.founded.to_le_bytes());
        bytes.extend(self.given_up.to_le_bytes());
        for (id, times) in &self.visits {
            bytes.extend(id.to_le_bytes());
            bytes.push(*times);
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Batch> {
        let (head, visits) = bytes.split_at_checked(8).context("a batch is too short")?;
        let (visits, rest) = visits.as_chunks::<5>();
        ensure!(rest.is_empty(), "a batch ends in the middle of a visit");
        let number = |at: usize| {
            let bytes = head.get(at..).and_then(|bytes| bytes.first_chunk());
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
        };
        let visits =
            visits.iter().map(|[a, b, c, d, times]| (u32::from_le_bytes([*a, *b, *c, *d]), *times));
        Ok(Batch { founded: number(0), given_up: number(4), visits: visits.collect() })
    }
}

/// Makes up batches and commits them.
pub(crate) struct Writer {
    rng: fastrand::Rng,
    /// Places 1 to this are those of the data set; only they are visited.
    places: u32,
    towns: VecDeque<u32>,
}

impl Writer {
    pub(crate) fn new(seed: u64, places: u32) -> Writer {
        Writer {
            rng: fastrand::Rng::with_seed(seed),
            places: places.max(1),
            towns: VecDeque::new(),
        }
    }

    /// Most batches are small; one in sixteen changes hundreds of pages.
    fn batch(&mut self) -> Batch {
        let many = if self.rng.u8(..16) == 0 { 500 } else { 20 };
        let visits = (0..self.rng.usize(1..=many))
            .map(|_| (self.rng.u32(1..=self.places), self.rng.u8(1..=9)))
            .collect();
        let given_up = if self.towns.len() >= TOWNS { self.towns.pop_front() } else { None };
        Batch { founded: 0, given_up: given_up.unwrap_or(0), visits }
    }

    /// One transaction: begun, filled, committed. `begun` is called when it has the lock.
    pub(crate) fn commit(
        &mut self,
        env: &Env,
        begun: impl FnOnce() -> Result<()>,
    ) -> Result<TxnId> {
        let mut write = env.write()?;
        begun()?;
        self.fill(&mut write)?;
        Ok(write.commit()?)
    }

    /// One transaction with more in it.
    #[cfg(test)]
    pub(crate) fn commit_with(
        &mut self,
        env: &Env,
        more: impl FnOnce(&mut WriteTxn),
    ) -> Result<()> {
        let mut write = env.write()?;
        self.fill(&mut write)?;
        more(&mut write);
        Ok(write.commit().map(drop)?)
    }

    fn fill(&mut self, write: &mut WriteTxn) -> Result<()> {
        let batch = self.batch();
        let near = self.rng.u32(1..=self.places);
        let town = apply(write, &batch, near)?;
        self.towns.push_back(town);
        Ok(())
    }
}

/// Applies a batch and founds a town near the place `near`; gives the town's number.
fn apply(write: &mut WriteTxn, batch: &Batch, near: u32) -> Result<u32> {
    let mut totals = Totals::in_write(write)?;
    visit(write, &batch.visits, &mut totals)?;
    if batch.given_up != 0 {
        let town = find(write, batch.given_up)?;
        ensure!(store::remove(write, &town)?, "the town {} had lost entries", town.id);
        totals.places -= 1;
    }
    let town = found(write, near, &mut totals)?;
    let batch = Batch { founded: town, ..batch.clone() };
    totals.commit = write.id().0;
    totals.batches += 1;
    write.table(store::JOURNAL)?.put(totals.commit.to_be_bytes(), batch.encode())?;
    totals.put(write)?;
    Ok(town)
}

fn find(write: &mut WriteTxn, id: u32) -> Result<Place> {
    let places = write.table(store::PLACES)?;
    let record = places.get(id.to_be_bytes())?;
    store::decode(id, record.with_context(|| format!("no place has the number {id}"))?)
}

/// Counts visits in the records, then moves the places in the index.
fn visit(write: &mut WriteTxn, visits: &[(u32, u8)], totals: &mut Totals) -> Result<()> {
    let mut moves = Vec::with_capacity(visits.len());
    let mut places = write.table(store::PLACES)?;
    for (id, times) in visits {
        let key = id.to_be_bytes();
        let record = places.get(key)?.with_context(|| format!("no place has the number {id}"))?;
        let mut record = record.to_vec();
        let old = store::visits_of(&record)?;
        let new = old.checked_add(u32::from(*times)).context("too many visits")?;
        store::set_visits(&mut record, new)?;
        places.put(key, record)?;
        moves.push((*id, old, new));
        totals.visits += u64::from(*times);
        totals.visited += u64::from(old == 0);
    }
    let mut ranks = write.table(store::BY_VISITS)?;
    for (id, old, new) in moves {
        let moved = old == 0 || ranks.delete(store::visits_key(old, id))?;
        ensure!(moved, "the place {id} was missing in the index of visits");
        ranks.put(store::visits_key(new, id), "")?;
    }
    Ok(())
}

fn found(write: &mut WriteTxn, near: u32, totals: &mut Totals) -> Result<u32> {
    let mut town = find(write, near)?;
    town.id = u32::try_from(totals.next_id)?;
    town.name.insert_str(0, "New ");
    town.lat = (town.lat + 1000).min(9_000_000);
    town.visits = 0;
    store::insert(write, &town)?;
    totals.next_id += 1;
    totals.places += 1;
    Ok(town.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_come_back_as_they_went_in() {
        let mut writer = Writer::new(1, 1000);
        for _ in 0..100 {
            let batch = Batch { founded: 7, given_up: 9, ..writer.batch() };
            let bytes = batch.encode();
            assert_eq!(Batch::decode(&bytes).unwrap(), batch);
            assert!(Batch::decode(&bytes[..bytes.len() - 1]).is_err());
        }
        assert!(Batch::decode(b"short").is_err());
    }
}
