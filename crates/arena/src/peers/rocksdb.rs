//! RocksDB, the library of the system, through its C interface.
//!
//! SYNC: `WriteOptions::sync`, one fdatasync of the log. LAZY and NOSYNC: the default, each commit
//! reaches the kernel with the log, whose records have checksums, so a power cut leaves a prefix.
//! VOLATILE: `disableWAL`. A transaction is a write batch; reads in it see the last commit. Bloom
//! filters of 10 bits, a cache, dynamic level sizes as its tuning guide says; compression off: the
//! values of the arena cannot be compressed.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr::null_mut;

use super::{About, Engine, Fault, Outcome, Reader, Session, Variant, Writer, cache, dl};
use crate::spec::Class;

type Ptr = *mut c_void;
type Error = *mut *mut c_char;

dl::functions!(Api {
    fn rocksdb_options_create() -> Ptr;
    fn rocksdb_options_set_create_if_missing(Ptr, c_uchar);
    fn rocksdb_options_increase_parallelism(Ptr, c_int);
    fn rocksdb_options_set_compression(Ptr, c_int);
    fn rocksdb_options_set_level_compaction_dynamic_level_bytes(Ptr, c_uchar);
    fn rocksdb_options_set_block_based_table_factory(Ptr, Ptr);
    fn rocksdb_block_based_options_create() -> Ptr;
    fn rocksdb_block_based_options_set_filter_policy(Ptr, Ptr);
    fn rocksdb_block_based_options_set_block_cache(Ptr, Ptr);
    fn rocksdb_filterpolicy_create_bloom_full(f64) -> Ptr;
    fn rocksdb_cache_create_lru(usize) -> Ptr;
    fn rocksdb_open_column_families(Ptr, *const c_char, c_int, *const *const c_char, *const Ptr, *mut Ptr, Error) -> Ptr;
    fn rocksdb_column_family_handle_destroy(Ptr);
    fn rocksdb_close(Ptr);
    fn rocksdb_compact_range(Ptr, *const u8, usize, *const u8, usize);
    fn rocksdb_checkpoint_object_create(Ptr, Error) -> Ptr;
    fn rocksdb_checkpoint_create(Ptr, *const c_char, u64, Error);
    fn rocksdb_checkpoint_object_destroy(Ptr);
    fn rocksdb_flush_wal(Ptr, c_uchar, Error);
    fn rocksdb_property_int(Ptr, *const c_char, *mut u64) -> c_int;
    fn rocksdb_free(Ptr);
    fn rocksdb_writeoptions_create() -> Ptr;
    fn rocksdb_writeoptions_set_sync(Ptr, c_uchar);
    fn rocksdb_writeoptions_disable_WAL(Ptr, c_int);
    fn rocksdb_readoptions_create() -> Ptr;
    fn rocksdb_readoptions_destroy(Ptr);
    fn rocksdb_readoptions_set_snapshot(Ptr, Ptr);
    fn rocksdb_create_snapshot(Ptr) -> Ptr;
    fn rocksdb_release_snapshot(Ptr, Ptr);
    fn rocksdb_get_pinned(Ptr, Ptr, *const u8, usize, Error) -> Ptr;
    fn rocksdb_pinnableslice_value(Ptr, *mut usize) -> *const u8;
    fn rocksdb_pinnableslice_destroy(Ptr);
    fn rocksdb_batched_multi_get_cf(Ptr, Ptr, Ptr, usize, *const *const u8, *const usize, *mut Ptr, Error, bool);
    fn rocksdb_create_iterator(Ptr, Ptr) -> Ptr;
    fn rocksdb_iter_seek_to_first(Ptr);
    fn rocksdb_iter_seek(Ptr, *const u8, usize);
    fn rocksdb_iter_valid(Ptr) -> c_uchar;
    fn rocksdb_iter_next(Ptr);
    fn rocksdb_iter_key(Ptr, *mut usize) -> *const u8;
    fn rocksdb_iter_value(Ptr, *mut usize) -> *const u8;
    fn rocksdb_iter_get_error(Ptr, Error);
    fn rocksdb_iter_destroy(Ptr);
    fn rocksdb_writebatch_create() -> Ptr;
    fn rocksdb_writebatch_destroy(Ptr);
    fn rocksdb_writebatch_clear(Ptr);
    fn rocksdb_writebatch_put(Ptr, *const u8, usize, *const u8, usize);
    fn rocksdb_writebatch_delete(Ptr, *const u8, usize);
    fn rocksdb_write(Ptr, Ptr, Ptr, Error);
});

pub(crate) struct Rocks {
    api: Api,
    db: Ptr,
    family: Ptr,
    write: Ptr,
    /// Whether there is a log to flush.
    log: bool,
}

// SAFETY: the library's handles may be used by many threads at once.
unsafe impl Send for Rocks {}
// SAFETY: as above.
unsafe impl Sync for Rocks {}

pub(crate) struct Thread<'e> {
    engine: &'e Rocks,
    batch: Ptr,
    read: Ptr,
}

/// The store in a snapshot, or as it is now.
pub(crate) struct View {
    api: Api,
    db: Ptr,
    family: Ptr,
    options: Ptr,
}

/// A batch; reads see the last commit.
pub(crate) struct Batch {
    view: View,
    batch: Ptr,
}

// SAFETY: batches may move between threads; one uses them at a time.
unsafe impl Send for Batch {}

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
            (self.rocksdb_free)(error.cast());
            text
        };
        Err(Fault::Failed(format!("{call}: {text}")))
    }
}

impl Engine for Rocks {
    type Session<'e> = Thread<'e>;

    fn open(dir: &Path, class: Class, _: Variant) -> Outcome<(Rocks, About)> {
        const LIBRARY: &str = "librocksdb.so.7.8";
        let api = Api::load(LIBRARY.as_ref())?;
        let path = dl::c_path(&dir.join("rocksdb"))?;
        let log = class != Class::Volatile;
        let threads = std::thread::available_parallelism().map_or(2, |n| n.get()).max(2);
        let mut family = null_mut();
        // SAFETY: handles are made and used as the header says; options live as long as the process.
        let (db, write) = unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_increase_parallelism)(options, threads as c_int);
            (api.rocksdb_options_set_compression)(options, 0);
            (api.rocksdb_options_set_level_compaction_dynamic_level_bytes)(options, 1);
            let table = (api.rocksdb_block_based_options_create)();
            let filter = (api.rocksdb_filterpolicy_create_bloom_full)(10.0);
            (api.rocksdb_block_based_options_set_filter_policy)(table, filter);
            let cache = (api.rocksdb_cache_create_lru)(cache());
            (api.rocksdb_block_based_options_set_block_cache)(table, cache);
            (api.rocksdb_options_set_block_based_table_factory)(options, table);
            let write = (api.rocksdb_writeoptions_create)();
            (api.rocksdb_writeoptions_set_sync)(write, u8::from(class == Class::Sync));
            (api.rocksdb_writeoptions_disable_WAL)(write, c_int::from(!log));
            // Opened by the name of the only family: batched look-ups ask for its handle.
            let open = |error| {
                let (name, families) = (c"default".as_ptr(), &raw mut family);
                let open = api.rocksdb_open_column_families;
                open(options, path.as_ptr(), 1, &name, &options, families, error)
            };
            (api.checked("rocksdb_open", open)?, write)
        };
        let how = match class {
            Class::Sync => "sync=true",
            Class::Lazy | Class::NoSync => "sync=false, log written by each commit",
            Class::Volatile => "disableWAL",
        };
        let about = About {
            version: "7.8".into(),
            settings: format!(
                "{how}; write batches, bloom 10 bits, block cache {} MiB, {threads} threads, \
                 dynamic levels, no compression",
                cache() >> 20
            ),
            why: "its wiki: Basic Operations (synchronous writes), Setup Options and Basic Tuning"
                .into(),
        };
        Ok((Rocks { api, db, family, write, log }, about))
    }

    fn session(&self) -> Outcome<Thread<'_>> {
        // SAFETY: the handles are freed with the session.
        let (batch, read) = unsafe {
            ((self.api.rocksdb_writebatch_create)(), (self.api.rocksdb_readoptions_create)())
        };
        Ok(Thread { engine: self, batch, read })
    }

    fn flush(&self) -> Outcome<()> {
        if !self.log {
            return Ok(());
        }
        let flush = |error| {
            // SAFETY: the store is open.
            unsafe { (self.api.rocksdb_flush_wal)(self.db, 1, error) };
        };
        self.api.checked("rocksdb_flush_wal", flush)
    }

    /// A checkpoint names the files of a snapshot by hard links, which are copied then.
    fn back_up(&self, dir: &Path) -> Outcome<()> {
        let linked = dir.join("linked");
        let path = dl::c_path(&linked)?;
        let api = self.api;
        // SAFETY: the store is open, the path ends with zero; the object is destroyed after use.
        unsafe {
            let object = api.checked("rocksdb_checkpoint_object_create", |e| {
                (api.rocksdb_checkpoint_object_create)(self.db, e)
            })?;
            let made = api.checked("rocksdb_checkpoint_create", |e| {
                // Without a log what is in memory must go to files first.
                let flush_above = if self.log { u64::MAX } else { 0 };
                (api.rocksdb_checkpoint_create)(object, path.as_ptr(), flush_above, e)
            });
            (api.rocksdb_checkpoint_object_destroy)(object);
            made?;
        }
        super::copy_files(&linked, &dir.join("rocksdb"))?;
        std::fs::remove_dir_all(&linked).map_err(Fault::of("remove the checkpoint"))
    }

    fn compact(&mut self) -> Outcome<()> {
        use std::ptr::null;
        // SAFETY: the store is open; null stands for the first and the last key.
        unsafe { (self.api.rocksdb_compact_range)(self.db, null(), 0, null(), 0) };
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        super::until_quiet(|| {
            let busy = [
                c"rocksdb.num-running-compactions",
                c"rocksdb.num-running-flushes",
                c"rocksdb.compaction-pending",
                c"rocksdb.mem-table-flush-pending",
            ];
            Ok(busy.iter().all(|name| {
                let mut value = 0;
                // SAFETY: the store is open, the name ends with zero.
                unsafe { (self.api.rocksdb_property_int)(self.db, name.as_ptr(), &mut value) };
                value == 0
            }))
        })
    }
}

impl Drop for Rocks {
    fn drop(&mut self) {
        // SAFETY: sessions borrow the engine, so none uses the store any more.
        unsafe {
            (self.api.rocksdb_column_family_handle_destroy)(self.family);
            (self.api.rocksdb_close)(self.db);
        }
    }
}

impl Drop for Thread<'_> {
    fn drop(&mut self) {
        let api = self.engine.api;
        // SAFETY: nothing else uses the handles.
        unsafe {
            (api.rocksdb_writebatch_destroy)(self.batch);
            (api.rocksdb_readoptions_destroy)(self.read);
        }
    }
}

impl Thread<'_> {
    fn view(&self) -> View {
        let Rocks { api, db, family, .. } = *self.engine;
        View { api, db, family, options: self.read }
    }
}

impl Session for Thread<'_> {
    type Reader<'t> = View;
    type Writer<'t> = Batch;

    fn read<R>(&mut self, work: impl for<'t> FnOnce(&mut View) -> Outcome<R>) -> Outcome<R> {
        let Rocks { api, db, .. } = *self.engine;
        // SAFETY: the snapshot is released when the work is done, and not named any more.
        unsafe {
            let snapshot = (api.rocksdb_create_snapshot)(db);
            (api.rocksdb_readoptions_set_snapshot)(self.read, snapshot);
            let result = work(&mut self.view());
            (api.rocksdb_readoptions_set_snapshot)(self.read, null_mut());
            (api.rocksdb_release_snapshot)(db, snapshot);
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
        let Rocks { api, db, write, .. } = *self.engine;
        let mut batch = Batch { view: self.view(), batch: self.batch };
        let result = work(&mut batch);
        // SAFETY: the handles are live; the batch is cleared for the next transaction.
        unsafe {
            let written = match &result {
                Ok(_) => {
                    api.checked("rocksdb_write", |e| (api.rocksdb_write)(db, write, self.batch, e))
                }
                Err(_) => Ok(()),
            };
            (api.rocksdb_writebatch_clear)(self.batch);
            written?;
        }
        result
    }
}

impl Reader for View {
    #[inline(always)]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(Option<&[u8]>) -> R) -> Outcome<R> {
        let api = self.api;
        // SAFETY: the slice is destroyed after its last use.
        unsafe {
            let slice = api.checked("rocksdb_get_pinned", |error| {
                (api.rocksdb_get_pinned)(self.db, self.options, key.as_ptr(), key.len(), error)
            })?;
            if slice.is_null() {
                return Ok(see(None));
            }
            let mut len = 0;
            let data = (api.rocksdb_pinnableslice_value)(slice, &mut len);
            let result = see(Some(dl::bytes(data, len)));
            (api.rocksdb_pinnableslice_destroy)(slice);
            Ok(result)
        }
    }

    fn get_many(
        &mut self,
        keys: &[&[u8]],
        mut see: impl FnMut(usize, Option<&[u8]>),
    ) -> Outcome<()> {
        let api = self.api;
        let count = keys.len();
        let data: Vec<*const u8> = keys.iter().map(|k| k.as_ptr()).collect();
        let lens: Vec<usize> = keys.iter().map(|k| k.len()).collect();
        let mut values: Vec<Ptr> = vec![null_mut(); count];
        let mut errors: Vec<*mut c_char> = vec![null_mut(); count];
        // SAFETY: all lists have `count` places; what the library puts there is destroyed.
        unsafe {
            (api.rocksdb_batched_multi_get_cf)(
                self.db,
                self.options,
                self.family,
                count,
                data.as_ptr(),
                lens.as_ptr(),
                values.as_mut_ptr(),
                errors.as_mut_ptr(),
                false,
            );
            for (i, &slice) in values.iter().enumerate() {
                api.checked("rocksdb_batched_multi_get_cf", |error| *error = errors[i])?;
                if slice.is_null() {
                    see(i, None);
                    continue;
                }
                let mut len = 0;
                let value = (api.rocksdb_pinnableslice_value)(slice, &mut len);
                see(i, Some(dl::bytes(value, len)));
                (api.rocksdb_pinnableslice_destroy)(slice);
            }
        }
        Ok(())
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
            let iter = (api.rocksdb_create_iterator)(self.db, self.options);
            match from {
                Some(key) => (api.rocksdb_iter_seek)(iter, key.as_ptr(), key.len()),
                None => (api.rocksdb_iter_seek_to_first)(iter),
            }
            while count < most && (api.rocksdb_iter_valid)(iter) != 0 {
                let (mut key_len, mut value_len) = (0, 0);
                let key = (api.rocksdb_iter_key)(iter, &mut key_len);
                let value = (api.rocksdb_iter_value)(iter, &mut value_len);
                see(dl::bytes(key, key_len), dl::bytes(value, value_len));
                (api.rocksdb_iter_next)(iter);
                count += 1;
            }
            let ended = api.checked("iterator", |e| (api.rocksdb_iter_get_error)(iter, e));
            (api.rocksdb_iter_destroy)(iter);
            ended?;
        }
        Ok(count)
    }
}

impl Writer for Batch {
    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let put = self.view.api.rocksdb_writebatch_put;
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
        let delete = self.view.api.rocksdb_writebatch_delete;
        // SAFETY: the batch copies what it is given.
        unsafe { delete(self.batch, key.as_ptr(), key.len()) };
        Ok(())
    }
}
