//! The four meta pages: which one is trusted at open, which one is overwritten next.
//!
//! Rule: never overwritten are the meta of the last steady commit known to be on disk, those that
//! are about to become it, and the newest one. What a slot holds is kept in the lock file,
//! `txn << 2 | state` with a bit for prepared ones, and changed under the meta lock only. These words
//! are the single truth about what is steady, pending, prepared and pinned: each change of it is one
//! store, so a process that is killed between two leaves nothing half-said.

use std::io::IoSlice;
use std::sync::Arc;

use crate::crypt;
use crate::error::{Error, Result};
use crate::num::{PageNo, TxnId};
use crate::page::Damage;
use crate::planted::{Bug, has};
use crate::platform::{DataFile, Decryption};
use crate::shared::{STEADY, Shared, Word, steady_of};
use crate::sync::{Ordering, fence};

use super::Root;
use super::info::DamagedMeta;
use super::meta::{META_COUNT, META_SIZE, Meta, Reading, Trust, seal_of};

/// The words that describe the slots.
const SLOT_WORDS: [Word; META_COUNT as usize] = Word::META_SLOTS;
/// The seals of the metas that were written into them. Each is stored before its meta is written, so a
/// process that is killed in between leaves the seal of a meta that is not there: which is no news where the newest
/// meta lies in another slot, and it does, as it is never overwritten.
const SEAL_WORDS: [Word; META_COUNT as usize] = Word::META_SEALS;

/// State of a meta slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// Nothing is known to be on disk.
    Weak = 0,
    /// Becomes steady with the flush that is under way.
    Pending = 1,
    /// On disk with all its pages.
    Steady = STEADY as isize,
    /// A checkpoint flushes the pages of this weak commit: they are pinned, and the meta stays. At most
    /// one slot is newer than the steady point and says so.
    Flushing = 3,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    txn: u64,
    state: SlotState,
}

fn word(shared: &Shared, i: usize) -> u64 {
    shared.word(SLOT_WORDS[i]).load(Ordering::SeqCst)
}

fn slot(shared: &Shared, i: usize) -> Slot {
    slot_of(word(shared, i))
}

fn slot_of(word: u64) -> Slot {
    let state = match word & 3 {
        0 => SlotState::Weak,
        1 => SlotState::Pending,
        3 => SlotState::Flushing,
        _ => SlotState::Steady,
    };
    Slot { txn: word >> 2, state }
}

/// All words as they stood at one moment: the steady point may move from a slot not yet looked at to
/// one looked at before, and its old slot be taken.
pub(crate) fn words(shared: &Shared) -> [u64; META_COUNT as usize] {
    let words = || std::array::from_fn(|i| word(shared, i));
    let mut before = words();
    loop {
        let now = words();
        if now == before {
            return now;
        }
        before = now;
    }
}

/// The last steady transaction, 0 if none is known. It only grows while the store is open.
pub(crate) fn steady(shared: &Shared) -> u64 {
    steady_of(words(shared))
}

/// The commits whose pages stay whether somebody reads them or not: the steady point; newer ones whose
/// metas may already be on disk as steady although nobody has said so, of a checkpoint under way, or of
/// one that failed or was killed, as an open would trust them; and the one whose pages are being
/// flushed, so that it may become one of these.
pub(crate) fn pinned(shared: &Shared) -> impl Iterator<Item = u64> {
    let words = words(shared);
    let steady = steady_of(words);
    let held = words.into_iter().map(slot_of).filter(move |s| match s.state {
        SlotState::Pending => s.txn > steady && !has(Bug::PendingNotPinned),
        SlotState::Flushing => s.txn > steady && !has(Bug::FlushingNotPinned),
        SlotState::Weak | SlotState::Steady => false,
    });
    let steady = Some(steady).filter(|_| !has(Bug::SteadyNotPinned));
    // What is prepared has no snapshot that anybody could pin.
    held.map(|s| s.txn).filter(|txn| *txn < PREPARED >> 2).chain(steady)
}

/// Records what a slot holds.
pub(crate) fn set_slot(shared: &Shared, i: usize, txn: u64, state: SlotState) {
    set_word(shared, i, txn << 2 | state as u64);
}

/// What slot `i` holds is on disk with all its pages: with this one store it stops being pending and
/// is the steady point.
pub(crate) fn set_steady(shared: &Shared, i: usize, txn: u64) {
    if has(Bug::PendingBeforeSteady) {
        set_slot(shared, i, txn, SlotState::Weak);
    }
    set_slot(shared, i, txn, SlotState::Steady);
}

/// True while slot `i` holds what the caller put there.
pub(crate) fn holds(shared: &Shared, i: usize, txn: u64, state: SlotState) -> bool {
    let now = slot(shared, i);
    now.txn == txn && now.state == state
}

/// The meta of the steady point, if it is there.
pub(crate) fn steady_meta(data: &dyn DataFile, shared: &Shared, shift: u32) -> Option<Meta> {
    let steady = steady(shared);
    let held = |(i, s): (usize, Slot)| {
        (s.state == SlotState::Steady && s.txn == steady).then(|| at(data, i, shift))?
    };
    // It may have moved on meanwhile, and the slot be used for another.
    slots(shared).find_map(held).filter(|meta| meta.txn == steady)
}

/// Whether all whole metas in the file are such as these. What the slots are said to hold is not asked: a process that
/// was killed before a write has left what was there before.
pub(crate) fn all(data: &dyn DataFile, shift: u32, such: impl Fn(&Meta) -> bool) -> bool {
    (0..META_COUNT as usize).filter_map(|i| at(data, i, shift)).all(|meta| such(&meta))
}

/// A slot, and the transaction that is pending there.
pub(crate) type Pending = (usize, u64);

fn slots(shared: &Shared) -> impl Iterator<Item = (usize, Slot)> {
    (0..SLOT_WORDS.len()).map(|i| (i, slot(shared, i)))
}

/// The bit of a slot's word that says that its transaction is prepared: on disk, and waiting for its decision. Without it
/// somebody is at it, or was killed there. As long as it is set the slot's number is greater than that of any commit, so
/// that nobody takes the slot, and whoever asks for what is newer than the newest commit meets it.
const PREPARED: u64 = 1 << 63;

/// The transaction in a slot's word, prepared or not.
pub(crate) fn txn_of(word: u64) -> u64 {
    (word & !PREPARED) >> 2
}

/// The word of a slot with a transaction that is prepared.
pub(crate) fn prepared_word(txn: u64) -> u64 {
    PREPARED | txn << 2 | SlotState::Pending as u64
}

/// The word of a slot whose meta is to be wiped, or that nothing is known of.
pub(crate) fn weak_word(txn: u64) -> u64 {
    txn << 2 | SlotState::Weak as u64
}

/// The word of a slot whose meta is on disk with all pages of its commit.
pub(crate) fn steady_word(txn: u64) -> u64 {
    txn << 2 | SlotState::Steady as u64
}

/// Whether a slot's word says that its transaction is prepared.
pub(crate) fn is_prepared(word: u64) -> bool {
    word & PREPARED != 0
}

/// The transaction that is prepared, as the slots say, and its slot. It may have been decided about by somebody who was
/// killed before he said so.
pub(crate) fn noted_prepared(shared: &Shared) -> Option<(usize, u64)> {
    let mut words = words(shared).into_iter().enumerate();
    words.find(|(_, word)| is_prepared(*word)).map(|(i, word)| (i, txn_of(word)))
}

/// The transaction that is prepared and not committed, and its slot.
pub(crate) fn prepared(shared: &Shared) -> Option<(usize, u64)> {
    noted_prepared(shared).filter(|(_, txn)| *txn > shared.newest())
}

/// Whether any slot holds what is newer than the newest published commit.
pub(crate) fn has_unpublished(shared: &Shared) -> bool {
    let newest = shared.newest();
    (0..SLOT_WORDS.len()).any(|i| slot(shared, i).txn > newest)
}

/// The meta in slot `i` is that of a prepared transaction, and on disk.
pub(crate) fn set_prepared(shared: &Shared, i: usize, txn: u64) {
    set_word(shared, i, prepared_word(txn));
}

/// Records the word of a slot.
pub(crate) fn set_word(shared: &Shared, i: usize, word: u64) {
    shared.word(SLOT_WORDS[i]).store(word, Ordering::SeqCst);
}

/// The slots that hold a transaction, in whatever form.
pub(crate) fn slots_of(shared: &Shared, txn: u64) -> Vec<usize> {
    let words = words(shared);
    (0..SLOT_WORDS.len()).filter(|i| txn_of(words[*i]) == txn).collect()
}

/// Wipes the meta in slot `i`; the caller flushes.
pub(crate) fn wipe(data: &dyn DataFile, i: usize, shift: u32) -> Result<()> {
    data.write_at((i as u64) << shift, &mut [IoSlice::new(&[0; META_SIZE])])
        .map_err(Error::io_at("wipe a meta page", data.path()))
}

/// The metas of prepared transactions that the file holds, each with its slot: of those that wait for their decision, and
/// of those that were committed, whose slot nobody has used since.
pub(crate) fn marked(data: &dyn DataFile, of: &Meta) -> Vec<(usize, Meta)> {
    let marked = |i: usize| match reading(data, i as u64, of.page_shift)? {
        Reading::Prepared(meta) => Some((i, *meta)),
        _ => None,
    };
    let is_kin = |meta: &Meta| meta.page_shift == of.page_shift && meta.uuid == of.uuid;
    (0..META_COUNT as usize).filter_map(marked).filter(|(_, meta)| is_kin(meta)).collect()
}

/// What becomes steady with a flush, or may.
fn pending(shared: &Shared) -> impl Iterator<Item = Pending> {
    slots(shared).filter(|(_, s)| s.state == SlotState::Pending).map(|(i, s)| (i, s.txn))
}

/// The slot to overwrite next; none if all are needed, which takes several processes that are in the
/// middle of checkpoints, or were killed there.
///
/// Several checkpoints may have written one commit, each into a slot of its own. Of copies that are on
/// disk one is needed, also of the newest commit; else they could fill all slots for ever.
pub(crate) fn victim(shared: &Shared) -> Option<usize> {
    let newest = shared.newest();
    let steady = steady(shared);
    let slots = || slots(shared);
    if has(Bug::NewestOverwritten) {
        return slots().filter(|(_, s)| s.txn != steady).max_by_key(|(_, s)| s.txn).map(|(i, _)| i);
    }
    let anchor = slots().find(|(_, s)| s.state == SlotState::Steady && s.txn == steady);
    let anchor = anchor.filter(|_| !has(Bug::SteadyOverwritten));
    let needed = |i: usize, s: Slot| match (anchor, s.state) {
        (Some((at, _)), _) if at == i => true,
        (Some(_), _) if s.txn == steady => false,
        (_, SlotState::Pending | SlotState::Flushing) => s.txn > steady || s.txn == newest,
        _ => s.txn == newest,
    };
    slots().filter(|&(i, s)| !needed(i, s)).min_by_key(|(_, s)| s.txn).map(|(i, _)| i)
}

/// The weak commit that a checkpoint is to make steady, from now on pinned: the newest, or the one that
/// another checkpoint has begun with, which may have been killed. The caller holds the meta lock.
pub(crate) fn begin_checkpoint(data: &dyn DataFile, shared: &Shared, shift: u32) -> Result<Meta> {
    let steady = steady(shared);
    let begun = slots(shared).find(|(_, s)| s.state == SlotState::Flushing && s.txn > steady);
    if let Some((i, s)) = begun {
        match at(data, i, shift) {
            Some(meta) if meta.txn == s.txn => return Ok(meta),
            // Damage: nothing can be made of it.
            _ => set_slot(shared, i, s.txn, SlotState::Weak),
        }
    }
    let (i, meta) = newest(data, shared, shift)?;
    if slot(shared, i).state == SlotState::Weak {
        set_slot(shared, i, meta.txn, SlotState::Flushing);
    }
    Ok(meta)
}

/// Where the steady form of a commit goes whose pages are on disk now.
pub(crate) enum Place {
    /// Into this slot, which is pending from now on.
    Write(usize),
    /// Somebody else has written it into this slot.
    Written(usize),
    /// It is steady, or nobody pins it any more.
    Ended,
    /// A slot has to be made free first.
    Full,
}

/// Finds the place for the steady form of `txn`. The caller holds the meta lock.
pub(crate) fn place_steady(data: &dyn DataFile, shared: &Shared, txn: u64, shift: u32) -> Place {
    let held = |state| slots(shared).find(|(_, s)| s.state == state && s.txn == txn);
    if steady(shared) >= txn {
        return Place::Ended;
    }
    let is_newest = txn == shared.newest();
    if let Some((i, _)) = held(SlotState::Pending) {
        let written = at(data, i, shift).is_some_and(|m| m.txn == txn && m.trust != Trust::Weak);
        return if written { Place::Written(i) } else { Place::Write(i) };
    }
    let Some((begun, _)) = held(SlotState::Flushing) else { return Place::Ended };
    if !is_newest {
        // Nobody needs the weak form any more; with the same store the pin passes on.
        set_slot(shared, begun, txn, SlotState::Pending);
        return Place::Write(begun);
    }
    // A write that fails must not cost the newest commit its meta.
    let Some(free) = victim(shared) else { return Place::Full };
    set_slot(shared, free, txn, SlotState::Pending);
    if free != begun || !has(Bug::NewestOverwritten) {
        set_slot(shared, begun, txn, SlotState::Weak);
    }
    Place::Write(free)
}

/// The pending metas that the file holds whole, of published commits: the next flush makes them
/// steady points, see [`settle`]. What a slot is said to hold and does not, because a process was
/// killed before the write or the write failed, is forgotten. The caller holds the meta lock.
pub(crate) fn arrived(data: &dyn DataFile, shared: &Shared, shift: u32) -> Vec<Pending> {
    let newest = shared.newest();
    let mut arrived: Vec<_> = pending(shared).filter(|&(_, txn)| txn <= newest).collect();
    arrived.retain(|&(i, txn)| {
        let found = at(data, i, shift);
        let there = found.is_some_and(|m| m.txn == txn && m.trust != Trust::Weak);
        if !there {
            set_slot(shared, i, 0, SlotState::Weak);
        }
        there
    });
    arrived
}

/// What had [`arrived`] before a flush that has succeeded is steady. The caller holds the meta lock.
pub(crate) fn settle(shared: &Shared, arrived: &[Pending]) {
    for &(i, txn) in arrived {
        if holds(shared, i, txn, SlotState::Pending) {
            set_steady(shared, i, txn);
        }
    }
}

/// Writes `meta` into slot `i` of the file. By a system call, inside which the kernel does not stop
/// when the process is killed; only a weak one through the map, if pages go that way. Killed in between
/// it leaves a meta whose checksum does not hold, and the commit before it is the newest.
pub(crate) fn write(data: &dyn DataFile, shared: &Shared, i: usize, meta: &Meta) -> Result<()> {
    let page = match data.decryption() {
        None => meta.encode(),
        Some(_) => authenticated(data, meta).encode(),
    };
    set_seal(shared, i, seal_of(&page));
    let at = (i as u64) << meta.page_shift;
    if meta.trust == Trust::Weak
        && let Some(base) = data.writable()
    {
        // A process that is killed has made its stores up to some one of them: first the pages.
        fence(Ordering::Release);
        // SAFETY: metas lie inside file and map. Whoever reads one copies it and asks its checksum;
        // the caller holds the meta lock, so nobody else writes it.
        unsafe {
            std::ptr::copy_nonoverlapping(page.as_ptr(), base.add(at as usize), META_SIZE);
        }
        return Ok(());
    }
    data.write_at(at, &mut [IoSlice::new(page.as_slice())])
        .map_err(Error::io_at("write a meta page", data.path()))
}

/// The meta as it goes into this file: in an encrypted one with the proof of who has written it.
pub(crate) fn authenticated(data: &dyn DataFile, meta: &Meta) -> Meta {
    let of = |decryption: Arc<dyn Decryption>| {
        decryption.authenticator(meta.to_authenticate().as_slice())
    };
    Meta { authenticator: data.decryption().map(of), ..meta.clone() }
}

/// What the bytes of a meta page of this file are. In an encrypted file a meta is none that nobody with the key has written.
fn read_meta(data: &dyn DataFile, page: &[u8]) -> Reading {
    match Meta::read(page) {
        Reading::Meta(meta, _)
            if data.decryption().is_some() && *meta != authenticated(data, &meta) =>
        {
            Reading::Useless(Damage("nobody who has the key of the store has written this meta"))
        }
        Reading::Prepared(_) if data.decryption().is_some() => {
            Reading::Useless(Damage("nothing can be prepared in an encrypted store"))
        }
        reading => reading,
    }
}

/// The meta that these bytes of the file are.
fn decode(data: &dyn DataFile, page: &[u8], shift: u32) -> Option<Meta> {
    match read_meta(data, page) {
        Reading::Meta(meta, _) => Some(*meta).filter(|meta| meta.page_shift == shift),
        _ => None,
    }
}

/// Wipes metas newer than the newest published commit: of a writer that was killed before it
/// published, or of commits that were not trusted at open. As long as they are in the file, a
/// later open could trust them although their pages have been used again. The caller holds the
/// writer lock and has written no page yet. It flushes the file before it does, and then calls
/// [`forget`] with the answer: should it be killed before that, the next writer does it all again.
/// What is prepared stays, and only the slot that says so: another one with the same number is of somebody
/// who was killed in the middle of its commit.
pub(crate) fn wipe_unpublished(
    data: &dyn DataFile,
    shared: &Shared,
    shift: u32,
) -> Result<Vec<(usize, u64)>> {
    let newest = shared.newest();
    let mut wiped = Vec::new();
    for i in 0..SLOT_WORDS.len() {
        let word = word(shared, i);
        if word >> 2 <= newest || is_prepared(word) || has(Bug::UnpublishedNotCleared) {
            continue;
        }
        if has(Bug::PreparedNumberSpared)
            && prepared(shared).is_some_and(|(_, txn)| word >> 2 == txn)
        {
            continue;
        }
        wipe(data, i, shift)?;
        wiped.push((i, word >> 2));
    }
    Ok(wiped)
}

/// Records which meta a slot holds.
pub(crate) fn set_seal(shared: &Shared, i: usize, seal: u64) {
    shared.word(SEAL_WORDS[i]).store(seal, Ordering::SeqCst);
}

/// Nothing is known of the metas.
pub(crate) fn forget_all(shared: &Shared) {
    (0..SLOT_WORDS.len()).for_each(|i| set_slot(shared, i, 0, SlotState::Weak));
}

/// Whether the newest of the metas in the file is one that its slot is said to hold, with all its content.
pub(crate) fn newest_is_in_its_slot(shared: &Shared, metas: &[(usize, Meta)]) -> bool {
    let newest = metas.first().map_or(0, |(_, meta)| meta.txn);
    let in_its_slot = |i: usize, meta: &Meta| {
        let seal = shared.word(SEAL_WORDS[i]).load(Ordering::SeqCst);
        slot(shared, i).txn == meta.txn && seal == meta.seal()
    };
    metas.iter().any(|(i, meta)| meta.txn == newest && in_its_slot(*i, meta))
}

/// The newest commit that any slot reports, be it published or not.
pub(crate) fn newest_in_slots(shared: &Shared) -> u64 {
    slots(shared).map(|(_, s)| s.txn).max().unwrap_or(0)
}

/// Whether slot `i` is said to hold the meta of `txn`, in whatever form.
pub(crate) fn slot_holds(shared: &Shared, i: usize, txn: u64) -> bool {
    slot(shared, i).txn == txn
}

/// The newest of the metas that [`wipe_unpublished`] would wipe. The caller holds the meta lock, so
/// none belongs to a commit that is about to be published.
pub(crate) fn unpublished(shared: &Shared) -> Option<u64> {
    let newest = shared.newest();
    let words = words(shared).into_iter().filter(|word| !is_prepared(*word));
    words.map(txn_of).filter(|txn| *txn > newest).max()
}

/// The wiped metas are gone from the disk. The caller holds the meta lock again; a checkpoint may
/// have used a slot meanwhile.
pub(crate) fn forget(shared: &Shared, wiped: &[(usize, u64)]) {
    for &(i, txn) in wiped {
        if slot(shared, i).txn == txn {
            set_slot(shared, i, 0, SlotState::Weak);
        }
    }
}

/// A copy of the meta bytes at page `i`, if the file has them.
fn bytes(data: &dyn DataFile, len: u64, i: u64, shift: u32) -> Option<[u8; META_SIZE]> {
    let at = i << shift;
    if at + META_SIZE as u64 > len.min(data.reserved()) {
        return None;
    }
    let mut copy = [0; META_SIZE];
    // SAFETY: the range lies inside file and map. Another process may be writing the page; the
    // copy is checked by its checksum, never trusted as it is.
    unsafe {
        std::ptr::copy_nonoverlapping(
            data.metas_base().add(at as usize),
            copy.as_mut_ptr(),
            META_SIZE,
        );
    }
    Some(copy)
}

/// A copy of the page after the metas of an encrypted file, in which its header is.
#[cfg(feature = "encryption")]
pub(crate) fn header_page(data: &dyn DataFile, shift: u32) -> Option<Vec<u8>> {
    let (at, len) = (META_COUNT << shift, 1 << shift);
    if at + len as u64 > data.len().ok()?.min(data.reserved()) {
        return None;
    }
    let mut copy = vec![0; len];
    // SAFETY: the range lies inside file and map; the copy is checked by its checksum.
    unsafe {
        std::ptr::copy_nonoverlapping(data.metas_base().add(at as usize), copy.as_mut_ptr(), len);
    }
    Some(copy)
}

/// What the start of a file is.
pub(crate) enum Found {
    /// No byte, or only zeros of a creation that was cut off.
    Nothing,
    /// Valid metas, newest first, each with its slot.
    Metas(Vec<(usize, Meta)>),
    /// A store, but no meta of it is whole.
    Damaged,
    /// A store of another format version.
    Version(u32),
    /// Something else.
    Foreign(&'static str),
}

/// Why a file with such a start cannot be opened.
pub(crate) fn unusable(found: Found, data: &dyn DataFile) -> Error {
    let damaged = |reason| Error::Corrupted { page: PageNo(0), reason };
    match found {
        Found::Nothing => damaged("the file is empty, its creation was cut off"),
        Found::Metas(_) | Found::Damaged => damaged("no meta page is whole"),
        Found::Version(found) => Error::version(found, data.path()),
        Found::Foreign(found) => {
            Error::NotAStore { path: Box::new(data.path().to_path_buf()), found }
        }
    }
}

/// Longest file that is taken for a cut-off creation.
const RESIDUE_MAX: u64 = 1 << 20;

/// Reads the metas of a file.
pub(crate) fn read(data: &dyn DataFile) -> Result<Found> {
    let len = data.len().map_err(Error::io_at("find the length of", data.path()))?;
    if len == 0 {
        return Ok(Found::Nothing);
    }
    let mut version = None;
    for shift in 12..=16 {
        let mut metas = Vec::new();
        for i in 0..META_COUNT {
            let Some(page) = bytes(data, len, i, shift) else { continue };
            version = version.or(Meta::version_of(&page));
            if let Some(newer) = Meta::newer_version(&page, shift) {
                return Ok(Found::Version(newer));
            }
            metas.extend(decode(data, &page, shift).map(|meta| (i as usize, meta)));
        }
        if let Some(uuid) = metas.iter().max_by_key(|(_, m)| m.txn).map(|(_, m)| m.uuid) {
            metas.retain(|(_, m)| m.uuid == uuid);
            metas.sort_by_key(|(_, m)| std::cmp::Reverse((m.txn, m.trust != Trust::Weak)));
            return Ok(Found::Metas(metas));
        }
    }
    Ok(match version {
        _ if is_residue(data, len) => Found::Nothing,
        Some(version) if Meta::is_known(version) => Found::Damaged,
        Some(version) => Found::Version(version),
        None if data.is_fixed() => Found::Foreign(
            "a device that is not blank: to make it a store, set its first and its last MiB to zeros",
        ),
        None if len < META_SIZE as u64 => Found::Foreign("a file shorter than a page"),
        None => Found::Foreign("no magic number of a store at its start"),
    })
}

/// Zeros, or some sectors of a first meta and zeros otherwise.
fn is_residue(data: &dyn DataFile, len: u64) -> bool {
    if data.is_fixed() {
        return is_blank(data, len);
    }
    if len > RESIDUE_MAX.min(data.reserved()) {
        return false;
    }
    // SAFETY: the range lies inside file and map, see above; a file that is not yet a store has
    // no writer.
    let bytes = unsafe { std::slice::from_raw_parts(data.metas_base(), len as usize) };
    match bytes.split_at_checked(META_SIZE) {
        Some((first, rest)) => Meta::is_residue(first) && is_blank_or_header(rest),
        None => is_zero(bytes),
    }
}

/// Whether a block device may become a store: nothing is at its beginning, where file systems and partition tables are,
/// but the residue of a creation, and nothing at its end, where parts of arrays have their description.
fn is_blank(data: &dyn DataFile, len: u64) -> bool {
    let len = len.min(data.reserved());
    // An encrypted store is a little shorter than its device, which was looked at before.
    if len < 2 * RESIDUE_MAX && data.decryption().is_none() || len < RESIDUE_MAX {
        return false;
    }
    // SAFETY: both ranges lie inside device and map, see above.
    let (start, end) = unsafe {
        let at = |from: u64| {
            std::slice::from_raw_parts(data.metas_base().add(from as usize), RESIDUE_MAX as usize)
        };
        (at(0), at(len - RESIDUE_MAX))
    };
    let (first, rest) = start.split_at(META_SIZE);
    Meta::is_residue(first) && is_blank_or_header(rest) && is_zero(end)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| *b == 0)
}

/// Zeros, but for what the creation of an encrypted store writes first.
fn is_blank_or_header(bytes: &[u8]) -> bool {
    bytes.chunks(512).all(|sector| is_zero(sector) || crypt::is_header(sector))
}

/// The meta that the file has in slot `i`, if it is whole.
fn at(data: &dyn DataFile, i: usize, shift: u32) -> Option<Meta> {
    let page = bytes(data, data.len().ok()?, i as u64, shift)?;
    decode(data, &page, shift)
}

/// What the bytes of meta page `i` are; none where the file ends before.
pub(crate) fn reading(data: &dyn DataFile, i: u64, shift: u32) -> Option<Reading> {
    let len = data.len().ok()?;
    bytes(data, len, i, shift).map(|page| read_meta(data, &page))
}

/// The meta pages that are damaged. The caller holds the meta lock, or nobody writes.
pub(crate) fn damaged(data: &dyn DataFile, shift: u32) -> Vec<DamagedMeta> {
    let len = data.len().unwrap_or(0);
    let look = |i: u64| {
        let (sectors, commit, is_rebuilt) = match read_meta(data, &bytes(data, len, i, shift)?) {
            Reading::Meta(meta, Some(_)) => (1, Some(meta.txn), true),
            Reading::Damaged(sectors, txn) => (sectors, txn, false),
            Reading::Prepared(_)
            | Reading::Meta(_, None)
            | Reading::Empty
            | Reading::Torn
            | Reading::Useless(_) => {
                return None;
            }
        };
        Some(DamagedMeta { page: PageNo(i), sectors, commit: commit.map(TxnId), is_rebuilt })
    };
    (0..META_COUNT).filter_map(look).collect()
}

/// The newest meta as the file holds it now; the caller keeps writers away by the meta lock.
///
/// A slot may be said to hold it and hold something else: a checkpoint that failed or was killed
/// before its write, or damage. Then another slot has it: the one with the root that was published,
/// of which an open has seen that it fits into the file.
pub(crate) fn load(data: &dyn DataFile, shared: &Shared, shift: u32) -> Result<Meta> {
    newest(data, shared, shift).map(|(_, meta)| meta)
}

/// As [`load`], with its slot.
fn newest(data: &dyn DataFile, shared: &Shared, shift: u32) -> Result<(usize, Meta)> {
    let newest = shared.newest();
    let claims = (0..SLOT_WORDS.len()).filter(|&i| slot(shared, i).txn == newest);
    let root = shared.newest_root();
    let mut metas = claims.filter_map(|i| Some((i, at(data, i, shift)?)));
    let found = metas.find(|(_, meta)| Root::of(meta).to_words(shift) == root);
    found.ok_or(Error::Corrupted { page: PageNo(0), reason: "the newest meta is missing" })
}
