//! Moves of cursors.

use std::ffi::{c_int, c_uint};

use zubilo::raw::RawPair;

use crate::abi::MDB_val;
use crate::data::{bytes, give};
use crate::errors::{Code, Result};
use crate::guard::entry;
use crate::txn::MDB_txn;

use super::{MDB_cursor, Place, cursor_of};

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
    fn first(&mut self, txn: &mut MDB_txn) -> Result<RawPair> {
        let found = self.walk(txn)?.first()?;
        self.place = Place::Nowhere;
        self.moved(found)
    }

    fn last(&mut self, txn: &mut MDB_txn) -> Result<RawPair> {
        let found = self.walk(txn)?.last()?;
        self.place = Place::Nowhere;
        self.moved(found)
    }

    /// A step forward.
    #[inline]
    fn forward(&mut self, txn: &mut MDB_txn, how: u32) -> Result<RawPair> {
        self.attach(txn)?;
        match self.place {
            Place::Nowhere => return self.first(txn),
            Place::End => return Err(Code::NOTFOUND),
            Place::Before => return self.step_onto(txn, how),
            _ => {}
        }
        let walk = self.walk(txn)?;
        let found = match how {
            op::NEXT => walk.step()?,
            op::NEXT_NODUP => walk.next_key()?,
            _ => walk.next_value()?,
        };
        self.moved(found)
    }

    /// The first step after a deletion goes to the record that stands there now.
    fn step_onto(&mut self, txn: &mut MDB_txn, how: u32) -> Result<RawPair> {
        let inside = !self.key.is_empty();
        let found = self.walk(txn)?.current()?;
        let same_key = found.is_some_and(|(key, _)| inside && *key == *self.key);
        match how {
            op::NEXT_DUP if !same_key => Err(Code::NOTFOUND),
            // Of this key something is left: the next key is asked for.
            op::NEXT_NODUP if same_key => {
                let found = self.walk(txn)?.next_key()?;
                self.moved(found)
            }
            _ => self.moved(found),
        }
    }

    /// A step back.
    #[inline]
    fn backward(&mut self, txn: &mut MDB_txn, how: u32) -> Result<RawPair> {
        self.attach(txn)?;
        match self.place {
            Place::Nowhere | Place::End if how != op::PREV_DUP => return self.last(txn),
            Place::Nowhere => return self.last(txn),
            Place::End => return Err(Code::NOTFOUND),
            _ => {}
        }
        let walk = self.walk(txn)?;
        let found = match how {
            op::PREV => walk.step_back()?,
            op::PREV_NODUP => walk.prev_key()?,
            _ => walk.prev_value()?,
        };
        // Whether it finds something or not: the deletion is forgotten.
        self.place = Place::On;
        self.moved(found)
    }

    fn seek(&mut self, txn: &mut MDB_txn, key: &[u8], exact: bool) -> Result<RawPair> {
        if key.is_empty() {
            return Err(Code::BAD_VALSIZE);
        }
        let walk = self.walk(txn)?;
        let found = walk.seek(key)?;
        let here = walk.current()?;
        self.place = if here.is_some() { Place::On } else { Place::End };
        if exact && !found { Err(Code::NOTFOUND) } else { here.ok_or(Code::NOTFOUND) }
    }

    fn seek_both(
        &mut self,
        txn: &mut MDB_txn,
        key: &[u8],
        value: &[u8],
        exact: bool,
    ) -> Result<RawPair> {
        if !txn.info(self.dbi)?.duplicates {
            return Err(Code::INCOMPATIBLE);
        }
        if key.is_empty() {
            return Err(Code::BAD_VALSIZE);
        }
        let walk = self.walk(txn)?;
        let found = walk.seek_pair(key, value, true)?;
        match walk.current()? {
            Some(here) if found || !exact => self.moved(Some(here)),
            _ => {
                // It stays at the key, or where that would be.
                let _ = self.seek(txn, key, false);
                Err(Code::NOTFOUND)
            }
        }
    }

    /// What it stands on.
    fn here(&mut self, txn: &mut MDB_txn) -> Result<RawPair> {
        self.attach(txn)?;
        match self.place {
            Place::Nowhere => Err(Code::EINVAL),
            Place::End => Err(Code::NOTFOUND),
            _ => {
                let found = self.walk(txn)?.current()?;
                self.moved(found)
            }
        }
    }

    fn edge_value(&mut self, txn: &mut MDB_txn, last: bool) -> Result<RawPair> {
        if self.place == Place::Nowhere {
            return Err(Code::EINVAL);
        }
        if !txn.info(self.dbi)?.duplicates {
            return Err(Code::INCOMPATIBLE);
        }
        self.here(txn)?;
        let walk = self.walk(txn)?;
        let found = if last { walk.last_value()? } else { walk.first_value()? };
        self.moved(found)
    }

    /// Values that lie together.
    fn multiple(&mut self, txn: &mut MDB_txn, how: u32) -> Result<RawPair> {
        let info = txn.info(self.dbi)?;
        if !info.fixed {
            return Err(Code::INCOMPATIBLE);
        }
        let key = match how {
            op::GET_MULTIPLE => self.here(txn)?.0,
            op::NEXT_MULTIPLE => self.forward(txn, op::NEXT_DUP)?.0,
            _ if self.place == Place::Nowhere => self.last(txn)?.0,
            _ => {
                let key = self.here(txn)?.0;
                let values = self.walk(txn)?.multiple_before()?.ok_or(Code::NOTFOUND)?;
                return Ok((key, values));
            }
        };
        let values = self.walk(txn)?.multiple()?.ok_or(Code::NOTFOUND)?;
        Ok((key, values))
    }
}

/// Which of key and value an operation gives.
enum Gives {
    Both,
    Value,
}

fn get(cursor: &mut MDB_cursor, key: *mut MDB_val, data: *mut MDB_val, how: u32) -> Result<()> {
    let txn = cursor.worker()?;
    if let Some(free) = &mut cursor.free {
        free.go(how)?;
        give(key, free.key());
        give(data, free.value());
        return Ok(());
    }
    let plain = || -> Result<()> { if data.is_null() { Err(Code::EINVAL) } else { Ok(()) } };
    let (found, gives) = match how {
        op::NEXT | op::NEXT_NODUP => (cursor.forward(txn, how)?, Gives::Both),
        op::PREV | op::PREV_NODUP => (cursor.backward(txn, how)?, Gives::Both),
        op::NEXT_DUP | op::PREV_DUP => (dup_step(cursor, txn, how)?, Gives::Both),
        op::FIRST => (cursor.first(txn)?, Gives::Both),
        op::LAST => (cursor.last(txn)?, Gives::Both),
        op::SET => (cursor.seek(txn, bytes(key)?, true)?, Gives::Value),
        op::SET_KEY => (cursor.seek(txn, bytes(key)?, true)?, Gives::Both),
        op::SET_RANGE => (cursor.seek(txn, bytes(key)?, false)?, Gives::Both),
        op::GET_CURRENT => (cursor.here(txn)?, Gives::Both),
        op::GET_BOTH | op::GET_BOTH_RANGE => {
            plain()?;
            let exact = how == op::GET_BOTH;
            (cursor.seek_both(txn, bytes(key)?, bytes(data)?, exact)?, Gives::Value)
        }
        op::FIRST_DUP | op::LAST_DUP => {
            plain()?;
            (cursor.edge_value(txn, how == op::LAST_DUP)?, Gives::Both)
        }
        op::GET_MULTIPLE | op::NEXT_MULTIPLE | op::PREV_MULTIPLE => {
            plain()?;
            (cursor.multiple(txn, how)?, Gives::Both)
        }
        _ => return Err(Code::EINVAL),
    };
    if matches!(gives, Gives::Both) {
        give(key, found.0);
    }
    give(data, found.1);
    Ok(())
}

/// Without duplicates LMDB steps from key to key.
fn dup_step(cursor: &mut MDB_cursor, txn: &mut MDB_txn, how: u32) -> Result<RawPair> {
    let plain = !txn.info(cursor.dbi)?.duplicates;
    match how {
        op::NEXT_DUP if plain => cursor.forward(txn, op::NEXT),
        op::PREV_DUP if plain => cursor.backward(txn, op::PREV),
        op::NEXT_DUP => cursor.forward(txn, how),
        _ => cursor.backward(txn, how),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mdb_cursor_get(
    cursor: *mut MDB_cursor,
    key: *mut MDB_val,
    data: *mut MDB_val,
    op: c_uint,
) -> c_int {
    entry(cursor, || get(cursor_of(cursor)?, key, data, op))
}
