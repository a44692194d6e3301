//! Bounds of a measurement and the latencies of its operations.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::spec::{Bound, Part};

/// Longest latency that has a bucket of its own.
const LATENCY_MAX_NS: u64 = 600_000_000_000;

/// Says how long to go on.
pub(super) struct Clock {
    started: Instant,
    ops: u64,
    limit: Duration,
}

impl Clock {
    pub(super) fn start(bound: Bound) -> Clock {
        let limit = Duration::try_from_secs_f64(bound.seconds).unwrap_or(Duration::MAX);
        Clock { started: Instant::now(), ops: bound.ops, limit }
    }

    #[inline]
    pub(super) fn goes_on(&self, done: u64) -> bool {
        done < self.ops && self.started.elapsed() < self.limit
    }

    pub(super) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

/// Latencies with two digits.
pub(super) struct Latency(Histogram<u64>);

impl Latency {
    pub(super) fn new() -> Latency {
        Latency(Histogram::new_with_bounds(1, LATENCY_MAX_NS, 2).expect("valid bounds"))
    }

    #[inline]
    pub(super) fn add(&mut self, since: Instant) {
        self.add_ns(since.elapsed().as_nanos() as u64);
    }

    #[inline]
    pub(super) fn add_ns(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    pub(super) fn merge(&mut self, other: &Latency) {
        self.0.add(&other.0).expect("equal bounds");
    }

    /// With what else is known about the operations.
    pub(super) fn into_part(self, ops: u64, seconds: f64) -> Part {
        let buckets = self.0.iter_recorded();
        let latency = buckets.map(|b| (b.value_iterated_to(), b.count_at_value())).collect();
        Part { ops, seconds, latency }
    }
}
