//! The redo log in the file: appending a record, what of the ring is needed, and what an open does with it.
//!
//! The ring's pages are taken by an ordinary commit, which is flushed before its meta, and belong to no tree. What
//! lies before the place that the steady point's meta names is needed by no commit that an open could trust, so
//! it may be overwritten; nothing else may.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering as StdOrdering;

use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::planted::{Bug, has};
use crate::redo::{HEADER, Records, parts, seal};

use super::log::Level;
use super::meta::{Meta, RedoLog};
use super::{EnvInner, WriterState, checkpoint, metas};

/// Least and greatest length of a ring.
pub(crate) const RING_MIN: u64 = 64 << 10;
const RING_MAX: u64 = 1 << 30;

/// A new ring has this part of the greatest length at least.
const START_PART: u64 = 32;
/// Beside a store the ring has this part of its length,
const STORE_PART: u64 = 4;
/// and never more than this part of what the store may have.
const BOUND_PART: u64 = 8;

/// A record is at most this part of its ring.
const RECORD_PART: u64 = 8;

impl EnvInner {
    /// Bytes that the ring may have at most, as the options say; 0 if commits are not to be logged.
    pub(crate) fn redo_max(&self) -> u64 {
        let options = &self.options;
        match options.redo_log {
            // Without a lock file nobody keeps a slot's meta in mind for others.
            _ if !options.lock_file || options.read_only => 0,
            // Its records would be readable.
            _ if self.decrypting.is_some() => 0,
            None | Some(0) => 0,
            Some(bytes) => bytes.clamp(RING_MIN, RING_MAX).next_multiple_of(1 << self.shift),
        }
    }

    /// Whether a store that has a ring is to give it back.
    pub(crate) fn is_without_log(&self) -> bool {
        self.options.redo_log == Some(0)
    }

    /// Bytes of the longest record.
    pub(crate) fn record_max(&self) -> usize {
        (self.redo_max() / RECORD_PART) as usize
    }

    /// The length of a ring for a store that has `end` pages now and may have `limit`; 0 for none.
    pub(crate) fn ring_length(&self, end: u64, limit: u64) -> u64 {
        let bytes = |pages: u64| pages << self.shift;
        let max = self.redo_max().min(bytes(limit / BOUND_PART));
        let start = (self.redo_max() / START_PART).max(RING_MIN);
        let length = bytes(end / STORE_PART).max(start).min(max);
        if max < RING_MIN { 0 } else { length.next_multiple_of(1 << self.shift).min(max) }
    }

    /// The length of the ring that is to take the place of one, so that a record of so many bytes can be appended;
    /// none if that is long enough, or as long as it may be.
    pub(crate) fn longer_ring(
        &self,
        log: &RedoLog,
        record: u64,
        has_room: bool,
        (end, limit): (u64, u64),
    ) -> Option<u64> {
        let wanted = self.ring_length(end, limit);
        let max = self.redo_max().min((limit / BOUND_PART) << self.shift);
        // What follows the store's growth waits for the end of a lap: the store may be on its way.
        let lap_is_over = log.next.pos >= log.bytes;
        let least = match record > log.bytes / RECORD_PART {
            true => (record * RECORD_PART).next_multiple_of(1 << self.shift),
            false if !has_room => log.bytes * 2,
            false if lap_is_over && wanted / 2 >= log.bytes => wanted,
            false => return None,
        };
        let length = least.max(wanted).min(max);
        (length > log.bytes && length / RECORD_PART >= record).then_some(length)
    }

    /// A record of so many bytes was appended. The thread makes the oldest part of the ring needless in time,
    /// whatever part of its greatest length the ring has.
    pub(crate) fn ring_filled(&self, log: &RedoLog, bytes: u64) {
        let part = u128::from(bytes) * u128::from(self.redo_max()) / u128::from(log.bytes.max(1));
        self.flusher.committed(u64::try_from(part).unwrap_or(u64::MAX));
    }

    /// Completes a record, [`HEADER`] bytes before its payload. Gives the log after it.
    pub(crate) fn seal_record(&self, log: &RedoLog, txn: u64, record: &mut [u8]) -> RedoLog {
        let next = seal(record, log.next, txn, self.opening);
        RedoLog { next, is_logged: true, ..*log }
    }

    /// Appends a record, and returns when it is on disk.
    pub(crate) fn append_record(&self, log: &RedoLog, record: &[u8]) -> Result<()> {
        self.write_ring(log, log.next.pos, record, !has(Bug::RecordNotFlushed))
    }

    /// The commit of a record that was appended has failed: no open is to find it.
    pub(crate) fn void_record(&self, log: &RedoLog) -> Result<()> {
        self.write_ring(log, log.next.pos, &[0; HEADER], true)
    }

    /// A failure may be that of a flush.
    fn write_ring(&self, log: &RedoLog, pos: u64, mut bytes: &[u8], durably: bool) -> Result<()> {
        // The planted bug takes the ring for longer than it is.
        let ring = if has(Bug::RecordNotWrapped) { log.bytes * 2 } else { log.bytes };
        for part in parts(pos, bytes.len() as u64, ring) {
            let (now, rest) = bytes.split_at((part.end - part.start) as usize);
            bytes = rest;
            if now.is_empty() {
                continue;
            }
            let (at, bufs) = ((log.first << self.shift) + part.start, &mut [IoSlice::new(now)]);
            let written = match durably {
                true => self.data.write_durably(at, bufs),
                false => self.data.write_at(at, bufs),
            };
            written.map_err(|source| {
                self.poison();
                let what = "the redo log cannot be written, nothing more is committed";
                self.log(Level::Error, format_args!("{what}: {source}"));
                Error::io_at("write the redo log of", self.data.path())(source)
            })?;
        }
        Ok(())
    }

    /// Whether each meta in the file names a log, which programs that know none refuse. They would take an older one
    /// for the newest commit, and lose those that are in the log. The newest commit is on disk, so that
    /// what is not in the file any more is not on disk either.
    pub(crate) fn names_log_everywhere(&self) -> bool {
        has(Bug::OldMetasLeft)
            || metas::all(self.data.as_ref(), self.shift, |meta| meta.redo.is_some())
    }

    /// Whether a record of so many bytes can be written without touching one that an open may need.
    pub(crate) fn has_room(&self, state: &mut WriterState, log: &RedoLog, bytes: u64) -> bool {
        if bytes > log.bytes / RECORD_PART {
            return false;
        }
        let end = log.next.pos.wrapping_add(bytes);
        let fits = |start: u64| end.wrapping_sub(start) <= log.bytes;
        let (birth, start) = state.redo_start;
        if birth == log.birth && fits(start) {
            return true;
        }
        let needed = match has(Bug::RingFreedTooEarly) {
            true => Some(state.meta.clone()),
            false => metas::steady_meta(self.data.as_ref(), &self.shared, self.shift),
        };
        let Some(needed) = needed.and_then(|meta| meta.redo).filter(|r| r.birth == log.birth)
        else {
            return false;
        };
        state.redo_start = (log.birth, needed.next.pos);
        fits(needed.next.pos)
    }
}

/// A store's ring. The caller is the only user of the store, and appends no record while it has it.
pub(crate) fn ring<'e>(env: &'e EnvInner, log: &RedoLog) -> Result<&'e [u8]> {
    env.reach_out(log.first + log.pages(env.shift))?;
    let len = usize::try_from(log.bytes).unwrap_or(usize::MAX);
    // SAFETY: the pages lie inside file and map. They belong to no tree and are not free, so that nobody writes
    // to them but who appends a record.
    let ring = unsafe {
        std::slice::from_raw_parts(env.data.base().add((log.first << env.shift) as usize), len)
    };
    Ok(ring)
}

/// The records after a commit.
pub(crate) fn records<'r>(ring: &'r [u8], meta: &Meta, log: &RedoLog) -> Records<'r> {
    Records::after(ring, meta.txn, log.next)
}

/// As the only user, before others are let in: what the log has after the commit that was trusted is
/// committed anew, and made steady.
pub(crate) fn recover(env: &Arc<EnvInner>) -> Result<()> {
    let meta = env.newest_meta()?;
    let Some(log) = meta.redo else { return Ok(()) };
    if records(ring(env, &log)?, &meta, &log).next().is_none() {
        return Ok(());
    }
    if env.options.read_only {
        return Err(Error::Invalid(
            "the store was not closed in order, and its newest commits are in the redo log only: \
             open it for writing once",
        ));
    }
    if env.is_poisoned() {
        return Err(Error::poisoned(env.data.path()));
    }
    // One flush at the end does for all.
    env.lazy_now.store(true, StdOrdering::Relaxed);
    let replayed = (env.checks.replay)(env);
    env.lazy_now.store(false, StdOrdering::Relaxed);
    let (first, last) = (meta.txn + 1, meta.txn + replayed?);
    env.log(
        Level::Info,
        format_args!("commits {first} to {last} were made anew from the redo log"),
    );
    checkpoint::checkpoint(env)
}

/// An operation or a number in the log that cannot be, although the record's checksum holds.
pub(crate) fn damaged(log: &RedoLog, reason: &'static str) -> Error {
    Error::Corrupted { page: PageNo(log.first), reason }
}
