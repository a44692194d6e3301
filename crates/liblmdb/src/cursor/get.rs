//! Moves of cursors.

use std::ffi::{c_int, c_uint};

use zubilo::raw::{RawAt, RawNote, RawPair, RawStand};

use crate::abi::MDB_val;
use crate::errors::{Code, Result};
use crate::guard::entry;
use crate::txn::{MDB_txn, Work, txn_of};
use crate::values::{Found, bytes, give, pass, val};

use super::{MDB_cursor, Walk, cursor_of};

/// What programs ask for.
pub(super) mod op {
    pub(crate) const FIRST: u32 = 0;
    pub(crate) const FIRST_DUP: u32 = 1;
    pub(crate) const GET_BOTH: u32 = 2;
    pub(crate) const GET_BOTH_RANGE: u32 = 3;
    pub(crate) const GET_CURRENT: u32 = 4;
    pub(crate) const GET_MULTIPLE: u32 = 5;
    pub(crate) const LAST: u32 = 6;
    pub(crate) const LAST_DUP: u32 = 7;
    pub(crate) const NEXT: u32 = 8;
    pub(crate) const NEXT_DUP: u32 = 9;
    pub(crate) const NEXT_MULTIPLE: u32 = 10;
    pub(crate) const NEXT_NODUP: u32 = 11;
    pub(crate) const PREV: u32 = 12;
    pub(crate) const PREV_DUP: u32 = 13;
    pub(crate) const PREV_NODUP: u32 = 14;
    pub(crate) const SET: u32 = 15;
    pub(crate) const SET_KEY: u32 = 16;
    pub(crate) const SET_RANGE: u32 = 17;
    pub(crate) const PREV_MULTIPLE: u32 = 18;
}

impl MDB_cursor {
    /// A step forward or back, or to an end.
    #[inline]
    fn go(&mut self, txn: &mut MDB_txn, how: u32) -> Result<Found> {
        let mut walk = self.walk(txn)?;
        if walk.note() != RawNote::Nothing {
            return self.go_noted(txn, how);
        }
        let found = match how {
            op::NEXT => walk.step()?,
            op::PREV => walk.step_back()?,
            op::NEXT_NODUP => return go_to_key(walk),
            op::PREV_NODUP => walk.prev_key()?,
            op::NEXT_DUP => walk.next_value()?,
            op::PREV_DUP => walk.prev_value()?,
            op::FIRST => walk.first()?,
            _ => walk.last()?,
        };
        pair_found(found)
    }

    #[cold]
    fn go_noted(&mut self, txn: &mut MDB_txn, how: u32) -> Result<Found> {
        let forward = matches!(how, op::NEXT | op::NEXT_DUP | op::NEXT_NODUP);
        let mut walk = self.walk(txn)?;
        let note = walk.note();
        if note == RawNote::Ended && forward {
            return Err(Code::NOTFOUND);
        }
        walk.set_note(RawNote::Nothing);
        if note == RawNote::Missed && matches!(how, op::NEXT | op::NEXT_DUP) {
            return pair_found(walk.first_value()?);
        }
        self.go(txn, how)
    }

    fn seek(&mut self, txn: &mut MDB_txn, key: &[u8], exact: bool) -> Result<Found> {
        if key.is_empty() {
            return Err(Code::BAD_VALSIZE);
        }
        let mut walk = self.walk(txn)?;
        walk.set_note(RawNote::Nothing);
        let found = walk.seek(key)?;
        if exact && !found {
            return self.missed(txn);
        }
        match walk.current()? {
            Some(found) => Ok(Found::new(found)),
            None => self.missed(txn),
        }
    }

    /// The key that was sought is not there: the cursor is where it would be, on no value.
    #[cold]
    fn missed<T>(&mut self, txn: &mut MDB_txn) -> Result<T> {
        let empty = txn.info(self.dbi)?.stats.entries == 0;
        let mut walk = self.walk(txn)?;
        match walk.stand() {
            _ if empty => walk.leave(),
            RawStand::Placed if walk.count()? > 1 => walk.set_note(RawNote::Missed),
            _ => {}
        }
        Err(Code::NOTFOUND)
    }

    fn seek_both(
        &mut self,
        txn: &mut MDB_txn,
        key: &[u8],
        value: &[u8],
        exact: bool,
    ) -> Result<Found> {
        if !txn.kind(self.dbi)?.duplicates {
            return Err(Code::INCOMPATIBLE);
        }
        if key.is_empty() {
            return Err(Code::BAD_VALSIZE);
        }
        let mut walk = self.walk(txn)?;
        walk.set_note(RawNote::Nothing);
        if let Some((_, own)) = walk.seek_pair(key, value, exact)?
            && (!value.is_empty() || own.is_empty() || walk.count()? == 1)
        {
            return pair_found(walk.under()?);
        }
        if !walk.seek(key)? {
            return self.missed(txn);
        }
        if walk.count()? == 1 {
            return Err(Code::NOTFOUND);
        }
        if value.is_empty() {
            // Among several LMDB looks for none.
            return Err(Code::BAD_VALSIZE);
        }
        // Where the value would be: on a greater one, or behind them.
        if walk.seek_pair(key, value, false)?.is_none() {
            walk.seek_behind(key)?;
        }
        Err(Code::NOTFOUND)
    }

    /// What it stands on.
    fn here(&mut self, txn: &mut MDB_txn) -> Result<Found> {
        pair_found(self.valued(txn)?.current()?)
    }

    fn edge_value(&mut self, txn: &mut MDB_txn, last: bool) -> Result<Found> {
        if self.walk(txn)?.stand() == RawStand::Nowhere {
            return Err(Code::EINVAL);
        }
        if !txn.kind(self.dbi)?.duplicates {
            return Err(Code::INCOMPATIBLE);
        }
        let mut walk = self.valued(txn)?;
        pair_found(if last { walk.last_value()? } else { walk.first_value()? })
    }

    /// Values that lie together.
    fn multiple(
        &mut self,
        txn: &mut MDB_txn,
        how: u32,
        (to_key, to_data): (*mut MDB_val, *mut MDB_val),
    ) -> Result<Found> {
        let kind = txn.kind(self.dbi)?;
        if how == op::GET_MULTIPLE && self.walk(txn)?.stand() == RawStand::Nowhere {
            return Err(Code::EINVAL);
        }
        if !kind.fixed {
            return Err(Code::INCOMPATIBLE);
        }
        // The first step of all gives its record, also where it leads to no more than that.
        let give_both = |found: Found| {
            pass(to_key, found.key);
            pass(to_data, found.value);
        };
        let key = match how {
            op::GET_MULTIPLE => self.here(txn)?.key,
            op::NEXT_MULTIPLE => {
                let found = self.go(txn, op::NEXT_DUP)?;
                if self.walk(txn)?.count()? == 1 {
                    give_both(found);
                    return Err(Code::NOTFOUND);
                }
                found.key
            }
            _ => {
                let key = match self.walk(txn)?.stand() {
                    RawStand::Nowhere => {
                        let found = self.go(txn, op::LAST)?;
                        give_both(found);
                        found.key
                    }
                    _ => self.here(txn)?.key,
                };
                let values = self.walk(txn)?.multiple_before()?.ok_or(Code::NOTFOUND)?;
                return Ok(Found { key, value: val(values) });
            }
        };
        let values = self.walk(txn)?.multiple()?.ok_or(Code::NOTFOUND)?;
        Ok(Found { key, value: val(values) })
    }
}

/// What a move has found.
#[inline]
fn pair_found(found: Option<RawPair<'_>>) -> Result<Found> {
    found.map(Found::new).ok_or(Code::NOTFOUND)
}

fn go_to_key(mut walk: RawAt<'_>) -> Result<Found> {
    let found = walk.next_key()?;
    if found.is_none() && walk.stand() == RawStand::Placed {
        // Further values of the last key do not come after that.
        walk.set_note(RawNote::Ended);
    }
    pair_found(found)
}

/// Which of key and value an operation gives.
enum Gives {
    Both,
    Value,
    /// The key where it has one value.
    KeyOfOne,
}

#[inline(always)]
fn get(cursor: &mut MDB_cursor, key: *mut MDB_val, data: *mut MDB_val, how: u32) -> Result<()> {
    // By far the most frequent: within a leaf of a read transaction; see `RawCursor::quick_step`.
    if how == op::NEXT
        && let Walk::Read(walk) = &mut cursor.walk
        && let Ok(MDB_txn { work: Work::Read(read), .. }) = txn_of(cursor.txn)
        && let Some((next_key, value)) = walk.quick_step(read)
    {
        give(key, next_key);
        give(data, value);
        return Ok(());
    }
    get_any(cursor, key, data, how)
}

fn get_any(cursor: &mut MDB_cursor, key: *mut MDB_val, data: *mut MDB_val, how: u32) -> Result<()> {
    let txn = cursor.worker()?;
    if let Some(free) = &mut cursor.free {
        free.go(how)?;
        give(key, free.key());
        give(data, free.value());
        return Ok(());
    }
    let sought =
        matches!(how, op::SET | op::SET_KEY | op::SET_RANGE | op::GET_BOTH | op::GET_BOTH_RANGE);
    let _own = if sought { txn.asked(cursor.dbi, key, data)? } else { None };
    let plain = || -> Result<()> { if data.is_null() { Err(Code::EINVAL) } else { Ok(()) } };
    let (found, gives) = match how {
        op::NEXT | op::NEXT_NODUP | op::PREV | op::PREV_NODUP | op::FIRST | op::LAST => {
            (cursor.go(txn, how)?, Gives::Both)
        }
        op::NEXT_DUP | op::PREV_DUP => (dup_step(cursor, txn, how)?, Gives::Both),
        op::SET => (cursor.seek(txn, bytes(key)?, true)?, Gives::Value),
        op::SET_KEY => (cursor.seek(txn, bytes(key)?, true)?, Gives::Both),
        op::SET_RANGE => (cursor.seek(txn, bytes(key)?, false)?, Gives::Both),
        op::GET_CURRENT => {
            let here = cursor.here(txn);
            let mut walk = cursor.walk(txn)?;
            let nothing = here.as_ref().is_err_and(|code| *code == Code::NOTFOUND);
            let valueless = walk.note() == RawNote::Missed || nothing;
            if valueless
                && walk.stand() == RawStand::Placed
                && let Some(next) = walk.key()?
            {
                // LMDB gives the key before it finds that there is no value.
                give(key, next);
            }
            (here?, Gives::Both)
        }
        op::GET_BOTH | op::GET_BOTH_RANGE => {
            plain()?;
            let exact = how == op::GET_BOTH;
            (cursor.seek_both(txn, bytes(key)?, bytes(data)?, exact)?, Gives::Value)
        }
        op::FIRST_DUP | op::LAST_DUP => {
            plain()?;
            (cursor.edge_value(txn, how == op::LAST_DUP)?, Gives::KeyOfOne)
        }
        op::GET_MULTIPLE => {
            plain()?;
            (cursor.multiple(txn, how, (key, data))?, Gives::Value)
        }
        op::NEXT_MULTIPLE => {
            plain()?;
            (cursor.multiple(txn, how, (key, data))?, Gives::Both)
        }
        op::PREV_MULTIPLE => {
            plain()?;
            let placed = cursor.walk(txn)?.stand() != RawStand::Nowhere;
            let gives = if placed { Gives::Value } else { Gives::Both };
            (cursor.multiple(txn, how, (key, data))?, gives)
        }
        _ => return Err(Code::EINVAL),
    };
    let with_key = match gives {
        Gives::Both => true,
        Gives::Value => false,
        Gives::KeyOfOne => cursor.walk(txn)?.count()? == 1,
    };
    if with_key {
        pass(key, found.key);
    }
    pass(data, found.value);
    Ok(())
}

/// Without duplicates LMDB steps from key to key.
fn dup_step(cursor: &mut MDB_cursor, txn: &mut MDB_txn, how: u32) -> Result<Found> {
    let plain = !txn.kind(cursor.dbi)?.duplicates;
    if how == op::PREV_DUP && !plain && cursor.walk(txn)?.stand() == RawStand::Nowhere {
        // There is no value before it; where it would have come from is after all of them.
        let last = cursor.go(txn, op::LAST)?.key;
        cursor.walk(txn)?.seek_behind(bytes(&last)?)?;
        return Err(Code::NOTFOUND);
    }
    if plain && how == op::NEXT_DUP && cursor.walk(txn)?.is_before() {
        // Where its record was deleted there is none of the same key.
        cursor.walk(txn)?.current()?;
        return Err(Code::NOTFOUND);
    }
    let how = match how {
        op::NEXT_DUP if plain => op::NEXT,
        op::PREV_DUP if plain => op::PREV,
        _ => how,
    };
    cursor.go(txn, how)
}

/// Goes from the record that `from` finds by `turn` from record to record, to the first one that is `wanted`; whether
/// there is one. Both see keys and values where they are. Nothing is borrowed while the program's function runs: it
/// may use the cursor and its transaction.
pub(crate) fn scan(
    cursor: *mut MDB_cursor,
    from: (c_uint, *mut MDB_val, *mut MDB_val),
    turn: c_uint,
    wanted: &mut dyn FnMut(&mut MDB_val, &mut MDB_val) -> Result<bool>,
) -> Result<bool> {
    let turns = [op::NEXT, op::NEXT_DUP, op::NEXT_NODUP, op::PREV, op::PREV_DUP, op::PREV_NODUP];
    if !turns.contains(&turn) {
        return Err(Code::EINVAL);
    }
    let (mut key, mut value) = (MDB_val::NOTHING, MDB_val::NOTHING);
    get(cursor_of(cursor)?, from.1, from.2, from.0)?;
    // Not every move gives both.
    get(cursor_of(cursor)?, &raw mut key, &raw mut value, op::GET_CURRENT)?;
    while !wanted(&mut key, &mut value)? {
        match get(cursor_of(cursor)?, &raw mut key, &raw mut value, turn) {
            Err(Code::NOTFOUND) => return Ok(false),
            moved => moved?,
        }
    }
    Ok(true)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mdb_cursor_get(
    cursor: *mut MDB_cursor,
    key: *mut MDB_val,
    data: *mut MDB_val,
    op: c_uint,
) -> c_int {
    entry(cursor, || get(cursor_of(cursor)?, key, data, op))
}
