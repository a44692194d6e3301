//! The commit that the caller of an open has chosen, instead of the one that the open would trust.
//!
//! [`commits`] lists what the metas of a file name. A chosen commit is looked at by `look`, which changes nothing in the
//! file, or made the newest one by `go_back`, which the caller must have asked for in so many words. That
//! happens only if the commit is whole, and such that a stop at any moment leaves either the store of before or the
//! one of after: first a steady meta of the chosen commit is on disk, then the metas of the others go one by
//! one, the newest last. As long as it is there no stale one below it is looked at.

use std::io::IoSlice;

use crate::error::{Error, Result};
use crate::num::{PageNo, TxnId};
use crate::platform::DataFile;
use crate::shared::{Shared, Word};
use crate::sync::Ordering;

use super::info::{CommitState, StoredCommit};
use super::meta::{META_COUNT, META_SIZE, Meta, Reading, Trust};
use super::metas::{self, Found};
use super::open::{self, TrustRule};
use super::options::Options;
use super::prepared::Besides;
use super::{Checks, EnvInner, Root};

/// What the meta pages of a file name. Others may be writing to it.
pub(crate) fn commits(
    data: &dyn DataFile,
    boot_id: [u8; 16],
    checks: &'static Checks,
) -> Result<Vec<StoredCommit>> {
    let metas = match metas::read(data)? {
        Found::Metas(metas) => metas,
        Found::Nothing | Found::Damaged => Vec::new(),
        Found::Version(found) => return Err(Error::version(found, data.path())),
        Found::Foreign(found) => {
            return Err(Error::NotAStore { path: Box::new(data.path().to_path_buf()), found });
        }
    };
    let Some((_, newest)) = metas.first() else { return Ok(Vec::new()) };
    let shift = newest.page_shift;
    let len = data.len().map_err(Error::io_at("find the length of", data.path()))?;
    let rule = TrustRule { data, metas: &metas, len, boot_id, doubt: true, checks };
    let look = |page: u64| {
        let meta = rule.metas.iter().find(|(slot, _)| *slot as u64 == page).map(|(_, meta)| meta);
        let (txn, state) = match (meta, metas::reading(data, page, shift)?) {
            (Some(meta), _) => (Some(meta.txn), state_of(&rule, meta)),
            (None, Reading::Empty) => return None,
            (None, Reading::Prepared(meta)) => (Some(meta.txn), CommitState::Prepared),
            (None, Reading::Torn) => (None, CommitState::Torn),
            (None, Reading::Damaged(_, txn)) => (txn, CommitState::Damaged),
            (None, Reading::Meta(..) | Reading::Useless(_)) => (None, CommitState::Damaged),
        };
        let used_len = meta.map_or(0, |meta| meta.end << shift);
        Some(StoredCommit { page: PageNo(page), txn: txn.map(TxnId), state, used_len })
    };
    let mut commits: Vec<_> = (0..META_COUNT).filter_map(look).collect();
    commits.sort_by_key(|commit| std::cmp::Reverse(commit.txn));
    Ok(commits)
}

fn state_of(rule: &TrustRule<'_>, meta: &Meta) -> CommitState {
    match (rule.is_within(meta), meta.trust) {
        (false, _) => CommitState::Truncated,
        (true, Trust::Weak) => CommitState::Unflushed,
        (true, _) if rule.is_steady(meta) => CommitState::OnDisk,
        (true, _) => CommitState::Incomplete,
    }
}

pub(super) const IN_USE: &str =
    "the store is in use: a commit is chosen by its only user, so end the other processes first";

/// Brings a store up at the chosen commit.
pub(super) fn bring_up(
    data: &dyn DataFile,
    shared: &Shared,
    boot_id: [u8; 16],
    checks: &'static Checks,
    options: &Options,
    txn: TxnId,
) -> Result<u32> {
    let metas = open::found_or_created(data, shared, boot_id, options, None)?;
    let len = data.len().map_err(Error::io_at("find the length of", data.path()))?;
    let rule = TrustRule { data, metas: &metas, len, boot_id, doubt: true, checks };
    let chosen = metas.iter().find(|(_, meta)| meta.txn == txn.0);
    let (slot, meta) = chosen.ok_or(Error::Invalid(
        "no meta page names the chosen commit: Env::stored_commits lists those that are named",
    ))?;
    refuse_truncated(&rule, meta)?;
    if options.read_only {
        return Ok(look(shared, (*slot, meta), &rule));
    }
    go_back(shared, (*slot, meta), &rule)?;
    let attempt = shared.word(Word::Attempt).load(Ordering::SeqCst);
    let shift = open::bring_up(data, shared, boot_id, checks, options)?;
    // Pages of commits that were given up bear the numbers of those that come next.
    let attempt = attempt.max(given_up(&rule)).max(txn.0) + 1;
    shared.word(Word::Attempt).store(attempt, Ordering::SeqCst);
    Ok(shift)
}

/// The greatest number of a commit that a file has a meta of.
fn given_up(rule: &TrustRule<'_>) -> u64 {
    rule.metas.iter().map(|(_, meta)| meta.txn).max().unwrap_or(0)
}

/// Whether all that a commit wrote is there. After a power cut a page may be missing that bore the same number before:
/// then only the free-space log tells the old one from the new, and only if that was on disk.
fn is_written(rule: &TrustRule<'_>, meta: &Meta) -> bool {
    let is_of_this_boot = open::is_weak_of(meta, rule.boot_id);
    let on_disk = match meta.trust {
        Trust::Weak if !is_of_this_boot => rule.on_disk(),
        _ => u64::MAX,
    };
    rule.is_within(meta) && rule.is_whole(meta, on_disk)
}

/// The same of the commit that is looked at.
pub(crate) fn is_as_written(env: &EnvInner) -> Result<bool> {
    let (data, boot_id, checks) = (env.data.as_ref(), env.boot_id, env.checks);
    let Found::Metas(metas) = metas::read(data)? else { return Ok(false) };
    let len = data.len().map_err(Error::io_at("find the length of", data.path()))?;
    let rule = TrustRule { data, metas: &metas, len, boot_id, doubt: true, checks };
    let meta = env.newest_meta()?;
    Ok(is_written(&rule, &meta))
}

fn refuse_truncated(rule: &TrustRule<'_>, meta: &Meta) -> Result<()> {
    match rule.is_within(meta) {
        true => Ok(()),
        false => Err(Error::Corrupted {
            page: PageNo(rule.len >> meta.page_shift),
            reason: "the chosen commit reaches beyond the end of the file",
        }),
    }
}

/// Publishes the chosen commit in a region that nobody else sees, and changes nothing else.
fn look(shared: &Shared, (slot, meta): (usize, &Meta), rule: &TrustRule<'_>) -> u32 {
    shared.word(Word::FileLen).store(rule.len, Ordering::SeqCst);
    let is_steady = |m: &Meta| m.txn == meta.txn;
    open::fill_lock_file(shared, rule.metas, (slot, meta), is_steady, &Besides::NOTHING);
    shared.publish(&Root::of(meta).to_words(meta.page_shift));
    meta.page_shift
}

/// Makes the chosen commit the newest of the file, for ever. The caller is the only user of the store.
fn go_back(shared: &Shared, (slot, meta): (usize, &Meta), rule: &TrustRule<'_>) -> Result<()> {
    let (data, metas) = (rule.data, rule.metas);
    if shared.was_poisoned_on_this_boot().is_some_and(|steady| meta.txn > steady) {
        return Err(Error::poisoned(rule.data.path()));
    }
    if !is_written(rule, meta) {
        return Err(Error::Corrupted {
            page: PageNo(slot as u64),
            reason: "the chosen commit is not whole, so nothing was discarded: look at it with an open for \
                     reading only, or at what Salvage finds of it",
        });
    }
    let flush = || data.sync_data().map_err(Error::io_at("flush", data.path()));
    // From here on nobody uses what the lock file knew.
    shared.distrust();
    metas::forget_all(shared);
    // What was found whole may still be in the kernel only.
    flush()?;
    let kept = write_steady(shared, (slot, meta), rule)?;
    flush()?;
    let newest_last =
        |i: &usize| metas.iter().find(|(slot, _)| slot == i).map_or(0, |(_, m)| m.txn);
    let mut others: Vec<usize> = (0..META_COUNT as usize).filter(|i| *i != kept).collect();
    others.sort_by_key(newest_last);
    for i in others {
        let is_older = metas.iter().any(|(slot, m)| *slot == i && m.txn < meta.txn);
        let reading = metas::reading(data, i as u64, meta.page_shift);
        if is_older || reading.is_none_or(|reading| reading == Reading::Empty) {
            continue;
        }
        let at = (i as u64) << meta.page_shift;
        let wiped = data.write_at(at, &mut [IoSlice::new(&[0; META_SIZE])]);
        wiped.map_err(Error::io_at("wipe a meta page", data.path()))?;
        flush()?;
    }
    Ok(())
}

/// Writes the chosen commit as a steady one into another slot, neither that of the newest commit nor that of the one
/// that an open would trust: the write may be cut off. Gives the slot.
fn write_steady(
    shared: &Shared,
    (slot, meta): (usize, &Meta),
    rule: &TrustRule<'_>,
) -> Result<usize> {
    let (data, metas) = (rule.data, rule.metas);
    let newest = metas.first().map(|(slot, _)| *slot);
    let trusted = metas.iter().find(|(_, meta)| rule.is_trusted(meta)).map(|(slot, _)| *slot);
    let held = |i: usize| metas.iter().find(|(slot, _)| *slot == i).map(|(_, meta)| meta.txn);
    let loss = |i: &usize| match held(*i) {
        None => (0, 0),
        Some(txn) if txn <= meta.txn => (1, txn),
        Some(txn) => (2, txn),
    };
    let free =
        (0..META_COUNT as usize).filter(|i| ![Some(slot), newest, trusted].contains(&Some(*i)));
    let kept = free.min_by_key(loss).unwrap_or(slot);
    let mut meta = meta.clone();
    (meta.trust, meta.digest, meta.opening) = (Trust::Steady, 0, open::by_chance(1) as u32);
    if let Some(redo) = &mut meta.redo {
        // The records that follow in the log are of commits that are given up: this seed fits none.
        redo.next.chain = open::by_chance(2);
        (redo.is_logged, redo.has_unflushed) = (false, false);
    }
    metas::write(data, shared, kept, &meta)?;
    Ok(kept)
}
