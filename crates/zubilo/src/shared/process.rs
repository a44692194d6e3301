//! The table of processes: who uses the region, and who of them is dead.
//!
//! A user holds the lock on the first byte of its entry for as long as it lives. The system drops
//! the lock when the last descriptor of that open is gone, so the question "is it dead?" needs no
//! process id and works across pid namespaces and after ids were recycled. Only where a forked
//! child still holds a copy of its dead parent's descriptor does the lock say too little; then the owner
//! is dead if both sides share a pid namespace in which its number belongs to nobody. A doubtful owner
//! counts as alive: that costs space, the other mistake would cost data.
//!
//! Slots name their owner by a *tag*: entry and generation. Whoever takes an entry over raises its
//! generation, and the tags of its former user become those of a dead owner at that moment.

use std::io;

use super::layout::{P_GENERATION, P_NAMESPACE, P_NONCE, P_PID, PROCESS_WORDS, Sizes};
use super::mutex::Holder;
use crate::platform::{self, LockFile, Process};
use crate::sync::{AtomicU64, Ordering};

/// The tag of an entry: generation above, entry number plus one below, so that no tag is zero.
pub(super) fn tag(index: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | (u64::from(index) + 1)
}

/// The generation in a tag.
pub(super) fn generation_of(tag: u64) -> u32 {
    (tag >> 32) as u32
}

/// The number of the entry behind a tag.
pub(super) fn index_of(tag: u64) -> Option<u32> {
    (tag as u32).checked_sub(1)
}

/// The table, over the region's words.
#[derive(Clone, Copy)]
pub(super) struct Processes<'a> {
    pub(super) words: &'a [AtomicU64],
    pub(super) sizes: Sizes,
    /// `None`: a region of this process alone.
    pub(super) file: Option<&'a LockFile>,
}

impl<'a> Processes<'a> {
    fn entry(self, index: u32) -> &'a [AtomicU64] {
        let at = self.sizes.process(index);
        &self.words[at..at + PROCESS_WORDS]
    }

    /// Takes an entry for `this` process and returns its tag; `None` if all are in use. The lock
    /// on the entry makes this the only one who writes it.
    pub(super) fn register(self, this: &Process) -> io::Result<Option<u64>> {
        for index in 0..self.sizes.processes {
            if let Some(file) = self.file
                && !file.try_lock(self.sizes.process_byte(index), true)?
            {
                continue;
            }
            let entry = self.entry(index);
            let generation = (entry[P_GENERATION].load(Ordering::Relaxed) as u32).wrapping_add(1);
            // From here on the former user's slots belong to a dead owner; only then may the
            // other fields speak of a living process.
            entry[P_GENERATION].store(u64::from(generation), Ordering::SeqCst);
            entry[P_NONCE].store(this.nonce, Ordering::Relaxed);
            entry[P_NAMESPACE].store(this.namespace, Ordering::Relaxed);
            entry[P_PID].store(u64::from(this.pid), Ordering::Release);
            return Ok(Some(tag(index, generation)));
        }
        Ok(None)
    }

    /// Gives up the entry behind `tag`; the lock goes with the descriptor.
    pub(super) fn unregister(self, tag: u64) {
        if let Some(index) = index_of(tag).filter(|&index| index < self.sizes.processes) {
            self.entry(index)[P_PID].store(0, Ordering::Release);
        }
    }

    /// The process id behind a tag, as its own namespace numbers it; zero if it is gone.
    pub(super) fn pid(self, tag: u64) -> u32 {
        match self.find(tag) {
            Some((_, owner)) => owner.pid,
            None => 0,
        }
    }

    fn find(self, tag: u64) -> Option<(u32, Process)> {
        let index = index_of(tag).filter(|&index| index < self.sizes.processes)?;
        let entry = self.entry(index);
        let owner = Process {
            pid: entry[P_PID].load(Ordering::Acquire) as u32,
            nonce: entry[P_NONCE].load(Ordering::Relaxed),
            namespace: entry[P_NAMESPACE].load(Ordering::Relaxed),
        };
        // Last: an unchanged generation means that the fields read were of this user.
        let generation = entry[P_GENERATION].load(Ordering::SeqCst) as u32;
        (self::tag(index, generation) == tag).then_some((index, owner))
    }

    /// Whether the owner behind a tag is certainly dead. `this` is the caller, `own` its tag.
    pub(super) fn is_dead(self, tag: u64, this: &Process, own: u64) -> bool {
        let Some(file) = self.file else { return false };
        if tag == own {
            return false;
        }
        let Some((index, owner)) = self.find(tag) else { return true };
        let byte = self.sizes.process_byte(index);
        match file.is_locked(byte..byte + 1) {
            Ok(false) => true,
            Ok(true) => owner.pid != 0 && owner.is_gone(this),
            Err(_) => false,
        }
    }

    /// Whether the holder of a lock is certainly dead: its process, or, in `this` one's pid namespace, its
    /// thread.
    pub(super) fn is_holder_dead(self, holder: Holder, this: &Process) -> bool {
        if holder.index >= self.sizes.processes {
            return true;
        }
        let generation = self.entry(holder.index)[P_GENERATION].load(Ordering::SeqCst) as u32;
        if !holder.is_generation(generation) {
            // Its entry is another's, who could have it only when it was dead.
            return true;
        }
        let tag = tag(holder.index, generation);
        if self.is_dead(tag, this, 0) {
            return true;
        }
        let owner = self.find(tag).map(|(_, owner)| owner);
        owner.is_some_and(|owner| {
            let here = owner.namespace == this.namespace && owner.namespace != 0;
            here && platform::is_thread_gone(owner.pid, holder.thread)
        })
    }
}
