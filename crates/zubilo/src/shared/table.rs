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
//! # Copied pins
//! A snapshot that is not the newest can be pinned once more by whoever pins it. The new slot lies *above*
//! the old one, and a writer looks at the slots from below: it sees the old pin, or, where that has ended,
//! comes to the new one later, which was set before. The end of the old pin is a release store and the look
//! an acquire load, so the new pin, and a high water raised for it, are seen by then.
//!
//! # Pins that others may end
//! A reader that is not at work may leave its pin to the others: it marks the number `EXPIRABLE`, and takes
//! the mark off again, by an exchange, before it reads on. Whoever ends the pin exchanges the marked number
//! for `EXPIRED`. Of the two exchanges one fails: either the reader finds out before it looks at any page,
//! or the pin is an ordinary one again. The mark is set by a release store, after the last look at a page.
//!
//! # Slots
//! `owner` is 0 (free) or the tag of a process entry; `txn` is `IDLE`, `PARKED` (idle, but kept by
//! someone who will come back to it), `EXPIRED` or the snapshot pinned. A free slot is idle. Only the owner
//! changes a slot that it owns, but for the end of a marked pin. Of a dead owner's slot a cleaner
//! first becomes the owner, by compare-and-swap, and then frees it: so two cleaners, or a cleaner
//! and the next owner, never work on one slot at a time.

use super::layout::{R_OWNER, R_PUBLISHED, R_REPLACED, R_THREAD, R_TIMES_OF, R_TXN, SLOT_WORDS};
use super::{ROOT_WORDS, RootWords};
use crate::sync::{AtomicU64, Ordering, fence, fence_after_rmw};

/// In place of a transaction number: the slot pins nothing.
pub(super) const IDLE: u64 = u64::MAX;
/// As `IDLE`, but not for others of the same process to take.
pub(super) const PARKED: u64 = u64::MAX - 1;
/// Others have ended the pin, which its owner had left to them.
pub(super) const EXPIRED: u64 = u64::MAX - 2;
/// Beside the number of a transaction: others may end the pin.
const EXPIRABLE: u64 = 1 << 62;

/// The snapshot that a slot pins, and whether others may end the pin.
#[inline]
pub(super) fn pin_of(word: u64) -> Option<(u64, bool)> {
    (word < EXPIRED).then_some((word & !EXPIRABLE, word & EXPIRABLE != 0))
}

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
        self.claim_from(0, tag)
    }

    /// The same, not below slot `from`.
    pub(super) fn claim_from(self, from: u32, tag: u64) -> Option<u32> {
        for slot in from..self.count() {
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

    /// Pins `txn`, which slot `pinned` pins from before to after this call, with an idle slot above it
    /// that the caller's process owns. False if it is not idle.
    pub(super) fn begin_beside(self, slot: u32, thread: u32, pinned: u32, txn: u64) -> bool {
        assert!(slot > pinned, "whoever looks for pins would have passed this slot already");
        let word = self.word(slot, R_TXN);
        let idle = word.compare_exchange(IDLE, txn, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if idle {
            self.word(slot, R_THREAD).store(u64::from(thread), Ordering::Relaxed);
        }
        idle
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

    /// Leaves the pin of `txn` to the others, until `take_up`.
    pub(super) fn offer(self, slot: u32, txn: u64) {
        self.word(slot, R_TXN).store(txn | EXPIRABLE, Ordering::Release);
    }

    /// Takes the pin of `txn` back; false if others have ended it.
    pub(super) fn take_up(self, slot: u32, txn: u64) -> bool {
        let word = self.word(slot, R_TXN);
        word.compare_exchange(txn | EXPIRABLE, txn, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Ends the pin of `txn` that its owner has left to the others; false if it is at work, or elsewhere.
    pub(super) fn expire(self, slot: u32, txn: u64) -> bool {
        let word = self.word(slot, R_TXN);
        word.compare_exchange(txn | EXPIRABLE, EXPIRED, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Notes when the snapshot `txn` that a slot pins was published and replaced.
    pub(super) fn note_times(self, slot: u32, txn: u64, times: [u64; 2]) {
        let [published, replaced] = times;
        self.word(slot, R_TIMES_OF).store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        self.word(slot, R_PUBLISHED).store(published, Ordering::Relaxed);
        self.word(slot, R_REPLACED).store(replaced, Ordering::Relaxed);
        self.word(slot, R_TIMES_OF).store(txn, Ordering::Release);
    }

    /// What was noted so of the snapshot `txn`.
    pub(super) fn times(self, slot: u32, txn: u64) -> Option<[u64; 2]> {
        if self.word(slot, R_TIMES_OF).load(Ordering::Acquire) != txn {
            return None;
        }
        let times =
            [R_PUBLISHED, R_REPLACED].map(|word| self.word(slot, word).load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        (self.word(slot, R_TIMES_OF).load(Ordering::Relaxed) == txn).then_some(times)
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
        let mut slot = 0;
        // Asked for again each time: see `Copied pins` above.
        while slot < self.claimed() {
            out.extend(pin_of(self.txn(slot)).map(|(txn, _)| txn));
            slot += 1;
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
