//! Copies of the store while a thread goes on changing it: how fast they are, and what they leave
//! of the changes. Each copy is opened and must be one of the states that there were meanwhile.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::dataset::Dataset;
use super::timing::{Clock, Latency};
use super::{Done, timed};
use crate::data::Data;
use crate::disk;
use crate::peers::{Engine, Fault, Outcome, Session};
use crate::spec::{Bound, Part};

/// An operation is a record in the copy; beside it CRUD. `look` counts the records of a copy and
/// how many of them are damaged.
pub(super) fn run<E: Engine>(
    engine: &E,
    data: &Data,
    datasets: &mut [Dataset],
    dir: &Path,
    bound: Bound,
    look: impl Fn(&Path) -> Outcome<(u64, u64)>,
) -> Outcome<Done> {
    let to = dir.with_extension("copy");
    let records = |datasets: &[Dataset]| datasets.iter().map(Dataset::len).sum::<u64>();
    let before = records(datasets);
    let (mut latency, mut copies, mut bytes) = (Latency::new(), 0, 0);
    let clock = Clock::start(bound);
    let (mut found, mut busy) = (Vec::new(), 0.0);
    let (beside, during) = timed(|| {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| churn(engine, data, datasets, &done));
            let copied = (|| {
                while copies == 0 || clock.goes_on(copies) {
                    let _ = std::fs::remove_dir_all(&to);
                    std::fs::create_dir_all(&to).map_err(Fault::of("create the directory"))?;
                    let began = Instant::now();
                    engine.back_up(&to)?;
                    latency.add(began);
                    busy += began.elapsed().as_secs_f64();
                    bytes += disk::usage(&to).0;
                    found.push(look(&to)?);
                    copies += 1;
                }
                Ok(())
            })();
            done.store(true, Ordering::Relaxed);
            let beside = writer.join().map_err(|_| Fault::Failed("the writer panicked".into()))?;
            copied.and(beside)
        })
    })?;
    let _ = std::fs::remove_dir_all(&to);
    let after = records(datasets);
    if let Some(odd) = found.iter().find(|f| !(before..=after).contains(&f.0) || f.1 > 0) {
        let text = format!("a copy has {} records, {} damaged; {before} to {after}", odd.0, odd.1);
        return Err(Fault::Failed(text));
    }
    let part = latency.into_part(found.iter().map(|f| f.0).sum(), busy);
    let note = format!("{copies} copies, {:.1} MB a second", bytes as f64 / 1e6 / busy.max(1e-9));
    Ok(Done { readers: Some(beside), note: Some(note), ..Done::of(part, during) })
}

/// CRUD until it is asked to end.
fn churn<E: Engine>(
    engine: &E,
    data: &Data,
    datasets: &mut [Dataset],
    done: &AtomicBool,
) -> Outcome<Part> {
    let (count, mut latency, mut ops) = (datasets.len(), Latency::new(), 0);
    let mut session = engine.session()?;
    let clock = Clock::start(Bound { ops: u64::MAX, seconds: f64::INFINITY });
    while !done.load(Ordering::Relaxed) {
        let Some(quad) = datasets[ops as usize % count].quads(1, true).pop() else { break };
        let began = Instant::now();
        session.write(|writer| quad.apply(writer, data, &mut Vec::new()))?;
        latency.add(began);
        ops += 1;
    }
    Ok(latency.into_part(ops, clock.seconds()))
}
