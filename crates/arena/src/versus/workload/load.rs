//! Loading an empty store in transactions of 1,000 records, without flushes.

use std::ops::Range;

use super::{Housed, NOSYNC, NOSYNC_MAP, Sink, put_new};
use crate::clock::measure;
use crate::keys::{KEY_MAX, Kind, value};
use crate::versus::Config;
use crate::versus::duel::{Target, from_samples};
use crate::versus::engine::lmdb::Lmdb;
use crate::versus::engine::zubilo::Zubilo;
use crate::versus::engine::{Engine, Settings, Writer};

/// Records a transaction.
const BATCH: u64 = 1000;

pub(crate) fn run(config: &Config, sink: Sink<'_>) {
    let rounds = config.rounds.min(3);
    if config.wants("load") {
        let sides = vec![
            Side::of::<Zubilo>("zubilo by calls", true, config, NOSYNC, random),
            Side::of::<Zubilo>("zubilo", true, config, NOSYNC_MAP, random),
            Side::of::<Lmdb>("lmdb NOSYNC", false, config, NOSYNC, random),
            Side::of::<Lmdb>("lmdb NOSYNC|WRITEMAP", false, config, NOSYNC_MAP, random),
        ];
        loads(config, sink, "load random", rounds, Target::AtMostShare(0.5), sides);
    }
    if config.wants("sorted") {
        let sides = vec![
            Side::of::<Zubilo>("zubilo by calls", true, config, NOSYNC, plain),
            Side::of::<Zubilo>("zubilo", true, config, NOSYNC_MAP, plain),
            Side::of::<Lmdb>("lmdb NOSYNC plain", false, config, NOSYNC, plain),
            Side::of::<Lmdb>("lmdb NOSYNC APPEND", false, config, NOSYNC, append),
            Side::of::<Lmdb>("lmdb NOSYNC|WRITEMAP APPEND", false, config, NOSYNC_MAP, append),
        ];
        loads(config, sink, "load sorted", rounds, Target::Faster(1.0), sides);
    }
}

fn random(engine: &impl Engine, records: u64) {
    fill(engine, Kind::Random16, 0..records, BATCH);
}

fn plain(engine: &impl Engine, records: u64) {
    fill(engine, Kind::Dense, 0..records, BATCH);
}

/// CPU and wall microseconds a record, and bytes a record on disk.
type Sample = [f64; 3];

struct Side<'s> {
    label: String,
    ours: bool,
    run: Box<dyn Fn() -> Sample + 's>,
}

impl<'s> Side<'s> {
    /// `work` loads so many records into a new store.
    fn of<E: Engine + 's>(
        label: &str,
        ours: bool,
        config: &'s Config,
        settings: Settings,
        work: fn(&E, u64),
    ) -> Side<'s> {
        let run = Box::new(move || load(config, settings, work));
        Side { label: label.into(), ours, run }
    }
}

fn loads(
    config: &Config,
    sink: Sink<'_>,
    name: &str,
    rounds: usize,
    target: Target,
    mut sides: Vec<Side<'_>>,
) {
    sides.retain(|side| side.label.contains(&config.side));
    let mut samples = vec![vec![Vec::new(); sides.len()]; 3];
    for round in 0..rounds {
        for i in 0..sides.len() {
            let i = if round % 2 == 0 { i } else { sides.len() - 1 - i };
            for (list, value) in samples.iter_mut().zip((sides[i].run)()) {
                list[i].push(value);
            }
        }
    }
    let labels = || sides.iter().map(|s| (s.label.clone(), s.ours));
    let mut figure = |what: &str, unit, target, samples: &[Vec<f64>]| {
        sink(from_samples(&format!("{name}: {what}"), unit, target, labels(), samples));
    };
    figure("CPU", "us/rec", target, &samples[0]);
    figure("wall", "us/rec", Target::None, &samples[1]);
    figure("file", "B/rec", Target::Faster(1.0), &samples[2]);
}

fn load<E: Engine>(config: &Config, settings: Settings, work: fn(&E, u64)) -> Sample {
    let housed = Housed::<E>::new(config, settings);
    let cost = measure(|| work(&housed.engine, config.records));
    let records = config.records as f64;
    let bytes = housed.engine.disk_bytes() as f64;
    [cost.cpu * 1e6 / records, cost.wall * 1e6 / records, bytes / records]
}

/// Puts the records of these serial numbers, in their order.
pub(crate) fn fill(engine: &impl Engine, kind: Kind, serials: Range<u64>, batch: u64) {
    let mut first = serials.start;
    while first < serials.end {
        let last = (first + batch).min(serials.end);
        engine.write(|writer| (first..last).for_each(|serial| put_new(writer, kind, serial)));
        first = last;
    }
}

/// The engine knows that the keys are sorted.
fn append(engine: &impl Engine, records: u64) {
    for first in (0..records).step_by(BATCH as usize) {
        engine.write(|writer| {
            let mut buffer = [0; KEY_MAX];
            for serial in first..(first + BATCH).min(records) {
                writer.append(Kind::Dense.key(serial, &mut buffer), &value(serial, 0));
            }
        });
    }
}
