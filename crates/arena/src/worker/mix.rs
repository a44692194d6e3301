//! Readers beside writers, each a thread. Readers look up one key in each transaction, writers do
//! CRUD on records of their own. All stop at the same moment.

use std::sync::Barrier;
use std::time::Instant;

use super::dataset::{DATASETS, Dataset};
use super::timing::{Clock, Latency};
use super::{Done, timed};
use crate::data::Data;
use crate::keys::{Chooser, KEY_MAX};
use crate::peers::{Engine, Fault, Outcome, Session};
use crate::spec::{Bound, Part};

/// Look-ups from one taken latency to the next.
const STRIDE: u64 = 16;

/// What a thread did.
struct Turn {
    latency: Latency,
    ops: u64,
    seconds: f64,
    bytes: u64,
}

pub(super) fn run<E: Engine>(
    engine: &E,
    data: &Data,
    datasets: &mut [Dataset],
    (readers, writers): (u64, u64),
    bound: Bound,
) -> Outcome<Done> {
    // Records that no writer deletes meanwhile: the newer half of those that are there.
    let quiet: Vec<Vec<u64>> = datasets
        .iter()
        .map(|dataset| (dataset.len() / 2..dataset.len()).map(|i| dataset.alive(i)).collect())
        .collect();
    if quiet.iter().any(Vec::is_empty) {
        return Err(Fault::Failed("too few records for readers".into()));
    }
    let mut shares: Vec<Vec<&mut Dataset>> = (0..writers).map(|_| Vec::new()).collect();
    if writers > 0 {
        for (i, dataset) in datasets.iter_mut().enumerate() {
            shares[i % writers as usize].push(dataset);
        }
    }
    let start = Barrier::new((readers + writers) as usize);
    let start = &start;
    let (turns, during) = timed(|| {
        std::thread::scope(|scope| {
            let reading: Vec<_> = (0..readers)
                .map(|i| {
                    let quiet = &quiet;
                    scope.spawn(move || read(engine, data, quiet, i, start, bound))
                })
                .collect();
            let writing: Vec<_> = shares
                .into_iter()
                .map(|share| scope.spawn(move || write(engine, data, share, start, bound)))
                .collect();
            let gather = |threads: Vec<std::thread::ScopedJoinHandle<'_, Outcome<Turn>>>| {
                let ended = |_| Fault::Failed("a thread panicked".into());
                threads.into_iter().map(|t| t.join().map_err(ended)?).collect::<Outcome<Vec<_>>>()
            };
            Ok((gather(reading)?, gather(writing)?))
        })
    })?;
    let (reading, writing) = turns;
    let user_bytes = writing.iter().map(|turn| turn.bytes).sum();
    let (readers, writers) = (part(reading), part(writing));
    let (main, readers) = if writers.ops == 0 && readers.ops > 0 {
        (readers, None)
    } else {
        (writers, Some(readers))
    };
    let readers = readers.filter(|part| part.ops > 0);
    Ok(Done { readers, user_bytes, ..Done::of(main, during) })
}

/// The threads of one kind together.
fn part(turns: Vec<Turn>) -> Part {
    let (mut latency, mut ops, mut seconds) = (Latency::new(), 0, 0f64);
    for turn in turns {
        latency.merge(&turn.latency);
        ops += turn.ops;
        seconds = seconds.max(turn.seconds);
    }
    latency.into_part(ops, seconds)
}

fn read<E: Engine>(
    engine: &E,
    data: &Data,
    quiet: &[Vec<u64>],
    number: u64,
    start: &Barrier,
    bound: Bound,
) -> Outcome<Turn> {
    let session = engine.session();
    start.wait();
    let mut session = session?;
    let mut chooser = Chooser::new(0x7ead + number);
    let (mut latency, mut ops) = (Latency::new(), 0);
    let clock = Clock::start(Bound { ops: u64::MAX, ..bound });
    let mut key = [0; KEY_MAX];
    while clock.goes_on(ops) {
        for i in 0..STRIDE {
            let dataset = &quiet[chooser.below(DATASETS) as usize];
            let serial = dataset[chooser.below(dataset.len() as u64) as usize];
            let key = data.key(serial, &mut key);
            let began = (i == 0).then(Instant::now);
            let right =
                session.get_once(key, |v| v.is_some_and(|v| data.age_of(serial, v).is_some()))?;
            if let Some(began) = began {
                latency.add(began);
            }
            if !right {
                return Err(Fault::Failed(format!("a reader misses record {serial}")));
            }
        }
        ops += STRIDE;
    }
    Ok(Turn { latency, ops, seconds: clock.seconds(), bytes: 0 })
}

fn write<E: Engine>(
    engine: &E,
    data: &Data,
    mut datasets: Vec<&mut Dataset>,
    start: &Barrier,
    bound: Bound,
) -> Outcome<Turn> {
    let session = engine.session();
    // Deleting stops before it reaches what readers look for.
    let mut left: Vec<u64> = datasets.iter().map(|dataset| dataset.len() / 2).collect();
    start.wait();
    let mut session = session?;
    let (mut latency, mut ops, mut bytes) = (Latency::new(), 0, 0);
    let clock = Clock::start(Bound { ops: u64::MAX, ..bound });
    while clock.goes_on(ops) {
        let at = ops as usize % datasets.len();
        let quads = if left[at] > 0 { datasets[at].quads(1, true) } else { Vec::new() };
        let Some(quad) = quads.first() else { break };
        left[at] -= 1;
        let began = Instant::now();
        session.write_shared(|writer| quad.apply(writer, data, &mut Vec::new()))?;
        latency.add(began);
        bytes += quad.bytes(data);
        ops += 1;
    }
    Ok(Turn { latency, ops, seconds: clock.seconds(), bytes })
}
