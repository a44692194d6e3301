//! Ends a run that stands still: a deadlock in the engine must be a failure with a seed, not a test
//! that never ends.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, Weak};
use std::time::Duration;

/// Without a sign of progress for so long a run stands still. What lies between two signs takes
/// milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);
const ROUND: Duration = Duration::from_secs(5);

struct Run {
    /// What to repeat it with.
    name: String,
    beats: AtomicU64,
}

static RUNS: Mutex<Vec<Weak<Run>>> = Mutex::new(Vec::new());

thread_local! {
    static CURRENT: RefCell<Option<Arc<Run>>> = const { RefCell::new(None) };
}

/// The calling thread's run is watched while this lives.
pub struct Watched(());

impl Drop for Watched {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// Watches the run that the calling thread begins.
pub fn watch(name: String) -> Watched {
    static START: Once = Once::new();
    START.call_once(|| drop(std::thread::spawn(look)));
    let run = Arc::new(Run { name, beats: AtomicU64::new(0) });
    let mut runs = RUNS.lock().unwrap_or_else(|e| e.into_inner());
    runs.retain(|run| run.strong_count() > 0);
    runs.push(Arc::downgrade(&run));
    CURRENT.set(Some(run));
    Watched(())
}

/// A sign of progress of the calling thread's run.
pub fn beat() {
    CURRENT.with_borrow(|run| {
        if let Some(run) = run {
            run.beats.fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// Goes round for ever; ends the process if a run has not moved for too long.
fn look() {
    let mut seen: Vec<(Weak<Run>, u64, Duration)> = Vec::new();
    loop {
        std::thread::sleep(ROUND);
        let runs = RUNS.lock().unwrap_or_else(|e| e.into_inner()).clone();
        seen.retain(|(run, ..)| run.strong_count() > 0);
        for run in runs {
            let Some(live) = run.upgrade() else { continue };
            let beats = live.beats.load(Ordering::Relaxed);
            match seen.iter_mut().find(|(known, ..)| known.ptr_eq(&run)) {
                None => seen.push((run, beats, Duration::ZERO)),
                Some((_, before, idle)) if *before == beats => {
                    *idle += ROUND;
                    if *idle >= PATIENCE {
                        eprintln!("STANDS STILL --workload {}", live.name);
                        std::process::abort();
                    }
                }
                Some((_, before, idle)) => (*before, *idle) = (beats, Duration::ZERO),
            }
        }
    }
}
