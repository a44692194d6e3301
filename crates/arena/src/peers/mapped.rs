//! What LMDB and libmdbx have in common: an environment in a mapped file, one writer, read
//! transactions that are reset and renewed, cursors. `Lib` is the few calls in which they differ
//! by name and type; sessions and what is done in them are the same.

use std::ffi::{CStr, c_void};

use super::tables::{Change, Find, PAIRS, Place};
use super::{Fault, Outcome, Reader, Session, Writer};

pub(crate) type Ptr = *mut c_void;

/// Where a cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    First,
    Next,
    /// The first key not less than the one given.
    From,
    /// The first value of exactly this key.
    Key,
    /// The next value of the same key.
    NextValue,
}

/// The calls of a library.
///
/// # Safety
/// Implementations hand to the library what they are given, and nothing else; what it gives is as
/// the methods say.
pub(crate) unsafe trait Lib: Copy + Send + Sync {
    /// # Safety
    /// `env` is open.
    unsafe fn begin(self, env: Ptr, writes: bool) -> Outcome<Ptr>;
    /// # Safety
    /// `txn` is live, and nothing borrows from it; it is gone then.
    unsafe fn commit(self, txn: Ptr) -> Outcome<()>;
    /// # Safety
    /// As `commit`; a read transaction may have been reset.
    unsafe fn abort(self, txn: Ptr);
    /// # Safety
    /// `txn` is a live read transaction, and nothing borrows from it.
    unsafe fn reset(self, txn: Ptr) -> Outcome<()>;
    /// # Safety
    /// `txn` was reset.
    unsafe fn renew(self, txn: Ptr) -> Outcome<()>;
    /// # Safety
    /// `txn` is live, a writer if there is a name: then the table is made, of pairs if these are
    /// wanted.
    unsafe fn table(self, txn: Ptr, name: Option<&CStr>, pairs: bool) -> Outcome<u32>;
    /// # Safety
    /// `txn` is live; what comes back is valid until the next change or its end.
    unsafe fn get<'t>(self, txn: Ptr, table: u32, key: &[u8]) -> Outcome<Option<&'t [u8]>>;
    /// # Safety
    /// `txn` is a live writer. `append`: the key is greater than all others.
    unsafe fn put(
        self,
        txn: Ptr,
        table: u32,
        key: &[u8],
        value: &[u8],
        append: bool,
    ) -> Outcome<()>;
    /// # Safety
    /// `txn` is a live writer. With a value, only that one of the key goes.
    unsafe fn delete(self, txn: Ptr, table: u32, key: &[u8], value: Option<&[u8]>) -> Outcome<()>;
    /// # Safety
    /// `txn` is live; the cursor is closed before it ends.
    unsafe fn open_cursor(self, txn: Ptr, table: u32) -> Outcome<Ptr>;
    /// # Safety
    /// `cursor` is open; what comes back is valid until the next change or the transaction's end.
    unsafe fn step<'t>(
        self,
        cursor: Ptr,
        how: Move,
        key: &[u8],
    ) -> Outcome<Option<(&'t [u8], &'t [u8])>>;
    /// # Safety
    /// `cursor` is open, and not used any more.
    unsafe fn close_cursor(self, cursor: Ptr);
    /// # Safety
    /// `env` is open.
    unsafe fn sync(self, env: Ptr) -> Outcome<()>;
    /// # Safety
    /// `env` is open.
    unsafe fn copy(self, env: Ptr, path: &CStr) -> Outcome<()>;
    /// # Safety
    /// `env` is open, and not used any more.
    unsafe fn close(self, env: Ptr);
}

/// An open environment with its tables.
pub(super) struct Store<L: Lib> {
    lib: L,
    env: Ptr,
    records: u32,
    /// Once they are open.
    pairs: [u32; PAIRS],
}

// SAFETY: environments may be used by many threads; each transaction here stays in its thread.
unsafe impl<L: Lib> Send for Store<L> {}
// SAFETY: as above.
unsafe impl<L: Lib> Sync for Store<L> {}

impl<L: Lib> Store<L> {
    /// # Safety
    /// `env` is open, and nobody else's.
    pub(super) unsafe fn new(lib: L, env: Ptr) -> Outcome<Store<L>> {
        let mut store = Store { lib, env, records: 0, pairs: [0; PAIRS] };
        // SAFETY: as the caller promises; the transaction is ended here.
        unsafe {
            let txn = lib.begin(env, true)?;
            store.records = lib.table(txn, None, false)?;
            lib.commit(txn)?;
        }
        Ok(store)
    }

    /// All of them by name: the unnamed one holds the names then.
    pub(super) fn open_tables(&mut self) -> Outcome<()> {
        // SAFETY: the environment is open; the transaction is ended here.
        unsafe {
            let txn = self.lib.begin(self.env, true)?;
            let open = |place: Place, pairs| {
                let name = std::ffi::CString::new(place.name()).map_err(Fault::of("name"))?;
                self.lib.table(txn, Some(&name), pairs)
            };
            self.records = open(Place::Records, false)?;
            for i in 0..PAIRS {
                self.pairs[i] = open(Place::Pairs(i), true)?;
            }
            self.lib.commit(txn)
        }
    }

    pub(super) fn session(&self) -> Outcome<Thread<'_, L>> {
        // SAFETY: the environment is open; the transaction is aborted when the session is dropped.
        unsafe {
            let idle = self.lib.begin(self.env, false)?;
            self.lib.reset(idle)?;
            Ok(Thread { store: self, idle })
        }
    }

    pub(super) fn flush(&self) -> Outcome<()> {
        // SAFETY: the environment is open.
        unsafe { self.lib.sync(self.env) }
    }

    pub(super) fn copy(&self, path: &CStr) -> Outcome<()> {
        // SAFETY: the environment is open.
        unsafe { self.lib.copy(self.env, path) }
    }
}

impl<L: Lib> Drop for Store<L> {
    fn drop(&mut self) {
        // SAFETY: sessions borrow the store, so no transaction outlives it.
        unsafe { self.lib.close(self.env) };
    }
}

/// One thread's access, with the read transaction that is reset and renewed.
pub(crate) struct Thread<'e, L: Lib> {
    store: &'e Store<L>,
    idle: Ptr,
}

impl<L: Lib> Drop for Thread<'_, L> {
    fn drop(&mut self) {
        // SAFETY: a read transaction that was reset may be aborted.
        unsafe { self.store.lib.abort(self.idle) };
    }
}

/// A transaction and one of its tables. The cursor is opened when it is needed first, and serves all
/// walks of the transaction.
pub(crate) struct Txn<L: Lib> {
    lib: L,
    txn: Ptr,
    table: u32,
    cursor: Option<Ptr>,
}

impl<L: Lib> Drop for Txn<L> {
    fn drop(&mut self) {
        if let Some(cursor) = self.cursor.take() {
            // SAFETY: the cursor is open; the transaction ends behind this.
            unsafe { self.lib.close_cursor(cursor) };
        }
    }
}

impl<L: Lib> Txn<L> {
    fn at(&self, table: u32) -> Txn<L> {
        Txn { lib: self.lib, txn: self.txn, table, cursor: None }
    }

    #[inline(always)]
    fn cursor(&mut self) -> Outcome<Ptr> {
        if let Some(cursor) = self.cursor {
            return Ok(cursor);
        }
        // SAFETY: the transaction is live; the cursor is closed when this is dropped.
        let cursor = unsafe { self.lib.open_cursor(self.txn, self.table)? };
        self.cursor = Some(cursor);
        Ok(cursor)
    }

    #[inline(always)]
    fn lookup<R>(&self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        // SAFETY: the transaction is live; what it gives is used before the next call.
        unsafe { self.lib.get(self.txn, self.table, key).map(see) }
    }

    #[inline(always)]
    fn steps(
        &mut self,
        (first, next): (Move, Move),
        from: &[u8],
        most: u64,
        mut see: impl FnMut(&[u8], &[u8]) -> Outcome<()>,
    ) -> Outcome<u64> {
        let cursor = self.cursor()?;
        let (mut how, mut count) = (first, 0);
        while count < most {
            // SAFETY: the cursor is open; what it gives is used before the next step.
            let Some((key, value)) = (unsafe { self.lib.step(cursor, how, from)? }) else { break };
            see(key, value)?;
            how = next;
            count += 1;
        }
        Ok(count)
    }
}

impl<L: Lib> Session for Thread<'_, L> {
    type Reader<'t> = Txn<L>;
    type Writer<'t> = Txn<L>;

    #[inline(always)]
    fn read<R>(&mut self, work: impl for<'t> FnOnce(&mut Txn<L>) -> Outcome<R>) -> Outcome<R> {
        let Store { lib, records, .. } = *self.store;
        // SAFETY: the transaction was reset; it is live between renew and reset, and nothing
        // borrows from it behind the work.
        unsafe {
            lib.renew(self.idle)?;
            let result = work(&mut Txn { lib, txn: self.idle, table: records, cursor: None });
            lib.reset(self.idle)?;
            result
        }
    }

    #[inline(always)]
    fn write<R: Send>(
        &mut self,
        work: impl for<'t> Fn(&mut Txn<L>) -> Outcome<R> + Send,
    ) -> Outcome<R> {
        let Store { lib, env, records, .. } = *self.store;
        // SAFETY: the environment is open; nothing borrows from the transaction behind the work.
        unsafe {
            let txn = lib.begin(env, true)?;
            // A cursor must be closed before its transaction ends.
            let result = work(&mut Txn { lib, txn, table: records, cursor: None });
            match result {
                Ok(result) => lib.commit(txn).map(|()| result),
                Err(fault) => {
                    lib.abort(txn);
                    Err(fault)
                }
            }
        }
    }

    fn change(&mut self, changes: &[Change]) -> Outcome<()> {
        let pairs = self.store.pairs;
        self.write(|records| {
            for Change { place, key, value, gone } in changes {
                match (place, gone) {
                    (Place::Records, false) => records.put(key, value)?,
                    (Place::Records, true) => records.delete(key)?,
                    (Place::Pairs(i), false) => records.at(pairs[*i]).put(key, value)?,
                    // SAFETY: the transaction is a live writer.
                    (Place::Pairs(i), true) => unsafe {
                        records.lib.delete(records.txn, pairs[*i], key, Some(value))?;
                    },
                }
            }
            Ok(())
        })
    }

    fn find(&mut self, find: Find<'_>, mut see: impl FnMut(&[u8], Option<&[u8]>)) -> Outcome<u64> {
        let pairs = self.store.pairs[find.pairs];
        self.read(|records| {
            let moves = (Move::Key, Move::NextValue);
            records.at(pairs).steps(moves, find.key, find.most, |_, value| {
                if find.records {
                    return records.lookup(value, |record| see(value, record));
                }
                see(value, None);
                Ok(())
            })
        })
    }
}

impl<L: Lib> Reader for Txn<L> {
    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.lookup(key, see)
    }

    #[inline(always)]
    fn walk(
        &mut self,
        from: Option<&[u8]>,
        most: u64,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<u64> {
        let first = if from.is_some() { Move::From } else { Move::First };
        self.steps((first, Move::Next), from.unwrap_or_default(), most, |key, value| {
            see(key, value);
            Ok(())
        })
    }
}

impl<L: Lib> Writer for Txn<L> {
    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        // SAFETY: the transaction is a live writer; the library copies key and value.
        unsafe { self.lib.put(self.txn, self.table, key, value, false) }
    }

    #[inline(always)]
    fn append(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        // SAFETY: as in put.
        unsafe { self.lib.put(self.txn, self.table, key, value, true) }
    }

    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.lookup(key, see)
    }

    #[inline(always)]
    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        // SAFETY: as in put.
        unsafe { self.lib.delete(self.txn, self.table, key, None) }
    }
}
