//! One behaviour each.

use super::super::{Delta, Extent, Policy, Retired, Space};

fn one(first: u64, birth: u64, death: u64) -> Retired {
    Retired { first, count: 1, birth, death }
}

fn extent(first: u64, count: u64) -> Extent {
    Extent { first, count }
}

#[test]
fn a_stuck_reader_pins_only_its_own_snapshot() {
    let mut space = Space::new(100);
    space.set_pins(&[10, 40]);
    // Seen by 10; born after 10 and dead before 40; seen by 40 alone; by both.
    space.retire(&[one(1, 5, 20), one(2, 15, 20), one(3, 30, 41), one(4, 5, 50)]);
    assert_eq!((space.free_pages(), space.retired_pages()), (1, 3));
    space.set_pins(&[10]);
    assert!(space.is_free(3) && space.is_retired(1) && space.is_retired(4));
    space.set_pins(&[]);
    assert_eq!((space.free_pages(), space.retired_pages()), (4, 0));
}

#[test]
fn retired_reallocated_and_retired_again() {
    let deltas = [
        Delta { txn: 5, allocated: vec![], released: vec![one(7, 3, 5)], end: 10 },
        Delta { txn: 8, allocated: vec![extent(7, 1)], released: vec![], end: 10 },
        Delta { txn: 9, allocated: vec![], released: vec![one(7, 8, 9)], end: 10 },
    ];
    let mut space = super::load(None, 10, &deltas, &[], &[4, 8], 10).unwrap();
    assert!(space.is_retired(7));
    space.set_pins(&[8]);
    assert!(space.is_retired(7), "snapshot 8 sees it");
    space.set_pins(&[9]);
    assert!(space.is_free(7));
}

#[test]
fn pages_of_the_log_are_taken_out() {
    let delta =
        Delta { txn: 5, allocated: vec![], released: vec![one(7, 3, 5), one(6, 3, 5)], end: 10 };
    let used = [extent(7, 1), extent(12, 2)];
    let space = super::load(None, 10, &[delta], &used, &[4], 20).unwrap();
    assert!(!space.is_free(7) && !space.is_retired(7) && space.is_retired(6));
    assert_eq!(space.end(), 14);
    assert_eq!(space.free_pages(), 2, "the gap below the pages at the new tail is free");
}

#[test]
fn contiguous_prefers_a_run_then_the_allowed_tail_then_pieces() {
    let mut space = Space::new(100);
    for (first, count) in [(10, 4), (30, 6), (50, 3)] {
        space.give_back(extent(first, count));
    }
    assert_eq!(space.allocate(5, Policy::Contiguous, 100, 200), Some(vec![extent(30, 5)]));
    assert_eq!(space.allocate(5, Policy::Contiguous, 105, 200), Some(vec![extent(100, 5)]));
    let pieces = space.allocate(7, Policy::Contiguous, 105, 200).unwrap();
    assert_eq!(pieces, vec![extent(10, 4), extent(50, 3)]);
    assert_eq!(space.allocate(97, Policy::Contiguous, 105, 200), None);
    assert_eq!(space.free_pages(), 1);
    let pieces = space.allocate(96, Policy::Contiguous, 105, 200).unwrap();
    assert_eq!(pieces, vec![extent(35, 1), extent(105, 95)]);
}

#[test]
fn the_tail_run_joins_with_new_pages() {
    let mut space = Space::new(100);
    space.give_back(extent(90, 9));
    assert!(space.trim_tail(0) == 100 && space.free_pages() == 9);
    space.retire(&[one(99, 1, 2)]);
    let taken = space.allocate(12, Policy::Contiguous, 102, 102).unwrap();
    assert_eq!((taken, space.end()), (vec![extent(90, 12)], 102));
}

#[test]
fn recent_takes_the_last_freed_first() {
    let mut space = Space::new(100);
    space.retire(&[one(5, 1, 2), one(50, 1, 2), one(20, 1, 3), one(21, 1, 3)]);
    assert_eq!(space.allocate(2, Policy::Recent, 100, 100), Some(vec![extent(20, 2)]));
    space.retire(&[one(70, 1, 4)]);
    let taken = space.allocate(3, Policy::Recent, 100, 101).unwrap();
    assert_eq!(taken, vec![extent(5, 1), extent(50, 1), extent(70, 1)]);
    assert_eq!(space.allocate(1, Policy::Recent, 100, 101), Some(vec![extent(100, 1)]));
    assert_eq!(space.allocate(1, Policy::Recent, 100, 101), None);
}

#[test]
fn low_takes_the_lowest_and_runs_before_a_place() {
    let mut space = Space::new(1000);
    space.retire(&[one(900, 1, 2), one(20, 1, 2), one(40, 1, 2), one(41, 1, 2), one(42, 1, 2)]);
    let taken = space.allocate(2, Policy::Low, 0, 2000).unwrap();
    assert_eq!(taken, [extent(20, 1), extent(40, 1)]);
    assert_eq!((space.free_below(42), space.free_below(43), space.free_below(1000)), (1, 2, 3));
    assert_eq!((space.free_pages(), space.take_below(3, 1000)), (3, None));
    assert_eq!((space.take_below(2, 43), space.take_below(1, 900)), (Some(41), None));
    assert_eq!(
        space.allocate(3, Policy::Low, 0, 1002),
        Some(vec![extent(900, 1), extent(1000, 2)])
    );
    assert_eq!((space.free_pages(), space.end()), (0, 1002));
    assert_eq!(space.allocate(2, Policy::Low, 0, 1003), None);
}

#[test]
fn recent_survives_more_frees_than_it_remembers() {
    let mut space = Space::new(100_000);
    for page in 0..50_000 {
        space.retire(&[one(page * 2, 1, 2)]);
    }
    let taken = space.allocate(50_000, Policy::Recent, 0, 0).unwrap();
    assert_eq!((taken.len(), space.free_pages()), (50_000, 0));
}

#[test]
fn trimming_stops_at_what_is_used_or_retired() {
    let mut space = Space::new(100);
    space.set_pins(&[5]);
    space.retire(&[one(90, 1, 6), Retired { first: 91, count: 9, birth: 6, death: 7 }]);
    assert_eq!(space.trim_tail(95), 95);
    assert_eq!(space.trim_tail(0), 91);
    space.set_pins(&[6]);
    assert_eq!((space.trim_tail(0), space.free_pages()), (90, 0));
}

#[test]
fn a_small_commit_makes_a_small_delta() {
    let mut random = support::Rng::new(1);
    let txn = 40_000_000;
    let mut released: Vec<Retired> =
        (0..12).map(|_| one(random.below(500_000), txn - random.below(200_000), txn)).collect();
    released.sort_unstable();
    let delta = Delta { txn, allocated: vec![extent(123_456, 12)], released, end: 500_000 };
    let mut bytes = Vec::new();
    delta.encode(&mut bytes);
    assert!(bytes.len() < 110, "{} bytes", bytes.len());
    assert_eq!(bytes.len(), delta.encoded_len());
    bytes.extend_from_slice(b"what follows");
    assert_eq!(Delta::decode(&bytes), Ok((delta, bytes.len() - 12)));
}

#[test]
fn windows_for_cleaning_are_nearly_free() {
    let mut space = Space::new(10_000);
    for page in 0..5_000 {
        space.give_back(extent(page * 2, 1));
    }
    for page in [641, 1281, 1283] {
        space.give_back(extent(page, 1));
    }
    assert_eq!(space.windows(20_000, 1), []);
    // 2048 words are looked at each time, and then the next ones.
    assert_eq!(space.windows(64, 34), [extent(1280, 64)]);
    assert_eq!(space.windows(64, 1), [extent(4096, 64)]);
    space.window_cursor = 0;
    assert_eq!(space.windows(64, 67), [extent(1280, 64), extent(640, 64)]);
    space.window_cursor = 0;
    assert_eq!(space.windows(64, 68), [extent(1280, 64), extent(640, 64), extent(0, 64)]);
    // What is mostly in use stays.
    let mut space = Space::new(1_000);
    (0..250).for_each(|i| space.give_back(extent(i * 4, 1)));
    assert_eq!(space.windows(64, 100), []);
}

#[test]
fn hot_pages_live_apart_and_in_runs() {
    let mut space = Space::new(10_000);
    let mut random = support::Rng::new(1);
    let mut hot: Vec<u64> = Vec::new();
    for txn in 10..2_000 {
        let split = space.allocate_split(4, 6, 20_000, 20_000).unwrap();
        assert_eq!((split.cold.len(), split.hot.len()), (1, 1), "txn {txn}");
        hot.extend(split.hot[0].first..split.hot[0].end());
        let dead = hot.len().saturating_sub(200);
        let released: Vec<Retired> = (0..dead)
            .map(|_| one(hot.swap_remove(random.below(hot.len() as u64) as usize), 1, txn))
            .collect();
        space.retire(&released);
    }
    let low = hot.iter().min().unwrap();
    let high = hot.iter().max().unwrap();
    assert!(high - low < 2_048, "hot pages from {low} to {high}");
}

/// A damaged reference to a large value may name no bytes. The search for so many pages overflowed.
#[test]
fn of_no_pages_none_are_taken() {
    let mut space = Space::new(100);
    space.retire(&[one(3, 1, 2)]);
    space.set_pins(&[]);
    assert!(space.is_free(3));
    assert_eq!(space.take_below(0, 100), None);
    assert_eq!(space.take_below(1, 100), Some(3));
}
