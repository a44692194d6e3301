//! Transactions that are prepared: whole, on disk, and not yet part of the store. Somebody decides whether they
//! will be, be it after a crash, in another process.
//!
//! The meta of such a transaction lies in a slot of its own and bears a mark; readers and openers go on with the commit
//! before it, which is steady. The lock file names the transaction: nobody begins to write, and nobody cuts the
//! file, until it is decided. A commit writes the meta without the mark into another slot: as long as that is not on
//! disk the prepared one is. A roll-back wipes it. Before either is on disk nothing is decided.
//!
//! Who decides names the transaction by an identity, drawn by chance: after a roll-back its number is used again.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::error::{Error, Result};
use crate::num::{PageNo, TxnId};
use crate::planted::{Bug, has};
use crate::platform::DataFile;
use crate::shared::{Shared, Word};
use crate::sync::Ordering;

use super::checkpoint::{MetaLock, WriterLock, flush, free_slot, wipe_unpublished};
use super::mark::Mark;
use super::meta::{META_COUNT, Meta, Reading, Trust};
use super::metas::{self, SlotState};
use super::{EnvInner, Root, open};

/// Which prepared transaction is meant. Its number may be another one's after it was rolled back, this is its own.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// let mut txn = env.write()?;
/// txn.table_or_create("t")?.put("key", "value")?;
/// let waiting = txn.prepare("job 7")?;
/// // The coordinator keeps it, as text or as a number.
/// let (text, id) = (waiting.id().to_string(), waiting.id().0);
/// assert_eq!(u64::from_str_radix(&text, 16), Ok(id));
/// let commit = env.commit_prepared(zubilo::PreparedId(id))?;
/// assert_eq!(waiting.txn(), commit);
/// // It is decided.
/// assert!(matches!(waiting.roll_back(), Err(zubilo::Error::NotPrepared)));
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PreparedId(pub u64);

impl std::fmt::Display for PreparedId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A transaction that is prepared and waits for its decision.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("store");
/// # fn show(path: &std::path::Path) -> zubilo::Result<()> {
/// # let env = zubilo::Options::new().open(path)?;
/// // After a crash: ask whoever coordinates the stores, under the name that was given.
/// let was_committed = |tag: &[u8]| tag == b"job 7";
/// if let Some(waiting) = env.prepared()? {
///     println!("{} waits since {:?}", waiting.txn, waiting.since);
///     match was_committed(&waiting.tag) {
///         true => drop(env.commit_prepared(waiting.id)?),
///         false => env.roll_back_prepared(waiting.id)?,
///     }
/// }
/// # Ok(())
/// # }
/// # show(&path).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreparedInfo {
    /// By what it is decided about.
    pub id: PreparedId,
    /// The number that it has when it is committed.
    pub txn: TxnId,
    /// What the user called it.
    pub tag: Vec<u8>,
    /// When it was prepared, by the clock of the machine.
    pub since: SystemTime,
    /// The [user words](crate::ReadTxn::user_words) as they are when it is committed.
    pub user_words: [u64; 3],
}

/// For one who begins to write: an error while a transaction is prepared. What those have begun who were killed when they
/// decided is brought to its end. The caller holds the writer lock and the meta lock.
#[cold]
pub(super) fn refuse(env: &EnvInner) -> Result<()> {
    let shared = &env.shared;
    let Some((slot, txn)) = metas::noted_prepared(shared) else { return Ok(()) };
    let (data, shift) = (env.data.as_ref(), env.shift);
    if txn <= shared.newest() {
        // It is committed, and its meta was flushed before that was published.
        let is_final = |i: &usize| {
            let found = metas::reading(data, *i as u64, shift);
            matches!(found, Some(Reading::Meta(meta, _)) if meta.txn == txn && meta.trust == Trust::Steady)
        };
        let written = metas::slots_of(shared, txn).into_iter().find(|i| *i != slot && is_final(i));
        written.into_iter().for_each(|i| metas::set_steady(shared, i, txn));
        metas::set_slot(shared, slot, 0, SlotState::Weak);
        return Ok(());
    }
    if !is_wiped(env, slot) && !has(Bug::PreparedWiped) {
        return Err(Error::Prepared { txn: TxnId(txn) });
    }
    // Whoever rolled it back was killed, perhaps before that was on disk: the caller wipes it once more.
    let again = if has(Bug::RollBackTrusted) { 0 } else { txn };
    metas::set_slot(shared, slot, again, SlotState::Weak);
    Ok(())
}

fn is_wiped(env: &EnvInner, slot: usize) -> bool {
    metas::reading(env.data.as_ref(), slot as u64, env.shift) == Some(Reading::Empty)
}

/// What is prepared. The meta is none where it is damaged, or its wipe was cut off.
struct Waiting {
    slot: usize,
    txn: u64,
    id: u64,
    meta: Option<(Meta, Mark)>,
}

impl Waiting {
    fn meta(self) -> Result<(Meta, Mark)> {
        self.meta.ok_or(Error::Corrupted {
            page: PageNo(self.slot as u64),
            reason: "the meta of the prepared transaction cannot be read: roll it back, or end all who use the store",
        })
    }
}

/// What waits for its decision, if anything does. The caller holds the meta lock.
fn waiting(env: &EnvInner) -> Option<Waiting> {
    let (slot, txn) = metas::prepared(&env.shared)?;
    match metas::reading(env.data.as_ref(), slot as u64, env.shift) {
        Some(Reading::Prepared(meta)) if meta.txn == txn => {
            let mark = meta.prepared.clone()?;
            Some(Waiting { slot, txn, id: mark.id, meta: Some((*meta, mark)) })
        }
        // Rolled back, by somebody who was killed before he said so.
        Some(Reading::Empty) => None,
        _ => Some(Waiting { slot, txn, id: env.shared.prepared_id(), meta: None }),
    }
}

/// The same as somebody names it.
fn named(env: &EnvInner, id: PreparedId) -> Result<Waiting> {
    let is_meant = |waiting: &Waiting| waiting.id == id.0 || has(Bug::PreparedByNumber);
    waiting(env).filter(is_meant).ok_or(Error::NotPrepared)
}

/// What is prepared, for the user.
pub(crate) fn info(env: &EnvInner) -> Result<Option<PreparedInfo>> {
    env.check_alive()?;
    let _lock = MetaLock::take(&env.shared)?;
    let Some(waiting) = waiting(env) else { return Ok(None) };
    let (meta, Mark { id, since, tag }) = waiting.meta()?;
    let [a, b, c, _] = meta.user_words;
    Ok(Some(PreparedInfo {
        id: PreparedId(id),
        txn: TxnId(meta.txn),
        tag,
        since: SystemTime::UNIX_EPOCH + Duration::from_secs(since.min(1 << 40)),
        user_words: [a, b, c],
    }))
}

/// Puts the meta into its slot; on disk it is when this returns. The pages are, and the caller holds the writer lock.
pub(crate) fn prepare(env: &EnvInner, meta: &Meta, mark: &Mark) -> Result<()> {
    let prepared = put_down(env, meta, mark.id);
    // The number may be used again, be it here after a roll-back or in an image of the disk as it is now.
    env.draw_opening();
    prepared
}

fn put_down(env: &EnvInner, meta: &Meta, id: u64) -> Result<()> {
    let lock = MetaLock::take(&env.shared)?;
    let slot = free_slot(env)?;
    let data = env.data.as_ref();
    metas::set_slot(&env.shared, slot, meta.txn, SlotState::Pending);
    let written = metas::write(data, &env.shared, slot, meta).and_then(|()| flush(env));
    let Err(error) = written else {
        env.shared.set_prepared_id(id);
        metas::set_prepared(&env.shared, slot, meta.txn);
        return Ok(());
    };
    if has(Bug::FailedPreparedStays) {
        return Err(error);
    }
    // Nobody is to find it, not even an open: from now on it is known not to be prepared.
    metas::set_slot(&env.shared, slot, meta.txn, SlotState::Weak);
    if env.is_poisoned() {
        // No later flush is known to have succeeded: the next open wipes it again.
        let _ = metas::wipe(data, slot, env.shift).map(|()| data.sync_data());
    } else {
        drop(lock);
        // Should this fail too, the next writer does it before anything else.
        let _ = wipe_unpublished(env);
    }
    Err(error)
}

/// Waits until nobody writes, and finds what is meant.
fn decide<'e>(
    env: &'e EnvInner,
    id: PreparedId,
) -> Result<(WriterLock<'e>, MetaLock<'e>, Waiting)> {
    env.check_writable()?;
    if !env.options.lock_file {
        return Err(Error::Invalid(
            "without its lock file nothing is decided about a prepared transaction: others may do so",
        ));
    }
    // First: where nothing waits another thread may write, or this one.
    {
        let _lock = MetaLock::take(&env.shared)?;
        named(env, id)?;
    }
    let busy = Error::Busy("the writer lock is taken");
    let writer = WriterLock::take(&env.shared, true)?.ok_or(busy)?;
    let lock = MetaLock::take(&env.shared)?;
    // A flush may have failed meanwhile.
    env.check_writable()?;
    let waiting = named(env, id)?;
    Ok((writer, lock, waiting))
}

/// Makes a prepared transaction the newest commit. It is on disk when this returns.
pub(crate) fn commit(env: &Arc<EnvInner>, id: PreparedId) -> Result<TxnId> {
    let (_writer, lock, waiting) = decide(env, id)?;
    let (old, txn) = (waiting.slot, waiting.txn);
    let (meta, _) = waiting.meta()?;
    env.reach_out(meta.end)?;
    let meta = Meta { prepared: None, ..meta };
    let (data, shared) = (env.data.as_ref(), &env.shared);
    // What one that was killed here has begun is written again, the same bytes.
    let begun = metas::slots_of(shared, txn).into_iter().find(|slot| *slot != old);
    let new = match begun {
        _ if has(Bug::PreparedOverwritten) => old,
        Some(slot) => slot,
        None => free_slot(env)?,
    };
    metas::set_slot(shared, new, txn, SlotState::Pending);
    if let Err(error) = metas::write(data, shared, new, &meta) {
        // It may be there as a whole. Should this fail too, the next decision is about both.
        let _ = metas::wipe(data, new, env.shift).and_then(|()| flush(env));
        return Err(error);
    }
    flush(env)?;
    shared.publish(&Root::of(&meta).to_words(env.shift));
    metas::set_steady(shared, new, txn);
    if old != new {
        metas::set_slot(shared, old, 0, SlotState::Weak);
    }
    drop(lock);
    if env.options.audit {
        (env.checks.audit)(env, TxnId(txn))?;
    }
    Ok(TxnId(txn))
}

/// Takes a prepared transaction back. On disk there is nothing of it when this returns.
pub(crate) fn roll_back(env: &EnvInner, id: PreparedId) -> Result<()> {
    let (_writer, _lock, Waiting { slot, txn, .. }) = decide(env, id)?;
    let mut slots = metas::slots_of(&env.shared, txn);
    // The prepared one last: with a commit that was begun and killed an open would find the transaction committed.
    slots.sort_by_key(|i| *i == slot);
    for i in &slots {
        metas::wipe(env.data.as_ref(), *i, env.shift)?;
        if !has(Bug::RollBackNotFlushed) {
            flush(env)?;
        }
    }
    slots.into_iter().for_each(|i| metas::set_slot(&env.shared, i, 0, SlotState::Weak));
    Ok(())
}

/// What the slots hold that no commit does, as an open finds it.
pub(super) struct Besides {
    /// Words of slots; a commit's meta in the same slot counts for more.
    pub(super) words: [u64; META_COUNT as usize],
    /// The slot and meta of what waits for its decision.
    found: Option<(usize, Meta)>,
}

impl Besides {
    pub(super) const NOTHING: Besides = Besides { words: [0; META_COUNT as usize], found: None };

    /// What goes on from the trusted commit `base` was on disk before anybody heard of it, and waits. All else that bears a
    /// mark is of no use, and wiped by the next writer: before this very number comes again.
    ///
    /// `before` are the words as the users before have left them, zeros where they are not known. After a failed flush, what
    /// they do not know to be on disk may not be there, and what they have wiped may still be.
    pub(super) fn find(data: &dyn DataFile, base: &Meta, before: &Before) -> Besides {
        let mut besides = Besides::NOTHING;
        if before.has_failed && !has(Bug::WipeTrusted) {
            for (word, before) in besides.words.iter_mut().zip(before.words) {
                let txn = metas::txn_of(before);
                *word = if txn > base.txn { metas::weak_word(txn) } else { 0 };
            }
        }
        for (i, meta) in metas::marked(data, base) {
            if meta.txn <= base.txn || has(Bug::PreparedForgotten) {
                continue;
            }
            let word = before.words[i];
            let is_promised = word == metas::prepared_word(meta.txn);
            let is_rejected = word == metas::weak_word(meta.txn)
                || before.has_failed && before.are_known && !is_promised;
            let waits = meta.txn == base.txn + 1 && !is_rejected && besides.found.is_none();
            besides.words[i] = match waits {
                true => metas::prepared_word(meta.txn),
                false => metas::weak_word(meta.txn),
            };
            besides.found = besides.found.or_else(|| waits.then_some((i, meta)));
        }
        besides
    }

    /// Says which transaction waits, before the words say that one does.
    pub(super) fn note(&self, shared: &Shared) {
        let Some((_, meta)) = &self.found else { return };
        let id = meta.prepared.as_ref().map_or(0, |mark| mark.id);
        shared.set_prepared_id(id);
        // Somebody has written pages for this number.
        let attempt = shared.word(Word::Attempt);
        attempt.store(attempt.load(Ordering::SeqCst).max(meta.txn), Ordering::SeqCst);
    }

    /// After a failed flush of which nobody knows when it was: the meta, which may have come to the disk or not, is written
    /// again, and flushed.
    pub(super) fn write_again(&self, data: &dyn DataFile, shared: &Shared) -> Result<()> {
        let Some((slot, meta)) = &self.found else { return Ok(()) };
        metas::write(data, shared, *slot, meta)?;
        data.sync_data().map_err(Error::io_at("flush", data.path()))
    }
}

/// What the users before have left.
pub(super) struct Before {
    /// Words of the slots.
    pub(super) words: [u64; META_COUNT as usize],
    /// The words are theirs, not zeros.
    pub(super) are_known: bool,
    /// A flush has failed.
    pub(super) has_failed: bool,
}

/// In a store without a lock file, whose users take turns: what others have prepared or decided about. The caller holds the
/// meta lock, and `base` is the newest commit.
pub(super) fn adopt(env: &EnvInner, base: &Meta) {
    let before = Before { words: [0; META_COUNT as usize], are_known: false, has_failed: false };
    let besides = Besides::find(env.data.as_ref(), base, &before);
    if let Some((slot, _)) = metas::noted_prepared(&env.shared) {
        metas::set_slot(&env.shared, slot, 0, SlotState::Weak);
    }
    besides.note(&env.shared);
    if let Some((slot, meta)) = &besides.found {
        metas::set_prepared(&env.shared, *slot, meta.txn);
    }
}

/// A number by chance, not 0, by which a transaction is decided about.
pub(crate) fn new_id() -> u64 {
    open::by_chance(3).max(1)
}
