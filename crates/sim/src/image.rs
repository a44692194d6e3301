//! From the log of a session to the states a disk can be in at one of its moments.
//!
//! What a completed flush covers is there. Of every later write each sector may be there or not,
//! in whichever of its versions since; the length may be any of those since the flush, in order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::disk::{Event, Mark};
use crate::model::History;
use support::Rng;

/// What is written as a whole or not at all.
pub const SECTOR: usize = 512;

/// Sectors that a failed flush did not reach, by place, each with what was to be written: any of it
/// may be on disk for ever after, or none.
type Doomed = BTreeMap<u64, Vec<Box<[u8]>>>;

/// Where a session starts.
#[derive(Clone)]
pub struct Start {
    /// What is on disk for certain.
    pub durable: Vec<u8>,
    /// What a flush before did not reach.
    pub doomed: Doomed,
    /// Whether the directory entry is.
    pub exists: bool,
    /// Last transaction acknowledged as durable before this session.
    pub durable_txn: u64,
    /// Last transaction acknowledged, or found at the start.
    pub acked_txn: u64,
    /// Newest transaction that may be found.
    pub attempted: u64,
    /// The states that may be found.
    pub history: History,
}

impl Start {
    /// No file.
    pub fn nothing() -> Start {
        Start {
            durable: Vec::new(),
            doomed: Doomed::new(),
            exists: false,
            durable_txn: 0,
            acked_txn: 0,
            attempted: 1,
            history: History::new(),
        }
    }
}

/// A walk through a log.
#[derive(Clone)]
pub struct Replay<'l> {
    events: &'l [Arc<Event>],
    at: usize,
    durable: Vec<u8>,
    exists: bool,
    /// Indices of events that are not certainly on disk.
    pending: Vec<usize>,
    doomed: Doomed,
    /// Ranges that are on disk, each as of the event of an index.
    ranges: Vec<(Range<u64>, usize)>,
    /// A flush has failed, and the store was not reopened since.
    pub poisoned: bool,
    /// Last transaction that was acknowledged.
    pub acked: u64,
    /// Last transaction that was acknowledged as durable.
    pub durable_txn: u64,
    /// Newest transaction that may be found.
    pub attempted: u64,
    /// The states that may be found.
    pub history: History,
}

/// Which of the uncertain things are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The process was killed: the system goes on, all is there, the boot is the same.
    Kill,
    /// Power cut with nothing written back.
    None,
    /// Power cut with all written back.
    All,
    /// All but one write.
    AllButOne,
    /// All but one sector.
    AllButOneSector,
    /// One write only.
    OnlyOne,
    /// What lies below some address, with the write there torn.
    AddressOrder,
    /// Each write whole or not.
    Writes,
    /// Each sector or not, every second on average.
    Sectors,
    /// Nearly all sectors.
    MostSectors,
    /// The first pages of the file and little else.
    MetasFirst,
    /// All but the first pages of the file.
    MetasLast,
    /// The file is not in its directory, if that was not flushed.
    Absent,
    /// The writes whose bits are set, of at most 64; all lengths.
    Exactly(u64),
}

const RANDOM: [Choice; 13] = [
    Choice::Kill,
    Choice::None,
    Choice::All,
    Choice::AllButOne,
    Choice::AllButOneSector,
    Choice::OnlyOne,
    Choice::AddressOrder,
    Choice::Writes,
    Choice::Sectors,
    Choice::MostSectors,
    Choice::MetasFirst,
    Choice::MetasLast,
    Choice::Absent,
];

impl Choice {
    /// One of the random kinds.
    pub fn random(rng: &mut Rng) -> Choice {
        RANDOM[rng.index(RANDOM.len())]
    }

    /// Whether the system went on running.
    pub fn is_kill(self) -> bool {
        self == Choice::Kill
    }
}

impl<'l> Replay<'l> {
    /// Stands before the first event.
    pub fn new(start: &Start, events: &'l [Arc<Event>]) -> Replay<'l> {
        Replay {
            events,
            at: 0,
            durable: start.durable.clone(),
            exists: start.exists,
            pending: Vec::new(),
            doomed: start.doomed.clone(),
            ranges: Vec::new(),
            poisoned: false,
            acked: start.acked_txn,
            durable_txn: start.durable_txn,
            attempted: start.attempted,
            history: start.history.clone(),
        }
    }

    /// Goes behind the next event; false at the end.
    pub fn step(&mut self) -> bool {
        let Some(event) = self.events.get(self.at) else { return false };
        match &**event {
            Event::Write { .. } | Event::Grow(_) | Event::Truncate(_) => self.pending.push(self.at),
            Event::Sync { upto } => {
                let split = self.pending.partition_point(|i| i < upto);
                for i in self.pending.drain(..split).collect::<Vec<_>>() {
                    self.settle(i);
                }
                self.ranges.retain(|(_, of)| of > upto);
            }
            Event::SyncRange { at, len, upto } => self.settle_range(*at..at + len, *upto),
            Event::SyncFailed => self.doom(),
            Event::SyncDirectory => self.exists = true,
            Event::Mark(Mark::Attempt(txn, state)) => {
                self.attempted = *txn;
                self.history.add(*txn, Arc::clone(state));
            }
            Event::Mark(Mark::Ack(txn)) => {
                self.acked = *txn;
                // A failed commit may have reached the disk all the same.
                self.attempted = self.attempted.max(*txn);
                self.history.settle(*txn);
            }
            Event::Mark(Mark::Cut(txn)) => {
                self.poisoned = false;
                self.acked = *txn;
                self.attempted = *txn;
                self.history.cut(*txn);
            }
            Event::Mark(Mark::Durable(txn)) => self.durable_txn = self.durable_txn.max(*txn),
        }
        self.at += 1;
        true
    }

    /// A flush has failed: no later one makes up for it, only writing anew does.
    fn doom(&mut self) {
        self.poisoned = true;
        let events = self.events;
        self.pending.retain(|&i| {
            let Event::Write { at, data } = &*events[i] else { return true };
            for (s, sector) in data.chunks(SECTOR).enumerate() {
                self.doomed.entry(at + (s * SECTOR) as u64).or_default().push(sector.into());
            }
            false
        });
    }

    /// What was written to a range before an event is on disk.
    fn settle_range(&mut self, range: Range<u64>, upto: usize) {
        let events = self.events;
        for i in self.pending.clone().into_iter().filter(|i| *i < upto) {
            let Event::Write { at, data } = &*events[i] else { continue };
            let (from, to) = (range.start.max(*at), range.end.min(at + data.len() as u64));
            if from >= to {
                continue;
            }
            let part = &data[(from - at) as usize..(to - at) as usize];
            self.durable[from as usize..to as usize].copy_from_slice(part);
            if from == *at && to == at + data.len() as u64 {
                self.pending.retain(|pending| *pending != i);
            }
        }
        self.forget_doomed(range.clone());
        self.ranges.push((range, upto));
    }

    /// Sectors that were written anew are not what a failed flush left.
    fn forget_doomed(&mut self, range: Range<u64>) {
        let near = self.doomed.range(range.start.saturating_sub(SECTOR as u64)..range.end);
        let overlaps = |(at, versions): (&u64, &Vec<Box<[u8]>>)| {
            let longest = versions.iter().map(|version| version.len()).max().unwrap_or(0) as u64;
            (at + longest > range.start).then_some(*at)
        };
        for place in near.filter_map(overlaps).collect::<Vec<_>>() {
            self.doomed.remove(&place);
        }
    }

    /// Whether a later write to all of this place is on disk.
    fn is_overtaken(&self, i: usize, place: u64, len: u64) -> bool {
        let covers = |range: &Range<u64>| range.start <= place && place + len <= range.end;
        self.ranges.iter().any(|(range, upto)| i < *upto && covers(range))
    }

    fn settle(&mut self, i: usize) {
        match &*self.events[i] {
            Event::Write { at, data } => {
                self.forget_doomed(*at..at + data.len() as u64);
                let at = *at as usize;
                self.durable[at..at + data.len()].copy_from_slice(data);
            }
            Event::Grow(len) => self.durable.resize(*len as usize, 0),
            Event::Truncate(len) => self.durable.truncate(*len as usize),
            _ => {}
        }
    }

    /// Events gone through.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The event just gone through.
    pub fn last(&self) -> Option<&Event> {
        Some(self.events.get(self.at.checked_sub(1)?)?)
    }

    /// Writes that are not certainly on disk.
    pub fn pending_writes(&self) -> usize {
        self.pending.iter().filter(|&&i| is_write(&self.events[i])).count()
    }

    /// What a system that goes on running starts its next session with.
    pub fn kept(&self) -> (Start, Vec<Arc<Event>>) {
        let start = Start {
            durable: self.durable.clone(),
            doomed: self.doomed.clone(),
            exists: self.exists,
            durable_txn: self.durable_txn,
            acked_txn: self.acked,
            attempted: self.attempted,
            history: self.history.clone(),
        };
        (start, self.pending.iter().map(|&i| Arc::clone(&self.events[i])).collect())
    }

    /// A state of the disk.
    pub fn image(&self, choice: Choice, metas_end: u64, rng: &mut Rng) -> Vec<u8> {
        if matches!(choice, Choice::Absent | Choice::None) && !self.exists {
            return Vec::new();
        }
        let writes = self.pending_writes();
        let lengths = self.pending.len() - writes;
        let mut picker = Picker::new(self, choice, writes, metas_end, rng);
        let mut lengths_left = picker.lengths(lengths);
        let mut bytes = self.durable.clone();
        let mut len = bytes.len();
        for (place, versions) in &self.doomed {
            if let Some(sector) = picker.version(versions) {
                let at = *place as usize;
                bytes.resize(bytes.len().max(at + sector.len()), 0);
                bytes[at..at + sector.len()].copy_from_slice(sector);
            }
        }
        let mut number = 0;
        for &i in &self.pending {
            match &*self.events[i] {
                Event::Write { at, data } => {
                    let at = *at as usize;
                    if bytes.len() < at + data.len() {
                        bytes.resize(at + data.len(), 0);
                    }
                    for (s, sector) in data.chunks(SECTOR).enumerate() {
                        let place = at + s * SECTOR;
                        let overtaken = self.is_overtaken(i, place as u64, sector.len() as u64);
                        if picker.takes(number, place as u64) && !overtaken {
                            bytes[place..place + sector.len()].copy_from_slice(sector);
                        }
                    }
                    number += 1;
                }
                Event::Grow(to) if lengths_left > 0 => {
                    lengths_left -= 1;
                    len = *to as usize;
                    if bytes.len() < len {
                        bytes.resize(len, 0);
                    }
                }
                Event::Truncate(to) if lengths_left > 0 => {
                    lengths_left -= 1;
                    len = *to as usize;
                    bytes.truncate(len);
                }
                _ => {}
            }
        }
        bytes.resize(len, 0);
        bytes
    }
}

fn is_write(event: &Event) -> bool {
    matches!(event, Event::Write { .. })
}

/// Decides sector by sector.
struct Picker<'r> {
    choice: Choice,
    /// The write that is singled out.
    one: usize,
    /// The address that is singled out.
    address: u64,
    metas_end: u64,
    /// For whole writes: their fates.
    fates: Vec<bool>,
    rng: &'r mut Rng,
}

impl<'r> Picker<'r> {
    fn new(
        replay: &Replay<'_>,
        choice: Choice,
        writes: usize,
        metas_end: u64,
        rng: &'r mut Rng,
    ) -> Picker<'r> {
        let one = rng.index(writes);
        let pending = replay.pending.iter().filter(|&&i| is_write(&replay.events[i]));
        let (mut address, mut fates) = (0, Vec::new());
        for (n, &i) in pending.enumerate() {
            if let Event::Write { at, data } = &*replay.events[i] {
                fates.push(match choice {
                    Choice::Exactly(bits) => n < 64 && bits >> n & 1 == 1,
                    _ => rng.one_in(2),
                });
                if n == one {
                    let sectors = data.len().div_ceil(SECTOR) as u64;
                    address = at + rng.below(sectors) * SECTOR as u64;
                }
            }
        }
        Picker { choice, one, address, metas_end, fates, rng }
    }

    /// How many changes of the length count.
    fn lengths(&mut self, all: usize) -> usize {
        match self.choice {
            Choice::None => 0,
            Choice::Kill | Choice::All | Choice::Exactly(_) => all,
            // Mostly the newest length: with another one the rest of the state hardly matters.
            _ if self.rng.one_in(4) => self.rng.index(all + 1),
            _ => all,
        }
    }

    /// What is on disk of the sectors that were to be written in one place.
    fn version<'v>(&mut self, versions: &'v [Box<[u8]>]) -> Option<&'v [u8]> {
        let which = match self.choice {
            Choice::Kill | Choice::All => versions.len(),
            Choice::None => 0,
            _ => self.rng.index(versions.len() + 1),
        };
        Some(versions.get(which.checked_sub(1)?)?)
    }

    fn takes(&mut self, number: usize, place: u64) -> bool {
        let in_metas = place < self.metas_end;
        match self.choice {
            Choice::Kill | Choice::All | Choice::Absent => true,
            Choice::None => false,
            Choice::AllButOne => number != self.one,
            Choice::AllButOneSector => place != self.address,
            Choice::OnlyOne => number == self.one,
            Choice::AddressOrder => place < self.address,
            Choice::Writes | Choice::Exactly(_) => self.fates[number],
            Choice::Sectors => self.rng.one_in(2),
            Choice::MostSectors => !self.rng.one_in(16),
            Choice::MetasFirst => in_metas || self.rng.one_in(3),
            Choice::MetasLast => !in_metas,
        }
    }
}
