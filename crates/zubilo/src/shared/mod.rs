//! What the processes that use a store share besides its data: the newest root, the reader
//! table, the writer's lock, and a few words of the engine. It lies in the lock file, or, for a
//! store that no other process can change, in memory of this process; the code is the same.
//!
//! * `layout` says where things lie, `region` gives access to the words, `open` decides who
//!   initialises and who joins, `table` is the lock-free core, `expiry` who is behind and may be ended, `mutex` the two locks, `process` says who is dead.
//! * Beginning and ending a read is a few atomic operations on a slot that the process owns: no
//!   system call, no lock, no allocation.
//! * Every owner can die at any instruction without harm to the others; `docs/locking.md` gives
//!   the arguments.
//! * A forked child has no part in what its parent opened: all operations refuse, and dropping
//!   the inherited value leaves the parent's slots, mutexes and table entry alone.
//!
//! This module knows nothing of pages: to it a root is a transaction number and 23 opaque words.

mod expiry;
mod layout;
mod mutex;
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

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64 as LocalAtomicU64;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::planted::shield;
use crate::platform::{self, LockFile, Process};
use crate::sync::{AtomicU64, Ordering};
use layout::*;
use mutex::{Holder, Locked, Mutex};
use open::STRANGER;
use process::Processes;
use region::Region;
use slots::OwnSlots;
use table::{IDLE, Publication, Slots};
use turn::Turn;

/// Words of a published root.
pub(crate) const ROOT_WORDS: usize = 24;
/// Words in which users add up what they do.
pub(crate) const COUNTER_WORDS: usize = 32;
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
    /// Its slot in the reader table.
    pub(crate) slot: u32,
    /// Others may end the pin.
    pub(crate) is_expirable: bool,
}

/// The shared words that have a name. Zero in a fresh region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// What the meta pages hold: `transaction << 2 | state`, and the top bit for one that is prepared, see `env::metas`. The last steady
    /// transaction is found in these words alone: what one store changes has no half.
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
    /// The highest transaction number for which somebody has begun to write pages.
    Attempt,
    /// Distinguishes the meta that was written into a slot last from any other, see `env::metas`.
    MetaSeal0,
    /// As above.
    MetaSeal1,
    /// As above.
    MetaSeal2,
    /// As above.
    MetaSeal3,
    /// The data file's [stamp](crate::platform::DataFile::stamp) when the last user ended; 0 while there is one,
    /// and for ever if it did not end in order.
    Stamp,
}

impl Word {
    /// The words of the meta pages.
    pub(crate) const META_SLOTS: [Word; 4] =
        [Word::MetaSlot0, Word::MetaSlot1, Word::MetaSlot2, Word::MetaSlot3];
    /// What distinguishes their contents.
    pub(crate) const META_SEALS: [Word; 4] =
        [Word::MetaSeal0, Word::MetaSeal1, Word::MetaSeal2, Word::MetaSeal3];
}

/// The state of a meta page that is on disk with all pages of its commit.
pub(crate) const STEADY: u64 = 2;

/// The last steady transaction that the words of the meta pages name; zero is none.
pub(crate) fn steady_of(slots: impl IntoIterator<Item = u64>) -> u64 {
    slots.into_iter().filter(|word| word & 3 == STEADY).map(|word| word >> 2).max().unwrap_or(0)
}

/// One user's handle to a shared region.
pub(crate) struct Shared {
    region: Region,
    /// Holds this user's locks by being open. `None`: memory of this process alone.
    file: Option<LockFile>,
    /// Where that file is, for errors.
    path: Option<Box<PathBuf>>,
    sizes: Sizes,
    /// This user's entry of the process table.
    tag: u64,
    this: Process,
    /// Distinguishes the handles of one process, for the hints of its threads.
    id: u64,
    fork_generation: u32,
    exclusive: bool,
    inherited_poison: Option<u64>,
    knows_steady: bool,
    own: OwnSlots,
    last_check_ms: LocalAtomicU64,
    turn: Turn,
}

impl Shared {
    /// A region that no other process sees.
    pub(crate) fn private(max_readers: u32) -> Shared {
        platform::watch_forks();
        let sizes = Sizes::for_readers(max_readers);
        let region = Region::heap(sizes);
        open::prepare(&region, sizes);
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
        shared.path = Some(Box::new(path.to_path_buf()));
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
            path: None,
            sizes,
            tag,
            this,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            fork_generation: platform::fork_generation(),
            exclusive: false,
            inherited_poison: None,
            knows_steady: false,
            own: OwnSlots::new(sizes.readers),
            last_check_ms: LocalAtomicU64::new(0),
            turn: Turn::default(),
        }
    }

    #[cold]
    fn readers_full(&self) -> Error {
        Error::ReadersFull { slots: self.sizes.readers, path: self.path.clone() }
    }

    /// The lock file's own number, and that of this user's entry in it; `None` without one.
    pub(crate) fn entry(&self) -> Result<Option<(u64, u32)>> {
        let Some(file) = &self.file else { return Ok(None) };
        let home = file.home().map_err(Error::io("examine the lock file"))?;
        Ok(process::index_of(self.tag).map(|index| (home, index)))
    }

    /// Whether somebody has claimed this data file before by way of this lock file.
    pub(crate) fn has_claimed(&self, home: u64) -> bool {
        self.region.words()[W_CLAIMED].load(Ordering::SeqCst) == home
    }

    /// From now on [`has_claimed`](Self::has_claimed), as long as the lock file stays.
    pub(crate) fn set_claimed(&self, home: u64) {
        self.region.words()[W_CLAIMED].store(home, Ordering::SeqCst);
    }

    /// Whether the store has users who do not know which run of the system this is, or had any.
    pub(crate) fn has_hidden_users(&self) -> bool {
        self.region.words()[W_HIDDEN].load(Ordering::Relaxed) != 0
    }

    /// From now on it has.
    pub(crate) fn note_hidden_user(&self) {
        self.region.words()[W_HIDDEN].store(1, Ordering::SeqCst);
    }

    /// For [`Role::First`]: whether the pages of the data file are encrypted.
    pub(crate) fn set_encrypted(&self, is_encrypted: bool) {
        self.region.words()[W_ENCRYPTED].store(u64::from(is_encrypted), Ordering::SeqCst);
    }

    /// For [`Role::Joined`]: what the first user has found, whatever the data file says by now.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.region.words()[W_ENCRYPTED].load(Ordering::SeqCst) != 0
    }

    /// Words in which users add up what they do, zero before the first user did anything.
    pub(crate) fn counters(&self) -> &[AtomicU64] {
        &self.region.words()[W_COUNTERS..][..COUNTER_WORDS]
    }

    /// The identity of the transaction that is prepared, if a meta slot says that one is.
    pub(crate) fn prepared_id(&self) -> u64 {
        self.region.words()[W_PREPARED].load(Ordering::SeqCst)
    }

    /// Comes before the word of the slot. The caller holds the meta lock, or is [`Role::First`] and alone.
    pub(crate) fn set_prepared_id(&self, id: u64) {
        self.region.words()[W_PREPARED].store(id, Ordering::SeqCst);
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

    /// For [`Role::First`]: whether the words of the meta pages still say what the users before
    /// knew, because they ran since the last restart of the system.
    pub(crate) fn knows_steady(&self) -> bool {
        self.knows_steady
    }

    /// For [`Role::First`]: whether there is a lock file, and it knows nothing of the users before.
    pub(crate) fn is_stranger(&self) -> bool {
        self.file.is_some() && !self.knows_steady
    }

    /// For [`Role::First`]: what the users before have left in the region is not about what is in the data file
    /// now. So it stays until [`forget_poison`](Self::forget_poison).
    pub(crate) fn distrust(&self) {
        if self.inherited_poison.is_none() {
            self.region.words()[W_INHERITED].store(STRANGER, Ordering::SeqCst);
        }
    }

    /// Nothing is left in the file that
    /// [`was_poisoned_on_this_boot`](Self::was_poisoned_on_this_boot) warned of, or that a
    /// [stranger](Self::is_stranger) could not trust.
    pub(crate) fn forget_poison(&self) {
        self.region.words()[W_INHERITED].store(0, Ordering::SeqCst);
    }

    /// Whether other processes can see the region.
    pub(crate) fn is_shared(&self) -> bool {
        self.file.is_some()
    }

    /// Whether this is the only user of a lock file. In doubt it is not.
    pub(crate) fn is_alone(&self) -> bool {
        let others = |file: &LockFile| file.is_locked(self.sizes.process_bytes());
        self.file.as_ref().is_some_and(|file| others(file).is_ok_and(|locked| !locked))
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
        self.note_publication(root[0]);
        self.publication().publish(root);
    }

    /// Publishes a root that others have made, in a region of this process alone; numbers may have
    /// been left out. Nobody begins a read meanwhile.
    pub(crate) fn adopt(&self, root: &RootWords) {
        self.note_publication(root[0]);
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
            .ok_or_else(|| self.readers_full())?;
        slots::set_hint(self.id, slot, thread);
        Ok(slot)
    }

    /// Pins the snapshot of a reader once more, for another reader. The caller keeps the reader from ending
    /// meanwhile.
    pub(crate) fn pin_again(&self, id: &ReaderId) -> Result<ReaderId> {
        self.refuse_child()?;
        let (slots, thread) = (self.slots(), platform::thread_id());
        let txn = slots.txn(id.0);
        if !matches!(table::pin_of(txn), Some((_, false))) {
            return Err(Error::Invalid("a reader that is parked has no snapshot to share"));
        }
        let begin = |slot: u32| slots.begin_beside(slot, thread, id.0, txn);
        let reuse = || self.own.iter(0).find(|&slot| slot > id.0 && begin(slot));
        let claim = || {
            let slot = slots.claim_from(id.0 + 1, self.tag)?;
            assert!(begin(slot), "a free reader slot was not idle: the lock file is damaged");
            self.own.add(slot);
            Some(slot)
        };
        let slot = reuse()
            .or_else(claim)
            .or_else(|| if self.clean_dead() > 0 { claim() } else { None })
            .ok_or_else(|| self.readers_full())?;
        if let Some(times) = slots.times(id.0, txn) {
            slots.note_times(slot, txn, times);
        }
        Ok(ReaderId(slot))
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
        if out.iter().any(|&txn| txn < newest) {
            self.note_times(newest);
            if self.is_check_due() {
                freed = self.clean_dead();
            }
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
            let pin = table::pin_of(txn);
            let (txn, is_expirable) = pin.unwrap_or((txn, false));
            kept.then_some((ReaderInfo { pid, thread, txn, slot, is_expirable }, pin.is_some()))
        })
    }

    /// Waits for the writer lock. True: its last owner died holding it. The thread that locks
    /// must be the one that unlocks; one that holds it already gets [`Error::Busy`].
    pub(crate) fn lock_writer(&self) -> Result<bool> {
        self.refuse_writer()?;
        self.turn.give_way();
        let how = match self.take(W_WRITER, Some(turn::LONG)) {
            Some(how) => how,
            None => {
                let _starved = self.turn.ask();
                self.wait_for(W_WRITER)
            }
        };
        Ok(self.note_locked(W_WRITER_OWNER, how))
    }

    /// Takes the writer lock if it is free and nobody has waited for it for long; otherwise `None`.
    pub(crate) fn try_lock_writer(&self) -> Result<Option<bool>> {
        // Reported first, since only the parent knows of its turns.
        self.refuse_child()?;
        if self.turn.is_asked_for() || self.is_held_here(W_WRITER_OWNER) {
            return Ok(None);
        }
        let locked = self.mutex(W_WRITER).try_lock(self.me(), |holder| self.is_dead(holder));
        Ok(locked.map(|how| self.note_locked(W_WRITER_OWNER, how)))
    }

    /// Whether somebody holds the writer lock just now.
    pub(crate) fn is_writer_locked(&self) -> bool {
        self.region.words()[W_WRITER].load(Ordering::Relaxed) != 0
    }

    /// Gives [`Error::Busy`] to a thread that holds the writer lock: it must not wait for others
    /// that may wait for it.
    pub(crate) fn refuse_writer(&self) -> Result<()> {
        self.refuse_child()?;
        match self.is_held_here(W_WRITER_OWNER) {
            true => Err(Error::Busy("this thread is already in a write transaction")),
            false => Ok(()),
        }
    }

    /// Gives the writer lock back.
    pub(crate) fn unlock_writer(&self) {
        self.unlock(W_WRITER, W_WRITER_OWNER);
    }

    /// Waits for the meta lock, which is held only for moments. True: as with the writer lock.
    pub(crate) fn lock_meta(&self) -> Result<bool> {
        self.refuse_child()?;
        if self.is_held_here(W_META_OWNER) {
            return Err(Error::Busy("this thread already holds the meta lock"));
        }
        let how = self.wait_for(W_META);
        Ok(self.note_locked(W_META_OWNER, how))
    }

    /// Gives the meta lock back.
    pub(crate) fn unlock_meta(&self) {
        self.unlock(W_META, W_META_OWNER);
    }

    fn mutex(&self, word: usize) -> Mutex<'_> {
        Mutex { word: &self.region.words()[word] }
    }

    fn take(&self, mutex: usize, time: Option<Duration>) -> Option<Locked> {
        let _shield = shield();
        self.mutex(mutex).lock(self.me(), time, |holder| self.is_dead(holder))
    }

    fn wait_for(&self, mutex: usize) -> Locked {
        loop {
            // Without a time it ends with the lock only.
            if let Some(how) = self.take(mutex, None) {
                return how;
            }
        }
    }

    /// The calling thread as the holder of a lock.
    fn me(&self) -> Holder {
        Holder::new(
            process::index_of(self.tag).unwrap_or(0),
            process::generation_of(self.tag),
            platform::thread_id(),
        )
    }

    /// Whether the holder of a lock is certainly dead. The calling thread has found that it is not the one.
    fn is_dead(&self, holder: Holder) -> bool {
        let me = self.me();
        if holder == (Holder { thread: holder.thread, ..me }) {
            // A thread that has ended, whose number this one has got, held it.
            return holder.thread == me.thread
                || platform::is_thread_gone(self.this.pid, holder.thread);
        }
        self.processes().is_holder_dead(holder, &self.this)
    }

    /// Whether the calling thread holds a lock, by this or another handle.
    fn is_held_here(&self, owner: usize) -> bool {
        self.region.words()[owner].load(Ordering::Relaxed) == self.thread_identity()
    }

    fn note_locked(&self, owner: usize, how: Locked) -> bool {
        let _shield = shield();
        self.region.words()[owner].store(self.thread_identity(), Ordering::Relaxed);
        how == Locked::HolderDied
    }

    fn unlock(&self, mutex: usize, owner: usize) {
        if self.is_child() {
            return;
        }
        let by_me = self.is_held_here(owner);
        debug_assert!(by_me, "unlocked by a thread that does not hold the lock");
        if !by_me {
            return;
        }
        let _shield = shield();
        // Before the lock: afterwards the word belongs to the next owner.
        self.region.words()[owner].store(0, Ordering::Relaxed);
        self.mutex(mutex).unlock(self.me());
    }

    /// A number for the calling thread that no other has, be it of another process or pid namespace, or
    /// one that has ended. Never zero.
    fn thread_identity(&self) -> u64 {
        let Process { pid, nonce, namespace } = self.this;
        let parts = [u64::from(pid), nonce, namespace, mutex::thread_serial()];
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
        if !self.is_child() {
            for slot in self.own.iter(0) {
                self.slots().release(slot);
            }
            self.processes().unregister(self.tag);
        }
    }
}
