//! What LevelDB and RocksDB have in common. RocksDB grew out of LevelDB, and its C interface has the
//! same functions with another prefix; look-ups differ, and what is set when a store is opened.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::ptr::{null, null_mut};

use super::{Fault, Outcome, Reader, Session, Writer, dl};

pub(super) type Ptr = *mut c_void;
pub(super) type Error = *mut *mut c_char;

dl::functions!(pub(super) Calls {
    fn options_create() -> Ptr;
    fn options_set_create_if_missing(Ptr, c_uchar);
    fn options_set_compression(Ptr, c_int);
    fn cache_create_lru(usize) -> Ptr;
    fn close(Ptr);
    fn free(Ptr);
    fn compact_range(Ptr, *const u8, usize, *const u8, usize);
    fn writeoptions_create() -> Ptr;
    fn writeoptions_set_sync(Ptr, c_uchar);
    fn readoptions_create() -> Ptr;
    fn readoptions_destroy(Ptr);
    fn readoptions_set_snapshot(Ptr, Ptr);
    fn create_snapshot(Ptr) -> Ptr;
    fn release_snapshot(Ptr, Ptr);
    fn create_iterator(Ptr, Ptr) -> Ptr;
    fn iter_seek_to_first(Ptr);
    fn iter_seek(Ptr, *const u8, usize);
    fn iter_valid(Ptr) -> c_uchar;
    fn iter_next(Ptr);
    fn iter_key(Ptr, *mut usize) -> *const u8;
    fn iter_value(Ptr, *mut usize) -> *const u8;
    fn iter_get_error(Ptr, Error);
    fn iter_destroy(Ptr);
    fn writebatch_create() -> Ptr;
    fn writebatch_destroy(Ptr);
    fn writebatch_clear(Ptr);
    fn writebatch_put(Ptr, *const u8, usize, *const u8, usize);
    fn writebatch_delete(Ptr, *const u8, usize);
    fn write(Ptr, Ptr, Ptr, Error);
});

impl Calls {
    /// Runs a call that reports by a string.
    #[inline(always)]
    pub(super) fn checked<R>(
        &self,
        call: &'static str,
        work: impl FnOnce(Error) -> R,
    ) -> Outcome<R> {
        let mut error = null_mut();
        let result = work(&mut error);
        if error.is_null() {
            return Ok(result);
        }
        // SAFETY: the library gave a string, which is ours to free.
        let text = unsafe {
            let text = dl::text(error);
            (self.free)(error.cast());
            text
        };
        Err(Fault::Failed(format!("{call}: {text}")))
    }
}

/// How a library looks keys up.
pub(crate) trait Look: Copy + Sync {
    fn get<R>(
        &self,
        view: &View<Self>,
        key: &[u8],
        see: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Outcome<R>;

    fn get_many(
        &self,
        view: &View<Self>,
        keys: &[&[u8]],
        mut see: impl FnMut(usize, Option<&[u8]>),
    ) -> Outcome<()> {
        for (i, key) in keys.iter().enumerate() {
            self.get(view, key, |value| see(i, value))?;
        }
        Ok(())
    }
}

/// An open store.
pub(crate) struct Store<L> {
    pub(super) calls: Calls,
    pub(super) db: Ptr,
    /// Options of writes.
    pub(super) write: Ptr,
    pub(super) look: L,
}

// SAFETY: the libraries' handles may be used by many threads at once.
unsafe impl<L: Send> Send for Store<L> {}
// SAFETY: as above.
unsafe impl<L: Sync> Sync for Store<L> {}

impl<L: Look> Store<L> {
    pub(super) fn session(&self) -> Thread<'_, L> {
        // SAFETY: the handles are freed with the session.
        let (batch, read) =
            unsafe { ((self.calls.writebatch_create)(), (self.calls.readoptions_create)()) };
        Thread { store: self, batch, read }
    }

    pub(super) fn compact(&self) {
        // SAFETY: the store is open; null stands for the first and the last key.
        unsafe { (self.calls.compact_range)(self.db, null(), 0, null(), 0) };
    }
}

impl<L> Drop for Store<L> {
    fn drop(&mut self) {
        // SAFETY: sessions borrow the store, so none uses it any more.
        unsafe { (self.calls.close)(self.db) };
    }
}

pub(crate) struct Thread<'e, L> {
    store: &'e Store<L>,
    batch: Ptr,
    read: Ptr,
}

/// The store in a snapshot, or as it is now.
#[derive(Clone, Copy)]
pub(crate) struct View<L> {
    pub(super) calls: Calls,
    pub(super) db: Ptr,
    /// Options of reads, which name the snapshot.
    pub(super) options: Ptr,
    look: L,
}

/// A batch; reads see the last commit.
pub(crate) struct Batch<L> {
    view: View<L>,
    batch: Ptr,
}

impl<L> Drop for Thread<'_, L> {
    fn drop(&mut self) {
        let calls = self.store.calls;
        // SAFETY: nothing else uses the handles.
        unsafe {
            (calls.writebatch_destroy)(self.batch);
            (calls.readoptions_destroy)(self.read);
        }
    }
}

impl<L: Look> Thread<'_, L> {
    fn view(&self) -> View<L> {
        let Store { calls, db, look, .. } = *self.store;
        View { calls, db, options: self.read, look }
    }
}

impl<L: Look> Session for Thread<'_, L> {
    type Reader<'t> = View<L>;
    type Writer<'t> = Batch<L>;

    fn read<R>(&mut self, work: impl for<'t> FnOnce(&mut View<L>) -> Outcome<R>) -> Outcome<R> {
        let Store { calls, db, .. } = *self.store;
        // SAFETY: the snapshot is released when the work is done, and not named any more.
        unsafe {
            let snapshot = (calls.create_snapshot)(db);
            (calls.readoptions_set_snapshot)(self.read, snapshot);
            let result = work(&mut self.view());
            (calls.readoptions_set_snapshot)(self.read, null_mut());
            (calls.release_snapshot)(db, snapshot);
            result
        }
    }

    /// One look-up needs no snapshot.
    #[inline(always)]
    fn get_once<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.view().get(key, see)
    }

    fn write<R: Send>(
        &mut self,
        work: impl for<'t> Fn(&mut Batch<L>) -> Outcome<R> + Send,
    ) -> Outcome<R> {
        let Store { calls, db, write, .. } = *self.store;
        let mut batch = Batch { view: self.view(), batch: self.batch };
        let result = work(&mut batch);
        // SAFETY: the handles are live; the batch is cleared for the next transaction.
        unsafe {
            let written = match &result {
                Ok(_) => calls.checked("write", |e| (calls.write)(db, write, self.batch, e)),
                Err(_) => Ok(()),
            };
            (calls.writebatch_clear)(self.batch);
            written?;
        }
        result
    }
}

impl<L: Look> Reader for View<L> {
    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.look.get(self, key, see)
    }

    fn get_many(&mut self, keys: &[&[u8]], see: impl FnMut(usize, Option<&[u8]>)) -> Outcome<()> {
        self.look.get_many(self, keys, see)
    }

    fn walk(
        &mut self,
        from: Option<&[u8]>,
        most: u64,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<u64> {
        let calls = self.calls;
        let mut count = 0;
        // SAFETY: key and value are used before the next step; the iterator is destroyed.
        unsafe {
            let iter = (calls.create_iterator)(self.db, self.options);
            match from {
                Some(key) => (calls.iter_seek)(iter, key.as_ptr(), key.len()),
                None => (calls.iter_seek_to_first)(iter),
            }
            while count < most && (calls.iter_valid)(iter) != 0 {
                let (mut key_len, mut value_len) = (0, 0);
                let key = (calls.iter_key)(iter, &mut key_len);
                let value = (calls.iter_value)(iter, &mut value_len);
                see(dl::bytes(key, key_len), dl::bytes(value, value_len));
                (calls.iter_next)(iter);
                count += 1;
            }
            let ended = calls.checked("iterator", |e| (calls.iter_get_error)(iter, e));
            (calls.iter_destroy)(iter);
            ended?;
        }
        Ok(count)
    }
}

impl<L: Look> Writer for Batch<L> {
    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let put = self.view.calls.writebatch_put;
        // SAFETY: the batch copies what it is given.
        unsafe { put(self.batch, key.as_ptr(), key.len(), value.as_ptr(), value.len()) };
        Ok(())
    }

    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        self.view.get(key, see)
    }

    #[inline(always)]
    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        let delete = self.view.calls.writebatch_delete;
        // SAFETY: the batch copies what it is given.
        unsafe { delete(self.batch, key.as_ptr(), key.len()) };
        Ok(())
    }
}
