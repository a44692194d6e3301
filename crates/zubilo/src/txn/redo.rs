//! What the write transaction notes for the redo log, and the way back: running the notes again.
//!
//! Each change of a table is counted ([`WriteTxn::change`]), and each that is noted here is counted too. Only if
//! the two agree does the record say all that the transaction did; else it commits in pages. So what
//! nobody notes is never lost, it is merely dearer.

use std::sync::Arc;

use crate::dirty::with_room;
use crate::env::redo::{damaged, records, ring};
use crate::env::{EnvInner, meta::RedoLog};
use crate::error::{Error, Result};
use crate::page::Damage;
use crate::planted::{Bug, has};
use crate::redo::{HEADER, Op, Ops, Record, put_op};

use super::catalogue::TableRef;
use super::commit_times::Part;
use super::options::needs_comparator;
use super::table::bounds_of;
use super::write::WriteTxn;

// What a record needs beside keys and values fits into the room that each operation is given.
const _: () = assert!(3 * 10 < OP_ROOM && 2 * (1 + 10) < OP_ROOM);
/// Bytes for the name of an operation, its numbers and the lengths of its strings.
const OP_ROOM: usize = 48;

/// What a transaction has noted of its changes.
#[derive(Default)]
pub(super) struct Notes {
    /// Bytes that a record may have; 0 if nothing is noted.
    max: usize,
    /// The record, with room for its header.
    record: Vec<u8>,
    so_far: Progress,
    /// The record became too long, or memory short: what was noted is gone.
    given_up: bool,
    /// The record needs a ring of so many bytes, which is longer than the one that there is.
    needs_ring: Option<u64>,
    /// The commit is made anew from the log, which goes on as given.
    replayed: Option<RedoLog>,
    /// How far notes had come when the open nested levels began.
    levels: Vec<Progress>,
}

/// What a commit in pages does to the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingChange {
    Stays,
    /// A new one of so many bytes takes the place of that which is there, if there is one.
    Comes(u64),
    Goes,
}

/// How far notes have come, for the nested level that is undone.
#[derive(Clone, Copy, Default)]
struct Progress {
    len: usize,
    /// The table that the last note was about.
    table: Option<TableRef>,
    changes: u64,
    noted: u64,
}

impl Notes {
    /// For records of at most so many bytes.
    pub(super) fn new(max: usize) -> Notes {
        Notes { max, ..Notes::default() }
    }

    /// A table is going to change.
    #[inline(always)]
    pub(super) fn changing(&mut self) {
        self.so_far.changes += 1;
    }

    pub(super) fn begin_level(&mut self) {
        self.levels.push(self.so_far);
    }

    pub(super) fn fold_level(&mut self) {
        self.levels.pop();
    }

    /// What the innermost level noted goes.
    pub(super) fn undo_level(&mut self) {
        let before = self.levels.pop();
        if let Some(before) = before.filter(|_| !has(Bug::UndoneChangesLogged)) {
            self.so_far = before;
            self.record.truncate(before.len);
        }
    }

    /// The record, if it says all that was done.
    fn complete(&self) -> Option<&[u8]> {
        let Progress { changes, noted, .. } = self.so_far;
        let all = changes == noted || has(Bug::ChangesNotLogged);
        (all && !self.given_up && self.record.len() > HEADER).then_some(&self.record)
    }

    /// Whether a note about this table is preceded by its name.
    fn turns_to(&self, table: TableRef) -> bool {
        self.so_far.table != Some(table)
    }

    fn add(&mut self, name: Option<(TableRef, Op<'_>)>, op: Op<'_>, len: usize) {
        let name_len = name.map_or(0, |_| 16);
        let room = self.record.len().max(HEADER) + len + name_len + OP_ROOM;
        if self.given_up || room > self.max || self.record.try_reserve(room).is_err() {
            (self.record, self.given_up) = (Vec::new(), true);
            return;
        }
        if self.record.is_empty() {
            self.record.resize(HEADER, 0);
        }
        if let Some((table, name)) = name {
            put_op(&mut self.record, name);
            self.so_far.table = Some(table);
        }
        put_op(&mut self.record, op);
        self.so_far.len = self.record.len();
    }
}

impl WriteTxn {
    /// Notes what the change that was counted last has done: an operation, or nothing.
    #[inline]
    pub(super) fn note(&mut self, table: TableRef, op: Option<Op<'_>>) {
        if self.notes.max > 0 {
            self.note_down(table, op);
        }
    }

    fn note_down(&mut self, table: TableRef, op: Option<Op<'_>>) {
        let Some(op) = op else {
            self.notes.so_far.noted += 1;
            return;
        };
        // The caller's functions are unknown at replay.
        let Ok(tree) = self.catalogue.tree(table) else { return };
        if needs_comparator(&tree.desc.options) {
            return;
        }
        let of_all = matches!(op, Op::Clear | Op::Drop | Op::DeleteRange(..));
        if of_all && table == TableRef::CATALOGUE {
            return;
        }
        let turns = self.notes.turns_to(table);
        let name = match table {
            _ if !turns => None,
            TableRef::CATALOGUE => Some((table, Op::Catalogue)),
            _ => Some((table, Op::Table(self.catalogue.name(table)))),
        };
        let name_len = name.map_or(0, |_| self.catalogue.name(table).len());
        self.notes.add(name, op, op.len() + name_len);
        self.notes.so_far.noted += 1;
    }

    /// Notes the user's numbers, which are in no table.
    pub(super) fn note_words(&mut self, words: [u64; 3]) {
        self.notes.so_far.changes += 1;
        if self.notes.max > 0 {
            self.notes.add(None, Op::Words(words), 0);
            self.notes.so_far.noted += 1;
        }
    }

    /// The log that the commit is to be appended to: if its record says all, is much shorter than its `pages`,
    /// and finds room. A durable one must follow a commit that is in the log or on disk. One that may be lost need
    /// not: it counts as logged when a commit is on disk from which on all have records.
    pub(super) fn log_to_append(&mut self, pages: u64) -> Result<Option<RedoLog>> {
        let Some(record) = self.notes.complete() else { return Ok(None) };
        let len = record.len() as u64;
        let extras = self.space.has_changes() || !self.ws.spilled().is_empty();
        if extras || self.is_hard_to_judge() || len * 2 > pages << self.env.shift {
            return Ok(None);
        }
        let Some(log) = self.space.meta()?.redo else { return Ok(None) };
        let follows = log.is_logged
            || self.env.steady() >= self.space.logged_since()?
            || has(Bug::GapInTheLog);
        let may_append = follows || !self.env.is_sync();
        if !may_append || !log.is_logged && !self.env.names_log_everywhere() {
            return Ok(None);
        }
        let Some(has_room) = self.space.has_room_for_record(&log, len)? else { return Ok(None) };
        if !self.space.ring_stays(&log) {
            let store = self.space.extent_of_store()?;
            self.notes.needs_ring = self.env.longer_ring(&log, len, has_room, store);
        }
        let log = RedoLog { is_logged: follows || has(Bug::HopeTakenForLog), ..log };
        Ok((has_room && self.notes.needs_ring.is_none()).then_some(log))
    }

    /// Appends the record of the commit: a durable one is on disk then, with all that come before it.
    pub(super) fn append_record(&mut self, log: &RedoLog, record: &[u8]) -> Result<()> {
        let flush_from = match log.has_unflushed && self.env.steady() < self.base.txn {
            _ if !self.env.is_sync() => None,
            true if !has(Bug::EarlierRecordsNotFlushed) => Some(self.space.log_start()?),
            _ => Some(log.next.pos),
        };
        self.env.append_record(log, record, flush_from)?;
        if flush_from.is_some() {
            self.clock.lap(Part::Flush);
            self.clock.report.flushes += 1;
        }
        Ok(())
    }

    /// What the commit, which is made in pages, does to the redo log.
    pub(super) fn ring_change(&self) -> Result<RingChange> {
        let is_ordinary = !self.space.has_changes() && !self.space.is_compacting();
        let log = self.space.meta()?.redo;
        if self.notes.replayed.is_some() || !is_ordinary {
            return Ok(RingChange::Stays);
        }
        Ok(match log {
            Some(_) if self.env.is_without_log() => RingChange::Goes,
            Some(_) => self.notes.needs_ring.map_or(RingChange::Stays, RingChange::Comes),
            None if self.notes.max == 0 => RingChange::Stays,
            None => {
                let (end, limit) = self.space.extent_of_store()?;
                match self.env.ring_length(end, limit) {
                    0 => RingChange::Stays,
                    bytes => RingChange::Comes(bytes),
                }
            }
        })
    }

    /// The record as it was noted, for the header to be filled in.
    pub(super) fn take_record(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.notes.record)
    }

    /// The log after this commit, if that is made anew from it.
    pub(super) fn replayed(&self) -> Option<RedoLog> {
        self.notes.replayed
    }

    fn apply(&mut self, log: &RedoLog, record: &Record) -> Result<()> {
        let wrong = |Damage(reason)| damaged(log, reason);
        let no_table = || damaged(log, "an operation on a table that is not there");
        let mut table = None;
        for op in Ops::new(&record.ops) {
            match op.map_err(wrong)? {
                Op::Table(name) => {
                    let found = self.open_table(name)?.ok_or_else(no_table)?;
                    if needs_comparator(&self.tree(found)?.desc.options) {
                        return Err(damaged(log, "an operation on a table in a caller's order"));
                    }
                    table = Some(found);
                }
                Op::Catalogue => table = Some(TableRef::CATALOGUE),
                Op::Clear | Op::Drop | Op::DeleteRange(..)
                    if table == Some(TableRef::CATALOGUE) =>
                {
                    return Err(damaged(log, "the redo log removes the table of names"));
                }
                Op::Put(key, value) => {
                    self.put(table.ok_or_else(no_table)?, key, value, true)?;
                }
                Op::Add(key, value) => {
                    self.put_any_value(table.ok_or_else(no_table)?, key, value)?;
                }
                Op::Delete(key) => {
                    self.delete(table.ok_or_else(no_table)?, key)?;
                }
                Op::DeleteValue(key, value) => {
                    self.delete_value(table.ok_or_else(no_table)?, key, value)?;
                }
                Op::Sequence(next) => self.set_sequence(table.ok_or_else(no_table)?, next)?,
                Op::DeleteRange(start, end) => {
                    let bounds = bounds_of::<&[u8]>((start, end));
                    self.delete_range(table.ok_or_else(no_table)?, &bounds)?;
                }
                Op::Clear => self.clear(table.ok_or_else(no_table)?)?,
                Op::Drop => self.drop_opened(table.take().ok_or_else(no_table)?)?,
                Op::Words(words) => self.set_user_words(words)?,
            }
        }
        Ok(())
    }
}

/// Makes the commits anew whose records are in the redo log, each with its own number; none is flushed. Gives
/// how many.
pub(crate) fn replay(env: &Arc<EnvInner>) -> Result<u64> {
    let meta = env.newest_meta()?;
    let Some(log) = meta.redo else { return Ok(0) };
    // Copied: what is made anew goes to free pages, and a file that lies may call those of the ring free.
    let bytes = ring(env, &log)?;
    let mut ring = with_room(bytes.len()).ok_or(Error::no_memory("read the redo log"))?;
    ring.extend_from_slice(bytes);
    let mut count = 0;
    for record in records(&ring, &meta, &log) {
        let mut txn = WriteTxn::begin_unlogged(env)?;
        if txn.id().0 != record.txn {
            return Err(damaged(&log, "a record of another commit"));
        }
        txn.notes.replayed =
            Some(RedoLog { next: record.next, is_logged: true, has_unflushed: false, ..log });
        txn.apply(&log, &record)?;
        if txn.commit()?.0 != record.txn {
            return Err(damaged(&log, "a record that changes nothing"));
        }
        count += 1;
    }
    Ok(count)
}
