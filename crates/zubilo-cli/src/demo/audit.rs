//! What must hold in every snapshot, whatever else goes on, and the checks of it.

use anyhow::{Context, Result, ensure};
use zubilo::{Env, ReadTxn};

use super::change::Batch;
use super::data::Place;
use super::store::{self, Totals};

/// How much of the snapshot to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The totals, the sizes of all tables, and all that the newest batch changed.
    Newest,
    /// Also each visited place with its index entry, and the sum of visits.
    Visits,
    /// Also each record, and the other index entries of one record in this many.
    Records {
        /// 1 for all.
        step: u32,
    },
}

/// A sound snapshot: what was read to know it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Audit {
    pub(crate) totals: Totals,
    /// Records and index entries read.
    pub(crate) reads: u64,
}

/// Verifies one snapshot; the error says what is torn.
pub(crate) fn snapshot(read: &ReadTxn, depth: Depth) -> Result<Audit> {
    let totals = Totals::of(read)?;
    let (commit, snapshot) = (totals.commit, read.id());
    ensure!(commit == snapshot.0, "totals of commit {commit} in the snapshot {snapshot}");
    for name in store::ONE_PER_PLACE {
        let (entries, places) = (read.table(name)?.len(), totals.places);
        ensure!(entries == places, "{entries} entries in the table {name:?}, {places} places");
    }
    let entries = read.table(store::JOURNAL)?.len();
    ensure!(entries == totals.batches, "{entries} batches of {} in the journal", totals.batches);
    let mut reads = newest(read, &totals)?;
    if depth != Depth::Newest {
        reads += visits(read, &totals)?;
    }
    if let Depth::Records { step } = depth {
        reads += records(read, &totals, step.max(1))?;
    }
    Ok(Audit { totals, reads })
}

/// The newest batch: each place that it visited, with its index entry, and the towns.
fn newest(read: &ReadTxn, totals: &Totals) -> Result<u64> {
    let Some(entry) = read.table(store::JOURNAL)?.iter().next_back() else { return Ok(0) };
    let (key, batch) = entry?;
    let newest = key.first_chunk().map_or(0, |number| u64::from_be_bytes(*number));
    ensure!(newest == totals.commit, "the journal ends with commit {newest}");
    let batch = Batch::decode(batch)?;
    let (places, ranks) = (read.table(store::PLACES)?, read.table(store::BY_VISITS)?);
    for (id, _) in &batch.visits {
        let record = places.get(id.to_be_bytes())?;
        let record = record.with_context(|| format!("place {id} was visited and is missing"))?;
        let recorded = store::visits_of(record)?;
        let indexed = ranks.get(store::visits_key(recorded, *id))?.is_some();
        ensure!(indexed, "place {id}: its {recorded} visits are not in the index");
    }
    let town = store::place(read, batch.founded)?;
    let indexed = read.table(store::BY_NAME)?.get(store::name_key(&town))?.is_some();
    ensure!(indexed, "the new town {} is not in the index of names", town.id);
    let given_up = places.get(batch.given_up.to_be_bytes())?.is_none();
    ensure!(given_up, "the town {} was given up and is still there", batch.given_up);
    Ok(2 * batch.visits.len() as u64 + 3)
}

/// The index of visits, against the records and the sum.
fn visits(read: &ReadTxn, totals: &Totals) -> Result<u64> {
    let places = read.table(store::PLACES)?;
    let (mut sum, mut visited) = (0, 0);
    for entry in read.table(store::BY_VISITS)?.iter() {
        let (key, _) = entry?;
        let (indexed, id) = (store::visits_in(key)?, store::id_of(key)?);
        let record = places.get(id.to_be_bytes())?;
        let record = record.with_context(|| format!("place {id} is in the index only"))?;
        let recorded = store::visits_of(record)?;
        ensure!(recorded == indexed, "place {id}: {recorded} visits, {indexed} in the index");
        sum += u64::from(indexed);
        visited += 1;
    }
    ensure!(visited == totals.visited, "{visited} places visited, totals say {}", totals.visited);
    ensure!(sum == totals.visits, "{sum} visits, totals say {}", totals.visits);
    Ok(2 * visited)
}

/// An index and how a place's key in it is made.
type Index = (&'static str, fn(&Place) -> Vec<u8>);

/// All records, and index entries of some.
fn records(read: &ReadTxn, totals: &Totals, step: u32) -> Result<u64> {
    let (mut sum, mut reads) = (0, 0);
    let indexes: [Index; 3] = [
        (store::BY_NAME, store::name_key),
        (store::BY_LATITUDE, store::latitude_key),
        (store::BY_CELL, store::cell_key),
    ];
    for entry in read.table(store::PLACES)?.iter() {
        let (key, record) = entry?;
        sum += u64::from(store::visits_of(record)?);
        reads += 1;
        let id = store::id_of(key)?;
        if id % step == 0 {
            let place = store::decode(id, record)?;
            for (name, key) in indexes {
                let found = read.table(name)?.get(key(&place))?.is_some();
                ensure!(found, "place {id} ({}) is not in the table {name:?}", place.name);
                reads += 1;
            }
        }
    }
    ensure!(sum == totals.visits, "{sum} visits in the records, totals say {}", totals.visits);
    Ok(reads)
}

/// Does every batch of the journal anew, in memory, and compares: no batch is there in part, none
/// is there without its journal entry, and no place was changed by anything else.
pub(crate) fn replay(read: &ReadTxn, original: u32) -> Result<u64> {
    let totals = Totals::of(read)?;
    let size = usize::try_from(totals.next_id)?;
    let mut visits = vec![0u32; size];
    let mut lives: Vec<bool> = (0..size).map(|id| (1..=original as usize).contains(&id)).collect();
    let mut batches = 0;
    for entry in read.table(store::JOURNAL)?.iter() {
        let batch = Batch::decode(entry?.1)?;
        for (id, times) in batch.visits {
            let known = visits.get_mut(id as usize);
            *known.with_context(|| format!("the journal visits place {id}"))? += u32::from(times);
        }
        for (id, alive) in [(batch.given_up, false), (batch.founded, true)] {
            let known = lives.get_mut(id as usize);
            *known.with_context(|| format!("the journal founds place {id}"))? = alive && id != 0;
        }
        batches += 1;
    }
    let mut places = 0;
    for entry in read.table(store::PLACES)?.iter() {
        let (key, record) = entry?;
        let (id, found) = (store::id_of(key)?, store::visits_of(record)?);
        let lives = lives.get(id as usize).copied().unwrap_or(false);
        ensure!(lives, "place {id} is there, but not by the journal");
        let wanted = visits.get(id as usize).copied().unwrap_or(0);
        ensure!(found == wanted, "place {id}: {found} visits, {wanted} by the journal");
        places += 1;
    }
    let wanted = lives.iter().filter(|lives| **lives).count();
    ensure!(places == wanted, "{places} places, {wanted} by the journal");
    Ok(batches)
}

/// All that can be checked: the file page by page, then the newest snapshot as above.
pub(crate) fn full(env: &Env, original: u32, step: u32) -> Result<Totals> {
    let report = env.check(&mut |_, _| true)?;
    if let Some(problem) = report.problems.first() {
        let (count, page) = (report.problems.len(), problem.page);
        anyhow::bail!(
            "the check found {count} problems, the first in page {page}: {}",
            problem.reason
        );
    }
    let read = env.read()?;
    let audit = snapshot(&read, Depth::Records { step })?;
    replay(&read, original)?;
    Ok(audit.totals)
}

#[cfg(test)]
mod tests {
    use zubilo::{Options, WriteTxn};

    use super::super::change::Writer;
    use super::super::data;
    use super::*;

    /// A store with some changes, then `harm` in a transaction of its own.
    fn harmed(harm: impl FnOnce(&mut WriteTxn)) -> Result<Totals> {
        let dir = tempfile::tempdir()?;
        let env = Options::new().open(dir.path().join("harmed.zubilo"))?;
        let places = data::load(Some(500))?;
        store::load(&env, &places)?;
        let mut writer = Writer::new(3, 500);
        for _ in 0..150 {
            writer.commit(&env, || Ok(()))?;
        }
        full(&env, 500, 1)?;
        writer.commit_with(&env, harm)?;
        full(&env, 500, 1)
    }

    fn reason(harm: impl FnOnce(&mut WriteTxn)) -> String {
        harmed(harm).expect_err("the harm was not found").to_string()
    }

    fn first_key(write: &mut WriteTxn, table: &str) -> Vec<u8> {
        let table = write.table(table).unwrap();
        table.iter().next().unwrap().unwrap().0.to_vec()
    }

    #[test]
    fn a_sound_store_passes() {
        let totals = harmed(|_| ()).unwrap();
        assert_eq!((totals.batches, totals.places), (151, 600));
    }

    #[test]
    fn a_lost_entry_of_any_table_is_found() {
        let all = [store::BY_VISITS, store::JOURNAL];
        for table in store::ONE_PER_PLACE.into_iter().chain(all) {
            let reason = reason(|write| {
                let key = first_key(write, table);
                write.table(table).unwrap().delete(key).unwrap();
            });
            assert!(
                reason.contains("entries")
                    || reason.contains("journal")
                    || reason.contains("visited"),
                "{table}: {reason}"
            );
        }
    }

    #[test]
    fn entries_that_disagree_are_found() {
        for table in [store::BY_NAME, store::BY_LATITUDE, store::BY_CELL] {
            let reason = reason(|write| {
                let key = first_key(write, table);
                let mut table = write.table(table).unwrap();
                table.delete(&key).unwrap();
                table.put([&key[..], b"x"].concat(), "").unwrap();
            });
            assert!(reason.contains(table), "{reason}");
        }
        let reason = reason(|write| {
            let mut places = write.table(store::PLACES).unwrap();
            let mut record = places.get(1u32.to_be_bytes()).unwrap().unwrap().to_vec();
            store::set_visits(&mut record, 1_000_000).unwrap();
            places.put(1u32.to_be_bytes(), record).unwrap();
        });
        assert!(reason.contains("place 1: 1000000 visits"), "{reason}");
    }

    #[test]
    fn half_a_batch_is_found() {
        // One visit more in record, index and totals, but not in the journal.
        let reason = reason(|write| {
            let key = first_key(write, store::BY_VISITS);
            let (old, id) = (store::visits_in(&key).unwrap(), store::id_of(&key).unwrap());
            let mut ranks = write.table(store::BY_VISITS).unwrap();
            ranks.delete(&key).unwrap();
            ranks.put(store::visits_key(old + 1, id), "").unwrap();
            let mut places = write.table(store::PLACES).unwrap();
            let mut record = places.get(id.to_be_bytes()).unwrap().unwrap().to_vec();
            store::set_visits(&mut record, old + 1).unwrap();
            places.put(id.to_be_bytes(), record).unwrap();
            let mut totals = Totals::in_write(write).unwrap();
            totals.visits += 1;
            totals.put(write).unwrap();
        });
        assert!(reason.contains("by the journal"), "{reason}");
    }

    #[test]
    fn totals_of_another_commit_are_found() {
        let reason = reason(|write| {
            let mut totals = Totals::in_write(write).unwrap();
            totals.commit -= 1;
            totals.put(write).unwrap();
        });
        assert!(reason.contains("in the snapshot"), "{reason}");
    }
}
