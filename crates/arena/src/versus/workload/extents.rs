//! How many extents a durable commit writes, in a fresh and in an aged store.

use super::crud::Dataset;
use super::{NOSYNC, Place, SYNC, Sink};
use crate::keys::Kind;
use crate::versus::Config;
use crate::versus::duel::{Target, from_samples};
use crate::versus::engine::Engine;
use crate::versus::engine::counting::{Counted, take};
use crate::versus::engine::zubilo::{Zubilo, options};

/// Records before the first transaction.
const RECORDS: u64 = 1_000_000;
/// Commits counted at each point.
const COMMITS: usize = 1000;

pub(crate) fn run(config: &Config, sink: Sink<'_>) {
    if !config.wants("extents") {
        return;
    }
    let records = config.records.min(RECORDS);
    let place = Place::new(config);
    let path = place.0.join("zubilo");
    // Loaded as in the figure for random loads; a load in huge durable commits would leave a file
    // that is mostly free.
    let env = options(NOSYNC).open(&path).expect("open");
    super::load::fill(&Zubilo::on(env.clone()), Kind::Random16, 0..records, 1000);
    env.close().expect("close");
    let (file, counter) = Counted::open(&path, 4096);
    let env = zubilo::Env::open_parts(Box::new(file), [1; 16], options(SYNC)).expect("open");
    let zubilo = Zubilo::on(env);
    let mut dataset = Dataset::new(0, 1, records);
    let mut commit = || {
        take(&counter);
        let plan = dataset.plan();
        zubilo.write(|writer| plan.apply(writer));
        take(&counter)
    };
    let label = || std::iter::once(("zubilo Sync".to_owned(), true));
    let mut age = |name: &str, before: u64, target: Target, sink: Sink<'_>| {
        for _ in 0..before {
            commit();
        }
        let counts: Vec<_> = (0..COMMITS).map(|_| commit()).collect();
        let of = |f: &dyn Fn(&crate::versus::engine::counting::Counts) -> f64| -> Vec<f64> {
            counts.iter().map(f).collect()
        };
        let extents = of(&|c| c.extents as f64);
        let mean = extents.iter().sum::<f64>() / extents.len() as f64;
        let size = zubilo.disk_bytes() as f64 / zubilo.live_bytes() as f64;
        let mut figure = |what: &str, unit, target, samples: Vec<f64>| {
            let name = format!("extents {name}: {what}");
            sink(from_samples(&name, unit, target, label(), &[samples]));
        };
        figure("median", "extents", target, extents);
        figure("mean", "extents", Target::None, vec![mean]);
        figure("bytes", "B/txn", Target::None, of(&|c| c.bytes as f64));
        figure("flushes", "flushes", Target::AtMost(1.0), of(&|c| c.flushes as f64));
        figure("file over live", "times", Target::AtMost(1.6), vec![size]);
    };
    age("fresh", 0, Target::AtMost(2.0), sink);
    age("aged", config.records / 50, Target::AtMost(2.0), sink);
}
