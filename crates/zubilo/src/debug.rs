//! How handles show themselves in debug output: by what distinguishes them, never by their contents.

use std::fmt;

use crate::txn::{
    Iter, OwnedIter, OwnedTable, ParkedRead, ReadGuard, ReadTable, ReadTxn, Reader, ValueIter,
    ViewTable, WriteCursor, WriteTable, WriteTxn, WriteView,
};
use crate::{Env, Salvage};

macro_rules! debug {
    ($($type:ty, $name:literal, $this:ident => { $($field:literal: $get:expr),* };)*) => {
        $(impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $this = self;
                f.debug_struct($name)$(.field($field, &$get))*.finish_non_exhaustive()
            }
        })*
    };
}

debug! {
    Env, "Env", env => { "path": env.path() };
    ReadTxn, "ReadTxn", txn => { "id": txn.id(), "lag": txn.lag() };
    WriteTxn, "WriteTxn", txn => { "id": txn.id(), "dirty_bytes": txn.dirty_bytes() };
    ReadTable<'_>, "ReadTable", table => { "len": table.len(), "options": table.options() };
    WriteTable<'_>, "WriteTable", table => { "id": table.id(), "len": table.len() };
    ViewTable<'_>, "ViewTable", table => { "len": table.len(), "options": table.options() };
    WriteCursor<'_>, "WriteCursor", cursor => { "id": cursor.id() };
    OwnedTable, "OwnedTable", table => { "len": table.len() };
    ParkedRead, "ParkedRead", parked => { "id": parked.id(), "is_expired": parked.is_expired() };
    ReadGuard<'_>, "ReadGuard", guard => { "id": guard.id() };
    ValueIter<'_>, "ValueIter", values => { "remaining": values.remaining() };
    Salvage, "Salvage", salvage => { "commit": salvage.commit(), "tables": salvage.tables() };
}

macro_rules! debug_without_fields {
    ($($type:ty, $name:literal;)*) => {
        $(impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct($name).finish_non_exhaustive()
            }
        })*
    };
}

debug_without_fields! {
    Reader, "Reader";
    Iter<'_>, "Iter";
    OwnedIter, "OwnedIter";
    WriteView<'_>, "WriteView";
}

impl<T, E> fmt::Debug for crate::Update<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Update").finish_non_exhaustive()
    }
}

impl<K: AsRef<[u8]>> fmt::Debug for crate::Entry<'_, '_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").finish_non_exhaustive()
    }
}
