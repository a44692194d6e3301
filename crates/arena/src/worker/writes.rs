//! Measurements of one writer.

use std::time::{Duration, Instant};

use super::dataset::{Dataset, Quad};
use super::timing::{Clock, Latency};
use super::{Done, timed};
use crate::data::Data;
use crate::keys::KEY_MAX;
use crate::peers::{Outcome, Session, Writer};
use crate::spec::Bound;

/// Records of a new store put in transactions of `batch`; an operation is a record, the latency a
/// transaction's. Returns the bytes put.
pub(super) fn load(
    session: &mut impl Session,
    data: &Data,
    sorted: bool,
    batch: u64,
) -> Outcome<Done> {
    let records = data.shape.records;
    // Keys that are scattered by nature are sorted beforehand: the engine sees the same records.
    let order: Option<Vec<u64>> = sorted.then(|| {
        let mut keyed: Vec<(Vec<u8>, u64)> =
            (0..records).map(|s| (data.key(s, &mut [0; KEY_MAX]).to_vec(), s)).collect();
        keyed.sort_unstable();
        keyed.into_iter().map(|(_, serial)| serial).collect()
    });
    let serial = |i: u64| order.as_ref().map_or(i, |order| order[i as usize]);
    let mut latency = Latency::new();
    let ((), during) = timed(|| {
        let mut first = 0;
        while first < records {
            let last = (first + batch.max(1)).min(records);
            let began = Instant::now();
            session.write(|writer| put_all(writer, data, (first..last).map(serial), sorted))?;
            latency.add(began);
            first = last;
        }
        Ok(())
    })?;
    let bytes = (0..records).map(|serial| data.bytes(serial)).sum();
    let part = latency.into_part(records, during.wall_s);
    Ok(Done { user_bytes: bytes, ..Done::of(part, during) })
}

/// New records, appended if each key is greater than all before it.
fn put_all(
    writer: &mut impl Writer,
    data: &Data,
    serials: impl Iterator<Item = u64>,
    append: bool,
) -> Outcome<()> {
    let (mut key, mut value) = ([0; KEY_MAX], Vec::new());
    for serial in serials {
        let (key, value) = (data.key(serial, &mut key), data.value(serial, 0, &mut value));
        match append {
            true => writer.append(key, value)?,
            false => writer.put(key, value)?,
        }
    }
    Ok(())
}

/// Runs one transaction after the other; `next` does one and returns the bytes put, or none when it
/// has nothing left to do.
pub(super) fn transactions(
    bound: Bound,
    next: impl FnMut(u64) -> Outcome<Option<u64>>,
) -> Outcome<Done> {
    paced(bound, None, next)
}

/// The same, begun once in each period if there is one; a latency runs from when its transaction
/// was due then.
fn paced(
    bound: Bound,
    period: Option<Duration>,
    mut next: impl FnMut(u64) -> Outcome<Option<u64>>,
) -> Outcome<Done> {
    let (mut latency, mut bytes, mut ops) = (Latency::new(), 0, 0);
    let (seconds, during) = timed(|| {
        let clock = Clock::start(bound);
        let mut due = Instant::now();
        while clock.goes_on(ops) {
            let began = match period {
                None => Instant::now(),
                Some(_) => {
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    due
                }
            };
            let Some(put) = next(ops)? else { break };
            latency.add(began);
            bytes += put;
            ops += 1;
            due += period.unwrap_or_default();
        }
        Ok(clock.seconds())
    })?;
    Ok(Done { user_bytes: bytes, ..Done::of(latency.into_part(ops, seconds), during) })
}

/// `quads` times CRUD in each transaction, so many transactions a second, or one after the other.
pub(super) fn crud(
    session: &mut impl Session,
    data: &Data,
    datasets: &mut [Dataset],
    (quads, rate): (u64, Option<u64>),
    bound: Bound,
) -> Outcome<Done> {
    let count = datasets.len();
    let rate = rate.map(|rate| u32::try_from(rate.max(1)).unwrap_or(u32::MAX));
    paced(bound, rate.map(|rate| Duration::from_secs(1) / rate), |i| {
        let quads = if quads == 1 {
            datasets[i as usize % count].quads(1, true)
        } else {
            shared_quads(datasets, quads)
        };
        if quads.is_empty() {
            return Ok(None);
        }
        session.write(|writer| {
            let mut value = Vec::new();
            quads.iter().try_for_each(|quad| quad.apply(writer, data, &mut value))
        })?;
        Ok(Some(quads.iter().map(|quad| quad.bytes(data)).sum()))
    })
}

/// So many quads from all datasets alike.
pub(super) fn shared_quads(datasets: &mut [Dataset], quads: u64) -> Vec<Quad> {
    let count = datasets.len() as u64;
    let share = |i| quads / count + u64::from(i < quads % count);
    let taken =
        datasets.iter_mut().zip(0..).flat_map(|(dataset, i)| dataset.quads(share(i), false));
    taken.collect()
}

/// `batch` new records in each transaction.
pub(super) fn insert(
    session: &mut impl Session,
    data: &Data,
    datasets: &mut [Dataset],
    batch: u64,
    bound: Bound,
) -> Outcome<Done> {
    let count = datasets.len() as u64;
    transactions(bound, |i| {
        let dataset = |k| ((i * batch + k) % count) as usize;
        let serials: Vec<u64> = (0..batch).map(|k| datasets[dataset(k)].grow()).collect();
        session.write(|writer| put_all(writer, data, serials.iter().copied(), false))?;
        Ok(Some(serials.iter().map(|&serial| data.bytes(serial)).sum()))
    })
}

/// `batch` records removed in each transaction, as long as there are that many; in more than one if a
/// transaction cannot hold them.
pub(super) fn remove(
    session: &mut impl Session,
    data: &Data,
    datasets: &mut [Dataset],
    (batch, most): (u64, u64),
    bound: Bound,
) -> Outcome<Done> {
    let count = datasets.len() as u64;
    let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
    transactions(bound, |i| {
        let batch = batch.min(datasets.iter().map(|dataset| dataset.len() - 1).sum());
        let dataset = |k| ((i * batch + k) % count) as usize;
        let serials: Vec<u64> = (0..batch).filter_map(|k| datasets[dataset(k)].shrink()).collect();
        if serials.is_empty() {
            return Ok(None);
        }
        for serials in serials.chunks(most) {
            session.write(|writer| {
                let mut key = [0; KEY_MAX];
                serials.iter().try_for_each(|&serial| writer.delete(data.key(serial, &mut key)))
            })?;
        }
        Ok(Some(0))
    })
}
