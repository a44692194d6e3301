//! Aged stores: how many extents a commit has once the file is full of holes. Prints the table in
//! `docs/free-space.md`: `cargo test --release -p zubilo space::tests::aging -- --ignored --nocapture`.

use super::super::{Extent, Policy, Retired, Space};
use support::Rng;

/// Branch pages that random commits touch, and the two pages that each of them replaces.
const BRANCHES: usize = 220;
const ROOTS: usize = 2;

#[derive(Clone, Copy, PartialEq)]
enum Strategy {
    Contiguous,
    Split,
    /// As `Split`, and cleaning: once per so many commits, the live leaves of a window move too.
    SplitAndClean {
        every: u64,
        window: u64,
    },
    /// As `Contiguous`, and cleaning in each commit: room for the next one.
    ContiguousAndClean {
        window: u64,
    },
    Recent,
}

struct Store {
    space: Space,
    random: Rng,
    leaves: Vec<u64>,
    hot: Vec<u64>,
    /// Which leaf lives on a page, for cleaning.
    owner: std::collections::HashMap<u64, usize>,
    grow_to: u64,
    txn: u64,
    retired: Vec<Retired>,
    written: u64,
}

impl Store {
    fn new(live: u64, percent: u64) -> Store {
        let hot = (BRANCHES + ROOTS) as u64;
        let leaves: Vec<u64> = (3..live - hot).collect();
        Store {
            space: Space::new(live),
            random: Rng::new(5),
            owner: leaves.iter().enumerate().map(|(leaf, &page)| (page, leaf)).collect(),
            leaves,
            hot: (live - hot..live).collect(),
            grow_to: live * percent / 100,
            txn: 10,
            retired: Vec::new(),
            written: 0,
        }
    }

    fn distinct(&mut self, count: usize, limit: usize) -> Vec<usize> {
        let mut chosen = Vec::new();
        while chosen.len() < count {
            let at = self.random.below(limit as u64) as usize;
            if !chosen.contains(&at) {
                chosen.push(at);
            }
        }
        chosen
    }

    /// The number of extents that the commit wrote.
    fn commit(&mut self, strategy: Strategy, leaves: usize, hot: usize) -> usize {
        self.txn += 1;
        self.space.set_pins(&[self.txn - 1]);
        let mut moved = self.distinct(leaves, self.leaves.len());
        let mut branches = self.distinct(hot - ROOTS, BRANCHES);
        branches.extend(BRANCHES..BRANCHES + ROOTS);
        let cleaned = match strategy {
            Strategy::SplitAndClean { every, window } if self.txn.is_multiple_of(every) => window,
            Strategy::ContiguousAndClean { window } => window,
            _ => 0,
        };
        if cleaned > 0 {
            let room = (moved.len() + branches.len()) as u64;
            let windows = self.space.windows(cleaned, room);
            let pages = windows.into_iter().flat_map(|window| window.first..window.end());
            moved.extend(pages.filter_map(|page| self.owner.get(&page)));
            moved.sort_unstable();
            moved.dedup();
        }
        let (cold, hot) = (moved.len() as u64, branches.len() as u64);
        self.written += cold + hot;
        let taken = match strategy {
            Strategy::Contiguous | Strategy::ContiguousAndClean { .. } => {
                self.space.allocate(cold + hot, Policy::Contiguous, self.grow_to, u64::MAX >> 20)
            }
            Strategy::Recent => {
                self.space.allocate(cold + hot, Policy::Recent, self.grow_to, u64::MAX >> 20)
            }
            _ => self
                .space
                .allocate_split(cold, hot, self.grow_to, u64::MAX >> 20)
                .map(|split| [split.cold, split.hot].concat()),
        };
        let taken = taken.unwrap();
        let mut pages = taken.iter().flat_map(|extent: &Extent| extent.first..extent.end());
        for leaf in moved {
            let page = pages.next().unwrap();
            let old = std::mem::replace(&mut self.leaves[leaf], page);
            self.owner.remove(&old);
            self.owner.insert(page, leaf);
            self.retired.push(Retired { first: old, count: 1, birth: 1, death: self.txn });
        }
        for branch in branches {
            let old = std::mem::replace(&mut self.hot[branch], pages.next().unwrap());
            self.retired.push(Retired { first: old, count: 1, birth: 1, death: self.txn });
        }
        self.space.retire(&self.retired);
        self.retired.clear();
        taken.len()
    }
}

/// The pieces of each commit, sorted, and the pages written per commit, after `lifetimes`.
fn age(
    strategy: Strategy,
    live: u64,
    percent: u64,
    leaves: usize,
    hot: usize,
) -> (Vec<usize>, f64) {
    let mut store = Store::new(live, percent);
    let lifetime = live / leaves as u64;
    for _ in 0..8 * lifetime {
        store.commit(strategy, leaves, hot);
    }
    store.written = 0;
    let commits = 4 * lifetime;
    let mut pieces: Vec<usize> =
        (0..commits).map(|_| store.commit(strategy, leaves, hot)).collect();
    pieces.sort_unstable();
    assert!(store.space.end() <= store.grow_to.max(live));
    (pieces, store.written as f64 / commits as f64)
}

fn row(name: &str, strategy: Strategy, live: u64, percent: u64, leaves: usize, hot: usize) {
    let (pieces, written) = age(strategy, live, percent, leaves, hot);
    let at = |percent: usize| pieces[pieces.len() * percent / 100];
    let mean = pieces.iter().sum::<usize>() as f64 / pieces.len() as f64;
    let (median, p90, p99) = (at(50), at(90), at(99));
    println!(
        "{name:<27}{live:>6}{percent:>6} %{leaves:>4} +{hot:>3}{median:>8}{p90:>5}{p99:>5}\
         {mean:>8.2}{written:>9.1}"
    );
}

#[test]
#[ignore = "prints a table"]
fn pieces_per_commit() {
    println!("strategy                     live   file   pages  median  p90  p99    mean  written");
    for (live, percent) in [(5_000, 160), (50_000, 160), (50_000, 130), (50_000, 200)] {
        row("recent", Strategy::Recent, live, percent, 4, 6);
        row("contiguous", Strategy::Contiguous, live, percent, 4, 6);
        row("split", Strategy::Split, live, percent, 4, 6);
        for (every, window) in [(8, 16), (4, 16), (16, 64)] {
            let name = format!("split, {window} every {every}");
            row(&name, Strategy::SplitAndClean { every, window }, live, percent, 4, 6);
        }
    }
    row("contiguous", Strategy::Contiguous, 50_000, 160, 40, 30);
    row("split", Strategy::Split, 50_000, 160, 40, 30);
    for (every, window) in [(2, 64), (4, 256), (1, 64), (1, 128)] {
        let name = format!("split, {window} every {every}");
        row(&name, Strategy::SplitAndClean { every, window }, 50_000, 160, 40, 30);
    }
    for percent in [150, 175, 200] {
        row("contiguous", Strategy::Contiguous, 50_000, percent, 440, 200);
        let clean = Strategy::ContiguousAndClean { window: 256 };
        row("contiguous, windows of 256", clean, 50_000, percent, 440, 200);
    }
    row("contiguous", Strategy::Contiguous, 50_000, 160, 1, 3);
    row("split", Strategy::Split, 50_000, 160, 1, 3);
}
