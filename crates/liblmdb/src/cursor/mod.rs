//! Cursors: positions that outlive changes.
//!
//! A cursor stands on a record by a view into the engine's pages. Before a change, and before a
//! nested transaction, all cursors that it could disturb are parked: they keep key and value and look
//! them up again when they are used next. One whose record is deleted finds its place at once: before
//! the next record, which its first step forward gives.

mod free;
mod get;
mod write;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::c_int;

use zubilo::raw::{RawCursor, RawPlace, RawRemoved, RawStand};

use self::free::FreeList;
pub(crate) use self::write::replace_value;
use crate::abi::{FREE_DBI, MDB_dbi};
use crate::dbi::Table;
use crate::env::put_out;
use crate::errors::{Code, Result};
use crate::guard::{Magic, entry, entry_or};
use crate::txn::{MDB_txn, Work, live, txn_of, with_tables};

/// A cursor.
#[allow(non_camel_case_types)]
pub(crate) struct MDB_cursor {
    magic: Magic,
    /// The transaction that opened it; null after its end.
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    walk: RawCursor,
    note: Note,
    /// Where it stood when the nested transactions began that live now.
    shadows: Vec<(RawPlace, Note)>,
    free: Option<Box<FreeList>>,
}

/// What LMDB's cursors remember of their last step, beside the place.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Note {
    #[default]
    Nothing,
    /// It is on a key with several values because the one that was sought is not there: on none of them.
    Missed,
    /// It was to leave the last key, but there is no other.
    Ended,
}

impl MDB_cursor {
    /// The transaction that works: the one of the cursor, or its innermost child.
    fn worker<'t>(&self) -> Result<&'t mut MDB_txn> {
        if self.txn.is_null() {
            return Err(Code::BAD_TXN);
        }
        live(MDB_txn::innermost(self.txn))
    }

    /// The cursor at its place.
    #[inline]
    fn walk<'c>(&'c mut self, txn: &mut MDB_txn) -> Result<&'c mut RawCursor> {
        if !self.walk.is_attached() {
            self.attach(txn)?;
        }
        Ok(&mut self.walk)
    }

    fn attach(&mut self, txn: &mut MDB_txn) -> Result<()> {
        attach(&mut self.walk, txn, self.dbi)
    }

    /// The cursor where it stands on a record or beside one.
    fn placed<'c>(&'c mut self, txn: &mut MDB_txn) -> Result<&'c mut RawCursor> {
        let walk = self.walk(txn)?;
        match walk.stand() {
            RawStand::Nowhere => Err(Code::EINVAL),
            RawStand::End => Err(Code::NOTFOUND),
            RawStand::Placed => Ok(walk),
        }
    }

    /// The same, where it stands on a value, if its key has several.
    fn valued<'c>(&'c mut self, txn: &mut MDB_txn) -> Result<&'c mut RawCursor> {
        let missed = self.note == Note::Missed;
        match self.placed(txn)? {
            _ if missed => Err(Code::EINVAL),
            walk => Ok(walk),
        }
    }

    /// Gives up its view before a change.
    fn park(&mut self) -> Result<()> {
        if self.note == Note::Ended {
            self.note = Note::Nothing;
        }
        Ok(self.walk.park()?)
    }

    /// To nowhere.
    fn leave(&mut self) {
        self.note = Note::Nothing;
        self.walk.leave();
    }

    pub(crate) fn txn(&self) -> *mut MDB_txn {
        self.txn
    }
}

fn attach(walk: &mut RawCursor, txn: &mut MDB_txn, dbi: MDB_dbi) -> Result<()> {
    txn.table(dbi)?;
    let table = txn.slots.get(dbi as usize).and_then(|slot| slot.known());
    match (&txn.work, table) {
        (Work::Read(read), Some(Table::Read(table))) => {
            // SAFETY: at the end of the transaction and when it is reset the cursor gives up its
            // view, see `detach_all` and `park_all`.
            Ok(unsafe { walk.attach_read(read, table) }?)
        }
        (Work::Write(writer), Some(Table::Write(index))) => {
            // SAFETY: the writer lives, see `MDB_txn::writer`; before each change the cursor gives
            // up its view, see `park`.
            Ok(unsafe { walk.attach_write(&**writer, *index) }?)
        }
        _ => Err(Code::BAD_TXN),
    }
}

/// The cursor behind a handle.
#[inline]
pub(crate) fn cursor_of<'c>(cursor: *mut MDB_cursor) -> Result<&'c mut MDB_cursor> {
    if cursor.is_null() || !cursor.is_aligned() {
        return Err(Code::EINVAL);
    }
    // SAFETY: by the contract it comes from mdb_cursor_open, and one thread at a time uses it; one
    // that was closed is kept for a while, and its first word tells.
    let found = unsafe { &mut *cursor };
    if found.magic == Magic::CURSOR { Ok(found) } else { Err(Code::EINVAL) }
}

/// All cursors of a transaction and those around it.
fn each(txn: &mut MDB_txn, mut run: impl FnMut(&mut MDB_cursor) -> Result<()>) -> Result<()> {
    let mut level: *mut MDB_txn = txn;
    // SAFETY: levels outside live as long as those inside; this call is the only one at work.
    while let Some(this) = unsafe { level.as_mut() } {
        for cursor in &this.cursors {
            run(cursor_of(*cursor)?)?;
        }
        level = this.outer();
    }
    Ok(())
}

/// Before a change of a table: cursors on it are parked.
#[inline(always)]
pub(crate) fn park(txn: &mut MDB_txn, dbi: MDB_dbi) -> Result<()> {
    if txn.cursors.is_empty() && txn.outer().is_null() {
        return Ok(());
    }
    park_each(txn, dbi)
}

fn park_each(txn: &mut MDB_txn, dbi: MDB_dbi) -> Result<()> {
    let all = txn.writer_of_put()?.raw_will_spill();
    each(txn, |cursor| if all || cursor.dbi == dbi { cursor.park() } else { Ok(()) })
}

/// After a deletion: cursors on what is gone stand before what followed, those of a table that has
/// become empty nowhere.
pub(crate) fn deleted(
    txn: &mut MDB_txn,
    dbi: MDB_dbi,
    key: &[u8],
    value: Option<&[u8]>,
) -> Result<()> {
    if txn.cursors.is_empty() && txn.outer().is_null() {
        return Ok(());
    }
    let (worker, table): (*mut MDB_txn, usize) = (txn, txn.target(dbi)?);
    let empty = txn.info(dbi)?.stats.entries == 0;
    each(txn, |cursor| {
        if cursor.dbi != dbi {
            return Ok(());
        }
        if empty {
            cursor.leave();
            return Ok(());
        }
        // SAFETY: the transaction is alive and borrowed by the caller; `each` holds cursors only.
        let worker = unsafe { &mut *worker };
        if cursor.walk.is_parked_on(worker.writer_of_put()?, table, key, value) {
            cursor.attach(worker)?;
        }
        Ok(())
    })
}

/// After a deletion in a program's order: as `deleted`.
pub(crate) fn followed(txn: &mut MDB_txn, dbi: MDB_dbi, removed: &RawRemoved) -> Result<()> {
    let empty = txn.info(dbi)?.stats.entries == 0;
    each(txn, |cursor| {
        match cursor.dbi == dbi {
            true if empty => cursor.leave(),
            true => cursor.walk.follow(removed),
            false => {}
        }
        Ok(())
    })
}

/// The cursors on a pair, parked, and their places: for a change that puts another value there.
pub(crate) fn standing_on(
    txn: &mut MDB_txn,
    dbi: MDB_dbi,
    key: &[u8],
    value: &[u8],
) -> Result<Vec<(*mut MDB_cursor, RawPlace)>> {
    park(txn, dbi)?;
    let mut found = Vec::new();
    each(txn, |cursor| {
        if cursor.dbi == dbi && cursor.walk.is_noted(key, Some(value)) {
            let place = cursor.walk.place()?;
            found.push((std::ptr::from_mut(cursor), place));
        }
        Ok(())
    })?;
    Ok(found)
}

/// Puts cursors back where they were, on the value that is there now.
pub(crate) fn stand_again(cursors: Vec<(*mut MDB_cursor, RawPlace)>, value: &[u8]) -> Result<()> {
    for (cursor, place) in cursors {
        let cursor = cursor_of(cursor)?;
        cursor.walk.restore(place);
        cursor.walk.replace_value(value);
    }
    Ok(())
}

/// Before all records of a table are removed: cursors on it are nowhere then.
pub(crate) fn leave(txn: &mut MDB_txn, dbi: MDB_dbi) -> Result<()> {
    park(txn, dbi)?;
    each(txn, |cursor| {
        if cursor.dbi == dbi {
            cursor.leave();
        }
        Ok(())
    })
}

/// Before a nested transaction: all cursors remember where they are.
pub(crate) fn shadow(txn: &mut MDB_txn) -> Result<()> {
    each(txn, |cursor| {
        let place = cursor.walk.place()?;
        cursor.shadows.push((place, cursor.note));
        Ok(())
    })
}

/// The nested transaction has committed: cursors stay where they are.
pub(crate) fn keep_shadowed(txn: &mut MDB_txn) {
    let _ = each(txn, |cursor| {
        cursor.shadows.pop();
        Ok(cursor.walk.park()?)
    });
}

/// The nested transaction was undone: cursors go back to where they were.
pub(crate) fn restore_shadowed(txn: &mut MDB_txn) {
    let _ = each(txn, |cursor| {
        match cursor.shadows.pop() {
            Some((place, note)) => {
                cursor.walk.restore(place);
                cursor.note = note;
            }
            None => cursor.leave(),
        }
        Ok(())
    });
}

/// The end of a write transaction is that of its cursors.
pub(crate) fn free_all(txn: &mut MDB_txn) {
    for cursor in std::mem::take(&mut txn.cursors) {
        bury(cursor);
    }
}

/// Those of a read transaction can be closed, or used in another one.
pub(crate) fn detach_all(txn: &mut MDB_txn) {
    for cursor in std::mem::take(&mut txn.cursors) {
        if let Ok(cursor) = cursor_of(cursor) {
            cursor.leave();
            cursor.txn = std::ptr::null_mut();
        }
    }
}

/// The transaction is to pin nothing. Programs walk on with the same cursor when it was renewed.
pub(crate) fn park_all(txn: &mut MDB_txn) {
    for cursor in &txn.cursors {
        if let Ok(cursor) = cursor_of(*cursor)
            && cursor.walk.park().is_err()
        {
            cursor.leave();
        }
    }
}

/// Asks a cursor at its place.
pub(crate) fn question(
    cursor: *mut MDB_cursor,
    ask: fn(&mut RawCursor) -> zubilo::Result<bool>,
) -> Result<bool> {
    let cursor = cursor_of(cursor)?;
    let txn = cursor.worker()?;
    Ok(ask(cursor.walk(txn)?)?)
}

/// A cursor for one look-up; it is not used after the next change.
pub(crate) fn walk_on(txn: &mut MDB_txn, dbi: MDB_dbi) -> Result<RawCursor> {
    let mut walk = RawCursor::default();
    attach(&mut walk, txn, dbi)?;
    Ok(walk)
}

/// Takes a cursor off the list of its transaction.
fn unlink(cursor: *mut MDB_cursor) {
    if let Ok(found) = cursor_of(cursor)
        && let Ok(txn) = txn_of(found.txn)
    {
        txn.cursors.retain(|other| *other != cursor);
    }
}

/// Handles that ended last are kept, so that their first word can be looked at.
const KEPT: usize = 16;

thread_local! {
    static GRAVES: RefCell<VecDeque<Box<MDB_cursor>>> = const { RefCell::new(VecDeque::new()) };
}

fn bury(cursor: *mut MDB_cursor) {
    // SAFETY: made from a box in `mdb_cursor_open`; nothing refers to it any more.
    let mut cursor = unsafe { Box::from_raw(cursor) };
    cursor.magic = Magic::DEAD;
    cursor.txn = std::ptr::null_mut();
    cursor.leave();
    cursor.free = None;
    // In a thread that is about to end it goes at once.
    let _ = GRAVES.try_with(|graves| {
        let mut graves = graves.borrow_mut();
        if graves.len() >= KEPT {
            graves.pop_front();
        }
        graves.push_back(cursor);
    });
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_cursor_open(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    cursor: *mut *mut MDB_cursor,
) -> c_int {
    entry(txn, || {
        if cursor.is_null() {
            return Err(Code::EINVAL);
        }
        let this = if dbi == FREE_DBI { live(txn)? } else { with_tables(txn, dbi)? };
        let free = match dbi {
            FREE_DBI if this.is_write() => return Err(Code::EINVAL),
            FREE_DBI => Some(Box::new(FreeList::read(&this.env()?.opened()?.store)?)),
            _ => {
                this.table(dbi)?;
                None
            }
        };
        let made = Box::into_raw(Box::new(MDB_cursor {
            magic: Magic::CURSOR,
            txn,
            dbi,
            walk: RawCursor::default(),
            note: Note::Nothing,
            shadows: Vec::new(),
            free,
        }));
        this.cursors.push(made);
        put_out(cursor, made)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_cursor_close(cursor: *mut MDB_cursor) {
    entry_or(cursor, (), || {
        if cursor_of(cursor).is_ok() {
            unlink(cursor);
            bury(cursor);
        }
    });
}

/// Takes a cursor of a read transaction over into another one.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_cursor_renew(
    txn: *mut MDB_txn,
    cursor: *mut MDB_cursor,
) -> c_int {
    entry(txn, || {
        let found = cursor_of(cursor)?;
        let this = txn_of(txn)?;
        if this.is_write() {
            return Err(Code::EINVAL);
        }
        if found.dbi != FREE_DBI {
            with_tables(txn, found.dbi)?;
        }
        live(txn)?;
        // A write transaction frees its cursors: they do not leave it.
        if txn_of(found.txn).is_ok_and(|owner| owner.is_write()) {
            return Err(Code::EINVAL);
        }
        match found.dbi {
            FREE_DBI => found.free = Some(Box::new(FreeList::read(&this.env()?.opened()?.store)?)),
            dbi => drop(this.table(dbi)?),
        }
        unlink(cursor);
        found.leave();
        found.txn = txn;
        this.cursors.push(cursor);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_cursor_txn(cursor: *mut MDB_cursor) -> *mut MDB_txn {
    entry_or(cursor, std::ptr::null_mut(), || {
        cursor_of(cursor).map_or(std::ptr::null_mut(), |cursor| cursor.txn)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_cursor_dbi(cursor: *mut MDB_cursor) -> MDB_dbi {
    entry_or(cursor, 0, || cursor_of(cursor).map_or(0, |cursor| cursor.dbi))
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_cursor_count(
    cursor: *mut MDB_cursor,
    count: *mut usize,
) -> c_int {
    entry(cursor, || {
        let cursor = cursor_of(cursor)?;
        if count.is_null() {
            return Err(Code::EINVAL);
        }
        if cursor.txn.is_null() {
            return Err(Code::BAD_TXN);
        }
        // LMDB looks at the table before it looks whether the transaction has failed.
        let told = txn_of(MDB_txn::innermost(cursor.txn))?.kind(cursor.dbi);
        if told.is_ok_and(|kind| !kind.duplicates) {
            return Err(Code::INCOMPATIBLE);
        }
        let txn = cursor.worker()?;
        put_out(count, cursor.valued(txn)?.count()? as usize)
    })
}
