//! LevelDB, the library of the system, through its C interface.
//!
//! SYNC: `WriteOptions::sync`, one fdatasync of the log. LAZY, NOSYNC and VOLATILE: the default,
//! each commit reaches the kernel with the log, whose records have checksums, so a power cut leaves
//! a prefix; the log cannot be turned off. Bloom filters of 10 bits, a cache, a write buffer as
//! large as RocksDB's (its own default, 4 MiB, dates from 2011), no compression: the values of the
//! arena cannot be compressed.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use super::{About, Engine, Fault, Outcome, Reader, Session, Variant, Writer, cache, dl};
use crate::spec::Class;

type Ptr = *mut c_void;
type Error = *mut *mut c_char;

/// RocksDB's default.
const WRITE_BUFFER: usize = 64 << 20;

dl::functions!(Api {
    fn leveldb_major_version() -> c_int;
    fn leveldb_minor_version() -> c_int;
    fn leveldb_options_create() -> Ptr;
    fn leveldb_options_set_create_if_missing(Ptr, c_uchar);
    fn leveldb_options_set_compression(Ptr, c_int);
    fn leveldb_options_set_write_buffer_size(Ptr, usize);
    fn leveldb_options_set_cache(Ptr, Ptr);
    fn leveldb_options_set_filter_policy(Ptr, Ptr);
    fn leveldb_cache_create_lru(usize) -> Ptr;
    fn leveldb_filterpolicy_create_bloom(c_int) -> Ptr;
    fn leveldb_open(Ptr, *const c_char, Error) -> Ptr;
    fn leveldb_compact_range(Ptr, *const u8, usize, *const u8, usize);
    fn leveldb_close(Ptr);
    fn leveldb_free(Ptr);
    fn leveldb_writeoptions_create() -> Ptr;
    fn leveldb_writeoptions_set_sync(Ptr, c_uchar);
    fn leveldb_readoptions_create() -> Ptr;
    fn leveldb_readoptions_destroy(Ptr);
    fn leveldb_readoptions_set_snapshot(Ptr, Ptr);
    fn leveldb_create_snapshot(Ptr) -> Ptr;
    fn leveldb_release_snapshot(Ptr, Ptr);
    fn leveldb_get(Ptr, Ptr, *const u8, usize, *mut usize, Error) -> *mut u8;
    fn leveldb_create_iterator(Ptr, Ptr) -> Ptr;
    fn leveldb_iter_seek_to_first(Ptr);
    fn leveldb_iter_seek(Ptr, *const u8, usize);
    fn leveldb_iter_valid(Ptr) -> c_uchar;
    fn leveldb_iter_next(Ptr);
    fn leveldb_iter_key(Ptr, *mut usize) -> *const u8;
    fn leveldb_iter_value(Ptr, *mut usize) -> *const u8;
    fn leveldb_iter_get_error(Ptr, Error);
    fn leveldb_iter_destroy(Ptr);
    fn leveldb_writebatch_create() -> Ptr;
    fn leveldb_writebatch_destroy(Ptr);
    fn leveldb_writebatch_clear(Ptr);
    fn leveldb_writebatch_put(Ptr, *const u8, usize, *const u8, usize);
    fn leveldb_writebatch_delete(Ptr, *const u8, usize);
    fn leveldb_write(Ptr, Ptr, Ptr, Error);
});

pub(crate) struct Level {
    api: Api,
    dir: PathBuf,
    db: Ptr,
    write: Ptr,
}

// SAFETY: the library's handles may be used by many threads at once.
unsafe impl Send for Level {}
// SAFETY: as above.
unsafe impl Sync for Level {}

pub(crate) struct Thread<'e> {
    engine: &'e Level,
    batch: Ptr,
    read: Ptr,
}

/// The store in a snapshot, or as it is now.
pub(crate) struct View {
    api: Api,
    db: Ptr,
    options: Ptr,
}

/// A batch; reads see the last commit.
pub(crate) struct Batch {
    view: View,
    batch: Ptr,
}

impl Api {
    /// Runs a call that reports by a string.
    #[inline(always)]
    fn checked<R>(&self, call: &'static str, work: impl FnOnce(Error) -> R) -> Outcome<R> {
        let mut error = null_mut();
        let result = work(&mut error);
        if error.is_null() {
            return Ok(result);
        }
        // SAFETY: the library gave a string, which is ours to free.
        let text = unsafe {
            let text = dl::text(error);
            (self.leveldb_free)(error.cast());
            text
        };
        Err(Fault::Failed(format!("{call}: {text}")))
    }
}

impl Engine for Level {
    type Session<'e> = Thread<'e>;

    fn open(dir: &Path, class: Class, _: Variant) -> Outcome<(Level, About)> {
        let api = Api::load("libleveldb.so.1d".as_ref())?;
        let dir = dir.join("leveldb");
        let path = dl::c_path(&dir)?;
        // SAFETY: handles are made and used as the header says; options live as long as the process.
        let (db, write, version) = unsafe {
            let options = (api.leveldb_options_create)();
            (api.leveldb_options_set_create_if_missing)(options, 1);
            (api.leveldb_options_set_compression)(options, 0);
            (api.leveldb_options_set_write_buffer_size)(options, WRITE_BUFFER);
            (api.leveldb_options_set_cache)(options, (api.leveldb_cache_create_lru)(cache()));
            let filter = (api.leveldb_filterpolicy_create_bloom)(10);
            (api.leveldb_options_set_filter_policy)(options, filter);
            let write = (api.leveldb_writeoptions_create)();
            (api.leveldb_writeoptions_set_sync)(write, u8::from(class == Class::Sync));
            let open = |error| (api.leveldb_open)(options, path.as_ptr(), error);
            let version = ((api.leveldb_major_version)(), (api.leveldb_minor_version)());
            (api.checked("leveldb_open", open)?, write, version)
        };
        let how = match class {
            Class::Sync => "sync=true",
            _ => "sync=false, log written by each commit",
        };
        let about = About {
            version: format!("{}.{}", version.0, version.1),
            settings: format!(
                "{how}; write batches, bloom 10 bits, cache {} MiB, write buffer {} MiB, no \
                 compression",
                cache() >> 20,
                WRITE_BUFFER >> 20
            ),
            why: "its documentation: Synchronous Writes, Performance".into(),
        };
        Ok((Level { api, dir, db, write }, about))
    }

    fn session(&self) -> Outcome<Thread<'_>> {
        // SAFETY: the handles are freed with the session.
        let (batch, read) = unsafe {
            ((self.api.leveldb_writebatch_create)(), (self.api.leveldb_readoptions_create)())
        };
        Ok(Thread { engine: self, batch, read })
    }

    fn flush(&self) -> Outcome<()> {
        super::flush_files(&self.dir)
    }

    /// It tells nothing of its compactions.
    fn compact(&mut self) -> Outcome<()> {
        use std::ptr::null;
        // SAFETY: the store is open; null stands for the first and the last key.
        unsafe { (self.api.leveldb_compact_range)(self.db, null(), 0, null(), 0) };
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        super::until_idle()
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        // SAFETY: sessions borrow the engine, so none uses the store any more.
        unsafe { (self.api.leveldb_close)(self.db) };
    }
}

impl Drop for Thread<'_> {
    fn drop(&mut self) {
        let api = self.engine.api;
        // SAFETY: nothing else uses the handles.
        unsafe {
            (api.leveldb_writebatch_destroy)(self.batch);
            (api.leveldb_readoptions_destroy)(self.read);
        }
    }
}

impl Thread<'_> {
    fn view(&self) -> View {
        View { api: self.engine.api, db: self.engine.db, options: self.read }
    }
}

impl Session for Thread<'_> {
    type Reader<'t> = View;
    type Writer<'t> = Batch;

    fn read<R>(&mut self, work: impl for<'t> FnOnce(&mut View) -> Outcome<R>) -> Outcome<R> {
        let Level { api, db, .. } = *self.engine;
        // SAFETY: the snapshot is released when the work is done, and not named any more.
        unsafe {
            let snapshot = (api.leveldb_create_snapshot)(db);
            (api.leveldb_readoptions_set_snapshot)(self.read, snapshot);
            let result = work(&mut self.view());
            (api.leveldb_readoptions_set_snapshot)(self.read, null_mut());
            (api.leveldb_release_snapshot)(db, snapshot);
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
        work: impl for<'t> Fn(&mut Batch) -> Outcome<R> + Send,
    ) -> Outcome<R> {
        let (api, db, write) = (self.engine.api, self.engine.db, self.engine.write);
        let mut batch = Batch { view: self.view(), batch: self.batch };
        let result = work(&mut batch);
        // SAFETY: the handles are live; the batch is cleared for the next transaction.
        unsafe {
            let written = match &result {
                Ok(_) => {
                    api.checked("leveldb_write", |e| (api.leveldb_write)(db, write, self.batch, e))
                }
                Err(_) => Ok(()),
            };
            (api.leveldb_writebatch_clear)(self.batch);
            written?;
        }
        result
    }
}

impl Reader for View {
    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let api = self.api;
        let mut len = 0;
        // SAFETY: the copy that the library gives is freed after its last use.
        unsafe {
            let value = api.checked("leveldb_get", |error| {
                let (key, key_len) = (key.as_ptr(), key.len());
                (api.leveldb_get)(self.db, self.options, key, key_len, &mut len, error)
            })?;
            if value.is_null() {
                return Ok(see(None));
            }
            let result = see(Some(dl::bytes(value, len)));
            (api.leveldb_free)(value.cast());
            Ok(result)
        }
    }

    fn walk(
        &mut self,
        from: Option<&[u8]>,
        most: u64,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<u64> {
        let api = self.api;
        let mut count = 0;
        // SAFETY: key and value are used before the next step; the iterator is destroyed.
        unsafe {
            let iter = (api.leveldb_create_iterator)(self.db, self.options);
            match from {
                Some(key) => (api.leveldb_iter_seek)(iter, key.as_ptr(), key.len()),
                None => (api.leveldb_iter_seek_to_first)(iter),
            }
            while count < most && (api.leveldb_iter_valid)(iter) != 0 {
                let (mut key_len, mut value_len) = (0, 0);
                let key = (api.leveldb_iter_key)(iter, &mut key_len);
                let value = (api.leveldb_iter_value)(iter, &mut value_len);
                see(dl::bytes(key, key_len), dl::bytes(value, value_len));
                (api.leveldb_iter_next)(iter);
                count += 1;
            }
            let ended = api.checked("iterator", |e| (api.leveldb_iter_get_error)(iter, e));
            (api.leveldb_iter_destroy)(iter);
            ended?;
        }
        Ok(count)
    }
}

impl Writer for Batch {
    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let put = self.view.api.leveldb_writebatch_put;
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
        let delete = self.view.api.leveldb_writebatch_delete;
        // SAFETY: the batch copies what it is given.
        unsafe { delete(self.batch, key.as_ptr(), key.len()) };
        Ok(())
    }
}
