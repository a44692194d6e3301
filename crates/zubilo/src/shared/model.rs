//! The core under the model checker: every interleaving, and every value that the memory model
//! lets a load return, within the bounds of the models.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p zubilo --lib loom_`

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::layout::{R_TXN, SLOT_WORDS};
use super::mutex::{Holder, Mutex};
use super::table::{IDLE, Publication, Slots};
use super::{ROOT_WORDS, RootWords};
use crate::sync::{AtomicU64, Ordering};

/// Words of a root that the models copy: the number and one more, to see torn copies.
const ROOT: usize = 2;

struct Model {
    newest: AtomicU64,
    entries: [[AtomicU64; ROOT]; 2],
    high_water: AtomicU64,
    slots: Vec<AtomicU64>,
    /// What snapshot 1 alone refers to. The checker reports a write that races with a read.
    page: UnsafeCell<u64>,
}

// SAFETY: the only part that is not Sync is the page, whose accesses the checker examines.
unsafe impl Sync for Model {}

impl Model {
    /// Transaction 1 is published and its page written.
    fn new(slots: usize) -> Arc<Model> {
        let model = Model {
            newest: AtomicU64::new(0),
            entries: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
            high_water: AtomicU64::new(0),
            slots: (0..slots * SLOT_WORDS).map(|_| AtomicU64::new(0)).collect(),
            page: UnsafeCell::new(1),
        };
        for slot in model.slots.chunks(SLOT_WORDS) {
            slot[R_TXN].store(IDLE, Ordering::SeqCst);
        }
        model.roots().publish(&root(1));
        Arc::new(model)
    }

    fn roots(&self) -> Publication<'_> {
        Publication::new(&self.newest, [&self.entries[0], &self.entries[1]])
    }

    fn slots(&self) -> Slots<'_> {
        Slots::new(&self.slots, &self.high_water)
    }

    /// Reads the root that was just pinned, and the page if that is a snapshot that needs it.
    fn look(&self, seen: &RootWords) {
        assert_eq!(seen, &root(seen[0]), "a torn root");
        if seen[0] == 1 {
            // SAFETY: only read while pinned; the checker reports if that is not enough.
            self.page.with(|page| assert_eq!(unsafe { *page }, 1, "a page already reused"));
        }
    }

    fn read(&self, slot: u32) {
        let mut seen = [0; ROOT_WORDS];
        assert!(self.slots().begin(slot, 1, self.roots(), &mut seen));
        self.look(&seen);
        thread::yield_now();
        self.look(&seen);
        self.slots().end(slot);
    }

    /// Publishes `txn`, and reuses the page if no pin on snapshot 1 is to be seen.
    fn write(&self, txn: u64) {
        self.roots().publish(&root(txn));
        let mut pins = Vec::new();
        self.slots().pins(&mut pins);
        if !pins.contains(&1) {
            // SAFETY: no reader is on snapshot 1; the checker reports if one is.
            self.page.with_mut(|page| unsafe { *page = txn });
        }
    }
}

fn root(txn: u64) -> RootWords {
    let mut words = [0; ROOT_WORDS];
    words[0] = txn;
    words[1] = txn * 10;
    words
}

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn loom_a_reader_never_sees_a_reused_page() {
    explore(|| {
        let model = Model::new(1);
        let slot = model.slots().claim(7).expect("free");
        let reader = {
            let model = model.clone();
            thread::spawn(move || model.read(slot))
        };
        model.write(2);
        model.write(3);
        reader.join().expect("reader");
    });
}

#[test]
fn loom_a_slot_claimed_during_the_commit_is_seen_too() {
    explore(|| {
        let model = Model::new(2);
        let reader = {
            let model = model.clone();
            thread::spawn(move || {
                let slot = model.slots().claim(7).expect("free");
                model.read(slot);
                // A second read in the same slot.
                model.read(slot);
            })
        };
        model.write(2);
        reader.join().expect("reader");
    });
}

#[test]
fn loom_renewing_gives_up_the_old_snapshot_and_pins_the_new() {
    explore(|| {
        let model = Model::new(1);
        let slot = model.slots().claim(7).expect("free");
        let reader = {
            let model = model.clone();
            thread::spawn(move || {
                let mut seen = [0; ROOT_WORDS];
                assert!(model.slots().begin(slot, 1, model.roots(), &mut seen));
                model.look(&seen);
                model.slots().renew(slot, seen[0], model.roots(), &mut seen);
                model.look(&seen);
                model.slots().end(slot);
            })
        };
        model.write(2);
        reader.join().expect("reader");
    });
}

#[test]
fn loom_a_parked_slot_pins_again() {
    explore(|| {
        let model = Model::new(1);
        let slot = model.slots().claim(7).expect("free");
        let reader = {
            let model = model.clone();
            thread::spawn(move || {
                let mut seen = [0; ROOT_WORDS];
                assert!(model.slots().begin(slot, 1, model.roots(), &mut seen));
                model.slots().park(slot);
                model.slots().renew(slot, seen[0], model.roots(), &mut seen);
                model.look(&seen);
                model.slots().end(slot);
            })
        };
        model.write(2);
        model.write(3);
        reader.join().expect("reader");
    });
}

#[test]
fn loom_a_copied_pin_is_seen_though_the_first_has_ended() {
    explore(|| {
        let model = Model::new(2);
        let slot = model.slots().claim(7).expect("free");
        let reader = {
            let model = model.clone();
            thread::spawn(move || {
                let mut seen = [0; ROOT_WORDS];
                assert!(model.slots().begin(slot, 1, model.roots(), &mut seen));
                let copy = model.slots().claim_from(slot + 1, 7).expect("free");
                assert!(model.slots().begin_beside(copy, 1, slot, seen[0]));
                model.slots().end(slot);
                model.look(&seen);
                model.slots().end(copy);
            })
        };
        model.write(2);
        model.write(3);
        reader.join().expect("reader");
    });
}

/// A reader leaves its pin to others and comes back; the writer ends it if it is left to it. Either the reader
/// finds out, or its page is as it was.
#[test]
fn loom_a_pin_left_to_others_is_ended_or_whole() {
    explore(|| {
        let model = Model::new(1);
        let slot = model.slots().claim(7).expect("free");
        let reader = {
            let model = model.clone();
            thread::spawn(move || {
                let mut seen = [0; ROOT_WORDS];
                assert!(model.slots().begin(slot, 1, model.roots(), &mut seen));
                model.look(&seen);
                model.slots().offer(slot, seen[0]);
                if model.slots().take_up(slot, seen[0]) {
                    model.look(&seen);
                }
                model.slots().end(slot);
            })
        };
        model.roots().publish(&root(2));
        model.slots().expire(slot, 1);
        let mut pins = Vec::new();
        model.slots().pins(&mut pins);
        if !pins.contains(&1) {
            // SAFETY: no reader is on snapshot 1; the checker reports if one is.
            model.page.with_mut(|page| unsafe { *page = 2 });
        }
        reader.join().expect("reader");
    });
}

#[test]
fn loom_two_threads_never_get_one_slot() {
    explore(|| {
        let model = Model::new(2);
        let claim = |model: Arc<Model>| thread::spawn(move || model.slots().claim(7));
        let (one, other) = (claim(model.clone()), claim(model.clone()));
        let one = one.join().expect("thread").expect("two are free");
        let other = other.join().expect("thread").expect("two are free");
        assert_ne!(one, other);
        assert_eq!(model.slots().claimed(), 2);
        assert_eq!(model.slots().claim(7), None);
    });
}

#[test]
fn loom_one_idle_slot_serves_one_thread_at_a_time() {
    explore(|| {
        let model = Model::new(1);
        let slot = model.slots().claim(7).expect("free");
        let begin = |model: Arc<Model>| {
            thread::spawn(move || {
                let mut seen = [0; ROOT_WORDS];
                model.slots().begin(slot, 1, model.roots(), &mut seen)
            })
        };
        let (one, other) = (begin(model.clone()), begin(model.clone()));
        assert!(one.join().expect("thread") ^ other.join().expect("thread"));
    });
}

#[test]
fn loom_cleaners_never_free_the_slot_of_the_next_owner() {
    explore(|| {
        let model = Model::new(1);
        let slot = model.slots().claim(7).expect("free");
        let mut seen = [0; ROOT_WORDS];
        assert!(model.slots().begin(slot, 1, model.roots(), &mut seen));
        // Owner 7 is dead. Two cleaners, of whom one goes on to use the slot.
        let other = {
            let model = model.clone();
            thread::spawn(move || model.slots().bury(slot, 7, 9))
        };
        let buried = model.slots().bury(slot, 7, 8);
        if let Some(slot) = model.slots().claim(8) {
            assert!(model.slots().begin(slot, 1, model.roots(), &mut seen));
            let by_other = other.join().expect("thread");
            assert!(buried ^ by_other);
            assert_eq!(model.slots().txn(slot), 1, "the pin of a living reader is gone");
        } else {
            assert!(other.join().expect("thread"));
        }
    });
}

#[test]
fn loom_a_copied_root_is_whole() {
    explore(|| {
        let model = Model::new(1);
        let reader = {
            let model = model.clone();
            thread::spawn(move || {
                let seen = model.roots().newest_root();
                assert_eq!(seen, root(seen[0]), "a torn root");
            })
        };
        // No fence between these but those of publishing itself.
        model.roots().publish(&root(2));
        model.roots().publish(&root(3));
        reader.join().expect("reader");
    });
}

/// What a lock protects.
struct Locked {
    word: AtomicU64,
    value: UnsafeCell<u64>,
}

// SAFETY: as for `Model`.
unsafe impl Sync for Locked {}

#[test]
fn loom_of_several_that_follow_a_dead_holder_one_has_the_lock() {
    explore(|| {
        let [dead, one, other] = [1, 2, 3].map(|thread| Holder::new(0, 1, thread));
        let is_dead = move |holder: Holder| holder == dead;
        let locked = Arc::new(Locked { word: AtomicU64::new(0), value: UnsafeCell::new(0) });
        let mutex = Mutex { word: &locked.word };
        mutex.try_lock(dead, |_| false).expect("free");
        let add = move |locked: &Locked, me: Holder, tries: bool| {
            let mutex = Mutex { word: &locked.word };
            let had = match tries {
                true => mutex.try_lock(me, is_dead).is_some(),
                false => mutex.lock(me, None, is_dead).is_some(),
            };
            if had {
                // SAFETY: under the lock; the checker reports if that is not enough.
                locked.value.with_mut(|value| unsafe { *value += 1 });
                mutex.unlock(me);
            }
            u64::from(had)
        };
        let thread = {
            let locked = locked.clone();
            thread::spawn(move || add(&locked, other, true))
        };
        let had = add(&locked, one, false) + thread.join().expect("thread");
        // SAFETY: the only thread that is left.
        locked.value.with(|value| assert_eq!(unsafe { *value }, had));
    });
}
