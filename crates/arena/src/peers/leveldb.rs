//! LevelDB, the library of the system, through its C interface.
//!
//! SYNC: `WriteOptions::sync`, one fdatasync of the log. LAZY, NOSYNC and VOLATILE: the default,
//! each commit reaches the kernel with the log, whose records have checksums, so a power cut leaves
//! a prefix; the log cannot be turned off. Bloom filters of 10 bits, a cache, a write buffer as
//! large as RocksDB's (its own default, 4 MiB, dates from 2011), no compression: the values of the
//! arena cannot be compressed.

use std::ffi::{c_char, c_int};
use std::path::{Path, PathBuf};

use super::dl::Table;
use super::lsm::{Calls, Error, Look, Ptr, Store, Thread, View};
use super::{About, Engine, Outcome, Variant, cache, dl, write_buffer};
use crate::spec::Class;

dl::functions!(Own {
    fn leveldb_major_version() -> c_int;
    fn leveldb_minor_version() -> c_int;
    fn leveldb_options_set_write_buffer_size(Ptr, usize);
    fn leveldb_options_set_cache(Ptr, Ptr);
    fn leveldb_options_set_filter_policy(Ptr, Ptr);
    fn leveldb_filterpolicy_create_bloom(c_int) -> Ptr;
    fn leveldb_open(Ptr, *const c_char, Error) -> Ptr;
    fn leveldb_get(Ptr, Ptr, *const u8, usize, *mut usize, Error) -> *mut u8;
});

pub(crate) struct Level {
    store: Store<Copied>,
    dir: PathBuf,
}

/// Values come as copies.
#[derive(Clone, Copy)]
pub(crate) struct Copied(Own);

impl Look for Copied {
    #[inline(always)]
    fn get<R>(
        &self,
        view: &View<Copied>,
        key: &[u8],
        see: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Outcome<R> {
        let (calls, get, mut len) = (view.calls, self.0.leveldb_get, 0);
        // SAFETY: the copy that the library gives is freed after its last use.
        unsafe {
            let value = calls.checked("leveldb_get", |error| {
                get(view.db, view.options, key.as_ptr(), key.len(), &mut len, error)
            })?;
            if value.is_null() {
                return Ok(see(None));
            }
            let result = see(Some(dl::bytes(value, len)));
            (calls.free)(value.cast());
            Ok(result)
        }
    }
}

impl Engine for Level {
    type Session<'e> = Thread<'e, Copied>;

    fn open(dir: &Path, class: Class, _: Variant) -> Outcome<(Level, About)> {
        let library = dl::library("libleveldb.so.1d".as_ref())?;
        let (calls, own) = (Calls::of(library, "leveldb_")?, Own::of(library, "")?);
        let dir = dir.join("leveldb");
        let path = dl::c_path(&dir)?;
        // SAFETY: handles are made and used as the header says; options live as long as the process.
        let (db, write, version) = unsafe {
            let options = (calls.options_create)();
            (calls.options_set_create_if_missing)(options, 1);
            (calls.options_set_compression)(options, 0);
            (own.leveldb_options_set_write_buffer_size)(options, write_buffer());
            (own.leveldb_options_set_cache)(options, (calls.cache_create_lru)(cache()));
            let filter = (own.leveldb_filterpolicy_create_bloom)(10);
            (own.leveldb_options_set_filter_policy)(options, filter);
            let write = (calls.writeoptions_create)();
            (calls.writeoptions_set_sync)(write, u8::from(class == Class::Sync));
            let open = |error| (own.leveldb_open)(options, path.as_ptr(), error);
            let version = ((own.leveldb_major_version)(), (own.leveldb_minor_version)());
            (calls.checked("leveldb_open", open)?, write, version)
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
                write_buffer() >> 20
            ),
            why: "its documentation: Synchronous Writes, Performance".into(),
        };
        Ok((Level { store: Store { calls, db, write, look: Copied(own) }, dir }, about))
    }

    fn session(&self) -> Outcome<Thread<'_, Copied>> {
        Ok(self.store.session())
    }

    fn flush(&self) -> Outcome<()> {
        super::flush_files(&self.dir)
    }

    fn compact(&mut self) -> Outcome<()> {
        self.store.compact();
        Ok(())
    }

    /// It reports nothing about its compactions.
    fn settle(&self) -> Outcome<()> {
        super::until_idle()
    }
}
