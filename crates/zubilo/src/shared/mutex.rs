//! The locks of a region: one word each, zero or who holds it.
//!
//! * The holder is named by its entry in the table of processes and by its thread, so that whoever waits can
//!   find out by the entry's lock whether it is dead. The robust mutexes of the C library would learn it from the
//!   kernel, which compares numbers of threads only: these repeat between pid namespaces, and the end of a
//!   thread that *waits* would be taken for the end of one elsewhere that has its number and holds the lock.
//! * Taking and giving up are one exchange each. Killed before it nothing has happened, killed after it the
//!   lock is that of a dead holder, or free.
//! * Who waits sleeps in the kernel, never for longer than a moment at a time: so no waker has to stay alive.

use std::time::{Duration, Instant};

use crate::platform;
use crate::sync::{AtomicU64, Ordering};

/// Somebody may sleep until the lock is given up.
const AWAITED: u64 = 1 << 31;
/// Bits of a thread's number; the system gives none above 2^22.
const THREAD: u64 = (1 << 30) - 1;
/// Bits of an entry's number plus one, above the lower half.
const ENTRY_BITS: u32 = 17;
/// Bits of its generation, above these.
const GENERATION_BITS: u32 = 15;

/// After this long a waiter asks whether the holder is dead.
const FIRST_LOOK: Duration = Duration::from_millis(2);
/// And again after each of these.
const LOOK: Duration = Duration::from_millis(20);

/// How a lock was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Locked {
    /// It was free.
    Clean,
    /// From a holder that died.
    HolderDied,
}

/// Who holds a lock: a user of the region, and a thread of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    /// Number of the entry.
    pub(super) index: u32,
    /// The lower bits of its generation, see [`Holder::is_generation`].
    pub(super) generation: u32,
    pub(super) thread: u32,
}

impl Holder {
    pub(super) fn new(index: u32, generation: u32, thread: u32) -> Holder {
        let generation = generation & ((1 << GENERATION_BITS) - 1);
        Holder { index, generation, thread: thread & THREAD as u32 }
    }

    /// Whether a generation of the entry may be the holder's: others of 2^15 are not.
    pub(super) fn is_generation(self, generation: u32) -> bool {
        Holder::new(self.index, generation, self.thread) == self
    }

    fn to_word(self) -> u64 {
        let entry = u64::from(self.index) + 1;
        let user = entry | u64::from(self.generation) << ENTRY_BITS;
        user << 32 | u64::from(self.thread)
    }

    /// `None`: words that nobody writes.
    fn from_word(word: u64) -> Option<Holder> {
        let user = word >> 32;
        let index = (user as u32 & ((1 << ENTRY_BITS) - 1)).checked_sub(1)?;
        let generation = (user >> ENTRY_BITS) as u32;
        Some(Holder { index, generation, thread: (word & THREAD) as u32 })
    }
}

/// One of the locks. A handle, made anew for each call.
#[derive(Clone, Copy)]
pub(super) struct Mutex<'a> {
    pub(super) word: &'a AtomicU64,
}

impl Mutex<'_> {
    fn exchange(self, from: u64, to: u64) -> bool {
        self.word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Takes over what `word` says, if its holder is dead.
    fn bury(self, word: u64, me: Holder, is_dead: impl Fn(Holder) -> bool) -> bool {
        // Others may be asleep: they hear of it when this one gives the lock up.
        Holder::from_word(word).is_none_or(is_dead) && self.exchange(word, me.to_word() | AWAITED)
    }

    /// Takes the lock for `me` if it is free, or `is_dead` says so of who holds it.
    pub(super) fn try_lock(self, me: Holder, is_dead: impl Fn(Holder) -> bool) -> Option<Locked> {
        match self.word.load(Ordering::Relaxed) {
            0 => self.exchange(0, me.to_word()).then_some(Locked::Clean),
            word => self.bury(word, me, is_dead).then_some(Locked::HolderDied),
        }
    }

    /// Waits for the lock; `None` when it was not to be had within the time.
    pub(super) fn lock(
        self,
        me: Holder,
        time: Option<Duration>,
        is_dead: impl Fn(Holder) -> bool,
    ) -> Option<Locked> {
        // Whoever has slept cannot know whether others still do.
        let (mut slept, mut pause, mut started) = (0, FIRST_LOOK, None);
        loop {
            let word = self.word.load(Ordering::Relaxed);
            if word == 0 {
                if self.exchange(0, me.to_word() | slept) {
                    return Some(Locked::Clean);
                }
                continue;
            }
            if word & AWAITED == 0 && !self.exchange(word, word | AWAITED) {
                continue;
            }
            let elapsed = started.get_or_insert_with(Instant::now).elapsed();
            let left = match time {
                Some(time) if elapsed >= time => return None,
                Some(time) => time - elapsed,
                None => pause,
            };
            let woken = platform::wait_while(self.word, (word | AWAITED) as u32, pause.min(left));
            slept = AWAITED;
            if !woken {
                pause = LOOK;
                let word = self.word.load(Ordering::Relaxed);
                if word != 0 && self.bury(word, me, &is_dead) {
                    return Some(Locked::HolderDied);
                }
            }
        }
    }

    /// Gives the lock up, which `me` holds.
    pub(super) fn unlock(self, me: Holder) {
        let held = me.to_word();
        if self.exchange(held, 0) {
            return;
        }
        let awaited = self.exchange(held | AWAITED, 0);
        debug_assert!(awaited, "given up by one who does not hold it");
        if awaited {
            platform::wake_one(self.word);
        }
    }
}

/// A number that no other thread of this process has or had.
pub(super) fn thread_serial() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    thread_local! {
        static SERIAL: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    SERIAL.with(|serial| *serial)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_holder_survives_the_round_trip() {
        for index in [0, 7, (1 << 16) - 1] {
            for generation in [1, 40_000, u32::MAX] {
                for thread in [1, 1 << 22] {
                    let holder = Holder::new(index, generation, thread);
                    for word in [holder.to_word(), holder.to_word() | AWAITED] {
                        assert_eq!(Holder::from_word(word), Some(holder));
                    }
                    assert!(holder.is_generation(generation));
                    assert!(!holder.is_generation(generation.wrapping_add(1)));
                    assert_eq!((holder.index, holder.thread), (index, thread));
                }
            }
        }
        assert_eq!(Holder::from_word(0), None);
    }

    #[test]
    fn one_at_a_time_and_nobody_sleeps_for_ever() {
        let (word, count) = (AtomicU64::new(0), AtomicU64::new(0));
        let mutex = Mutex { word: &word };
        std::thread::scope(|scope| {
            for index in 0..6 {
                let count = &count;
                scope.spawn(move || {
                    let me = Holder::new(index, 1, index + 1);
                    for _ in 0..5_000 {
                        assert_eq!(mutex.lock(me, None, |_| false), Some(Locked::Clean));
                        let before = count.load(Ordering::Relaxed);
                        std::hint::spin_loop();
                        count.store(before + 1, Ordering::Relaxed);
                        mutex.unlock(me);
                    }
                });
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 30_000);
        assert_eq!(word.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_dead_are_followed_by_one() {
        let word = AtomicU64::new(0);
        let mutex = Mutex { word: &word };
        let [dead, one, two] = [1, 2, 3].map(|thread| Holder::new(4, 5, thread));
        assert_eq!(mutex.try_lock(dead, |_| false), Some(Locked::Clean));
        assert_eq!(mutex.try_lock(one, |_| false), None);
        let moment = Some(Duration::from_millis(5));
        assert_eq!(mutex.lock(one, moment, |_| false), None);
        assert_eq!(mutex.lock(one, moment, |who| who == dead), Some(Locked::HolderDied));
        assert_eq!(mutex.try_lock(two, |who| who == dead), None);
        mutex.unlock(one);
        assert_eq!(mutex.try_lock(two, |_| true), Some(Locked::Clean));
    }
}
