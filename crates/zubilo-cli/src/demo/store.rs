//! The schema: tables, keys and the encoding of a place, and how they are filled.
//!
//! Every table but the journal is held in step with `places` by the same transaction that changes
//! it. Numbers in keys are big-endian, so that they sort as bytes the way they sort as numbers.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use zubilo::{Env, ReadTxn, WriteTxn};

use super::data::Place;

/// Number to record.
pub(crate) const PLACES: &str = "places";
/// Name in lower case, zero, number.
pub(crate) const BY_NAME: &str = "by name";
/// Country, latitude, number.
pub(crate) const BY_LATITUDE: &str = "by latitude";
/// Cell (the bits of longitude and latitude in turn), number.
pub(crate) const BY_CELL: &str = "by cell";
/// Visits, number; only of places that were visited.
pub(crate) const BY_VISITS: &str = "by visits";
/// Number of the commit to the batch of changes it made.
pub(crate) const JOURNAL: &str = "journal";
/// One record: sums over the other tables.
pub(crate) const TOTALS: &str = "totals";

const TOTALS_KEY: &str = "totals";

/// Tables that hold one entry for each place.
pub(crate) const ONE_PER_PLACE: [&str; 4] = [PLACES, BY_NAME, BY_LATITUDE, BY_CELL];

/// Sums that are changed together with what they sum up. A snapshot in which they disagree with
/// the tables is torn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Number of places.
    pub(crate) places: u64,
    /// Number for the next new place.
    pub(crate) next_id: u64,
    /// Visits of all places.
    pub(crate) visits: u64,
    /// Places that were visited.
    pub(crate) visited: u64,
    /// Entries of the journal.
    pub(crate) batches: u64,
    /// The transaction that wrote this record.
    pub(crate) commit: u64,
}

impl Totals {
    const LEN: usize = 6 * 8;

    fn encode(&self) -> [u8; Totals::LEN] {
        let fields =
            [self.places, self.next_id, self.visits, self.visited, self.batches, self.commit];
        let mut bytes = [0; Totals::LEN];
        for (to, field) in bytes.chunks_exact_mut(8).zip(fields) {
            to.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: Option<&[u8]>) -> Result<Totals> {
        let bytes =
            bytes.context("the store has no totals: it is not one of this demonstration")?;
        let mut fields = bytes.as_chunks::<8>().0.iter().map(|field| u64::from_le_bytes(*field));
        let mut next = || fields.next().context("the totals are too short");
        Ok(Totals {
            places: next()?,
            next_id: next()?,
            visits: next()?,
            visited: next()?,
            batches: next()?,
            commit: next()?,
        })
    }

    pub(crate) fn of(read: &ReadTxn) -> Result<Totals> {
        Totals::decode(read.table(TOTALS)?.get(TOTALS_KEY)?)
    }

    pub(crate) fn in_write(write: &mut WriteTxn) -> Result<Totals> {
        Totals::decode(write.table(TOTALS)?.get(TOTALS_KEY)?)
    }

    pub(crate) fn put(&self, write: &mut WriteTxn) -> Result<()> {
        Ok(write.table(TOTALS)?.put(TOTALS_KEY, self.encode())?)
    }
}

/// Takes apart what [`encode`] put together.
struct Fields<'r>(&'r [u8]);

impl<'r> Fields<'r> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((bytes, rest)) = self.0.split_first_chunk() else {
            bail!("a record is too short")
        };
        self.0 = rest;
        Ok(*bytes)
    }

    fn text(&mut self) -> Result<&'r str> {
        let [len] = self.bytes()?;
        let split = self.0.split_at_checked(usize::from(len));
        let (text, rest) = split.context("a record is too short")?;
        self.0 = rest;
        std::str::from_utf8(text).context("a record's text is not UTF-8")
    }
}

/// A place's record: numbers first, so that visits are found without reading the text.
pub(crate) fn encode(place: &Place) -> Result<Vec<u8>> {
    let mut record = Vec::with_capacity(20 + place.name.len());
    record.extend(place.lat.to_le_bytes());
    record.extend(place.lon.to_le_bytes());
    record.extend(place.visits.to_le_bytes());
    record.extend(place.country);
    for text in [&place.admin1, &place.admin2, &place.name] {
        record.push(u8::try_from(text.len()).context("a text of more than 255 bytes")?);
        record.extend(text.as_bytes());
    }
    Ok(record)
}

/// The place of a record.
pub(crate) fn decode(id: u32, record: &[u8]) -> Result<Place> {
    let mut fields = Fields(record);
    Ok(Place {
        id,
        lat: i32::from_le_bytes(fields.bytes()?),
        lon: i32::from_le_bytes(fields.bytes()?),
        visits: u32::from_le_bytes(fields.bytes()?),
        country: fields.bytes()?,
        admin1: fields.text()?.to_owned(),
        admin2: fields.text()?.to_owned(),
        name: fields.text()?.to_owned(),
    })
}

/// Where visits are in a record.
const VISITS_AT: std::ops::Range<usize> = 8..12;

/// A record's visits, without taking apart the rest.
pub(crate) fn visits_of(record: &[u8]) -> Result<u32> {
    let bytes = record.get(VISITS_AT).and_then(|bytes| bytes.first_chunk());
    bytes.map(|bytes| u32::from_le_bytes(*bytes)).context("a record is too short")
}

/// Changes a record's visits in place.
pub(crate) fn set_visits(record: &mut [u8], visits: u32) -> Result<()> {
    let bytes = record.get_mut(VISITS_AT).context("a record is too short")?;
    bytes.copy_from_slice(&visits.to_le_bytes());
    Ok(())
}

/// The number at the end of an index entry, or the whole key of a record.
pub(crate) fn id_of(key: &[u8]) -> Result<u32> {
    key.last_chunk().map(|id| u32::from_be_bytes(*id)).context("a key is too short")
}

/// The visits at the start of an entry of [`BY_VISITS`].
pub(crate) fn visits_in(key: &[u8]) -> Result<u32> {
    key.first_chunk().map(|visits| u32::from_be_bytes(*visits)).context("a key is too short")
}

pub(crate) fn name_key(place: &Place) -> Vec<u8> {
    let mut key = place.name.to_lowercase().into_bytes();
    key.push(0);
    key.extend(place.id.to_be_bytes());
    key
}

/// Flips the sign, so that the south comes before the north in byte order.
pub(crate) fn latitude_prefix(country: [u8; 2], lat: i32) -> Vec<u8> {
    let ordered = lat.cast_unsigned() ^ (1 << 31);
    [&country[..], &ordered.to_be_bytes()].concat()
}

pub(crate) fn latitude_key(place: &Place) -> Vec<u8> {
    let mut key = latitude_prefix(place.country, place.lat);
    key.extend(place.id.to_be_bytes());
    key
}

pub(crate) fn cell_key(place: &Place) -> Vec<u8> {
    let mut key = super::globe::cell(place.lat, place.lon).to_be_bytes().to_vec();
    key.extend(place.id.to_be_bytes());
    key
}

pub(crate) fn visits_key(visits: u32, id: u32) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&visits.to_be_bytes());
    key[4..].copy_from_slice(&id.to_be_bytes());
    key
}

/// The place with this number.
pub(crate) fn place(read: &ReadTxn, id: u32) -> Result<Place> {
    let record = read.table(PLACES)?.get(id.to_be_bytes())?;
    decode(id, record.with_context(|| format!("no place has the number {id}"))?)
}

/// Makes all entries of a new place.
pub(crate) fn insert(write: &mut WriteTxn, place: &Place) -> Result<()> {
    write.table(PLACES)?.put(place.id.to_be_bytes(), encode(place)?)?;
    write.table(BY_NAME)?.put(name_key(place), "")?;
    write.table(BY_LATITUDE)?.put(latitude_key(place), "")?;
    write.table(BY_CELL)?.put(cell_key(place), "")?;
    Ok(())
}

/// Removes a place that was never visited; false when one of its entries was missing.
pub(crate) fn remove(write: &mut WriteTxn, place: &Place) -> Result<bool> {
    let mut all = write.table(PLACES)?.delete(place.id.to_be_bytes())?;
    all &= write.table(BY_NAME)?.delete(name_key(place))?;
    all &= write.table(BY_LATITUDE)?.delete(latitude_key(place))?;
    all &= write.table(BY_CELL)?.delete(cell_key(place))?;
    Ok(all)
}

/// What one transaction of the load did.
pub(crate) struct Loaded {
    pub(crate) table: &'static str,
    pub(crate) records: u64,
    /// Keys and values.
    pub(crate) bytes: u64,
    pub(crate) leaf_pages: u64,
    pub(crate) time: Duration,
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Fills one table in one transaction. Sorted first, as programs that load much should: each leaf
/// is then filled once.
fn fill(env: &Env, table: &'static str, make: impl FnOnce() -> Result<Entries>) -> Result<Loaded> {
    let begun = Instant::now();
    let mut entries = make()?;
    entries.sort_unstable();
    let mut write = env.write()?;
    let mut into = write.table_or_create(table)?;
    let mut bytes = 0;
    for (key, value) in &entries {
        into.put(key, value)?;
        bytes += (key.len() + value.len()) as u64;
    }
    let stats = into.stats();
    write.commit()?;
    Ok(Loaded {
        table,
        records: stats.entries,
        bytes,
        leaf_pages: stats.leaf_pages,
        time: begun.elapsed(),
    })
}

/// Loads the places and builds the indexes, one transaction each, then the totals.
pub(crate) fn load(env: &Env, places: &[Place]) -> Result<Vec<Loaded>> {
    let records = || -> Result<Entries> {
        places.iter().map(|p| Ok((p.id.to_be_bytes().to_vec(), encode(p)?))).collect()
    };
    let index = |key: fn(&Place) -> Vec<u8>| {
        move || Ok(places.iter().map(|place| (key(place), Vec::new())).collect::<Entries>())
    };
    let loaded = vec![
        fill(env, PLACES, records)?,
        fill(env, BY_NAME, index(name_key))?,
        fill(env, BY_LATITUDE, index(latitude_key))?,
        fill(env, BY_CELL, index(cell_key))?,
    ];
    let mut write = env.write()?;
    for empty in [BY_VISITS, JOURNAL, TOTALS] {
        write.table_or_create(empty)?;
    }
    let places = places.len() as u64;
    let totals = Totals { places, next_id: places + 1, commit: write.id().0, ..Totals::default() };
    totals.put(&mut write)?;
    write.commit()?;
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_went_in() {
        for mut place in super::super::data::load(Some(1000)).unwrap() {
            place.visits = place.id.wrapping_mul(2_654_435_761);
            let mut record = encode(&place).unwrap();
            assert_eq!(decode(place.id, &record).unwrap(), place);
            assert_eq!(visits_of(&record).unwrap(), place.visits);
            set_visits(&mut record, 7).unwrap();
            place.visits = 7;
            assert_eq!(decode(place.id, &record).unwrap(), place);
            for cut in 0..record.len() {
                assert!(decode(place.id, &record[..cut]).is_err());
            }
        }
    }

    #[test]
    fn latitudes_sort_from_south_to_north() {
        let keys = [-9_000_000, -1, 0, 1, 9_000_000].map(|lat| latitude_prefix(*b"XX", lat));
        assert!(keys.is_sorted());
        assert!(latitude_prefix(*b"XW", 9_000_000) < keys[0]);
    }
}
