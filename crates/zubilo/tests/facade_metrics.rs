//! The facade `metrics`: what a program's recorder hears of a store.

#![cfg(feature = "metrics")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use zubilo::Options;

/// Sums of counters and numbers of records, by name.
#[derive(Clone, Default)]
struct Sums(Arc<Mutex<HashMap<String, u64>>>);

struct One(Sums, String);

impl One {
    fn add(&self, n: u64) {
        *self.0.0.lock().unwrap().entry(self.1.clone()).or_default() += n;
    }
}

impl CounterFn for One {
    fn increment(&self, n: u64) {
        self.add(n);
    }
    fn absolute(&self, _: u64) {}
}

impl HistogramFn for One {
    fn record(&self, value: f64) {
        assert!(value >= 0.0);
        self.add(1);
    }
}

impl Recorder for Sums {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        assert!(key.labels().any(|label| label.key() == "store"));
        Counter::from_arc(Arc::new(One(self.clone(), key.name().into())))
    }
    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(One(self.clone(), key.name().into())))
    }
}

#[test]
fn a_recorder_hears_of_commits_and_flushes() {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("store")).unwrap();
    let sums = Sums::default();
    metrics::with_local_recorder(&sums, || {
        for value in ["red", "green"] {
            env.update(|txn| txn.table_or_create("t")?.put("key", value)).unwrap();
        }
    });
    let sums = sums.0.lock().unwrap();
    assert_eq!(sums["zubilo_commits_total"], 2);
    assert_eq!(sums["zubilo_commit_seconds"], 12);
    assert!(sums["zubilo_flush_seconds"] >= 2, "{sums:?}");
    assert!(sums["zubilo_bytes_written_total"] > 8192 && sums["zubilo_pages_written_total"] >= 2);
}
