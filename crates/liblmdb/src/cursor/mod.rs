//! Cursors: positions that outlive changes.
//!
//! Those of a write transaction lie in the engine's registry, which keeps them right while tables change and
//! levels begin and end; here is a number. Those of a read transaction note their record before its snapshot
//! goes. One whose record is deleted stands before the next record, which its first step forward gives.

mod free;
mod get;
mod write;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::c_int;

use zubilo::CursorId;
use zubilo::raw::{RawAt, RawCursor, RawNote, RawStand, TableRef};

use self::free::FreeList;
pub(crate) use self::get::scan;
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
    walk: Walk,
    free: Option<Box<FreeList>>,
}

/// Where a cursor is kept.
#[expect(clippy::large_enum_variant, reason = "lies on the heap, with its handle")]
enum Walk {
    /// Of a read transaction, or of none.
    Read(RawCursor),
    /// In the registry of the write transaction.
    Write(CursorId),
}

impl MDB_cursor {
    /// The transaction that works: the one of the cursor, or its innermost child.
    fn worker<'t>(&self) -> Result<&'t mut MDB_txn> {
        if self.txn.is_null() {
            return Err(Code::BAD_TXN);
        }
        live(MDB_txn::innermost(self.txn))
    }

    /// The cursor, to be placed: the table behind its handle may be another one than before.
    fn place<'c>(&'c mut self, txn: &'c mut MDB_txn) -> Result<&'c mut RawCursor> {
        match &mut self.walk {
            Walk::Read(cursor) => Ok(cursor),
            Walk::Write(id) => {
                let target = txn.target(self.dbi)?;
                let writer = txn.writer_of_put()?;
                writer.raw_set_table(*id, target)?;
                Ok(writer.raw_cursor(*id)?)
            }
        }
    }

    /// The cursor in its table.
    #[inline]
    fn walk<'c>(&'c mut self, txn: &'c mut MDB_txn) -> Result<RawAt<'c>> {
        match &mut self.walk {
            Walk::Read(cursor) => look(cursor, txn, self.dbi),
            Walk::Write(id) => {
                let target = txn.target(self.dbi)?;
                Ok(txn.writer_of_put()?.raw_at(*id, target)?)
            }
        }
    }

    /// The cursor where it stands on a record or beside one.
    fn placed<'c>(&'c mut self, txn: &'c mut MDB_txn) -> Result<RawAt<'c>> {
        let mut walk = self.walk(txn)?;
        match walk.stand() {
            RawStand::Nowhere => Err(Code::EINVAL),
            RawStand::End => Err(Code::NOTFOUND),
            RawStand::Placed => Ok(walk),
        }
    }

    /// The same, where it stands on a value, if its key has several.
    fn valued<'c>(&'c mut self, txn: &'c mut MDB_txn) -> Result<RawAt<'c>> {
        match self.placed(txn)? {
            walk if walk.note() == RawNote::Missed => Err(Code::EINVAL),
            walk => Ok(walk),
        }
    }

    /// Gives up its place in a read transaction.
    fn leave(&mut self) {
        if let Walk::Read(walk) = &mut self.walk {
            walk.leave();
        }
    }

    pub(crate) fn txn(&self) -> *mut MDB_txn {
        self.txn
    }
}

/// A cursor, which is in no registry, in its table.
#[inline]
pub(crate) fn look<'c>(
    cursor: &'c mut RawCursor,
    txn: &'c mut MDB_txn,
    dbi: MDB_dbi,
) -> Result<RawAt<'c>> {
    txn.table(dbi)?;
    let table = txn.slots.get(dbi as usize).and_then(|slot| slot.known());
    match (&txn.work, table) {
        (Work::Read(read), Some(Table::Read(table))) => Ok(read.raw_at(cursor, table)?),
        (Work::Write(writer), Some(Table::Write(index))) => {
            // SAFETY: the writer lives, see `MDB_txn::writer`.
            Ok(unsafe { &**writer }.raw_look(cursor, *index)?)
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
    // that was closed is kept for a while, and its first word says so.
    let found = unsafe { &mut *cursor };
    if found.magic == Magic::CURSOR { Ok(found) } else { Err(Code::EINVAL) }
}

/// The end of a write transaction is that of its cursors.
pub(crate) fn free_all(txn: &mut MDB_txn) {
    for cursor in std::mem::take(&mut txn.cursors) {
        close(txn, cursor);
        bury(cursor);
    }
}

/// Takes a cursor out of the registry of its write transaction.
fn close(txn: &mut MDB_txn, cursor: *mut MDB_cursor) {
    if let Ok(found) = cursor_of(cursor)
        && let Walk::Write(id) = found.walk
        && let Ok(writer) = txn.writer_of_put()
    {
        writer.close_cursor(id);
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
        let Ok(cursor) = cursor_of(*cursor) else { continue };
        let Walk::Read(walk) = &mut cursor.walk else { continue };
        let table = txn.slots.get(cursor.dbi as usize).and_then(|slot| slot.known());
        let noted = match (&txn.work, table) {
            (Work::Read(read), Some(Table::Read(table))) => {
                read.raw_park_cursor(walk, table).is_ok()
            }
            _ => false,
        };
        if !noted {
            walk.leave();
        }
    }
}

/// Asks a cursor at its place.
pub(crate) fn question(
    cursor: *mut MDB_cursor,
    ask: fn(&mut RawAt<'_>) -> zubilo::Result<bool>,
) -> Result<bool> {
    let cursor = cursor_of(cursor)?;
    let txn = cursor.worker()?;
    Ok(ask(&mut cursor.walk(txn)?)?)
}

/// Whether its transaction waits for a function of the program's, perhaps in a call with it.
fn is_busy(cursor: &MDB_cursor) -> bool {
    !cursor.txn.is_null() && matches!(txn_of(cursor.txn), Err(Code::BAD_TXN))
}

/// Walks over a table while another one is changed.
pub(crate) struct Walker {
    id: CursorId,
    table: TableRef,
}

impl Walker {
    pub(crate) fn new(txn: &mut MDB_txn, table: TableRef) -> Result<Walker> {
        Ok(Walker { id: txn.writer()?.raw_open_cursor(table), table })
    }

    /// A copy of the next record.
    pub(crate) fn next(&mut self, txn: &mut MDB_txn) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let found = txn.writer()?.raw_at(self.id, self.table)?.step()?;
        Ok(found.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }

    pub(crate) fn end(self, txn: &mut MDB_txn) -> Result<()> {
        txn.writer()?.close_cursor(self.id);
        Ok(())
    }
}

/// Takes a cursor off the list of its transaction.
fn unlink(cursor: *mut MDB_cursor) {
    if let Ok(found) = cursor_of(cursor)
        && let Ok(txn) = txn_of(found.txn)
    {
        txn.cursors.retain(|other| *other != cursor);
        close(txn, cursor);
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
            FREE_DBI => Some(Box::new(FreeList::read(&this.env()?.newest()?.store)?)),
            _ => {
                this.table(dbi)?;
                None
            }
        };
        let walk = match this.is_write() {
            true => {
                let target = this.target(dbi)?;
                Walk::Write(this.writer_of_put()?.raw_open_cursor(target))
            }
            false => Walk::Read(RawCursor::default()),
        };
        let made =
            Box::into_raw(Box::new(MDB_cursor { magic: Magic::CURSOR, txn, dbi, walk, free }));
        this.cursors.push(made);
        put_out(cursor, made)
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mdb_cursor_close(cursor: *mut MDB_cursor) {
    entry_or(cursor, (), || {
        if cursor_of(cursor).is_ok_and(|found| !is_busy(found)) {
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
        if is_busy(found) {
            return Err(Code::BAD_TXN);
        }
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
            FREE_DBI => found.free = Some(Box::new(FreeList::read(&this.env()?.newest()?.store)?)),
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
        let kind = txn_of(MDB_txn::innermost(cursor.txn))?.kind(cursor.dbi);
        if kind.is_ok_and(|kind| !kind.duplicates) {
            return Err(Code::INCOMPATIBLE);
        }
        let txn = cursor.worker()?;
        put_out(count, cursor.valued(txn)?.count()? as usize)
    })
}
