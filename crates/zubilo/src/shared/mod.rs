//! What the processes that use a store share besides its data: the newest root, the reader
//! table, the writer's mutex, and a few words of the engine. It lies in the lock file, or, for a
//! store that no other process can change, in memory of this process; the code is the same.
//!
//! * `layout` says where things lie, `region` gives access to the words, `open` decides who
//!   initialises and who joins, `table` is the lock-free core, `process` says who is dead.
//! * Beginning and ending a read is a few atomic operations on a slot that the process owns: no
//!   system call, no lock, no allocation.
//! * Every owner can die at any instruction without harm to the others; `docs/locking.md` gives
//!   the arguments.
//! * A forked child has no part in what its parent opened: all operations refuse, and dropping
//!   the inherited value leaves the parent's slots, mutexes and table entry alone.
//!
//! This module knows nothing of pages: to it a root is a transaction number and 23 opaque words.

mod layout;
mod open;
mod process;
mod region;
mod slots;
mod table;
mod turn;

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

use std::path::Path;
use std::sync::atomic::AtomicU64 as LocalAtomicU64;

use crate::error::{Error, Result};
use crate::planted::shield;
use crate::platform::{self, LockFile, Locked, Process, RobustMutex};
use crate::sync::{AtomicU64, Ordering};
use layout::*;
use process::Processes;
use region::Region;
use slots::OwnSlots;
use table::{IDLE, PARKED, Publication, Slots};
use turn::Turn;

/// Words of a published root.
pub(crate) const ROOT_WORDS: usize = 24;
/// A published root: word 0 is its transaction number, the rest belongs to the engine.
pub(crate) type RootWords = [u64; ROOT_WORDS];

/// Stale pins are checked for a dead owner at most this often per process, in milliseconds.
const CHECK_PERIOD_MS: u64 = 100;

/// What an opener has become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The only live user: must publish a root, set the words and then call
    /// [`Shared::announce`], before which nobody else gets in.
    First,
    /// One of several: the region is live.
    Joined,
}

/// A claimed reader slot, good for the `Shared` that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReaderId(u32);

impl Default for ReaderId {
    /// Names no slot: what is left behind when an id is taken.
    fn default() -> ReaderId {
        ReaderId(u32::MAX)
    }
}

/// A live reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReaderInfo {
    /// Process id, as its own namespace numbers it.
    pub(crate) pid: u32,
    /// Thread number, as its own namespace numbers it.
    pub(crate) thread: u64,
    /// The snapshot that it pins.
    pub(crate) txn: u64,
}

/// The shared words that have a name. Zero in a fresh region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// What the meta pages hold: `transaction << 2 | state`, see `env::metas`. The last steady
    /// transaction is told by these words alone: what one store changes has no half.
    MetaSlot0,
    /// As above.
    MetaSlot1,
    /// As above.
    MetaSlot2,
    /// As above.
    MetaSlot3,
    /// Not zero once a flush has failed.
    Poisoned,
    /// Length of the data file, in bytes.
    FileLen,
}

impl Word {
    /// The words of the meta pages.
    pub(crate) const META_SLOTS: [Word; 4] =
        [Word::MetaSlot0, Word::MetaSlot1, Word::MetaSlot2, Word::MetaSlot3];
}

/// The state of a meta page that is on disk with all pages of its commit.
pub(crate) const STEADY: u64 = 2;

/// The last steady transaction that the words of the meta pages tell of; zero is none.
pub(crate) fn steady_of(slots: impl IntoIterator<Item = u64>) -> u64 {
    slots.into_iter().filter(|word| word & 3 == STEADY).map(|word| word >> 2).max().unwrap_or(0)
}

/// One user's handle to a shared region.
pub(crate) struct Shared {
    region: Region,
    /// Holds this user's locks by being open. `None`: memory of this process alone.
    file: Option<LockFile>,
    sizes: Sizes,
    /// This user's entry of the process table.
    tag: u64,
    this: Process,
    /// Tells the handles of one process apart, for the hints of its threads.
    id: u64,
    fork_generation: u32,
    exclusive: bool,
    inherited_poison: Option<u64>,
    knows_steady: bool,
    own: OwnSlots,
    /// Mutexes held through this handle.
    held: LocalAtomicU64,
    last_check_ms: LocalAtomicU64,
    turn: Turn,
}

impl Shared {
    /// A region that no other process sees.
    pub(crate) fn private(max_readers: u32) -> Shared {
        platform::watch_forks();
        let sizes = Sizes::for_readers(max_readers);
        let region = Region::heap(sizes);
        // Fails only for want of memory, of which these calls take none on any known system.
        open::prepare(&region, sizes).expect("mutexes in private memory");
        let this = Process::this();
        Shared::new(region, None, sizes, process::tag(0, 1), this)
    }

    /// Opens or creates the lock file of the data file with the number `home`. [`Role::First`] must
    /// initialise the region and then [`announce`](Self::announce) it. With `exclusive` nobody else
    /// gets in for the life of the handle; where somebody is in already the answer is [`Error::Busy`].
    pub(crate) fn open(
        path: &Path,
        mode: u32,
        max_readers: u32,
        exclusive: bool,
        home: u64,
    ) -> Result<(Shared, Role)> {
        platform::watch_forks();
        let file = LockFile::open(path, mode)?;
        let entered = open::enter(&file, path, max_readers, exclusive, home)?;
        let this = Process::this();
        let words = entered.region.words();
        let tag = Processes { words, sizes: entered.sizes, file: Some(&file) }
            .register(&this)
            .map_err(Error::io_at("lock the lock file", path))?
            .ok_or(Error::Busy("too many processes have the store open"))?;
        let mut shared = Shared::new(entered.region, Some(file), entered.sizes, tag, this);
        shared.exclusive = exclusive;
        shared.inherited_poison = entered.inherited_poison;
        shared.knows_steady = entered.knows_steady;
        Ok((shared, entered.role))
    }

    fn new(
        region: Region,
        file: Option<LockFile>,
        sizes: Sizes,
        tag: u64,
        this: Process,
    ) -> Shared {
        // Zero is no handle: fresh hints name it.
        static NEXT_ID: LocalAtomicU64 = LocalAtomicU64::new(1);
        Shared {
            region,
            file,
            sizes,
            tag,
            this,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            fork_generation: platform::fork_generation(),
            exclusive: false,
            inherited_poison: None,
            knows_steady: false,
            own: OwnSlots::new(sizes.readers),
            held: LocalAtomicU64::new(0),
            last_check_ms: LocalAtomicU64::new(0),
            turn: Turn::default(),
        }
    }

    /// The lock file's own number, and that of this user's entry in it; `None` without one.
    pub(crate) fn entry(&self) -> Result<Option<(u64, u32)>> {
        let Some(file) = &self.file else { return Ok(None) };
        let home = file.home().map_err(Error::io("examine the lock file"))?;
        Ok(process::index_of(self.tag).map(|index| (home, index)))
    }

    /// For [`Role::First`]: the identity that is written in the data file.
    pub(crate) fn set_uuid(&self, uuid: [u8; 16]) {
        for (i, half) in uuid.as_chunks::<8>().0.iter().enumerate() {
            self.region.words()[W_UUID + i].store(u64::from_le_bytes(*half), Ordering::SeqCst);
        }
    }

    /// Whether the data file of this region bears the identity `uuid`.
    pub(crate) fn has_uuid(&self, uuid: [u8; 16]) -> bool {
        let words = self.region.words();
        let mut halves = uuid.as_chunks::<8>().0.iter().enumerate();
        halves
            .all(|(i, half)| words[W_UUID + i].load(Ordering::SeqCst) == u64::from_le_bytes(*half))
    }

    /// Lets the others in, after [`Role::First`] has published a root and set the words.
    /// Does nothing on a region that is private, exclusive, or live already.
    pub(crate) fn announce(&self) -> Result<()> {
        self.refuse_child()?;
        let words = self.region.words();
        let Some(file) = self.file.as_ref().filter(|_| !self.exclusive) else { return Ok(()) };
        words[W_STATE].store(S_LIVE, Ordering::SeqCst);
        file.try_lock(ALIVE_BYTE, false).map_err(Error::io("share the lock file"))?;
        Ok(())
    }

    /// For [`Role::First`]: if the users before had seen a flush fail since the last restart of
    /// the system, the last steady transaction that they knew.
    pub(crate) fn was_poisoned_on_this_boot(&self) -> Option<u64> {
        self.inherited_poison
    }

    /// For [`Role::First`]: whether the words of the meta pages still tell what the users before
    /// knew, because they ran since the last restart of the system.
    pub(crate) fn knows_steady(&self) -> bool {
        self.knows_steady
    }

    /// For [`Role::First`]: whether there is a lock file, and it knows nothing of the users before.
    pub(crate) fn is_stranger(&self) -> bool {
        self.file.is_some() && !self.knows_steady
    }

    /// Nothing is left in the file that
    /// [`was_poisoned_on_this_boot`](Self::was_poisoned_on_this_boot) warned of, or that a
    /// [stranger](Self::is_stranger) could not believe.
    pub(crate) fn forget_poison(&self) {
        self.region.words()[W_INHERITED].store(0, Ordering::SeqCst);
    }

    /// Whether other processes can see the region.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn is_shared(&self) -> bool {
        self.region.is_mapped()
    }

    /// Slots that may be in use: all above were never claimed.
    pub(crate) fn claimed_slots(&self) -> u32 {
        self.slots().claimed()
    }

    /// Slots of the reader table.
    pub(crate) fn max_readers(&self) -> u32 {
        self.sizes.readers
    }

    #[inline]
    fn is_child(&self) -> bool {
        self.fork_generation != platform::fork_generation()
    }

    #[inline]
    fn refuse_child(&self) -> Result<()> {
        if self.is_child() { Err(Error::Forked) } else { Ok(()) }
    }

    #[inline]
    fn publication(&self) -> Publication<'_> {
        let words = self.region.words();
        let entries = [&words[W_ENTRY_0..W_ENTRY_1], &words[W_ENTRY_1..W_ENTRY_1 + ROOT_WORDS]];
        Publication::new(&words[W_NEWEST], entries)
    }

    #[inline]
    fn slots(&self) -> Slots<'_> {
        let words = self.region.words();
        Slots::new(&words[self.sizes.slots()..self.sizes.slots_end()], &words[W_HIGH_WATER])
    }

    fn processes(&self) -> Processes<'_> {
        Processes { words: self.region.words(), sizes: self.sizes, file: self.file.as_ref() }
    }

    /// Publishes a root. The caller holds the meta lock, or is [`Role::First`] and alone; the
    /// transaction number is one more than the newest, except for the very first root.
    pub(crate) fn publish(&self, root: &RootWords) {
        let newest = self.newest();
        assert!(
            root[0] == newest + 1 || newest == 0,
            "publishing {} after {newest} would overwrite the root that readers copy",
            root[0]
        );
        self.publication().publish(root);
    }

    /// Publishes a root that others have made, in a region of this process alone; numbers may have
    /// been left out. Nobody begins a read meanwhile.
    pub(crate) fn adopt(&self, root: &RootWords) {
        self.publication().publish(root);
    }

    /// Number of the newest transaction.
    pub(crate) fn newest(&self) -> u64 {
        self.publication().newest()
    }

    /// The newest root. Pins nothing: only the writer can rely on its pages.
    pub(crate) fn newest_root(&self) -> RootWords {
        self.publication().newest_root()
    }

    /// Pins the newest snapshot and returns its root.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn begin_read(&self) -> Result<(ReaderId, RootWords)> {
        let mut root = [0; ROOT_WORDS];
        let id = self.begin_read_into(&mut root)?;
        Ok((id, root))
    }

    /// Pins the newest snapshot and puts its root in place of what `root` held. Faster than to return
    /// it where the result would be moved: a move right after the words were stored one by one waits
    /// for each of them.
    #[inline]
    pub(crate) fn begin_read_into(&self, root: &mut RootWords) -> Result<ReaderId> {
        // Before the hint: in a child it names a slot that belongs to the parent.
        self.refuse_child()?;
        if let Some((slot, thread)) = slots::hint(self.id)
            && self.slots().begin(slot, thread, self.publication(), root)
        {
            return Ok(ReaderId(slot));
        }
        self.begin_read_without_hint(root).map(ReaderId)
    }

    #[cold]
    fn begin_read_without_hint(&self, root: &mut RootWords) -> Result<u32> {
        let thread = platform::thread_id();
        let (slots, roots) = (self.slots(), self.publication());
        let reuse = |root: &mut RootWords| {
            self.own.iter(thread).find(|&slot| slots.begin(slot, thread, roots, root))
        };
        let claim = |root: &mut RootWords| {
            let slot = slots.claim(self.tag)?;
            // Idle and known to nobody else yet, so this cannot fail.
            let begun = slots.begin(slot, thread, roots, root);
            assert!(begun, "a free reader slot was not idle: the lock file is damaged");
            self.own.add(slot);
            Some(slot)
        };
        // As many slots as threads run at a time, so that each thread keeps a cache line to
        // itself; beyond that the few idle ones go round, and the table stays short.
        let fresh = if self.own.is_few() { claim(root) } else { None };
        let slot = fresh
            .or_else(|| reuse(root))
            .or_else(|| claim(root))
            .or_else(|| if self.clean_dead() > 0 { claim(root) } else { None })
            .or_else(|| reuse(root))
            .ok_or(Error::ReadersFull { slots: self.sizes.readers })?;
        slots::set_hint(self.id, slot, thread);
        Ok(slot)
    }

    /// Ends a read. Any thread may do so.
    #[inline]
    pub(crate) fn end_read(&self, id: ReaderId) {
        if self.is_child() {
            return;
        }
        debug_assert_ne!(self.slots().txn(id.0), IDLE, "this read has ended before");
        self.slots().end(id.0);
        slots::update_hint(self.id, id.0);
    }

    /// The snapshot that a reader pins.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn reader_txn(&self, id: &ReaderId) -> u64 {
        self.slots().txn(id.0)
    }

    /// Moves a reader to the newest snapshot, be it parked; its old one is no longer pinned. Fills
    /// `root` unless the newest is still `known`; true if it did.
    #[inline]
    pub(crate) fn renew(&self, id: &ReaderId, known: u64, root: &mut RootWords) -> Result<bool> {
        // The slot of a child is the parent's: it stays as it is.
        self.refuse_child()?;
        Ok(self.slots().renew(id.0, known, self.publication(), root))
    }

    /// Ends a read but keeps its slot, for `renew`.
    #[inline]
    pub(crate) fn park(&self, id: &ReaderId) {
        if !self.is_child() {
            self.slots().park(id.0);
        }
    }

    /// The snapshots of all live readers, ascending, without repetition, in place of what `out`
    /// held. Snapshots older than the newest are the occasion to look for dead owners, at most
    /// every 100 ms per process: so a dead reader holds pages back for that long at most, and a
    /// writer pays for the system calls only then.
    pub(crate) fn pins(&self, out: &mut Vec<u64>) -> u32 {
        out.clear();
        self.slots().pins(out);
        let (newest, mut freed) = (self.newest(), 0);
        if out.iter().any(|&txn| txn < newest) && self.is_check_due() {
            freed = self.clean_dead();
        }
        if freed > 0 {
            out.clear();
            self.slots().pins(out);
        }
        out.sort_unstable();
        out.dedup();
        freed
    }

    fn is_check_due(&self) -> bool {
        if self.file.is_none() {
            return false;
        }
        let now = platform::coarse_ms();
        let last = self.last_check_ms.load(Ordering::Relaxed);
        // The first check is always due: the clock of a fresh machine may stand below a period.
        let due = last == 0 || now.saturating_sub(last) >= CHECK_PERIOD_MS;
        if due {
            self.last_check_ms.store(now.max(1), Ordering::Relaxed);
        }
        due
    }

    /// Frees the slots of dead processes; returns how many.
    pub(crate) fn clean_dead(&self) -> u32 {
        if self.file.is_none() || self.is_child() {
            return 0;
        }
        let slots = self.slots();
        // Owners hold many slots and are few: each is asked for once.
        let mut verdicts: Vec<(u64, bool)> = Vec::new();
        let mut freed = 0;
        for slot in 0..slots.claimed() {
            let owner = slots.owner(slot);
            if owner == 0 || owner == self.tag {
                continue;
            }
            let dead = match verdicts.iter().find(|(tag, _)| *tag == owner) {
                Some(&(_, dead)) => dead,
                None => {
                    let dead = self.processes().is_dead(owner, &self.this, self.tag);
                    verdicts.push((owner, dead));
                    dead
                }
            };
            freed += u32::from(dead && slots.bury(slot, owner, self.tag));
        }
        freed
    }

    /// All readers at work.
    pub(crate) fn readers(&self) -> Vec<ReaderInfo> {
        self.kept_slots().filter_map(|(info, pins)| pins.then_some(info)).collect()
    }

    /// The slots that readers keep, and whether each pins a snapshot now.
    pub(crate) fn kept_slots(&self) -> impl Iterator<Item = (ReaderInfo, bool)> {
        let slots = self.slots();
        (0..slots.claimed()).filter_map(move |slot| {
            let (owner, thread, txn) = (slots.owner(slot), slots.thread(slot), slots.txn(slot));
            let pid = match self.file {
                Some(_) => self.processes().pid(owner),
                None => self.this.pid,
            };
            let kept = owner != 0 && txn != IDLE;
            kept.then_some((ReaderInfo { pid, thread, txn }, txn < PARKED))
        })
    }

    /// Waits for the writer lock. True: its last owner died holding it. The thread that locks
    /// must be the one that unlocks; one that holds it already gets [`Error::Busy`].
    pub(crate) fn lock_writer(&self) -> Result<bool> {
        let again = "this thread is already in a write transaction";
        let failed = Error::io("lock the writer");
        self.lock(W_WRITER, W_WRITER_OWNER, again, |mutex| {
            self.turn.give_way();
            match mutex.lock_within(turn::LONG).transpose() {
                Some(locked) => locked.map_err(failed),
                None => {
                    let _hungry = self.turn.ask();
                    mutex.lock().map_err(failed)
                }
            }
        })
    }

    /// Takes the writer lock if it is free and nobody has waited for it for long; otherwise `None`.
    pub(crate) fn try_lock_writer(&self) -> Result<Option<bool>> {
        // Told first, since only the parent knows of its turns.
        self.refuse_child()?;
        if self.turn.is_asked_for() { Ok(None) } else { self.take_free_writer() }
    }

    fn take_free_writer(&self) -> Result<Option<bool>> {
        self.refuse_child()?;
        let locked =
            self.region.mutex(W_WRITER).try_lock().map_err(Error::io("lock the writer"))?;
        Ok(locked.map(|how| self.note_locked(W_WRITER_OWNER, how)))
    }

    /// Gives [`Error::Busy`] to a thread that holds the writer lock: it must not wait for others
    /// that may wait for it.
    pub(crate) fn refuse_writer(&self) -> Result<()> {
        let owner = self.region.words()[W_WRITER_OWNER].load(Ordering::Relaxed);
        if owner != self.thread_identity() {
            return Ok(());
        }
        // The word may stem from a dead thread, see `lock`.
        match self.take_free_writer()? {
            None => Err(Error::Busy("this thread is already in a write transaction")),
            Some(_) => {
                self.unlock_writer();
                Ok(())
            }
        }
    }

    /// Gives the writer lock back.
    pub(crate) fn unlock_writer(&self) {
        self.unlock(W_WRITER, W_WRITER_OWNER);
    }

    /// Waits for the meta lock, which is held only for moments. True: as with the writer lock.
    pub(crate) fn lock_meta(&self) -> Result<bool> {
        self.lock(W_META, W_META_OWNER, "this thread already holds the meta lock", |mutex| {
            mutex.lock().map_err(Error::io("lock the metas"))
        })
    }

    /// Gives the meta lock back.
    pub(crate) fn unlock_meta(&self) {
        self.unlock(W_META, W_META_OWNER);
    }

    fn lock<'s>(
        &'s self,
        mutex: usize,
        owner: usize,
        again: &'static str,
        wait: impl FnOnce(RobustMutex<'s>) -> Result<Locked>,
    ) -> Result<bool> {
        self.refuse_child()?;
        let lock = self.region.mutex(mutex);
        let by_me = self.region.words()[owner].load(Ordering::Relaxed) == self.thread_identity();
        let locked = if by_me {
            // The word may also stem from a thread that ended in the lock and whose number we
            // got: then the mutex is to be had.
            lock.try_lock().map_err(Error::io("lock"))?.ok_or(Error::Busy(again))?
        } else {
            wait(lock)?
        };
        Ok(self.note_locked(owner, locked))
    }

    fn note_locked(&self, owner: usize, how: Locked) -> bool {
        let _shield = shield();
        self.region.words()[owner].store(self.thread_identity(), Ordering::Relaxed);
        self.held.fetch_add(1, Ordering::Relaxed);
        how == Locked::OwnerDied
    }

    fn unlock(&self, mutex: usize, owner: usize) {
        if self.is_child() {
            return;
        }
        let owner = &self.region.words()[owner];
        let by_me = owner.load(Ordering::Relaxed) == self.thread_identity();
        debug_assert!(by_me, "unlocked by a thread that does not hold the lock");
        if !by_me {
            return;
        }
        let _shield = shield();
        // Before the mutex: afterwards the word belongs to the next owner.
        owner.store(0, Ordering::Relaxed);
        self.held.fetch_sub(1, Ordering::Relaxed);
        let unlocked = self.region.mutex(mutex).unlock();
        debug_assert!(unlocked.is_ok(), "{unlocked:?}");
    }

    /// A number for the calling thread that no thread of another process has, also none of
    /// another pid namespace. Never zero.
    fn thread_identity(&self) -> u64 {
        let Process { pid, nonce, namespace } = self.this;
        let parts = [u64::from(pid), nonce, namespace, u64::from(platform::thread_id())];
        parts.into_iter().fold(0, |hash: u64, part| {
            // The finishing steps of a 64-bit mixer (murmur3): distinct inputs stay distinct.
            let mixed = (hash ^ part).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
            mixed ^ mixed >> 32
        }) | 1
    }

    /// A word of the engine.
    #[inline]
    pub(crate) fn word(&self, word: Word) -> &AtomicU64 {
        &self.region.words()[W_WORDS + word as usize]
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let child = self.is_child();
        if !child {
            for slot in self.own.iter(0) {
                self.slots().release(slot);
            }
            self.processes().unregister(self.tag);
        }
        // A thread that still holds a mutex keeps its address in a list that the system walks:
        // the memory must then stay. A child has no such list.
        if !child && self.held.load(Ordering::Relaxed) != 0 {
            self.region.keep_for_ever();
        }
    }
}
