//! The queue of group commits under the model checker: each closure ends once and with the outcome of
//! the commit it was in, nobody waits for ever, and no job is touched after its owner has gone on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc as StdArc;
use std::sync::atomic::AtomicBool;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::{GroupQueue, Job, Ticket, WriteTxn, wait_or_lead};
use crate::error::{Error, Result};

/// A job that learns its outcome. The checker sees each access to it.
struct Outcome(UnsafeCell<Option<bool>>);

impl Job for Outcome {
    fn run(&mut self, _txn: &mut WriteTxn) {}

    fn end(&mut self, commit: Result<(), StdArc<Error>>) {
        // SAFETY: the leader alone has the job; the checker reports if that is not so.
        self.0.with_mut(|ended| unsafe {
            assert!((*ended).is_none(), "a job ended twice");
            *ended = Some(commit.is_ok());
        });
    }
}

struct Store {
    queue: GroupQueue,
    leads: AtomicUsize,
    committed: AtomicUsize,
}

/// What the first leader meets; those after it commit.
#[derive(Clone, Copy, PartialEq)]
enum First {
    Commits,
    Fails,
    Panics,
}

/// A thread's update: its outcome, or none if the panic of the leader it was came out of it.
fn update(store: &Store, first: First) -> Option<bool> {
    let mut job = Outcome(UnsafeCell::new(None));
    let pointer: *mut (dyn Job + 'static) = &mut job;
    let ended = AtomicBool::new(false);
    let ticket = Ticket { job: pointer, ended: &raw const ended };
    let led = catch_unwind(AssertUnwindSafe(|| {
        wait_or_lead(&store.queue, ticket, |batch| {
            store.queue.take(batch);
            // Outside of the queue's lock, as when closures run.
            for ticket in &*batch {
                let job = ticket.job.cast::<Outcome>();
                // SAFETY: every job of this model is of this type; the checker sees the access.
                unsafe { &*job }.0.with_mut(|ended| assert!(unsafe { (*ended).is_none() }));
            }
            if store.leads.fetch_add(1, Ordering::SeqCst) == 0 {
                match first {
                    First::Commits => {}
                    First::Fails => return Err(StdArc::new(Error::TxnBroken)),
                    First::Panics => std::panic::resume_unwind(Box::new("the commit panicked")),
                }
            }
            store.committed.fetch_add(batch.len(), Ordering::SeqCst);
            Ok(())
        });
    }));
    // SAFETY: the job is this thread's again; the checker reports if it is not.
    let outcome = job.0.with(|ended| unsafe { *ended });
    if led.is_ok() { Some(outcome.expect("the job has ended")) } else { None }
}

fn explore(threads: usize, first: First) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let store = Arc::new(Store {
            queue: GroupQueue::default(),
            leads: AtomicUsize::new(0),
            committed: AtomicUsize::new(0),
        });
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let store = store.clone();
                thread::spawn(move || update(&store, first))
            })
            .collect();
        let mut outcomes = vec![update(&store, first)];
        outcomes.extend(others.into_iter().map(|thread| thread.join().expect("thread")));
        let fine = outcomes.iter().filter(|o| **o == Some(true)).count();
        assert_eq!(fine, store.committed.load(Ordering::SeqCst), "reported otherwise than done");
        let panics = outcomes.iter().filter(|o| o.is_none()).count();
        assert_eq!(panics, usize::from(first == First::Panics), "one leader panics");
        assert!(store.queue.lock().waiting.is_empty(), "an address is left in the queue");
        assert!(!store.queue.lock().leading);
    });
}

#[test]
fn loom_every_closure_of_a_group_gets_its_result_once() {
    explore(2, First::Commits);
    explore(3, First::Commits);
}

#[test]
fn loom_a_failed_group_commit_is_reported_to_its_own_only() {
    explore(2, First::Fails);
    explore(3, First::Fails);
}

#[test]
fn loom_after_a_leader_has_panicked_another_leads() {
    explore(2, First::Panics);
    explore(3, First::Panics);
}
