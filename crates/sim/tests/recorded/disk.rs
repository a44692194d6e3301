//! A disk at a moment of a recording, and what it may hold after a power cut.

use support::Rng;

use crate::recording::Event;

const SECTOR: usize = 512;
const PAGE: u64 = 4096;
const METAS: u64 = 4 * 4096;

#[derive(Default)]
pub(crate) struct Disk {
    durable: Vec<u8>,
    exists: bool,
    /// Events not known to be on disk.
    pending: Vec<usize>,
    /// The commit last begun, and the one last known to be durable.
    pub(crate) tried: u64,
    pub(crate) floor: u64,
    /// The commit after which the last copy was done.
    pub(crate) copied: u64,
}

impl Disk {
    pub(crate) fn step(&mut self, events: &[Event], i: usize) {
        match &events[i] {
            Event::Write(..) | Event::Length(_) | Event::Grown(_) => self.pending.push(i),
            Event::FlushEnd(began) => {
                let began = *began;
                let done: Vec<usize> = self.pending.extract_if(.., |p| *p < began).collect();
                done.into_iter().for_each(|p| put(&mut self.durable, &events[p], |_| true));
            }
            Event::WriteFlushed(write) => {
                self.pending.retain(|p| p != write);
                put(&mut self.durable, &events[*write], |_| true);
            }
            Event::RangeFlushed(from, to, began) => {
                let covers = |event: &Event| match event {
                    Event::Write(at, bytes) => *from <= *at && at + bytes.len() as u64 <= *to,
                    _ => false,
                };
                let done = self.pending.extract_if(.., |p| *p < *began && covers(&events[*p]));
                done.for_each(|p| put(&mut self.durable, &events[p], |_| true));
            }
            Event::Directory => self.exists = true,
            Event::Mark('T', n) => self.tried = *n,
            Event::Mark('D', n) => self.floor = *n,
            Event::Mark('C', n) => self.copied = *n,
            Event::Mark(..) => {}
        }
    }

    /// Events of which any part may be missing.
    pub(crate) fn open_writes(&self) -> usize {
        self.pending.len()
    }

    /// One of the states after a power cut; none if the file has no name yet.
    pub(crate) fn image(&self, events: &[Event], rng: &mut Rng) -> Option<Vec<u8>> {
        if !self.exists && rng.one_in(4) {
            return None;
        }
        let mut image = self.durable.clone();
        let kind = rng.below(14);
        let chosen = rng.index(self.pending.len().max(1));
        let border = self.border(events, kind, rng);
        for (n, &p) in self.pending.iter().enumerate() {
            let event = &events[p];
            let is_meta = matches!(event, Event::Write(at, _) if *at < METAS);
            // By the address of a sector.
            match (kind, event) {
                (9 | 11, Event::Write(..)) => put(&mut image, event, |at| at < border),
                (10, Event::Write(..)) => put(&mut image, event, |at| at >= border),
                (12 | 13, Event::Write(at, bytes)) => {
                    let sectors = bytes.len().div_ceil(SECTOR) as u64;
                    let torn = at + rng.below(sectors + 1) * SECTOR as u64;
                    put(&mut image, event, |at| (at < torn) == (kind == 12));
                }
                (8, Event::Write(at, bytes)) if n == chosen => {
                    let torn = at + rng.below(bytes.len() as u64 + 1);
                    put(&mut image, event, |at| at < torn);
                }
                (7, _) => put(&mut image, event, |_| rng.one_in(2)),
                _ => {
                    let whole = match kind {
                        0 => true,
                        1 => false,
                        2 => n != chosen,
                        3 => n == chosen,
                        4 => is_meta,
                        5 => !is_meta,
                        8 => n < chosen,
                        _ => rng.one_in(2),
                    };
                    if whole {
                        put(&mut image, event, |_| true);
                    }
                }
            }
        }
        Some(image)
    }

    /// Up to where, or from where, the kernel has written back in order of addresses: any sector, or
    /// whole pages.
    fn border(&self, events: &[Event], kind: u64, rng: &mut Rng) -> u64 {
        let writes: Vec<(u64, u64)> = self
            .pending
            .iter()
            .filter_map(|p| match &events[*p] {
                Event::Write(at, bytes) => Some((*at, bytes.len() as u64)),
                _ => None,
            })
            .collect();
        let Some((at, len)) = writes.get(rng.index(writes.len())) else { return 0 };
        let border = at + rng.below(len + 1);
        if kind == 11 { border / PAGE * PAGE } else { border }
    }
}

/// Does an event to an image; of a write those sectors that are chosen by their addresses.
fn put(image: &mut Vec<u8>, event: &Event, mut chosen: impl FnMut(u64) -> bool) {
    match event {
        Event::Length(len) => image.resize(*len as usize, 0),
        Event::Grown(len) => image.resize(image.len().max(*len as usize), 0),
        Event::Write(at, bytes) => {
            for (i, part) in bytes.chunks(SECTOR).enumerate() {
                let at = *at as usize + i * SECTOR;
                if chosen(at as u64) {
                    image.resize(image.len().max(at + part.len()), 0);
                    image[at..at + part.len()].copy_from_slice(part);
                }
            }
        }
        _ => {}
    }
}
