//! The flusher under the model checker: no weak commit stays without a time by which it is flushed,
//! a full measure wakes the thread, and an end is never slept through.

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;

use super::{Flusher, Turn};
use crate::sync::{AtomicU64, Ordering};

/// The checker's clock stands still: nothing becomes due by time.
const PERIOD: Duration = Duration::from_secs(100_000);

struct Store {
    flusher: Flusher,
    published: AtomicU64,
    steady: AtomicU64,
}

impl Store {
    fn new(limit: u64) -> Arc<Store> {
        let flusher = Flusher::new();
        flusher.set_bounds((limit, PERIOD));
        let (published, steady) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Store { flusher, published, steady })
    }

    /// As commits do: published first, then handed over.
    fn commit(&self, txn: u64, bytes: u64) {
        self.published.store(txn, Ordering::SeqCst);
        self.flusher.committed(bytes);
    }

    /// As a checkpoint does: all that was published before it began is steady after it.
    fn flush_until_stopped(&self) {
        while let Turn::Flush | Turn::Look = self.flusher.wait() {
            let target = self.published.load(Ordering::SeqCst);
            self.steady.store(target, Ordering::SeqCst);
        }
    }
}

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn flusher_of(store: &Arc<Store>) -> thread::JoinHandle<()> {
    let store = store.clone();
    thread::spawn(move || store.flush_until_stopped())
}

#[test]
fn loom_no_weak_commit_is_forgotten() {
    explore(|| {
        // Every second commit fills the measure.
        let store = Store::new(10);
        let flusher = flusher_of(&store);
        for txn in 1..=4 {
            store.commit(txn, 6);
        }
        store.flusher.stop();
        flusher.join().expect("flusher");
        let state = store.flusher.lock();
        let done = store.steady.load(Ordering::SeqCst) == 4;
        assert!(done || state.full || state.oldest.is_some(), "a commit that nothing will flush");
    });
}

#[test]
fn loom_a_full_measure_wakes_the_flusher() {
    explore(|| {
        let store = Store::new(1);
        let flusher = flusher_of(&store);
        store.commit(1, 6);
        // Without a wake-up this waits for ever, which the checker reports.
        while store.steady.load(Ordering::SeqCst) < 1 {
            thread::yield_now();
        }
        store.flusher.stop();
        flusher.join().expect("flusher");
    });
}

#[test]
fn loom_closing_ends_the_flusher_whatever_it_does() {
    explore(|| {
        let store = Store::new(1);
        let flusher = flusher_of(&store);
        let other = {
            let store = store.clone();
            thread::spawn(move || store.commit(1, 6))
        };
        store.flusher.stop();
        // A stop that is slept through is a deadlock, which the checker reports.
        flusher.join().expect("flusher");
        other.join().expect("writer");
    });
}
