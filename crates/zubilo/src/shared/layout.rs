//! Where everything lies in the lock file, in words of eight bytes. `docs/locking.md` draws the
//! same; the words are in the byte order of the machine, since no other maps them.
//!
//! The meaning of byte 0 (the lock that says whether anyone is alive) and of words 0 to 2 is the
//! same in every version: by them a later version recognises an earlier one that is still in use.

/// Words in a cache line; each thing that processes write at different times has its own line.
pub(super) const LINE: usize = 8;

/// "ZubiloLk": what the file is.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"ZubiloLk");
/// Version of this layout. Raised with every change of meaning, not only of places.
const VERSION: u64 = 8;
/// Version and what the layout depends on beyond it: width of a pointer, words of a root. Processes that differ in any of these cannot share a region.
pub(super) const FINGERPRINT: u64 =
    VERSION | (size_of::<usize>() as u64) << 32 | (super::ROOT_WORDS as u64) << 40;

pub(super) const W_MAGIC: usize = 0;
pub(super) const W_FINGERPRINT: usize = 1;
pub(super) const W_STATE: usize = 2;
pub(super) const W_READERS: usize = 3;
pub(super) const W_PROCESSES: usize = 4;
/// Two words.
pub(super) const W_BOOT: usize = 5;
/// What a region that is being initialised must not forget should its initialiser die: one more
/// than the last steady transaction of poisoned predecessors, or zero.
pub(super) const W_INHERITED: usize = 7;
/// Sixteen words: what `Word` names, and at their end which data file this region belongs to.
pub(super) const W_WORDS: usize = LINE;
/// Words of those that `Word` may name.
pub(super) const ENGINE_WORDS: usize = 12;
/// The data file's number, see `DataFile::home`; zero in a region that belongs to none.
pub(super) const W_HOME: usize = W_WORDS + 12;
/// The identity that is written in the data file, two words; zeros if it was not known yet.
pub(super) const W_UUID: usize = W_WORDS + 13;
/// The number of a data file that was claimed by way of this lock file before; zero of none.
pub(super) const W_CLAIMED: usize = W_WORDS + 15;
pub(super) const W_NEWEST: usize = 3 * LINE;
/// One above the highest reader slot ever claimed.
pub(super) const W_HIGH_WATER: usize = W_NEWEST + 1;
/// When the root in each entry was published: milliseconds since 1970.
pub(super) const W_PUBLISHED: usize = W_NEWEST + 2;
pub(super) const W_ENTRY_0: usize = 4 * LINE;
pub(super) const W_ENTRY_1: usize = W_ENTRY_0 + super::ROOT_WORDS;
pub(super) const W_WRITER: usize = 10 * LINE;
pub(super) const W_WRITER_OWNER: usize = W_WRITER + LINE;
pub(super) const W_META: usize = 12 * LINE;
pub(super) const W_META_OWNER: usize = W_META + LINE;
/// Not zero once a user did not know which run of the system this is; stays.
pub(super) const W_HIDDEN: usize = 14 * LINE;
/// Not zero while the data file is encrypted; the first user says so.
pub(super) const W_ENCRYPTED: usize = W_HIDDEN + 1;
/// The identity of the transaction that is prepared, if one is.
pub(super) const W_PREPARED: usize = W_HIDDEN + 2;
/// What all users have done with the store since the first of them, see `env::counters`.
pub(super) const W_COUNTERS: usize = 16 * LINE;
pub(super) const W_PROCESS_TABLE: usize = W_COUNTERS + super::COUNTER_WORDS;

/// Words of the fixed part at the start.
pub(super) const HEADER_WORDS: usize = 8;
/// What an opener reads before it maps anything: the header and the words after it.
pub(super) const PREFIX_WORDS: usize = W_WORDS + 16;

/// States of the region, in `W_STATE`.
pub(super) const S_INITIALISING: u64 = 0;
pub(super) const S_LIVE: u64 = 1;
pub(super) const S_EXCLUSIVE: u64 = 2;

/// The byte whose lock says that somebody is alive: shared by all users, exclusive while one
/// initialises the region or wants it alone.
pub(super) const ALIVE_BYTE: u64 = 0;

/// Words of a process entry, and what they hold. The lock on the entry's first byte is held for
/// as long as the entry is in use.
pub(super) const PROCESS_WORDS: usize = LINE;
pub(super) const P_GENERATION: usize = 0;
pub(super) const P_PID: usize = 1;
pub(super) const P_NONCE: usize = 2;
pub(super) const P_NAMESPACE: usize = 3;

/// Words of a reader slot, and what they hold.
pub(super) const SLOT_WORDS: usize = LINE;
pub(super) const R_OWNER: usize = 0;
pub(super) const R_TXN: usize = 1;
pub(super) const R_THREAD: usize = 2;
/// Noted by others while the slot pins an old snapshot: which, when it was published, and when the next
/// one was.
pub(super) const R_TIMES_OF: usize = 3;
pub(super) const R_PUBLISHED: usize = 4;
pub(super) const R_REPLACED: usize = 5;

/// Bounds of the tables, so that a damaged header cannot ask for absurd sizes.
pub(super) const MAX_READERS: u32 = 1 << 16;
pub(super) const MIN_PROCESSES: u32 = 64;

const _: () =
    assert!(super::ROOT_WORDS.is_multiple_of(LINE) && super::COUNTER_WORDS.is_multiple_of(LINE));
const _: () = assert!(W_BOOT + 2 <= W_INHERITED && HEADER_WORDS <= W_WORDS);
const _: () = assert!(PREFIX_WORDS <= W_NEWEST && W_CLAIMED < PREFIX_WORDS);
const _: () = assert!((super::Word::Stamp as usize) < ENGINE_WORDS);
const _: () = assert!(W_ENTRY_1 + super::ROOT_WORDS <= W_WRITER);
const _: () = assert!(W_META_OWNER + LINE <= W_HIDDEN && W_HIDDEN + LINE <= W_COUNTERS);

/// Sizes of the two tables; everything else is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) readers: u32,
    pub(super) processes: u32,
}

impl Sizes {
    pub(super) fn for_readers(max_readers: u32) -> Sizes {
        let readers = max_readers.clamp(1, MAX_READERS);
        // A process without a reader needs no more than its entry.
        Sizes { readers, processes: readers.max(MIN_PROCESSES) }
    }

    /// The sizes that a header states, unless no version of this code would have written them.
    pub(super) fn from_words(readers: u64, processes: u64) -> Option<Sizes> {
        let sizes = Sizes::for_readers(u32::try_from(readers).ok()?);
        (u64::from(sizes.readers) == readers && u64::from(sizes.processes) == processes)
            .then_some(sizes)
    }

    pub(super) fn process(self, index: u32) -> usize {
        debug_assert!(index < self.processes);
        W_PROCESS_TABLE + index as usize * PROCESS_WORDS
    }

    /// The byte whose lock stands for a process entry.
    pub(super) fn process_byte(self, index: u32) -> u64 {
        self.process(index) as u64 * 8
    }

    /// The bytes whose locks stand for all entries.
    pub(super) fn process_bytes(self) -> std::ops::Range<u64> {
        W_PROCESS_TABLE as u64 * 8..self.slots() as u64 * 8
    }

    pub(super) fn slots(self) -> usize {
        W_PROCESS_TABLE + self.processes as usize * PROCESS_WORDS
    }

    pub(super) fn slots_end(self) -> usize {
        self.slots() + self.readers as usize * SLOT_WORDS
    }

    pub(super) fn bytes(self) -> usize {
        (self.slots_end() * 8).next_multiple_of(4096)
    }
}
