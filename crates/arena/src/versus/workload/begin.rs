//! Beginning and ending read transactions.

use super::{Housed, NOSYNC, Sink};
use crate::clock::measure;
use crate::keys::Kind;
use crate::versus::Config;
use crate::versus::duel::{Contender, Target, duel};
use crate::versus::engine::Engine;
use crate::versus::engine::lmdb::Lmdb;
use crate::versus::engine::zubilo::Zubilo;

const TIMES: u64 = 1_000_000;

pub(crate) fn run(config: &Config, sink: Sink<'_>) {
    if !config.wants("begin") {
        return;
    }
    let ours = Housed::<Zubilo>::loaded(config, NOSYNC, Kind::Random16, 1000);
    let peer = Housed::<Lmdb>::loaded(config, NOSYNC, Kind::Random16, 1000);
    let target = Target::Faster(1.0);
    sink(duel(
        "read: begin + end, reader kept",
        "ns",
        target,
        config,
        true,
        vec![
            Contender::ours("zubilo Reader", || renew(&ours.engine)),
            Contender::peer("lmdb reset + renew", || renew(&peer.engine)),
        ],
    ));
    sink(duel(
        "read: begin + end",
        "ns",
        target,
        config,
        true,
        vec![
            Contender::ours("zubilo read + drop", || begin_end(&ours.engine)),
            Contender::peer("lmdb begin + abort", || begin_end(&peer.engine)),
        ],
    ));
}

fn begin_end(engine: &impl Engine) -> f64 {
    measure(|| engine.begin_end(TIMES)).wall * 1e9 / TIMES as f64
}

fn renew(engine: &impl Engine) -> f64 {
    measure(|| engine.renew(TIMES)).wall * 1e9 / TIMES as f64
}
