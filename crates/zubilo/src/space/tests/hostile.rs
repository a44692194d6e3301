//! Persisted bytes of any shape: a space map or `Malformed`, never a panic, never much time.

use super::super::{Delta, Extent, PAGES_MAX, Policy, Retired, Space};
use proptest::prelude::*;

const FILE: u64 = 1 << 16;

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn numbers(values: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    values.iter().for_each(|&value| put(&mut out, value));
    out
}

fn sample_space(seed: u64) -> Space {
    let mut random = support::Rng::new(seed);
    let mut space = Space::new(2000);
    space.set_pins(&[100, 200]);
    for page in 3..2000 {
        let death = 90 + random.below(150);
        if random.below(3) == 0 {
            space.retire(&[Retired { first: page, count: 1, birth: random.below(death), death }]);
        }
    }
    space
}

fn sample_delta(seed: u64) -> Delta {
    let mut random = support::Rng::new(seed);
    let txn = 300 + random.below(5);
    let allocated = (0..random.below(4)).map(|i| Extent { first: 1990 + i * 9, count: 1 + i });
    let released = (0..random.below(20)).map(|i| Retired {
        first: i * 40 + random.below(30),
        count: 1 + random.below(10),
        birth: random.below(txn),
        death: txn,
    });
    Delta { txn, allocated: allocated.collect(), released: released.collect(), end: 2100 }
}

/// The map must stay consistent whatever it was made of.
fn exercise(mut space: Space) {
    let mut free = 0;
    space.for_each_free(&mut |run| free += run.count);
    assert_eq!(free, space.free_pages());
    let mut retired = 0;
    space.for_each_retired(&mut |entry, _| {
        retired += entry.count;
        assert!(entry.end() <= FILE && !space.is_free(entry.first));
    });
    assert_eq!(retired, space.retired_pages());
    let mut bytes = Vec::new();
    space.encode(&mut bytes).expect("memory");
    assert!(bytes.len() <= space.encoded_len_bound());
    assert!(free + retired <= space.end());
    space.set_pins(&[]);
    assert_eq!(space.retired_pages(), 0);
    let _ = space.allocate(9, Policy::Contiguous, 0, FILE);
    let _ = space.allocate(9, Policy::Recent, 0, FILE);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn mutated_bases(
        seed in 0u64..20,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(), cuts in any::<bool>(),
    ) {
        let mut bytes = Vec::new();
        sample_space(seed).encode(&mut bytes).expect("memory");
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(space) = super::load(Some(&bytes), 3, &[sample_delta(seed)], &[], &[100, 250], FILE) {
            exercise(space);
        }
    }

    #[test]
    fn mutated_deltas(
        seed in 0u64..200,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = Vec::new();
        sample_delta(seed).encode(&mut bytes);
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok((delta, used)) = Delta::decode(&bytes) {
            prop_assert!(used <= bytes.len());
            if delta.end <= FILE {
                let mut space = sample_space(seed);
                let _ = space.follow(std::slice::from_ref(&delta), &[], PAGES_MAX);
                exercise(space);
            }
            if let Ok(space) = super::load(None, 3, &[delta], &[], &[100, 250], FILE) {
                exercise(space);
            }
        }
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Delta::decode(&bytes);
        if let Ok(space) = super::decode(&bytes, &[1, 7], FILE) {
            exercise(space);
        }
    }

    #[test]
    fn any_deltas(parts in prop::collection::vec((0u64..40, 0u64..9, 0u64..40, 0u64..9), 0..30)) {
        let deltas: Vec<Delta> = parts.iter().zip(10..).map(|(&(a, n, b, m), txn)| Delta {
            txn,
            allocated: vec![Extent { first: a, count: n }],
            released: vec![Retired { first: b, count: m, birth: txn - m.min(txn), death: txn }],
            end: 40 + n,
        }).collect();
        if let Ok(space) = super::load(None, 3, &deltas, &[], &[9, 12, 20], FILE) {
            exercise(space);
        }
    }
}

#[test]
fn huge_numbers_are_refused() {
    for end in [PAGES_MAX + 1, 1 << 63, u64::MAX] {
        assert!(super::decode(&numbers(&[end, 0, 0, 0]), &[], u64::MAX).is_err());
        assert!(Delta::decode(&numbers(&[1, end, 0, 0])).is_err());
    }
    let huge = u64::MAX;
    for bytes in [
        numbers(&[100, huge]),
        numbers(&[100, 1, huge, huge]),
        numbers(&[100, 1, 5, huge, 0, 0]),
        numbers(&[100, 1, 5, 96, 0, 0]),
        numbers(&[100, 2, 5, 5, 0, 5, 0, 0]),
        numbers(&[100, 1, 5, 5, 9, 1, 6, 1, 0, 0]),
        numbers(&[100, 0, 9, 1, 6, 1, 10, 0]),
        numbers(&[100, 0, 9, 1, 6, 1, 0, 10]),
        vec![0xff; 11],
    ] {
        assert!(super::decode(&bytes, &[], FILE).is_err(), "{bytes:?}");
    }
    let used = [Extent { first: huge, count: huge }];
    assert!(super::load(None, 3, &[], &used, &[], FILE).is_err());
    let delta = |first, count| Delta {
        txn: 5,
        allocated: vec![Extent { first, count }],
        released: vec![],
        end: 50,
    };
    for bad in [delta(huge, 2), delta(2, huge), delta(49, 2)] {
        assert!(super::load(None, 3, &[bad], &[], &[], FILE).is_err());
    }
    assert!(super::load(None, 3, &[delta(5, 1), delta(6, 1)], &[], &[], FILE).is_err());
}
