//! The map of free pages against a vector of booleans, over several groups.

use super::super::Extent;
use super::super::free_map::{FreeMap, GROUP, RUN_CAP, Within};
use proptest::prelude::*;

const PAGES: u64 = 20 * GROUP;

fn naive_runs(pages: &[bool]) -> Vec<Extent> {
    let mut runs: Vec<Extent> = Vec::new();
    for (page, _) in pages.iter().enumerate().filter(|(_, free)| **free) {
        match runs.last_mut() {
            Some(run) if run.end() == page as u64 => run.count += 1,
            _ => runs.push(Extent { first: page as u64, count: 1 }),
        }
    }
    runs
}

fn check_searches(map: &mut FreeMap, pages: &[bool], want: u64, from: u64) {
    let runs = naive_runs(pages);
    assert_eq!(map.free_pages(), runs.iter().map(|run| run.count).sum::<u64>());
    assert_eq!(map.bits().runs(), runs.len() as u64);
    assert_eq!(map.lowest(), runs.first().map(|run| run.first));
    let mut seen = Vec::new();
    map.bits().for_each_run(0, PAGES, &mut |first, count| seen.push(Extent { first, count }));
    assert_eq!(seen, runs);

    let longest = runs.iter().map(|run| run.count).max().unwrap_or(0);
    assert_eq!(map.largest(Within::All).map_or(0, |run| run.count), longest.min(RUN_CAP));
    for want in [want, longest, longest + 1, 1] {
        if want == 0 {
            continue;
        }
        for found in [map.find_run(want, from, Within::All), map.best_fit(want, Within::All)] {
            assert_eq!(found.is_some(), want <= longest, "run of {want} from {from}");
            if let Some(first) = found {
                assert_eq!(map.bits().count(first, want), want);
            }
        }
    }
}

/// As `find_run` should see it: runs start anew where groups of the other kind begin.
fn naive_longest(pages: &[bool], hot: &[bool], want_hot: bool) -> u64 {
    let mut longest = 0;
    let mut after = 0;
    for page in (0..pages.len()).rev() {
        after = if pages[page] { after + 1 } else { 0 };
        let kind = |page: usize| hot[page / GROUP as usize];
        let starts = page == 0 || !pages[page - 1] || kind(page) != kind(page - 1);
        if starts && kind(page) == want_hot {
            longest = longest.max(after);
        }
    }
    longest
}

fn check_kinds(map: &mut FreeMap, pages: &[bool], from: u64) {
    let hot: Vec<bool> = (0..PAGES / GROUP).map(|group| map.is_hot(group * GROUP)).collect();
    for (within, want_hot) in [(Within::Hot, true), (Within::Cold, false)] {
        let longest = naive_longest(pages, &hot, want_hot);
        assert_eq!(map.largest(within).map_or(0, |run| run.count), longest.min(RUN_CAP));
        for want in [1, longest, longest + 1] {
            let want = want.max(1);
            let found = map.find_run(want, from, within);
            assert_eq!(found.is_some(), want <= longest);
            if let Some(first) = found {
                assert_eq!(map.bits().count(first, want), want);
                assert_eq!(map.is_hot(first), want_hot);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn finds_what_is_there(
        ops in prop::collection::vec((any::<bool>(), 0..PAGES, 0u32..14, 1u64..200), 1..120),
        full in any::<bool>(),
    ) {
        let mut map = FreeMap::default();
        let mut pages = vec![full; PAGES as usize];
        if full {
            map.insert(0, PAGES);
        }
        for (step, (free, first, scale, want)) in ops.into_iter().enumerate() {
            let count = (want << scale >> 7).clamp(1, PAGES - first);
            let range = &mut pages[first as usize..(first + count) as usize];
            let differing = range.iter().filter(|page| **page != free).count() as u64;
            range.fill(free);
            let changed = if free { map.insert(first, count) } else { map.remove(first, count) };
            prop_assert_eq!(changed, differing);
            if step % 4 == 0 {
                check_searches(&mut map, &pages, want, (first * 7) % PAGES);
                check_kinds(&mut map, &pages, (first * 3) % PAGES);
            }
            if step % 16 == 9 {
                map.set_emptiest_aside(PAGES, want % GROUP);
            }
        }
    }

    #[test]
    fn single_pages_come_and_go(seed in any::<u64>()) {
        let mut random = support::Rng::new(seed);
        let mut map = FreeMap::default();
        let mut pages = vec![false; PAGES as usize];
        for step in 0..4000 {
            let page = random.below(PAGES);
            pages[page as usize] = step % 5 != 0;
            if step % 5 != 0 { map.insert(page, 1); } else { map.remove(page, 1); }
            if step % 500 == 0 {
                check_searches(&mut map, &pages, 1 + random.below(5), random.below(PAGES));
                check_kinds(&mut map, &pages, random.below(PAGES));
                map.set_emptiest_aside(PAGES, 0);
            }
        }
    }
}
