//! The free-space log over small pages in memory: what one process appends, others load and follow.

use super::super::log::{
    FreeSpaceLog, LogOf, LogRoot, SegmentReader, SegmentWriter, load, newest_delta,
};
use super::super::{Delta, Extent, Policy, Retired, Space};
use crate::error::Result;
use proptest::prelude::*;
use support::Rng;
use twox_hash::XxHash3_64;

const SHIFT: u32 = 7;
const PAGE: usize = 1 << SHIFT;
const LIMIT: u64 = 24_000;
const START: u64 = 4;

/// Pages of a store.
struct Pages {
    bytes: Vec<u8>,
    policy: Policy,
    fail: bool,
}

/// A range of pages, as a byte range.
fn range(first: u64, len: u64) -> Option<std::ops::Range<usize>> {
    let at = usize::try_from(first.checked_mul(PAGE as u64)?).ok()?;
    Some(at..at.checked_add(usize::try_from(len).ok()?)?)
}

impl<'p> SegmentReader<'p> for &'p Pages {
    fn segment(&self, first: u64, len: u64) -> Option<&'p [u8]> {
        self.bytes.get(range(first, len)?)
    }
}

impl SegmentWriter for Pages {
    fn place(&mut self, space: &mut Space, pages: u64) -> Result<Vec<Extent>> {
        Ok(space.allocate(pages, self.policy, 0, LIMIT).expect("there is room"))
    }

    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        if self.fail {
            return Err(crate::Error::Busy("the disk"));
        }
        self.bytes[range(first, bytes.len() as u64).unwrap()].copy_from_slice(bytes);
        Ok(())
    }
}

/// A process: its map and its part of the log.
struct Process {
    txn: u64,
    space: Space,
    log: FreeSpaceLog,
}

struct World {
    random: Rng,
    pages: Pages,
    root: LogRoot,
    txn: u64,
    end: u64,
    /// Pages in use, with their births.
    used: Vec<(u64, u64)>,
    pins: Vec<u64>,
}

fn states(space: &Space) -> (u64, Vec<Extent>, Vec<Retired>) {
    let (mut free, mut retired) = (Vec::new(), Vec::new());
    space.for_each_free(&mut |run| free.push(run));
    space.for_each_retired(&mut |entry, _| {
        retired.extend((entry.first..entry.end()).map(|first| Retired {
            first,
            count: 1,
            ..*entry
        }));
    });
    retired.sort_unstable();
    (space.end(), free, retired)
}

impl World {
    fn new(seed: u64) -> World {
        World {
            random: Rng::new(seed),
            pages: Pages {
                bytes: vec![0; LIMIT as usize * PAGE],
                policy: Policy::Recent,
                fail: false,
            },
            root: LogRoot::default(),
            txn: 1,
            end: START,
            used: Vec::new(),
            pins: vec![1],
        }
    }

    fn log_of(&self) -> LogOf<'_> {
        LogOf { root: &self.root, txn: self.txn, end: self.end, page_shift: SHIFT }
    }

    fn open(&self) -> Process {
        let loaded = load(&&self.pages, &self.log_of(), START, &self.pins, LIMIT).expect("a log");
        Process { txn: self.txn, space: loaded.space, log: loaded.log }
    }

    /// Brings a process up to now; whether it could follow.
    fn follow(&self, process: &mut Process) -> bool {
        let Process { txn, space, log } = process;
        let caught_up = *txn == self.txn
            || log.catch_up(&&self.pages, *txn, &self.log_of(), space, &self.pins, LIMIT).unwrap();
        match caught_up {
            true => process.txn = self.txn,
            false => *process = self.open(),
        }
        caught_up
    }

    fn commit(&mut self, process: &mut Process) -> Delta {
        let txn = self.txn + 1;
        // The snapshot before this one stays pinned, and now and then a reader's.
        self.pins.retain(|_| self.random.below(3) > 0);
        self.pins.push(self.txn);
        process.space.set_pins(&self.pins);
        self.pages.policy =
            [Policy::Recent, Policy::Contiguous, Policy::Low][self.random.below(3) as usize];
        let many = if self.random.below(4) == 0 { 4_000 } else { 40 };
        let wanted = self.random.below(many.min(5_000u64.saturating_sub(self.used.len() as u64)));
        let allocated =
            process.space.allocate(wanted, self.pages.policy, 0, LIMIT / 2).unwrap_or_default();
        let mut released = Vec::new();
        for _ in 0..self.random.below(many.min(self.used.len() as u64 + 1)) {
            let at = self.random.below(self.used.len() as u64) as usize;
            let (first, birth) = self.used.swap_remove(at);
            released.push(Retired { first, count: 1, birth, death: txn });
        }
        let pages = allocated.iter().flat_map(|extent| extent.first..extent.end());
        self.used.extend(pages.map(|page| (page, txn)));
        let delta = Delta { txn, allocated, released, end: 0 };
        let rebase = self.random.below(40) == 0;
        let Process { space, log, .. } = process;
        log.append(&mut self.root, space, delta.clone(), rebase, &mut self.pages).expect("append");
        (process.txn, self.txn, self.end) = (txn, txn, process.space.end());
        delta
    }
}

fn history(seed: u64, commits: u64) -> (World, [u32; 3]) {
    let mut world = World::new(seed);
    let mut processes = [world.open(), world.open()];
    let (mut followed, mut in_tail, mut in_segments) = (0, 0, 0);
    for _ in 0..commits {
        let who = world.random.below(2) as usize;
        followed += u32::from(processes[who].txn != world.txn && world.follow(&mut processes[who]));
        let who = &mut processes[who];
        world.follow(who);
        let delta = world.commit(who);
        let newest = newest_delta(&&world.pages, &world.log_of()).expect("the commit's delta");
        assert_eq!((newest.txn, &newest.allocated), (delta.txn, &delta.allocated));
        *(if world.root.tail.is_empty() { &mut in_segments } else { &mut in_tail }) += 1;
        let opened = world.open();
        assert_eq!(states(&opened.space), states(&who.space), "commit {}", world.txn);
        assert_eq!(opened.log.segments(), who.log.segments());
        let own: u64 = who.log.pages();
        let (end, free, retired) = states(&who.space);
        let free: u64 = free.iter().map(|run| run.count).sum();
        assert_eq!(START + world.used.len() as u64 + own + free + retired.len() as u64, end);
    }
    (world, [followed, in_tail, in_segments])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn what_is_appended_is_loaded(seed in any::<u64>()) {
        history(seed, 120);
    }

    /// Segments with other bytes and right checksums, and a root that lies.
    #[test]
    fn hostile_segments(
        seed in 0u64..6,
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..70, any::<u64>(), 1usize..9), 0..4),
        root in any::<(u64, u32)>(), which in 0u32..6,
    ) {
        let (mut world, _) = history(seed, 40);
        let segments = world.open().log.segments().to_vec();
        for (segment, at, value, width) in edits.into_iter().filter(|_| !segments.is_empty()) {
            let first = segment.get(&segments).first as usize * PAGE;
            world.pages.bytes[first + at..][..width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        // From the oldest on each is named anew by the next one.
        let mut before: Option<(u64, u64)> = None;
        for segment in &segments {
            let bytes = &mut world.pages.bytes[range(segment.first, segment.len).unwrap()];
            if let Some((_, checksum)) = before {
                bytes[16..24].copy_from_slice(&checksum.to_le_bytes());
            }
            before = Some((segment.first, XxHash3_64::oneshot(bytes)));
        }
        if let Some((_, checksum)) = before {
            world.root.newest.checksum = checksum;
        }
        match which {
            0 => world.root.newest.len = root.0,
            1 => world.root.newest.first = root.0,
            2 => world.root.newest_delta = root.1,
            3 => world.root.tail.truncate(root.1 as usize % 100),
            _ => {}
        }
        let _ = load(&&world.pages, &world.log_of(), START, &[3, 9], LIMIT);
        let _ = newest_delta(&&world.pages, &world.log_of());
    }
}

#[test]
fn histories_have_all_that_a_log_can_have() {
    let (_, counts) = history(8, 120);
    assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
}

#[test]
fn a_segment_that_names_itself_ends_the_reading() {
    let (mut world, _) = history(1, 40);
    let newest = world.root.newest;
    for at in [0, newest.len] {
        let bytes = &mut world.pages.bytes[range(newest.first, newest.len).unwrap()];
        for (i, word) in [newest.first, newest.len, 0, newest.txn, at].into_iter().enumerate() {
            bytes[i * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }
        world.root.newest.checksum = XxHash3_64::oneshot(bytes);
        assert!(load(&&world.pages, &world.log_of(), START, &[], LIMIT).is_err());
    }
}

#[test]
fn a_failed_write_is_an_error() {
    let (mut world, _) = history(2, 20);
    let mut process = world.open();
    world.pages.fail = true;
    let delta = Delta { txn: world.txn + 1, ..Delta::default() };
    let Process { space, log, .. } = &mut process;
    assert!(log.append(&mut world.root, space, delta, true, &mut world.pages).is_err());
}
