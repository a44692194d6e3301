//! Whose turn it is to write, among the threads of this process. The writer lock goes to whoever asks for
//! it while it is free; a thread that takes it again at once is there before one that the kernel
//! still has to wake, again and again. So a thread that has waited for long says so, and from then on the
//! others of this process let it in first.
//!
//! Invariant: `starved` counts the live values of [`Starved`]. Waiting here is no more than waiting for the
//! lock: whoever is let in first waits for nothing but the lock.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// A wait for the lock that is long: some two hundred durable transactions.
pub(super) const LONG: Duration = Duration::from_millis(50);

#[derive(Default)]
pub(super) struct Turn {
    /// Those who have waited for long; changed under `gate`.
    starved: AtomicU32,
    gate: Mutex<()>,
    served: Condvar,
}

impl Turn {
    /// Whether somebody has waited for long.
    pub(super) fn is_asked_for(&self) -> bool {
        self.starved.load(Ordering::Relaxed) > 0
    }

    /// Waits as long as somebody has waited for longer.
    pub(super) fn give_way(&self) {
        if !self.is_asked_for() {
            return;
        }
        let mut gate = self.gate();
        while self.is_asked_for() {
            gate = self.served.wait(gate).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// The others give way until the value is dropped.
    pub(super) fn ask(&self) -> Starved<'_> {
        let _gate = self.gate();
        self.starved.fetch_add(1, Ordering::Relaxed);
        Starved { turn: self }
    }

    fn gate(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// A thread that has waited for long.
pub(super) struct Starved<'t> {
    turn: &'t Turn,
}

impl Drop for Starved<'_> {
    fn drop(&mut self) {
        let _gate = self.turn.gate();
        self.turn.starved.fetch_sub(1, Ordering::Relaxed);
        self.turn.served.notify_all();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::super::Shared;
    use super::*;

    #[test]
    fn who_takes_the_lock_again_at_once_lets_in_those_who_waited_for_long() {
        const OTHERS: u32 = 3;
        let (shared, had) = (Shared::private(8), AtomicU32::new(0));
        thread::scope(|scope| {
            shared.lock_writer().expect("lock");
            for _ in 0..OTHERS {
                scope.spawn(|| {
                    shared.lock_writer().expect("lock");
                    had.fetch_add(1, Ordering::SeqCst);
                    shared.unlock_writer();
                });
            }
            let asked = || shared.turn.starved.load(Ordering::SeqCst);
            for _ in 0..100 {
                if asked() < OTHERS {
                    thread::sleep(LONG);
                }
            }
            let asked = asked();
            shared.unlock_writer();
            shared.lock_writer().expect("lock");
            let had = had.load(Ordering::SeqCst);
            shared.unlock_writer();
            assert_eq!((asked, had), (OTHERS, OTHERS));
        });
    }

    #[test]
    fn nobody_takes_a_free_lock_past_one_who_waits() {
        let shared = Shared::private(8);
        let starved = shared.turn.ask();
        assert!(shared.try_lock_writer().expect("try").is_none());
        let in_turn = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                shared.lock_writer().expect("lock");
                assert!(in_turn.load(Ordering::SeqCst), "before the one who waited");
                shared.unlock_writer();
            });
            thread::sleep(Duration::from_millis(20));
            in_turn.store(true, Ordering::SeqCst);
            drop(starved);
        });
        assert_eq!(shared.try_lock_writer().expect("try"), Some(false));
        shared.unlock_writer();
    }
}
