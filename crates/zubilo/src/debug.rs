//! How handles show themselves in debug output: by what tells them apart, never by their contents.

use std::fmt;

use crate::txn::{
    Iter, ReadGuard, ReadTable, ReadTxn, Reader, ValueIter, WriteCursor, WriteTable, WriteTxn,
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
    WriteCursor<'_>, "WriteCursor", cursor => { "id": cursor.id() };
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
}
