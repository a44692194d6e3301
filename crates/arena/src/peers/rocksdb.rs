//! RocksDB, the library of the system, through its C interface.
//!
//! SYNC: `WriteOptions::sync`, one fdatasync of the log. LAZY and NOSYNC: the default, each commit
//! reaches the kernel with the log, whose records have checksums, so a power cut leaves a prefix.
//! VOLATILE: `disableWAL`. A transaction is a write batch; reads in it see the last commit. Bloom
//! filters of 10 bits, a cache, dynamic level sizes as its tuning guide says; compression off: the
//! values of the arena cannot be compressed. Large values go to blob files, as its wiki advises.

use std::ffi::{c_char, c_int, c_uchar};
use std::path::Path;
use std::ptr::null_mut;

use super::dl::Table;
use super::lsm::{Calls, Error, Look, Ptr, Store, Thread, View};
use super::{About, Engine, Fault, MODEST_TRANSACTION, Outcome, Variant, cache, dl, write_buffer};
use crate::spec::Class;

dl::functions!(Own {
    fn rocksdb_options_increase_parallelism(Ptr, c_int);
    fn rocksdb_options_set_write_buffer_size(Ptr, usize);
    fn rocksdb_options_set_level_compaction_dynamic_level_bytes(Ptr, c_uchar);
    fn rocksdb_options_set_block_based_table_factory(Ptr, Ptr);
    fn rocksdb_options_set_enable_blob_files(Ptr, c_uchar);
    fn rocksdb_options_set_enable_blob_gc(Ptr, c_uchar);
    fn rocksdb_block_based_options_create() -> Ptr;
    fn rocksdb_block_based_options_set_filter_policy(Ptr, Ptr);
    fn rocksdb_block_based_options_set_block_cache(Ptr, Ptr);
    fn rocksdb_filterpolicy_create_bloom_full(f64) -> Ptr;
    fn rocksdb_open_column_families(Ptr, *const c_char, c_int, *const *const c_char, *const Ptr, *mut Ptr, Error) -> Ptr;
    fn rocksdb_column_family_handle_destroy(Ptr);
    fn rocksdb_checkpoint_object_create(Ptr, Error) -> Ptr;
    fn rocksdb_checkpoint_create(Ptr, *const c_char, u64, Error);
    fn rocksdb_checkpoint_object_destroy(Ptr);
    fn rocksdb_flush_wal(Ptr, c_uchar, Error);
    fn rocksdb_flushoptions_create() -> Ptr;
    fn rocksdb_flushoptions_destroy(Ptr);
    fn rocksdb_flush(Ptr, Ptr, Error);
    fn rocksdb_property_int(Ptr, *const c_char, *mut u64) -> c_int;
    fn rocksdb_writeoptions_disable_WAL(Ptr, c_int);
    fn rocksdb_get_pinned(Ptr, Ptr, *const u8, usize, Error) -> Ptr;
    fn rocksdb_pinnableslice_value(Ptr, *mut usize) -> *const u8;
    fn rocksdb_pinnableslice_destroy(Ptr);
    fn rocksdb_batched_multi_get_cf(Ptr, Ptr, Ptr, usize, *const *const u8, *const usize, *mut Ptr, Error, bool);
});

pub(crate) struct Rocks {
    own: Own,
    /// Whether there is a log to flush.
    log: bool,
    // Closed behind the handle of the family.
    store: Store<Pinned>,
}

/// Values are looked at in the cache; the handle is that of the only family, which batched look-ups
/// ask for.
#[derive(Clone, Copy)]
pub(crate) struct Pinned(Own, Ptr);

// SAFETY: the handle may be used by many threads at once.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Look for Pinned {
    #[inline(always)]
    fn get<R>(
        &self,
        view: &View<Pinned>,
        key: &[u8],
        see: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Outcome<R> {
        let (calls, own) = (view.calls, self.0);
        // SAFETY: the slice is destroyed after its last use.
        unsafe {
            let slice = calls.checked("rocksdb_get_pinned", |error| {
                (own.rocksdb_get_pinned)(view.db, view.options, key.as_ptr(), key.len(), error)
            })?;
            if slice.is_null() {
                return Ok(see(None));
            }
            let mut len = 0;
            let data = (own.rocksdb_pinnableslice_value)(slice, &mut len);
            let result = see(Some(dl::bytes(data, len)));
            (own.rocksdb_pinnableslice_destroy)(slice);
            Ok(result)
        }
    }

    fn get_many(
        &self,
        view: &View<Pinned>,
        keys: &[&[u8]],
        mut see: impl FnMut(usize, Option<&[u8]>),
    ) -> Outcome<()> {
        let (calls, own) = (view.calls, self.0);
        let count = keys.len();
        let data: Vec<*const u8> = keys.iter().map(|k| k.as_ptr()).collect();
        let lens: Vec<usize> = keys.iter().map(|k| k.len()).collect();
        let mut values: Vec<Ptr> = vec![null_mut(); count];
        let mut errors: Vec<*mut c_char> = vec![null_mut(); count];
        // SAFETY: all lists have `count` places; what the library puts there is destroyed.
        unsafe {
            (own.rocksdb_batched_multi_get_cf)(
                view.db,
                view.options,
                self.1,
                count,
                data.as_ptr(),
                lens.as_ptr(),
                values.as_mut_ptr(),
                errors.as_mut_ptr(),
                false,
            );
            for (i, &slice) in values.iter().enumerate() {
                calls.checked("rocksdb_batched_multi_get_cf", |error| *error = errors[i])?;
                if slice.is_null() {
                    see(i, None);
                    continue;
                }
                let mut len = 0;
                let value = (own.rocksdb_pinnableslice_value)(slice, &mut len);
                see(i, Some(dl::bytes(value, len)));
                (own.rocksdb_pinnableslice_destroy)(slice);
            }
        }
        Ok(())
    }
}

impl Engine for Rocks {
    type Session<'e> = Thread<'e, Pinned>;

    fn open(dir: &Path, class: Class, _: Variant) -> Outcome<(Rocks, About)> {
        let library = dl::library("librocksdb.so.7.8".as_ref())?;
        let (calls, own) = (Calls::of(library, "rocksdb_")?, Own::of(library, "")?);
        let path = dl::c_path(&dir.join("rocksdb"))?;
        let log = class != Class::Volatile;
        let threads = std::thread::available_parallelism().map_or(2, |n| n.get()).max(2);
        let (mut family, large) = (null_mut(), super::large_values());
        // SAFETY: handles are made and used as the header says; options live as long as the process.
        let (db, write) = unsafe {
            let options = (calls.options_create)();
            (calls.options_set_create_if_missing)(options, 1);
            (own.rocksdb_options_increase_parallelism)(options, threads as c_int);
            (own.rocksdb_options_set_write_buffer_size)(options, write_buffer());
            (calls.options_set_compression)(options, 0);
            (own.rocksdb_options_set_level_compaction_dynamic_level_bytes)(options, 1);
            if large {
                (own.rocksdb_options_set_enable_blob_files)(options, 1);
                (own.rocksdb_options_set_enable_blob_gc)(options, 1);
            }
            let table = (own.rocksdb_block_based_options_create)();
            let filter = (own.rocksdb_filterpolicy_create_bloom_full)(10.0);
            (own.rocksdb_block_based_options_set_filter_policy)(table, filter);
            let cache = (calls.cache_create_lru)(cache());
            (own.rocksdb_block_based_options_set_block_cache)(table, cache);
            (own.rocksdb_options_set_block_based_table_factory)(options, table);
            let write = (calls.writeoptions_create)();
            (calls.writeoptions_set_sync)(write, u8::from(class == Class::Sync));
            (own.rocksdb_writeoptions_disable_WAL)(write, c_int::from(!log));
            let open = |error| {
                let (name, families) = (c"default".as_ptr(), &raw mut family);
                let open = own.rocksdb_open_column_families;
                open(options, path.as_ptr(), 1, &name, &options, families, error)
            };
            (calls.checked("rocksdb_open", open)?, write)
        };
        let how = match class {
            Class::Sync => "sync=true",
            Class::Lazy | Class::NoSync => "sync=false, log written by each commit",
            Class::Volatile => "disableWAL",
        };
        let about = About {
            version: "7.8".into(),
            settings: format!(
                "{how}; write batches, bloom 10 bits, block cache {} MiB, write buffer {} MiB, \
                 {threads} threads, dynamic levels, no compression{}",
                cache() >> 20,
                write_buffer() >> 20,
                if large { ", blob files with garbage collection" } else { "" }
            ),
            why: "its wiki: Basic Operations (synchronous writes), Setup Options and Basic Tuning, BlobDB"
                .into(),
        };
        Ok((
            Rocks { own, log, store: Store { calls, db, write, look: Pinned(own, family) } },
            about,
        ))
    }

    fn session(&self) -> Outcome<Thread<'_, Pinned>> {
        Ok(self.store.session())
    }

    /// As redb's own benchmark does it: a write batch lies in memory as a whole.
    fn largest_transaction(&self) -> u64 {
        MODEST_TRANSACTION
    }

    fn flush(&self) -> Outcome<()> {
        if !self.log {
            // Without a log only a sorted file makes durable; the call waits for it.
            let flush = |error| {
                // SAFETY: the store is open; the options are destroyed after their use.
                unsafe {
                    let options = (self.own.rocksdb_flushoptions_create)();
                    (self.own.rocksdb_flush)(self.store.db, options, error);
                    (self.own.rocksdb_flushoptions_destroy)(options);
                }
            };
            return self.store.calls.checked("rocksdb_flush", flush);
        }
        let flush = |error| {
            // SAFETY: the store is open.
            unsafe { (self.own.rocksdb_flush_wal)(self.store.db, 1, error) };
        };
        self.store.calls.checked("rocksdb_flush_wal", flush)
    }

    /// A checkpoint names the files of a snapshot by hard links, which are copied then.
    fn back_up(&self, dir: &Path) -> Outcome<()> {
        let linked = dir.join("linked");
        let path = dl::c_path(&linked)?;
        let (calls, own, db) = (self.store.calls, self.own, self.store.db);
        // SAFETY: the store is open, the path ends with zero; the object is destroyed after use.
        unsafe {
            let object = calls.checked("rocksdb_checkpoint_object_create", |e| {
                (own.rocksdb_checkpoint_object_create)(db, e)
            })?;
            let made = calls.checked("rocksdb_checkpoint_create", |e| {
                // Without a log what is in memory must go to files first.
                let flush_above = if self.log { u64::MAX } else { 0 };
                (own.rocksdb_checkpoint_create)(object, path.as_ptr(), flush_above, e)
            });
            (own.rocksdb_checkpoint_object_destroy)(object);
            made?;
        }
        super::copy_files(&linked, &dir.join("rocksdb"))?;
        std::fs::remove_dir_all(&linked).map_err(Fault::of("remove the checkpoint"))
    }

    fn compact(&mut self) -> Outcome<()> {
        self.store.compact();
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
                unsafe {
                    (self.own.rocksdb_property_int)(self.store.db, name.as_ptr(), &mut value)
                };
                value == 0
            }))
        })
    }
}

impl Drop for Rocks {
    fn drop(&mut self) {
        // SAFETY: sessions borrow the engine, so none uses the handle any more.
        unsafe { (self.own.rocksdb_column_family_handle_destroy)(self.store.look.1) };
    }
}
