//! Entering a lock file: who initialises it, who joins, who is refused.
//!
//! A region belongs to one data file and to one run of the system. Both are compared, the run only
//! where nobody is there: a registered user, whose entry is locked, proves that it is this one,
//! whatever the two read as its number.
//!
//! Everything hangs on the lock of one byte. Whoever gets it exclusively knows that no other user
//! is alive and may initialise the region; it then turns its lock into a shared one, which lets
//! the others in. Whoever gets it shared and finds the region live has joined. A region that is
//! not live although its lock is to be had was left by an initialiser that died: try again.
//! Nobody waits inside the system, so that exclusive use can be distinguished from an opening in progress.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::layout::*;
use super::region::Region;
use super::{Role, Word, steady_of};
use crate::error::{Error, Result};
use crate::platform::{self, LockFile};
use crate::sync::Ordering;

/// Whether a word is of those that describe the data file, whoever has it open.
fn is_of_the_file(word: usize) -> bool {
    let is = |named: Word| W_WORDS + named as usize == word;
    let of_metas = Word::META_SLOTS.into_iter().chain(Word::META_SEALS).any(is);
    of_metas || is(Word::Attempt) || is(Word::Stamp)
}

/// The last steady transaction that an old region knew.
fn steady_in(old: &[u64; PREFIX_WORDS]) -> u64 {
    steady_of(Word::META_SLOTS.map(|slot| old[W_WORDS + slot as usize]))
}

/// Another process may take this long to open the store, with its check of the last commit.
const OPENING_TIMEOUT: Duration = Duration::from_secs(30);
/// A user of another data file that is about to end may take this long to do so: a child that was just
/// forked, or a process that was just killed, holds its locks a moment longer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Times that a region must look exclusively used before an opener is refused: the word may be
/// one that a killed user left behind, in the moment before the next one initialises the region.
const LOOKS_EXCLUSIVE: u32 = 10;

/// In place of what a failed flush left: this region does not know what was in the file before it. So
/// it is until the first user has looked, and while commits that were not trusted are still there.
pub(super) const STRANGER: u64 = u64::MAX;

/// What entering gave.
pub(super) struct Entered {
    pub(super) region: Region,
    pub(super) sizes: Sizes,
    pub(super) role: Role,
    pub(super) inherited_poison: Option<u64>,
    /// The words of the meta pages are those of the users before, on this boot.
    pub(super) knows_steady: bool,
}

/// Joins the region in `file` for the data file `home`, or initialises it. Holds the lock on the alive
/// byte afterwards.
pub(super) fn enter(
    file: &LockFile,
    path: &Path,
    max_readers: u32,
    exclusive: bool,
    home: u64,
) -> Result<Entered> {
    // Where the question has no answer the file is as good as local.
    if !exclusive && file.is_remote().unwrap_or(false) {
        return Err(Error::Invalid(
            "the lock file lies on a network file system, where memory cannot be shared between \
             machines: open the store with Options::exclusive",
        ));
    }
    let old = file.read_words().map_err(Error::io_at("read the lock file", path))?;
    if is_lock_file(&old) {
        file.shut_out_strangers();
    }
    match take_alive_byte(file, path, exclusive, home)? {
        None => initialise(file, path, Sizes::for_readers(max_readers), exclusive, home),
        Some(sizes) => join(file, path, sizes),
    }
}

/// `None`: the lock is ours alone. Otherwise it is shared, and the region live with these sizes.
fn take_alive_byte(
    file: &LockFile,
    path: &Path,
    exclusive: bool,
    home: u64,
) -> Result<Option<Sizes>> {
    let failed = |error| Error::io_at("lock the lock file", path)(error);
    let started = Instant::now();
    let mut looks_exclusive = 0;
    loop {
        if file.try_lock(ALIVE_BYTE, true).map_err(failed)? {
            return Ok(None);
        }
        if exclusive {
            return Err(Error::Busy(
                "exclusive use was asked for, but the store is open elsewhere",
            ));
        }
        let entered = file.try_lock(ALIVE_BYTE, false).map_err(failed)?;
        let header = file.read_words::<PREFIX_WORDS>().map_err(failed)?;
        match (entered, header[W_STATE]) {
            (true, S_LIVE) => match standing(file, &header, home).map_err(failed)? {
                Standing::Ours => return sizes_of(&header).map(Some),
                Standing::Others if started.elapsed() > PATIENCE => {
                    return Err(Error::Busy(OTHER_FILE));
                }
                Standing::Others | Standing::Stale => file.unlock(ALIVE_BYTE).map_err(failed)?,
            },
            // Then the file may hold less than the region says.
            (true, _) => file.unlock(ALIVE_BYTE).map_err(failed)?,
            (false, S_EXCLUSIVE) => looks_exclusive += 1,
            (false, _) => {}
        }
        if looks_exclusive >= LOOKS_EXCLUSIVE {
            return Err(Error::Busy("another process has the store open for exclusive use"));
        }
        if started.elapsed() > OPENING_TIMEOUT {
            return Err(Error::Busy("another process is still opening the store; try again later"));
        }
        // Two that got in shared at the same moment block each other's exclusive lock: different
        // pauses part them.
        let spread = u64::from(platform::thread_id() % 8);
        std::thread::sleep(Duration::from_micros(300 + 170 * spread));
    }
}

/// What a live region is to an opener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is true of this run of the system and of the opener's data file.
    Ours,
    /// It is in use, for another data file.
    Others,
    /// It was left by a system that stopped, or for another file.
    Stale,
}

/// What the live region is to one who opens the data file `home` and shares the alive byte.
fn standing(file: &LockFile, header: &[u64; PREFIX_WORDS], home: u64) -> io::Result<Standing> {
    // Of another layout: the caller reports it.
    let Ok(sizes) = sizes_of(header) else { return Ok(Standing::Ours) };
    // The last user may have ended a moment ago; then what it left is known by its number.
    let in_use = file.is_locked(sizes.process_bytes())?;
    Ok(match (header[W_HOME] == home, in_use) {
        (true, _) if in_use || boot_of(header) == Boot::This => Standing::Ours,
        (false, true) => Standing::Others,
        _ => Standing::Stale,
    })
}

const OTHER_FILE: &str = "those who use this store's lock file have another data file open: it was \
                          deleted, replaced or moved since they opened it, or shares the name of \
                          its lock file; end them first";

/// How a lock file of LMDB begins. Beside a data file of ours it is what is left of a store that was
/// there before, and nobody uses it: its users would hold a lock on the same byte.
const LMDB: u32 = 0xBEEF_C0DE;

/// Whether a file is a lock file, or may become one.
fn is_lock_file(words: &[u64; PREFIX_WORDS]) -> bool {
    words[W_MAGIC] == MAGIC || words[W_MAGIC] as u32 == LMDB || words.iter().all(|&word| word == 0)
}

/// The sizes in the header of a live region.
fn sizes_of(header: &[u64; PREFIX_WORDS]) -> Result<Sizes> {
    if header[W_MAGIC] != MAGIC || header[W_FINGERPRINT] != FINGERPRINT {
        return Err(Error::incompatible(
            "the store is in use by a process with another version or build of this library: \
             end it first",
        ));
    }
    Sizes::from_words(header[W_READERS], header[W_PROCESSES]).ok_or(Error::incompatible(
        "the lock file is damaged: end all processes that use it and delete it",
    ))
}

fn join(file: &LockFile, path: &Path, sizes: Sizes) -> Result<Entered> {
    let failed = |error| Error::io_at("map the lock file", path)(error);
    if file.len().map_err(failed)? < sizes.bytes() as u64 {
        return Err(Error::incompatible(
            "the lock file was cut: end all processes that use it and delete it",
        ));
    }
    let region = Region::mapped(file.map(sizes.bytes()).map_err(failed)?, sizes);
    Ok(Entered { region, sizes, role: Role::Joined, inherited_poison: None, knows_steady: false })
}

fn initialise(
    file: &LockFile,
    path: &Path,
    sizes: Sizes,
    exclusive: bool,
    home: u64,
) -> Result<Entered> {
    let failed = |error| Error::io_at("prepare the lock file", path)(error);
    let old = file.read_words::<PREFIX_WORDS>().map_err(failed)?;
    if !is_lock_file(&old) {
        let path = Box::new(path.to_path_buf());
        return Err(Error::NotAStore { path, found: "not a lock file of a store" });
    }
    let kin = is_kin(&old, home);
    let inherited_poison = if kin { poison_of(&old) } else { None };
    let knows_steady = kin && boot_of(&old) == Boot::This && old[W_INHERITED] != STRANGER;
    file.allocate(sizes.bytes() as u64).map_err(failed)?;
    let is_ours = old[W_MAGIC] == MAGIC && old[W_FINGERPRINT] == FINGERPRINT;
    let region = Region::mapped(file.map(sizes.bytes()).map_err(failed)?, sizes);
    let words = region.words();
    let state = if exclusive { S_EXCLUSIVE } else { S_INITIALISING };
    words[W_STATE].store(state, Ordering::SeqCst);
    if !kin {
        // Nobody's, until nothing of the users before is left that could be taken for this file's.
        words[W_HOME].store(0, Ordering::SeqCst);
        words[W_WORDS + Word::Poisoned as usize].store(0, Ordering::SeqCst);
    }
    // First of all, and from now on until the region is announced: were it lost with us, the
    // next one would trust what the kernel's cache says.
    let inherited = match (knows_steady, inherited_poison) {
        (_, Some(txn)) => txn + 1,
        (true, None) => 0,
        (false, None) => STRANGER,
    };
    words[W_INHERITED].store(inherited, Ordering::SeqCst);
    let boot = boot_words();
    words[W_BOOT].store(boot[0], Ordering::SeqCst);
    words[W_BOOT + 1].store(boot[1], Ordering::SeqCst);
    words[W_MAGIC].store(MAGIC, Ordering::SeqCst);
    words[W_FINGERPRINT].store(FINGERPRINT, Ordering::SeqCst);
    words[W_READERS].store(u64::from(sizes.readers), Ordering::SeqCst);
    words[W_PROCESSES].store(u64::from(sizes.processes), Ordering::SeqCst);
    for (i, word) in words.iter().enumerate().skip(HEADER_WORDS) {
        let stays = matches!(i, W_HOME | W_CLAIMED) || i == W_HIDDEN && is_ours;
        // What was steady stays known, should this opener be killed.
        let is_known = is_of_the_file(i) && knows_steady;
        if !(stays || is_known) {
            word.store(0, Ordering::Relaxed);
        }
    }
    words[W_HOME].store(home, Ordering::SeqCst);
    prepare(&region, sizes);
    Ok(Entered { region, sizes, role: Role::First, inherited_poison, knows_steady })
}

/// What zeroed memory lacks: idle slots.
pub(super) fn prepare(region: &Region, sizes: Sizes) {
    for slot in region.words()[sizes.slots()..sizes.slots_end()].chunks_exact(SLOT_WORDS) {
        slot[R_TXN].store(super::table::IDLE, Ordering::Release);
    }
}

fn boot_words() -> [u64; 2] {
    let id = u128::from_le_bytes(platform::boot_id());
    [id as u64, (id >> 64) as u64]
}

/// When a region was used last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Boot {
    /// In this run of the system.
    This,
    /// Before the last restart.
    Another,
    /// Unknown: the number of the run was or is hidden, as in some sandboxes.
    Unknown,
}

fn boot_of(old: &[u64; PREFIX_WORDS]) -> Boot {
    match (boot_words(), [old[W_BOOT], old[W_BOOT + 1]]) {
        ([0, 0], _) | (_, [0, 0]) => Boot::Unknown,
        (now, then) if now == then => Boot::This,
        _ => Boot::Another,
    }
}

/// Whether a region is of this layout, belongs to the file `home`, and may have been used since the
/// last restart.
fn is_kin(old: &[u64; PREFIX_WORDS], home: u64) -> bool {
    let same_layout = old[W_MAGIC] == MAGIC && old[W_FINGERPRINT] == FINGERPRINT;
    same_layout && old[W_HOME] == home && boot_of(old) != Boot::Another
}

/// What the users before said about a failed flush, of a region that [`is_kin`]: in doubt they ran
/// since the last restart. A region of another layout says nothing, and none of its users trusted more
/// than it had flushed.
fn poison_of(old: &[u64; PREFIX_WORDS]) -> Option<u64> {
    match (old[W_INHERITED], old[W_WORDS + Word::Poisoned as usize]) {
        (0 | STRANGER, 0) => None,
        (0 | STRANGER, _) => Some(steady_in(old)),
        (inherited, _) => Some(inherited - 1),
    }
}
