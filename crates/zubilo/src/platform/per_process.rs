//! What a process has once, and a forked child begins anew.
//!
//! A fork copies the memory as it is at that moment, with locks that other threads hold and with values that
//! they are changing; the child has none of these threads. So it never touches what its parent had here, nor
//! does it wait for anybody to find its own.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::{fork_generation, watch_forks};

/// A value of each process, made when it is first asked for.
pub(crate) struct PerProcess<T: Send + Sync + 'static>(AtomicPtr<Made<T>>);

struct Made<T> {
    /// The fork generation of the process that made it.
    generation: u32,
    value: T,
    /// What the parent of this process had made: never read, but reachable, so that who looks for lost
    /// memory in a child finds none.
    _parents: AtomicPtr<Made<T>>,
}

impl<T: Default + Send + Sync> PerProcess<T> {
    pub(crate) const fn new() -> PerProcess<T> {
        PerProcess(AtomicPtr::new(ptr::null_mut()))
    }

    /// The value of this process. Threads that ask at the same moment may make one each, of which one stays.
    pub(crate) fn get(&self) -> &'static T {
        // Before anything is made: no child may take it for its own.
        watch_forks();
        let generation = fork_generation();
        let mut found = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: what the pointer names was made below, whole before it was stored, and is never freed.
            let made: Option<&'static Made<T>> = unsafe { found.as_ref() };
            if let Some(made) = made
                && made.generation == generation
            {
                return &made.value;
            }
            let _parents = AtomicPtr::new(found);
            let new = Box::leak(Box::new(Made { generation, value: T::default(), _parents }));
            let (own, order) = (ptr::from_mut(new), Ordering::AcqRel);
            match self.0.compare_exchange(found, own, order, Ordering::Acquire) {
                // SAFETY: as above; it was leaked, and from now on it is shared.
                Ok(_) => return unsafe { &(*own).value },
                Err(other) => {
                    // SAFETY: it came from a box, and nobody else has seen it.
                    drop(unsafe { Box::from_raw(own) });
                    found = other;
                }
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::platform::testing::{apart, ended_well, fork};

    #[test]
    fn all_threads_find_one_value() {
        static VALUE: PerProcess<Mutex<u32>> = PerProcess::new();
        let add = || *VALUE.get().lock().expect("lock") += 1;
        std::thread::scope(|scope| (0..8).for_each(|_| _ = scope.spawn(add)));
        assert_eq!(*VALUE.get().lock().expect("lock"), 8);
    }

    #[test]
    fn a_child_gets_a_value_of_its_own_though_the_parents_is_locked() {
        static VALUE: PerProcess<Mutex<u32>> = PerProcess::new();
        let _apart = apart();
        let mut held = VALUE.get().lock().expect("lock");
        *held = 7;
        let fresh = || assert_eq!(VALUE.get().try_lock().map(|value| *value).ok(), Some(0));
        assert!(ended_well(fork(fresh)));
        assert_eq!(*held, 7);
    }
}
