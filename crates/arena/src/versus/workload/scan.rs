//! Walks in key order: the whole table, and 100 records from a random key on.

use super::{Sink, sample};
use crate::clock::measure;
use crate::keys::{KeyList, Kind, stamp_of};
use crate::versus::Config;
use crate::versus::duel::{Contender, Target, duel};
use crate::versus::engine::Reader;

/// Records after a seek.
const RANGE: usize = 100;

pub(crate) fn run(
    config: &Config,
    sink: Sink<'_>,
    kind: Kind,
    ours: &impl Reader,
    peer: &impl Reader,
) {
    sink(duel(
        "scan: all",
        "ns/rec",
        Target::Faster(2.0),
        config,
        true,
        vec![
            Contender::ours("zubilo", || all(ours, config.records)),
            Contender::peer("lmdb", || all(peer, config.records)),
        ],
    ));
    let keys = KeyList::new(kind, sample(config.records, 20_000, 99));
    sink(duel(
        "scan: seek + 100",
        "us",
        Target::Faster(2.0),
        config,
        true,
        vec![
            Contender::ours("zubilo", || ranges(ours, &keys)),
            Contender::peer("lmdb", || ranges(peer, &keys)),
        ],
    ));
}

fn all(reader: &impl Reader, records: u64) -> f64 {
    let (mut count, mut sum) = (0, 0u64);
    let cost = measure(|| {
        reader.scan(|key, value| {
            count += 1;
            sum = sum.wrapping_add(stamp_of(key)).wrapping_add(stamp_of(value));
        });
    });
    std::hint::black_box(sum);
    assert_eq!(count, records, "records are missing");
    cost.wall * 1e9 / records as f64
}

fn ranges(reader: &impl Reader, keys: &KeyList) -> f64 {
    let (mut count, mut sum) = (0, 0u64);
    let cost = measure(|| {
        for (key, _) in keys.iter() {
            reader.range(key, RANGE, |key, value| {
                count += 1;
                sum = sum.wrapping_add(stamp_of(key)).wrapping_add(stamp_of(value));
            });
        }
    });
    std::hint::black_box(sum);
    assert!(count > keys.len() * RANGE * 9 / 10, "records are missing");
    cost.wall * 1e6 / keys.len() as f64
}
