//! 10,000 random 16-byte keys in 100 transactions: write requests a commit at the end.

use super::{Place, SYNC, Sink};
use crate::keys::Kind;
use crate::versus::Config;
use crate::versus::duel::{Target, from_samples};
use crate::versus::engine::Engine;
use crate::versus::engine::counting::{Counted, take};
use crate::versus::engine::zubilo::{Zubilo, options};

pub(crate) fn run(config: &Config, sink: Sink<'_>) {
    if !config.wants("ids") {
        return;
    }
    let place = Place::new(config);
    let (file, counter) = Counted::open(&place.0.join("zubilo"), 4096);
    let env = zubilo::Env::open_parts(Box::new(file), [1; 16], options(SYNC)).expect("open");
    let zubilo = Zubilo::on(env);
    let (mut requests, mut bytes) = (Vec::new(), Vec::new());
    for txn in 0..100 {
        take(&counter);
        super::load::fill(&zubilo, Kind::Random16, txn * 100..txn * 100 + 100, 100);
        let counts = take(&counter);
        if txn >= 80 {
            requests.push(counts.requests as f64);
            bytes.push(counts.bytes as f64);
        }
    }
    let label = || std::iter::once(("zubilo Sync".to_owned(), true));
    let most = vec![requests.iter().copied().fold(0.0, f64::max)];
    let mut figure = |what: &str, unit, target, samples: Vec<f64>| {
        sink(from_samples(&format!("ids: {what}"), unit, target, label(), &[samples]));
    };
    figure("requests a commit, median", "writes", Target::AtMost(3.0), requests);
    figure("requests a commit, most", "writes", Target::AtMost(3.0), most);
    figure("bytes", "B/txn", Target::None, bytes);
    let size = zubilo.disk_bytes() as f64 / 1e6;
    figure("file", "MB", Target::None, vec![size]);
}
