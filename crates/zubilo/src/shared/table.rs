//! The lock-free core: publishing roots, and the slots by which readers pin snapshots. It works
//! on words that others own, so that the model checker runs exactly this code.
//!
//! # Publication
//! Two entries hold the roots of the two newest transactions; `newest` names the newer, whose
//! entry is `newest % 2`. The writer fills the *other* entry and then moves `newest`. So the
//! entry of transaction n is left alone until n + 1 is published, and a reader that has copied
//! an entry and then still finds `newest` unchanged has copied a whole root.
//!
//! # Pins
//! A reader writes n into its slot, *then* looks whether `newest` is still n. The writer moves
//! `newest`, *then* looks at the slots. Of two such pairs at least one sees the other's write, as
//! both are separated by a full fence (the one in `settle`, the one in `pins`): either the writer sees the pin, or the reader sees that n
//! is no longer newest and tries again with what is. Pages that only snapshot n needs are free
//! for the writer after it published n + 1 and found no pin on n: no validated reader can be
//! there, and none can come.
//!
//! # Slots
//! `owner` is 0 (free) or the tag of a process entry; `txn` is `IDLE`, `PARKED` (idle, but kept by
//! someone who will come back to it) or the snapshot pinned. A free slot is idle. Only the owner changes a slot that it owns. Of a dead owner's slot a cleaner
//! first becomes the owner, by compare-and-swap, and then frees it: so two cleaners, or a cleaner
//! and the next owner, never work on one slot at a time.

use super::layout::{R_OWNER, R_THREAD, R_TXN, SLOT_WORDS};
use super::{ROOT_WORDS, RootWords};
use crate::sync::{AtomicU64, Ordering, fence, fence_after_rmw};

/// In place of a transaction number: the slot pins nothing.
pub(super) const IDLE: u64 = u64::MAX;
/// As `IDLE`, but not for others of the same process to take.
pub(super) const PARKED: u64 = u64::MAX - 1;

/// The newest roots.
#[derive(Clone, Copy)]
pub(super) struct Publication<'a> {
    newest: &'a AtomicU64,
    entries: [&'a [AtomicU64]; 2],
}

impl<'a> Publication<'a> {
    #[inline]
    pub(super) fn new(newest: &'a AtomicU64, entries: [&'a [AtomicU64]; 2]) -> Self {
        Publication { newest, entries }
    }

    #[inline]
    pub(super) fn newest(self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    #[inline]
    fn entry(self, txn: u64) -> &'a [AtomicU64] {
        self.entries[(txn & 1) as usize]
    }

    /// Publishes `root`, whose first word is its transaction number. One caller at a time.
    pub(super) fn publish(self, root: &RootWords) {
        // Orders the last change of `newest` before the writes to the entry that it retired:
        // whoever reads one of these sees that change when it then looks at `newest`.
        fence(Ordering::Release);
        for (word, &value) in self.entry(root[0]).iter().zip(root) {
            word.store(value, Ordering::Relaxed);
        }
        self.newest.store(root[0], Ordering::Release);
    }

    /// Copies the entry of `txn`; true if it was the newest from before to after the copy.
    #[inline]
    fn copy(self, txn: u64, root: &mut RootWords) -> Result<(), u64> {
        for (value, word) in root.iter_mut().zip(self.entry(txn)) {
            *value = word.load(Ordering::Relaxed);
        }
        fence(Ordering::Acquire);
        match self.newest() {
            now if now == txn => Ok(()),
            now => Err(now),
        }
    }

    /// The newest root, without pinning it.
    pub(super) fn newest_root(self) -> RootWords {
        let mut root = [0; ROOT_WORDS];
        let mut txn = self.newest();
        while let Err(now) = self.copy(txn, &mut root) {
            txn = now;
        }
        root
    }
}

/// The reader slots.
#[derive(Clone, Copy)]
pub(super) struct Slots<'a> {
    words: &'a [AtomicU64],
    /// One above the highest slot ever claimed; only grows.
    high_water: &'a AtomicU64,
}

impl<'a> Slots<'a> {
    #[inline]
    pub(super) fn new(words: &'a [AtomicU64], high_water: &'a AtomicU64) -> Self {
        Slots { words, high_water }
    }

    #[inline]
    fn word(self, slot: u32, word: usize) -> &'a AtomicU64 {
        &self.words[slot as usize * SLOT_WORDS + word]
    }

    pub(super) fn count(self) -> u32 {
        (self.words.len() / SLOT_WORDS) as u32
    }

    /// Slots that may be in use: all below this.
    pub(super) fn claimed(self) -> u32 {
        let high_water = self.high_water.load(Ordering::Acquire);
        u32::try_from(high_water).unwrap_or(u32::MAX).min(self.count())
    }

    pub(super) fn owner(self, slot: u32) -> u64 {
        self.word(slot, R_OWNER).load(Ordering::Acquire)
    }

    pub(super) fn txn(self, slot: u32) -> u64 {
        self.word(slot, R_TXN).load(Ordering::Acquire)
    }

    pub(super) fn thread(self, slot: u32) -> u64 {
        self.word(slot, R_THREAD).load(Ordering::Relaxed)
    }

    /// Makes a free slot the property of `tag`; `None` if there is none.
    pub(super) fn claim(self, tag: u64) -> Option<u32> {
        for slot in 0..self.count() {
            let owner = self.word(slot, R_OWNER);
            // The look first: a failed exchange would take the line from its owner.
            if owner.load(Ordering::Relaxed) == 0
                && owner.compare_exchange(0, tag, Ordering::SeqCst, Ordering::Relaxed).is_ok()
            {
                // Before the slot pins anything, so that no one who looks for pins stops short.
                self.high_water.fetch_max(u64::from(slot) + 1, Ordering::SeqCst);
                return Some(slot);
            }
        }
        None
    }

    /// Pins the newest snapshot with an idle slot that the caller's process owns, and copies its
    /// root. False if the slot is not idle.
    #[inline]
    pub(super) fn begin(
        self,
        slot: u32,
        thread: u32,
        roots: Publication<'_>,
        root: &mut RootWords,
    ) -> bool {
        let txn = roots.newest();
        let claimed =
            self.word(slot, R_TXN).compare_exchange(IDLE, txn, Ordering::SeqCst, Ordering::Relaxed);
        if claimed.is_err() {
            return false;
        }
        self.word(slot, R_THREAD).store(u64::from(thread), Ordering::Relaxed);
        self.settle(slot, txn, roots, root);
        true
    }

    /// Pins the newest snapshot with a slot in use, be it parked. Copies its root unless it is that
    /// of `known`; true if it did.
    #[inline]
    pub(super) fn renew(
        self,
        slot: u32,
        known: u64,
        roots: Publication<'_>,
        root: &mut RootWords,
    ) -> bool {
        let txn = roots.newest();
        self.word(slot, R_TXN).swap(txn, Ordering::SeqCst);
        if txn == known {
            fence_after_rmw();
            if roots.newest() == known {
                return false;
            }
        }
        self.settle(slot, txn, roots, root);
        true
    }

    /// The slot was just set to `txn` by a read-modify-write: repeats until that is the newest.
    /// Each round means a commit by someone else, so some thread always makes progress.
    #[inline]
    fn settle(self, slot: u32, mut txn: u64, roots: Publication<'_>, root: &mut RootWords) {
        loop {
            fence_after_rmw();
            match roots.copy(txn, root) {
                Ok(()) => return,
                Err(now) => txn = now,
            }
            self.word(slot, R_TXN).swap(txn, Ordering::SeqCst);
        }
    }

    /// Ends the pin but keeps the slot. Release: as in `end`.
    #[inline]
    pub(super) fn park(self, slot: u32) {
        self.word(slot, R_TXN).store(PARKED, Ordering::Release);
    }

    /// Ends the pin. Release: the reader's last look at a page comes before its reuse.
    #[inline]
    pub(super) fn end(self, slot: u32) {
        self.word(slot, R_TXN).store(IDLE, Ordering::Release);
    }

    /// Appends all snapshots pinned now.
    pub(super) fn pins(self, out: &mut Vec<u64>) {
        fence(Ordering::SeqCst);
        for slot in 0..self.claimed() {
            let txn = self.txn(slot);
            if txn < PARKED {
                out.push(txn);
            }
        }
    }

    /// Frees a slot of the caller's own.
    pub(super) fn release(self, slot: u32) {
        self.end(slot);
        self.word(slot, R_OWNER).store(0, Ordering::Release);
    }

    /// Frees the slot of a dead owner, in the name of `tag`, which is alive: should its process
    /// die halfway, the slot is once more one of a dead owner. False if another was faster.
    pub(super) fn bury(self, slot: u32, dead: u64, tag: u64) -> bool {
        let owner = self.word(slot, R_OWNER);
        if owner.compare_exchange(dead, tag, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            return false;
        }
        self.release(slot);
        true
    }
}
