//! Point look-ups in one long read transaction, everything in memory; scans of the same stores.

use super::{Housed, NOSYNC, Sink, sample, scan};
use crate::clock::measure;
use crate::keys::{KeyList, Kind, stamp_of};
use crate::versus::Config;
use crate::versus::duel::{Contender, Target, duel};
use crate::versus::engine::lmdb::Lmdb;
use crate::versus::engine::zubilo::Zubilo;
use crate::versus::engine::{Engine, Reader};

/// Keys in a batched look-up.
const BATCH: usize = 32;
/// Look-ups a sample.
const LOOKUPS: u64 = 300_000;

pub(crate) fn run(config: &Config, sink: Sink<'_>) {
    for (name, kind, single, batched) in [
        ("get", Kind::Random16, 3.0, 8.0),
        ("int", Kind::Dense, 2.0, 5.0),
        ("url", Kind::Url, 2.5, 0.0),
    ] {
        let scans = name == "get" && config.wants("scan");
        if config.wants(name) || scans {
            let ours = Housed::<Zubilo>::loaded(config, NOSYNC, kind, config.records);
            let peer = Housed::<Lmdb>::loaded(config, NOSYNC, kind, config.records);
            ours.engine.read(|ours| {
                peer.engine.read(|peer| {
                    if config.wants(name) {
                        gets(config, sink, name, kind, (&ours, &peer), single, batched);
                    }
                    if scans {
                        scan::run(config, sink, kind, &ours, &peer);
                    }
                })
            });
        }
    }
}

fn gets(
    config: &Config,
    sink: Sink<'_>,
    name: &str,
    kind: Kind,
    (ours, peer): (&impl Reader, &impl Reader),
    single: f64,
    batched: f64,
) {
    // Each sample has other keys, or small stores would be in the CPU's caches.
    let lists: Vec<KeyList> =
        (0..4).map(|i| KeyList::new(kind, sample(config.records, LOOKUPS, i + 1))).collect();
    let (mut turn, mut peer_turn) = (0, 0);
    let next = |turn: &mut usize| {
        *turn += 1;
        &lists[*turn % lists.len()]
    };
    sink(duel(
        &format!("{name}: one"),
        "ns",
        Target::Faster(single),
        config,
        true,
        vec![
            Contender::ours("zubilo", || one(ours, next(&mut turn))),
            Contender::peer("lmdb", || one(peer, next(&mut peer_turn))),
        ],
    ));
    let (mut turn, mut peer_turn) = (0, 0);
    let target = if batched > 0.0 { Target::Faster(batched) } else { Target::None };
    sink(duel(
        &format!("{name}: 32 batched"),
        "ns",
        target,
        config,
        true,
        vec![
            Contender::ours("zubilo get_many_with", || many(ours, next(&mut turn))),
            Contender::peer("lmdb get", || one(peer, next(&mut peer_turn))),
        ],
    ));
}

/// Nanoseconds a look-up.
fn one(reader: &impl Reader, keys: &KeyList) -> f64 {
    let mut right = 0;
    let cost = measure(|| {
        for (key, stamp) in keys.iter() {
            right += usize::from(reader.get(key).is_some_and(|v| stamp_of(v) == stamp));
        }
    });
    assert_eq!(right, keys.len(), "wrong values");
    cost.wall * 1e9 / keys.len() as f64
}

/// Nanoseconds a look-up, in batches.
fn many(reader: &impl Reader, keys: &KeyList) -> f64 {
    let mut right = 0;
    let cost = measure(|| {
        let mut all = keys.iter();
        loop {
            let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
            let mut stamps = [0; BATCH];
            let mut count = 0;
            for (key, stamp) in all.by_ref().take(BATCH) {
                (batch[count], stamps[count]) = (key, stamp);
                count += 1;
            }
            if count == 0 {
                break;
            }
            reader.get_many(&batch[..count], |i, value| {
                right += usize::from(value.is_some_and(|v| stamp_of(v) == stamps[i]));
            });
        }
    });
    assert_eq!(right, keys.len(), "wrong values");
    cost.wall * 1e9 / keys.len() as f64
}
