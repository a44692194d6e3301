//! The redo log in the file: appending a record, what of the ring is needed, and what an open does with it.
//!
//! The ring's pages are taken by an ordinary commit, which is flushed before its meta, and belong to no tree. What
//! lies before the place that the steady point's meta names is needed by no commit that an open could trust, so
//! it may be overwritten; nothing else may.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering as StdOrdering;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::num::PageNo;
use crate::planted::{Bug, has};
use crate::redo::{HEADER, Records, parts, seal};

use super::log::Level;
use super::meta::{Meta, RedoLog};
use super::options::Durability;
use super::{EnvInner, WriterState, checkpoint, facade, metas};

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
            // Nothing is promised.
            _ if options.durability == Durability::NoSync => 0,
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
        let part = |whole: u64| {
            let part = u128::from(bytes) * u128::from(whole) / u128::from(log.bytes.max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        self.flusher.committed(match self.flusher.limit() {
            _ if self.is_sync() => part(self.redo_max()),
            // By time alone.
            u64::MAX => bytes,
            // It is woken by each quarter of the ring.
            limit => part(limit.saturating_mul(4)).clamp(bytes, limit.max(bytes)),
        });
    }

    /// Completes a record, [`HEADER`] bytes before its payload. Gives the log after it.
    pub(crate) fn seal_record(&self, log: &RedoLog, txn: u64, record: &mut [u8]) -> RedoLog {
        let next = seal(record, log.next, txn, self.opening());
        RedoLog { next, has_unflushed: !self.is_sync(), ..*log }
    }

    /// Appends a record. If records are to be flushed, from a place on, it returns when they are on disk.
    pub(crate) fn append_record(
        &self,
        log: &RedoLog,
        record: &[u8],
        flush_from: Option<u64>,
    ) -> Result<()> {
        let at = log.next.pos;
        let is_weak = flush_from.is_none();
        let flush_from = flush_from.filter(|_| !has(Bug::RecordNotFlushed));
        if let Err(error) = self.write_ring(log, at, record, flush_from == Some(at)) {
            if is_weak {
                // It may be whole.
                self.void_record(log)?;
            }
            return Err(error);
        }
        match flush_from {
            Some(from) if from != at => {
                self.flush_records(log, from, at.wrapping_add(record.len() as u64))
            }
            _ => Ok(()),
        }
    }

    /// Makes durable what lies in the ring from one place to before another.
    fn flush_records(&self, log: &RedoLog, from: u64, to: u64) -> Result<()> {
        let start = Instant::now();
        let count = if has(Bug::RingFlushNotWrapped) { 1 } else { 2 };
        for part in parts(from, to.wrapping_sub(from), log.bytes).into_iter().take(count) {
            if !part.is_empty() {
                let at = (log.first << self.shift) + part.start;
                let flushed = self.data.sync_range(at, part.end - part.start);
                flushed.map_err(|source| self.lost_records(source, "flush the redo log of"))?;
            }
        }
        self.count_flush(start);
        facade::flush(self, start);
        Ok(())
    }

    /// Makes the newest commit durable by its record: no page is flushed. False if that is not in the log, or if
    /// the ring is half full, so that a checkpoint is due.
    pub(crate) fn flush_ring(&self) -> Result<bool> {
        if self.redo_max() == 0 || self.is_sync() {
            return Ok(false);
        }
        self.check_writable()?;
        let (newest, steady) = {
            let _lock = checkpoint::MetaLock::take(&self.shared)?;
            let newest = metas::load(self.data.as_ref(), &self.shared, self.shift)?;
            (newest, metas::steady_meta(self.data.as_ref(), &self.shared, self.shift))
        };
        // In a copy of the file a weak commit can be whole and its record missing. The commit after it is flushed.
        let is_known = newest.opening == self.opening() || has(Bug::RecordOfCopyTrusted);
        let log = newest.redo.filter(|log| log.is_logged && is_known);
        let (Some(log), Some(start)) = (log, steady.and_then(|meta| meta.redo)) else {
            return Ok(false);
        };
        let used = log.next.pos.wrapping_sub(start.next.pos);
        if start.birth != log.birth || used > log.bytes / 2 {
            return Ok(false);
        }
        self.flush_records(&log, start.next.pos, log.next.pos)?;
        Ok(true)
    }

    /// The commit of a record that was appended has failed: no open is to find it. If that cannot be had, a store of
    /// durable commits is poisoned. Else nothing but the failed commit is at stake, and the next one, which is made in
    /// pages and flushed, as its number was tried before, ends the log before the record.
    pub(crate) fn void_record(&self, log: &RedoLog) -> Result<()> {
        match self.is_sync() {
            true => self.write_ring(log, log.next.pos, &[0; HEADER], true),
            false => {
                let _ = self.write_ring(log, log.next.pos, &[0; HEADER], false);
                Ok(())
            }
        }
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
            written.map_err(|source| match durably {
                true => self.lost_records(source, "write the redo log of"),
                false => Error::io_at("write the redo log of", self.data.path())(source),
            })?;
        }
        Ok(())
    }

    /// Nobody knows what of the log is on disk.
    fn lost_records(&self, source: std::io::Error, what: &'static str) -> Error {
        self.poison();
        let consequence = "the redo log cannot be written, nothing more is committed";
        self.log(Level::Error, format_args!("{consequence}: {source}"));
        Error::io_at(what, self.data.path())(source)
    }

    /// Whether each meta in the file names a log, which programs that know none refuse. They would take an older one
    /// for the newest commit, and lose those that are in the log. The newest commit is on disk, so that
    /// what is not in the file any more is not on disk either.
    pub(crate) fn names_log_everywhere(&self) -> bool {
        has(Bug::OldMetasLeft)
            || metas::all(self.data.as_ref(), self.shift, |meta| meta.redo.is_some())
    }

    /// Whether a record of so many bytes can be written without touching one that an open may need; none if the ring
    /// is not that of the steady point.
    pub(crate) fn has_room(
        &self,
        state: &mut WriterState,
        log: &RedoLog,
        bytes: u64,
    ) -> Option<bool> {
        let is_short = bytes <= log.bytes / RECORD_PART;
        let end = log.next.pos.wrapping_add(bytes);
        let fits = |start: u64| end.wrapping_sub(start) <= log.bytes;
        let (birth, start) = state.redo_start;
        if birth == log.birth && fits(start) {
            return Some(is_short);
        }
        let needed = match has(Bug::RingFreedTooEarly) {
            true => Some(state.meta.clone()),
            false => metas::steady_meta(self.data.as_ref(), &self.shared, self.shift),
        };
        let needed = needed?.redo.filter(|needed| needed.birth == log.birth)?;
        state.redo_start = (log.birth, needed.next.pos);
        Some(is_short && fits(needed.next.pos))
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
