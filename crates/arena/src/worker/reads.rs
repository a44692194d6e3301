//! Measurements that only read. Throughput is taken without a clock around each operation; the
//! latencies come from a second pass with an eighth of the operations, on the keys after those of the
//! first: what it read would be cached, also where the store is larger than memory.

use std::time::Instant;

use super::dataset::{DATASETS, Dataset};
use super::timing::{Clock, Latency};
use super::{Done, timed};
use crate::data::{Choice, Data, Picker, is_whole};
use crate::keys::KEY_MAX;
use crate::peers::{Engine, Fault, Outcome, Reader, Session};
use crate::spec::{Bound, Pick};

/// Different keys that one measurement looks up, again and again if it must.
const KEYS_MAX: u64 = 1 << 18;
/// Operations between two looks at the clock.
const STRIDE: usize = 256;

/// Keys one after the other in memory, each with its serial number, and whether it is there.
pub(super) struct Keys {
    bytes: Vec<u8>,
    serials: Vec<u64>,
    len: usize,
    there: bool,
    /// Of the records that they name, keys included.
    record_bytes: u64,
}

impl Keys {
    pub(super) fn new(
        data: &Data,
        datasets: &[Dataset],
        pick: Pick,
        count: u64,
        seed: u64,
    ) -> Keys {
        let least = datasets.iter().map(Dataset::len).min().unwrap_or(0).max(1);
        let mut picker = Picker::new(pick, least * DATASETS, seed);
        let mut keys = Keys {
            bytes: Vec::new(),
            serials: Vec::new(),
            len: data.shape.keys.len(),
            there: pick != Pick::Missing,
            record_bytes: 0,
        };
        let mut buffer = [0; KEY_MAX];
        for _ in 0..count.clamp(1, KEYS_MAX) {
            let serial = match picker.next() {
                // The newest of each dataset have the highest numbers.
                Choice::There(i) => {
                    let dataset = &datasets[(i % DATASETS) as usize];
                    dataset.alive(dataset.len() - least + i / DATASETS)
                }
                Choice::Missing(serial) => serial,
            };
            keys.bytes.extend_from_slice(data.key(serial, &mut buffer));
            keys.serials.push(serial);
            keys.record_bytes += if keys.there { data.bytes(serial) } else { 0 };
        }
        keys
    }

    /// Bytes that so many look-ups gave back, by the mean of the records looked up.
    fn read_bytes(&self, ops: u64) -> u64 {
        let mean = self.record_bytes as f64 / self.serials.len().max(1) as f64;
        (mean * ops as f64) as u64
    }

    #[inline]
    fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> + Clone {
        self.bytes.chunks_exact(self.len).zip(self.serials.iter().copied())
    }

    /// Again and again all of them, beginning after the first `done`.
    #[inline]
    fn behind(&self, done: u64) -> impl Iterator<Item = (&[u8], u64)> {
        let skipped = done as usize % self.serials.len().max(1);
        self.iter().skip(skipped).chain(self.iter().cycle())
    }
}

/// Whether a look-up gave what it must.
#[inline]
fn is_right(data: &Data, keys: &Keys, serial: u64, found: Option<&[u8]>) -> bool {
    match found {
        Some(value) => keys.there && data.age_of(serial, value).is_some(),
        None => !keys.there,
    }
}

fn verify(right: u64, ops: u64) -> Outcome<()> {
    if right == ops {
        return Ok(());
    }
    Err(Fault::Failed(format!("{} of {ops} reads gave a wrong result", ops - right)))
}

/// An eighth, for the pass that takes latencies.
fn eighth(bound: Bound) -> Bound {
    Bound { ops: (bound.ops / 8).max(1), seconds: bound.seconds / 8.0 }
}

pub(super) fn get(
    session: &mut impl Session,
    data: &Data,
    keys: &Keys,
    long: bool,
    bound: Bound,
) -> Outcome<Done> {
    let one = |reader: &mut dyn FnMut(&[u8], u64) -> Outcome<bool>, bound: Bound, done: u64| {
        let (clock, mut ops, mut right) = (Clock::start(bound), 0, 0);
        let mut all = keys.behind(done);
        while clock.goes_on(ops) {
            for (key, serial) in all.by_ref().take(STRIDE) {
                right += u64::from(reader(key, serial)?);
            }
            ops += STRIDE as u64;
        }
        verify(right, ops)?;
        Ok((ops, clock.seconds()))
    };
    let mut latency = Latency::new();
    let (parts, during) = if long {
        session.read(|reader| {
            let parts = timed(|| fast_get(reader, data, keys, bound))?;
            one(
                &mut |key, serial| {
                    let began = Instant::now();
                    let right = reader.get(key, |v| is_right(data, keys, serial, v));
                    latency.add(began);
                    right
                },
                eighth(bound),
                parts.0.0,
            )?;
            Ok(parts)
        })?
    } else {
        let parts = timed(|| {
            one(
                &mut |key, serial| session.get_once(key, |v| is_right(data, keys, serial, v)),
                bound,
                0,
            )
        })?;
        one(
            &mut |key, serial| {
                let began = Instant::now();
                let right = session.get_once(key, |v| is_right(data, keys, serial, v));
                latency.add(began);
                right
            },
            eighth(bound),
            parts.0.0,
        )?;
        parts
    };
    let read_bytes = keys.read_bytes(parts.0);
    Ok(Done { read_bytes, ..Done::of(latency.into_part(parts.0, parts.1), during) })
}

/// Look-ups with nothing between the calls of the engine but the check of what they give.
fn fast_get(
    reader: &mut impl Reader,
    data: &Data,
    keys: &Keys,
    bound: Bound,
) -> Outcome<(u64, f64)> {
    let (clock, mut ops, mut right) = (Clock::start(bound), 0, 0);
    let mut all = keys.iter().cycle();
    while clock.goes_on(ops) {
        for (key, serial) in all.by_ref().take(STRIDE) {
            right += u64::from(reader.get(key, |v| is_right(data, keys, serial, v))?);
        }
        ops += STRIDE as u64;
    }
    verify(right, ops)?;
    Ok((ops, clock.seconds()))
}

/// An operation is one key.
pub(super) fn get_many(
    session: &mut impl Session,
    data: &Data,
    keys: &Keys,
    count: usize,
    bound: Bound,
) -> Outcome<Done> {
    let mut latency = Latency::new();
    let count = count.max(1);
    let (parts, during) = session.read(|reader| {
        let parts = timed(|| batches(reader, data, keys, count, bound, 0, None))?;
        let (done, clocked) = (parts.0.0, Some(&mut latency));
        batches(reader, data, keys, count, eighth(bound), done, clocked)?;
        Ok(parts)
    })?;
    let read_bytes = keys.read_bytes(parts.0);
    Ok(Done { read_bytes, ..Done::of(latency.into_part(parts.0, parts.1), during) })
}

fn batches(
    reader: &mut impl Reader,
    data: &Data,
    keys: &Keys,
    count: usize,
    bound: Bound,
    done: u64,
    mut latency: Option<&mut Latency>,
) -> Outcome<(u64, f64)> {
    let (clock, mut ops, mut right) = (Clock::start(bound), 0, 0);
    let mut all = keys.behind(done);
    let (mut batch, mut serials) = (Vec::new(), Vec::new());
    while clock.goes_on(ops) {
        batch.clear();
        serials.clear();
        for (key, serial) in all.by_ref().take(count) {
            batch.push(key);
            serials.push(serial);
        }
        let began = latency.as_ref().map(|_| Instant::now());
        reader.get_many(&batch, |i, value| {
            right += u64::from(is_right(data, keys, serials[i], value));
        })?;
        if let (Some(latency), Some(began)) = (&mut latency, began) {
            latency.add(began);
        }
        ops += count as u64;
    }
    verify(right, ops)?;
    Ok((ops, clock.seconds()))
}

pub(super) fn begin(session: &mut impl Session, bound: Bound) -> Outcome<Done> {
    let mut latency = Latency::new();
    let ((ops, seconds), during) = timed(|| {
        let (clock, mut ops) = (Clock::start(bound), 0);
        while clock.goes_on(ops) {
            for _ in 0..STRIDE {
                session.read(|reader| {
                    std::hint::black_box(reader);
                    Ok(())
                })?;
            }
            ops += STRIDE as u64;
        }
        Ok((ops, clock.seconds()))
    })?;
    for _ in 0..ops / 8 {
        let began = Instant::now();
        session.read(|reader| {
            std::hint::black_box(reader);
            Ok(())
        })?;
        latency.add(began);
    }
    Ok(Done::of(latency.into_part(ops, seconds), during))
}

/// An operation is one record; the latency is that of a whole walk.
pub(super) fn iterate(session: &mut impl Session, records: u64, bound: Bound) -> Outcome<Done> {
    let (mut latency, mut read_bytes) = (Latency::new(), 0);
    let ((ops, seconds), during) = timed(|| {
        let (clock, mut ops) = (Clock::start(bound), 0);
        while clock.goes_on(ops) {
            let began = Instant::now();
            let mut sum = 0u64;
            let count = session.read(|reader| {
                reader.walk(None, u64::MAX, |key, value| {
                    read_bytes += (key.len() + value.len()) as u64;
                    sum = sum.wrapping_add(first_word(key)).wrapping_add(look_at(value));
                })
            })?;
            std::hint::black_box(sum);
            latency.add(began);
            if count != records {
                return Err(Fault::Failed(format!("a walk saw {count} of {records} records")));
            }
            ops += count.max(1);
        }
        Ok((ops, clock.seconds()))
    })?;
    Ok(Done { read_bytes, ..Done::of(latency.into_part(ops, seconds), during) })
}

/// An operation is a seek with the records after it.
pub(super) fn range<E: Engine>(
    session: &mut E::Session<'_>,
    keys: &Keys,
    count: u64,
    bound: Bound,
) -> Outcome<Done> {
    let (mut latency, mut read_bytes) = (Latency::new(), 0);
    session.read(|reader| verify_ranges(reader, keys, count))?;
    let ((ops, seconds), during) = timed(|| {
        session.read(|reader| {
            let (clock, mut ops, mut seen, mut sum) = (Clock::start(bound), 0, 0, 0u64);
            let mut all = keys.iter().cycle();
            while clock.goes_on(ops) {
                let Some((key, _)) = all.next() else { break };
                let began = Instant::now();
                seen += reader.walk(Some(key), count, |key, value| {
                    read_bytes += (key.len() + value.len()) as u64;
                    sum = sum.wrapping_add(first_word(key)).wrapping_add(look_at(value));
                })?;
                latency.add(began);
                ops += 1;
            }
            std::hint::black_box(sum);
            // Only seeks near the end may come up short: each key is there, and few are near it.
            if seen < ops || seen > ops * count {
                return Err(Fault::Failed(format!("{ops} seeks saw {seen} records")));
            }
            Ok((ops, clock.seconds()))
        })
    })?;
    Ok(Done { read_bytes, ..Done::of(latency.into_part(ops, seconds), during) })
}

/// Seeks whose records are looked at closely before the clock runs.
const VERIFIED: usize = 64;

/// From each key so many records: itself, then greater ones, whole; fewer only at the end.
fn verify_ranges(reader: &mut impl Reader, keys: &Keys, count: u64) -> Outcome<()> {
    for (key, serial) in keys.iter().take(VERIFIED) {
        let (mut all, mut wrong) = (Vec::<Vec<u8>>::new(), 0);
        let seen = reader.walk(Some(key), count, |key, value| {
            wrong += u64::from(!is_whole(value));
            all.push(key.to_vec());
        })?;
        let in_order = all.is_sorted_by(|a, b| a < b) && all.first().is_some_and(|k| k == key);
        // Whether more follow shows from the last.
        let more = all.last().map(|last| reader.walk(Some(last), 2, |_, _| {})).transpose()?;
        let full = seen == count || more == Some(1);
        if !in_order || !full || wrong > 0 || seen != all.len() as u64 {
            let text = format!("from record {serial}: {seen} of {count} records, {wrong} damaged");
            return Err(Fault::Failed(format!("{text}; in order: {in_order}")));
        }
    }
    Ok(())
}

/// A word of a value, and a byte of each further page: who maps a file has not read what nobody looked
/// at.
#[inline(always)]
fn look_at(value: &[u8]) -> u64 {
    let pages = value.iter().skip(4096).step_by(4096);
    pages.fold(first_word(value), |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

#[inline(always)]
fn first_word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}
