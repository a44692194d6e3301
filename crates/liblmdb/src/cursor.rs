//! Cursors: positions that outlive changes.
//!
//! A cursor stands on a record by a view into the engine's pages. Before a change, and before a
//! nested transaction, all cursors that it could disturb write down where they are and look it up
//! again when they are used next. So one that stood on a record that is gone finds the place where
//! it was: the next record, which its first step forward gives.

mod free;
mod get;
mod write;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::c_int;

use zubilo::raw::{RawCursor, RawPair};

use self::free::FreeList;
use crate::abi::{FREE_DBI, MDB_dbi};
use crate::dbi::Table;
use crate::env::put_out;
use crate::errors::{Code, Result};
use crate::guard::{Magic, entry, entry_or};
use crate::txn::{MDB_txn, Work, live, txn_of};

/// A cursor.
#[allow(non_camel_case_types)]
pub struct MDB_cursor {
    magic: Magic,
    /// The transaction that opened it; null after its end.
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    place: Place,
    walk: Option<RawCursor>,
    /// Where it stood, where that is written down.
    key: Vec<u8>,
    value: Vec<u8>,
    /// Where it stood when the nested transactions began that live now.
    shadows: Vec<Shadow>,
    free: Option<Box<FreeList>>,
}

/// Where a cursor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It was never moved.
    Nowhere,
    /// On the record that `walk` is on.
    On,
    /// The record it stood on is gone, `walk` is on the next one: a step forward goes there.
    Before,
    /// Behind the last record.
    End,
    /// On the record that is written down.
    Saved,
    /// Before the record that is written down, or where that would be.
    SavedBefore,
}

struct Shadow {
    place: Place,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl MDB_cursor {
    /// The transaction that works: the one of the cursor, or its innermost child.
    fn worker<'t>(&self) -> Result<&'t mut MDB_txn> {
        if self.txn.is_null() {
            return Err(Code::BAD_TXN);
        }
        live(MDB_txn::innermost(self.txn))
    }

    /// Writes down where it stands; its view of pages is given up.
    fn save(&mut self) -> Result<()> {
        let saved = match self.place {
            Place::On => Place::Saved,
            Place::Before => Place::SavedBefore,
            _ => {
                self.walk = None;
                return Ok(());
            }
        };
        let here = match &mut self.walk {
            Some(walk) => walk.current()?,
            None => None,
        };
        match here {
            Some((key, value)) => self.note(key, value),
            None => return Err(Code::CORRUPTED),
        }
        self.walk = None;
        self.place = saved;
        Ok(())
    }

    fn note(&mut self, key: &[u8], value: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value.clear();
        // Only among duplicates does it tell anything, and these are short.
        if value.len() <= crate::abi::MAX_KEY {
            self.value.extend_from_slice(value);
        }
    }

    /// Its view of pages, made if it has none.
    fn walk<'c>(&'c mut self, txn: &mut MDB_txn) -> Result<&'c mut RawCursor> {
        if self.walk.is_none() {
            self.walk = Some(new_walk(txn, self.dbi)?);
        }
        self.walk.as_mut().ok_or(Code::EINVAL)
    }

    /// Looks up where it stood, if that is written down.
    fn attach(&mut self, txn: &mut MDB_txn) -> Result<()> {
        let found = match self.place {
            Place::Saved => Place::On,
            Place::SavedBefore => Place::Before,
            _ => return Ok(()),
        };
        let mut walk = new_walk(txn, self.dbi)?;
        let exact = walk.seek_pair(&self.key, &self.value, false)?;
        self.place = match walk.current()? {
            Some(_) if exact => found,
            Some(_) => Place::Before,
            None if txn.info(self.dbi)?.stats.entries == 0 => Place::Nowhere,
            None => Place::End,
        };
        self.walk = Some(walk);
        Ok(())
    }

    /// Takes over what a move has found; nothing leaves it where it was.
    #[inline]
    fn moved(&mut self, found: Option<RawPair>) -> Result<RawPair> {
        if found.is_some() {
            self.place = Place::On;
        }
        found.ok_or(Code::NOTFOUND)
    }

    pub(crate) fn txn(&self) -> *mut MDB_txn {
        self.txn
    }

    fn leave(&mut self) {
        self.place = Place::Nowhere;
        self.walk = None;
    }
}

fn new_walk(txn: &mut MDB_txn, dbi: MDB_dbi) -> Result<RawCursor> {
    txn.table(dbi)?;
    let table = txn.slots.get(dbi as usize).and_then(|slot| slot.known());
    match (&txn.work, table) {
        (Work::Read(read), Some(Table::Read(table))) => {
            // SAFETY: at the end of the transaction and when it is reset the cursor gives up its
            // view, see `detach_all` and `leave_all`.
            Ok(unsafe { read.raw_cursor(table) })
        }
        (Work::Write(writer), Some(Table::Write(index))) => {
            // SAFETY: the writer lives, see `MDB_txn::writer`; before each change the cursor gives up
            // its view, see `save`.
            Ok(unsafe { (**writer).raw_cursor(*index) })
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

/// Before a change of a table: cursors on it write down where they are.
#[inline]
pub(crate) fn save(txn: &mut MDB_txn, dbi: MDB_dbi) -> Result<()> {
    if txn.cursors.is_empty() && txn.outer().is_null() {
        return Ok(());
    }
    let all = txn.writer()?.raw_will_spill();
    each(txn, |cursor| if all || cursor.dbi == dbi { cursor.save() } else { Ok(()) })
}

/// Before all records of a table are removed: cursors on it are nowhere then.
pub(crate) fn leave(txn: &mut MDB_txn, dbi: MDB_dbi) -> Result<()> {
    save(txn, dbi)?;
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
        cursor.save()?;
        let (key, value) = (cursor.key.clone(), cursor.value.clone());
        cursor.shadows.push(Shadow { place: cursor.place, key, value });
        Ok(())
    })
}

/// The nested transaction has committed: cursors stay where they are.
pub(crate) fn keep_shadowed(txn: &mut MDB_txn) {
    let _ = each(txn, |cursor| {
        cursor.shadows.pop();
        cursor.save()
    });
}

/// The nested transaction was undone: cursors go back to where they were.
pub(crate) fn restore_shadowed(txn: &mut MDB_txn) {
    let _ = each(txn, |cursor| {
        if let Some(Shadow { place, key, value }) = cursor.shadows.pop() {
            (cursor.place, cursor.key, cursor.value) = (place, key, value);
        }
        cursor.walk = None;
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

/// The transaction pins nothing any more.
pub(crate) fn leave_all(txn: &mut MDB_txn) {
    for cursor in &txn.cursors {
        if let Ok(cursor) = cursor_of(*cursor) {
            cursor.leave();
        }
    }
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
    (cursor.key, cursor.value, cursor.free) = (Vec::new(), Vec::new(), None);
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
pub unsafe extern "C" fn mdb_cursor_open(
    txn: *mut MDB_txn,
    dbi: MDB_dbi,
    cursor: *mut *mut MDB_cursor,
) -> c_int {
    entry(txn, || {
        if cursor.is_null() {
            return Err(Code::EINVAL);
        }
        let this = live(txn)?;
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
            place: Place::Nowhere,
            walk: None,
            key: Vec::new(),
            value: Vec::new(),
            shadows: Vec::new(),
            free,
        }));
        this.cursors.push(made);
        put_out(cursor, made)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mdb_cursor_close(cursor: *mut MDB_cursor) {
    entry_or(cursor, (), || {
        if cursor_of(cursor).is_ok() {
            unlink(cursor);
            bury(cursor);
        }
    });
}

/// Takes a cursor of a read transaction over into another one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mdb_cursor_renew(txn: *mut MDB_txn, cursor: *mut MDB_cursor) -> c_int {
    entry(txn, || {
        let found = cursor_of(cursor)?;
        let this = txn_of(txn)?;
        if this.is_write() {
            return Err(Code::EINVAL);
        }
        this.check()?;
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
pub unsafe extern "C" fn mdb_cursor_txn(cursor: *mut MDB_cursor) -> *mut MDB_txn {
    entry_or(cursor, std::ptr::null_mut(), || {
        cursor_of(cursor).map_or(std::ptr::null_mut(), |cursor| cursor.txn)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mdb_cursor_dbi(cursor: *mut MDB_cursor) -> MDB_dbi {
    entry_or(cursor, 0, || cursor_of(cursor).map_or(0, |cursor| cursor.dbi))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mdb_cursor_count(cursor: *mut MDB_cursor, count: *mut usize) -> c_int {
    entry(cursor, || {
        let cursor = cursor_of(cursor)?;
        if count.is_null() {
            return Err(Code::EINVAL);
        }
        let txn = cursor.worker()?;
        if !txn.info(cursor.dbi)?.duplicates {
            return Err(Code::INCOMPATIBLE);
        }
        cursor.attach(txn)?;
        match cursor.place {
            Place::Nowhere => Err(Code::EINVAL),
            Place::End => Err(Code::NOTFOUND),
            _ => put_out(count, cursor.walk(txn)?.count()? as usize),
        }
    })
}
