//! The state of a chain's node: accounts and storage slots under hashes, and the newest part of a
//! history. Each transaction, a block, changes some of all and removes what has become old. Three
//! phases of the same work; a reader holds its snapshot through the second. A figure for each
//! hundred transactions shows how their time, their calls and the store's space drift.

use std::path::Path;
use std::time::Instant;

use super::meter::{self, Meter};
use super::timing::{Clock, Latency};
use super::{DEVICE, Done, timed};
use crate::data::Data;
use crate::disk;
use crate::keys::{Chooser, Kind, scatter};
use crate::peers::{Engine, Outcome, Reader, Session, Writer};
use crate::spec::{Bound, Costs, Drift, Shape, Values};

/// Blocks whose history is kept.
const HISTORY: u64 = 256;
/// Transactions that are looked at together.
const STEP: u64 = 100;
/// Records a transaction when the store is filled.
const FILL: u64 = 10_000;
/// Longest key: the kind and a hash.
const KEY: usize = 33;

/// The records of one kind: those with serial numbers from the first on.
struct Kept {
    kind: u8,
    values: Data,
    first: u64,
    next: u64,
}

impl Kept {
    fn new(kind: u8, value: u32, records: u64) -> Kept {
        let shape = Shape { keys: Kind::Dense, values: Values::Fixed(value), records };
        Kept { kind, values: Data::new(shape, u64::from(kind)), first: 0, next: records }
    }

    fn len(&self) -> u64 {
        self.next - self.first
    }

    fn any(&self, chooser: &mut Chooser) -> u64 {
        self.first + chooser.below(self.len())
    }

    /// The hash of a record.
    fn key(&self, serial: u64) -> [u8; KEY] {
        let mut key = [self.kind; KEY];
        let mut word = serial ^ u64::from(self.kind) << 56;
        for part in key[1..].chunks_mut(8) {
            word = scatter(word);
            part.copy_from_slice(&word.to_be_bytes());
        }
        key
    }
}

/// What one transaction does to one record.
enum Change {
    Put { key: [u8; KEY], len: usize, value: Vec<u8> },
    Delete { key: [u8; KEY], len: usize },
}

pub(super) struct Chain {
    accounts: Kept,
    slots: Kept,
    history: Data,
    /// Changes of a transaction.
    changes: u64,
    block: u64,
    chooser: Chooser,
}

impl Chain {
    pub(super) fn new(accounts: u64, changes: u64) -> Chain {
        let shape = Shape { keys: Kind::Dense, values: Values::Fixed(60), records: 0 };
        Chain {
            accounts: Kept::new(b'a', 72, accounts),
            slots: Kept::new(b's', 40, accounts * 5 / 3),
            history: Data::new(shape, 1),
            changes: changes.max(12),
            block: 0,
            chooser: Chooser::new(accounts),
        }
    }

    /// Entries of a block's history.
    fn entries(&self) -> u64 {
        self.changes / 12
    }

    /// Records that there are.
    pub(super) fn records(&self) -> u64 {
        self.accounts.len() + self.slots.len() + self.block.min(HISTORY) * self.entries()
    }

    /// Bytes of their keys and values.
    fn bytes(&self) -> u64 {
        let of = |kept: &Kept| kept.len() * (KEY + kept.values.value_len(0)) as u64;
        let entry = (11 + self.history.value_len(0)) as u64;
        of(&self.accounts) + of(&self.slots) + self.block.min(HISTORY) * self.entries() * entry
    }

    fn fill(&self, session: &mut impl Session) -> Outcome<()> {
        for kept in [&self.accounts, &self.slots] {
            for first in (0..kept.next).step_by(FILL as usize) {
                session.write(|writer| {
                    let mut value = Vec::new();
                    for serial in first..kept.next.min(first + FILL) {
                        writer.put(&kept.key(serial), kept.values.value(serial, 0, &mut value))?;
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    fn history_key(block: u64, entry: u64) -> [u8; KEY] {
        let mut key = [b'h'; KEY];
        key[1..9].copy_from_slice(&block.to_be_bytes());
        key[9..11].copy_from_slice(&(entry as u16).to_be_bytes());
        key
    }

    /// The changes of the next block: a third each of accounts and slots, a twelfth each of new slots,
    /// slots removed, history written and history pruned.
    fn next(&mut self) -> Vec<Change> {
        self.block += 1;
        let age = self.block as u16;
        let (third, twelfth) = (self.changes / 3, self.entries());
        let put = |kept: &Kept, serial| {
            let mut value = Vec::new();
            kept.values.value(serial, age, &mut value);
            Change::Put { key: kept.key(serial), len: KEY, value }
        };
        let mut all = Vec::new();
        for kept in [&self.accounts, &self.slots] {
            all.extend((0..third).map(|_| put(kept, kept.any(&mut self.chooser))));
        }
        for _ in 0..twelfth {
            all.push(put(&self.slots, self.slots.next));
            self.slots.next += 1;
            // Also among the changed ones above: changed and removed is what happens to slots.
            all.push(Change::Delete { key: self.slots.key(self.slots.first), len: KEY });
            self.slots.first += 1;
        }
        for entry in 0..twelfth {
            let mut value = Vec::new();
            self.history.value(self.block << 16 | entry, age, &mut value);
            all.push(Change::Put { key: Chain::history_key(self.block, entry), len: 11, value });
            if let Some(old) = self.block.checked_sub(HISTORY).filter(|old| *old > 0) {
                all.push(Change::Delete { key: Chain::history_key(old, entry), len: 11 });
            }
        }
        all
    }
}

fn apply(writer: &mut impl Writer, changes: &[Change]) -> Outcome<()> {
    changes.iter().try_for_each(|change| match change {
        Change::Put { key, len, value } => writer.put(&key[..*len], value),
        Change::Delete { key, len } => writer.delete(&key[..*len]),
    })
}

struct Run<'r> {
    chain: &'r mut Chain,
    dir: &'r Path,
    clock: Clock,
    /// Transactions of a phase.
    commits: u64,
    done: u64,
    bytes: u64,
    latency: Latency,
    drift: Vec<Drift>,
}

impl Run<'_> {
    fn phase(&mut self, writer: &mut impl Session, sleeper: bool) -> Outcome<()> {
        let (mut times, mut meter) = (Vec::new(), Meter::start(DEVICE.get()));
        for i in 1..=self.commits {
            if !self.clock.goes_on(self.done) {
                break;
            }
            let changes = self.chain.next();
            let began = Instant::now();
            writer.write(|writer| apply(writer, &changes))?;
            self.latency.add(began);
            times.push(began.elapsed().as_nanos() as u64);
            self.done += 1;
            self.bytes += changes
                .iter()
                .map(|c| match c {
                    Change::Put { len, value, .. } => (len + value.len()) as u64,
                    Change::Delete { .. } => 0,
                })
                .sum::<u64>();
            if i % STEP == 0 || i == self.commits {
                let costs: Costs = std::mem::replace(&mut meter, Meter::start(DEVICE.get())).stop();
                times.sort_unstable();
                self.drift.push(Drift {
                    done: self.done,
                    median_ns: times[times.len() / 2],
                    write_calls: costs.write_calls as f64 / times.len() as f64,
                    bytes: disk::usage(self.dir).0,
                    sleeper,
                });
                times.clear();
            }
        }
        Ok(())
    }
}

/// Fills an empty store, then `bound.ops` transactions in all, at most its seconds.
pub(super) fn run<E: Engine>(
    engine: &E,
    chain: &mut Chain,
    dir: &Path,
    bound: Bound,
) -> Outcome<Done> {
    engine.writes_beside_readers()?;
    let (mut writer, mut sleeper) = (engine.session()?, engine.session()?);
    chain.fill(&mut writer)?;
    engine.flush()?;
    engine.settle()?;
    meter::forget_peak();
    let (commits, clock) = ((bound.ops / 3).max(1), Clock::start(bound));
    let full = disk::usage(dir).0;
    let (drift, latency) = (Vec::new(), Latency::new());
    let mut run = Run { chain, dir, clock, commits, done: 0, bytes: 0, latency, drift };
    let (kept, during) = timed(|| {
        run.phase(&mut writer, false)?;
        let keys: Vec<_> = (0..64).map(|serial| run.chain.accounts.key(serial)).collect();
        let kept = sleeper.read(|reader| {
            let mut see = || -> Outcome<Vec<_>> {
                keys.iter().map(|key| reader.get(key, |value| value.map(<[u8]>::to_vec))).collect()
            };
            let before = see()?;
            run.phase(&mut writer, true)?;
            Ok(before == see()?)
        })?;
        run.phase(&mut writer, false)?;
        Ok(kept)
    })?;
    let growth = std::iter::once((0, full)).chain(run.drift.iter().map(|d| (d.done, d.bytes)));
    let (growth, note) = (growth.collect(), Some(describe(&run, kept)));
    let part = run.latency.into_part(run.done, during.wall_s);
    let of_part = Done { user_bytes: run.bytes, ..Done::of(part, during) };
    Ok(Done { growth, note, drift: run.drift, ..of_part })
}

/// What each third looked like at its end.
fn describe(run: &Run<'_>, kept: bool) -> String {
    let live = run.chain.bytes() as f64;
    let ends = run.drift.iter().filter(|d| d.done % run.commits == 0);
    let ends: Vec<String> = ends
        .map(|d| {
            let (ms, calls) = (d.median_ns as f64 / 1e6, d.write_calls);
            format!(
                "{ms:.2} ms, {calls:.0} write calls, {:.2} times the records",
                d.bytes as f64 / live
            )
        })
        .collect();
    let reader = if kept { "kept its snapshot" } else { "had no snapshot" };
    let clock = if run.done < 3 * run.commits { "; stopped by the clock" } else { "" };
    format!(
        "a transaction at the end of each third: {}; the reader {reader}{clock}",
        ends.join("; ")
    )
}
